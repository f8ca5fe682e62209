//! zlib streams (RFC 1950) of a known number of bytes, as the chunks of VDS are.
//!
//! Deflate data (RFC 1951) of floating-point samples as they are, not shuffled, are mostly literals. They are decoded
//! here, by several [`lanes`] at a time: this file reads the blocks and their codes. All other data are left to
//! libdeflate, which decodes them faster: up to twelve times, if bytes were shuffled.

mod lanes;

use std::cell::RefCell;

use lanes::{Block, Lanes};

use super::deflate;

/// Shorter streams are not worth decoding here.
const SHORTEST: usize = 2 << 10;
/// Longer streams are not decoded here: offsets of bits have to fit into 32 bits.
const LONGEST: usize = 128 << 20;
/// Bits of a block that is short: libdeflate decodes streams of such blocks faster, since the tables of each take
/// longer to make than its symbols to decode. It counts after so many blocks.
const SHORT_BLOCK: usize = 4 << 10;
const MANY_BLOCKS: usize = 8;
/// Streams with a higher ratio of decoded to stored bytes have many matches.
const MOST_COMPRESSED: usize = 5;

thread_local! {
    static DECODER: RefCell<Decoder> = RefCell::new(Decoder::new());
}

/// Decodes the stream at the start of `stored`, which must fill `out` exactly. Bytes after the stream are ignored, as
/// by zlib's `uncompress`. After an error the content of `out` is unspecified.
pub(crate) fn decode(stored: &[u8], out: &mut [u8]) -> Result<(), String> {
    if decode_literals(stored, out) {
        return Ok(());
    }
    deflate::zlib(stored, out)
}

/// Decodes a stream with lanes. Returns `false` for one that is not valid or not worth it; the content of `out` is then
/// unspecified.
fn decode_literals(stored: &[u8], out: &mut [u8]) -> bool {
    let is_worth_it = (SHORTEST..=LONGEST).contains(&stored.len()) && out.len() / MOST_COMPRESSED <= stored.len();
    is_worth_it && DECODER.with_borrow_mut(|decoder| decoder.stream(stored, out)).is_some()
}

/// The memory that decoding needs.
struct Decoder {
    lanes: Lanes,
    codes: Box<Codes>,
}

impl Decoder {
    fn new() -> Self {
        Self { lanes: Lanes::new(), codes: Box::new(Codes::new()) }
    }

    fn stream(&mut self, stored: &[u8], out: &mut [u8]) -> Option<()> {
        let header: [u8; 2] = *stored.first_chunk()?;
        let [method, flags] = header;
        // deflate with a window of at most 32 KiB, and no dictionary
        if !u16::from_be_bytes(header).is_multiple_of(31) || method & 15 != 8 || method >> 4 > 7 || flags & 0x20 != 0 {
            return None;
        }
        let mut output = Output { bytes: out, filled: 0, matches: 0 };
        let end = self.deflate(stored, 8 * header.len(), &mut output)?;
        let sum = bytes_at(stored, end.next_multiple_of(8), 4)?;
        (output.filled == output.bytes.len() && deflate::adler32(out).to_be_bytes() == *sum).then_some(())
    }

    /// Decodes all blocks of deflate data, and returns the place after the last one.
    fn deflate(&mut self, stored: &[u8], mut at: usize, out: &mut Output<'_>) -> Option<usize> {
        let (mut length, mut blocks) = (None, 0);
        loop {
            if blocks > MANY_BLOCKS && at / blocks < SHORT_BLOCK {
                return None;
            }
            blocks += 1;
            let kind = word_or_zeros(stored, at) & 7;
            at += 3;
            match kind >> 1 {
                0 => {
                    let header = at.next_multiple_of(8);
                    let [low, high, not_low, not_high] = *bytes_at(stored, header, 4)?.first_chunk()?;
                    let bytes = u16::from_le_bytes([low, high]);
                    if bytes != !u16::from_le_bytes([not_low, not_high]) {
                        return None;
                    }
                    out.extend(bytes_at(stored, header + 32, usize::from(bytes))?)?;
                    at = header + 32 + 8 * usize::from(bytes);
                }
                codes @ (1 | 2) => {
                    let begin = match codes {
                        1 => self.codes.set_fixed().map(|()| at)?,
                        _ => self.codes.read(stored, at)?,
                    };
                    let block = Block { stored, codes: &self.codes };
                    at = self.lanes.decode(&block, begin, length, out)?;
                    // most compressors give all blocks the same number of symbols
                    length = Some(at - begin);
                }
                _ => return None,
            }
            if kind & 1 == 1 {
                return Some(at);
            }
        }
    }
}

