//! Decodes deflate data (RFC 1951) that are literals for the most part, as those of floating point samples are: a
//! prefix code, and hardly a match.
//!
//! Where a symbol begins is known once the one before is decoded, so one decoder waits for one look-up in a table after
//! the other, and the processor has little to do meanwhile. But prefix codes are self-synchronizing: a decoder that
//! begins anywhere soon comes upon a boundary between symbols, and is right from there on. So several lanes decode a
//! block at a time, each from a guessed place on, and what a lane has decoded counts from where it is known to have met
//! such a boundary ([`lanes`]).
//!
//! Data that are not like that, and whatever is not valid, are left to another decoder.

mod bits;
mod block;
mod header;
mod lane;
mod lanes;
mod lockstep;
mod output;
mod prefix_code;
mod symbol;
#[cfg(test)]
mod tests;

use std::cell::RefCell;

use libdeflater::adler32;

use bits::{align, bytes_at, word_or_zeros};
use block::Block;
use lanes::Lanes;
use output::Output;
use symbol::Codes;

/// Shorter streams are not worth it.
const SHORTEST: usize = 2 << 10;
/// Longer streams are not decoded: offsets of bits have to fit into 32 bits.
const LONGEST: usize = 128 << 20;
/// Bits of a block that is short: others decode streams of such blocks faster, since the tables of each take longer to
/// make than its symbols to decode. It counts after so many blocks.
const SHORT_BLOCK: usize = 4 << 10;
const MANY_BLOCKS: usize = 8;
/// Streams that decode to more bytes for each of theirs have many matches.
const MOST_COMPRESSED: usize = 5;

/// Memory that decoding needs.
struct Decoder {
    lanes: Lanes,
    codes: Box<Codes>,
}

thread_local! {
    static DECODER: RefCell<Decoder> = RefCell::new(Decoder { lanes: Lanes::new(), codes: Box::new(Codes::new()) });
}

/// Decodes the zlib stream (RFC 1950) at the start of `stored` to `out`, which it must fill. Returns `false` for a
/// stream that is not valid or not worth it; the content of `out` is then unspecified.
pub(crate) fn decode(stored: &[u8], out: &mut [u8]) -> bool {
    let fits = (SHORTEST..=LONGEST).contains(&stored.len()) && out.len() / MOST_COMPRESSED <= stored.len();
    fits && DECODER.with_borrow_mut(|decoder| stream(stored, out, decoder)).is_some()
}

fn stream(stored: &[u8], out: &mut [u8], decoder: &mut Decoder) -> Option<()> {
    let header: [u8; 2] = *stored.first_chunk()?;
    let [method, flags] = header;
    // deflate with a window of at most 32 KiB, and no dictionary
    if !u16::from_be_bytes(header).is_multiple_of(31) || method & 15 != 8 || method >> 4 > 7 || flags & 0x20 != 0 {
        return None;
    }
    let mut output = Output::new(out);
    let end = deflate(stored, 8 * header.len(), &mut output, decoder)?;
    let sum = bytes_at(stored, align(end), 4)?;
    (output.filled() == output.len() && adler32(out).to_be_bytes() == *sum).then_some(())
}

/// Decodes all blocks of deflate data, and returns the place after the last one.
fn deflate(stored: &[u8], mut at: usize, out: &mut Output<'_>, decoder: &mut Decoder) -> Option<usize> {
    let (mut length, mut blocks) = (None, 0);
    loop {
        if blocks > MANY_BLOCKS && at / blocks < SHORT_BLOCK {
            return None;
        }
        blocks += 1;
        let kind = word_or_zeros(stored, at) & 7;
        at += 3;
        match kind >> 1 {
            0 => {
                let header = align(at);
                let [low, high, not_low, not_high] = *bytes_at(stored, header, 4)?.first_chunk()?;
                let bytes = u16::from_le_bytes([low, high]);
                if bytes != !u16::from_le_bytes([not_low, not_high]) {
                    return None;
                }
                out.extend(bytes_at(stored, header + 32, usize::from(bytes))?)?;
                at = header + 32 + 8 * usize::from(bytes);
            }
            codes @ (1 | 2) => {
                let begin = match codes {
                    1 => decoder.codes.set_fixed().map(|()| at)?,
                    _ => header::read(stored, at, &mut decoder.codes)?,
                };
                let block = Block { stored, codes: &decoder.codes };
                at = decoder.lanes.decode(&block, begin, length, out)?;
                // most compressors give all blocks the same number of symbols
                length = Some(at - begin);
            }
            _ => return None,
        }
        if kind & 1 == 1 {
            return Some(at);
        }
    }
}
