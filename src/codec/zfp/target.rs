//! Where the samples of one block go.

use super::scalar::Int;

/// The part of an array that a block covers.
pub(super) struct Target<'a> {
    pub out: &'a mut [u8],
    /// The place of the block's first sample.
    pub first: isize,
    /// The distances of neighbours along each axis, the fastest first, as places in samples.
    pub steps: [isize; 4],
    /// How many of the block's samples along each axis are within the array.
    pub extents: [usize; 4],
    /// Whether all samples of the block are within the array, in rows without gaps.
    pub is_whole: bool,
}

impl<'a> Target<'a> {
    /// Returns the rows of a block that is whole, in an array with samples of `size` bytes.
    #[inline(always)]
    pub(super) fn rows(self, size: usize) -> Option<Rows<'a>> {
        let [_, steps @ ..] = self.steps.map(|step| (step as usize).wrapping_mul(size));
        let last = self.out.len().checked_sub(4 * size)?;
        Some(Rows { out: self.out, first: (self.first as usize).wrapping_mul(size), last, steps })
    }

    /// Writes the samples that are within the array.
    #[inline(always)]
    pub(super) fn put<I: Int, const N: usize>(self, block: &[I; N]) {
        let samples = block.as_chunks().0.iter().enumerate();
        if self.is_whole {
            if let Some(mut rows) = self.rows(I::BYTES) {
                samples.for_each(|(row, samples)| I::put_row(samples, rows.row(row)));
            }
            return;
        }
        let [mx, my, mz, mw] = self.extents;
        for (row, samples) in samples.filter(|(row, _)| row % 4 < my && row / 4 % 4 < mz && row / 16 < mw) {
            let [step, y, z, w] = self.steps;
            let [along_y, along_z, along_w] = [row % 4, row / 4 % 4, row / 16].map(|n| n as isize);
            // `Strides::room` has checked the largest and the smallest of these sums
            let first = self.first + along_y * y + along_z * z + along_w * w;
            for (x, sample) in samples.iter().take(mx).enumerate() {
                let at = (first + x as isize * step) as usize * I::BYTES;
                sample.put(self.out.get_mut(at..).unwrap_or_default());
            }
        }
    }
}

/// The rows of a whole block.
pub(super) struct Rows<'a> {
    out: &'a mut [u8],
    /// The byte of the block's first sample.
    first: usize,
    /// The byte of the last row that is within `out`.
    last: usize,
    /// The distances of neighbours along all axes but the fastest, in bytes.
    steps: [usize; 3],
}

impl Rows<'_> {
    /// Returns the bytes from row `row` of the block on. All rows are within `out`.
    #[inline(always)]
    pub(super) fn row(&mut self, row: usize) -> Option<&mut [u8]> {
        let [y, z, w] = self.steps;
        let [along_y, along_z, along_w] = [row % 4, row / 4 % 4, row / 16];
        // steps can be negative
        let at = [along_y.wrapping_mul(y), along_z.wrapping_mul(z), along_w.wrapping_mul(w)]
            .into_iter()
            .fold(self.first, usize::wrapping_add);
        // one comparison a row
        if at > self.last { None } else { self.out.get_mut(at..) }
    }
}
