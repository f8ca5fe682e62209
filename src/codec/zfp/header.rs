//! The header of a ZFP stream, and the bounds that its parameters put on the stream's length.
//!
//! libzfp trusts its input and reads as far as the parameters in the header make it read. So this file computes the
//! longest read before libzfp is called. libzfp's own `zfp_stream_maximum_size` is no upper bound: it covers what the
//! library writes, and is too small for some parameters that a header can have (reversible with few bit planes; a block
//! with fewer bits than its exponent takes).

use super::error::ZfpError;

/// The only supported codec version (`ZFP_CODEC` of zfp 0.5 and 1.0).
pub(super) const CODEC_VERSION: u8 = 5;
/// The code of float32 in a header.
pub(super) const FLOAT: u8 = 3;
/// Bytes of a header with a 12-bit mode.
pub(super) const SHORT: usize = 12;
/// Bits of a header with a 64-bit mode.
const LONG_BITS: u64 = 148;
/// The smallest exponent that does not mean reversible (`ZFP_MIN_EXP`).
const MIN_EXP: i32 = -1074;
/// The first mode numbers after fixed rate: fixed precision, reversible, fixed accuracy, and at the end expert mode,
/// which has its parameters in 52 further bits.
const PRECISION: u16 = 2048;
const REVERSIBLE: u16 = 2176;
const EXPERT: u16 = 4095;
/// Samples of a block of 4 x 4 x 4, and bit planes of a float32 sample.
const BLOCK: u64 = 64;
const PLANES: u32 = 32;

/// The four parameters of a stream, as in libzfp's `zfp_stream`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Params {
    pub min_bits: u32,
    pub max_bits: u32,
    pub max_precision: u32,
    pub min_exponent: i32,
}

impl Params {
    /// Returns the parameters of mode number `mode`; `more` holds the 52 bits that follow it in expert mode. `None` if
    /// they are invalid.
    fn of(mode: u16, more: u64) -> Option<Self> {
        let any = Self { min_bits: 1, max_bits: 16_658, max_precision: 64, min_exponent: MIN_EXP };
        let params = match mode {
            0..PRECISION => Self { min_bits: u32::from(mode) + 1, max_bits: u32::from(mode) + 1, ..any },
            PRECISION..REVERSIBLE => Self { max_precision: u32::from(mode - PRECISION) + 1, ..any },
            REVERSIBLE => Self { min_exponent: MIN_EXP - 1, ..any },
            EXPERT => Self {
                min_bits: (more & 0x7fff) as u32 + 1,
                max_bits: (more >> 15 & 0x7fff) as u32 + 1,
                max_precision: (more >> 30 & 0x7f) as u32 + 1,
                min_exponent: (more >> 37 & 0x7fff) as i32 - 16_495,
            },
            _ => Self { min_exponent: i32::from(mode - REVERSIBLE - 1) + MIN_EXP, ..any },
        };
        (params.min_bits <= params.max_bits && params.max_precision <= 64).then_some(params)
    }

    /// Returns the most bits that libzfp consumes for one block, whatever its content.
    fn longest_block(&self) -> u64 {
        // a block begins with flags, exponent and, in reversible mode, its precision
        let (front, planes) = match self.min_exponent < MIN_EXP {
            true => (1 + 1 + 8 + 5, PLANES),
            false => (1 + 8, self.max_precision.min(PLANES)),
        };
        let free = front + BLOCK - 1 + BLOCK * u64::from(planes);
        // a limit below the size of that front part wraps around inside libzfp and does not limit anything
        let limited = if u64::from(self.max_bits) < front { free } else { free.min(self.max_bits.into()) };
        limited.max(self.min_bits.into())
    }

    /// Returns the most bytes that libzfp reads of a stream with these parameters, in whole words of 64 bits.
    pub(super) fn longest(&self, blocks: u64) -> u64 {
        whole_words(blocks.saturating_mul(self.longest_block()))
    }

    /// Returns the fewest bits that the blocks take.
    fn shortest(&self, blocks: u64) -> u64 {
        blocks.saturating_mul(self.min_bits.max(1).into())
    }
}

/// Returns the bytes of a stream whose blocks have `bits`, header included, in whole words of 64 bits.
fn whole_words(bits: u64) -> u64 {
    bits.saturating_add(LONG_BITS).div_ceil(64).saturating_mul(8)
}

