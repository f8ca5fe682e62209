//! Mounts as the commands see them: mount points, the state of a daemon, and the processes that use a mount.

pub mod holders;
pub mod mountpoint;
pub mod status;
