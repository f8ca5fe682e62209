//! Real mounts with real clients, one file for each subject. Each test mounts its own source, so that tests can run in
//! parallel threads of one process.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod above;
mod changes;
mod descriptions;
mod faults;
mod hanging;
mod hdf5;
mod headers;
mod life;
mod limits;
mod many_readers;
mod permissions;
mod pictures;
mod read_ahead;
mod samples;
mod status;
mod store;
mod store_providers;
mod tree;
mod vds;
mod wkw;
mod zarr;

#[path = "../support/mod.rs"]
#[allow(dead_code, unused_imports)]
mod support;
