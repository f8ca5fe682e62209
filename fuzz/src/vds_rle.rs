//! Decodes arbitrary bytes as run lengths of VDS, and compares the result with a naive decoder. The header is corrected;
//! the first byte of the input chooses the unit and whether to spoil the header.

use crate::format::vds::chunk::decode_rle;

use super::bounded;

/// The most decoded bytes.
const MOST: usize = 1 << 16;

/// Reads one input: runs. Returns 1 if they could be decoded.
#[must_use]
pub fn run(input: &[u8]) -> u64 {
    let [choice, low, high, runs @ ..] = input else { return 0 };
    let unit = 1usize << (choice & 3);
    let said = usize::from(*low) | usize::from(*high) << 8;
    // decoded bytes as the input says, or as many as the runs give
    let model = naive(unit, runs, MOST);
    let length = if choice & 4 == 0 { model.as_ref().map_or(said, Vec::len) } else { said };
    let size = (12 + runs.len()) as i32 + if choice & 8 == 0 { 0 } else { i32::from(*low as i8) };
    let packed = [&size.to_le_bytes()[..], &(length as i32).to_le_bytes(), &(unit as i32).to_le_bytes(), runs].concat();
    let decoded = |fill| {
        let mut out = vec![fill; length];
        let done = bounded::at_most(4 << 10, "run lengths", || decode_rle(&packed, &mut out));
        done.map(|()| out)
    };
    let one = decoded(0);
    assert!(decoded(1) == one, "the samples depend on what the buffer held");
    let Ok(bytes) = one else { return 0 };
    let end = usize::try_from(size).expect("a size that was accepted") - 12;
    assert!(naive(unit, &runs[..end], length).is_some_and(|model| model == bytes), "the naive decoder differs");
    1
}

/// Decodes runs until `most` bytes are there, or the runs end.
fn naive(unit: usize, mut runs: &[u8], most: usize) -> Option<Vec<u8>> {
    let mut take = |n: usize| {
        let taken = runs.get(..n)?;
        runs = &runs[n..];
        Some(taken)
    };
    let mut out = Vec::new();
    while out.len() < most {
        let Some(head) = take(1) else { break };
        let mut count = usize::from(head[0] & 63) + 1;
        if head[0] & 128 != 0 {
            count += usize::from(take(1)?[0]) * 64;
        }
        if head[0] & 64 != 0 {
            out.extend_from_slice(take(count * unit)?);
        } else {
            let repeated = take(unit)?;
            (0..count).for_each(|_| out.extend_from_slice(repeated));
        }
    }
    Some(out)
}
