//! The header of a ZFP stream: magic bytes, type and shape of the samples, and the mode.

use std::fmt;

/// The only supported codec version (`ZFP_CODEC` of zfp 0.5 and 1.0).
const CODEC_VERSION: u8 = 5;
const FLOAT32: u8 = 3;
/// Bytes of a header with a 12-bit mode.
const SHORT: usize = 12;
/// Bits of headers with a 12-bit mode, and of those with a 64-bit mode.
const SHORT_BITS: u64 = 96;
const LONG_BITS: u64 = 148;
/// The smallest exponent that does not mean reversible (`ZFP_MIN_EXP`).
const MIN_EXPONENT: i32 = -1074;
/// The most bits that a block can have in modes that do not limit them (`ZFP_MAX_BITS`).
pub(super) const MAX_BITS: u32 = 16_658;
/// The first mode numbers after fixed rate: fixed precision, reversible, fixed accuracy, and at the end expert mode,
/// which has its parameters in 52 further bits.
const PRECISION: u16 = 2048;
const REVERSIBLE: u16 = 2176;
const EXPERT: u16 = 4095;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Header {
    pub params: Params,
    /// Bits of the header.
    pub bits: u64,
}

/// The names of the types of samples, from number 1 on.
const SCALARS: [&str; 4] = ["int32", "int64", "float32", "float64"];

/// What a stream says of its samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Samples {
    /// The number of their type.
    pub(super) scalar: u8,
    pub(super) axes: usize,
    /// The extents along the axes, the fastest first; 1 along those that are missing.
    pub(super) extents: [u64; 4],
}

impl Samples {
    /// Reads the type and the shape of the samples of a stream. Nothing else is checked.
    pub(crate) fn read(stream: &[u8]) -> Result<Self, String> {
        let (Some(magic), Some(meta)) = (stream.first_chunk::<3>(), number(stream, 4)) else {
            return Err(format!("{} bytes are too few for its ZFP stream", stream.len()));
        };
        if magic != b"zfp" {
            return Err("its ZFP stream does not begin with \"zfp\"".into());
        }
        let axes = (meta >> 2 & 3) as usize + 1;
        // all extents together have 48 bits
        let width = 48 / axes;
        let extent = |axis: usize| (meta >> (4 + axis * width) & ((1 << width) - 1)) + 1;
        let extents = std::array::from_fn(|axis| if axis < axes { extent(axis) } else { 1 });
        Ok(Self { scalar: (meta & 3) as u8 + 1, axes, extents })
    }

    /// Returns the bytes of all samples.
    pub(crate) fn bytes(&self) -> u64 {
        self.extents.iter().fold(self.size(), |bytes, extent| bytes.saturating_mul(*extent))
    }

    pub(super) fn size(&self) -> u64 {
        if self.scalar.is_multiple_of(2) { 8 } else { 4 }
    }

    /// Returns the shape (slowest axis first) if the samples are float32 in three dimensions.
    pub(super) fn volume(&self) -> Option<[u64; 3]> {
        let [x, y, z, _] = self.extents;
        (self.scalar == FLOAT32 && self.axes == 3).then_some([z, y, x])
    }
}

impl fmt::Display for Samples {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scalar = SCALARS.get(usize::from(self.scalar) - 1).unwrap_or(&"?");
        write!(f, "{scalar} in {} dimensions", self.axes)
    }
}

