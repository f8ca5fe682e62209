//! The formats: compared with the reference readers, with single faults, and with thousands of random mutations.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod bombs;
mod endless;
mod faults_at_opening;
mod file_system;
mod fuzzing;
mod layer_folders;
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

use crate::fuzz::allocations::measure;

/// The memory in bytes that a series of mutations may take at a time.
const MAX_MEMORY: u64 = 1 << 30;

/// Runs `work`, and checks that this thread had at most [`MAX_MEMORY`] allocated at a time.
fn in_bounded_memory(name: &str, work: impl FnOnce()) {
    let used = measure(work).1.most;
    assert!(used < MAX_MEMORY, "{name}: {used} bytes of memory");
}

/// Returns the number of mutations of each dataset: VOLFS_MUTATIONS if that is set, else `default`.
fn mutations(default: u64) -> u64 {
    std::env::var("VOLFS_MUTATIONS").ok().and_then(|n| n.parse().ok()).unwrap_or(default)
}
