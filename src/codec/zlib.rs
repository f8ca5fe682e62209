//! Deflate data as they are (RFC 1951), in zlib streams (RFC 1950), and in members of gzip (RFC 1952).

use super::deflate;
use super::sizes::{Fault, Written, exactly, growing};
use super::{Codec, Configuration};

pub(super) fn new_zlib(_: &Configuration) -> Result<Box<dyn Codec>, String> {
    Ok(Box::new(Deflated::Zlib))
}

pub(super) fn new_gzip(_: &Configuration) -> Result<Box<dyn Codec>, String> {
    Ok(Box::new(Deflated::Gzip))
}

pub(super) fn new_deflate(_: &Configuration) -> Result<Box<dyn Codec>, String> {
    Ok(Box::new(Deflated::Raw))
}

/// What is around deflate data.
enum Deflated {
    Raw,
    Zlib,
    Gzip,
}

impl Codec for Deflated {
    fn name(&self) -> &'static str {
        match self {
            Self::Raw => "deflate",
            Self::Zlib => "zlib",
            Self::Gzip => "gzip",
        }
    }

    fn longest(&self, decoded: u64) -> u64 {
        // blocks that are flushed after a few bytes, and names in headers
        decoded.saturating_add(decoded / 8).saturating_add(4 << 10)
    }

    fn decode(&self, stored: &[u8], out: &mut [u8]) -> Result<(), String> {
        match self {
            Self::Zlib => decode_zlib(stored, out),
            _ => exactly(self.name(), out.len(), self.written(stored, out)),
        }
    }

    fn decode_unsized(&self, stored: &[u8], most: usize) -> Result<Vec<u8>, String> {
        growing(self.name(), stored.len(), 0, most, |out| self.written(stored, out))
    }

    fn scratch(&self, _: usize) -> usize {
        // tables of libdeflate
        64 << 10
    }
}

impl Deflated {
    fn written(&self, stored: &[u8], out: &mut [u8]) -> Written {
        match self {
            Self::Raw => deflate::raw(stored, out),
            Self::Zlib => deflate::zlib_beginning(stored, out),
            // what z5py calls gzip are zlib streams
            Self::Gzip if is_zlib(stored) => deflate::zlib_beginning(stored, out),
            Self::Gzip => gzip(stored, out),
        }
    }
}

/// Decodes the zlib stream at the start of `stored`, which must fill `out` exactly.
pub(super) fn decode_zlib(stored: &[u8], out: &mut [u8]) -> Result<(), String> {
    deflate::zlib(stored, out)
}

fn is_zlib(stored: &[u8]) -> bool {
    stored.first_chunk().is_some_and(|header: &[u8; 2]| {
        header[0] & 15 == METHOD && header[0] >> 4 <= 7 && u16::from_be_bytes(*header).is_multiple_of(31)
    })
}

/// The only method of compression: deflate.
const METHOD: u8 = 8;
/// How members of gzip begin.
const MAGIC: [u8; 3] = [0x1f, 0x8b, METHOD];
/// Bytes of a member's header without extra fields, and after its deflate data: CRC-32 and length.
const HEADER: usize = 10;
const TRAILER: usize = 8;
/// Flags: what the header also has, in this order.
const EXTRA: u8 = 4;
const NAME: u8 = 8;
const COMMENT: u8 = 16;
const CHECKSUM: u8 = 2;
const RESERVED: u8 = 0xe0;

/// Decodes all members. Zeros after the last one are ignored.
fn gzip(stored: &[u8], out: &mut [u8]) -> Written {
    let mut at = member(stored, 0)?;
    #[cfg(target_os = "linux")]
    if let Ok(written) = deflate::gzip_member(stored, out)
        && is_last(stored, stored.len().saturating_sub(TRAILER), &out[..written])
    {
        return Ok(written);
    }
    let mut filled = 0;
    loop {
        let (read, written) = deflate::raw_with_end(stored.get(at..).unwrap_or_default(), &mut out[filled..])?;
        let end = at + read;
        if !is_trailer(stored, end, &out[filled..filled + written]) {
            return Err(Fault::Invalid("its gzip data are damaged: the checksum is not theirs".into()));
        }
        filled += written;
        let next = end + TRAILER;
        if stored[next..].iter().all(|byte| *byte == 0) {
            return Ok(filled);
        }
        at = member(stored, next)?;
    }
}

/// Returns whether the checksum and the length at byte `at` are those of `decoded`.
fn is_trailer(stored: &[u8], at: usize, decoded: &[u8]) -> bool {
    let expected = [deflate::crc32(&[decoded]), decoded.len() as u32].map(u32::to_le_bytes);
    stored
        .get(at..)
        .and_then(|rest| rest.first_chunk::<TRAILER>())
        .is_some_and(|found| *found == *expected.as_flattened())
}

/// Like [`is_trailer`], with nothing after it.
#[cfg(target_os = "linux")]
fn is_last(stored: &[u8], at: usize, decoded: &[u8]) -> bool {
    at + TRAILER == stored.len() && is_trailer(stored, at, decoded)
}

/// Returns where the deflate data of the member begin that begins at byte `at`.
fn member(stored: &[u8], at: usize) -> Result<usize, Fault> {
    header(stored, at).ok_or_else(|| Fault::Invalid("its gzip data are damaged: a member has no valid header".into()))
}

fn header(stored: &[u8], mut at: usize) -> Option<usize> {
    let head: &[u8; HEADER] = stored.get(at..)?.first_chunk()?;
    let flags = head[3];
    if !head.starts_with(&MAGIC) || flags & RESERVED != 0 {
        return None;
    }
    at += HEADER;
    if flags & EXTRA != 0 {
        let length: [u8; 2] = *stored.get(at..)?.first_chunk()?;
        at += length.len() + usize::from(u16::from_le_bytes(length));
    }
    for text in [NAME, COMMENT] {
        if flags & text != 0 {
            at += stored.get(at..)?.iter().position(|byte| *byte == 0)? + 1;
        }
    }
    if flags & CHECKSUM != 0 {
        at += 2;
    }
    (at <= stored.len()).then_some(at)
}
