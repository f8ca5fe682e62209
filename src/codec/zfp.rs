//! ZFP: three-dimensional float32, of every mode, as libzfp decodes it.

use thiserror::Error;

use super::zfp_ffi::{self, Words};
use super::zfp_header;

/// Why a stream is not decoded.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum ZfpError {
    /// The stream does not begin like one.
    #[error("it does not begin with \"zfp\"")]
    NotZfp,
    /// The stream is shorter than its own header says it must be.
    #[error("{has} bytes are too few for its ZFP stream")]
    TooShort {
        /// Bytes that there are.
        has: usize,
    },
    /// Written by a ZFP that is not understood.
    #[error("ZFP codec version {0} is not supported")]
    Version(u8),
    /// Samples of another type than float32.
    #[error("its ZFP stream has samples of type {0}, not float32")]
    Scalar(u8),
    /// Not three-dimensional.
    #[error("its ZFP stream has {0} dimensions, not 3")]
    Axes(u8),
    /// Another shape than the brick's.
    #[error("its ZFP stream has the shape {0:?}, not the brick's")]
    Shape([u64; 3]),
    /// Parameters that make no sense.
    #[error("ZFP mode {0} is not supported")]
    Mode(u16),
    /// The stream goes on behind its end.
    #[error("its ZFP stream ends too early: it takes {used} bytes and has {has}")]
    Overrun {
        /// Bytes that decoding took.
        used: usize,
        /// Bytes that there are.
        has: usize,
    },
    /// The slice for the samples has the wrong length.
    #[error("there is room for {has} bytes of samples, not for {wanted}")]
    Room {
        /// Bytes that there are.
        has: usize,
        /// Bytes of the samples.
        wanted: u64,
    },
    /// libzfp refused, for reasons of its own.
    #[error("libzfp cannot decode it")]
    Refused,
}

/// Zero bytes to put behind a stream of `stored` bytes so that [`decode`] need not copy it. `shape` is slowest axis first.
#[must_use]
pub fn padding(shape: [u64; 3], stored: u64) -> usize {
    usize::try_from(zfp_header::longest(shape).saturating_sub(stored)).unwrap_or(usize::MAX)
}

/// The fewest bytes that a stream of this shape can have; slowest axis first.
#[must_use]
pub fn shortest(shape: [u64; 3]) -> u64 {
    zfp_header::shortest(shape)
}

/// Decodes a stream into `out`: float32 in C order, `shape` slowest axis first. The stream is the first `length` bytes of
/// `padded`, what follows are zeros; with as many as [`padding`] says nothing is copied.
///
/// # Errors
/// [`ZfpError`] where the stream is not exactly what `shape` announces. Damage inside the blocks shows only where it makes
/// the stream longer than it is.
pub fn decode(shape: [u64; 3], padded: &[u8], length: usize, out: &mut [u8]) -> Result<(), ZfpError> {
    let stream = padded.get(..length).ok_or(ZfpError::TooShort { has: padded.len() })?;
    let wanted = shape.iter().fold(4u64, |bytes, extent| bytes.saturating_mul(*extent));
    if out.len() as u64 != wanted {
        return Err(ZfpError::Room { has: out.len(), wanted });
    }
    let params = zfp_header::check(stream, shape)?;
    // bounded: each block was found to have its least number of bits in the stream
    let needed = usize::try_from(params.longest(zfp_header::blocks(shape))).map_err(|_| ZfpError::Refused)?;
    let used = match Words::borrowed(padded).filter(|_| padded.len() >= needed) {
        Some(words) => into_bytes(&words, out),
        None => into_bytes(&Words::copied(stream, needed), out),
    }?;
    if used > length {
        return Err(ZfpError::Overrun { used, has: length });
    }
    Ok(())
}

