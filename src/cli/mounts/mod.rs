//! Existing and future mounts, as the commands see them: mount points, daemons and the processes that use a mount.

pub mod holders;
pub mod mountpoint;
pub mod status;
