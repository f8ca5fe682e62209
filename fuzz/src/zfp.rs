//! Decodes arbitrary bytes as ZFP streams of bricks, with both sets of instructions and with libzfp, which
//! must agree.
//!
//! The first byte chooses the shape, and whether the header is corrected to match it; the second byte chooses where stream
//! and samples lie in memory. Invalid memory accesses inside libzfp are only found if it is built with AddressSanitizer as
//! well: fuzz/README.md.

use crate::codec::zfp::{self, Instructions};

use super::bounded;

const SHAPES: [[u64; 3]; 4] = [[4, 4, 4], [4, 8, 16], [16, 4, 4], [8, 8, 8]];

/// Reads one input, and returns 1 if it could be decoded.
#[must_use]
pub fn run(input: &[u8]) -> u64 {
    let [choice, place, stream @ ..] = input else { return 0 };
    let shape = SHAPES[usize::from(choice & 3)];
    let shift = usize::from(place & 15);
    let mut shifted = [&vec![0; shift], stream].concat();
    let stream = &mut shifted[shift..];
    if choice & 4 == 0
        && let Some(head) = stream.first_chunk_mut()
    {
        fit(head, shape);
    }
    let length = 4 * shape.iter().product::<u64>() as usize;
    let by = |instructions| {
        let mut out = vec![1; shift + length];
        let decode = || zfp::decode_with(instructions, shape, stream, &mut out[shift..]);
        bounded::at_most(4 << 10, "a ZFP stream", decode).map(|used| (used, out.split_off(shift)))
    };
    let ours = by(Instructions::best());
    assert!(ours == by(Instructions::Portable), "the instructions differ");
    #[cfg(feature = "libzfp")]
    {
        let mut theirs = vec![0.0; length / 4];
        let used = zfp::libzfp::Stream::new(stream, shape).decode(shape, &mut theirs);
        let theirs = used.map(|used| (used, theirs.into_iter().flat_map(f32::to_ne_bytes).collect()));
        assert!(ours.as_ref().ok() == theirs.as_ref(), "the decoders differ");
    }
    ours.is_ok().into()
}

/// Writes a valid header: magic, version, float32, three dimensions and the shape. Keeps the mode.
fn fit(head: &mut [u8; 11], [nz, ny, nx]: [u64; 3]) {
    let meta = 2 | 2 << 2 | (nx - 1) << 4 | (ny - 1) << 20 | (nz - 1) << 36;
    head[..4].copy_from_slice(b"zfp\x05");
    head[4..10].copy_from_slice(&meta.to_le_bytes()[..6]);
    head[10] &= 0xf0;
}
