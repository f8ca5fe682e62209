//! The residual of the lossless methods: the reconstructed samples XORed with it are exact. It has four planes, one for
//! each byte of a sample.
//!
//! Its planes are coded by finite state entropy (FSE, a tANS coder) of bytes, in an early form of the library that has
//! no block headers.

use super::{grow_to, no_fse, no_length, past_end};
use crate::format::bytes::ByteReader;

/// Bytes of a plane that are decoded at a time.
const BLOCK: usize = 4096;

// The names of the parts in errors.
const RESIDUAL: &str = "the head of the residual";
const PLANES: [&str; 4] = ["residual plane 0", "residual plane 1", "residual plane 2", "residual plane 3"];

#[derive(Clone, Copy, Debug, Default)]
enum PlaneCoding<'a> {
    /// All bytes are the same.
    #[default]
    Same,
    Raw(&'a [u8]),
    /// FSE: the coded bits, and the decoder's state.
    Fse(&'a [u8], State),
}

/// The decoding tables and decoded blocks of the four planes, used again for the next chunk.
#[derive(Debug, Default)]
pub(super) struct Planes {
    /// The first one serves entropy coded data that are decoded before the residual, too.
    pub tables: [Table; 4],
    blocks: [Vec<u8>; 4],
}

impl Planes {
    pub(crate) fn bytes(&self) -> usize {
        let blocks: usize = self.blocks.iter().map(Vec::capacity).sum();
        blocks + self.tables.iter().map(|table| 4 * table.states.capacity()).sum::<usize>()
    }
}

/// A residual that is being applied.
pub(super) struct Residual<'a> {
    planes: &'a mut Planes,
    codings: [PlaneCoding<'a>; 4],
    /// Samples that are not yet in a block.
    samples: usize,
    /// Bytes of each block that were applied.
    used: usize,
    /// Bytes of each block that were decoded.
    filled: usize,
}

impl<'a> Residual<'a> {
    /// Reads the planes' sizes and tables, for a chunk of `samples` samples.
    pub(crate) fn new(coded: &'a [u8], samples: usize, planes: &'a mut Planes) -> Result<Self, String> {
        let mut reader = ByteReader::new(RESIDUAL, coded);
        reader.take(4)?;
        let sizes = reader.several::<_, 4>(ByteReader::i32)?;
        let mut codings = [PlaneCoding::Same; 4];
        for (k, size) in sizes.into_iter().enumerate() {
            let part = PLANES[k];
            reader.enter(part);
            grow_to(&mut planes.blocks[k], BLOCK)?;
            codings[k] = match size {
                0 => {
                    planes.blocks[k].fill(0);
                    PlaneCoding::Same
                }
                1 => {
                    planes.blocks[k].fill(reader.u8()?);
                    PlaneCoding::Same
                }
                -1 => PlaneCoding::Raw(reader.take(samples)?),
                ..-1 => return Err(no_length(part, size)),
                _ => {
                    let table = &mut planes.tables[k];
                    let bits = table.read(reader.take(size as usize)?, part)?;
                    PlaneCoding::Fse(bits, State::new(table, bits, part)?)
                }
            };
        }
        Ok(Self { planes, codings, samples, used: 0, filled: 0 })
    }

    pub(crate) fn apply(&mut self, mut row: &mut [f32]) -> Result<(), String> {
        while !row.is_empty() {
            if self.used == self.filled {
                self.fill()?;
            }
            let count = row.len().min(self.filled - self.used);
            if count == 0 {
                return Err(past_end(RESIDUAL));
            }
            let (here, rest) = row.split_at_mut(count);
            let [a, b, c, d] = self.planes.blocks.each_ref().map(|block| &block[self.used..][..count]);
            for (k, sample) in here.iter_mut().enumerate() {
                *sample = f32::from_bits(sample.to_bits() ^ u32::from_le_bytes([a[k], b[k], c[k], d[k]]));
            }
            self.used += count;
            row = rest;
        }
        Ok(())
    }

    /// Decodes the next block of each plane.
    fn fill(&mut self) -> Result<(), String> {
        let count = BLOCK.min(self.samples);
        self.samples -= count;
        (self.used, self.filled) = (0, count);
        // the entropy coded planes are decoded interleaved as far as that goes, then each to the end of its block
        let done = decode_planes_interleaved(&mut self.codings, self.planes, count);
        for (k, coding) in self.codings.iter_mut().enumerate() {
            let (block, part) = (&mut self.planes.blocks[k][..count], PLANES[k]);
            match coding {
                PlaneCoding::Same => {}
                PlaneCoding::Raw(bytes) => {
                    let (here, rest) = bytes.split_at_checked(count).ok_or_else(|| past_end(part))?;
                    block.copy_from_slice(here);
                    *bytes = rest;
                }
                PlaneCoding::Fse(bits, state) => {
                    state.fill(&self.planes.tables[k], bits, &mut block[done..], part)?;
                    if self.samples == 0 {
                        state.finish(part)?;
                    }
                }
            }
        }
        Ok(())
    }
}

/// Decodes the entropy coded planes interleaved, if there are two or more; returns how many bytes of each.
fn decode_planes_interleaved(codings: &mut [PlaneCoding<'_>; 4], planes: &mut Planes, count: usize) -> usize {
    let mut streams: [Option<FseStream<'_>>; 4] = [const { None }; 4];
    let mut number = 0;
    let parts = codings.iter_mut().zip(&planes.tables).zip(&mut planes.blocks);
    for ((coding, table), block) in parts {
        if let (PlaneCoding::Fse(bits, state), Some(stream)) = (coding, streams.get_mut(number)) {
            *stream = Some(FseStream { state, table, bits, out: &mut block[..count] });
            number += 1;
        }
    }
    match streams {
        [Some(a), Some(b), Some(c), Some(d)] => decode_interleaved([a, b, c, d]),
        [Some(a), Some(b), Some(c), None] => decode_interleaved([a, b, c]),
        [Some(a), Some(b), None, None] => decode_interleaved([a, b]),
        _ => 0,
    }
}

/// log2 of the largest number of states of a table.
const MAX_LOG: u32 = 12;
/// log2 of the smallest number of states.
const MIN_LOG: u32 = 5;

/// The decoding table of one block: for each state its symbol, the number of bits to read, and the base that they are
/// added to.
#[derive(Debug, Default)]
pub(super) struct Table {
    /// Base << 16, symbol << 8, bits.
    states: Vec<u32>,
    log: u32,
}

impl Table {
    /// Builds the table from the counts at the beginning of a block; returns the coded bits behind them.
    pub(crate) fn read<'a>(&mut self, block: &'a [u8], part: &str) -> Result<&'a [u8], String> {
        let mut counts = [0i16; 256];
        let (log, bytes) = read_counts(block, &mut counts).map_err(|why| no_fse(part, why))?;
        self.build(log, &counts).map_err(|why| no_fse(part, why))?;
        block.get(bytes..).ok_or_else(|| past_end(part))
    }

    fn build(&mut self, log: u32, counts: &[i16; 256]) -> Result<(), &'static str> {
        let size = 1usize << log;
        grow_to(&mut self.states, 1 << MAX_LOG).map_err(|_| "no memory is left")?;
        self.log = log;
        let states = &mut self.states[..size];
        let mut symbols = [0u8; 1 << MAX_LOG];
        let mut next = [0u16; 256];
        // rare symbols have one state each, at the end of the table
        let mut end = size;
        for (symbol, count) in counts.iter().enumerate() {
            if *count == -1 {
                end = end.checked_sub(1).ok_or("too many rare symbols")?;
                symbols[end] = symbol as u8;
            }
            next[symbol] = count.unsigned_abs();
        }
        let step = (size >> 1) + (size >> 3) + 3;
        let mut at = 0;
        for (symbol, count) in counts.iter().enumerate() {
            for _ in 0..(*count).max(0) {
                symbols[at] = symbol as u8;
                at = (at + step) % size;
                // the counts add up to the size, so that a state is free unless this was the last symbol
                while at >= end && at != 0 {
                    at = (at + step) % size;
                }
            }
        }
        if at != 0 {
            return Err("its states do not come out even");
        }
        for (state, symbol) in states.iter_mut().zip(symbols) {
            let x = u32::from(next[usize::from(symbol)]);
            next[usize::from(symbol)] += 1;
            let bits = log - x.max(1).ilog2();
            let base = (x << bits).wrapping_sub(size as u32) & 0xffff;
            *state = base << 16 | u32::from(symbol) << 8 | bits;
        }
        Ok(())
    }
}

