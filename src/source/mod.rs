//! Reads stored bytes.
//!
//! A [`Tree`] is what SOURCE is: folders and objects, below one path. A [`Source`] is a set of named objects whose ranges
//! can be read: one file, a folder of files. A missing object is an answer, not an error. A change while a source is read
//! is an error: bytes of two versions are never mixed. [`local`] has the trees, folders and files of this machine, `store`
//! those of object stores.

mod descriptors;
pub(crate) mod disk_cache;
mod entry_kind;
mod error;
mod first_failure;
mod folder;
mod folder_probe;
mod index;
pub(crate) mod local;
mod origin;
mod permissions;
mod recent_writes;
mod stamp;
#[cfg(feature = "store")]
pub(crate) mod store;
mod store_options;
mod store_status;
mod traits;
mod tree;
mod url;
mod wait;
mod wall_clock;

pub(crate) use descriptors::raise_descriptor_limit;
pub(crate) use entry_kind::EntryKind;
pub(crate) use error::{SourceError, tells_what_is_there};
pub(crate) use first_failure::FirstFailure;
pub(crate) use folder::{Folder, NoFolder};
pub(crate) use folder_probe::{FolderProbe, MOST_REMOTE};
pub(crate) use index::{Index, IndexCache};
pub(crate) use local::{CoarseInstant, LocalTree, MappedWindow, OpenFile, SourceRoot};
#[cfg(test)]
pub(crate) use local::{Folders, LocalFile};
pub(crate) use origin::{Origin, shown};
pub(crate) use permissions::Permissions;
pub(crate) use recent_writes::{Next, RecentWrites, RefreshQueue};
pub(crate) use stamp::{FileStamp, system_time};
pub(crate) use store_options::StoreOption;
pub(crate) use store_status::StoreStatus;
pub(crate) use traits::{FileSource, Source, WHOLE};
pub(crate) use tree::{About, Place, PlaceKind, Tree};
pub(crate) use url::{StoreUrl, is_url};
pub(crate) use wait::Blocking;
