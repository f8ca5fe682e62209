//! Bits of coded data, and Huffman codes.

use super::{BLOCK, SIDE, dequantised};

/// Codes of up to so many bits are found in one step.
const FAST: usize = 10;
/// The longest code.
const LONGEST: usize = 16;

/// Where each coefficient of the stored order stands: from the corner in diagonals, each in the other direction.
const PLACES: [u8; BLOCK] = places();

const fn places() -> [u8; BLOCK] {
    let (mut places, mut n, mut diagonal) = ([0; BLOCK], 0, 0);
    while diagonal < 2 * SIDE - 1 {
        let mut step = 0;
        while step <= diagonal {
            let (row, column) = if diagonal % 2 == 0 { (diagonal - step, step) } else { (step, diagonal - step) };
            if row < SIDE && column < SIDE {
                places[n] = (row * SIDE + column) as u8;
                n += 1;
            }
            step += 1;
        }
        diagonal += 1;
    }
    places
}

/// A set of codes, each with a symbol of 8 bits.
pub(super) struct Codes {
    /// By the next bits of the data: the symbol, and above it the length of its code; 0 for longer codes.
    fast: [u16; 1 << FAST],
    /// For each length the first code that is longer, as if all had 16 bits.
    ends: [u32; LONGEST + 1],
    /// For each length what a code's place among the symbols is more than the code.
    shifts: [i32; LONGEST + 1],
    symbols: [u8; 256],
}

impl Codes {
    /// Makes the codes with these symbols, of which `lengths` has the numbers of each length. `None` if there are more
    /// than there can be.
    pub(super) fn new(lengths: &[u8; LONGEST], symbols: &[u8]) -> Option<Self> {
        let mut codes = Self { fast: [0; 1 << FAST], ends: [0; _], shifts: [0; _], symbols: [0; 256] };
        codes.symbols.get_mut(..symbols.len())?.copy_from_slice(symbols);
        let (mut code, mut at) = (0u32, 0usize);
        for (length, count) in (1..).zip(lengths) {
            let count = u32::from(*count);
            codes.shifts[length] = at as i32 - code as i32;
            for symbol in &symbols[at..at + count as usize] {
                if length <= FAST {
                    let first = (code as usize) << (FAST - length);
                    let found = codes.fast.get_mut(first..first + (1 << (FAST - length)))?;
                    found.fill((length as u16) << 8 | u16::from(*symbol));
                }
                code += 1;
            }
            at += count as usize;
            if code > 1 << length {
                return None;
            }
            codes.ends[length] = code << (LONGEST - length);
            code <<= 1;
        }
        Some(codes)
    }
}

/// Bits of coded data, from the highest of each byte on. A byte of 255 is followed by a 0; other bytes after it are a
/// marker, which ends the bits. Zeros follow then.
#[derive(Clone, Copy)]
pub(super) struct Bits<'a> {
    coded: &'a [u8],
    at: usize,
    /// The next bits, from the highest on.
    held: u64,
    count: u32,
    /// How many of them are not in the data.
    missing: u32,
}

impl<'a> Bits<'a> {
    pub(super) fn new(coded: &'a [u8]) -> Self {
        Self { coded, at: 0, held: 0, count: 0, missing: 0 }
    }

    /// Returns whether bits were used that are not in the data.
    pub(super) fn has_ended(&self) -> bool {
        self.missing > self.count
    }

    /// Holds at least 32 bits: a symbol and the number after it.
    #[inline]
    fn fill(&mut self) {
        if self.count >= 32 {
            return;
        }
        if let Some(next) = self.coded.get(self.at..).and_then(|rest| rest.first_chunk::<8>()) {
            let next = u64::from_be_bytes(*next);
            // no byte of the next six is 255
            let inverse = !next;
            if inverse.wrapping_sub(0x0101_0101_0101_0000) & !inverse & 0x8080_8080_8080_0000 == 0 {
                let bytes = ((64 - self.count) / 8).min(6);
                self.held |= next >> (64 - 8 * bytes) << (64 - 8 * bytes - self.count);
                self.count += 8 * bytes;
                self.at += bytes as usize;
                return;
            }
        }
        self.fill_slowly();
    }