/// Reads the number of states of each symbol (-1: one state, rare). Returns log2 of the number of states, and the bytes
/// read.
fn read_counts(block: &[u8], counts: &mut [i16; 256]) -> Result<(u32, usize), &'static str> {
    const PAST_END: &str = "its table runs past the end";
    let mut at = 0usize;
    let peek = |at: usize, bits: u32| {
        let byte = |k: usize| u32::from(block.get(at / 8 + k).copied().unwrap_or(0));
        (byte(0) | byte(1) << 8 | byte(2) << 16) >> (at % 8) & ((1 << bits) - 1)
    };
    let log = MIN_LOG + peek(at, 4);
    at += 4;
    if log > MAX_LOG {
        return Err("its table is too large");
    }
    let mut rest = (1i32 << log) + 1;
    let (mut threshold, mut bits) = (1i32 << log, log + 1);
    let (mut symbol, mut was_zero) = (0usize, false);
    while rest > 1 {
        if was_zero {
            loop {
                let more = peek(at, 2);
                at += 2;
                symbol += more as usize;
                if more != 3 {
                    break;
                }
                if at / 8 > block.len() {
                    return Err(PAST_END);
                }
            }
        }
        let Some(count) = counts.get_mut(symbol) else { return Err("it has too many symbols") };
        let most = 2 * threshold - 1 - rest;
        let mut value = peek(at, bits - 1) as i32;
        if value < most {
            at += bits as usize - 1;
        } else {
            value = peek(at, bits) as i32;
            at += bits as usize;
            if value >= threshold {
                value -= most;
            }
        }
        *count = (value - 1) as i16;
        was_zero = value == 1;
        symbol += 1;
        rest -= (value - 1).abs();
        if rest < 1 {
            return Err("its counts do not come out even");
        }
        while rest < threshold {
            bits -= 1;
            threshold /= 2;
        }
    }
    let bytes = at.div_ceil(8);
    if bytes > block.len() { Err(PAST_END) } else { Ok((log, bytes)) }
}

