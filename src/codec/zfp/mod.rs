//! ZFP streams as volumes have them: float32 in three dimensions, in every mode. Others need the feature `libzfp`.
//!
//! [`header`] reads the parameters of a stream, [`block`] decodes blocks of 4 x 4 x 4 samples with the instructions
//! that every machine has, [`simd`] with those of newer processors. Both return the samples of libzfp, bit for bit; the
//! feature `libzfp` has that library for tests and benchmarks.

mod block;
mod header;
#[cfg(feature = "libzfp")]
pub(crate) mod libzfp;
#[cfg(target_arch = "x86_64")]
mod simd;
#[cfg(test)]
mod tests;

use block::{Block, Planes, Stream, Target};
use header::Header;
pub(crate) use header::{Samples, shortest};

use crate::sync::LazyPerProcess;

/// The instructions that blocks are decoded with.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Instructions {
    /// Those that every machine has.
    Portable,
    /// AVX2, BMI2 and the carry-less product.
    #[cfg(target_arch = "x86_64")]
    Simd(simd::Features),
}

impl Instructions {
    /// Returns the fastest that this machine has.
    pub(crate) fn best() -> Self {
        // asking the processor takes long under a hypervisor
        static BEST: LazyPerProcess<Instructions> = LazyPerProcess::new(|| {
            #[cfg(target_arch = "x86_64")]
            if let Some(features) = simd::Features::detect() {
                return Instructions::Simd(features);
            }
            Instructions::Portable
        });
        *BEST
    }
}

/// Decodes a stream into `out`: float32 in C order and native byte order; `shape` has the slowest axis first. Damage
/// inside the blocks is detected only if it makes the decoder read beyond the end of the stream.
pub(crate) fn decode(shape: [u64; 3], stream: &[u8], out: &mut [u8]) -> Result<(), String> {
    decode_with(Instructions::best(), shape, stream, out).map(drop)
}

/// Decodes a stream into `out`, which has as many bytes as its samples.
pub(crate) fn decode_any(samples: &Samples, stream: &[u8], out: &mut [u8]) -> Result<(), String> {
    match samples.volume() {
        Some(shape) => decode(shape, stream, out),
        None => decode_other(samples, stream, out),
    }
}

#[cfg(feature = "libzfp")]
use libzfp::decode as decode_other;

#[cfg(not(feature = "libzfp"))]
fn decode_other(samples: &Samples, _: &[u8], _: &mut [u8]) -> Result<(), String> {
    Err(format!("ZFP of {samples} is decoded only if volfs is built with the feature libzfp"))
}

/// Like [`decode`]. Returns how many bytes of the stream the blocks take, in whole words of 64 bits as libzfp counts.
pub(crate) fn decode_with(
    instructions: Instructions,
    shape: [u64; 3],
    stream: &[u8],
    out: &mut [u8],
) -> Result<usize, String> {
    let wanted = shape.iter().fold(4u64, |bytes, extent| bytes.saturating_mul(*extent));
    if out.len() as u64 != wanted {
        return Err(format!("there is room for {} bytes of samples, not for {wanted}", out.len()));
    }
    let header = Header::read(stream, shape)?;
    let job = Job { stream: Stream::new(stream), header, shape: shape.map(|extent| extent as usize) };
    let bits = match instructions {
        Instructions::Portable => job.blocks(out, |block, planes, target| block.decode(planes, target)),
        #[cfg(target_arch = "x86_64")]
        Instructions::Simd(features) => features.run(&job, out),
    };
    let used = usize::try_from(bits.div_ceil(64).saturating_mul(8)).unwrap_or(usize::MAX);
    match stream.len() {
        has if used > has => {
            Err(format!("its ZFP stream ends too early: it takes at least {used} bytes and has {has}"))
        }
        _ => Ok(used),
    }
}

/// All blocks of a stream. There is room for the samples.
struct Job<'a> {
    stream: Stream<'a>,
    header: Header,
    shape: [usize; 3],
}

impl Job<'_> {
    /// Calls `decode` for each block, which returns the number of bits that the block takes, and returns the bit after
    /// the last one. Ends early after the end of the stream.
    #[inline(always)]
    fn blocks(&self, out: &mut [u8], mut decode: impl FnMut(Block<'_>, &mut Planes, Target<'_>) -> u64) -> u64 {
        let Header { params, bits } = &self.header;
        let mut at = *bits;
        let [nz, ny, nx] = self.shape;
        let (fixed, steps) = (params.fixed_length(), [4 * nx, 4 * nx * ny]);
        let mut planes: Planes = [0; 32];
        for z in (0..nz).step_by(4) {
            for y in (0..ny).step_by(4) {
                let rows = [(ny - y).min(4), (nz - z).min(4)];
                let has_rows = rows == [4; 2];
                let mut first = 4 * (z * ny + y) * nx;
                for x in (0..nx).step_by(4) {
                    let Some(window) = self.stream.window(at) else { return at };
                    let block = Block { window, start: (at & 7) as usize, params };
                    let line = (nx - x).min(4);
                    let target = Target {
                        out,
                        first,
                        steps,
                        extents: [line, rows[0], rows[1]],
                        is_whole: has_rows && line == 4,
                    };
                    let bits = decode(block, &mut planes, target);
                    at = match fixed.map(|length| at.checked_add(length)) {
                        // a branch, and no choice of a number: so the processor begins the next block before it knows
                        // where this one ends
                        Some(None) => return u64::MAX,
                        Some(Some(next)) => next,
                        None => at.saturating_add(bits),
                    };
                    first += 16;
                }
            }
        }
        at
    }
}
