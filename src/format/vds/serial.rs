//! Chunks coded as None, RLE and Zip: a header of 24 bytes, then the samples, packed or not (sections 4.1 to 4.4).

use super::cuts::Cuts;
use super::description::Format;
use super::rle;
use super::store::Method;
use crate::codec::zlib;
use crate::volume::Dims;

/// Bytes of the header.
pub(super) const HEADER: usize = 24;

/// Whether the header is that of the chunk at `at`; an error says what it has instead.
pub(super) fn check(header: &[u8; HEADER], cuts: &Cuts, format: Format, at: &Dims) -> Result<(), String> {
    let (fields, _) = header.as_chunks::<4>();
    let field = |n: usize| fields.get(n).map_or(0, |b| i32::from_le_bytes(*b));
    let dimensions = field(0);
    if !(1..=3).contains(&dimensions) {
        return Err(format!("its header has {dimensions} dimensions"));
    }
    // sizes beyond the dimensions are not specified
    let size = |n: i32| if n < dimensions { i64::from(field(n as usize + 1)) } else { 1 };
    let (found, expected) = ([size(0), size(1), size(2)], cuts.sizes(at).map(|n| n as i64));
    if found != expected {
        return Err(format!("its header says {found:?} samples, but {expected:?} belong here"));
    }
    if field(4) != format.code() {
        return Err(format!("its header says format {}, but the channel has {}", field(4), format.name()));
    }
    if i64::from(field(5)) != cuts.components() as i64 {
        return Err(format!("its header says {} components, but the channel has {}", field(5), cuts.components()));
    }
    Ok(())
}

/// Stored bytes that a chunk cannot do without, or cannot make use of: the longest that is read. Two bytes for one are the
/// worst that run lengths come to; deflate takes hardly more than there is. A wavelet's numbers are floats also where samples
/// are bytes, and what is left to make them exact comes on top.
pub(super) fn longest(method: Method, stored: usize) -> u64 {
    let stored = stored as u64;
    match method {
        Method::None => stored + HEADER as u64,
        _ if method.is_wavelet() => 16 * stored + (64 << 10),
        _ => 2 * stored + 4096,
    }
}

/// Decodes the stored bytes of the chunk at `at` to samples, a byte each where they are bits.
pub(super) fn decode(
    method: Method,
    stored: &[u8],
    cuts: &Cuts,
    format: Format,
    at: &Dims,
    out: &mut [u8],
) -> Result<(), String> {
    let (header, body) = stored.split_first_chunk().ok_or("it is shorter than its header")?;
    check(header, cuts, format, at)?;
    if format != Format::Bit {
        return unpack(method, body, out);
    }
    let mut packed = vec![0; cuts.stored_bytes(at)];
    unpack(method, body, &mut packed)?;
    spread(&packed, cuts.sizes(at)[0] * cuts.components(), out);
    Ok(())
}

fn unpack(method: Method, body: &[u8], out: &mut [u8]) -> Result<(), String> {
    match method {
        Method::Rle => rle::decode(body, out),
        Method::Zip => zlib::decode(body, out).map_err(|e| e.to_string()),
        _ if body.len() == out.len() => {
            out.copy_from_slice(body);
            Ok(())
        }
        _ => Err(format!("it has {} bytes of samples, but {} belong here", body.len(), out.len())),
    }
}

/// Makes a byte of each bit. Rows of `row` bits begin on a byte; the lowest bit is the first sample.
fn spread(packed: &[u8], row: u64, out: &mut [u8]) {
    let row = row as usize;
    for (bits, bytes) in packed.chunks_exact(row.div_ceil(8).max(1)).zip(out.chunks_exact_mut(row.max(1))) {
        for (bits, bytes) in bits.iter().zip(bytes.chunks_mut(8)) {
            for (n, byte) in bytes.iter_mut().enumerate() {
                *byte = bits >> n & 1;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_of_bits_begin_on_a_byte() {
        let mut out = [9; 20];
        spread(&[0b1000_0001, 0b1111_1110, 0b0101_0101, 0b10], 10, &mut out);
        assert_eq!(out, [1, 0, 0, 0, 0, 0, 0, 1, 0, 1, 1, 0, 1, 0, 1, 0, 1, 0, 0, 1]);
    }
}
