//! The process and the kernel: the FUSE adapter, the daemon and its signals, mounting and unmounting, and the
//! processes beside the daemon. The file system itself is in [`fs`](crate::fs), which knows nothing of these.

pub mod command;
mod connection;
pub mod daemon;
mod fork;
mod fuse;
mod fuse_attributes;
mod fuse_listing;
mod kernel_mount;
mod last_words;
pub mod mountinfo;
pub mod readahead_process;
mod refusal;
pub mod session;
pub mod side_process;
pub mod signals;
pub mod unmount;
pub mod watchdog;

pub use connection::Connection;
pub use fork::ProcessError;
