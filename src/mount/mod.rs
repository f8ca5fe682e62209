//! The process and the kernel: the FUSE adapter, the daemon and its signals, mounting and unmounting, and the
//! read-ahead process. The file system itself is in [`fs`](crate::fs), which knows nothing of these.

pub mod daemon;
mod fork;
mod fuse;
pub mod mountinfo;
pub mod readahead_process;
pub mod session;
pub mod signals;
pub mod unmount;

pub use fork::ProcessError;
