//! Blocks of 4 x 4: planes are added to lanes of 16 bits, one for each coefficient in its place.

use std::arch::x86_64::*;

use super::cube::{finished, numbers};
use super::registers::store;
use crate::codec::zfp::block::Content;
use crate::codec::zfp::scalar::Int;
use crate::codec::zfp::square::BITS;
use crate::codec::zfp::target::Target;

/// The coefficients of a block in base -2: the planes 0 to 15, 16 to 31 and so on.
pub(super) struct Square([__m256i; 4]);

impl Square {
    #[inline]
    #[target_feature(enable = "avx2")]
    pub(super) fn new() -> Self {
        Self([_mm256_setzero_si256(); 4])
    }

    /// Adds a plane.
    #[inline]
    #[target_feature(enable = "avx2")]
    pub(super) fn put(&mut self, plane: usize, word: u64) {
        let [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p] = BITS.map(u16::cast_signed);
        let bits = _mm256_setr_epi16(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p);
        let is_one = _mm256_cmpeq_epi16(_mm256_and_si256(_mm256_set1_epi16(word as i16), bits), bits);
        let lanes = &mut self.0[plane >> 4 & 3];
        *lanes = _mm256_or_si256(*lanes, _mm256_and_si256(is_one, _mm256_set1_epi16(1 << (plane & 15))));
    }

    /// Writes the samples of a block of 32 bits.
    #[inline]
    #[target_feature(enable = "avx2")]
    pub(super) fn finish(self, content: Content, target: Target<'_>) {
        let [first, second, ..] = self.0;
        // a register has two rows; of those that follow the lower half counts
        let x = numbers(_mm256_unpacklo_epi16(first, second));
        let y = numbers(_mm256_unpackhi_epi16(first, second));
        let [z, w] = [x, y].map(|rows| _mm256_permute2x128_si256::<0x11>(rows, rows));
        let rows = finished([x, y, z, w], content).map(|row| _mm256_castsi256_si128(row));
        if target.is_whole {
            if let Some(mut to) = target.rows(4) {
                let [x, y, z, w] = rows;
                store(to.row(0), x);
                store(to.row(1), y);
                store(to.row(2), z);
                store(to.row(3), w);
            }
            return;
        }
        let mut bytes = [0; 64];
        for (row, samples) in rows.into_iter().enumerate() {
            store(bytes.get_mut(16 * row..), samples);
        }
        let mut block = [0i32; 16];
        block.iter_mut().zip(bytes.as_chunks().0).for_each(|(to, bytes)| *to = i32::from_ne_bytes(*bytes));
        target.put(&block);
    }

    /// Returns the coefficients of 64 bits.
    #[inline]
    #[target_feature(enable = "avx2")]
    pub(super) fn coefficients<I: Int, const N: usize>(self) -> [I; N] {
        let [a, b, c, d] = self.0;
        let (low, high) = (_mm256_unpacklo_epi16(a, b), _mm256_unpackhi_epi16(a, b));
        let (more_low, more_high) = (_mm256_unpacklo_epi16(c, d), _mm256_unpackhi_epi16(c, d));
        let mut bytes = [0; 128];
        // a register has halves of two rows
        for (row, low, high) in [(0, low, more_low), (1, high, more_high)] {
            let (first, second) = (_mm256_unpacklo_epi32(low, high), _mm256_unpackhi_epi32(low, high));
            store(bytes.get_mut(32 * row..), _mm256_castsi256_si128(first));
            store(bytes.get_mut(32 * row + 16..), _mm256_castsi256_si128(second));
            store(bytes.get_mut(32 * row + 64..), _mm256_extracti128_si256::<1>(first));
            store(bytes.get_mut(32 * row + 80..), _mm256_extracti128_si256::<1>(second));
        }
        let mut block = [I::default(); N];
        for (to, bytes) in block.iter_mut().zip(bytes.as_chunks().0) {
            *to = I::from_negabinary(u64::from_ne_bytes(*bytes));
        }
        block
    }
}
