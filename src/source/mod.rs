//! Reads stored bytes.
//!
//! A [`Source`] is a set of named objects whose ranges can be read: one file, a folder of files, later an object
//! store. A missing object is an answer, not an error. A change while a source is read is an error: bytes of two
//! versions are never mixed.

mod descriptors;
pub mod disk_cache;
mod entries;
mod error;
mod file;
mod folder;
mod folder_probe;
mod guarded_mmap;
mod index;
mod mmap_cache;
mod open_file;
mod open_files;
mod pread;
mod recent_writes;
mod source_root;
mod stamp;
mod traits;
mod wait;
mod wall_clock;

pub use descriptors::raise_descriptor_limit;
pub use entries::EntryKind;
pub use error::{SourceError, tells_what_is_there};
pub use file::LocalFile;
pub use folder::{Folder, Folders, LocalFolder, NoFolder};
pub use folder_probe::FolderProbe;
pub use index::{Index, IndexCache, PartKey};
pub use mmap_cache::{CoarseInstant, MappedWindow};
pub use open_file::OpenFile;
pub use recent_writes::{Next, RecentWrites, RefreshQueue};
pub use source_root::{Place, SourceRoot};
pub use stamp::{FileStamp, system_time};
pub use traits::{Source, WHOLE};
pub use wait::Wait;
