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

pub(crate) use cache::CacheArgs;
pub(crate) use cat::{CatArgs, Format};
pub(crate) use cli::{Cli, Command};
pub(crate) use complete::{CompleteArgs, Shell};
pub(crate) use doctor::DoctorArgs;
pub(crate) use file_system::FileSystemArgs;
pub(crate) use info::InfoArgs;
pub(crate) use ls::LsArgs;
pub(crate) use mount::MountArgs;
#[cfg(feature = "serve")]
pub(crate) use serve::ServeArgs;
pub(crate) use slices::{At, Slice, Slices};
pub(crate) use stats::StatsArgs;
pub(crate) use umount::UmountArgs;
pub(crate) use verify::VerifyArgs;
