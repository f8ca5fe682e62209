//! The header of a block with codes of its own (RFC 1951, 3.2.7): the lengths of the codes, run-length coded and coded
//! again.

use super::bits::word_or_zeros;
use super::symbol::Codes;

/// The order in which the lengths of the code length code are stored.
const ORDER: [usize; 19] = [16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15];
/// The most symbols of the two codes.
const MOST_LITERALS: usize = 286;
const MOST_DISTANCES: usize = 30;

/// Reads the codes of a header, and returns the place behind it. `None` if it is not valid, or one of its codes is not
/// complete, which zlib and libdeflate do not write.
pub(crate) fn read(stored: &[u8], mut at: usize, codes: &mut Codes) -> Option<usize> {
    let mut take = |bits: usize| {
        let value = word_or_zeros(stored, at) as usize & ((1 << bits) - 1);
        at += bits;
        value
    };
    let (literals, distances, own) = (257 + take(5), 1 + take(5), 4 + take(4));
    let mut own_lengths = [0; ORDER.len()];
    for symbol in ORDER.iter().take(own) {
        own_lengths[*symbol] = take(3) as u8;
    }
    codes.code_lengths.set(&own_lengths)?;
    let all = literals + distances;
    if literals > MOST_LITERALS || distances > MOST_DISTANCES {
        return None;
    }
    let mut lengths = [0; MOST_LITERALS + MOST_DISTANCES];
    let mut filled = 0;
    while filled < all {
        let word = word_or_zeros(stored, at);
        let (symbol, bits) = codes.code_lengths.symbol(word);
        let word = word as usize >> bits;
        at += bits;
        let (length, times, extra) = match symbol {
            ..16 => (symbol as u8, 1, 0),
            16 => (lengths[filled.checked_sub(1)?], 3 + (word & 3), 2),
            17 => (0, 3 + (word & 7), 3),
            _ => (0, 11 + (word & 127), 7),
        };
        at += extra;
        lengths[..all].get_mut(filled..filled + times)?.fill(length);
        filled += times;
    }
    let (literals, distances) = lengths[..all].split_at(literals);
    codes.literals.set(literals)?;
    codes.distances.set(distances)?;
    Some(at)
}