/// Bits that a word has at least. Places are counted in bits; the first bit of a byte is its lowest (RFC 1951, 3.1.1).
const WORD_BITS: usize = 57;

/// Returns the bits from `at` on, the first one lowest. `None` near the end of the data.
#[inline(always)]
fn word(stored: &[u8], at: usize) -> Option<u64> {
    let bytes = stored.get(at / 8..)?.first_chunk()?;
    Some(u64::from_le_bytes(*bytes) >> (at % 8))
}

/// Like [`word`], with zeros after the end of the data.
#[inline]
fn word_or_zeros(stored: &[u8], at: usize) -> u64 {
    word(stored, at).unwrap_or_else(|| {
        let mut bytes = [0; 8];
        let rest = stored.get(at / 8..).unwrap_or_default();
        bytes[..rest.len()].copy_from_slice(rest);
        u64::from_le_bytes(bytes) >> (at % 8)
    })
}

/// Returns bytes from the place of a whole byte on.
fn bytes_at(stored: &[u8], at: usize, bytes: usize) -> Option<&[u8]> {
    stored.get(at / 8..)?.get(..bytes)
}

struct Output<'a> {
    bytes: &'a mut [u8],
    filled: usize,
    matches: usize,
}

impl Output<'_> {
    /// Appends bytes. `None` if there is no room for them.
    fn extend(&mut self, bytes: &[u8]) -> Option<()> {
        let to = self.bytes.get_mut(self.filled..)?.get_mut(..bytes.len())?;
        to.copy_from_slice(bytes);
        self.filled += bytes.len();
        Some(())
    }

    /// Appends the bytes of a match. `None` if they begin before the output, or there is no room for them.
    fn repeat(&mut self, Match { length, distance }: Match) -> Option<()> {
        let (length, distance) = (usize::from(length), usize::from(distance));
        let from = self.filled.checked_sub(distance)?;
        let end = self.filled + length;
        let bytes = self.bytes.get_mut(..end).filter(|_| distance > 0)?;
        let mut at = self.filled;
        while at < end {
            // a match may repeat its own bytes: from each copy on there are more to copy
            let run = (at - from).min(end - at);
            bytes.copy_within(from..from + run, at);
            at += run;
        }
        self.filled = end;
        self.matches += 1;
        Some(())
    }
}

/// The symbol at which a block ends; larger ones begin a match (RFC 1951, 3.2.5).
const END_OF_BLOCK: u16 = 256;

/// For each symbol from 257 on: the shortest length, and the number of its bits that follow.
const LENGTHS: [(u16, u8); 29] = {
    let mut lengths = ranges(3, 4);
    // the longest length alone has the last symbol
    lengths[28] = (258, 0);
    lengths
};

/// For each symbol: the shortest distance, and the number of its bits that follow.
const DISTANCES: [(u16, u8); 30] = ranges(1, 2);

/// Ranges of numbers that follow one another from `first` on: the first of each, and its length in bits. The first two
/// times `equal` have one number, and then as many each have twice the numbers of those before.
const fn ranges<const N: usize>(first: u16, equal: usize) -> [(u16, u8); N] {
    let mut ranges = [(0, 0); N];
    let (mut next, mut n) = (first, 0);
    while n < N {
        let bits = (n / equal).saturating_sub(1) as u8;
        ranges[n] = (next, bits);
        next += 1 << bits;
        n += 1;
    }
    ranges
}

/// A match: `length` bytes of earlier output, from `distance` bytes before the end on, are repeated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Match {
    length: u16,
    distance: u16,
}

