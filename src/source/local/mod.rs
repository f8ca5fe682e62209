//! Local files and folders: below one path, in open files of bounded number, through positioned reads and guarded maps.

mod entries;
mod file;
mod folder;
mod guarded_mmap;
mod mmap_cache;
mod open_file;
mod open_files;
mod place;
mod pread;
mod source_root;
mod tree;

pub use file::LocalFile;
pub use folder::{Folders, LocalFolder};
pub use mmap_cache::{CoarseInstant, MappedWindow};
pub use open_file::OpenFile;
pub use source_root::SourceRoot;
pub use tree::LocalTree;
