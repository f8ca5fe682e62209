//! Coordinates: arrays of one dimension that are called as an axis of the arrays beside them, as xarray writes them. Where
//! their values are regular, they are the positions of the axis.

use std::collections::HashMap;

use serde_json::Value;

use super::node::{ArrayMetadata, Node, join};
use crate::format::Array;
use crate::format::bytes::read_bytes;
use crate::memory::try_zeroed;
use crate::source::Blocking;
use crate::volume::{Axis, Brick, Dims, Dtype, Scaling};

/// The most samples of a coordinate array that is read.
const MAX_SAMPLES: u64 = 1 << 16;
/// Bytes of the largest of its chunks that is decoded.
const MAX_DECODED: usize = 4 << 20;
/// Bytes that are read of it, and the chunks that they are in: records of netCDF-3 are read with what lies between.
const MAX_BYTES: u64 = 256 << 20;
const MAX_CHUNKS: u64 = 4096;
/// The most coordinate arrays of a dataset that are read.
pub(in crate::format) const MAX_READ: usize = 64;
/// How far values of a regular axis may be from their places, in steps.
const TOLERANCE: f64 = 1e-3;

/// Bytes of names and units of axes: one text may be that of thousands of axes.
const MAX_TEXT: usize = 256;

/// Returns the beginning of a text that many axes may have.
pub(in crate::format) fn short(text: &str) -> String {
    let end = (0..=MAX_TEXT.min(text.len())).rev().find(|end| text.is_char_boundary(*end));
    text[..end.unwrap_or(0)].to_owned()
}

/// The positions of an axis.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::format) struct Line {
    first: f64,
    step: f64,
    count: u64,
    unit: Option<String>,
}

/// The coordinate arrays of a dataset by their paths; `None` for one that is not regular.
#[derive(Default)]
pub(super) struct Coordinates {
    known: HashMap<String, Option<Line>>,
    /// How many were read.
    read: usize,
}

impl Coordinates {
    /// Gives the axes of the array at `path` the positions that coordinate arrays beside it have. `open` opens an array
    /// with one axis, and returns its attributes, too.
    pub(super) fn describe<'a>(
        &mut self,
        path: &str,
        axes: &mut [Axis],
        open: impl Fn(&str) -> Option<(Box<dyn Array>, &'a Node)>,
    ) {
        let group = path.rsplit_once('/').map_or("", |(group, _)| group);
        for axis in axes {
            let path = join(group, &axis.name);
            if !self.known.contains_key(&path) && self.read < MAX_READ {
                let line = open(&path).and_then(|(array, node)| {
                    self.read += 1;
                    let unit = ["units", "unit"].into_iter().find_map(|key| node.attributes.get(key)?.as_str());
                    let of_mdio = || node.attributes.get("unitsV1")?.as_object()?.values().find_map(Value::as_str);
                    Line::through(&*array, array.info().scaling, unit.or_else(of_mdio).map(str::to_owned))
                });
                self.known.insert(path.clone(), line);
            }
            if let Some(Some(line)) = self.known.get(&path) {
                line.describe(axis);
            }
        }
    }
}

/// Gives the axes of an array the names and positions of dimensions, if it has as many samples along its axes as the first
/// dimensions have positions.
pub(super) fn name_axes(dimensions: &[(String, Vec<f64>)], array: &mut ArrayMetadata) {
    let shape = array.shape;
    let counts = dimensions.iter().map(|(_, positions)| positions.len() as u64);
    if shape.len() > dimensions.len() || !shape.iter().copied().eq(counts.take(shape.len())) {
        return;
    }
    for (axis, (name, positions)) in array.axes.iter_mut().zip(dimensions) {
        axis.name = short(name);
        if let Some(line) = Line::of(positions, None) {
            (axis.first, axis.step) = (line.first, line.step);
        }
    }
}

impl Line {
    /// Returns the line through the values of an array of one axis; `None` if they are not regular, or cannot be read.
    pub(in crate::format) fn through(
        array: &dyn Array,
        scaling: Option<Scaling>,
        unit: Option<String>,
    ) -> Option<Self> {
        let mut values = values(array)?;
        if let Some(Scaling { scale, offset, no_value, .. }) = scaling {
            if values.iter().any(|stored| no_value == Some(*stored)) {
                return None;
            }
            values.iter_mut().for_each(|value| *value = *value * scale + offset);
        }
        Self::of(&values, unit.map(|unit| short(&unit)))
    }

    /// Gives an axis of as many samples its positions.
    pub(in crate::format) fn describe(&self, axis: &mut Axis) {
        if self.count == axis.count {
            (axis.first, axis.step) = (self.first, self.step);
            axis.unit = self.unit.clone().or(axis.unit.take());
        }
    }