/// A symbol, with its extra bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Symbol {
    Literal(u8),
    Match(Match),
    EndOfBlock,
}

struct Codes {
    /// Of the lengths of the other two.
    code_lengths: PrefixCode<128>,
    /// Of literals, lengths of matches, and the end of the block.
    literals: PrefixCode<2048>,
    distances: PrefixCode<256>,
}

impl Codes {
    /// The order in which the lengths of the code length code are stored.
    const ORDER: [usize; 19] = [16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15];
    /// The most symbols of the two other codes.
    const MOST_LITERALS: usize = 286;
    const MOST_DISTANCES: usize = 30;

    fn new() -> Self {
        Self { code_lengths: PrefixCode::new(), literals: PrefixCode::new(), distances: PrefixCode::new() }
    }

    /// Sets the codes that the standard fixes (RFC 1951, 3.2.6).
    fn set_fixed(&mut self) -> Option<()> {
        let mut literals = [8; 288];
        literals[144..256].fill(9);
        literals[256..280].fill(7);
        self.literals.set(&literals)?;
        self.distances.set(&[5; 32])
    }

    /// Reads the codes in the header of a block (RFC 1951, 3.2.7): their lengths, run-length coded and coded again.
    /// Returns the place after it. `None` if it is not valid, or one of its codes is not complete, which zlib and
    /// libdeflate do not write.
    fn read(&mut self, stored: &[u8], mut at: usize) -> Option<usize> {
        let mut take = |bits: usize| {
            let value = word_or_zeros(stored, at) as usize & ((1 << bits) - 1);
            at += bits;
            value
        };
        let (literals, distances, own) = (257 + take(5), 1 + take(5), 4 + take(4));
        let mut own_lengths = [0; Self::ORDER.len()];
        for symbol in Self::ORDER.iter().take(own) {
            own_lengths[*symbol] = take(3) as u8;
        }
        self.code_lengths.set(&own_lengths)?;
        let all = literals + distances;
        if literals > Self::MOST_LITERALS || distances > Self::MOST_DISTANCES {
            return None;
        }
        let mut lengths = [0; Self::MOST_LITERALS + Self::MOST_DISTANCES];
        let mut filled = 0;
        while filled < all {
            let word = word_or_zeros(stored, at);
            let (symbol, bits) = self.code_lengths.symbol(word);
            let word = word as usize >> bits;
            let (length, times, extra) = match symbol {
                ..16 => (symbol as u8, 1, 0),
                16 => (lengths[filled.checked_sub(1)?], 3 + (word & 3), 2),
                17 => (0, 3 + (word & 7), 3),
                _ => (0, 11 + (word & 127), 7),
            };
            at += bits + extra;
            lengths[..all].get_mut(filled..filled + times)?.fill(length);
            filled += times;
        }
        let (literals, distances) = lengths[..all].split_at(literals);
        self.literals.set(literals)?;
        self.distances.set(distances)?;
        Some(at)
    }

    /// Decodes the symbol at a place, and returns it with the place after it, which may lie after the end of the data.
    /// `None` if the symbol is not valid.
    #[inline]
    fn symbol(&self, stored: &[u8], at: usize) -> Option<(Symbol, usize)> {
        let word = word_or_zeros(stored, at);
        let (symbol, bits) = self.literals.symbol(word);
        let at = at + bits;
        match symbol {
            ..END_OF_BLOCK => Some((Symbol::Literal(symbol as u8), at)),
            END_OF_BLOCK => Some((Symbol::EndOfBlock, at)),
            _ => {
                let (length, bits) = with_extra_bits(&LENGTHS, symbol - END_OF_BLOCK - 1, word >> bits)?;
                let at = at + bits;
                let word = word_or_zeros(stored, at);
                let (symbol, code_bits) = self.distances.symbol(word);
                let (distance, bits) = with_extra_bits(&DISTANCES, symbol, word >> code_bits)?;
                Some((Symbol::Match(Match { length, distance }), at + code_bits + bits))
            }
        }
    }
}

