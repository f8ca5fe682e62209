//! The bit planes of blocks of four coefficients. Planes are so short that a table has them, and all bits of the four
//! coefficients so few that they stay in registers.

use super::bits::Window;
use super::planes::{Extent, MOST, Start, leading};
use super::scalar::Int;

/// Coefficients of a block.
const COUNT: usize = 4;
/// The longest plane in bits.
const LONGEST: usize = 7;
/// The lowest bit of each of four lanes of 16 bits, one for each coefficient.
const LANES: u64 = 0x0001_0001_0001_0001;

/// Reads the planes of a block from bit `at` on, and returns the coefficients and the bit behind the planes.
#[inline(always)]
pub(super) fn read<I: Int>(window: Window<'_>, at: usize, extent: Extent) -> ([I; COUNT], usize) {
    let Start { plane: top, place, mut bits, mut left } = leading(window, at, extent);
    // four lanes of the first 16 planes, of the next ones and so on; the first plane of all is at the top of its lane
    let mut lanes = [0u64; 4];
    let (mut at, mut budget, mut known) = (place.at, place.budget, 0);
    let (mut plane, planes) = (0, top - extent.low);
    while plane < planes && known < KNOWN_ALL {
        if left < LONGEST {
            (bits, left) = (window.some(at), MOST);
        }
        let entry = TABLE[(known | bits as usize & 127) & 511];
        let length = (entry & 7) as usize;
        let lane = &mut lanes[plane >> 4 & 3];
        let shift = !plane & 15;
        plane += 1;
        if length > budget {
            let cut = CUT[(known | 1 << (budget & 7) | bits as usize & ((1 << (budget & 7)) - 1)) & 511];
            *lane |= ((u64::from(cut) * 0x2000_4000_8001) & LANES) << shift;
            at += budget;
            budget = 0;
            break;
        }
        *lane |= (entry >> 8 & LANES) << shift;
        bits >>= length;
        left -= length;
        at += length;
        budget -= length;
        known = (entry >> 10) as usize & KNOWN_MASK;
    }
    // all coefficients are known: up to 16 planes of four bits at a time
    let end = at + budget.min(COUNT * (planes - plane));
    while at < end {
        let count = (16 - (plane & 15)).min((end - at).div_ceil(COUNT));
        let length = (COUNT * count).min(end - at);
        let bits = window.word(at) << (64 - length) >> (64 - length);
        lanes[plane >> 4 & 3] |= turned(bits.reverse_bits()) >> (plane & 15);
        plane += count;
        at += length;
    }
    let coefficient = |coefficient: usize| {
        let lane = |group: usize| match top.checked_sub(1 + 16 * group) {
            Some(highest) => lanes[group] >> (16 * coefficient) << 48 >> ((63 - highest) & 63),
            None => 0,
        };
        I::from_negabinary(match plane {
            0..=16 => lane(0),
            17..=32 => lane(0) | lane(1),
            _ => lane(0) | lane(1) | lane(2) | lane(3),
        })
    };
    ([coefficient(0), coefficient(1), coefficient(2), coefficient(3)], at)
}

/// Turns 16 x 4 bits, of which each row has the coefficients in descending order, to four lanes of 16.
#[inline(always)]
fn turned(rows: u64) -> u64 {
    let mut bits = rows;
    // each step exchanges two bits of the numbers of bits
    for (shift, mask) in [
        (30, 0x0000_0000_cccc_cccc),
        (15, 0x0000_aaaa_0000_aaaa),
        (6, 0x00cc_00cc_00cc_00cc),
        (3, 0x0a0a_0a0a_0a0a_0a0a),
    ] {
        let moved = (bits >> shift ^ bits) & mask;
        bits ^= moved ^ moved << shift;
    }
    // the last coefficient is in the lowest lane
    bits << 48 | bits << 16 & 0xffff_0000_0000 | bits >> 16 & 0xffff_0000 | bits >> 48
}

/// The number of known coefficients is kept as the place of its part of the tables.
const KNOWN_ALL: usize = COUNT << 7;
const KNOWN_MASK: usize = 7 << 7;

