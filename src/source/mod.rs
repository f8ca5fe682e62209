//! Reads stored bytes.
//!
//! A [`Tree`] is what SOURCE is: folders and objects, below one path. A [`Source`] is a set of named objects whose ranges
//! can be read: one file, a folder of files. A missing object is an answer, not an error. A change while a source is read
//! is an error: bytes of two versions are never mixed. [`local`] has the trees, folders and files of this machine, `store`
//! those of object stores.

mod descriptors;
pub mod disk_cache;
mod entry_kind;
mod error;
mod first_failure;
mod folder;
mod folder_probe;
mod index;
pub mod local;
mod origin;
mod permissions;
mod recent_writes;
mod stamp;
#[cfg(feature = "store")]
pub mod store;
mod store_options;
mod store_status;
mod traits;
mod tree;
mod url;
mod wait;
mod wall_clock;

pub use descriptors::raise_descriptor_limit;
pub use entry_kind::EntryKind;
pub use error::{SourceError, tells_what_is_there};
pub use first_failure::FirstFailure;
pub use folder::{Folder, NoFolder};
pub use folder_probe::{FolderProbe, MOST_REMOTE};
pub use index::{Index, IndexCache, PartKey};
pub use local::{CoarseInstant, Folders, LocalFile, LocalFolder, LocalTree, MappedWindow, OpenFile, SourceRoot};
pub use origin::{Origin, shown};
pub use permissions::Permissions;
pub use recent_writes::{Next, RecentWrites, RefreshQueue};
pub use stamp::{FileStamp, system_time};
pub use store_options::StoreOption;
pub use store_status::StoreStatus;
pub use traits::{FileSource, Source, WHOLE};
pub use tree::{About, Place, PlaceKind, Tree};
pub use url::{StoreKind, StoreUrl, UrlError, is_url};
pub use wait::Wait;