/// The state of a block's decoder, which can decode any number of symbols at a time.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct State {
    /// The two interleaved states; the first one gives the next symbol.
    states: [u32; 2],
    /// Bits not yet read.
    left: usize,
    /// 0: bits are left. 1: a read has run past the last bit. 2: the symbol of the other state was decoded too, the
    /// last one.
    ended: u8,
}

impl State {
    /// Creates the state before the first symbol of a block.
    pub(crate) fn new(table: &Table, bits: &[u8], part: &str) -> Result<Self, String> {
        let last = bits.last().copied().unwrap_or(0);
        if last == 0 {
            return Err(no_fse(part, "it does not end in a stop bit"));
        }
        let mut state = Self { left: 8 * (bits.len() - 1) + last.ilog2() as usize, ..Self::default() };
        for k in 0..2 {
            state.states[k] = state.read(bits, table.log);
        }
        Ok(state)
    }

    /// Reads `count` bits, backwards from the end of the block; missing bits are zeros.
    #[inline]
    fn read(&mut self, bits: &[u8], count: u32) -> u32 {
        let missing = (count as usize).saturating_sub(self.left);
        if missing > 0 {
            self.ended = 1;
        }
        self.left -= count as usize - missing;
        let byte = |k: usize| u32::from(bits.get(self.left / 8 + k).copied().unwrap_or(0));
        let here = (byte(0) | byte(1) << 8 | byte(2) << 16) >> (self.left % 8);
        (here & ((1 << (count as usize - missing)) - 1)) << missing
    }

    /// Decodes as many symbols as fit into `out`.
    pub(crate) fn fill(&mut self, table: &Table, bits: &[u8], out: &mut [u8], part: &str) -> Result<(), String> {
        let done = decode_interleaved([FseStream { state: self, table, bits, out }]);
        for symbol in &mut out[done..] {
            if self.ended == 2 {
                return Err(no_fse(part, "it is too short"));
            }
            let entry = table.states.get(self.states[0] as usize).copied().unwrap_or(0);
            *symbol = (entry >> 8) as u8;
            if self.ended == 1 {
                self.ended = 2;
            } else {
                let next = (entry >> 16) + self.read(bits, entry & 0xff);
                self.states = [self.states[1], next];
            }
        }
        Ok(())
    }