    #[cold]
    fn fill_slowly(&mut self) {
        while self.count <= 56 {
            let byte = match self.coded.get(self.at..) {
                Some([0xff, 0, ..]) => {
                    self.at += 2;
                    0xff
                }
                Some([0xff, ..] | []) | None => {
                    self.missing += 8;
                    0
                }
                Some([byte, ..]) => {
                    self.at += 1;
                    *byte
                }
            };
            self.held |= u64::from(byte) << (56 - self.count);
            self.count += 8;
        }
    }

    #[inline]
    fn skip(&mut self, bits: u32) {
        self.held <<= bits;
        self.count -= bits;
    }

    /// Returns the next symbol. At least 16 bits must be held.
    #[inline]
    fn symbol(&mut self, codes: &Codes) -> Option<u8> {
        let found = codes.fast[(self.held >> (64 - FAST)) as usize];
        if found != 0 {
            self.skip(u32::from(found >> 8));
            return Some(found as u8);
        }
        let next = (self.held >> (64 - LONGEST)) as u32;
        let length = (FAST + 1..=LONGEST).find(|length| next < codes.ends[*length])?;
        let code = (next >> (LONGEST - length)) as i32;
        self.skip(length as u32);
        codes.symbols.get(usize::try_from(code + codes.shifts[length]).ok()?).copied()
    }

    /// Returns the next number, which has `size` bits, at least one and at most 16: negative ones begin with a 0.
    #[inline]
    fn number(&mut self, size: u32) -> i32 {
        let bits = (self.held >> (64 - size)) as i32;
        // all ones if the first bit is 0
        let is_negative = !(self.held.cast_signed() >> 63) as i32;
        self.skip(size);
        bits + (is_negative & (1 - (1 << size)))
    }

    /// Returns the difference of the next block's mean to the last one's.
    #[inline]
    pub(super) fn difference(&mut self, codes: &Codes) -> Option<i32> {
        self.fill();
        match self.symbol(codes)? {
            0 => Some(0),
            size @ 1..=16 => Some(self.number(size.into())),
            _ => None,
        }
    }

    /// Reads the other coefficients of a block, and returns the place of the last one in the stored order; 0 if there is
    /// none.
    #[inline]
    pub(super) fn coefficients(
        &mut self,
        codes: &Codes,
        steps: &[u16; BLOCK],
        out: &mut [i16; BLOCK],
    ) -> Option<usize> {
        // in registers, and not behind a reference
        let mut bits = *self;
        let (mut at, mut last) = (1, 0);
        while at < BLOCK {
            bits.fill();
            let symbol = bits.symbol(codes)?;
            let (zeros, size) = (usize::from(symbol >> 4), u32::from(symbol & 15));
            if size == 0 {
                if zeros < 15 {
                    break;
                }
                at += 16;
                continue;
            }
            at += zeros;
            let level = bits.number(size);
            let (place, step) = (PLACES.get(at)?, steps.get(at)?);
            *out.get_mut(usize::from(*place))? = dequantised(level, *step);
            last = at;
            at += 1;
        }
        *self = bits;
        Some(last)
    }

    /// Continues after the marker that ends a part of the data, the one with this number of eight.
    pub(super) fn restart(&mut self, number: usize) -> Option<()> {
        if self.has_ended() {
            return None;
        }
        let rest = self.coded.get(self.at..)?;
        let marker = rest.iter().position(|byte| *byte == 0xff)?;
        // any number of bytes may fill the space before the last of a marker
        let second = marker + rest[marker..].iter().position(|byte| *byte != 0xff)?;
        if rest[second] != 0xd0 + (number % 8) as u8 {
            return None;
        }
        *self = Self::new(&rest[second + 1..]);
        Some(())
    }
}
