//! Decodes arbitrary bytes as a ZFP stream: the first byte chooses a shape and whether the header is corrected to match
//! it, the second byte the alignment and padding of the stream in memory.
//!
//! Invalid memory accesses inside libzfp are only found if it is built with AddressSanitizer as well:
//! `CC=clang CFLAGS=-fsanitize=address cargo +nightly fuzz run zfp`.
#![no_main]

use libfuzzer_sys::fuzz_target;
use volfs::codec::zfp;

const SHAPES: [[u64; 3]; 4] = [[4, 4, 4], [4, 8, 16], [16, 4, 4], [8, 8, 8]];

fuzz_target!(|input: &[u8]| {
    let [choice, place, stream @ ..] = input else { return };
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
    let mut out = vec![0; shift + shape.iter().product::<u64>() as usize * 4];
    let first = zfp::decode(shape, &padded[shift..], length, &mut out[shift..]);
    // the result depends on the stream alone
    if first.is_ok() {
        let mut again = vec![0; out.len() - shift];
        assert_eq!(zfp::decode(shape, &padded[shift..shift + length], length, &mut again), first);
        assert!(again == out[shift..]);
    }
});

/// Writes a valid header: magic, version, float32, three dimensions and the shape. Keeps the mode.
fn fit(head: &mut [u8; 11], [nz, ny, nx]: [u64; 3]) {
    let meta = 2 | 2 << 2 | (nx - 1) << 4 | (ny - 1) << 20 | (nz - 1) << 36;
    head[..4].copy_from_slice(b"zfp\x05");
    head[4..10].copy_from_slice(&meta.to_le_bytes()[..6]);
    head[10] &= 0xf0;
}
