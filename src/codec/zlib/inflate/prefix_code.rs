//! Prefix codes of deflate (RFC 1951, 3.2.2): each symbol has a code of 1 to 15 bits, and lengths alone say which.

/// The longest code, in bits.
const LONGEST: usize = 15;
/// The most symbols of a code.
const MOST_SYMBOLS: usize = 288;

/// What the next bits of the data stand for, as far as the table tells: bits 0 to 3 are the length of the symbol's
/// code, or zero if it is longer than the table's index; bit 6 says that the symbol is not a literal; bits 8 to 15 are
/// those of the symbol.
pub(crate) type Entry = u16;

/// Set in entries of symbols from 256 on, and of codes longer than the table's index.
pub(crate) const NOT_LITERAL: Entry = 1 << 6;

/// Returns the length of the code of a literal.
#[inline(always)]
pub(crate) fn literal_length(entry: Entry) -> u32 {
    u32::from(entry) & 63
}

/// A prefix code, with a table of `SIZE` entries, a power of two. The index is the next bits of the data.
pub(crate) struct PrefixCode<const SIZE: usize> {
    table: [Entry; SIZE],
    /// How many codes have each length.
    counts: [u16; LONGEST + 1],
    /// By their codes.
    symbols: [u16; MOST_SYMBOLS],
}

impl<const SIZE: usize> PrefixCode<SIZE> {
    const INDEX_BITS: usize = SIZE.trailing_zeros() as usize;

    /// A code without symbols, until [`set`](Self::set) is called.
    pub(crate) fn new() -> Self {
        Self { table: [NOT_LITERAL; SIZE], counts: [0; LONGEST + 1], symbols: [0; MOST_SYMBOLS] }
    }

    /// Makes it the code whose symbols have these lengths; those of length 0 do not occur. `None` if there are too many
    /// codes, or bits that stand for no symbol: the code is unspecified then.
    pub(crate) fn set(&mut self, lengths: &[u8]) -> Option<()> {
        let mut counts = [0; LONGEST + 1];
        for length in lengths {
            *counts.get_mut(usize::from(*length))? += 1;
        }
        counts[0] = 0;
        let used: u32 = (1..=LONGEST).map(|length| u32::from(counts[length]) << (LONGEST - length)).sum();
        if used != 1 << LONGEST || lengths.len() > MOST_SYMBOLS {
            return None;
        }
        let mut next = [0; LONGEST + 1];
        for length in 1..LONGEST {
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

    /// Returns what the table says about the next bits.
    #[inline(always)]
    pub(crate) fn entry(&self, word: u64) -> Entry {
        self.table[word as usize & (SIZE - 1)]
    }

    /// Returns the symbol that the next bits stand for, and the length of its code.
    #[inline]
    pub(crate) fn symbol(&self, word: u64) -> (u16, usize) {
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
        for length in 1..=LONGEST {
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
    use super::*;

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
