//! A stream into an array: what is checked before, and which decoder takes it.

use std::sync::LazyLock;

use super::bits::Stream;
use super::error::ZfpError;
use super::header::Header;
use super::job::Job;
use super::scalar::{Int, Scalar};
use super::wide::Wide;

/// Where the samples of an array lie: that of the first one, and the distances of neighbours along each axis, the
/// fastest first. All in samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Strides {
    /// Where the first sample is.
    pub start: usize,
    /// The distances, which may be negative.
    pub steps: [isize; 4],
}

impl Strides {
    /// Returns the strides of samples that lie one behind the other, without gaps.
    pub(crate) fn dense(shape: [u64; 4]) -> Self {
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
pub(crate) enum Instructions {
    /// Those that every machine has.
    Portable,
    /// Those of newer ones.
    Wide(Wide),
}

impl Instructions {
    /// Returns the fastest that this machine has.
    pub(crate) fn best() -> Self {
        // asking the processor takes long under a hypervisor
        static BEST: LazyLock<Instructions> =
            LazyLock::new(|| Wide::detect().map_or(Instructions::Portable, Instructions::Wide));
        *BEST
    }
}

/// Decodes the blocks of a stream of samples in native byte order, and returns how many bytes of the stream they take,
/// in whole words of 64 bits as libzfp counts. Samples that `strides` skip are left as they are.
pub(crate) fn decode_blocks(
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
    let (start, steps) = (strides.start as isize, strides.steps);
    let job = Job { stream: Stream::new(stream), header, start, steps };
    let bits = match (header.scalar, header.axes) {
        (Scalar::Int32 | Scalar::Float32, 1) => run::<i32, 4>(&job, instructions, out),
        (Scalar::Int32 | Scalar::Float32, 2) => run::<i32, 16>(&job, instructions, out),
        (Scalar::Int32 | Scalar::Float32, 3) => run::<i32, 64>(&job, instructions, out),
        (Scalar::Int32 | Scalar::Float32, _) => run::<i32, 256>(&job, instructions, out),
        (Scalar::Int64 | Scalar::Float64, 1) => run::<i64, 4>(&job, instructions, out),
        (Scalar::Int64 | Scalar::Float64, 2) => run::<i64, 16>(&job, instructions, out),
        (Scalar::Int64 | Scalar::Float64, 3) => run::<i64, 64>(&job, instructions, out),
        (Scalar::Int64 | Scalar::Float64, _) => run::<i64, 256>(&job, instructions, out),
    };
    let used = usize::try_from(bits.div_ceil(64).saturating_mul(8)).unwrap_or(usize::MAX);
    if used > stream.len() {
        return Err(ZfpError::Overrun { used, has: stream.len() });
    }
    Ok(used)
}

/// Decodes the blocks and returns the bit behind the last one. Ends early behind the end of the stream.
fn run<I: Int, const N: usize>(job: &Job<'_>, instructions: Instructions, out: &mut [u8]) -> u64 {
    match instructions {
        Instructions::Portable => job.run::<I, N>(out),
        Instructions::Wide(wide) => wide.run::<I, N>(job, out),
    }
}
