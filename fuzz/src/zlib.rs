//! Decodes arbitrary bytes as a zlib stream, and compares the result with that of flate2. The
//! first byte of the input chooses whether the input is the whole stream, or only its deflate data: then a valid header
//! and checksum are put around it.

use crate::codec::inflate;
use flate2::{Decompress, FlushDecompress, Status};

use super::bounded;

/// The most decoded bytes.
const MOST: usize = 1 << 16;
/// Decoders allocate their tables once in each thread.
const TABLES: u64 = 384 << 10;

/// Reads one input, and returns 1 if it could be decoded.
#[must_use]
pub fn run(input: &[u8]) -> u64 {
    let [choice, low, high, data @ ..] = input else { return 0 };
    let mut stream = data.to_vec();
    if choice & 1 == 0 {
        let Some(bytes) = by_flate2(data, false) else { return 0 };
        stream = [&[0x78, 0x9c], data, &adler(&bytes).to_be_bytes()].concat();
    }
    let model = by_flate2(&stream, true);
    let said = usize::from(*low) | usize::from(*high) << 8;
    let length = if choice & 2 == 0 { model.as_ref().map_or(said, Vec::len) } else { said };
    let decoded = |fill| {
        let mut out = vec![fill; length];
        let done = bounded::at_most(TABLES, "a zlib stream", || inflate::decode(&stream, &mut out));
        done.map(|()| out)
    };
    let one = decoded(0);
    assert!(decoded(1) == one, "the samples depend on what the buffer held");
    let Ok(bytes) = one else { return 0 };
    assert!(model == Some(bytes), "the two decoders differ");
    1
}

/// Decodes deflate data or a zlib stream with flate2; `None` if it is damaged or too long.
fn by_flate2(data: &[u8], zlib: bool) -> Option<Vec<u8>> {
    let mut out = vec![0; MOST];
    let mut inflate = Decompress::new(zlib);
    let status = inflate.decompress(data, &mut out, FlushDecompress::Finish).ok()?;
    out.truncate(inflate.total_out() as usize);
    (status == Status::StreamEnd).then_some(out)
}

/// Returns the checksum at the end of a stream.
fn adler(bytes: &[u8]) -> u32 {
    let (a, b) = bytes.iter().fold((1u32, 0u32), |(a, b), byte| {
        let a = (a + u32::from(*byte)) % 65521;
        (a, (b + a) % 65521)
    });
    b << 16 | a
}
