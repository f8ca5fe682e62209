//! Decodes arbitrary bytes as a wavelet chunk of VDS. The header of the input is corrected; the upper half of the
//! version word gives the parameters of the channel (bits: lossless, normalised, with NoValue; two for the type; then
//! the level).

use crate::format::vds::wavelet::{Expected, Scratch, decode, working_set};
use crate::volume::Dtype;

use super::bounded;

/// Limits of sides and samples, for speed.
const LONGEST: usize = 300;
const SAMPLES: usize = 1 << 15;

/// Reads one input: a chunk. Returns 1 if it could be decoded.
#[must_use]
pub fn run(input: &[u8]) -> u64 {
    if input.len() < 24 {
        return 0;
    }
    let mut chunk = input.to_vec();
    let (kind, level) = (chunk[2], chunk[3]);
    chunk[2..4].fill(0);
    let length = chunk.len() as u32;
    chunk[4..8].copy_from_slice(&length.to_le_bytes());
    let size = fit(&mut chunk);
    let expected = Expected {
        size,
        dtype: [Dtype::Float32, Dtype::UInt8, Dtype::UInt16, Dtype::Float32][usize::from(kind >> 3 & 3)],
        no_value: (kind & 4 != 0).then_some(-999.25),
        scale: 0.25,
        offset: -3.0,
        normalized: kind & 2 != 0,
        lossless: kind & 1 != 0,
    };
    let level = (level != 0).then_some(level - (level != 0) as u8);
    let decoded = |fill| {
        let mut scratch = Scratch::default();
        let mut out = vec![fill; size.iter().product::<usize>() * expected.dtype.size()];
        let most = working_set(size) as u64 + (64 << 10);
        let done =
            bounded::at_most(most, "a wavelet chunk", || decode(&chunk, &expected, level, &mut scratch, &mut out));
        assert!(scratch.bytes() <= working_set(size));
        // memory that an earlier chunk has used must make no difference
        let mut again = vec![!fill; out.len()];
        assert_eq!(decode(&chunk, &expected, level, &mut scratch, &mut again), done);
        assert!(done.is_err() || again == out, "the samples depend on what the scratch memory held");
        done.map(|()| out)
    };
    let one = decoded(0);
    assert!(decoded(1) == one, "the samples depend on what the buffer held");
    one.is_ok().into()
}

/// Limits the sizes to valid ones, and returns them.
fn fit(chunk: &mut [u8]) -> [usize; 3] {
    let dims = usize::from(chunk[20]).clamp(1, 3);
    chunk[20] = dims as u8;
    let mut room = SAMPLES;
    std::array::from_fn(|d| {
        let field = &mut chunk[8 + 4 * d..][..4];
        let said = usize::from(field[0]) | usize::from(field[1]) << 8;
        let side = if d < dims { said.clamp(1, LONGEST).min(room) } else { 1 };
        room /= side;
        field.copy_from_slice(&(side as u32).to_le_bytes());
        side
    })
}
