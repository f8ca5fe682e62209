//! How long reads of 4 KiB take, one after the other, at places all over a file. Used by `scripts/bench`.
//!
//! `latency FILE COUNT direct|dropped [BYTES]` prints the median and the 99th percentile in nanoseconds, of reads within the first
//! BYTES if these are given. None of the reads is answered from the kernel's page cache: with `direct` it is passed by
//! (`O_DIRECT`), with `dropped` the file's pages are dropped before each read, outside of the time that counts.

use std::env;
use std::io;
use std::num::NonZeroU64;
use std::time::Instant;

use rustix::fs::{Advice, Mode, OFlags, fadvise, fstat, open};
use rustix::io::pread;

const PIECE: usize = 4096;
/// A step that meets every piece of a file before it meets one again, if it does not divide their number; near the golden
/// section of 2^64, so that steps never fall into a row.
const STEP: u64 = 0x9e37_79b9_7f4a_7c15;

fn main() -> io::Result<()> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let (path, count, mode, bytes) = match arguments.as_slice() {
        [path, count, mode] => (path, count, mode, None),
        [path, count, mode, bytes] => (path, count, mode, Some(bytes)),
        _ => {
            return Err(io::Error::other(
                "give a file, a number of reads, direct or dropped, and perhaps how many bytes",
            ));
        }
    };
    let number = |text: &String| text.parse::<u64>().map_err(|_| io::Error::other(format!("{text} is not a number")));
    let count = number(count)?;
    let direct = match mode.as_str() {
        "direct" => true,
        "dropped" => false,
        _ => return Err(io::Error::other(format!("{mode}: there are direct and dropped"))),
    };
    let flags = if direct { OFlags::DIRECT } else { OFlags::empty() };
    let file = open(path.as_str(), OFlags::RDONLY | OFlags::CLOEXEC | flags, Mode::empty())?;
    let size = u64::try_from(fstat(&file)?.st_size).unwrap_or(0);
    let bytes = bytes.map_or(Ok(size), number)?;
    let pieces = bytes.min(size) / PIECE as u64;
    let pieces = NonZeroU64::new(pieces).ok_or_else(|| io::Error::other("the file is too short"))?;

    let mut memory = vec![0_u8; 2 * PIECE];
    let start = memory.as_ptr().align_offset(PIECE).min(PIECE);
    let buffer = &mut memory[start..start + PIECE];
    let mut taken = Vec::new();
    for n in 0..count {
        let offset = n.wrapping_mul(STEP) % pieces * PIECE as u64;
        if !direct {
            fadvise(&file, 0, None, Advice::DontNeed)?;
        }
        let begin = Instant::now();
        let got = pread(&file, &mut *buffer, offset)?;
        taken.push(begin.elapsed().as_nanos());
        if got != PIECE {
            return Err(io::Error::other(format!("a read at {offset} gave {got} bytes")));
        }
    }
    taken.sort_unstable();
    let rank = |percent: usize| taken.get((taken.len() * percent / 100).min(taken.len().saturating_sub(1)));
    match (rank(50), rank(99)) {
        (Some(median), Some(late)) => println!("{median} {late}"),
        _ => return Err(io::Error::other("no reads were asked for")),
    }
    Ok(())
}
