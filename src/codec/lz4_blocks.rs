//! LZ4 blocks as programs store them: after their length (numcodecs), in Java's stream of blocks (N5), and in the two
//! filters of HDF5 that store blocks behind each other, of which `bitshuffle` puts the bits of samples in planes before.
//!
//! Java's `LZ4BlockOutputStream` begins each block with 21 bytes: "LZ4Block", the method, and the numbers of stored
//! bytes, of decoded bytes and of the checksum, little-endian. The last block is empty.
//!
//! Both HDF5 filters begin with the decoded bytes (64 bits) and those of a block (32 bits), big-endian; each block has
//! its stored bytes (32 bits) before. Without a compressor `bitshuffle` stores planes alone.

use serde_json::Value;

use super::shuffle::unshuffle_bits;
use super::sizes::{Fault, Written, exactly, growing, stated};
use super::{Codec, Configuration, lz4, zstd};
use crate::memory::try_zeroed;

pub(super) fn new_numcodecs(_: &Configuration) -> Result<Box<dyn Codec>, String> {
    Ok(Box::new(Prefixed))
}

pub(super) fn new_java(_: &Configuration) -> Result<Box<dyn Codec>, String> {
    Ok(Box::new(Java))
}

pub(super) fn new_hdf5(_: &Configuration) -> Result<Box<dyn Codec>, String> {
    Ok(Box::new(Hdf5 { compressor: Compressor::Lz4, planes: None }))
}

/// Makes the filter of these samples: `elementsize` bytes, `blocksize` samples (0 is the default of the filter),
/// `cname` `lz4`, `zstd` or `none`.
pub(super) fn new_bitshuffle(configuration: &Configuration) -> Result<Box<dyn Codec>, String> {
    let number = |key: &str, default| {
        let number = configuration.get(key).map_or(default, Value::as_u64).and_then(|n| usize::try_from(n).ok());
        number.ok_or_else(|| format!("the filter bitshuffle has no number {key:?}"))
    };
    let size = number("elementsize", None)?;
    let block = match number("blocksize", Some(0))? {
        0 => (DEFAULT_BLOCK / size.max(1) / 8 * 8).max(SHORTEST_BLOCK),
        samples => samples,
    };
    if size == 0 || block % 8 != 0 {
        return Err("the filter bitshuffle has blocks of no whole bytes".into());
    }
    let compressor = match configuration.get("cname").map(Value::as_str) {
        None | Some(Some("none")) => Compressor::None,
        Some(Some("lz4")) => Compressor::Lz4,
        Some(Some("zstd")) => Compressor::Zstd,
        Some(other) => return Err(format!("the filter bitshuffle with {:?} is not supported", other.unwrap_or("?"))),
    };
    Ok(Box::new(Hdf5 { compressor, planes: Some(Planes { size, block }) }))
}

/// Decoded bytes of a block of bitshuffle about, and its least samples.
const DEFAULT_BLOCK: usize = 8192;
const SHORTEST_BLOCK: usize = 128;

/// One block after its decoded bytes (32 bits, little-endian).
struct Prefixed;

impl Prefixed {
    fn split(stored: &[u8]) -> Result<(usize, &[u8]), String> {
        let (length, block) = stored.split_first_chunk().ok_or("its LZ4 data are cut off")?;
        Ok((u32::from_le_bytes(*length) as usize, block))
    }
}

impl Codec for Prefixed {
    fn name(&self) -> &'static str {
        "lz4"
    }

    fn is_fast(&self) -> bool {
        true
    }

    fn longest(&self, decoded: u64) -> u64 {
        lz4::longest(decoded).saturating_add(4)
    }

    fn decode(&self, stored: &[u8], out: &mut [u8]) -> Result<(), String> {
        let (length, block) = Self::split(stored)?;
        exactly(self.name(), out.len(), Ok(length))?;
        lz4::decode(block, out)
    }

    fn decode_unsized(&self, stored: &[u8], most: usize) -> Result<Vec<u8>, String> {
        let (length, block) = Self::split(stored)?;
        if length as u64 > lz4::most(block.len() as u64) {
            return Err(format!("its LZ4 block of {} bytes cannot decode to {length}", block.len()));
        }
        let mut out = stated(self.name(), length, most)?;
        lz4::decode(block, &mut out)?;
        Ok(out)
    }
}

