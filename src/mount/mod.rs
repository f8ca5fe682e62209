//! The process and the kernel: the FUSE adapter, the daemon and its signals, mounting and unmounting, and the
//! processes beside the daemon. The file system itself is in [`fs`](crate::fs), which knows nothing of these.

pub(crate) mod command;
mod connection;
pub(crate) mod daemon;
mod fork;
mod fuse;
mod fuse_attributes;
mod fuse_listing;
mod kernel_mount;
mod last_words;
pub(crate) mod mountinfo;
pub(crate) mod readahead_process;
mod refusal;
pub(crate) mod session;
pub(crate) mod side_process;
pub(crate) mod signals;
pub(crate) mod unmount;
pub(crate) mod watchdog;
