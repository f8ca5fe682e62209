//! Blosc chunks, versions 1 and 2 of the format (c-blosc 1): blocks that are compressed by themselves, with the bytes or
//! bits of their samples in planes before. A chunk describes itself: no configuration is needed.
//!
//! | bytes | content, little-endian |
//! |---|---|
//! | 0 | version of the format |
//! | 1 | version of the compressor's format |
//! | 2 | flags: 1 bytes in planes, 2 not compressed, 4 bits in planes, 16 blocks are never split; from bit 5 on the compressor |
//! | 3 | bytes of a sample |
//! | 4 to 15 | bytes of the decoded chunk, of a block, of the chunk: 32-bit numbers |
//! | from 16 on | where each block begins: 32-bit numbers |
//!
//! A block is one stream, or one for each byte of a sample: its length (32 bits), and so many bytes. A stream that is as
//! long as what it decodes to is not compressed.

mod blosclz;

use std::ops::Range;

use super::pipeline::Intermediate;
use super::shuffle::{unshuffle, unshuffle_bits};
use super::sizes::{Written, exactly, stated};
use super::{Codec, Configuration, lz4, zlib, zstd};

const HEADER: usize = 16;
const BYTE_PLANES: u8 = 1;
const NOT_COMPRESSED: u8 = 2;
const BIT_PLANES: u8 = 4;
const NOT_SPLIT: u8 = 16;
/// The largest sample whose bytes are streams of their own, and the fewest samples of a block that is split.
const MOST_STREAMS: usize = 16;
const FEWEST_SAMPLES: usize = 128;

pub(super) fn new(configuration: &Configuration) -> Result<Box<dyn Codec>, String> {
    match configuration.get("cname").and_then(|name| name.as_str()) {
        Some("snappy") => Err("Blosc with Snappy is not supported".into()),
        name => Ok(Box::new(Blosc { is_fast: matches!(name, Some("lz4" | "lz4hc" | "blosclz")) })),
    }
}

struct Blosc {
    is_fast: bool,
}

impl Codec for Blosc {
    fn name(&self) -> &'static str {
        "blosc"
    }

    fn is_fast(&self) -> bool {
        self.is_fast
    }

    fn longest(&self, decoded: u64) -> u64 {
        // blocks of 4 bytes would have a place and a length of 4 bytes each
        decoded.saturating_mul(4).saturating_add(1 << 10)
    }

    fn decode(&self, stored: &[u8], out: &mut [u8]) -> Result<(), String> {
        let chunk = Chunk::read(stored)?;
        exactly(self.name(), out.len(), Ok(chunk.decoded))?;
        chunk.part(0, out)
    }

    fn has_parts(&self) -> bool {
        true
    }

    fn decode_part(&self, stored: &[u8], decoded: usize, first: usize, out: &mut [u8]) -> Result<(), String> {
        let chunk = Chunk::read(stored)?;
        exactly(self.name(), decoded, Ok(chunk.decoded))?;
        chunk.part(first, out)
    }

    fn decode_unsized(&self, stored: &[u8], most: usize) -> Result<Vec<u8>, String> {
        let chunk = Chunk::read(stored)?;
        let mut out = stated(self.name(), chunk.decoded, most)?;
        chunk.part(0, &mut out)?;
        Ok(out)
    }

    fn scratch(&self, decoded: usize) -> usize {
        // a block in planes, and one of which a part is wanted
        decoded.saturating_mul(2).saturating_add(zstd::WORKSPACE)
    }
}

/// A chunk of at least one block, whose sizes are not zero. Nothing else is checked.
struct Chunk<'a> {
    /// Without bytes after its end.
    stored: &'a [u8],
    flags: u8,
    sample: usize,
    decoded: usize,
    block: usize,
}

impl<'a> Chunk<'a> {
    fn read(stored: &'a [u8]) -> Result<Self, String> {
        let Some(&[version, _, flags, sample, ..]) = stored.first_chunk::<HEADER>() else {
            return Err(format!("{} bytes are too few for a Blosc chunk", stored.len()));
        };
        if version == 0 || version > 2 {
            return Err(format!("version {version} of the Blosc format is not supported"));
        }
        let number = |at| word(stored, at).unwrap_or_default();
        let (decoded, block, length) = (number(4), number(8), number(12));
        let Some(stored) = stored.get(..length) else {
            return Err(format!("its Blosc chunk is cut off: it has {} of {length} bytes", stored.len()));
        };
        let chunk = Self { stored, flags, sample: usize::from(sample), decoded, block };
        if length < HEADER || decoded > 0 && (block == 0 || sample == 0) {
            return Err("the header of its Blosc chunk is damaged".into());
        }
        Ok(chunk)
    }