/// Returns the number that a symbol and the bits after it code, and the number of these bits.
#[inline]
fn with_extra_bits(table: &[(u16, u8)], symbol: u16, word: u64) -> Option<(u16, usize)> {
    let (least, extra) = *table.get(usize::from(symbol))?;
    Some((least + (word & ((1 << extra) - 1)) as u16, usize::from(extra)))
}

const LONGEST_CODE: usize = 15;
/// The most symbols of a code.
const MOST_SYMBOLS: usize = 288;

/// An entry of a table for the next bits of the data. Bits 0 to 3 are the length of the symbol's code, or zero if it is
/// longer than the table's index; bit 6 says that the symbol is not a literal; bits 8 to 15 are those of the symbol.
type Entry = u16;

/// Set in entries of symbols from 256 on, and of codes longer than the table's index.
const NOT_LITERAL: Entry = 1 << 6;

/// Returns the length of the code of a literal.
#[inline(always)]
fn literal_length(entry: Entry) -> u32 {
    u32::from(entry) & 63
}

/// A prefix code (RFC 1951, 3.2.2): each symbol has a code of 1 to 15 bits, and lengths alone say which. The table has
/// `SIZE` entries, a power of two; the index is the next bits of the data.
struct PrefixCode<const SIZE: usize> {
    table: [Entry; SIZE],
    /// How many codes have each length.
    counts: [u16; LONGEST_CODE + 1],
    /// By their codes.
    symbols: [u16; MOST_SYMBOLS],
}

impl<const SIZE: usize> PrefixCode<SIZE> {
    const INDEX_BITS: usize = SIZE.trailing_zeros() as usize;

    /// A code without symbols, until [`set`](Self::set) is called.
    fn new() -> Self {
        Self { table: [NOT_LITERAL; SIZE], counts: [0; LONGEST_CODE + 1], symbols: [0; MOST_SYMBOLS] }
    }

    /// Makes it the code whose symbols have these lengths; symbols of length 0 do not occur. `None` if there are too
    /// many codes, or bits that are the code of no symbol: the code is unspecified then.
    fn set(&mut self, lengths: &[u8]) -> Option<()> {
        let mut counts = [0; LONGEST_CODE + 1];
        for length in lengths {
            *counts.get_mut(usize::from(*length))? += 1;
        }
        counts[0] = 0;
        let used: u32 = (1..=LONGEST_CODE).map(|length| u32::from(counts[length]) << (LONGEST_CODE - length)).sum();
        if used != 1 << LONGEST_CODE || lengths.len() > MOST_SYMBOLS {
            return None;
        }
        let mut next = [0; LONGEST_CODE + 1];
        for length in 1..LONGEST_CODE {
            next[length + 1] = next[length] + counts[length];
        }
        for (symbol, length) in (0..).zip(lengths).filter(|(_, length)| **length > 0) {
            let next = &mut next[usize::from(*length)];
            self.symbols[usize::from(*next)] = symbol;
            *next += 1;
        }
        self.counts = counts;
        self.fill_table();
        Some(())
    }

    fn fill_table(&mut self) {
        let mut symbols = self.symbols.iter();
        self.table[0] = NOT_LITERAL;
        // the next code, its first bit highest
        let mut code = 0u32;
        for length in 1..=Self::INDEX_BITS {
            // one more bit, whatever it is, leaves shorter codes as they are
            self.table.copy_within(..1 << (length - 1), 1 << (length - 1));
            code <<= 1;
            for symbol in symbols.by_ref().take(usize::from(self.counts[length])) {
                let index = code.reverse_bits() >> (u32::BITS - length as u32);
                let flag = if *symbol < 256 { 0 } else { NOT_LITERAL };
                self.table[index as usize] = *symbol << 8 | flag | length as Entry;
                code += 1;
            }
        }
    }

    /// Returns the entry for the next bits.
    #[inline(always)]
    fn entry(&self, word: u64) -> Entry {
        self.table[word as usize & (SIZE - 1)]
    }

    /// Returns the next symbol, and the length of its code.
    #[inline]
    fn symbol(&self, word: u64) -> (u16, usize) {
        let entry = self.entry(word);
        match usize::from(entry & 15) {
            0 => self.long_symbol(word),
            length => (entry >> 8 | (entry & NOT_LITERAL) << 2, length),
        }
    }

