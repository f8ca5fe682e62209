//! bzip2 streams, one behind the other.

use bzip2::{Decompress, Status};

use super::sizes::{Fault, Written, exactly, growing};
use super::{Codec, Configuration};

const NAME: &str = "bz2";
/// How each stream begins.
const MAGIC: &[u8] = b"BZh";

pub(super) fn new(_: &Configuration) -> Result<Box<dyn Codec>, String> {
    Ok(Box::new(Bzip2))
}

struct Bzip2;

impl Codec for Bzip2 {
    fn name(&self) -> &'static str {
        NAME
    }

    fn longest(&self, decoded: u64) -> u64 {
        // a stream for each few KiB, and what is said of the worst case
        decoded.saturating_add(decoded / 8).saturating_add(4 << 10)
    }

    fn decode(&self, stored: &[u8], out: &mut [u8]) -> Result<(), String> {
        exactly(NAME, out.len(), streams(stored, out))
    }

    fn decode_unsized(&self, stored: &[u8], most: usize) -> Result<Vec<u8>, String> {
        growing(NAME, stored.len(), 0, most, |out| streams(stored, out))
    }

    fn scratch(&self, _: usize) -> usize {
        // 4 bytes for each byte of the longest block
        4 << 20
    }
}

/// Decodes all streams. Other bytes after them are ignored.
fn streams(mut stored: &[u8], out: &mut [u8]) -> Written {
    let mut filled = 0;
    loop {
        let rest = out.get_mut(filled..).ok_or(Fault::NoRoom)?;
        let (read, written) = stream(stored, rest)?;
        filled += written;
        stored = stored.get(read..).unwrap_or_default();
        if !stored.starts_with(MAGIC) {
            return Ok(filled);
        }
    }
}

/// Decodes a stream. Returns how many bytes it takes, and how many were written.
fn stream(stored: &[u8], out: &mut [u8]) -> Result<(usize, usize), Fault> {
    let damaged = |what: &dyn std::fmt::Display| Fault::Invalid(format!("its {NAME} data are damaged: {what}"));
    let mut inflate = Decompress::new(false);
    let (mut read, mut written) = (0, 0);
    loop {
        let rest = (stored.get(read..).unwrap_or_default(), out.get_mut(written..).unwrap_or_default());
        let status = inflate.decompress(rest.0, rest.1).map_err(|error| damaged(&error))?;
        let now = (inflate.total_in() as usize, inflate.total_out() as usize);
        if status == Status::StreamEnd {
            return Ok(now);
        }
        if status == Status::MemNeeded {
            return Err(Fault::Invalid("no memory for bzip2".into()));
        }
        if now == (read, written) {
            return Err(if written == out.len() { Fault::NoRoom } else { damaged(&"they are cut off") });
        }
        (read, written) = now;
    }
}
