//! This machine: its memory and cores, and whether this user may mount.

pub mod limits;
pub mod permission;