    /// Decodes the bytes from `first` on that fill `out`.
    fn part(&self, first: usize, out: &mut [u8]) -> Result<(), String> {
        let end = first.checked_add(out.len()).filter(|end| *end <= self.decoded);
        let end = end.ok_or_else(|| format!("its Blosc chunk decodes to {} bytes only", self.decoded))?;
        if self.flags & NOT_COMPRESSED != 0 {
            let bytes = self.stored.get(HEADER + first..HEADER + end).ok_or_else(|| self.cut_off())?;
            out.copy_from_slice(bytes);
            return Ok(());
        }
        let places = self.decoded.div_ceil(self.block.max(1)).saturating_mul(4);
        if places > self.stored.len() - HEADER {
            return Err(self.cut_off());
        }
        self.blocks(first..end, out)
    }

    fn blocks(&self, range: Range<usize>, mut out: &mut [u8]) -> Result<(), String> {
        let (mut at, mut planes, mut whole) = (range.start, Intermediate::default(), Intermediate::default());
        while at < range.end {
            let number = at / self.block;
            let begin = number * self.block;
            let length = self.block.min(self.decoded - begin);
            let wanted = at - begin..length.min(range.end - begin);
            let (target, rest) = out.split_at_mut(wanted.len());
            if wanted.len() == length {
                self.block(number, target, &mut planes)?;
            } else {
                let block = whole.first(length)?;
                self.block(number, block, &mut planes)?;
                target.copy_from_slice(&block[wanted.clone()]);
            }
            at += wanted.len();
            out = rest;
        }
        Ok(())
    }

    /// Decodes a whole block.
    fn block(&self, number: usize, out: &mut [u8], planes: &mut Intermediate) -> Result<(), String> {
        let at = word(self.stored, HEADER + 4 * number).ok_or_else(|| self.cut_off())?;
        let streams = self.stored.get(at..).ok_or_else(|| self.cut_off())?;
        let (length, sample) = (out.len(), self.sample);
        if self.flags & BYTE_PLANES != 0 && sample > 1 {
            let planes = planes.first(length)?;
            self.streams(streams, planes)?;
            unshuffle(planes, out, sample);
        } else if self.flags & BIT_PLANES != 0 && length >= sample && (length / sample).is_multiple_of(8) {
            let planes = planes.first(length)?;
            self.streams(streams, planes)?;
            unshuffle_bits(planes, out, sample);
        } else {
            self.streams(streams, out)?;
        }
        Ok(())
    }

    /// Decodes the streams of a block, which begin at the start of `stored`.
    fn streams(&self, mut stored: &[u8], out: &mut [u8]) -> Result<(), String> {
        let count = match self.sample {
            sample @ 1..=MOST_STREAMS
                if self.flags & NOT_SPLIT == 0 && self.block / sample >= FEWEST_SAMPLES && out.len() == self.block =>
            {
                sample
            }
            _ => 1,
        };
        if !out.len().is_multiple_of(count) {
            return Err("the header of its Blosc chunk is damaged".into());
        }
        for part in out.chunks_exact_mut((out.len() / count).max(1)) {
            let stream = word(stored, 0).and_then(|length| stored.get(4..)?.split_at_checked(length));
            let (stream, rest) = stream.ok_or_else(|| self.cut_off())?;
            if stream.len() == part.len() {
                part.copy_from_slice(stream);
            } else {
                exactly("blosc", part.len(), self.stream(stream, part))?;
            }
            stored = rest;
        }
        Ok(())
    }

    fn stream(&self, stored: &[u8], out: &mut [u8]) -> Written {
        match self.flags >> 5 {
            0 => blosclz::decode(stored, out),
            1 => Ok(lz4::decode(stored, out).map(|()| out.len())?),
            2 => Err("Blosc with Snappy is not supported".to_owned().into()),
            3 => Ok(zlib::decode_zlib(stored, out).map(|()| out.len())?),
            4 => zstd::frames(stored, out),
            other => Err(format!("Blosc with compressor {other} is not supported").into()),
        }
    }

