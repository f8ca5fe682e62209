//! The info header: size, sample type and geometry of a survey, in the layouts of version 1 and of versions 2 to 4.

use super::geometry::ControlPoint;
use super::sample_type::dtype_of;
use super::units::{Unit, Units, Uuid};
use crate::format::FormatError;
use crate::format::byte_reader::ByteReader;
use crate::volume::{Dtype, Histogram, Statistics};

/// Bytes of the info header of version 1, and of the later versions.
pub(super) const LENGTH_V1: u64 = 146;
pub(super) const LENGTH_V2: u64 = 337;
/// Its name in errors.
pub(super) const PART: &str = "info header";
/// The largest brick that is accepted, in bytes.
const BRICK_BYTES: u64 = 2 << 30;

/// The fields of the info header. Those that arrays depend on are checked.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Info {
    pub size: [u64; 3],
    pub brick: [u64; 3],
    pub dtype: Dtype,
    /// The code of `dtype`.
    pub code: u8,
    /// Values of the least and the greatest storage value, as in the file.
    pub coding_range: [f64; 2],
    /// dataid, verid, previd.
    pub ids: [Uuid; 3],
    /// First inline number, crossline number and vertical position; `inc` has their steps.
    pub orig: [f64; 3],
    pub inc: [f64; 3],
    pub statistics: Statistics,
    pub points: [ControlPoint; 4],
    /// Units without their names, which are in the string list.
    pub units: Units,
}

impl Info {
    /// Reads the fields of version 1, which has neither coding range nor statistics: those of the histogram are used.
    pub(super) fn v1(bytes: &[u8], histogram: &Histogram) -> Result<Self, FormatError> {
        let mut fields = ByteReader::new(PART, bytes);
        let size = fields.i32s()?;
        let (orig, inc) = (fields.i32s()?.map(f64::from), fields.i32s()?.map(f64::from));
        fields.skip(12)?; // incfactor
        let (inlines, crosslines) = (fields.i32s()?.map(f64::from), fields.i32s()?.map(f64::from));
        let (x, y) = (fields.f64s()?, fields.f64s()?);
        let code = fields.u8()?;
        let coordinate_type = fields.u8()?;

        let dtype = dtype_of(code)?;
        let brick = [64; 3];
        Ok(Self {
            size: survey_size(size, dtype)?,
            brick,
            dtype,
            code,
            coding_range: [histogram.min, histogram.max],
            ids: [Uuid::default(); 3],
            orig,
            inc,
            statistics: Statistics { min: histogram.min, max: histogram.max, ..Statistics::default() },
            points: control_points(inlines, crosslines, x, y),
            units: Units { horizontal: Unit::of_coordinate_type(coordinate_type), vertical: Unit::unknown() },
        })
    }

    /// Reads the fields of versions 2 to 4, and the length of the string list.
    pub(super) fn v2(bytes: &[u8]) -> Result<(Self, u32), FormatError> {
        let mut fields = ByteReader::new(PART, bytes);
        let brick = fields.i32s()?;
        let code = fields.u8()?;
        let coding_range = fields.f32s()?.map(f64::from);
        let ids = [Uuid(fields.bytes()?), Uuid(fields.bytes()?), Uuid(fields.bytes()?)];
        fields.skip(1)?; // srctype
        let (orig, inc) = (fields.f32s()?.map(f64::from), fields.f32s()?.map(f64::from));
        let size = fields.i32s()?;
        fields.skip(24)?; // curorig, cursize
        let statistics = Statistics {
            count: Some(fields.i64()?),
            sum: Some(fields.f64()?),
            sum_of_squares: Some(fields.f64()?),
            min: fields.f32()?.into(),
            max: fields.f32()?.into(),
        };
        fields.skip(24 + 1 + 32)?; // srvorig, srvsize, gdef, gazim, gbinsz
        let (inlines, crosslines) = (fields.f32s()?.map(f64::from), fields.f32s()?.map(f64::from));
        let (x, y) = (fields.f64s()?, fields.f64s()?);
        let horizontal = unit(&mut fields, 2)?;
        let vertical = unit(&mut fields, 3)?;
        let strings = fields.u32()?;

        let dtype = dtype_of(code)?;
        let info = Self {
            brick: brick_size(brick, dtype)?,
            size: survey_size(size, dtype)?,
            dtype,
            code,
            coding_range,
            ids,
            orig,
            inc,
            statistics,
            points: control_points(inlines, crosslines, x, y),
            units: Units { horizontal, vertical },
        };
        Ok((info, strings))
    }
}

