//! Small inputs that would become large: what a dataset costs is bounded by what its headers declare, and that by fixed
//! limits. Memory is what this thread has allocated at a time; times are bounded by so much that only work out of all
//! proportion exceeds them.

mod codecs;
mod descriptions;
mod headers;

use std::time::{Duration, Instant};

use crate::fuzz::allocations::measure;

/// The longest time that any bomb may take. Most take a few milliseconds.
const LONGEST: Duration = Duration::from_secs(20);

/// Runs `work`, and returns its result with the most bytes that it had allocated at a time.
fn measured<T>(work: impl FnOnce() -> T) -> (T, u64) {
    let begin = Instant::now();
    let (result, allocated) = measure(work);
    assert!(begin.elapsed() < LONGEST, "it took {:?}", begin.elapsed());
    (result, allocated.most)
}

/// Runs `work`, and checks that it had at most `most` bytes allocated at a time.
fn within<T>(most: u64, work: impl FnOnce() -> T) -> T {
    let (result, used) = measured(work);
    assert!(used <= most, "{used} bytes were allocated at a time, more than {most}");
    result
}

/// Memory that opening takes for any dataset: pages of tables, and a few lists.
const SMALL: u64 = 1 << 20;
/// Memory that a description may take while it is parsed, whatever it says.
const DESCRIPTION: u64 = 192 << 20;
