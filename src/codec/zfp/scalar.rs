//! The four types of samples that a ZFP stream can have, and the integers that its blocks are decoded in.

use super::error::ZfpError;

/// The type of the samples of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scalar {
    /// Signed integers of 32 bits.
    Int32,
    /// Signed integers of 64 bits.
    Int64,
    /// Floating-point numbers of 32 bits.
    Float32,
    /// Floating-point numbers of 64 bits.
    Float64,
}

impl Scalar {
    /// Returns the type with the code that a header has for it.
    pub(super) fn of(code: u8) -> Result<Self, ZfpError> {
        match code {
            1 => Ok(Self::Int32),
            2 => Ok(Self::Int64),
            3 => Ok(Self::Float32),
            4 => Ok(Self::Float64),
            _ => Err(ZfpError::Scalar(code)),
        }
    }

    /// Returns the code that a header has for the type.
    pub(crate) fn code(self) -> u8 {
        match self {
            Self::Int32 => 1,
            Self::Int64 => 2,
            Self::Float32 => 3,
            Self::Float64 => 4,
        }
    }

    /// Returns the bytes of a sample.
    pub(crate) fn size(self) -> usize {
        match self {
            Self::Int32 | Self::Float32 => 4,
            Self::Int64 | Self::Float64 => 8,
        }
    }

    /// Returns the bits of the exponent of a block, 0 for integers.
    pub(super) fn exponent_bits(self) -> u32 {
        match self {
            Self::Int32 | Self::Int64 => 0,
            Self::Float32 => 8,
            Self::Float64 => 11,
        }
    }

    /// Returns the bits that the precision of a reversible block takes.
    pub(super) fn precision_bits(self) -> u32 {
        match self {
            Self::Int32 | Self::Float32 => 5,
            Self::Int64 | Self::Float64 => 6,
        }
    }
}

/// The integers of a block: coefficients, then samples or the bits of samples.
pub(super) trait Int: Copy + Default + 'static {
    /// Bits of the type.
    const BITS: u32;
    /// Bytes of the type.
    const BYTES: usize;
    /// The least exponent that a block of floating-point numbers of this size can have.
    const LEAST_EXPONENT: i32;

    fn add(self, other: Self) -> Self;
    fn sub(self, other: Self) -> Self;
    /// Returns half of it, rounded down.
    fn half(self) -> Self;
    /// Returns the number that has these bits in base -2; those above [`Self::BITS`] are left out.
    fn from_negabinary(word: u64) -> Self;
    /// Returns it with a byte put to bit `bit`, where it has none.
    fn with_byte(self, byte: u8, bit: u32) -> Self;
    /// Returns the number that has its bits in base -2.
    fn decoded(self) -> Self;
    /// Returns the bits of the floating-point number that a block with this exponent has for 1.
    fn factor(exponent: i32) -> Self;
    /// Returns the bits of its product with a factor, rounded once for the conversion and once for the product.
    fn scaled(self, factor: Self) -> Self;
    /// Returns the two's complement of a number that is negative as a sign and a magnitude.
    fn sign_magnitude(self) -> Self;
    /// Writes it in native byte order to the first bytes of `to`.
    fn put(self, to: &mut [u8]);
    /// Writes four of them, one behind the other, to the first bytes of `to`.
    fn put_row(row: &[Self; 4], to: Option<&mut [u8]>);
}

macro_rules! int {
    ($int:ty, $unsigned:ty, $float:ty) => {
        impl Int for $int {
            const BITS: u32 = <$int>::BITS;
            const BYTES: usize = size_of::<$int>();
            const LEAST_EXPONENT: i32 = 1 - <$float>::MAX_EXP;

            #[inline(always)]
            fn add(self, other: Self) -> Self {
                self.wrapping_add(other)
            }

            #[inline(always)]
            fn sub(self, other: Self) -> Self {
                self.wrapping_sub(other)
            }

            #[inline(always)]
            fn half(self) -> Self {
                self >> 1
            }

            #[inline(always)]
            fn from_negabinary(word: u64) -> Self {
                (word as Self).decoded()
            }

            #[inline(always)]
            fn with_byte(self, byte: u8, bit: u32) -> Self {
                self | Self::from(byte) << bit
            }

            #[inline(always)]
            fn decoded(self) -> Self {
                const ODD: $int = (<$unsigned>::MAX / 3 * 2).cast_signed();
                (self ^ ODD).wrapping_sub(ODD)
            }

            #[inline(always)]
            fn scaled(self, factor: Self) -> Self {
                (self as $float * <$float>::from_bits(factor.cast_unsigned())).to_bits().cast_signed()
            }

            #[inline(always)]
            fn factor(exponent: i32) -> Self {
                power(exponent - Self::BITS as i32 + 2, <$float>::MANTISSA_DIGITS, <$float>::MAX_EXP) as Self
            }

            #[inline(always)]
            fn sign_magnitude(self) -> Self {
                self ^ ((self >> (Self::BITS - 1)) & Self::MAX)
            }

            #[inline(always)]
            fn put(self, to: &mut [u8]) {
                if let Some(to) = to.first_chunk_mut() {
                    *to = self.to_ne_bytes();
                }
            }

            #[inline(always)]
            fn put_row(row: &[Self; 4], to: Option<&mut [u8]>) {
                if let Some(to) = to.and_then(<[u8]>::first_chunk_mut::<{ 4 * size_of::<$int>() }>) {
                    to.as_chunks_mut().0.iter_mut().zip(row).for_each(|(to, sample)| *to = sample.to_ne_bytes());
                }
            }
        }
    };
}

int!(i32, u32, f32);
int!(i64, u64, f64);

/// Returns the bits of 2^`exponent` as a floating-point number whose significand has `digits` bits: exactly, or 0 if it
/// is too small. `exponent` is below `max_exponent`, that of infinity.
#[inline(always)]
fn power(exponent: i32, digits: u32, max_exponent: i32) -> i64 {
    let fraction = digits as i32 - 1;
    let biased = exponent + max_exponent - 1;
    match biased {
        1.. => i64::from(biased) << fraction,
        // 2^exponent = 2^(least normal exponent - shift)
        _ if biased + fraction > 0 => 1 << (biased + fraction - 1),
        _ => 0,
    }
}