    /// Returns the line through values; `None` if they are not regular.
    fn of(values: &[f64], unit: Option<String>) -> Option<Self> {
        let (first, last) = (*values.first()?, *values.last()?);
        let steps = values.len() - 1;
        let step = if steps == 0 { 1.0 } else { (last - first) / steps as f64 };
        let is_regular = step != 0.0
            && values.iter().enumerate().all(|(n, value)| {
                let distance = (value - (first + n as f64 * step)).abs();
                distance <= TOLERANCE * step.abs()
            });
        is_regular.then_some(Self { first, step, count: values.len() as u64, unit })
    }
}

/// Reads an array of one axis as numbers; `None` if it is long, not of numbers, or cannot be read.
fn values(array: &dyn Array) -> Option<Vec<f64>> {
    let info = array.info();
    let (shape, size) = (info.shape(), info.dtype.size());
    if shape.len() != 1 || shape[0] > MAX_SAMPLES || info.grid.total() > MAX_CHUNKS {
        return None;
    }
    let mut left = MAX_BYTES;
    let mut found = Vec::new();
    for number in 0..info.grid.total() {
        let at = Dims::from([number]);
        let (begin, end) = info.grid.owned(0, number);
        let count = (end - begin) as usize;
        match array.brick(&at, Blocking::Yes).ok()? {
            Brick::Constant(value) => found.extend(std::iter::repeat_n(number_of(info.dtype, value.bytes())?, count)),
            Brick::Plain(plain) => {
                let bytes = read_bytes(array.source(), &plain.object, plain.offset, (count * size) as u64).ok()??;
                found.extend(bytes.chunks_exact(size).map_while(|sample| number_of(info.dtype, sample)));
            }
            Brick::Coded(coded) => {
                if coded.decoded > MAX_DECODED || coded.length.most() > 2 * MAX_DECODED as u64 {
                    return None;
                }
                left = left.checked_sub(coded.length.most())?;
                let stored = read_bytes(array.source(), &coded.object, coded.offset, coded.length.most()).ok()??;
                let mut out = try_zeroed(coded.decoded).ok()?;
                array.decode(&coded, &stored, &mut out).ok()?;
                found.extend(out.chunks_exact(size).take(count).map_while(|sample| number_of(info.dtype, sample)));
            }
        }
    }
    (found.len() as u64 == shape[0]).then_some(found)
}

fn number_of(dtype: Dtype, sample: &[u8]) -> Option<f64> {
    let integer = |signed: bool| {
        let mut bytes = [if signed && sample.last()? & 0x80 != 0 { 0xff } else { 0 }; 16];
        bytes.get_mut(..sample.len())?.copy_from_slice(sample);
        Some(i128::from_le_bytes(bytes) as f64)
    };
    match dtype {
        Dtype::Float32 => Some(f32::from_le_bytes(sample.try_into().ok()?).into()),
        Dtype::Float64 => Some(f64::from_le_bytes(sample.try_into().ok()?)),
        Dtype::Int8 | Dtype::Int16 | Dtype::Int32 | Dtype::Int64 => integer(true),
        Dtype::UInt8 | Dtype::UInt16 | Dtype::UInt32 | Dtype::UInt64 => integer(false),
        Dtype::Float16 | Dtype::Complex64 | Dtype::Complex128 => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn regular_values_are_a_line() {
        let line = |values: &[f64]| Line::of(values, None).map(|line| (line.first, line.step));
        assert_eq!(line(&[110.0, 112.0, 114.0]), Some((110.0, 2.0)));
        assert_eq!(line(&[3.0, 2.5, 2.0]), Some((3.0, -0.5)));
        assert_eq!(line(&[0.0, 0.1, 0.2, 0.300_000_01]).map(|line| line.0), Some(0.0));
        assert_eq!(line(&[7.0]), Some((7.0, 1.0)));
        for values in [&[][..], &[1.0, 1.0], &[0.0, 1.0, 3.0], &[f64::NAN, 1.0], &[0.0, f64::INFINITY]] {
            assert_eq!(line(values), None, "{values:?}");
        }
    }

    #[test]
    fn long_texts_are_cut_between_letters() {
        assert_eq!((short("s").as_str(), short("").len(), short(&"m".repeat(300)).len()), ("s", 0, 256));
        assert_eq!(short(&"ä".repeat(200)).len(), 256);
        assert_eq!(short(&format!("x{}", "ä".repeat(200))).len(), 255);
    }

    #[test]
    fn samples_of_every_type_are_numbers() {
        assert_eq!(number_of(Dtype::Int16, &(-3i16).to_le_bytes()), Some(-3.0));
        assert_eq!(number_of(Dtype::UInt64, &u64::MAX.to_le_bytes()), Some(u64::MAX as f64));
        assert_eq!(number_of(Dtype::Float32, &1.5f32.to_le_bytes()), Some(1.5));
    }
}