    fn cut_off(&self) -> String {
        "its Blosc chunk names bytes that it does not have".into()
    }
}

/// Returns the 32-bit number at byte `at`.
fn word(stored: &[u8], at: usize) -> Option<usize> {
    stored.get(at..)?.first_chunk().map(|bytes| u32::from_le_bytes(*bytes) as usize)
}

#[cfg(test)]
mod tests {
    use lz4_flex::block::compress;
    use proptest::prelude::*;

    use super::*;

    const BLOSC: Blosc = Blosc { is_fast: true };

    /// A chunk of LZ4 blocks, which are not split, with the bytes of samples in planes.
    fn chunk(bytes: &[u8], sample: u8, block: usize) -> Vec<u8> {
        let blocks = bytes.chunks(block).map(|bytes| {
            let count = bytes.len() / usize::from(sample);
            let mut planes = bytes.to_vec();
            for n in 0..count * usize::from(sample) {
                planes[n % usize::from(sample) * count + n / usize::from(sample)] = bytes[n];
            }
            let stream = compress(&planes);
            // what does not become shorter is stored as it is
            let stream = if stream.len() < planes.len() { stream } else { planes };
            [&(stream.len() as u32).to_le_bytes()[..], &stream].concat()
        });
        let blocks: Vec<_> = blocks.collect();
        let mut at = HEADER + 4 * blocks.len();
        let mut places = Vec::new();
        for block in &blocks {
            places.extend((at as u32).to_le_bytes());
            at += block.len();
        }
        let numbers = [bytes.len() as u32, block as u32, at as u32].map(u32::to_le_bytes);
        let header = [&[2, 1, BYTE_PLANES | NOT_SPLIT | 1 << 5, sample][..], numbers.as_flattened()].concat();
        [header, places, blocks.concat()].concat()
    }

    proptest! {
        #[test]
        fn chunks_of_any_blocks_are_decoded(
            bytes in prop::collection::vec(0u8..4, 0..2000), sample in 1u8..9, block in 1usize..400,
        ) {
            let stored = chunk(&bytes, sample, block);
            prop_assert_eq!(BLOSC.decode_unsized(&stored, bytes.len()), Ok(bytes.clone()));
        }
    }

    #[test]
    fn chunks_that_are_not_supported_say_why() {
        let good = chunk(&[1; 1000], 2, 100);
        let with = |changes: &[(usize, u8)]| {
            let mut stored = good.clone();
            changes.iter().for_each(|(at, value)| stored[*at] = *value);
            BLOSC.decode(&stored, &mut [0; 1000])
        };
        assert_eq!(with(&[]), Ok(()));
        let mut part = [0; 10];
        assert_eq!(BLOSC.decode_part(&good, 1000, 990, &mut part), Ok(()));
        for other in [999, 1001] {
            let error = format!("its blosc data decode to 1000 bytes, not {other}");
            assert_eq!(BLOSC.decode_part(&good, other, 0, &mut part), Err(error));
        }
        // its first block is said to begin beyond the end
        assert_eq!(with(&[(19, 1)]), Err("its Blosc chunk names bytes that it does not have".into()));
        for (changes, error) in [
            (&[(0, 5)][..], "version 5 of the Blosc format is not supported"),
            (&[(2, 2 << 5)], "Blosc with Snappy is not supported"),
            (&[(2, 7 << 5)], "Blosc with compressor 7 is not supported"),
            (&[(3, 0)], "the header of its Blosc chunk is damaged"),
            (&[(8, 0)], "the header of its Blosc chunk is damaged"),
            (&[(15, 1)], "its Blosc chunk is cut off: it has 216 of 16777432 bytes"),
            (&[(12, 8), (13, 0)], "the header of its Blosc chunk is damaged"),
            (&[(4, 0), (5, 0)], "its blosc data decode to 0 bytes, not 1000"),
        ] {
            assert_eq!(with(changes), Err(error.into()));
        }
        let configuration = serde_json::json!({"cname": "snappy"});
        assert!(new(configuration.as_object().unwrap()).is_err());
        assert_eq!(BLOSC.decode(b"", &mut []), Err("0 bytes are too few for a Blosc chunk".into()));
    }
}
