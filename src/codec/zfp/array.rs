//! All blocks of a stream, one after the other, into an array.

use std::sync::LazyLock;

use super::bits::Stream;
use super::block::Block;
use super::error::ZfpError;
use super::header::Header;
use super::planes::Planes;
use super::scalar::{Int, Scalar};
use super::target::Target;
use super::wide::Wide;

/// Where the samples of an array lie: that of the first one, and the distances of neighbours along each axis, the
/// fastest first. All in samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Strides {
    /// Where the first sample is.
    pub start: usize,
    /// The distances, which may be negative.
    pub steps: [isize; 4],
}

impl Strides {
    /// Returns the strides of samples that lie one behind the other, without gaps.
    #[must_use]
    pub fn dense(shape: [u64; 4]) -> Self {
        let mut step = 1isize;
        let steps = shape.map(|extent| {
            let this = step;
            step = step.saturating_mul(isize::try_from(extent).unwrap_or(isize::MAX));
            this
        });
        Self { start: 0, steps }
    }

    /// Returns the number of samples up to the last one, `None` if one of them lies before the first, or nowhere.
    fn room(&self, shape: [u64; 4]) -> Option<u64> {
        let (mut least, mut most) = (i64::try_from(self.start).ok()?, i64::try_from(self.start).ok()?);
        for (extent, step) in shape.iter().zip(self.steps) {
            let span = i64::try_from(extent.checked_sub(1)?).ok()?.checked_mul(i64::try_from(step).ok()?)?;
            (least, most) = (least.checked_add(span.min(0))?, most.checked_add(span.max(0))?);
        }
        u64::try_from(least).ok()?;
        u64::try_from(most).ok()?.checked_add(1)
    }
}

/// The instructions that blocks are decoded with.
#[derive(Clone, Copy, Debug)]
pub enum Instructions {
    /// Those that every machine has.
    Portable,
    /// Those of newer ones.
    Wide(Wide),
}

impl Instructions {
    /// Returns the fastest that this machine has.
    #[must_use]
    pub fn best() -> Self {
        // asking the processor takes long under a hypervisor
        static BEST: LazyLock<Instructions> =
            LazyLock::new(|| Wide::detect().map_or(Instructions::Portable, Instructions::Wide));
        *BEST
    }
}

/// Decodes the blocks of a stream of samples in native byte order, and returns how many bytes of the stream they take,
/// in whole words of 64 bits as libzfp counts. Samples that `strides` skip are left as they are.
///
/// # Errors
/// [`ZfpError`] if `out` has no room for them, or the stream none for its blocks.
pub fn decode_blocks(
    stream: &[u8],
    header: &Header,
    strides: &Strides,
    out: &mut [u8],
    instructions: Instructions,
) -> Result<usize, ZfpError> {
    header.check_length(stream.len())?;
    let wanted = strides.room(header.shape).map_or(u64::MAX, |n| n.saturating_mul(header.scalar.size() as u64));
    if wanted > out.len() as u64 {
        return Err(ZfpError::Room { has: out.len(), wanted });
    }
    let job = Job { stream, header, strides, instructions };
    let bits = match (header.scalar, header.axes) {
        (Scalar::Int32 | Scalar::Float32, 1) => job.run::<i32, 4>(out),
        (Scalar::Int32 | Scalar::Float32, 2) => job.run::<i32, 16>(out),
        (Scalar::Int32 | Scalar::Float32, 3) => job.run::<i32, 64>(out),
        (Scalar::Int32 | Scalar::Float32, _) => job.run::<i32, 256>(out),
        (Scalar::Int64 | Scalar::Float64, 1) => job.run::<i64, 4>(out),
        (Scalar::Int64 | Scalar::Float64, 2) => job.run::<i64, 16>(out),
        (Scalar::Int64 | Scalar::Float64, 3) => job.run::<i64, 64>(out),
        (Scalar::Int64 | Scalar::Float64, _) => job.run::<i64, 256>(out),
    };
    let used = usize::try_from(bits.div_ceil(64).saturating_mul(8)).unwrap_or(usize::MAX);
    if used > stream.len() {
        return Err(ZfpError::Overrun { used, has: stream.len() });
    }
    Ok(used)
}

/// What [`decode_blocks`] was asked for, checked.
struct Job<'a> {
    stream: &'a [u8],
    header: &'a Header,
    strides: &'a Strides,
    instructions: Instructions,
}

impl Job<'_> {
    /// Decodes the blocks and returns the bit behind the last one. Ends early behind the end of the stream.
    fn run<I: Int, const N: usize>(&self, out: &mut [u8]) -> u64 {
        let header = self.header;
        let stream = Stream::new(self.stream);
        let [nx, ny, nz, nw] = header.shape.map(|extent| extent as usize);
        let mut planes: Planes = [[0; 64]; 4];
        let mut at = header.bits;
        let steps = |extent: usize| (0..extent).step_by(4);
        for w in steps(nw) {
            for z in steps(nz) {
                for y in steps(ny) {
                    for x in steps(nx) {
                        let Some(window) = stream.window(at) else { return at };
                        let block =
                            Block { window, start: (at & 7) as usize, scalar: header.scalar, params: &header.params };
                        let target = self.target([x, y, z, w], out);
                        let bits = match self.instructions {
                            Instructions::Portable => block.decode::<I, N>(&mut planes, target),
                            Instructions::Wide(wide) => wide.decode::<I, N>(block, &mut planes, target),
                        };
                        at = at.saturating_add(bits);
                    }
                }
            }
        }
        at
    }

    /// Returns where the block goes whose first sample is at `at`.
    #[inline(always)]
    fn target<'b>(&self, at: [usize; 4], out: &'b mut [u8]) -> Target<'b> {
        let steps = self.strides.steps;
        // `Strides::room` has checked the largest and the smallest of these sums
        let first = at.iter().zip(steps).fold(self.strides.start as isize, |sum, (n, step)| sum + *n as isize * step);
        let extents = [0, 1, 2, 3].map(|axis| (self.header.shape[axis] as usize - at[axis]).min(4));
        Target { out, first, steps, extents }
    }
}