/// Returns the number of blocks of 4 x 4 x 4 that cover `shape`.
pub(super) fn blocks(shape: [u64; 3]) -> u64 {
    shape.iter().fold(1, |n, extent| n.saturating_mul(extent.div_ceil(4)))
}

/// Returns the most bytes that a stream of this shape takes in any mode, except for fixed rates above that of
/// uncompressed samples.
pub(super) fn longest(shape: [u64; 3]) -> u64 {
    let reversible = Params { min_bits: 1, max_bits: 16_658, max_precision: 64, min_exponent: MIN_EXP - 1 };
    reversible.longest(blocks(shape))
}

/// Returns the fewest bytes that a stream of this shape takes in any mode.
pub(super) fn shortest(shape: [u64; 3]) -> u64 {
    blocks(shape).div_ceil(8).saturating_add(SHORT as u64)
}

/// Reads the header at the start of `stream`, and checks that it announces float32 of `shape` (slowest axis first) and
/// that the stream is long enough for its blocks.
pub(super) fn check(stream: &[u8], shape: [u64; 3]) -> Result<Params, ZfpError> {
    let (Some(&[z, f, p, version]), Some(meta)) = (stream.first_chunk(), number(stream, 4)) else {
        return Err(ZfpError::TooShort { has: stream.len() });
    };
    if [z, f, p] != *b"zfp" {
        return Err(ZfpError::NotZfp);
    }
    if version != CODEC_VERSION {
        return Err(ZfpError::Version(version));
    }
    let (scalar, axes) = ((meta & 3) as u8 + 1, (meta >> 2 & 3) as u8 + 1);
    if scalar != FLOAT {
        return Err(ZfpError::Scalar(scalar));
    }
    if axes != 3 {
        return Err(ZfpError::Axes(axes));
    }
    // the header has the fastest axis first
    let extent = |at: u32| (meta >> at & 0xffff) + 1;
    let found = [extent(36), extent(20), extent(4)];
    if found != shape {
        return Err(ZfpError::Shape(found));
    }
    let mode = (meta >> 52) as u16;
    let more = number(stream, SHORT);
    if mode == EXPERT && more.is_none() {
        return Err(ZfpError::TooShort { has: stream.len() });
    }
    let params = Params::of(mode, more.unwrap_or(0)).ok_or(ZfpError::Mode(mode))?;
    let room = (stream.len() as u64 - SHORT as u64).saturating_mul(8);
    if params.shortest(blocks(shape)) > room {
        return Err(ZfpError::TooShort { has: stream.len() });
    }
    Ok(params)
}

/// Returns the little-endian 64-bit number at byte `at`.
fn number(stream: &[u8], at: usize) -> Option<u64> {
    stream.get(at..)?.first_chunk().map(|bytes| u64::from_le_bytes(*bytes))
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// Builds a header without blocks.
    pub fn header(shape: [u64; 3], mode: u16, more: u64) -> Vec<u8> {
        let [nz, ny, nx] = shape.map(|n| n - 1);
        let meta = u64::from(FLOAT - 1) | 2 << 2 | nx << 4 | ny << 20 | nz << 36 | u64::from(mode) << 52;
        [&b"zfp\x05"[..], &meta.to_le_bytes(), &more.to_le_bytes()].concat()
    }

    const CUBE: [u64; 3] = [4, 8, 16];

    fn params(mode: u16, more: u64) -> Result<Params, ZfpError> {
        let mut stream = header(CUBE, mode, more);
        stream.resize(100_000, 0);
        check(&stream, CUBE)
    }

    #[test]
    fn modes_are_understood_as_libzfp_does() {
        let any = Params { min_bits: 1, max_bits: 16_658, max_precision: 64, min_exponent: -1074 };
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

    #[test]
    fn the_longest_block_covers_what_libzfp_reads() {
        let longest = |min_bits, max_bits, max_precision, min_exponent| {
            Params { min_bits, max_bits, max_precision, min_exponent }.longest_block()
        };
        assert_eq!(longest(1, 16_658, 64, -1074), 9 + 63 + 64 * 32);
        assert_eq!(longest(1, 16_658, 2, -1074), 9 + 63 + 64 * 2);
        assert_eq!(longest(512, 512, 64, -1074), 512);
        assert_eq!(longest(4000, 4000, 64, -1074), 4000);
        assert_eq!(longest(5, 5, 64, -1074), 9 + 63 + 64 * 32); // no limit at all
        assert_eq!(longest(1, 16_658, 1, -1075), 15 + 63 + 64 * 32); // the precision is in the blocks
    }
}