/// Java's stream of blocks.
struct Java;

impl Java {
    const MAGIC: [u8; 8] = *b"LZ4Block";
    const HEADER: usize = 21;
    /// Methods, in the high bits of a byte.
    const RAW: u8 = 0x10;
    const LZ4: u8 = 0x20;
    const SEED: u32 = 0x9747_b28c;
    /// The bits of a checksum that are stored.
    const SUM: u32 = 0x0fff_ffff;

    fn written(mut stored: &[u8], out: &mut [u8]) -> Written {
        let invalid = |what: &str| Fault::Invalid(format!("its stream of LZ4 blocks {what}"));
        let mut filled = 0;
        loop {
            let Some((header, rest)) = stored.split_first_chunk::<{ Self::HEADER }>() else {
                // readers that know how many bytes there are do not look for the last block
                return if stored.is_empty() && filled > 0 { Ok(filled) } else { Err(invalid("is cut off")) };
            };
            let number = |at: usize| header[at..].first_chunk().map_or(0, |bytes| u32::from_le_bytes(*bytes));
            let (method, length, decoded, sum) =
                (header[8] & 0xf0, number(9) as usize, number(13) as usize, number(17));
            if !header.starts_with(&Self::MAGIC) {
                return Err(invalid("is damaged: a block does not begin with \"LZ4Block\""));
            }
            if length == 0 && decoded == 0 {
                return Ok(filled);
            }
            let (block, rest) = rest.split_at_checked(length).ok_or_else(|| invalid("is cut off"))?;
            let target = out.get_mut(filled..).and_then(|rest| rest.get_mut(..decoded)).ok_or(Fault::NoRoom)?;
            match method {
                Self::RAW if length == decoded => target.copy_from_slice(block),
                Self::LZ4 => lz4::decode(block, target)?,
                _ => return Err(invalid("is damaged: a block has another method than LZ4")),
            }
            if xxh32(target, Self::SEED) & Self::SUM != sum {
                return Err(invalid("is damaged: the checksum of a block differs"));
            }
            filled += decoded;
            stored = rest;
        }
    }
}

impl Codec for Java {
    fn name(&self) -> &'static str {
        "lz4"
    }

    fn is_fast(&self) -> bool {
        true
    }

    fn longest(&self, decoded: u64) -> u64 {
        // the shortest blocks have 64 bytes
        lz4::longest(decoded).saturating_add(decoded).saturating_add(1 << 10)
    }

    fn decode(&self, stored: &[u8], out: &mut [u8]) -> Result<(), String> {
        exactly(self.name(), out.len(), Self::written(stored, out))
    }

    fn decode_unsized(&self, stored: &[u8], most: usize) -> Result<Vec<u8>, String> {
        growing(self.name(), stored.len(), 0, most, |out| Self::written(stored, out))
    }
}

/// Blocks behind each other, perhaps of bit planes.
struct Hdf5 {
    compressor: Compressor,
    planes: Option<Planes>,
}

enum Compressor {
    None,
    Lz4,
    Zstd,
}

/// Samples of `size` bytes, `block` of them in a block: a multiple of 8.
struct Planes {
    size: usize,
    block: usize,
}

/// What the beginning says of the blocks that follow.
struct Blocks<'a> {
    decoded: usize,
    /// Decoded bytes of a block.
    block: usize,
    stored: &'a [u8],
}

