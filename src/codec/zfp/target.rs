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
}

impl Target<'_> {
    /// Returns whether all `N` samples of the block are within the array, in rows without gaps.
    #[inline(always)]
    pub(super) fn has_whole_rows<const N: usize>(&self) -> bool {
        self.steps[0] == 1 && self.extents.iter().product::<usize>() == N
    }

    /// Returns the bytes from row `row` of the block on. All rows that are within the array are within `out`.
    #[inline(always)]
    pub(super) fn row<I: Int>(&mut self, row: usize) -> &mut [u8] {
        let [_, y, z, w] = self.steps;
        let [along_y, along_z, along_w] = [row % 4, row / 4 % 4, row / 16].map(|n| n as isize);
        // `Strides::room` has checked the largest and the smallest of these sums
        let at = self.first + along_y * y + along_z * z + along_w * w;
        self.out.get_mut(at as usize * I::BYTES..).unwrap_or_default()
    }

    /// Writes the samples that are within the array.
    #[inline(always)]
    pub(super) fn put<I: Int, const N: usize>(&mut self, block: &[I; N]) {
        let rows = block.as_chunks().0.iter().enumerate();
        if self.has_whole_rows::<N>() {
            rows.for_each(|(row, samples)| I::put_row(samples, self.row::<I>(row)));
            return;
        }
        let [mx, my, mz, mw] = self.extents;
        for (row, samples) in rows.filter(|(row, _)| row % 4 < my && row / 4 % 4 < mz && row / 16 < mw) {
            let step = self.steps[0];
            for (x, sample) in samples.iter().take(mx).enumerate() {
                self.first += x as isize * step;
                sample.put(self.row::<I>(row));
                self.first -= x as isize * step;
            }
        }
    }
}
