//! The commands: one file for each, with the name of the command. `run` executes it with the arguments of
//! [`crate::cli::args`].

pub(crate) mod cache;
pub(crate) mod cat;
pub(crate) mod complete;
pub(crate) mod doctor;
pub(crate) mod info;
pub(crate) mod ls;
pub(crate) mod mount;
#[cfg(feature = "serve")]
pub(crate) mod serve;
pub(crate) mod stats;
pub(crate) mod umount;
pub(crate) mod verify;
