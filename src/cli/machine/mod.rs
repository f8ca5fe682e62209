//! What this machine has and permits: memory, cores, and the right to mount.

pub mod limits;
pub mod permission;
