//! The symbols of a block (RFC 1951, 3.2.5): literals, matches, and its end.

use super::bits::word_or_zeros;
use super::prefix_code::PrefixCode;

/// The symbol at which a block ends; larger ones begin a match.
const END_OF_BLOCK: u16 = 256;

/// The shortest length that each symbol from 257 on stands for, and how many bits of it follow.
const LENGTHS: [(u16, u8); 29] = {
    let mut lengths = ranges(3, 4);
    // the longest length has a symbol of its own
    lengths[28] = (258, 0);
    lengths
};

/// The shortest distance that each symbol stands for, and how many bits of it follow.
const DISTANCES: [(u16, u8); 30] = ranges(1, 2);

/// Ranges of numbers, one behind the other from `first` on: the first of each, and its length in bits. The first two
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

/// The prefix codes of a block.
pub(crate) struct Codes {
    /// The code length code: of the lengths of the other two.
    pub code_lengths: PrefixCode<128>,
    /// The literal/length code: of literals, lengths of matches, and the end of the block.
    pub literals: PrefixCode<2048>,
    /// Of distances.
    pub distances: PrefixCode<256>,
}

/// A match: earlier output that is repeated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Match {
    /// Bytes that are repeated.
    pub length: u16,
    /// How many bytes before the end of the output they begin.
    pub distance: u16,
}

/// A symbol, with all that belongs to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Symbol {
    Literal(u8),
    Match(Match),
    EndOfBlock,
}

impl Codes {
    pub(crate) fn new() -> Self {
        Self { code_lengths: PrefixCode::new(), literals: PrefixCode::new(), distances: PrefixCode::new() }
    }

    /// Sets the codes that the standard fixes (RFC 1951, 3.2.6).
    pub(crate) fn set_fixed(&mut self) -> Option<()> {
        let mut literals = [8; 288];
        literals[144..256].fill(9);
        literals[256..280].fill(7);
        self.literals.set(&literals)?;
        self.distances.set(&[5; 32])
    }

    /// Decodes the symbol at a place, and returns it with the place after it, which may lie behind the end of the data.
    /// `None` if the symbol is not valid.
    #[inline]
    pub(crate) fn symbol(&self, stored: &[u8], at: usize) -> Option<(Symbol, usize)> {
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

/// Returns the number that a symbol and the bits behind it stand for, and how many bits these are.
#[inline]
fn with_extra_bits(table: &[(u16, u8)], symbol: u16, word: u64) -> Option<(u16, usize)> {
    let (least, extra) = *table.get(usize::from(symbol))?;
    Some((least + (word & ((1 << extra) - 1)) as u16, usize::from(extra)))
}

#[cfg(test)]
mod tests {
    use super::*;

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
}
