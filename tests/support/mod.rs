//! Helpers of the tests, one file for each subject: mounts, processes, waiting, test data of each format, folders in
//! memory. No test binary uses all of them.

pub mod azurite;
pub mod checked_reader;
pub mod fault_proxy;
pub mod faults;
pub mod faulty_folder;
pub mod folder;
pub mod http2;
pub mod http_client;
pub mod http_head;
pub mod http_server;
pub mod listener;
pub mod mount;
pub mod noise;
pub mod npy;
pub mod objects;
pub mod own_fs;
pub mod png;
pub mod process;
pub mod python;
pub mod skip;
pub mod store_server;
pub mod stress;
pub mod tls;
pub mod value;
pub mod vds;
pub mod volfs_server;
pub mod wait;
pub mod wkw;
pub mod zgy;

pub use azurite::Azurite;
pub use fault_proxy::{Fault, FaultProxy};
pub use folder::{copy_all, is_eio, names, read_at, read_directly, replace, set, source_of, test_data};
pub use http_server::{Answer, HttpServer, Request};
pub use mount::{Mount, mounted_name};
pub use noise::Noise;
pub use npy::Npy;
pub use objects::Objects;
pub use process::{
    children, has_stuck_thread, memory, one_line_of_failure, process_lives, program, signal, text, volfs, wait_for,
};
pub use python::python_with_numpy;
pub use skip::{fuse_or_skip, skip};
pub use store_server::StoreServer;
pub use value::{by_dataset, crc, floats, json, numbers};
pub use wait::{SOON, comes_true, settled, wait_until, within};
pub use zgy::{Fixture, damaged, fixture, fixtures, source_with};
