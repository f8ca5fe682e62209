//! The coefficients of blocks of 4 x 4: planes are added to lanes of 16 bits, one for each coefficient in its place.

use super::order::SQUARE;
use super::scalar::Int;

/// Coefficients of a block.
const COUNT: usize = 16;

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
