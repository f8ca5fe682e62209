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

#[cfg(test)]
pub(crate) use file::LocalFile;
#[cfg(test)]
pub(crate) use folder::Folders;
pub(crate) use mmap_cache::{CoarseInstant, MappedWindow};
pub(crate) use open_file::OpenFile;
pub(crate) use source_root::SourceRoot;
pub(crate) use tree::LocalTree;
