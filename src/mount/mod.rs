//! The process and the kernel: the adapter to FUSE, the daemon and its signals, mounts and unmounting, and the process
//! that reads ahead. The file system itself is in [`fs`](crate::fs), which knows nothing of all this.

pub mod daemon;
mod fork;
mod fuse;
pub mod mountinfo;
pub mod readahead_process;
pub mod session;
pub mod signals;
pub mod unmount;

pub use fork::ProcessError;
