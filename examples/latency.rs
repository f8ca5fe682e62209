//! Measures the latency of sequentially issued 4 KiB reads at scattered positions of a file. Used by `scripts/bench`.
//!
//! `latency FILE COUNT direct|dropped [BYTES]` prints the median and the 99th percentile in nanoseconds, of reads
//! within the first BYTES if given. The kernel's page cache answers none of the reads: `direct` bypasses it
//! (`O_DIRECT`), and `dropped` drops the file's pages before each read, outside of the measured time.

use std::env;
use std::io;
use std::num::NonZeroU64;
use std::time::Instant;

use rustix::fs::{Advice, Mode, OFlags, fadvise, fstat, open};
use rustix::io::pread;

const PAGE: usize = 4096;
/// Step from one read to the next, in pages and modulo 2^64. It is near the golden section of 2^64, so that reads
/// spread evenly over the file and are never sequential.
const STEP: u64 = 0x9e37_79b9_7f4a_7c15;

fn main() -> io::Result<()> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let (path, count, mode, bytes) = match arguments.as_slice() {
        [path, count, mode] => (path, count, mode, None),
        [path, count, mode, bytes] => (path, count, mode, Some(bytes)),
        _ => {
            return Err(io::Error::other(
                "give a file, a number of reads, direct or dropped, and optionally a number of bytes",
            ));
        }
    };
    let number = |text: &String| text.parse::<u64>().map_err(|_| io::Error::other(format!("{text} is not a number")));
    let count = number(count)?;
    let direct = match mode.as_str() {
        "direct" => true,
        "dropped" => false,
        _ => return Err(io::Error::other(format!("{mode}: the modes are direct and dropped"))),
    };
    let flags = if direct { OFlags::DIRECT } else { OFlags::empty() };
    let file = open(path.as_str(), OFlags::RDONLY | OFlags::CLOEXEC | flags, Mode::empty())?;
    let size = u64::try_from(fstat(&file)?.st_size).unwrap_or(0);
    let bytes = bytes.map_or(Ok(size), number)?;
    let pages = bytes.min(size) / PAGE as u64;
    let pages = NonZeroU64::new(pages).ok_or_else(|| io::Error::other("the file is too short"))?;

    let mut storage = vec![0_u8; 2 * PAGE];
    let start = storage.as_ptr().align_offset(PAGE).min(PAGE);
    let buffer = &mut storage[start..start + PAGE];
    let mut durations = Vec::new();
    for n in 0..count {
        let offset = n.wrapping_mul(STEP) % pages * PAGE as u64;
        if !direct {
            fadvise(&file, 0, None, Advice::DontNeed)?;
        }
        let begin = Instant::now();
        let got = pread(&file, &mut *buffer, offset)?;
        durations.push(begin.elapsed().as_nanos());
        if got != PAGE {
            return Err(io::Error::other(format!("a read at {offset} gave {got} bytes")));
        }
    }
    durations.sort_unstable();
    let rank = |percent: usize| durations.get((durations.len() * percent / 100).min(durations.len().saturating_sub(1)));
    match (rank(50), rank(99)) {
        (Some(median), Some(p99)) => println!("{median} {p99}"),
        _ => return Err(io::Error::other("no reads were asked for")),
    }
    Ok(())
}
