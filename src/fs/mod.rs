//! The file system as plain methods of [`Volfs`], which know nothing of FUSE, mounts or signals: they can be driven and
//! tested without a mount.
//!
//! Every method that may have to read the source takes a [`Blocking`](crate::source::Blocking). With `Blocking::No` it answers from
//! memory or fails with [`FsError::WouldBlock`]; the caller then calls it again with `Blocking::Yes`, on a thread that may
//! wait.

mod answer;
mod array_read;
mod attributes;
mod computed_contents;
mod computed_read;
mod content;
mod dataset_counters;
mod error;
mod folders;
mod handles;
mod idle_memory;
mod ino;
mod inode_path;
mod listings;
mod marker_pages;
mod open;
mod opened;
mod options;
mod page_cache;
mod permissions;
mod read;
mod read_errors;
mod readahead;
mod readahead_window;
mod refresh;
mod refresh_state;
mod registries;
mod resolve;
mod stall;
mod stall_report;
mod status;
mod tree;
mod volfs;
mod xattr;

pub(crate) use attributes::Attributes;
pub(crate) use error::FsError;
pub(crate) use handles::FolderEntry;
pub(crate) use ino::Ino;
pub(crate) use marker_pages::advice_ranges;
pub(crate) use open::{OpenReply, Pages};
pub(crate) use opened::Opened;
pub(crate) use options::{Options, Ownership};
pub(crate) use page_cache::PageCache;
pub(crate) use read::ReadRequest;
pub(crate) use readahead::Readahead;
#[cfg(test)]
pub(crate) use registries::Registries;
pub(crate) use resolve::{DOT_VOLFS, DOT_VOLFS_OF_SOURCE};
pub(crate) use tree::layer_folders;
pub(crate) use volfs::Volfs;