impl Hdf5 {
    fn blocks<'a>(&self, stored: &'a [u8]) -> Result<Blocks<'a>, String> {
        let damaged = || self.damaged();
        if let (Compressor::None, Some(planes)) = (&self.compressor, &self.planes) {
            let block = planes.size.checked_mul(planes.block).ok_or_else(damaged)?;
            return Ok(Blocks { decoded: stored.len(), block, stored });
        }
        let (decoded, rest) = stored.split_first_chunk().ok_or_else(damaged)?;
        let (block, stored) = rest.split_first_chunk().ok_or_else(damaged)?;
        let decoded = usize::try_from(u64::from_be_bytes(*decoded)).map_err(|_| damaged())?;
        let block = u32::from_be_bytes(*block) as usize;
        let unit = self.planes.as_ref().map_or(1, |planes| planes.size.saturating_mul(8));
        if !block.is_multiple_of(unit) || block == 0 && decoded > 0 {
            return Err(damaged());
        }
        Ok(Blocks { decoded, block, stored })
    }

    fn decode_blocks(&self, mut blocks: Blocks<'_>, mut out: &mut [u8]) -> Result<(), String> {
        // what does not fill the bytes of planes is stored as it is, behind the blocks
        let unit = self.planes.as_ref().map_or(1, |planes| planes.size.saturating_mul(8));
        let longest = blocks.block.min(out.len());
        let mut planes = try_zeroed(if self.planes.is_some() { longest } else { 0 }).map_err(|e| e.to_string())?;
        while out.len() >= unit {
            let length = blocks.block.min(out.len() / unit * unit);
            let (target, rest) =
                out.split_at_mut_checked(length).filter(|_| length > 0).ok_or_else(|| self.damaged())?;
            match (&self.planes, planes.get_mut(..length)) {
                (Some(Planes { size, .. }), Some(planes)) => {
                    self.block(&mut blocks.stored, planes)?;
                    unshuffle_bits(planes, target, *size);
                }
                _ => self.block(&mut blocks.stored, target)?,
            }
            out = rest;
        }
        out.copy_from_slice(blocks.stored.get(..out.len()).ok_or_else(|| self.damaged())?);
        Ok(())
    }

    /// Decodes the block at the start of `stored`, which begins behind it then.
    fn block(&self, stored: &mut &[u8], out: &mut [u8]) -> Result<(), String> {
        let length = match self.compressor {
            Compressor::None => out.len(),
            _ => {
                let (length, rest) = stored.split_first_chunk().ok_or_else(|| self.damaged())?;
                *stored = rest;
                u32::from_be_bytes(*length) as usize
            }
        };
        let (block, rest) = stored.split_at_checked(length).ok_or_else(|| self.damaged())?;
        *stored = rest;
        match self.compressor {
            Compressor::Zstd => exactly(self.name(), out.len(), zstd::frames(block, out)),
            // the filter lz4 stores blocks as they are that do not become shorter
            Compressor::Lz4 if self.planes.is_some() || length != out.len() => lz4::decode(block, out),
            _ => {
                out.copy_from_slice(block);
                Ok(())
            }
        }
    }

    fn damaged(&self) -> String {
        format!("its {} data are damaged or cut off", self.name())
    }
}

impl Codec for Hdf5 {
    fn name(&self) -> &'static str {
        if self.planes.is_some() { "bitshuffle" } else { "lz4" }
    }

    fn is_fast(&self) -> bool {
        !matches!(self.compressor, Compressor::Zstd)
    }

    fn decoded_len(&self, stored: u64) -> Option<u64> {
        matches!(self.compressor, Compressor::None).then_some(stored)
    }

    fn longest(&self, decoded: u64) -> u64 {
        // blocks of a few bytes have a length before, and zstd a header of its own
        lz4::longest(decoded).saturating_mul(4).saturating_add(1 << 10)
    }

    fn decode(&self, stored: &[u8], out: &mut [u8]) -> Result<(), String> {
        let blocks = self.blocks(stored)?;
        exactly(self.name(), out.len(), Ok(blocks.decoded))?;
        self.decode_blocks(blocks, out)
    }

    fn decode_unsized(&self, stored: &[u8], most: usize) -> Result<Vec<u8>, String> {
        let blocks = self.blocks(stored)?;
        let mut out = stated(self.name(), blocks.decoded, most)?;
        self.decode_blocks(blocks, &mut out)?;
        Ok(out)
    }

    fn scratch(&self, decoded: usize) -> usize {
        let planes = if self.planes.is_some() { decoded } else { 0 };
        planes.saturating_add(zstd::WORKSPACE)
    }
}

/// The primes of xxHash of 32 bits.
const PRIMES: [u32; 5] = [0x9e37_79b1, 0x85eb_ca77, 0xc2b2_ae3d, 0x27d4_eb2f, 0x1656_67b1];

