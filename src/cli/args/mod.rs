//! The arguments of each command, one file each. Their doc comments are the help texts, and the man pages are made from
//! them.

mod cache;
mod cat;
mod cli;
mod complete;
mod doctor;
mod file_system;
mod info;
mod ls;
mod mount;
mod mount_options;
#[cfg(feature = "serve")]
mod serve;
mod slices;
mod stats;
mod umount;
mod verify;
mod views;
mod zfp;

pub use cache::CacheArgs;
pub use cat::{CatArgs, Format};
pub use cli::{Cli, Command};
pub use complete::{CompleteArgs, Shell};
pub use doctor::DoctorArgs;
pub use file_system::FileSystemArgs;
pub use info::InfoArgs;
pub use ls::LsArgs;
pub use mount::MountArgs;
#[cfg(feature = "serve")]
pub use serve::ServeArgs;
pub use slices::{At, Slice, Slices};
pub use stats::StatsArgs;
pub use umount::UmountArgs;
pub use verify::VerifyArgs;
pub use zfp::ZfpDecoder;
