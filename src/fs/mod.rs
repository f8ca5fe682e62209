//! The file system as plain methods, without a kernel: so that it can be driven and tested without a mount.
//!
//! Every method takes a [`Wait`]: with [`Wait::No`] it answers from memory or says [`FsError::WouldBlock`], and the adapter
//! to the kernel then calls it again with `Wait::Yes` on a thread that may wait.

mod error;
mod handles;
mod ino;
mod inode_path;
mod marker_pages;
mod read;
mod read_errors;
mod readahead_window;
mod resolve;
mod status;
mod tree;
mod volfs;
mod xattr;

pub use error::FsError;
pub use handles::FolderEntry;
pub use ino::Ino;
pub use read::{Read, ReadAhead};
pub use readahead_window::steps;
pub use volfs::{Attributes, Opened, Options, Volfs};
