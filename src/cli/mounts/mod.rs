//! Existing mounts, and folders to mount on: mount points, the state of a daemon, and the processes that use a mount.

pub mod holders;
pub mod mountpoint;
pub mod processes;
pub mod source_behind;
pub mod status;
