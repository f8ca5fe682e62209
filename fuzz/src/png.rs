//! Decodes arbitrary bytes as a PNG image. The first three bytes of the input choose the width, the height, and the
//! channels and size of samples; the rest is a whole file, or what a zlib stream holds for a valid one.

use std::io::Write;

use flate2::Compression;
use flate2::write::ZlibEncoder;

use crate::codec::{deflate, png};

use super::bounded;

/// Reads one input. Returns 1 if it could be decoded.
#[must_use]
pub fn run(input: &[u8]) -> u64 {
    let [width, height, choice, rest @ ..] = input else { return 0 };
    let (width, height) = (usize::from(*width) + 1, usize::from(*height) + 1);
    let (channels, size) = (usize::from(choice & 3) + 1, usize::from(choice >> 2 & 1) + 1);
    let length = width * height * channels * size;
    let stored = if choice & 8 == 0 { rest.to_vec() } else { file([width, height], channels, size, rest) };
    let most = png::scratch(stored.len() as u64, length as u64) + (256 << 10);
    let decoded = |fill| {
        let mut out = vec![fill; length];
        bounded::at_most(most, "a PNG image", || png::decode(&stored, channels, size, &mut out)).map(|()| out)
    };
    let one = decoded(0);
    assert!(decoded(1) == one, "the samples depend on what the buffer held");
    u64::from(one.is_ok())
}

/// Makes a file whose rows are `bytes` as far as these go, then zeros.
fn file(extent: [usize; 2], channels: usize, size: usize, bytes: &[u8]) -> Vec<u8> {
    let mut rows = bytes.to_vec();
    let row = extent[0] * channels * size + 1;
    rows.resize(row * extent[1], 0);
    // filters that are none are seldom worth trying
    rows.chunks_mut(row).for_each(|row| row[0] %= 6);
    let mut stream = ZlibEncoder::new(Vec::new(), Compression::fast());
    stream.write_all(&rows).unwrap();
    let mut header: Vec<u8> = extent.iter().flat_map(|n| (*n as u32).to_be_bytes()).collect();
    header.extend([8 * size as u8, [0, 4, 2, 6][channels - 1], 0, 0, 0]);
    let mut file = b"\x89PNG\r\n\x1a\n".to_vec();
    for (name, content) in [(b"IHDR", header), (b"IDAT", stream.finish().unwrap()), (b"IEND", Vec::new())] {
        file.extend((content.len() as u32).to_be_bytes());
        file.extend_from_slice(name);
        file.extend(&content);
        file.extend(deflate::crc32(&[name, &content]).to_be_bytes());
    }
    file
}
