//! This machine: its memory and cores, and whether this user may mount.

pub(crate) mod limits;
pub(crate) mod permission;
