//! libzfp's compressor, which makes the streams of tests and measurements.
#![allow(unsafe_code)]

use std::ptr;

use zfp_sys::{
    ZFP_HEADER_FULL, stream_close, stream_open, zfp_compress, zfp_field_1d, zfp_field_free, zfp_field_set_size_2d,
    zfp_field_set_size_3d, zfp_field_set_size_4d, zfp_stream_close, zfp_stream_maximum_size, zfp_stream_open,
    zfp_stream_rewind, zfp_stream_set_accuracy, zfp_stream_set_bit_stream, zfp_stream_set_params,
    zfp_stream_set_precision, zfp_stream_set_rate, zfp_stream_set_reversible, zfp_write_header,
};

/// How much of the samples a stream keeps.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Mode {
    /// Bits for each sample.
    Rate(f64),
    /// Bit planes.
    Precision(u32),
    /// The largest error.
    Accuracy(f64),
    /// All.
    Reversible,
    /// The fewest and most bits of a block, the most planes, and the exponent of the lowest.
    Expert(u32, u32, u32, i32),
}

/// Compresses `samples`, in native byte order, of the type that a header has as `scalar` and the shape `shape`, the
/// fastest axis first. Returns the stream with its header.
pub(crate) fn compress(samples: &[u8], scalar: u8, shape: &[usize], mode: Mode) -> Vec<u8> {
    let size = if scalar % 2 == 1 { 4 } else { 8 };
    assert_eq!(samples.len(), size * shape.iter().product::<usize>());
    assert!((1..=4).contains(&scalar) && (1..=4).contains(&shape.len()));
    let mut aligned: Vec<u64> = samples
        .chunks(8)
        .map(|bytes| {
            let mut word = [0; 8];
            word[..bytes.len()].copy_from_slice(bytes);
            u64::from_ne_bytes(word)
        })
        .collect();
    let (kind, axes) = (u32::from(scalar), shape.len() as u32);
    // SAFETY: the field has as many samples as the buffer, which is aligned and outlives it; the stream is as long as
    // libzfp says, and some words longer, and outlives what writes to it; all that is opened is closed once.
    let (words, used) = unsafe {
        let field = zfp_field_1d(aligned.as_mut_ptr().cast(), kind, shape[0]);
        match *shape {
            [x, y] => zfp_field_set_size_2d(field, x, y),
            [x, y, z] => zfp_field_set_size_3d(field, x, y, z),
            [x, y, z, w] => zfp_field_set_size_4d(field, x, y, z, w),
            _ => {}
        }
        let zfp = zfp_stream_open(ptr::null_mut());
        match mode {
            Mode::Rate(rate) => drop(zfp_stream_set_rate(zfp, rate, kind, axes, 0)),
            Mode::Precision(planes) => drop(zfp_stream_set_precision(zfp, planes)),
            Mode::Accuracy(error) => drop(zfp_stream_set_accuracy(zfp, error)),
            Mode::Reversible => zfp_stream_set_reversible(zfp),
            Mode::Expert(least, most, planes, exponent) => {
                assert!(zfp_stream_set_params(zfp, least, most, planes, exponent) != 0);
            }
        }
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
