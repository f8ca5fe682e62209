//! The commands: one file for each, with the name of the command. `run` executes it with the arguments of
//! [`crate::cli::args`].

pub mod cache;
pub mod cat;
pub mod complete;
pub mod doctor;
pub mod info;
pub mod ls;
pub mod mount;
#[cfg(feature = "serve")]
pub mod serve;
pub mod stats;
pub mod umount;
pub mod verify;
