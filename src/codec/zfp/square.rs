//! The coefficients of blocks of 4 x 4: planes are added to lanes of 16 bits, one for each coefficient in its place.

use super::bits::Window;
use super::order::SQUARE;
use super::planes::{MOST, Place, Start};
use super::scalar::Int;

/// Coefficients of a block.
const COUNT: usize = 16;

/// The longest plane in bits: 16 tests, and a bit for each coefficient but the last.
const LONGEST: usize = 31;

const _: () = assert!(LONGEST < MOST);

/// For each place the bit of its coefficient in a plane.
pub(super) const BITS: [u16; COUNT] = {
    let mut bits = [0; COUNT];
    let mut at = 0;
    while at < COUNT {
        bits[SQUARE[at] as usize] = 1 << at;
        at += 1;
    }
    bits
};

/// Reads the planes of a block from `start` on, hands them to `put`, and returns the place behind them. A plane never
/// ends a read of bits, as longer ones can.
#[inline(always)]
pub(super) fn read(window: Window<'_>, start: &Start, low: usize, mut put: impl FnMut(usize, u64)) -> Place {
    let Start { mut plane, place: Place { mut at, mut known, mut budget }, mut bits, mut left } = *start;
    while plane > low && budget > 0 {
        plane -= 1;
        if left < LONGEST {
            (bits, left) = (window.some(at), MOST);
        }
        let mut taken = known.min(budget);
        let mut word = bits & ((1 << taken) - 1);
        let mut rest = bits >> taken;
        while known < COUNT && taken < budget {
            let is_any = rest & 1;
            (rest, taken) = (rest >> 1, taken + 1);
            if is_any == 0 {
                break;
            }
            let most = (COUNT - 1 - known).min(budget - taken);
            let zeros = (rest.trailing_zeros() as usize).min(most);
            // of the last coefficient, and where no bit is left, there is no one to be read
            let step = zeros + usize::from(zeros < most);
            (rest, taken, known) = (rest >> step, taken + step, known + zeros);
            word |= 1 << known;
            known += 1;
        }
        (bits, left) = (rest, left - taken);
        (at, budget) = (at + taken, budget - taken);
        put(plane, word);
    }
    Place { at, known, budget }
}

/// The coefficients of a block in base -2: the planes 0 to 15, 16 to 31 and so on.
pub(super) struct Square([[u16; COUNT]; 4]);

impl Square {
    #[inline(always)]
    pub(super) fn new() -> Self {
        Self([[0; COUNT]; 4])
    }

    /// Adds a plane.
    #[inline(always)]
    pub(super) fn put(&mut self, plane: usize, word: u64) {
        let (word, one) = (word as u16, 1 << (plane & 15));
        for (lane, bit) in self.0[plane >> 4 & 3].iter_mut().zip(BITS) {
            *lane |= if word & bit == 0 { 0 } else { one };
        }
    }

    /// Returns the coefficients in their places.
    #[inline(always)]
    pub(super) fn coefficients<I: Int, const N: usize>(&self) -> [I; N] {
        let mut block = [I::default(); N];
        block.iter_mut().enumerate().take(COUNT).for_each(|(place, to)| *to = self.coefficient(place));
        block
    }

    /// Returns the first four coefficients of the stream's order, the only ones of the corner of 2 x 2.
    #[inline(always)]
    pub(super) fn corner<I: Int>(&self) -> [[I; 2]; 2] {
        [[0, 1], [4, 5]].map(|row| row.map(|place| self.coefficient(place)))
    }

    #[inline(always)]
    fn coefficient<I: Int>(&self, place: usize) -> I {
        let lane = |group: usize| u64::from(self.0[group][place]) << (16 * group);
        I::from_negabinary(match I::BITS {
            32 => lane(0) | lane(1),
            _ => lane(0) | lane(1) | lane(2) | lane(3),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codec::zfp::bits::Stream;
    use crate::codec::zfp::planes::{self, Extent, leading};

    /// Compares with the reader of other blocks, and returns the place behind the planes.
    fn compared(window: Window<'_>, at: usize, extent: Extent) -> Place {
        let start = leading(window, at, extent);
        let (mut expected, mut found) = (Vec::new(), Vec::new());
        let mut put = |plane: usize, [word]: [u64; 1]| expected.push((plane, word));
        let place = planes::read::<COUNT, 1>(window, &start, extent.low, &mut put).1;
        let own = read(window, &start, extent.low, |plane, word| found.push((plane, word)));
        assert_eq!((own.at, own.known, own.budget), (place.at, place.known, place.budget), "{at}");
        assert_eq!(found, expected, "{at}");
        own
    }

    #[test]
    fn planes_are_read_as_those_of_other_blocks() {
        let (mut state, mut known, mut longest) = (1u64, [0; COUNT + 1], 0);
        for round in 0..40_000 {
            let mut next = || {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                state >> 16 | state << 20
            };
            // planes without ones first, so that the first long one lies anywhere in a read; ones are frequent or rare
            let first = next() << (round / 8 % 64);
            let mut rest = || if round % 2 == 0 { next() } else { next() & next() };
            let bytes: Vec<u8> =
                std::iter::once(first).chain((0..20).map(|_| rest())).flat_map(u64::to_le_bytes).collect();
            let budget = if round % 3 == 0 { round / 3 % 1200 } else { 1200 };
            let extent = Extent { budget, top: 64, low: round / 64 % 56 };
            let own = compared(Stream::new(&bytes).window(0).unwrap(), round % 8, extent);
            known[own.known] += 1;
            longest = longest.max(own.at);
        }
        assert!(longest > 900 && known.iter().all(|count| *count > 0), "{longest} {known:?}");
    }

    #[test]
    fn the_longest_planes_begin_anywhere_in_a_read() {
        // all tests are positive, and no run has zeros: 31 bits, behind any number of planes without ones
        for zeros in 0..64 {
            let bytes: Vec<u8> = [u64::MAX << zeros, u64::MAX, 5].into_iter().flat_map(u64::to_le_bytes).collect();
            for budget in [20, 60, 300] {
                compared(Stream::new(&bytes).window(0).unwrap(), 0, Extent { budget, top: 64, low: 0 });
            }
        }
    }
}