impl Header {
    /// Reads the header at the start of `stream`, which must be one of float32 of `shape` (slowest axis first), and
    /// checks that the stream has room for the fewest bits that its blocks can take.
    pub(super) fn read(stream: &[u8], shape: [u64; 3]) -> Result<Self, String> {
        let too_short = || format!("{} bytes are too few for its ZFP stream", stream.len());
        let (Some(&[z, f, p, version]), Some(meta)) = (stream.first_chunk(), number(stream, 4)) else {
            return Err(too_short());
        };
        if [z, f, p] != *b"zfp" {
            return Err("it does not begin with \"zfp\"".into());
        }
        if version != CODEC_VERSION {
            return Err(format!("ZFP codec version {version} is not supported"));
        }
        let [scalar, axes] = [meta & 3, meta >> 2 & 3].map(|code| code as u8 + 1);
        if scalar != FLOAT32 {
            return Err(format!("its ZFP stream has samples of type {scalar}, not float32"));
        }
        if axes != 3 {
            return Err(format!("its ZFP stream has {axes} dimensions, not 3"));
        }
        let found = [36, 20, 4].map(|bit| (meta >> bit & 0xffff) + 1);
        if found != shape {
            return Err(format!("its ZFP stream has the shape {found:?}, not the brick's"));
        }
        let (mode, more) = ((meta >> 52) as u16, number(stream, SHORT));
        if mode == EXPERT && more.is_none() {
            return Err(too_short());
        }
        let params = Params::from_mode(mode, more.unwrap_or(0));
        let params = params.ok_or_else(|| format!("ZFP mode {mode} is not supported"))?;
        let room = (stream.len() - SHORT) as u64 * 8;
        if blocks(shape).saturating_mul(params.min_bits.into()) > room {
            return Err(too_short());
        }
        Ok(Self { params, bits: if mode == EXPERT { LONG_BITS } else { SHORT_BITS } })
    }
}

/// Returns the fewest bytes that a stream of this shape takes in any mode.
pub(crate) fn shortest(shape: [u64; 3]) -> u64 {
    blocks(shape).div_ceil(8).saturating_add(SHORT as u64)
}

/// Returns the number of blocks of 4 x 4 x 4 that cover `shape`.
pub(super) fn blocks(shape: [u64; 3]) -> u64 {
    shape.iter().fold(1, |n, extent| n.saturating_mul(extent.div_ceil(4)))
}

/// Returns the little-endian 64-bit number at byte `at`.
pub(super) fn number(stream: &[u8], at: usize) -> Option<u64> {
    stream.get(at..)?.first_chunk().map(|bytes| u64::from_le_bytes(*bytes))
}

/// The four parameters of a mode, as in libzfp's `zfp_stream`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Params {
    /// The fewest bits of a block, at least 1.
    pub min_bits: u32,
    /// The most bits of a block.
    pub max_bits: u32,
    /// The most bit planes of a block that is not reversible.
    pub max_precision: u32,
    /// The exponent of the lowest bit plane that is stored. Below -1074 blocks are reversible.
    pub min_exponent: i32,
}

impl Params {
    /// The parameters that limit nothing.
    const ANY: Self = Self { min_bits: 1, max_bits: MAX_BITS, max_precision: 64, min_exponent: MIN_EXPONENT };

    /// Returns the parameters of mode number `mode`; `more` holds the 52 bits that follow it in expert mode. `None` if
    /// they are invalid.
    fn from_mode(mode: u16, more: u64) -> Option<Self> {
        let any = Self::ANY;
        let params = match mode {
            0..PRECISION => Self { min_bits: u32::from(mode) + 1, max_bits: u32::from(mode) + 1, ..any },
            PRECISION..REVERSIBLE => Self { max_precision: u32::from(mode - PRECISION) + 1, ..any },
            REVERSIBLE => Self { min_exponent: MIN_EXPONENT - 1, ..any },
            EXPERT => Self {
                min_bits: (more & 0x7fff) as u32 + 1,
                max_bits: (more >> 15 & 0x7fff) as u32 + 1,
                max_precision: (more >> 30 & 0x7f) as u32 + 1,
                min_exponent: (more >> 37 & 0x7fff) as i32 - 16_495,
            },
            _ => Self { min_exponent: i32::from(mode - REVERSIBLE - 1) + MIN_EXPONENT, ..any },
        };
        (params.min_bits <= params.max_bits && params.max_precision <= 64).then_some(params)
    }

    /// Returns whether blocks are stored without loss.
    #[inline(always)]
    pub(super) fn is_reversible(&self) -> bool {
        self.min_exponent < MIN_EXPONENT
    }

