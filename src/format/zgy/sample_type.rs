//! Sample types, and the scaling of stored samples to values.

use crate::format::FormatError;
use crate::volume::{Dtype, Element, Scaling};

/// Returns the sample type of a code in the header.
pub(super) fn dtype_of(code: u8) -> Result<Dtype, FormatError> {
    Ok(match code {
        0 => Dtype::Int8,
        1 => Dtype::UInt8,
        2 => Dtype::Int16,
        3 => Dtype::UInt16,
        4 => Dtype::Int32,
        5 => Dtype::UInt32,
        6 => Dtype::Float32,
        7 => return Err(FormatError::Unsupported("unsupported sample type 7 (IBM float)".into())),
        other => return Err(FormatError::Unsupported(format!("unsupported sample type {other}"))),
    })
}

/// The coding range: the values of the least and the greatest storage value.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct CodingRange {
    /// The range in the file.
    pub file: [f64; 2],
    /// The range in use.
    pub used: [f64; 2],
    scaling: Scaling,
}

impl CodingRange {
    /// Creates the range of an integer type; `None` for float32, whose samples are values already. An invalid range is
    /// replaced by the limits of the type, so that the values are the storage values.
    pub(super) fn new(dtype: Dtype, file: [f64; 2]) -> Option<Self> {
        let [least, greatest] = limits(dtype)?;
        let [low, high] = file;
        let sensible = low.is_finite() && high.is_finite() && low < high;
        let used @ [low, high] = if sensible { file } else { [least, greatest] };
        // exactly OpenZGY's operations in this order: the default value below depends on their last bits
        let scale = (high - low) / (greatest - least);
        let offset = low - scale * least;
        Some(Self { file, used, scaling: Scaling::of_codes(scale, offset) })
    }

    /// Returns whether the range in the file was invalid and has been replaced.
    pub(super) fn replaced(&self) -> bool {
        self.file != self.used
    }

    /// Returns the scaling from storage values to values.
    pub(super) fn scaling(&self) -> Scaling {
        self.scaling
    }

    /// Returns the storage value whose value is nearest to zero, with ties away from zero as in the C++ library. Bricks
    /// that were never written consist of it.
    pub(super) fn default(&self, dtype: Dtype) -> i64 {
        let [least, greatest] = limits(dtype).unwrap_or_default();
        let Scaling { scale, offset, .. } = self.scaling;
        ((0.0 - offset) / scale).clamp(least, greatest).round() as i64
    }
}

/// Returns a sample of an integer type with this value, or the zero of float32 if it is 0.
pub(super) fn element(dtype: Dtype, number: i64) -> Element {
    Element::new(number.to_le_bytes().get(..dtype.size()).unwrap_or_default())
}

/// Returns the limits of an integer type.
fn limits(dtype: Dtype) -> Option<[f64; 2]> {
    Some(match dtype {
        Dtype::Int8 => [i8::MIN.into(), i8::MAX.into()],
        Dtype::UInt8 => [u8::MIN.into(), u8::MAX.into()],
        Dtype::Int16 => [i16::MIN.into(), i16::MAX.into()],
        Dtype::UInt16 => [u16::MIN.into(), u16::MAX.into()],
        Dtype::Int32 => [i32::MIN.into(), i32::MAX.into()],
        Dtype::UInt32 => [u32::MIN.into(), u32::MAX.into()],
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn range(dtype: Dtype, low: f32, high: f32) -> CodingRange {
        CodingRange::new(dtype, [low.into(), high.into()]).unwrap()
    }

    #[test]
    fn the_default_is_nearest_to_zero() {
        assert_eq!(range(Dtype::Int8, -28.0, 227.0).default(Dtype::Int8), -100);
        assert_eq!(range(Dtype::Int8, 10.0, 20.0).default(Dtype::Int8), -128);
        assert_eq!(range(Dtype::Int16, -20.0, -10.0).default(Dtype::Int16), 32767);
        // in a range symmetric about zero the last bit decides between -1 and 0
        assert_eq!(range(Dtype::Int16, -3e38, 3e38).default(Dtype::Int16), -1);
        assert_eq!(range(Dtype::Int16, -1.0, 1.0).default(Dtype::Int16), 0);
        assert_eq!(range(Dtype::UInt32, -1.0, 0.0).default(Dtype::UInt32), 0xffff_ffff);
        // a tie goes away from zero
        assert_eq!(range(Dtype::Int8, -1.5, 253.5).default(Dtype::Int8), -127);
    }

    #[test]
    fn a_senseless_range_means_no_scaling() {
        for (low, high) in [(5.0, 5.0), (100.0, -100.0), (f32::NAN, 1.0), (-1.0, f32::INFINITY)] {
            let range = range(Dtype::Int8, low, high);
            assert!(range.replaced());
            assert_eq!((range.used, range.scaling()), ([-128.0, 127.0], Scaling::of_codes(1.0, 0.0)));
            assert_eq!(range.default(Dtype::Int8), 0);
        }
        assert!(!range(Dtype::Int8, -1.0, 1.0).replaced());
        assert_eq!(CodingRange::new(Dtype::Float32, [0.0, 1.0]), None);
    }

    #[test]
    fn elements_are_little_endian() {
        assert_eq!(element(Dtype::Int16, -2).bytes(), [254, 255]);
        assert_eq!(element(Dtype::UInt32, 0xffff_ffff).bytes(), [255; 4]);
    }

    #[test]
    fn types_beyond_float32_are_refused() {
        assert_eq!(dtype_of(6), Ok(Dtype::Float32));
        assert_eq!(dtype_of(9), Err(FormatError::Unsupported("unsupported sample type 9".into())));
        assert!(dtype_of(7).is_err());
    }
}
