//! Reads stored bytes.
//!
//! A [`Source`] is a set of named objects whose ranges can be read: one file, a folder of files, later an object
//! store. A missing object is an answer, not an error. A change while a source is read is an error: bytes of two
//! versions are never mixed.

mod entries;
mod error;
mod file;
mod folder;
mod guarded_mmap;
mod index;
mod mmap_cache;
mod open_file;
mod open_files;
mod pread;
mod recent_writes;
mod stamp;
mod symlink_policy;
mod traits;
mod wait;

pub use entries::visit_entries;
pub use error::SourceError;
pub use file::LocalFile;
pub use folder::{EntryKind, Folder, Folders, LocalFolder, NoFolder};
pub use index::{Index, IndexCache, PartKey};
pub use mmap_cache::{CoarseInstant, MappedWindow};
pub use open_file::OpenFile;
pub use recent_writes::{RecentWrites, RefreshQueue};
pub use stamp::{FileStamp, system_time};
pub use symlink_policy::SymlinkPolicy;
pub use traits::{Source, WHOLE};
pub use wait::Wait;