    /// Finds a symbol bit by bit.
    #[cold]
    fn long_symbol(&self, word: u64) -> (u16, usize) {
        // the code so far, the first code of this length, and the number of shorter ones
        let (mut code, mut first, mut shorter) = (0, 0, 0);
        for length in 1..=LONGEST_CODE {
            code = code << 1 | (word >> (length - 1)) as u16 & 1;
            let count = self.counts[length];
            if code - first < count {
                return (self.symbols[usize::from(shorter + code - first)], length);
            }
            shorter += count;
            first = (first + count) << 1;
        }
        unreachable!("the codes are complete")
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use flate2::Compression;
    use flate2::write::ZlibEncoder;
    use libdeflater::Decompressor;
    use proptest::prelude::*;

    use super::*;

    /// A sequence of numbers that look random.
    fn numbers(seed: u64) -> impl Iterator<Item = u64> {
        let mut state = seed;
        std::iter::repeat_with(move || {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (state ^ state >> 31).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 20
        })
    }

    /// What bytes are like.
    #[derive(Clone, Copy, Debug)]
    enum Kind {
        /// Numbers of 4 bytes, each within a factor of 16 of the others.
        Floats,
        /// A byte is half as likely as the one before: codes of all lengths.
        Skewed,
        /// All bytes are as likely.
        Even(u8),
    }

    /// Bytes of a kind, in which a run of earlier ones is repeated `repeats` times.
    fn bytes(kind: Kind, length: usize, repeats: usize, seed: u64) -> Vec<u8> {
        let mut numbers = numbers(seed);
        let mut next = || numbers.next().unwrap();
        let mut bytes = Vec::with_capacity(length + 4);
        while bytes.len() < length {
            match kind {
                Kind::Floats => {
                    let sample = next() as u32 as f32 / u32::MAX as f32 * 15.0 + 1.0;
                    bytes.extend(sample.to_le_bytes());
                }
                Kind::Skewed => bytes.push((next().trailing_zeros() as u8).wrapping_mul(37)),
                Kind::Even(most) => bytes.push((next() % (u64::from(most) + 1)) as u8),
            }
        }
        bytes.truncate(length);
        for _ in 0..repeats {
            let run = 3 + next() as usize % 300;
            let from = next() as usize % length.saturating_sub(2 * run).max(1);
            let to = from + run + next() as usize % length.saturating_sub(from + 2 * run).max(1);
            if to + run <= length {
                bytes.copy_within(from..from + run, to);
            }
        }
        bytes
    }

    fn compressed(bytes: &[u8], level: u32) -> Vec<u8> {
        let mut encoder = ZlibEncoder::new(Vec::new(), Compression::new(level));
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    /// Decodes deflate data without a checksum, whatever they are: the number of their bytes.
    fn ours(stored: &[u8], out: &mut [u8]) -> Option<usize> {
        let mut output = Output { bytes: out, filled: 0, matches: 0 };
        Decoder::new().deflate(stored, 0, &mut output)?;
        Some(output.filled)
    }

    fn kinds() -> impl Strategy<Value = Kind> {
        prop_oneof![Just(Kind::Floats), Just(Kind::Skewed), any::<u8>().prop_map(Kind::Even)]
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(96))]

        #[test]
        fn streams_are_decoded_as_by_libdeflate(
            kind in kinds(), length in 0usize..200_000, repeats in 0usize..100, seed: u64, level in 0u32..10,
        ) {
            let bytes = bytes(kind, length, repeats, seed);
            let stream = compressed(&bytes, level);
            let mut out = vec![1; length];
            if decode_literals(&stream, &mut out) {
                prop_assert_eq!(&out, &bytes);
            }
            prop_assert!(!decode_literals(&stream, &mut vec![1; length + 1]));
            if length > 0 {
                prop_assert!(!decode_literals(&stream, &mut vec![1; length - 1]));
            }
        }

        #[test]
        fn damaged_data_are_decoded_as_by_libdeflate_or_not_at_all(
            kind in kinds(), length in 3000usize..60_000, repeats in 0usize..20, seed: u64, level in 1u32..10,
            changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..3),
            cut in prop::option::of(any::<prop::sample::Index>()),
        ) {
            let stream = compressed(&bytes(kind, length, repeats, seed), level);
            let mut data = stream[2..stream.len() - 4].to_vec();
            for (at, value) in changes {
                let at = at.index(data.len());
                data[at] = value;
            }
            if let Some(cut) = cut {
                data.truncate(cut.index(data.len() + 1));
            }
            // changes may make it longer
            let room = 2 * length;
            let (mut out, mut expected) = (vec![1; room], vec![2; room]);
            let wanted = Decompressor::new().deflate_decompress(&data, &mut expected).ok();
            if let Some(filled) = ours(&data, &mut out) {
                prop_assert_eq!(Some(filled), wanted);
                prop_assert_eq!(&out[..filled], &expected[..filled]);
            }
        }
    }

    #[test]
    fn samples_are_decoded_here_and_text_is_not() {
        for level in [1, 6, 9] {
            for length in [4000, 40_000, 1 << 20] {
                for kind in [Kind::Floats, Kind::Even(200), Kind::Even(255)] {
                    let samples = bytes(kind, length, 20, 3);
                    let mut out = vec![0; length];
                    assert!(
                        decode_literals(&compressed(&samples, level), &mut out) && out == samples,
                        "{kind:?} {level} {length}"
                    );
                }
            }
            let words = ["seismic ", "volume ", "brick ", "layer ", "sample "];
            let text: Vec<u8> = numbers(5).take(40_000).flat_map(|n| words[n as usize % words.len()].bytes()).collect();
            assert!(!decode_literals(&compressed(&text, level), &mut vec![0; text.len()]));
        }
    }

    #[test]
    fn a_checksum_or_header_that_is_wrong_is_found() {
        let samples = bytes(Kind::Floats, 30_000, 0, 9);
        let stream = compressed(&samples, 6);
        let mut out = vec![0; samples.len()];
        assert!(decode_literals(&stream, &mut out));
        // bytes behind the stream belong to others
        assert!(decode_literals(&[&stream[..], &[1, 2, 3]].concat(), &mut out));
        for (at, bits) in [(0, 1), (0, 0x80), (1, 0x20), (1, 1), (stream.len() - 1, 1), (stream.len() - 4, 0x80)] {
            let mut changed = stream.clone();
            changed[at] ^= bits;
            assert!(!decode_literals(&changed, &mut out), "{at}");
        }
        for cut in 1..9 {
            assert!(!decode_literals(&stream[..stream.len() - cut], &mut out));
        }
    }

    #[test]
    fn streams_of_short_blocks_are_left_to_others() {
        // blocks of 10 bits: their kind, and their end
        let mut data = vec![0; 5000];
        for block in 0..data.len() * 8 / 10 {
            data[(10 * block + 1) / 8] |= 1 << ((10 * block + 1) % 8);
        }
        let last = data.len() * 8 / 10 - 1;
        data[10 * last / 8] |= 1 << (10 * last % 8);
        assert_eq!(Decompressor::new().deflate_decompress(&data, &mut [0; 10]), Ok(0));
        assert_eq!(ours(&data, &mut []), None);
        // as many as are few
        data.drain(..5 * (last / 4));
        assert_eq!(ours(&data, &mut []), Some(0));
    }

    #[test]
    fn too_few_and_too_many_bytes_are_errors() {
        let stream = compressed(&[7; 100], 6);
        assert!(decode(&stream, &mut [0; 99]).unwrap_err().ends_with("more than the expected 99 bytes"));
        assert!(decode(&stream, &mut [0; 101]).unwrap_err().ends_with("holds 100 bytes, expected 101"));
        let mut changed = stream.clone();
        *changed.last_mut().unwrap() ^= 1;
        for damaged in [&stream[..stream.len() - 1], &[], &[1; 50], &changed] {
            assert_eq!(decode(damaged, &mut [0; 100]), Err("its zlib stream is damaged or cut off".into()));
        }
        assert_eq!(decode(&[stream, vec![1, 2, 3]].concat(), &mut [0; 100]), Ok(()));
    }

    proptest! {
        #[test]
        fn decoding_restores_what_was_encoded(data in prop::collection::vec(0u8..5, 0..3000), level in 0u32..10) {
            let mut out = vec![9; data.len()];
            prop_assert_eq!(decode(&compressed(&data, level), &mut out), Ok(()));
            prop_assert_eq!(out, data);
        }

        #[test]
        fn arbitrary_bytes_never_panic(stored in prop::collection::vec(any::<u8>(), 0..100), size in 0usize..100) {
            let _ = decode(&[&[0x78, 0x9c], &stored[..]].concat(), &mut vec![0; size]);
        }
    }

    #[test]
    fn lengths_and_distances_are_those_of_the_standard() {
        assert_eq!(
            LENGTHS[..10].iter().map(|(least, _)| *least).collect::<Vec<_>>(),
            [3, 4, 5, 6, 7, 8, 9, 10, 11, 13]
        );
        assert_eq!((LENGTHS[20], LENGTHS[24], LENGTHS[27], LENGTHS[28]), ((67, 4), (131, 5), (227, 5), (258, 0)));
        assert_eq!(DISTANCES[..6], [(1, 0), (2, 0), (3, 0), (4, 0), (5, 1), (7, 1)]);
        assert_eq!((DISTANCES[16], DISTANCES[29]), ((257, 7), (24577, 13)));
    }

    fn code<const SIZE: usize>(lengths: &[u8]) -> Option<PrefixCode<SIZE>> {
        let mut code = PrefixCode::new();
        // as after another block
        code.set(&[1, 1]).unwrap();
        code.set(lengths).map(|()| code)
    }

    #[test]
    fn symbols_have_the_codes_of_the_standard() {
        // RFC 1951, 3.2.2: A to H have these lengths, and these codes
        let lengths = [3, 3, 3, 3, 3, 2, 4, 4];
        let codes = ["010", "011", "100", "101", "110", "00", "1110", "1111"];
        let (short, long) = (code::<4>(&lengths).unwrap(), code::<128>(&lengths).unwrap());
        for (symbol, text) in (0..).zip(codes) {
            for behind in [0, 0b1010_1010, u64::MAX >> 8] {
                let bits = text.bytes().rev().fold(behind, |word, bit| word << 1 | u64::from(bit == b'1'));
                assert_eq!(short.symbol(bits), (symbol, text.len()), "{text}");
                assert_eq!(long.symbol(bits), (symbol, text.len()), "{text}");
            }
        }
    }

    #[test]
    fn literals_are_told_from_other_symbols_by_their_entries() {
        let lengths: Vec<u8> = (0..286).map(|symbol| if symbol < 226 { 8 } else { 9 }).collect();
        let code = code::<2048>(&lengths).unwrap();
        let mut seen = [0; 286];
        for word in 0..1 << 9 {
            let (entry, (symbol, length)) = (code.entry(word), code.symbol(word));
            assert_eq!(entry & NOT_LITERAL == 0, symbol < 256);
            assert_eq!(
                (length, literal_length(entry) & 15),
                (usize::from(lengths[usize::from(symbol)]), length as u32)
            );
            seen[usize::from(symbol)] += 1;
        }
        assert!(seen.iter().zip(lengths).all(|(seen, length)| *seen == 1 << (9 - length)));
    }

    #[test]
    fn codes_that_are_not_complete_are_refused() {
        for lengths in [&[][..], &[0; 30], &[1], &[1, 2], &[1, 1, 1], &[1, 2, 3, 4], &[16, 1, 1], &[2, 2, 2, 1, 1]] {
            assert!(code::<128>(lengths).is_none(), "{lengths:?}");
        }
        let longest: Vec<u8> = (1..=15).chain([15]).collect();
        let code = code::<128>(&longest).unwrap();
        assert_eq!((code.symbol(u64::MAX), code.symbol(u64::MAX >> 1 & !(1 << 14))), ((15, 15), (14, 15)));
        assert_eq!((code.symbol(0b1011_1111_1111), code.symbol(0)), ((10, 11), (0, 1)));
    }
}