/// Returns the xxHash of 32 bits.
fn xxh32(bytes: &[u8], seed: u32) -> u32 {
    let [first, second, third, fourth, fifth] = PRIMES;
    let (stripes, rest) = bytes.as_chunks::<16>();
    let mut lanes =
        [seed.wrapping_add(first).wrapping_add(second), seed.wrapping_add(second), seed, seed.wrapping_sub(first)];
    for stripe in stripes {
        for (lane, word) in lanes.iter_mut().zip(stripe.as_chunks().0) {
            let sum = lane.wrapping_add(u32::from_le_bytes(*word).wrapping_mul(second));
            *lane = sum.rotate_left(13).wrapping_mul(first);
        }
    }
    let [a, b, c, d] = lanes;
    let mut hash = match stripes.len() {
        0 => seed.wrapping_add(fifth),
        _ => [a.rotate_left(1), b.rotate_left(7), c.rotate_left(12), d.rotate_left(18)]
            .iter()
            .fold(0u32, |sum, lane| sum.wrapping_add(*lane)),
    };
    hash = hash.wrapping_add(bytes.len() as u32);
    let (words, rest) = rest.as_chunks();
    for word in words {
        hash = hash.wrapping_add(u32::from_le_bytes(*word).wrapping_mul(third)).rotate_left(17).wrapping_mul(fourth);
    }
    for byte in rest {
        hash = hash.wrapping_add(u32::from(*byte).wrapping_mul(fifth)).rotate_left(11).wrapping_mul(first);
    }
    hash = (hash ^ hash >> 15).wrapping_mul(second);
    hash = (hash ^ hash >> 13).wrapping_mul(third);
    hash ^ hash >> 16
}

#[cfg(test)]
mod tests {
    use lz4_flex::block::compress;

    use super::*;

    #[test]
    fn hashes_are_those_of_the_description() {
        let bytes: Vec<u8> = (0..101).collect();
        for (length, seed, hash) in XXH32 {
            assert_eq!(xxh32(&bytes[..length], seed), hash, "{length}");
        }
    }

    /// Lengths, seeds and hashes of another implementation.
    const XXH32: [(usize, u32, u32); 6] = [
        (0, 0, 0x02cc_5d05),
        (1, 0, 0xcf65_b03e),
        (15, 7, 0x0296_2efc),
        (16, 0, 0xb728_37f4),
        (36, Java::SEED, 0x3f24_4c1e),
        (101, Java::SEED, 0xca49_c2ce),
    ];

    fn block(bytes: &[u8], method: u8, stored: &[u8]) -> Vec<u8> {
        let sum = xxh32(bytes, Java::SEED) & Java::SUM;
        let numbers = [stored.len() as u32, bytes.len() as u32, sum].map(u32::to_le_bytes);
        [&Java::MAGIC[..], &[method], numbers.as_flattened(), stored].concat()
    }

    #[test]
    fn java_streams_are_decoded_with_and_without_their_last_block() {
        let bytes = b"abcabcabcabcabcabcabcabcabcabc".repeat(3);
        let stream = [block(&bytes, 0x26, &compress(&bytes)), block(b"xyz", 0x16, b"xyz")].concat();
        let expected = [&bytes[..], b"xyz"].concat();
        let end = block(b"", 0x16, b"");
        for stored in [stream.clone(), [stream.clone(), end.clone()].concat()] {
            assert_eq!(Java.decode_unsized(&stored, 100), Ok(expected.clone()));
            assert!(Java.decode_unsized(&stored, 92).unwrap_err().contains("more than 92"));
        }
        assert_eq!(Java.decode_unsized(&end, 100), Ok(Vec::new()));
        let fails = |stored: &[u8]| Java.decode_unsized(stored, 100).unwrap_err();
        assert!(fails(&stream[..stream.len() - 1]).ends_with("is cut off"));
        assert!(fails(b"").ends_with("is cut off"));
        for (at, value, what) in
            [(0, b'l', "\"LZ4Block\""), (8, 0x36, "another method"), (17, 1, "checksum"), (22, 0, "")]
        {
            let mut wrong = stream.clone();
            wrong[at] = value;
            assert!(fails(&wrong).contains(what), "{at}");
        }
    }

    #[test]
    fn a_length_that_no_block_can_have_allocates_nothing() {
        let stored = [&u32::MAX.to_le_bytes()[..], &[0]].concat();
        let error = Prefixed.decode_unsized(&stored, usize::MAX).unwrap_err();
        assert_eq!(error, "its LZ4 block of 1 bytes cannot decode to 4294967295");
        assert_eq!(Prefixed.decode_unsized(&[0, 0, 0, 0, 0], 0), Ok(Vec::new()));
    }
}
