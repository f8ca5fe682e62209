//! The header of a ZFP stream: type and shape of the samples, and the mode.

use super::error::ZfpError;
use super::params::{EXPERT, Params};
use super::scalar::Scalar;

/// The only supported codec version (`ZFP_CODEC` of zfp 0.5 and 1.0).
const CODEC_VERSION: u8 = 5;
/// Bytes of a header with a 12-bit mode.
const SHORT: usize = 12;
/// Bits of headers with a 12-bit mode, and of those with a 64-bit mode.
const SHORT_BITS: u64 = 96;
const LONG_BITS: u64 = 148;

/// The header of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Header {
    /// The type of the samples.
    pub scalar: Scalar,
    /// The number of axes, 1 to 4.
    pub axes: u32,
    /// Samples along each axis, the fastest first; 1 beyond the number of axes.
    pub shape: [u64; 4],
    /// The parameters that the mode stands for.
    pub params: Params,
    /// Bits of the header: 96, or 148 in expert mode.
    pub bits: u64,
}

impl Header {
    /// Reads the header at the start of `stream`.
    pub(crate) fn read(stream: &[u8]) -> Result<Self, ZfpError> {
        let too_short = ZfpError::TooShort { has: stream.len() };
        let (Some(&[z, f, p, version]), Some(meta)) = (stream.first_chunk(), number(stream, 4)) else {
            return Err(too_short);
        };
        if [z, f, p] != *b"zfp" {
            return Err(ZfpError::NotZfp);
        }
        if version != CODEC_VERSION {
            return Err(ZfpError::Version(version));
        }
        let scalar = Scalar::of((meta & 3) as u8 + 1)?;
        let axes = (meta >> 2 & 3) as u32 + 1;
        // 48 bits for all extents; of one axis alone libzfp takes 32 and leaves the others out
        let each = 48 / axes;
        let mask = (1 << each.min(32)) - 1;
        let shape = [0, 1, 2, 3].map(|axis| if axis < axes { (meta >> (4 + each * axis) & mask) + 1 } else { 1 });
        let mode = (meta >> 52) as u16;
        let more = number(stream, SHORT);
        if mode == EXPERT && more.is_none() {
            return Err(too_short);
        }
        let params = Params::of(mode, more.unwrap_or(0)).ok_or(ZfpError::Mode(mode))?;
        let bits = if mode == EXPERT { LONG_BITS } else { SHORT_BITS };
        Ok(Self { scalar, axes, shape, params, bits })
    }

    /// Returns the number of blocks.
    pub(crate) fn blocks(&self) -> u64 {
        self.shape.iter().fold(1, |n, extent| n.saturating_mul(extent.div_ceil(4)))
    }

    /// Returns the number of samples.
    pub(crate) fn samples(&self) -> u64 {
        self.shape.iter().fold(1, |n, extent| n.saturating_mul(*extent))
    }

    /// Returns the most bytes that a decoder reads of the stream, in whole words of 64 bits.
    pub(crate) fn longest(&self) -> u64 {
        whole_words(self.params.longest(self.blocks(), self.scalar, self.axes))
    }

    /// Checks that a stream of `length` bytes has room for the fewest bits that its blocks can take.
    pub(crate) fn check_length(&self, length: usize) -> Result<(), ZfpError> {
        let room = (length as u64).saturating_sub(SHORT as u64).saturating_mul(8);
        match self.params.shortest(self.blocks()) > room {
            true => Err(ZfpError::TooShort { has: length }),
            false => Ok(()),
        }
    }
}

/// Returns the bytes of a stream whose blocks have `bits`, header included, in whole words of 64 bits.
fn whole_words(bits: u64) -> u64 {
    bits.saturating_add(LONG_BITS).div_ceil(64).saturating_mul(8)
}

/// Returns the number of blocks of 4 x 4 x 4 that cover `shape`.
fn blocks(shape: [u64; 3]) -> u64 {
    shape.iter().fold(1, |n, extent| n.saturating_mul(extent.div_ceil(4)))
}

/// Returns the most bytes that a stream of float32 of this shape takes in any mode, except for fixed rates above that
/// of uncompressed samples.
pub(super) fn longest(shape: [u64; 3]) -> u64 {
    whole_words(Params::EXACT.longest(blocks(shape), Scalar::Float32, 3))
}

/// Returns the fewest bytes that a stream of float32 of this shape takes in any mode.
pub(super) fn shortest(shape: [u64; 3]) -> u64 {
    blocks(shape).div_ceil(8).saturating_add(SHORT as u64)
}

