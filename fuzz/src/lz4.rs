//! Decodes arbitrary bytes as an LZ4 block, and compares the result with a naive decoder. The first byte of the input
//! chooses whether the buffer has the length that the block decodes to.

use crate::codec::lz4;

use super::bounded;

/// The most decoded bytes.
const MOST: usize = 1 << 18;

/// Reads one input: a block. Returns 1 if it could be decoded.
#[must_use]
pub fn run(input: &[u8]) -> u64 {
    let [choice, block @ ..] = input else { return 0 };
    let model = naive(block);
    let length = match &model {
        Some(model) if *choice < 240 => model.len(),
        _ => usize::from(*choice) * 16,
    };
    let decoded = |fill| {
        let mut out = vec![fill; length];
        let done = bounded::at_most(4 << 10, "an LZ4 block", || lz4::decode(block, &mut out));
        done.map(|()| out)
    };
    let one = decoded(0);
    assert!(decoded(1) == one, "the samples depend on what the buffer held");
    let Ok(bytes) = one else { return 0 };
    assert!(model == Some(bytes), "the naive decoder differs");
    assert!(length as u64 <= lz4::most(block.len() as u64), "a block decodes to more than any can");
    1
}

/// Decodes a block by the description of the format; `None` if it is damaged or too long.
fn naive(mut block: &[u8]) -> Option<Vec<u8>> {
    let mut take = |n: usize| {
        let taken = block.get(..n)?;
        block = &block[n..];
        Some((taken, block.is_empty()))
    };
    let mut out = Vec::new();
    loop {
        let token = take(1)?.0[0];
        let literals = length(token >> 4, &mut || Some(take(1)?.0[0]))?;
        let (bytes, ends) = take(literals)?;
        out.extend_from_slice(bytes);
        if ends {
            return Some(out);
        }
        let offset = take(2)?.0;
        let offset = usize::from(offset[0]) | usize::from(offset[1]) << 8;
        let matched = length(token & 15, &mut || Some(take(1)?.0[0]))? + 4;
        let from = out.len().checked_sub(offset).filter(|_| offset > 0)?;
        if out.len() + matched > MOST {
            return None;
        }
        (0..matched).for_each(|n| out.push(out[from + n]));
    }
}

/// Returns a length of which a token has the first four bits, and `next` the bytes that follow if these are all set.
fn length(nibble: u8, next: &mut dyn FnMut() -> Option<u8>) -> Option<usize> {
    let mut length = usize::from(nibble);
    let mut more = nibble == 15;
    while more {
        let byte = next()?;
        length += usize::from(byte);
        more = byte == 255;
    }
    Some(length)
}
