//! The two containers of a VDS, a single file or a folder of objects: its description, its stored layers and their
//! chunk tables.

mod chunk_objects;
mod chunk_table;
pub(crate) mod cloud;
pub(crate) mod container;
mod description_text;
mod metadata_pages;
mod object_metadata;

pub(crate) use chunk_table::{ChunkTable, CompressionMethod, Content, Record, StoredLayer};
pub(crate) use cloud::Cloud;
pub(crate) use container::Container;
pub(crate) use description_text::{DescriptionText, Syntax};