/// Reads the header at the start of `stream`, and checks that it announces float32 of `shape` (slowest axis first) and
/// that the stream is long enough for its blocks.
pub(super) fn check(stream: &[u8], shape: [u64; 3]) -> Result<Header, ZfpError> {
    let header = Header::read(stream)?;
    if header.scalar != Scalar::Float32 {
        return Err(ZfpError::Scalar(header.scalar.code()));
    }
    if header.axes != 3 {
        return Err(ZfpError::Axes(header.axes as u8));
    }
    let [x, y, z, _] = header.shape;
    if [z, y, x] != shape {
        return Err(ZfpError::Shape([z, y, x]));
    }
    header.check_length(stream.len())?;
    Ok(header)
}

/// Returns the little-endian 64-bit number at byte `at`.
fn number(stream: &[u8], at: usize) -> Option<u64> {
    stream.get(at..)?.first_chunk().map(|bytes| u64::from_le_bytes(*bytes))
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// Builds a header without blocks.
    pub(crate) fn header(shape: [u64; 3], mode: u16, more: u64) -> Vec<u8> {
        let [nz, ny, nx] = shape.map(|n| n - 1);
        let meta = 2 | 2 << 2 | nx << 4 | ny << 20 | nz << 36 | u64::from(mode) << 52;
        [&b"zfp\x05"[..], &meta.to_le_bytes(), &more.to_le_bytes()].concat()
    }

    const CUBE: [u64; 3] = [4, 8, 16];

    fn params(mode: u16, more: u64) -> Result<Params, ZfpError> {
        let mut stream = header(CUBE, mode, more);
        stream.resize(100_000, 0);
        check(&stream, CUBE).map(|header| header.params)
    }

    #[test]
    fn modes_are_understood_as_libzfp_does() {
        let any = Params { min_bits: 1, max_bits: 16_658, max_precision: 64, min_exponent: -1074 };
        assert_eq!(Params::ANY, any);
        assert_eq!(params(0, 0), Ok(Params { min_bits: 1, max_bits: 1, ..any }));
        assert_eq!(params(2047, 0), Ok(Params { min_bits: 2048, max_bits: 2048, ..any }));
        assert_eq!(params(2048 + 11, 0), Ok(Params { max_precision: 12, ..any }));
        assert_eq!(params(2048 + 64, 0), Err(ZfpError::Mode(2112)));
        assert_eq!(params(2176, 0), Ok(Params { min_exponent: -1075, ..any }));
        assert_eq!(params(2177, 0), Ok(any));
        assert_eq!(params(4094, 0), Ok(Params { min_exponent: 843, ..any }));
        let more = 4 | 9 << 15 | 2 << 30 | 16_495 << 37;
        assert_eq!(params(4095, more), Ok(Params { min_bits: 5, max_bits: 10, max_precision: 3, min_exponent: 0 }));
        assert_eq!(params(4095, 10 | 9 << 15), Err(ZfpError::Mode(4095)));
    }

    #[test]
    fn a_stream_without_room_for_its_blocks_is_too_short() {
        let blocks = blocks(CUBE) as usize;
        assert_eq!(blocks, 8);
        let stream = header(CUBE, 2176, 0);
        assert!(check(&stream[..13], CUBE).is_ok());
        assert_eq!(check(&stream[..12], CUBE), Err(ZfpError::TooShort { has: 12 }));
        let mut fixed = header(CUBE, 2047, 0);
        fixed.resize(12 + blocks * 256, 0);
        assert!(check(&fixed, CUBE).is_ok());
        assert!(matches!(check(&fixed[..fixed.len() - 1], CUBE), Err(ZfpError::TooShort { .. })));
    }

    #[test]
    fn headers_that_are_not_the_bricks_are_refused() {
        let mut good = header(CUBE, 2176, 0);
        good.resize(64, 0);
        let with = |at: usize, byte: u8| {
            let mut bad = good.clone();
            bad[at] = byte;
            check(&bad, CUBE)
        };
        assert!(check(&good, CUBE).is_ok());
        assert_eq!(with(0, b'Z'), Err(ZfpError::NotZfp));
        assert_eq!(with(3, 4), Err(ZfpError::Version(4)));
        assert_eq!(with(4, good[4] & !3), Err(ZfpError::Scalar(1)));
        assert_eq!(with(4, good[4] | 3), Err(ZfpError::Scalar(4)));
        assert_eq!(with(4, good[4] & !12), Err(ZfpError::Axes(1)));
        assert_eq!(check(&good, [16, 8, 4]), Err(ZfpError::Shape(CUBE)));
        assert_eq!(check(&good[..11], CUBE), Err(ZfpError::TooShort { has: 11 }));
        assert_eq!(check(&[], CUBE), Err(ZfpError::TooShort { has: 0 }));
    }
}
