//! libzfp, for comparisons, and for streams that are not decoded here: the only file of the crate that calls it.
//!
//! libzfp checks neither the end of its input nor that of its output. [`Stream::decode`] and [`decode`] are safe
//! nevertheless: they read back what libzfp took from the header, and call the decoder only if that is the type and the
//! number of samples that there is room for, and the input is as long as blocks with these parameters can be.
#![allow(unsafe_code)]

use std::ptr;

use super::header::{Samples, number};
use crate::memory::try_with_capacity;
use zerocopy::IntoBytes;
use zfp_sys::{
    ZFP_HEADER_FULL, stream_close, stream_open, zfp_compress, zfp_decompress, zfp_field_3d, zfp_field_alloc,
    zfp_field_free, zfp_field_set_pointer, zfp_read_header, zfp_stream_close, zfp_stream_maximum_size, zfp_stream_open,
    zfp_stream_rewind, zfp_stream_set_bit_stream, zfp_stream_set_params, zfp_type, zfp_type_zfp_type_float,
    zfp_write_header,
};

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

/// The most bytes of padded streams for each byte of samples, and for any.
const MOST_FOR_EACH: usize = 32;
const MOST_FOR_ANY: usize = 64 << 10;

/// Returns the memory that [`decode`] takes for so many bytes of samples.
pub(crate) fn scratch(decoded: usize) -> usize {
    decoded.saturating_mul(MOST_FOR_EACH + 1).saturating_add(MOST_FOR_ANY)
}

/// Decodes a stream of samples of any type and number of axes into `out`, which has as many bytes as they do.
pub(crate) fn decode(samples: &Samples, stream: &[u8], out: &mut [u8]) -> Result<(), String> {
    if out.len() as u64 != samples.bytes() {
        return Err(format!("there is room for {} bytes of samples, not for {}", out.len(), samples.bytes()));
    }
    let most = out.len().saturating_mul(MOST_FOR_EACH).saturating_add(MOST_FOR_ANY);
    if Stream::padded(stream, samples) > most as u64 {
        return Err("blocks of its ZFP stream are padded to more than is read".into());
    }
    let bytes = Stream::of(stream, samples);
    // libzfp writes whole numbers, which `out` may not be aligned for
    let mut words = try_with_capacity(out.len().div_ceil(8)).map_err(|error| error.to_string())?;
    words.resize(out.len().div_ceil(8), 0);
    bytes.decode_to(samples, &mut words).ok_or("libzfp cannot decode its ZFP stream")?;
    out.copy_from_slice(&words.as_bytes()[..out.len()]);
    Ok(())
}

impl Stream {
    /// Copies a stream of float32 of `shape`, and pads it for the longest blocks that its header allows.
    pub(crate) fn new(stream: &[u8], shape: [u64; 3]) -> Self {
        Self::of(stream, &volume(shape))
    }

    fn of(stream: &[u8], samples: &Samples) -> Self {
        let mut bytes = stream.to_vec();
        bytes.resize(stream.len().max(Self::padded(stream, samples) as usize).next_multiple_of(8), 0);
        let words = bytes.as_chunks().0.iter().map(|word| u64::from_ne_bytes(*word)).collect();
        Self { words, length: stream.len() }
    }

    /// Returns the bytes of the longest stream of such samples that has the parameters of this one.
    fn padded(stream: &[u8], samples: &Samples) -> u64 {
        let number = |at: usize| number(stream, at).unwrap_or(0);
        let padded = match number(4) >> 52 {
            mode @ ..2048 => mode + 1,
            4095 => (number(12) & 0x7fff) + 1,
            _ => 1,
        };
        longest(samples, padded.min(MOST_PADDED))
    }

    /// Decodes the stream into all of `out`, and returns how many bytes it takes, in whole words. `None` if libzfp
    /// refuses the header, if it announces other samples, or if the stream is too short for them.
    pub(crate) fn decode(&self, shape: [u64; 3], out: &mut [f32]) -> Option<usize> {
        let mut words = vec![0; out.len().div_ceil(2)];
        let used = self.decode_to(&volume(shape), &mut words);
        let samples = words.as_bytes().as_chunks::<4>().0;
        out.iter_mut().zip(samples).for_each(|(to, sample)| *to = f32::from_ne_bytes(*sample));
        used
    }

    fn decode_to(&self, samples: &Samples, out: &mut [u64]) -> Option<usize> {
        let bytes = self.words.len() * 8;
        assert!(out.len() as u64 >= samples.bytes().div_ceil(8));
        // SAFETY: the words outlive the bit stream, which is only read, and there are as many as a header has at least.
        // All that is opened is closed once. The decoder is called only if the field has as many samples, of the type,
        // as there is room for in `out`, without gaps, and if there are as many bytes as blocks with these parameters
        // can make it read.
        let used = unsafe {
            let bits = stream_open(self.words.as_ptr().cast_mut().cast(), bytes);
            let zfp = zfp_stream_open(bits);
            let field = zfp_field_alloc();
            zfp_field_set_pointer(field, out.as_mut_ptr().cast());
            let is_read = zfp_read_header(zfp, field, ZFP_HEADER_FULL) != 0;
            let f = &*field;
            let extents = std::array::from_fn(|axis| if axis < samples.axes { samples.extents[axis] } else { 0 });
            let is_same = f.type_ == zfp_type::from(samples.scalar)
                && [f.nx, f.ny, f.nz, f.nw].map(|extent| extent as u64) == extents
                && [f.sx, f.sy, f.sz, f.sw] == [0; 4];
            let is_safe = is_read && is_same && longest(samples, (*zfp).minbits.into()) <= bytes as u64;
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

fn volume([z, y, x]: [u64; 3]) -> Samples {
    Samples { scalar: zfp_type_zfp_type_float as u8, axes: 3, extents: [x, y, z, 1] }
}

/// Returns the most bytes that libzfp reads for the blocks of samples and their header. Blocks are padded to `least` bits.
fn longest(samples: &Samples, least: u64) -> u64 {
    let values = 1 << (2 * samples.axes);
    // flags, exponent, precision, group tests, planes
    let block = 1 + 1 + 11 + 6 + (values - 1) + values * 8 * samples.size();
    let axes = samples.extents.iter().take(samples.axes);
    let blocks = axes.fold(1u64, |blocks, extent| blocks.saturating_mul(extent.div_ceil(4)));
    HEADER as u64 + blocks.saturating_mul(block.max(least)).div_ceil(8)
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
