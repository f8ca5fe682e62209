//! The file system as plain methods of [`Volfs`], which know nothing of FUSE, mounts or signals: they can be driven and
//! tested without a mount.
//!
//! Every method that may have to read the source takes a [`Wait`](crate::source::Wait). With `Wait::No` it answers from
//! memory or fails with [`FsError::WouldBlock`]; the caller then calls it again with `Wait::Yes`, on a thread that may
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

pub use attributes::Attributes;
pub use error::FsError;
pub use handles::FolderEntry;
pub use ino::Ino;
pub use marker_pages::advice_ranges;
pub use open::{OpenReply, Pages};
pub use opened::Opened;
pub use options::{Options, Ownership};
pub use page_cache::PageCache;
pub use read::ReadRequest;
pub use readahead::Readahead;
pub use registries::Registries;
pub use resolve::{DOT_VOLFS, DOT_VOLFS_OF_SOURCE};
pub use tree::layer_folders;
pub use volfs::Volfs;