/// Decodes into bytes that may stand at any address.
fn into_bytes(words: &Words<'_>, out: &mut [u8]) -> Result<usize, ZfpError> {
    if let Some(samples) = zfp_ffi::as_samples(out) {
        return zfp_ffi::decompress(words, samples).ok_or(ZfpError::Refused);
    }
    let mut samples = vec![0f32; out.len() / 4];
    let used = zfp_ffi::decompress(words, &mut samples).ok_or(ZfpError::Refused)?;
    out.as_chunks_mut().0.iter_mut().zip(samples).for_each(|(to, sample)| *to = sample.to_ne_bytes());
    Ok(used)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::zfp_header::tests::header;
    use super::*;

    const CUBE: [u64; 3] = [4, 8, 16];
    const BYTES: usize = 4 * 8 * 16 * 4;

    /// A header and whatever bits: every such stream decodes to something, if it is long enough.
    fn noise(mode: u16, more: u64, length: usize) -> Vec<u8> {
        let mut state = 0x9e37_79b9_7f4a_7c15u64;
        let mut stream = header(CUBE, mode, more);
        if mode != 4095 {
            stream.truncate(12);
        }
        while stream.len() < length {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            stream.push(state as u8);
        }
        stream
    }

    fn decoded(stream: &[u8]) -> Result<Vec<u8>, ZfpError> {
        let mut out = vec![1; BYTES];
        decode(CUBE, stream, stream.len(), &mut out).map(|()| out)
    }

    #[test]
    fn zeros_are_zeros() {
        let mut stream = header(CUBE, 2176, 0)[..12].to_vec();
        stream.resize(16, 0);
        assert_eq!(decoded(&stream), Ok(vec![0; BYTES]));
        assert_eq!(shortest(CUBE), 13);
        // libzfp consumes words of 8 bytes
        assert_eq!(decoded(&stream[..13]), Err(ZfpError::Overrun { used: 16, has: 13 }));
    }

    #[test]
    fn alignment_and_padding_make_no_difference() {
        let stream = noise(2176, 0, 4000);
        let expected = decoded(&stream).unwrap();
        for shift in 0..9 {
            let mut padded = vec![0; shift];
            padded.extend_from_slice(&stream);
            padded.resize(shift + stream.len() + padding(CUBE, stream.len() as u64) + shift, 0);
            let mut out = vec![7; BYTES + shift];
            decode(CUBE, &padded[shift..], stream.len(), &mut out[shift..]).unwrap();
            assert!(out[shift..] == expected);
        }
    }

    #[test]
    fn a_stream_that_goes_on_behind_its_end_is_refused() {
        let stream = noise(2176, 0, 4000);
        assert!(matches!(decoded(&stream[..40]), Err(ZfpError::Overrun { has: 40, .. })));
        assert_eq!(decode(CUBE, &stream, 5000, &mut [0; BYTES]), Err(ZfpError::TooShort { has: 4000 }));
        assert!(matches!(decode(CUBE, &stream, 4000, &mut [0; 8]), Err(ZfpError::Room { has: 8, .. })));
    }

    #[test]
    fn rates_below_the_exponents_size_do_not_run_away() {
        // libzfp counts below zero there, and then knows no limit
        for mode in 0..16 {
            drop(decoded(&noise(mode, 0, 64)));
            drop(decoded(&noise(mode, 0, 4000)));
        }
        for max_bits in 0..20u64 {
            let reversible_of_one_plane = max_bits << 15;
            drop(decoded(&noise(4095, reversible_of_one_plane, 4000)));
            drop(decoded(&noise(4095, reversible_of_one_plane, 21)));
        }
    }

    /// Nothing but ones: every group test and every scan takes its bit.
    fn ones(mode: u16, more: u64, length: usize) -> Vec<u8> {
        let mut stream = header(CUBE, mode, more)[..if mode == 4095 { 19 } else { 12 }].to_vec();
        stream.resize(length, 0xff);
        stream
    }

    #[test]
    fn the_longest_streams_of_every_mode_decode() {
        let enough = zfp_header::longest(CUBE) as usize + 4000;
        for mode in 0..4095 {
            assert_eq!(decoded(&ones(mode, 0, enough)).is_ok(), !(2112..2176).contains(&mode), "{mode}");
        }
    }

    #[test]
    fn streams_of_any_length_stay_inside_what_was_made_for_them() {
        // short ones are copied into just the words that they are thought to take at most; that libzfp reads no more is
        // asserted where it is called
        let plain = (0..20).chain([2047, 2048, 2060, 2111, 2176, 2177, 3000, 4094]).map(|mode| (mode, 0));
        let limits = (0..40).chain((40..0x8000).step_by(797));
        let expert = limits.flat_map(|max_bits| {
            let rest = [0, 63 << 30, 16_495 << 37, 16_495 << 37 | 1 << 30, 16_495 << 37 | 63 << 30];
            rest.map(|rest| (4095, max_bits << 15 | rest))
        });
        for (mode, more) in plain.chain(expert) {
            for length in (19..2300).step_by(61) {
                drop(decoded(&ones(mode, more, length)));
                drop(decoded(&noise(mode, more, length)));
            }
        }
    }

    proptest! {
        #[test]
        fn no_header_makes_libzfp_leave_its_buffers(
            mode in 0u16..4096,
            more in any::<u64>(),
            length in 0usize..5000,
            flips in prop::collection::vec((0usize..24, any::<u8>()), 0..3),
        ) {
            let mut stream = noise(mode, more, length);
            for (at, bits) in flips {
                if let Some(byte) = stream.get_mut(at) {
                    *byte ^= bits;
                }
            }
            drop(decoded(&stream));
        }

        #[test]
        fn expert_streams_stay_inside_as_well(more in any::<u64>(), length in 20usize..40_000) {
            drop(decoded(&noise(4095, more, length)));
        }
    }
}
