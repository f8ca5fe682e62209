//! Decodes arbitrary bytes as a wavelet chunk of VDS. The target corrects the header of the input; the upper half of
//! the version word gives the parameters of the channel (bits: lossless, normalised, with NoValue; two for the type;
//! then the level).
#![no_main]

use libfuzzer_sys::fuzz_target;
use volfs::format::vds::wavelet::{Expected, Sample, Scratch, decode, working_set};

/// Limits of sides and samples, for speed.
const LONGEST: usize = 300;
const SAMPLES: usize = 1 << 15;

fuzz_target!(|input: &[u8]| {
    if input.len() < 24 {
        return;
    }
    let mut chunk = input.to_vec();
    let (kind, level) = (chunk[2], chunk[3]);
    chunk[2..4].fill(0);
    let length = chunk.len() as u32;
    chunk[4..8].copy_from_slice(&length.to_le_bytes());
    let size = fit(&mut chunk);
    let expected = Expected {
        size,
        sample: [Sample::F32, Sample::U8, Sample::U16, Sample::F32][usize::from(kind >> 3 & 3)],
        no_value: (kind & 4 != 0).then_some(-999.25),
        scale: 0.25,
        offset: -3.0,
        normalized: kind & 2 != 0,
        lossless: kind & 1 != 0,
    };
    let level = (level != 0).then_some(level - (level != 0) as u8);
    let mut scratch = Scratch::default();
    let mut decoded = |fill| {
        let mut out = vec![fill; size.iter().product::<usize>() * expected.sample.bytes()];
        decode(&chunk, &expected, level, &mut scratch, &mut out).map(|()| out)
    };
    // the result does not depend on the previous contents of memory
    assert!(decoded(0) == decoded(1));
    assert!(scratch.bytes() <= working_set(size));
});

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
