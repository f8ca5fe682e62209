//! Finds the datasets below the source, and opens them when they are first needed.
//!
//! Nothing is walked in advance: a folder is read when it is listed, a name is looked up when a client asks for it, and
//! a header is parsed when the dataset's folder is entered. [`Recogniser`] decides what a path is, by asking the
//! formats of a registry. [`Catalog`] gives each folder and dataset a number, which it keeps (and with it its inode
//! numbers) while it is unchanged; a changed dataset is a new one with a new number.

mod count;
mod entry;
mod error;
#[cfg(test)]
mod exchange_tests;
mod file_signs;
mod layer_folders;
pub(crate) mod listing;
mod lookups;
mod node;
mod nodes;
mod open;
mod presence;
mod recognise;
mod source_tree;
mod unseen;

pub(crate) use count::{DatasetCount, count_datasets};
pub(crate) use entry::NodeKind;
pub(crate) use error::CatalogError;
pub(crate) use node::{Node, NodeId, OpenResult, ROOT};
pub(crate) use open::{OpenDataset, OpenError, open_dataset, open_source};
pub(crate) use recognise::Recogniser;
pub(crate) use source_tree::Catalog;
