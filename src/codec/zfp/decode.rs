//! Decoding of one brick with either decoder.

use super::array::{Instructions, Strides, decode_blocks};
use super::error::ZfpError;
use super::header::{self, Header};
use super::libzfp::{self, Words};

/// The decoders, which return the same samples for every stream and refuse the same streams.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Decoder {
    /// That of volfs, with the fastest instructions that this machine has.
    #[default]
    Volfs,
    /// libzfp.
    Libzfp,
}

/// Returns how many zero bytes must follow a stream of `stored` bytes so that [`decode`] need not copy it. `shape` is
/// slowest axis first.
pub(crate) fn padding(decoder: Decoder, shape: [u64; 3], stored: u64) -> usize {
    match decoder {
        Decoder::Volfs => 0,
        Decoder::Libzfp => usize::try_from(header::longest(shape).saturating_sub(stored)).unwrap_or(usize::MAX),
    }
}

/// Returns the fewest bytes that a stream of this shape (slowest axis first) can have.
pub(crate) fn shortest(shape: [u64; 3]) -> u64 {
    header::shortest(shape)
}

/// Decodes a stream into `out`: float32 in C order and native byte order, `shape` slowest axis first. The stream is the
/// first `length` bytes of `padded`; zeros follow it. If there are at least [`padding`] of them, nothing is copied.
/// Damage inside the blocks is detected only if it makes the decoder read beyond the end of the stream.
pub(crate) fn decode(
    decoder: Decoder,
    shape: [u64; 3],
    padded: &[u8],
    length: usize,
    out: &mut [u8],
) -> Result<(), ZfpError> {
    let stream = padded.get(..length).ok_or(ZfpError::TooShort { has: padded.len() })?;
    let wanted = shape.iter().fold(4u64, |bytes, extent| bytes.saturating_mul(*extent));
    if out.len() as u64 != wanted {
        return Err(ZfpError::Room { has: out.len(), wanted });
    }
    let header = header::check(stream, shape)?;
    match decoder {
        Decoder::Volfs => decode_blocks(stream, &header, &Strides::dense(header.shape), out, Instructions::best()),
        Decoder::Libzfp => by_libzfp(&header, stream, padded, out),
    }
    .map(drop)
}

/// Decodes a stream of any header with libzfp into all of `out`, samples in native byte order, the fastest axis first.
/// Returns how many bytes of the stream it takes, in whole words of 64 bits.
pub(crate) fn decode_by_libzfp(stream: &[u8], out: &mut [u8]) -> Result<usize, ZfpError> {
    let header = Header::read(stream)?;
    header.check_length(stream.len())?;
    let wanted = header.samples().saturating_mul(header.scalar.size() as u64);
    if out.len() as u64 != wanted {
        return Err(ZfpError::Room { has: out.len(), wanted });
    }
    by_libzfp(&header, stream, stream, out)
}

/// Decodes a stream that was checked. `padded` is it with zeros behind.
fn by_libzfp(header: &Header, stream: &[u8], padded: &[u8], out: &mut [u8]) -> Result<usize, ZfpError> {
    // bounded, since there is at least the minimum number of bits for each block
    let needed = usize::try_from(header.longest()).map_err(|_| ZfpError::Refused)?;
    let used = match Words::borrowed(padded).filter(|_| padded.len() >= needed) {
        Some(words) => into_bytes(&words, header, out),
        None => into_bytes(&Words::copied(stream, needed), header, out),
    }?;
    match used > stream.len() {
        true => Err(ZfpError::Overrun { used, has: stream.len() }),
        false => Ok(used),
    }
}

