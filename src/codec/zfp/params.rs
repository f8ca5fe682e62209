//! The parameters of a stream, which its mode stands for, and the bounds that they put on its length.
//!
//! libzfp trusts its input and reads as far as the parameters make it read. So the longest read is computed before it
//! is called. libzfp's own `zfp_stream_maximum_size` is no upper bound: it covers what the library writes, and is too
//! small for some parameters that a header can have (reversible with few bit planes; a block with fewer bits than its
//! exponent takes).

use super::scalar::Scalar;

/// The smallest exponent that does not mean reversible (`ZFP_MIN_EXP`).
const MIN_EXPONENT: i32 = -1074;
/// The most bits that a block can have in modes that do not limit them (`ZFP_MAX_BITS`).
const MAX_BITS: u32 = 16_658;
/// The first mode numbers after fixed rate: fixed precision, reversible, fixed accuracy, and at the end expert mode,
/// which has its parameters in 52 further bits.
const PRECISION: u16 = 2048;
const REVERSIBLE: u16 = 2176;
pub(super) const EXPERT: u16 = 4095;

/// The four parameters of a stream, as in libzfp's `zfp_stream`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Params {
    /// The fewest bits of a block.
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
    pub(super) const ANY: Self =
        Self { min_bits: 1, max_bits: MAX_BITS, max_precision: 64, min_exponent: MIN_EXPONENT };
    /// The parameters of reversible streams.
    pub(super) const EXACT: Self = Self { min_exponent: MIN_EXPONENT - 1, ..Self::ANY };

    /// Returns the parameters of mode number `mode`; `more` holds the 52 bits that follow it in expert mode. `None` if
    /// they are invalid.
    pub(super) fn of(mode: u16, more: u64) -> Option<Self> {
        let any = Self::ANY;
        let params = match mode {
            0..PRECISION => Self { min_bits: u32::from(mode) + 1, max_bits: u32::from(mode) + 1, ..any },
            PRECISION..REVERSIBLE => Self { max_precision: u32::from(mode - PRECISION) + 1, ..any },
            REVERSIBLE => Self::EXACT,
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

    /// Returns the most bits that come before the planes of a block: flags, exponent and, if it is reversible, its
    /// precision.
    fn front(&self, scalar: Scalar) -> u32 {
        let flags = u32::from(scalar.exponent_bits() > 0);
        match self.is_reversible() {
            true => 2 * flags + scalar.exponent_bits() + scalar.precision_bits(),
            false => flags + scalar.exponent_bits(),
        }
    }

    /// Returns the bits of every block, if all have the same.
    pub(super) fn fixed_length(&self, scalar: Scalar) -> Option<u64> {
        // a limit that the front exceeds limits nothing
        (self.min_bits == self.max_bits && self.max_bits >= self.front(scalar)).then_some(self.max_bits.into())
    }

    /// Returns the most bits that a block can take, whatever its content.
    fn longest_block(&self, scalar: Scalar, axes: u32) -> u64 {
        let (samples, planes) = (1 << (2 * axes), scalar.size() as u32 * 8);
        let front = self.front(scalar);
        let planes = if self.is_reversible() { planes } else { self.max_precision.min(planes) };
        let free = u64::from(front + samples - 1 + samples * planes);
        // a limit below the size of that front part wraps around inside libzfp and does not limit anything
        let limited = if self.max_bits < front { free } else { free.min(self.max_bits.into()) };
        limited.max(self.min_bits.into())
    }

    /// Returns the most bits that `blocks` blocks take.
    pub(super) fn longest(&self, blocks: u64, scalar: Scalar, axes: u32) -> u64 {
        blocks.saturating_mul(self.longest_block(scalar, axes))
    }

    /// Returns the fewest bits that `blocks` blocks take. An integer block without planes has none.
    pub(super) fn shortest(&self, blocks: u64) -> u64 {
        blocks.saturating_mul(self.min_bits.max(1).into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn longest(min_bits: u32, max_bits: u32, max_precision: u32, min_exponent: i32) -> u64 {
        Params { min_bits, max_bits, max_precision, min_exponent }.longest_block(Scalar::Float32, 3)
    }

    #[test]
    fn the_longest_block_covers_what_libzfp_reads() {
        assert_eq!(longest(1, 16_658, 64, -1074), 9 + 63 + 64 * 32);
        assert_eq!(longest(1, 16_658, 2, -1074), 9 + 63 + 64 * 2);
        assert_eq!(longest(512, 512, 64, -1074), 512);
        assert_eq!(longest(4000, 4000, 64, -1074), 4000);
        assert_eq!(longest(5, 5, 64, -1074), 9 + 63 + 64 * 32); // no limit at all
        assert_eq!(longest(1, 16_658, 1, -1075), 15 + 63 + 64 * 32); // the precision is in the blocks
    }

    #[test]
    fn the_longest_blocks_of_all_types_are_those_of_libzfp() {
        // the table of zfp_block_maximum_size
        let table = [
            (Scalar::Int32, [131, 527, 2111, 8447], [136, 532, 2116, 8452]),
            (Scalar::Int64, [259, 1039, 4159, 16_639], [265, 1045, 4165, 16_645]),
            (Scalar::Float32, [140, 536, 2120, 8456], [146, 542, 2126, 8462]),
            (Scalar::Float64, [271, 1051, 4171, 16_651], [278, 1058, 4178, 16_658]),
        ];
        for (scalar, lossy, exact) in table {
            assert_eq!([1, 2, 3, 4].map(|axes| Params::ANY.longest_block(scalar, axes)), lossy);
            assert_eq!([1, 2, 3, 4].map(|axes| Params::EXACT.longest_block(scalar, axes)), exact);
        }
    }

    #[test]
    fn blocks_have_a_fixed_length_unless_the_limit_limits_nothing() {
        let length = |least, most, exponent, scalar| {
            let params = Params { min_bits: least, max_bits: most, max_precision: 64, min_exponent: exponent };
            params.fixed_length(scalar)
        };
        assert_eq!(length(16, 16, -1074, Scalar::Float32), Some(16));
        assert_eq!(length(15, 16, -1074, Scalar::Float32), None);
        // a flag and an exponent, of reversible blocks another flag and the precision
        assert_eq!([8, 9].map(|bits| length(bits, bits, -1074, Scalar::Float32)), [None, Some(9)]);
        assert_eq!([14, 15].map(|bits| length(bits, bits, -1075, Scalar::Float32)), [None, Some(15)]);
        assert_eq!([11, 12].map(|bits| length(bits, bits, -1074, Scalar::Float64)), [None, Some(12)]);
        assert_eq!([4, 5].map(|bits| length(bits, bits, -1075, Scalar::Int32)), [None, Some(5)]);
        assert_eq!(length(1, 1, -1074, Scalar::Int64), Some(1));
    }
}
