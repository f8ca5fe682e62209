//! libzfp, for comparisons: the only file of the crate that calls it.
//!
//! libzfp checks neither the end of its input nor that of its output. [`Stream::decode`] is safe nevertheless: it reads
//! back what libzfp took from the header, and calls the decoder only if that is float32 with as many samples as there
//! is room for, and the input is as long as blocks with these parameters can be.
#![allow(unsafe_code)]

use std::ptr;

use super::header::{blocks, number};
use zfp_sys::{
    ZFP_HEADER_FULL, stream_close, stream_open, zfp_compress, zfp_decompress, zfp_field_3d, zfp_field_free,
    zfp_read_header, zfp_stream_close, zfp_stream_maximum_size, zfp_stream_open, zfp_stream_rewind,
    zfp_stream_set_bit_stream, zfp_stream_set_params, zfp_type_zfp_type_float, zfp_write_header,
};

/// The most bits that libzfp reads for a block of float32 in three dimensions, unless the header pads blocks to more.
const LONGEST_BLOCK: u64 = 1 + 1 + 8 + 5 + 63 + 64 * 32;
/// Bytes that it may read for a header, in whole words.
const HEADER: usize = 24;
/// The most bits that a header can pad blocks to.
const MOST_PADDED: u64 = 1 << 15;

/// A stream as libzfp reads it: words of 64 bits, with zeros after the stored ones.
pub(crate) struct Stream {
    words: Vec<u64>,
    /// Bytes of the stored ones.
    length: usize,
}

impl Stream {
    /// Copies a stream of `shape`, and pads it for the longest blocks that its header allows.
    pub(crate) fn new(stream: &[u8], shape: [u64; 3]) -> Self {
        let number = |at: usize| number(stream, at).unwrap_or(0);
        let padded = match number(4) >> 52 {
            mode @ ..2048 => mode + 1,
            4095 => (number(12) & 0x7fff) + 1,
            _ => 1,
        };
        let length = HEADER as u64 + (blocks(shape) * padded.clamp(LONGEST_BLOCK, MOST_PADDED)).div_ceil(8);
        let mut bytes = stream.to_vec();
        bytes.resize(stream.len().max(length as usize).next_multiple_of(8), 0);
        let words = bytes.as_chunks().0.iter().map(|word| u64::from_ne_bytes(*word)).collect();
        Self { words, length: stream.len() }
    }

    /// Decodes the stream into all of `out`, and returns how many bytes it takes, in whole words. `None` if libzfp
    /// refuses the header, if it announces other samples, or if the stream is too short for them.
    pub(crate) fn decode(&self, shape: [u64; 3], out: &mut [f32]) -> Option<usize> {
        let bytes = self.words.len() * 8;
        let [nz, ny, nx] = shape.map(|extent| extent as usize);
        assert_eq!(out.len(), nx * ny * nz);
        // SAFETY: the words outlive the bit stream, which is only read, and there are as many as a header has at least.
        // All that is opened is closed once. The decoder is called only if the field has as many samples, of the type
        // of `out`, without gaps, and if there are as many bytes as blocks with these parameters can make it read.
        let used = unsafe {
            let bits = stream_open(self.words.as_ptr().cast_mut().cast(), bytes);
            let zfp = zfp_stream_open(bits);
            let field = zfp_field_3d(out.as_mut_ptr().cast(), zfp_type_zfp_type_float, nx, ny, nz);
            let is_read = zfp_read_header(zfp, field, ZFP_HEADER_FULL) != 0;
            let (f, longest) = (&*field, u64::from((*zfp).minbits).max(LONGEST_BLOCK));
            let is_same = f.type_ == zfp_type_zfp_type_float
                && [f.nx, f.ny, f.nz, f.nw] == [nx, ny, nz, 0]
                && [f.sx, f.sy, f.sz, f.sw] == [0; 4];
            let most = HEADER as u64 + (blocks(shape) * longest).div_ceil(8);
            let is_safe = is_read && is_same && most <= bytes as u64;
            let used = if is_safe { zfp_decompress(zfp, field) } else { 0 };
            zfp_field_free(field);
            zfp_stream_close(zfp);
            stream_close(bits);
            used
        };
        assert!(used <= bytes, "libzfp read {used} of {bytes} bytes");
        (1..=self.length).contains(&used).then_some(used)
    }
}

/// How much of the samples a stream keeps: the fewest and most bits of a block, the most bit planes, and the exponent
/// of the lowest. Below -1074 it keeps all.
pub(crate) type Limits = (u32, u32, u32, i32);

/// Compresses samples of `shape`, slowest axis first. Returns the stream with its header.
pub(crate) fn compress(samples: &[f32], shape: [u64; 3], (least, most, planes, exponent): Limits) -> Vec<u8> {
    let [nz, ny, nx] = shape.map(|extent| extent as usize);
    assert_eq!(samples.len(), nx * ny * nz);
    // SAFETY: the field has as many samples as the slice, which is only read and outlives it; the stream is as long as
    // libzfp says, and some words longer, and outlives what writes to it; all that is opened is closed once.
    let (words, used) = unsafe {
        let field = zfp_field_3d(samples.as_ptr().cast_mut().cast(), zfp_type_zfp_type_float, nx, ny, nz);
        let zfp = zfp_stream_open(ptr::null_mut());
        assert!(zfp_stream_set_params(zfp, least, most, planes, exponent) != 0);
        let mut words = vec![0u64; zfp_stream_maximum_size(zfp, field) / 8 + 8];
        let bits = stream_open(words.as_mut_ptr().cast(), words.len() * 8);
        zfp_stream_set_bit_stream(zfp, bits);
        zfp_stream_rewind(zfp);
        assert!(zfp_write_header(zfp, field, ZFP_HEADER_FULL) != 0);
        let used = zfp_compress(zfp, field);
        stream_close(bits);
        zfp_stream_close(zfp);
        zfp_field_free(field);
        (words, used)
    };
    words.iter().flat_map(|word| word.to_ne_bytes()).take(used).collect()
}
