//! The formats, read through the library: against what the reference readers say, with single faults, and with thousands of
//! random mutations. All tests together may take no more memory than the limit that the mutations check.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod vds_damage;
mod vds_mutations;
mod vds_oracle;
mod wkw_mutations;
mod wkw_oracle;
mod worked_example;
mod zgy_mutations;
mod zgy_oracle;

/// Files put together by hand, which the unit tests of the format share.
#[path = "../../src/format/zgy/handmade.rs"]
mod handmade;

#[path = "../support/mod.rs"]
#[allow(dead_code, unused_imports)]
mod support;

/// The most memory that this process may ever have had, in bytes, after each series of mutations.
const MOST_MEMORY: u64 = 1 << 30;

/// Returns how many mutations to try of each dataset: `default`, or what VOLFS_MUTATIONS says.
fn mutations(default: u64) -> u64 {
    std::env::var("VOLFS_MUTATIONS").ok().and_then(|n| n.parse().ok()).unwrap_or(default)
}
