//! Decodes arbitrary bytes as a ZFP stream: the first byte chooses a shape and whether the header is corrected to match
//! it, the second byte the alignment and padding of the stream in memory.
//!
//! Invalid memory accesses inside libzfp are only found if it is built with AddressSanitizer as well: fuzz/README.md.

use volfs::codec::zfp;

use super::bounded;

const SHAPES: [[u64; 3]; 4] = [[4, 4, 4], [4, 8, 16], [16, 4, 4], [8, 8, 8]];

/// Reads one input, and returns 1 if it could be decoded.
#[must_use]
pub fn run(input: &[u8]) -> u64 {
    let [choice, place, stream @ ..] = input else { return 0 };
    let shape = SHAPES[usize::from(choice & 3)];
    let mut stream = stream.to_vec();
    if choice & 4 == 0
        && let Some(head) = stream.first_chunk_mut()
    {
        fit(head, shape);
    }
    let length = stream.len();
    let shift = usize::from(place & 15);
    let padding = if place & 16 == 0 { zfp::padding(shape, length as u64) } else { usize::from(place >> 5) };
    let mut padded = vec![0; shift];
    padded.extend(stream);
    padded.resize(shift + length + padding, 0);
    let samples = shape.iter().product::<u64>() as usize * 4;
    // a stream that lies badly in memory is copied, and so are its samples
    let most = (samples + length) as u64 + (128 << 10);
    let mut out = vec![0; shift + samples];
    let first =
        bounded::at_most(most, "a ZFP stream", || zfp::decode(shape, &padded[shift..], length, &mut out[shift..]));
    // the result depends on the stream alone
    if first.is_ok() {
        let mut again = vec![1; samples];
        assert_eq!(zfp::decode(shape, &padded[shift..shift + length], length, &mut again), first);
        assert!(again == out[shift..], "the samples depend on where the stream lies");
    }
    first.is_ok().into()
}

/// Writes a valid header: magic, version, float32, three dimensions and the shape. Keeps the mode.
fn fit(head: &mut [u8; 11], [nz, ny, nx]: [u64; 3]) {
    let meta = 2 | 2 << 2 | (nx - 1) << 4 | (ny - 1) << 20 | (nz - 1) << 36;
    head[..4].copy_from_slice(b"zfp\x05");
    head[4..10].copy_from_slice(&meta.to_le_bytes()[..6]);
    head[10] &= 0xf0;
}
