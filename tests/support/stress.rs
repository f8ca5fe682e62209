//! The length and the seed of tests that scripts/stress runs for minutes, and cargo test for seconds.

use std::env;
use std::time::Duration;

fn number(name: &str) -> Option<u64> {
    env::var(name).ok()?.parse().ok()
}

/// Returns how long a test runs: VOLFS_STRESS_SECONDS, or else `short`.
pub fn duration(short: Duration) -> Duration {
    number("VOLFS_STRESS_SECONDS").map_or(short, Duration::from_secs)
}

/// Returns whether scripts/stress runs the test.
pub fn is_long() -> bool {
    number("VOLFS_STRESS_SECONDS").is_some()
}

/// Returns the seed of the random choices: VOLFS_STRESS_SEED, or else always the same.
pub fn seed() -> u64 {
    number("VOLFS_STRESS_SEED").unwrap_or(1).max(1)
}
