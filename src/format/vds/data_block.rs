//! Chunks that are stored uncompressed or compressed by RLE or Zip: a header of 24 bytes, then the samples.

use super::chunk_grid::ChunkGrid;
use super::description::SampleFormat;
use super::rle;
use super::store::CompressionMethod;
use crate::codec::inflate;
use crate::format::bytes::ByteReader;
use crate::volume::Dims;

/// Bytes of the header.
pub(super) const HEADER: usize = 24;

/// Checks that the header is that of the chunk at `at`.
pub(super) fn check_header(
    header: &[u8; HEADER],
    grid: &ChunkGrid,
    format: SampleFormat,
    at: &Dims,
) -> Result<(), String> {
    let fields = ByteReader::new((), header).i32s::<6>();
    let [dimensions, x, y, z, code, components] = fields.map_err(|_| "it is shorter than its header")?;
    if !(1..=3).contains(&dimensions) {
        return Err(format!("its header has {dimensions} dimensions"));
    }
    // sizes beyond the number of dimensions are not specified
    let size = |d: i32, samples: i32| if d < dimensions { i64::from(samples) } else { 1 };
    let (found, expected) = ([size(0, x), size(1, y), size(2, z)], grid.sizes(at).map(|n| n as i64));
    if found != expected {
        return Err(format!("its header says {found:?} samples, but {expected:?} belong here"));
    }
    if code != format.code() {
        return Err(format!("its header says format {code}, but the channel has {}", format.name()));
    }
    if i64::from(components) != grid.components() as i64 {
        return Err(format!("its header says {components} components, but the channel has {}", grid.components()));
    }
    Ok(())
}

/// Returns an upper bound of the stored bytes of a chunk whose uncompressed samples have `uncompressed` bytes; longer
/// chunks are damaged. RLE at worst doubles the bytes, and deflate adds few. Wavelet coefficients are floats even if
/// samples are single bytes, and a lossless chunk has a residual as well.
pub(super) fn most_stored_bytes(method: CompressionMethod, uncompressed: usize) -> u64 {
    let uncompressed = uncompressed as u64;
    match method {
        CompressionMethod::None => uncompressed + HEADER as u64,
        _ if method.is_wavelet() => 16 * uncompressed + (64 << 10),
        _ => 2 * uncompressed + 4096,
    }
}

/// Decodes the stored bytes of the chunk at `at` to samples; single bits become a byte each.
pub(super) fn decode(
    method: CompressionMethod,
    stored: &[u8],
    grid: &ChunkGrid,
    format: SampleFormat,
    at: &Dims,
    out: &mut [u8],
) -> Result<(), String> {
    let (header, body) = stored.split_first_chunk().ok_or("it is shorter than its header")?;
    check_header(header, grid, format, at)?;
    if format != SampleFormat::Bit {
        return decompress(method, body, out);
    }
    let mut packed = vec![0; grid.uncompressed_bytes(at)];
    decompress(method, body, &mut packed)?;
    expand_bits(&packed, grid.sizes(at)[0] * grid.components(), out);
    Ok(())
}

fn decompress(method: CompressionMethod, body: &[u8], out: &mut [u8]) -> Result<(), String> {
    match method {
        CompressionMethod::Rle => rle::decode(body, out),
        CompressionMethod::Zip => inflate::decode(body, out).map_err(|e| e.to_string()),
        _ if body.len() == out.len() => {
            out.copy_from_slice(body);
            Ok(())
        }
        _ => Err(format!("it has {} bytes of samples, but {} belong here", body.len(), out.len())),
    }
}

/// Expands each bit to a byte. Rows of `row` bits begin on a byte; the lowest bit is the first sample.
fn expand_bits(packed: &[u8], row: u64, out: &mut [u8]) {
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
        expand_bits(&[0b1000_0001, 0b1111_1110, 0b0101_0101, 0b10], 10, &mut out);
        assert_eq!(out, [1, 0, 0, 0, 0, 0, 0, 1, 0, 1, 1, 0, 1, 0, 1, 0, 1, 0, 0, 1]);
    }
}