/// Reads the dimension and the factor of a unit. A dimension above `known` counts as unknown.
fn unit(fields: &mut ByteReader<'_, &'static str>, known: u8) -> Result<Unit, FormatError> {
    let dimension = fields.u8()?;
    let factor = fields.f64()?;
    Ok(Unit { dimension: if dimension <= known { dimension } else { 0 }, name: String::new(), factor })
}

fn control_points(inlines: [f64; 4], crosslines: [f64; 4], x: [f64; 4], y: [f64; 4]) -> [ControlPoint; 4] {
    [0, 1, 2, 3].map(|n: usize| ControlPoint { annotation: [inlines[n], crosslines[n]], world: [x[n], y[n]] })
}

fn brick_size(stored: [i32; 3], dtype: Dtype) -> Result<[u64; 3], FormatError> {
    let size = stored.map(|n| u64::try_from(n).unwrap_or(0));
    let sides = size.iter().all(|n| *n >= 4 && n.is_power_of_two());
    if sides && bytes(size, dtype).is_some_and(|bytes| bytes <= BRICK_BYTES) {
        return Ok(size);
    }
    Err(FormatError::Damaged(format!("damaged: brick size {}", by(stored))))
}

fn survey_size(stored: [i32; 3], dtype: Dtype) -> Result<[u64; 3], FormatError> {
    let size = stored.map(|n| u64::try_from(n).unwrap_or(0));
    if !size.contains(&0) && bytes(size, dtype).is_some_and(|bytes| i64::try_from(bytes).is_ok()) {
        return Ok(size);
    }
    Err(FormatError::Damaged(format!("damaged: survey size {}", by(stored))))
}

/// Returns the bytes of all samples.
fn bytes(size: [u64; 3], dtype: Dtype) -> Option<u64> {
    size.iter().try_fold(dtype.size() as u64, |bytes, n| bytes.checked_mul(*n))
}

fn by([i, j, k]: [i32; 3]) -> String {
    format!("{i} x {j} x {k}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn brick_sizes_are_powers_of_two_within_reason() {
        assert_eq!(brick_size([4, 64, 1024], Dtype::Float32), Ok([4, 64, 1024]));
        assert_eq!(brick_size([512, 1024, 1024], Dtype::Float32), Ok([512, 1024, 1024]));
        for bad in [[0, 64, 64], [64, -64, 64], [64, 64, 60], [2, 64, 64], [1024; 3], [1 << 30; 3]] {
            assert!(brick_size(bad, Dtype::Float32).is_err(), "{bad:?}");
        }
        let text = brick_size([64, -64, 64], Dtype::Int8).unwrap_err().to_string();
        assert_eq!(text, "damaged: brick size 64 x -64 x 64");
    }

    #[test]
    fn survey_sizes_are_positive_and_countable() {
        assert_eq!(survey_size([1, i32::MAX, i32::MAX], Dtype::Int8), Ok([1, 0x7fff_ffff, 0x7fff_ffff]));
        for bad in [[0, 1, 1], [1, -1, 1], [i32::MAX; 3], [2, i32::MAX, i32::MAX]] {
            assert!(survey_size(bad, Dtype::Int16).is_err(), "{bad:?}");
        }
    }
}
