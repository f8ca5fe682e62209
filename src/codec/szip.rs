//! Szip, as HDF5 stores it: after the number of decoded bytes a stream of CCSDS 121.0-B (lossless data compression).
//!
//! Samples are coded in blocks. Each block begins with what codes it: runs of zero blocks, pairs of small numbers, numbers
//! of which the low bits are stored as they are and the rest as so many zeros before a one, or samples as they are. What is
//! coded is the distance of each sample from the one before, mapped to a number without sign; a reference sample comes
//! first in each line.

use serde_json::Value;

use super::sizes::{exactly, stated};
use super::{Codec, Configuration};
use crate::memory::{try_with_capacity, try_zeroed};

const NAME: &str = "szip";
/// Bits of the options: samples are big-endian; distances are coded.
const BIG_ENDIAN: u64 = 16;
const DISTANCES: u64 = 32;
/// A run of this many zero blocks goes on to the end of the segment.
const TO_END: usize = 5;
/// The number of the last pair.
const MAX_PAIR: u32 = 90;
/// Blocks of a segment.
const SEGMENT: usize = 64;

pub(super) fn new(configuration: &Configuration) -> Result<Box<dyn Codec>, String> {
    let list = configuration.get("parameters").and_then(Value::as_array);
    let number = |n: usize| list.and_then(|list| list.get(n)?.as_u64());
    let numbers = || Some([number(0)?, number(1)?, number(2)?, number(3)?]);
    let [options, block, bits, line] = numbers().ok_or("the filter szip has too few parameters")?;
    if !matches!(block, 2..=32) || !matches!(bits, 1..=24 | 32 | 64) || !(1..=1 << 24).contains(&line) {
        return Err(format!("the filter szip has blocks of {block} samples of {bits} bits in lines of {line}"));
    }
    let (has_distances, big_endian) = (options & DISTANCES != 0, options & BIG_ENDIAN != 0);
    // the bytes of wide samples are coded as planes
    let planes = if bits >= 32 { bits as usize / 8 } else { 1 };
    let bits = if planes > 1 { 8 } else { bits as u32 };
    let size = match bits {
        0..=8 => 1,
        9..=16 => 2,
        _ => 4,
    };
    let (block, line) = (block as usize, line as usize);
    Ok(Box::new(Szip { has_distances, big_endian, block, bits, size, line, planes }))
}

struct Szip {
    has_distances: bool,
    big_endian: bool,
    /// Samples of a block.
    block: usize,
    bits: u32,
    /// Bytes of a sample.
    size: usize,
    /// Samples of a line, each of which is filled up to whole blocks.
    line: usize,
    /// The planes of bytes that wide samples are in.
    planes: usize,
}

impl Szip {
    fn split(stored: &[u8]) -> Result<(usize, &[u8]), String> {
        let (length, rest) = stored.split_first_chunk().ok_or("its szip data are cut off")?;
        Ok((u32::from_le_bytes(*length) as usize, rest))
    }

    fn fill(&self, stored: &[u8], out: &mut [u8]) -> Result<(), String> {
        let damaged = || format!("its {NAME} data are damaged or cut off");
        if !out.len().is_multiple_of(self.size * self.planes) {
            return Err(damaged());
        }
        // whole blocks; parameters of the file say how many
        let length = self.line.next_multiple_of(self.block);
        let mut line = try_with_capacity(length).map_err(|e| e.to_string())?;
        line.resize(length, 0);
        if self.planes == 1 {
            return self.samples(stored, &mut line, out).ok_or_else(damaged);
        }
        let mut planes = try_zeroed(out.len()).map_err(|e| e.to_string())?;
        self.samples(stored, &mut line, &mut planes).ok_or_else(damaged)?;
        let count = out.len() / self.planes;
        for (at, sample) in out.chunks_exact_mut(self.planes).enumerate() {
            sample.iter_mut().zip(planes.chunks_exact(count)).for_each(|(byte, plane)| *byte = plane[at]);
        }
        Ok(())
    }

    /// Decodes all samples, line by line; `None` if they are damaged.
    fn samples(&self, stored: &[u8], line: &mut [u32], out: &mut [u8]) -> Option<()> {
        let mut bits = Bits { bytes: stored, at: 0 };
        for target in out.chunks_mut(self.line * self.size) {
            self.line(&mut bits, line, target.len() / self.size)?;
            if self.has_distances {
                self.add_up(line);
            }
            for (sample, value) in target.chunks_exact_mut(self.size).zip(&*line) {
                sample.copy_from_slice(&value.to_le_bytes()[..self.size]);
                if self.big_endian {
                    sample.reverse();
                }
            }
        }
        Some(())
    }

