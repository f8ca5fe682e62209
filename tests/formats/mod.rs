//! The formats: compared with the reference readers, with single faults, and with thousands of random mutations.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod bombs;
mod endless;
mod faults_at_opening;
mod file_system;
mod forks;
mod fuzzing;
mod hdf5_oracle;
mod layer_folders;
mod mutations;
mod netcdf3_oracle;
mod precomputed_oracle;
mod slice_access;
mod structure;
mod vds_damage;
mod vds_oracle;
mod wkw_oracle;
mod worked_example;
mod zarr_oracle;
mod zgy_oracle;

/// Returns the number of mutations of each dataset: VOLFS_MUTATIONS if that is set, else `default`.
fn mutations(default: u64) -> u64 {
    std::env::var("VOLFS_MUTATIONS").ok().and_then(|n| n.parse().ok()).unwrap_or(default)
}