    /// Returns the bits of every block, if all have the same number.
    pub(super) fn fixed_length(&self) -> Option<u64> {
        // flag and exponent, of reversible blocks a second flag and the precision; a lower limit limits nothing
        let front = if self.is_reversible() { 15 } else { 9 };
        (self.min_bits == self.max_bits && self.max_bits >= front).then_some(self.max_bits.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codec::zfp::tests::header;

    const CUBE: [u64; 3] = [4, 8, 16];

    fn params(mode: u16, more: u64) -> Result<Params, String> {
        let mut stream = header(CUBE, mode, more);
        stream.resize(100_000, 0);
        Header::read(&stream, CUBE).map(|header| header.params)
    }

    #[test]
    fn modes_are_understood_as_libzfp_does() {
        let any = Params { min_bits: 1, max_bits: 16_658, max_precision: 64, min_exponent: -1074 };
        assert_eq!(Params::ANY, any);
        assert_eq!(params(0, 0), Ok(Params { min_bits: 1, max_bits: 1, ..any }));
        assert_eq!(params(2047, 0), Ok(Params { min_bits: 2048, max_bits: 2048, ..any }));
        assert_eq!(params(2048 + 11, 0), Ok(Params { max_precision: 12, ..any }));
        assert_eq!(params(2048 + 64, 0), Err("ZFP mode 2112 is not supported".into()));
        assert_eq!(params(2176, 0), Ok(Params { min_exponent: -1075, ..any }));
        assert_eq!(params(2177, 0), Ok(any));
        assert_eq!(params(4094, 0), Ok(Params { min_exponent: 843, ..any }));
        let more = 4 | 9 << 15 | 2 << 30 | 16_495 << 37;
        assert_eq!(params(4095, more), Ok(Params { min_bits: 5, max_bits: 10, max_precision: 3, min_exponent: 0 }));
        assert_eq!(params(4095, 10 | 9 << 15), Err("ZFP mode 4095 is not supported".into()));
    }

    #[test]
    fn blocks_have_a_fixed_length_unless_the_limit_limits_nothing() {
        let length = |min_bits, max_bits, min_exponent| {
            Params { min_bits, max_bits, max_precision: 64, min_exponent }.fixed_length()
        };
        assert_eq!([length(16, 16, -1074), length(15, 16, -1074)], [Some(16), None]);
        assert_eq!([8, 9].map(|bits| length(bits, bits, -1074)), [None, Some(9)]);
        assert_eq!([14, 15].map(|bits| length(bits, bits, -1075)), [None, Some(15)]);
    }

    #[test]
    fn a_stream_without_room_for_its_blocks_is_too_short() {
        let blocks = blocks(CUBE) as usize;
        assert_eq!((blocks, shortest(CUBE)), (8, 13));
        let stream = header(CUBE, 2176, 0);
        assert!(Header::read(&stream[..13], CUBE).is_ok());
        let too_short = |bytes: usize| Err(format!("{bytes} bytes are too few for its ZFP stream"));
        assert_eq!(Header::read(&stream[..12], CUBE), too_short(12));
        let mut fixed = header(CUBE, 2047, 0);
        fixed.resize(12 + blocks * 256, 0);
        assert!(Header::read(&fixed, CUBE).is_ok());
        assert_eq!(Header::read(&fixed[..fixed.len() - 1], CUBE), too_short(fixed.len() - 1));
    }

    #[test]
    fn headers_that_are_not_the_bricks_are_refused() {
        let mut good = header(CUBE, 2176, 0);
        good.resize(64, 0);
        let with = |at: usize, byte: u8| {
            let mut bad = good.clone();
            bad[at] = byte;
            Header::read(&bad, CUBE).unwrap_err()
        };
        assert!(Header::read(&good, CUBE).is_ok());
        assert_eq!(with(0, b'Z'), "it does not begin with \"zfp\"");
        assert_eq!(with(3, 4), "ZFP codec version 4 is not supported");
        assert_eq!(with(4, good[4] & !3), "its ZFP stream has samples of type 1, not float32");
        assert_eq!(with(4, good[4] | 3), "its ZFP stream has samples of type 4, not float32");
        assert_eq!(with(4, good[4] & !12), "its ZFP stream has 1 dimensions, not 3");
        let other = Header::read(&good, [16, 8, 4]).unwrap_err();
        assert_eq!(other, "its ZFP stream has the shape [4, 8, 16], not the brick's");
        for length in [0, 11] {
            let error = Header::read(&good[..length], CUBE).unwrap_err();
            assert_eq!(error, format!("{length} bytes are too few for its ZFP stream"));
        }
    }
}