    /// Checks that the block has no further symbols.
    pub(crate) fn finish(&self, part: &str) -> Result<(), String> {
        if self.ended == 2 { Ok(()) } else { Err(no_fse(part, "it is too long")) }
    }
}

/// A block that is being decoded, and the buffer for its symbols.
pub(super) struct FseStream<'a> {
    pub state: &'a mut State,
    pub table: &'a Table,
    pub bits: &'a [u8],
    pub out: &'a mut [u8],
}

/// Decodes several blocks interleaved, so that the processor can overlap their chains of dependent loads. Stops when
/// the smallest buffer is full, or a little before if a block comes near its end; returns the number of symbols of each
/// block.
pub(super) fn decode_interleaved<const N: usize>(mut streams: [FseStream<'_>; N]) -> usize {
    let mut done = 0;
    let room = streams.iter().map(|s| s.out.len()).min().unwrap_or(0);
    let mut states: [[u32; 2]; N] = std::array::from_fn(|n| streams[n].state.states);
    let mut left: [usize; N] = std::array::from_fn(|n| streams[n].state.left);
    let tables: [&[u32; 1 << MAX_LOG]; N] =
        std::array::from_fn(|n| streams[n].table.states.first_chunk().unwrap_or(&[0; 1 << MAX_LOG]));
    // the loop takes four symbols without a check of the bits that are left
    if streams.iter().any(|s| s.state.ended != 0 || s.state.left < 64) {
        return 0;
    }
    // four symbols take no more than 48 bits
    'all: while done + 4 <= room && left.iter().all(|left| *left >= 64) {
        let mut windows = [0; N];
        for n in 0..N {
            let end = left[n].div_ceil(8);
            let Some(window) = streams[n].bits.get(..end).and_then(|b| b.last_chunk()) else { break 'all };
            windows[n] = u64::from_le_bytes(*window) << (8 * end - left[n]);
        }
        let mut symbols = [[0; 4]; N];
        let mut counts = [0; N];
        for k in 0..4 {
            for n in 0..N {
                let entry = tables[n][states[n][k % 2] as usize % (1 << MAX_LOG)];
                let count = entry & 63;
                symbols[n][k] = (entry >> 8) as u8;
                states[n][k % 2] = (entry >> 16) + (windows[n] >> 1 >> (63 - count)) as u32;
                windows[n] <<= count;
                counts[n] += count as usize;
            }
        }
        for n in 0..N {
            left[n] -= counts[n];
            if let Some(out) = streams[n].out.get_mut(done..done + 4) {
                out.copy_from_slice(&symbols[n]);
            }
        }
        done += 4;
    }
    for (n, stream) in streams.iter_mut().enumerate() {
        (stream.state.states, stream.state.left) = (states[n], left[n]);
    }
    done
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One column of zero runs, written by the reference library.
    const RUNS: [u8; 17] =
        [0xa1, 0xe7, 0xff, 0x6f, 0x81, 0x86, 0x58, 0xff, 0x0f, 0xf0, 0x7c, 0xfc, 0x9a, 0xaa, 0xd4, 0xef, 0x03];

    fn decoded(block: &[u8], count: usize, step: usize) -> Result<Vec<u8>, String> {
        let mut table = Table::default();
        let bits = table.read(block, "the zero runs")?;
        let mut state = State::new(&table, bits, "the zero runs")?;
        let mut out = vec![0; count];
        for part in out.chunks_mut(step) {
            state.fill(&table, bits, part, "the zero runs")?;
        }
        state.finish("the zero runs")?;
        Ok(out)
    }

    #[test]
    fn a_small_block() {
        let mut expected = vec![53, 31, 24, 33, 24, 33, 26];
        expected.resize(64, 0);
        for step in [64, 1, 3, 5, 16] {
            assert_eq!(decoded(&RUNS, 64, step), Ok(expected.clone()), "{step}");
        }
        assert_eq!(decoded(&RUNS, 65, 65), Err("the zero runs: no valid FSE block, it is too short".into()));
        assert_eq!(decoded(&RUNS, 63, 63), Err("the zero runs: no valid FSE block, it is too long".into()));
        for length in 0..RUNS.len() {
            assert!(decoded(&RUNS[..length], 64, 64).is_err(), "{length}");
        }
    }
}