/// Decodes into bytes of any alignment and returns how many bytes libzfp consumed.
fn into_bytes(words: &Words<'_>, header: &Header, out: &mut [u8]) -> Result<usize, ZfpError> {
    if out.as_ptr().align_offset(header.scalar.size()) == 0 {
        return libzfp::decompress(words, out).ok_or(ZfpError::Refused);
    }
    // one sample more than there are, so that some part of the bytes is aligned
    let mut samples = vec![0; out.len() + 8];
    let from = samples.as_ptr().align_offset(header.scalar.size());
    let samples = samples.get_mut(from..).and_then(|s| s.get_mut(..out.len())).ok_or(ZfpError::Refused)?;
    let used = libzfp::decompress(words, samples).ok_or(ZfpError::Refused)?;
    out.copy_from_slice(samples);
    Ok(used)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::header::tests::header as zfp_header;
    use super::*;

    const BOTH: [Decoder; 2] = [Decoder::Volfs, Decoder::Libzfp];

    const CUBE: [u64; 3] = [4, 8, 16];
    const BYTES: usize = 4 * 8 * 16 * 4;

    /// Builds a header and pseudo-random blocks: every such stream decodes to something if it is long enough.
    fn noise(mode: u16, more: u64, length: usize) -> Vec<u8> {
        let mut state = 0x9e37_79b9_7f4a_7c15u64;
        let mut stream = zfp_header(CUBE, mode, more);
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

    /// Decodes with both decoders, which agree on the samples and on which streams to refuse.
    fn decoded(stream: &[u8]) -> Result<Vec<u8>, ZfpError> {
        let by = |decoder, fill| {
            let mut out = vec![fill; BYTES];
            decode(decoder, CUBE, stream, stream.len(), &mut out).map(|()| out)
        };
        let (ours, theirs) = (by(Decoder::Volfs, 1), by(Decoder::Libzfp, 2));
        assert_eq!(ours.is_ok(), theirs.is_ok(), "{:?} {:?}", ours.err(), theirs.err());
        assert!(ours.is_err() || ours == theirs, "the samples differ");
        ours
    }

    #[test]
    fn zeros_are_zeros() {
        let mut stream = zfp_header(CUBE, 2176, 0)[..12].to_vec();
        stream.resize(16, 0);
        assert_eq!(decoded(&stream), Ok(vec![0; BYTES]));
        assert_eq!(shortest(CUBE), 13);
        // libzfp consumes words of 8 bytes, and both count so
        assert_eq!(decoded(&stream[..13]), Err(ZfpError::Overrun { used: 16, has: 13 }));
    }

    #[test]
    fn alignment_and_padding_make_no_difference() {
        let stream = noise(2176, 0, 4000);
        let expected = decoded(&stream).unwrap();
        for shift in 0..9 {
            let mut padded = vec![0; shift];
            padded.extend_from_slice(&stream);
            padded.resize(shift + stream.len() + padding(Decoder::Libzfp, CUBE, stream.len() as u64) + shift, 0);
            for decoder in BOTH {
                let mut out = vec![7; BYTES + shift];
                decode(decoder, CUBE, &padded[shift..], stream.len(), &mut out[shift..]).unwrap();
                assert!(out[shift..] == expected);
            }
        }
    }

    #[test]
    fn a_stream_that_continues_beyond_its_end_is_refused() {
        let stream = noise(2176, 0, 4000);
        assert!(matches!(decoded(&stream[..40]), Err(ZfpError::Overrun { has: 40, .. })));
        for by in BOTH {
            assert_eq!(decode(by, CUBE, &stream, 5000, &mut [0; BYTES]), Err(ZfpError::TooShort { has: 4000 }));
            assert!(matches!(decode(by, CUBE, &stream, 4000, &mut [0; 8]), Err(ZfpError::Room { has: 8, .. })));
        }
    }

    #[test]
    fn rates_below_the_size_of_the_exponent_stay_inside_the_buffers() {
        // libzfp's bit budget underflows at these rates, and no longer limits anything
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

    /// Builds a stream of ones: every group test and every bit-plane scan consumes its bit, so that the stream is the
    /// longest.
    fn ones(mode: u16, more: u64, length: usize) -> Vec<u8> {
        let mut stream = zfp_header(CUBE, mode, more)[..if mode == 4095 { 19 } else { 12 }].to_vec();
        stream.resize(length, 0xff);
        stream
    }

    #[test]
    fn the_longest_streams_of_every_mode_decode() {
        let enough = header::longest(CUBE) as usize + 4000;
        for mode in 0..4095 {
            assert_eq!(decoded(&ones(mode, 0, enough)).is_ok(), !(2112..2176).contains(&mode), "{mode}");
        }
    }

    #[test]
    fn libzfp_stays_inside_its_input_for_streams_of_any_length() {
        // short streams are copied into exactly the words that the header allows libzfp to read; `libzfp::decompress`
        // asserts that it reads no more
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
