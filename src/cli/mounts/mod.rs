//! Existing mounts, and folders to mount on: mount points, the state of a daemon, and the processes that use a mount.

pub(crate) mod holders;
pub(crate) mod mountpoint;
pub(crate) mod processes;
pub(crate) mod source_behind;
pub(crate) mod status;
