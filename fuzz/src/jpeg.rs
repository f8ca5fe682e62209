//! Decodes arbitrary bytes as a JPEG image. The first three bytes of the input are the number of pixels and a choice of
//! channels; a byte of 0 for the choice takes what the header of the image says.

use crate::codec::jpeg;

use super::bounded;

/// The most pixels.
const MOST: usize = 1 << 16;

/// Reads one input. Returns 1 if it could be decoded.
#[must_use]
pub fn run(input: &[u8]) -> u64 {
    let [low, high, choice, stored @ ..] = input else { return 0 };
    let channels = if choice % 2 == 0 { 1 } else { 3 };
    let pixels = match extent(stored) {
        Some(pixels) if *choice < 240 => pixels,
        _ => usize::from(u16::from_le_bytes([*low, *high])),
    };
    if pixels > MOST {
        return 0;
    }
    let most = jpeg::scratch(pixels as u64, channels) + (4 << 10);
    let decoded = |fill| {
        let mut out = vec![fill; pixels * channels];
        bounded::at_most(most, "a JPEG image", || jpeg::decode(stored, channels, &mut out)).map(|()| out)
    };
    let one = decoded(0);
    assert!(decoded(1) == one, "the samples depend on what the buffer held");
    u64::from(one.is_ok())
}

/// Returns the pixels of an image by the first frame that it seems to have.
fn extent(stored: &[u8]) -> Option<usize> {
    let frame = stored.windows(9).find(|bytes| matches!(bytes, [0xff, 0xc0 | 0xc1, 0, _, 8, ..]))?;
    let [height, width] = [5, 7].map(|at| usize::from(u16::from_be_bytes([frame[at], frame[at + 1]])));
    Some(height * width)
}
