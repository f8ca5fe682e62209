//! The two containers of a VDS, a single file or a folder of objects: its description, its stored layers and their
//! chunk tables.

mod chunk_objects;
mod chunk_table;
pub mod cloud;
pub mod container;
mod description_text;
mod metadata_pages;
mod object_metadata;

pub use chunk_table::{ChunkTable, CompressionMethod, Content, Record, StoredLayer};
pub use cloud::Cloud;
pub use container::Container;
pub use description_text::{DescriptionText, Syntax};
