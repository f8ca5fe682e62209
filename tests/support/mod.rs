//! Helpers of the tests that run the program. No test binary uses all of them.

pub mod checked_reader;
mod data;
mod fault_proxy;
pub mod faulty_folder;
pub mod handmade;
pub mod hanging;
pub mod http;
pub mod http2;
pub mod mount;
pub mod own_fs;
pub mod png;
pub mod run;
pub mod stores;
pub mod stress;
pub mod vds;
pub mod volfs_server;

pub use data::*;
pub use fault_proxy::{Fault, FaultProxy};
pub use http::{Answer, HttpServer, Request};
pub use mount::*;
pub use run::*;
pub use stores::{Azurite, Objects, StoreServer};