    /// Decodes the numbers of a line, of which `wanted` are needed.
    fn line(&self, bits: &mut Bits<'_>, line: &mut [u32], wanted: usize) -> Option<()> {
        let width = match self.bits {
            0..=8 => 3,
            9..=16 => 4,
            _ => 5,
        };
        let blocks = line.len() / self.block;
        let mut at = 0;
        while at * self.block < wanted {
            let has_reference = at == 0 && self.has_distances;
            let kind = bits.take(width)?;
            let block = &mut line[at * self.block..];
            if kind == (1 << width) - 1 {
                for number in block.iter_mut().take(self.block) {
                    *number = bits.take(self.bits)?;
                }
                at += 1;
                continue;
            }
            let are_pairs = kind == 0 && bits.take(1)? == 1;
            let first = usize::from(has_reference);
            if has_reference {
                block[0] = bits.take(self.bits)?;
            }
            match kind {
                0 if are_pairs => {
                    let mut n = first;
                    while n < self.block {
                        // pairs are numbered by their sum, and then by the second
                        let number = bits.zeros().filter(|number| *number <= MAX_PAIR)?;
                        let sum = ((8 * u64::from(number) + 1).isqrt() as u32 - 1) / 2;
                        let second = number - sum * (sum + 1) / 2;
                        if n % 2 == 0 {
                            block[n] = sum - second;
                            n += 1;
                        }
                        *block.get_mut(n)? = second;
                        n += 1;
                    }
                    at += 1;
                }
                0 => {
                    let count = match bits.zeros()? as usize + 1 {
                        TO_END => (blocks - at).min(SEGMENT - at % SEGMENT),
                        count if count > TO_END => count - 1,
                        count => count,
                    };
                    block.get_mut(first..count.checked_mul(self.block)?)?.fill(0);
                    at += count;
                }
                _ => {
                    let low = kind - 1;
                    let numbers = &mut block[first..self.block];
                    for number in numbers.iter_mut() {
                        *number = bits.zeros()?.checked_shl(low)?;
                    }
                    if low > 0 {
                        for number in numbers {
                            *number |= bits.take(low)?;
                        }
                    }
                    at += 1;
                }
            }
        }
        Some(())
    }

    /// Makes samples of distances, the first of which is a sample.
    fn add_up(&self, line: &mut [u32]) {
        let most = u32::MAX >> (32 - self.bits);
        let mut sample = line.first().copied().unwrap_or(0) & most;
        for number in line.iter_mut().skip(1) {
            // distances in both directions take turns as long as both are possible
            let both = sample.min(most - sample);
            let far = number.wrapping_sub(both);
            sample = match (u64::from(*number) <= 2 * u64::from(both), number.is_multiple_of(2)) {
                (true, true) => sample + *number / 2,
                (true, false) => sample - number.div_ceil(2),
                (false, _) if both == sample => sample.wrapping_add(far),
                (false, _) => sample.wrapping_sub(far),
            } & most;
            *number = sample;
        }
    }
}

impl Codec for Szip {
    fn name(&self) -> &'static str {
        NAME
    }

    fn longest(&self, decoded: u64) -> u64 {
        // a line is filled up to whole blocks, each of which has a few bits before
        let line = (self.line.div_ceil(self.block) * self.block) as u64;
        let filled = (decoded / self.line as u64 + 1).saturating_mul(line);
        filled.saturating_add(filled / 2).saturating_add(1 << 10)
    }

    fn decode(&self, stored: &[u8], out: &mut [u8]) -> Result<(), String> {
        let (length, stream) = Self::split(stored)?;
        exactly(NAME, out.len(), Ok(length))?;
        self.fill(stream, out)
    }

    fn decode_unsized(&self, stored: &[u8], most: usize) -> Result<Vec<u8>, String> {
        let (length, stream) = Self::split(stored)?;
        let mut out = stated(NAME, length, most)?;
        self.fill(stream, &mut out)?;
        Ok(out)
    }

    fn scratch(&self, decoded: usize) -> usize {
        let planes = if self.planes > 1 { decoded } else { 0 };
        planes.saturating_add(4 * (self.line + self.block))
    }
}

/// Bits behind each other, the highest of each byte first.
struct Bits<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl Bits<'_> {
    /// The next 32 bits or more, the first highest; zeros after the end.
    fn next(&self) -> u64 {
        let mut wide = [0; 8];
        let rest = self.bytes.get(self.at / 8..).unwrap_or_default();
        wide.iter_mut().zip(rest).for_each(|(to, byte)| *to = *byte);
        u64::from_be_bytes(wide) << (self.at % 8)
    }

    /// Returns the next bits, at least 1 and at most 32, as a number; `None` at the end.
    fn take(&mut self, count: u32) -> Option<u32> {
        let bits = self.next() >> (64 - count);
        self.at += count as usize;
        (self.at <= 8 * self.bytes.len()).then_some(bits as u32)
    }

    /// Returns the number of zeros before the next one.
    fn zeros(&mut self) -> Option<u32> {
        let mut count = 0;
        loop {
            let zeros = self.next().leading_zeros();
            let known = 64 - (self.at % 8) as u32;
            if zeros < known {
                self.at += zeros as usize + 1;
                return (self.at <= 8 * self.bytes.len()).then_some(count + zeros);
            }
            count += known;
            self.at += known as usize;
            if self.at >= 8 * self.bytes.len() {
                return None;
            }
        }
    }
}
