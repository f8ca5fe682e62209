//! Decodes arbitrary bytes as ZFP streams, with all decoders, which must agree.
//!
//! Of a brick, the first byte chooses the shape and whether the header is corrected to match it, the second byte the
//! alignment and padding of the stream in memory. With bit 3 of the first byte the stream has samples of any type and
//! of one to four dimensions.
//!
//! Invalid memory accesses inside libzfp are only found if it is built with AddressSanitizer as well: fuzz/README.md.

use crate::codec::zfp::{self, Decoder, Header, Instructions, Strides};

use super::bounded;

const SHAPES: [[u64; 3]; 4] = [[4, 4, 4], [4, 8, 16], [16, 4, 4], [8, 8, 8]];

/// Reads one input, and returns 1 if it could be decoded.
#[must_use]
pub fn run(input: &[u8]) -> u64 {
    let [choice, place, stream @ ..] = input else { return 0 };
    match choice & 8 {
        0 => brick(*choice, *place, stream),
        _ => any(stream),
    }
}

/// Decodes a brick.
fn brick(choice: u8, place: u8, stream: &[u8]) -> u64 {
    let shape = SHAPES[usize::from(choice & 3)];
    let mut stream = stream.to_vec();
    if choice & 4 == 0
        && let Some(head) = stream.first_chunk_mut()
    {
        fit(head, shape);
    }
    let length = stream.len();
    let shift = usize::from(place & 15);
    let whole = zfp::padding(Decoder::Libzfp, shape, length as u64);
    let padding = if place & 16 == 0 { whole } else { usize::from(place >> 5) };
    let mut padded = vec![0; shift];
    padded.extend(stream);
    padded.resize(shift + length + padding, 0);
    let samples = shape.iter().product::<u64>() as usize * 4;
    // libzfp needs copies of a stream that lies badly in memory, and of its samples; the other decoder needs none
    let most = |decoder| match decoder {
        Decoder::Volfs => 4 << 10,
        Decoder::Libzfp => (samples + length) as u64 + (128 << 10),
    };
    let mut out = vec![0; shift + samples];
    let decode = |decoder, from: &[u8], out: &mut [u8]| {
        bounded::at_most(most(decoder), "a ZFP stream", || zfp::decode(decoder, shape, from, length, out))
    };
    let first = decode(Decoder::Volfs, &padded[shift..], &mut out[shift..]);
    // the result depends on the stream alone
    for (decoder, from) in [
        (Decoder::Libzfp, &padded[shift..]),
        (Decoder::Libzfp, &padded[shift..shift + length]),
        (Decoder::Volfs, &padded[shift..shift + length]),
    ] {
        let mut again = vec![1; samples];
        let second = decode(decoder, from, &mut again);
        assert_eq!(second.is_ok(), first.is_ok(), "{second:?} {first:?}");
        assert!(first.is_err() || again == out[shift..], "the samples depend on where the stream lies");
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

/// Decodes samples of the type and the number of axes that the fifth byte has, as a header. Extents are made small.
fn any(stream: &[u8]) -> u64 {
    let Some((head, rest)) = stream.split_first_chunk::<12>() else { return 0 };
    let meta = u64::from_le_bytes(head[4..].try_into().unwrap_or_default());
    let axes = meta >> 2 & 3;
    let each = 48 / (axes + 1);
    let most = [300, 24, 10, 6][axes as usize];
    let extents = (0..=axes).map(|axis| ((meta >> (4 + each * axis) & 0xff) % most) << (4 + each * axis));
    let meta = meta & (0xf | 0xfff << 52) | extents.sum::<u64>();
    let stream = [&b"zfp\x05"[..], &meta.to_le_bytes(), rest].concat();
    let Ok(header) = Header::read(&stream) else { return 0 };
    let bytes = header.samples() as usize * header.scalar.size();
    let mut theirs = vec![0; bytes];
    let result = zfp::decode_by_libzfp(&stream, &mut theirs);
    for instructions in [Instructions::Portable, Instructions::best()] {
        let mut ours = vec![1; bytes];
        let dense = Strides::dense(header.shape);
        let decoded = bounded::at_most(4 << 10, "a ZFP stream", || {
            zfp::decode_blocks(&stream, &header, &dense, &mut ours, instructions)
        });
        assert_eq!(decoded.is_ok(), result.is_ok(), "{decoded:?} {result:?}");
        assert!(result.is_err() || (decoded == result && ours == theirs), "the decoders differ");
    }
    result.is_ok().into()
}
