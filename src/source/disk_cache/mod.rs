//! A cache on a local disk of bytes that were fetched from a slow source, such as an object store.
//!
//! Each range of an object is kept as it was fetched, in a file of its own, whose name follows from what it holds. The
//! folder is the truth: what is in memory is an index of it, 24 bytes a file, which is rebuilt in the background. So
//! several processes share a folder, and each may be killed at any moment.
//!
//! * A file is written under a temporary name and renamed. Checksums of its blocks, and the names of store, object and
//!   version stand in front ([`file_format`]). Whatever is not as it should be is a miss, and is removed.
//! * Nothing is ever waited for but the read of a file: writes go through a bounded queue to one thread, and are
//!   dropped when it is full.
//! * The budget holds for all processes together: see [`writer`].

mod cache;
mod clock;
mod error;
mod file_format;
mod files;
mod folder;
mod index;
mod object_version;
mod options;
mod queue;
mod statistics;
mod stored_file;
mod stored_range;
mod survey;
#[cfg(test)]
mod tests;
mod writer;
mod writer_folder;

pub(crate) use cache::DiskCache;
pub(crate) use error::DiskCacheError;
pub(crate) use object_version::ObjectVersion;
pub(crate) use options::DiskCacheOptions;
pub(crate) use statistics::DiskCacheStatistics;
pub(crate) use survey::{Cleared, Kept, Survey};
