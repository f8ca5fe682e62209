//! All blocks of a stream, one after the other, whatever they are decoded with.

use super::bits::Stream;
use super::block::Block;
use super::header::Header;
use super::planes::Planes;
use super::scalar::Int;
use super::target::Target;

/// A stream and where its samples go, checked.
pub(super) struct Job<'a> {
    pub stream: Stream<'a>,
    pub header: &'a Header,
    /// The place of the first sample.
    pub start: isize,
    /// The distances of neighbours along each axis, the fastest first, as places in samples.
    pub steps: [isize; 4],
}

impl Job<'_> {
    /// Calls `decode` for each block, which returns the number of bits that the block takes, and returns the bit behind
    /// the last one. Ends early behind the end of the stream.
    #[inline(always)]
    pub(super) fn blocks<const N: usize>(
        &self,
        out: &mut [u8],
        mut decode: impl FnMut(Block<'_>, &mut Planes, Target<'_>) -> u64,
    ) -> u64 {
        let Header { scalar, params, .. } = self.header;
        let [nx, ny, nz, nw] = self.header.shape.map(|extent| extent as usize);
        let [step_x, step_y, step_z, step_w] = self.steps;
        let fixed = params.fixed_length(*scalar);
        let starts = |extent: usize| (0..extent).step_by(4);
        let mut planes: Planes = [[0; 64]; 4];
        let mut at = self.header.bits;
        for w in starts(nw) {
            for z in starts(nz) {
                for y in starts(ny) {
                    let rows = [(ny - y).min(4), (nz - z).min(4), (nw - w).min(4)];
                    let has_rows = step_x == 1 && 4 * rows.iter().product::<usize>() == N;
                    // `Strides::room` has checked the largest and the smallest of these sums
                    let mut first = self.start + y as isize * step_y + z as isize * step_z + w as isize * step_w;
                    for x in starts(nx) {
                        let Some(window) = self.stream.window(at) else { return at };
                        let block = Block { window, start: (at & 7) as usize, scalar: *scalar, params };
                        let line = (nx - x).min(4);
                        let is_whole = has_rows && line == 4;
                        let extents = [line, rows[0], rows[1], rows[2]];
                        let bits =
                            decode(block, &mut planes, Target { out, first, steps: self.steps, extents, is_whole });
                        at = match fixed.map(|length| at.checked_add(length)) {
                            // a branch, and no choice of a number: so the processor begins the next block before it
                            // knows where this one ends
                            Some(None) => return u64::MAX,
                            Some(Some(next)) => next,
                            None => at.saturating_add(bits),
                        };
                        // beyond the last sample in a line behind its end alone, where nothing is written
                        first = first.wrapping_add(step_x.wrapping_mul(4));
                    }
                }
            }
        }
        at
    }

    /// Decodes the blocks with the instructions that every machine has, as [`blocks`](Self::blocks) does.
    pub(super) fn run<I: Int, const N: usize>(&self, out: &mut [u8]) -> u64 {
        self.blocks::<N>(out, |block, planes, target| block.decode::<I, N>(planes, target))
    }
}
