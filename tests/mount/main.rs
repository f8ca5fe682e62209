//! Real mounts with real clients, one file for each subject. Each test mounts its own source, so that tests can run in
//! parallel threads of one process.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod attributes;
mod changes;
mod contract;
mod daemon;
mod damage;
mod deleted;
mod descriptions;
mod descriptors;
mod faults;
mod first_touch;
mod hanging;
mod headers;
mod life;
mod limits;
mod many_bricks;
mod many_readers;
mod memory;
mod mount_point;
mod moved_mounts;
mod outside;
mod permissions;
mod permuted;
mod pictures;
mod read_ahead;
mod recent_writes;
mod remounts;
mod samples;
mod segy;
mod shared_listings;
mod short_memory;
mod status;
mod store;
mod store_azure;
mod store_credentials;
mod store_crowd;
mod store_disk_cache;
mod store_faults;
mod store_google;
mod store_isolation;
mod store_quality;
mod store_redirects;
mod store_refusals;
mod tiff;
mod times;
mod tree;
mod unmounting;
mod vds;
mod vds_changes;
mod verify_faults;
mod views;
mod wkw;
mod zarr;

/// A builder of ZGY files by hand, shared with the unit tests of the format.
#[path = "../support/handmade.rs"]
mod handmade;

#[path = "../support/mod.rs"]
#[allow(dead_code, unused_imports)]
mod support;
