//! The formats, read through the library: compared with the reference readers, with single faults, and with thousands
//! of random mutations. All tests together must stay below the limit of memory that the mutations check.
#![allow(clippy::unwrap_used, clippy::expect_used)]
// the fuzz targets include helpers of these tests, since they are a crate of their own as well
#![allow(clippy::duplicate_mod)]

mod bombs;
mod endless;
mod fuzzing;
mod slice_access;
mod structure;
mod vds_damage;
mod vds_mutations;
mod vds_oracle;
mod wkw_mutations;
mod wkw_oracle;
mod worked_example;
mod zgy_mutations;
mod zgy_oracle;

/// A builder of ZGY files by hand, shared with the unit tests of the format.
#[path = "../../src/format/zgy/handmade.rs"]
mod handmade;

/// The bodies of the fuzz targets.
#[path = "../../fuzz/src/lib.rs"]
#[allow(dead_code)]
mod fuzz_targets;

#[path = "../support/mod.rs"]
#[allow(dead_code, unused_imports)]
mod support;

/// The limit of this process's peak memory, in bytes, checked after each series of mutations.
const MAX_MEMORY: u64 = 1 << 30;

/// Returns the number of mutations of each dataset: VOLFS_MUTATIONS if that is set, else `default`.
fn mutations(default: u64) -> u64 {
    std::env::var("VOLFS_MUTATIONS").ok().and_then(|n| n.parse().ok()).unwrap_or(default)
}