/// The planes by the number of known coefficients, below four, and the next seven bits. The lowest three bits are a
/// plane's length, those from 17 on the number of known coefficients behind it; of its own bits the first is bit 8, and
/// the others follow in steps of 16.
static TABLE: [u64; COUNT << 7] = {
    let mut table = [0; COUNT << 7];
    let mut at = 0;
    while at < table.len() {
        let Plane { word, length, known } = plane(at >> 7, at & 127, LONGEST);
        let mut entry = (length | known << 17) as u64;
        let mut bit = 0;
        while bit < COUNT {
            entry |= (word as u64 >> bit & 1) << (8 + 16 * bit);
            bit += 1;
        }
        table[at] = entry;
        at += 1;
    }
    table
};

/// The planes that a limit cuts, by the number of known coefficients and the bits that are left, with a one above them.
static CUT: [u8; COUNT << 7] = {
    let mut table = [0; COUNT << 7];
    let mut at = 0;
    while at < table.len() {
        let bits = at & 127;
        if bits > 0 {
            let left = bits.ilog2() as usize;
            table[at] = plane(at >> 7, bits ^ 1 << left, left).word as u8;
        }
        at += 1;
    }
    table
};

struct Plane {
    word: usize,
    length: usize,
    known: usize,
}

/// Reads a plane from the lowest bits of `bits`, of which `left` may be read.
const fn plane(mut known: usize, bits: usize, left: usize) -> Plane {
    let mut at = if known < left { known } else { left };
    let mut word = bits & ((1 << at) - 1);
    while known < COUNT && at < left {
        at += 1;
        if bits >> (at - 1) & 1 == 0 {
            break;
        }
        while known < COUNT - 1 && at < left {
            at += 1;
            if bits >> (at - 1) & 1 == 1 {
                break;
            }
            known += 1;
        }
        word |= 1 << known;
        known += 1;
    }
    Plane { word, length: at, known }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codec::zfp::bits::Stream;
    use crate::codec::zfp::planes::{self, Place, one};

    #[test]
    fn the_tables_have_every_plane_and_every_cut_one() {
        for known in 0..COUNT {
            for bits in 0..128usize {
                let stream = [bits as u8; 1];
                let stream = Stream::new(&stream);
                let window = stream.window(0).unwrap();
                for budget in 0..=LONGEST {
                    let mut word = [0];
                    let place = one::<COUNT, 1>(window, Place { at: 0, known, budget }, &mut word);
                    let entry = TABLE[known << 7 | bits];
                    let length = (entry & 7) as usize;
                    if length <= budget {
                        let spread = (0..COUNT).map(|bit| (word[0] >> bit & 1) << (16 * bit)).sum::<u64>();
                        assert_eq!((place.at, entry >> 8 & LANES), (length, spread), "{known} {bits:b} {budget}");
                        assert_eq!((entry >> 10) as usize & KNOWN_MASK, place.known << 7, "{known} {bits:b}");
                    } else {
                        let cut = CUT[known << 7 | 1 << budget | bits & ((1 << budget) - 1)];
                        assert_eq!((place.at, u64::from(cut)), (budget, word[0]), "{known} {bits:b} {budget}");
                    }
                }
            }
        }
    }

    #[test]
    fn planes_that_a_read_ends_in_are_read_again() {
        let (mut state, mut longest) = (1u64, 0);
        for round in 0..20_000 {
            let mut next = || {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                state >> 16 | state << 20
            };
            // planes without ones first, so that the first long one lies anywhere in a read
            let first = next() << (round / 8 % 64);
            let bytes: Vec<u8> =
                [first, next(), next(), next(), next()].into_iter().flat_map(u64::to_le_bytes).collect();
            let stream = Stream::new(&bytes);
            let (window, at) = (stream.window(0).unwrap(), round % 8);
            let extent = Extent { budget: 300, top: 64, low: 0 };
            let mut words = [0u64; COUNT];
            let mut put = |plane: usize, [word]: [u64; 1]| {
                words.iter_mut().enumerate().for_each(|(bit, to)| *to |= (word >> bit & 1) << plane);
            };
            let end = planes::read::<COUNT, 1>(window, &leading(window, at, extent), 0, &mut put).1.at;
            assert_eq!(read::<i64>(window, at, extent), (words.map(i64::from_negabinary), end), "{round}");
            longest = longest.max(end);
        }
        assert!(longest > 200);
    }

    #[test]
    fn rows_of_bits_become_lanes() {
        for row in 0..16 {
            for coefficient in 0..COUNT {
                // the first row of the stream is at the top, and its first coefficient as well
                let bit = (1u64 << (COUNT * row + coefficient)).reverse_bits();
                assert_eq!(turned(bit), 1 << (16 * coefficient + 15 - row), "{row} {coefficient}");
            }
        }
    }
}
