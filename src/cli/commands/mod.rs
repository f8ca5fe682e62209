//! One file for each command, named like it. `run` takes the arguments of [`crate::cli::args`] and does what they ask
//! for.

pub mod cat;
pub mod doctor;
pub mod info;
pub mod ls;
pub mod mount;
pub mod stats;
pub mod umount;
