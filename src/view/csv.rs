//! A box as a table: a row for each sample, with its positions along all axes, the world coordinates of its trace, and
//! the sample.

use std::fmt::{Display, LowerExp};
use std::mem;

use super::headers::{first_and_step, number, rounded};
use super::names::axis_names;
use super::segy::line_axes;
use crate::volume::{Affine, ArrayInfo, Dims, Dtype, Geometry, half, parts_of_complex64, parts_of_complex128};

/// Writes the samples of an array as rows, which follow one another in C order.
pub(crate) struct Rows {
    /// The first line, until it is written.
    head: String,
    shape: Dims,
    /// The first position along each axis, and the distance of neighbours.
    axes: Vec<(f64, f64)>,
    /// The axes of the lines, and the map from indexes along them.
    world: Option<([usize; 2], Affine)>,
    /// The type of the samples that are written.
    dtype: Dtype,
    /// The number of the next sample.
    next: u64,
    /// The positions that all samples along the last axis have, and their world coordinates.
    row: [String; 2],
}

impl Rows {
    pub(super) fn new(info: &ArrayInfo, dtype: Dtype, geometry: Option<&Geometry>) -> Self {
        let of_lines = |lines: [usize; 2]| {
            let numbers = lines.map(|axis| first_and_step(info.axes.get(axis)));
            let [first, step] = [numbers.map(|(first, _)| first), numbers.map(|(_, step)| step)];
            Some((lines, geometry?.annotation_to_world?.of_indexes(first, step).finite()?))
        };
        let world = line_axes(&info.axes).and_then(of_lines);
        let of_axis =
            |(name, axis): (String, usize)| column(&name, info.axes.get(axis).and_then(|axis| axis.unit.as_deref()));
        let mut head: Vec<String> = axis_names(info).into_iter().zip(0..).map(of_axis).collect();
        if world.is_some() {
            let unit = geometry.and_then(|geometry| geometry.horizontal_unit.as_deref());
            head.extend(["world_x", "world_y"].map(|name| column(name, unit)));
        }
        Self {
            head: head.join(",") + ",value\n",
            shape: info.shape(),
            axes: (0..info.shape().len()).map(|axis| first_and_step(info.axes.get(axis))).collect(),
            world,
            dtype,
            next: 0,
            row: Default::default(),
        }
    }

    /// Returns the rows of the next samples, the first ones with the names of the columns above them.
    pub(crate) fn write(&mut self, samples: &[u8]) -> String {
        let (mut text, last) = (mem::take(&mut self.head), self.shape.len() - 1);
        for sample in samples.chunks_exact(self.dtype.size()) {
            let index = self.shape.index_of(self.next);
            let is_of_lines = self.world.is_some_and(|(lines, _)| lines.contains(&last));
            if index[last] == 0 || is_of_lines {
                let places = (0..last).map(|axis| self.place(axis, &index) + ",");
                let world = self.world.map(|(lines, map)| map.map(lines.map(|axis| index[axis] as f64)));
                let world = world.map(|world| world.map(|x| number(rounded(x)) + ",").concat());
                self.row = [places.collect(), world.unwrap_or_default()];
            }
            let [places, world] = &self.row;
            let at = self.place(last, &index);
            text.extend([places, &at, ",", world, &value(self.dtype, sample), "\n"]);
            self.next += 1;
        }
        text
    }

    /// Returns about how many bytes all rows have.
    pub(crate) fn estimated_bytes(&self) -> u64 {
        let middle = Dims::from_fn(self.shape.len(), |axis| self.shape[axis] / 2);
        let places: usize = (0..self.shape.len()).map(|axis| self.place(axis, &middle).len() + 1).sum();
        let row = places + self.world.map_or(0, |_| 24) + if self.dtype.is_complex() { 20 } else { 10 };
        self.shape.product().unwrap_or(u64::MAX).saturating_mul(row as u64)
    }

    fn place(&self, axis: usize, index: &Dims) -> String {
        let (first, step) = self.axes[axis];
        let at = first + step * index[axis] as f64;
        // without the last digit, in which there are rounding errors
        number(format!("{at:.14e}").parse().unwrap_or(at))
    }
}

/// Returns the name of a column, in quotes if it has to be.
fn column(name: &str, unit: Option<&str>) -> String {
    let name = unit.filter(|unit| !unit.is_empty()).map_or_else(|| name.to_owned(), |unit| format!("{name} ({unit})"));
    let name = name.replace(char::is_control, " ");
    if name.contains([',', '"']) { format!("\"{}\"", name.replace('"', "\"\"")) } else { name }
}

/// Returns a little-endian sample as text, exact; nothing for NaN. Complex samples are as NumPy writes them: `1.5-2j`.
fn value(dtype: Dtype, sample: &[u8]) -> String {
    fn text<const N: usize>(sample: &[u8], text: impl Fn([u8; N]) -> String) -> String {
        sample.first_chunk().map(|bytes| text(*bytes)).unwrap_or_default()
    }
    match dtype {
        Dtype::Int8 => text(sample, |bytes| i8::from_le_bytes(bytes).to_string()),
        Dtype::UInt8 => text(sample, |bytes| u8::from_le_bytes(bytes).to_string()),
        Dtype::Int16 => text(sample, |bytes| i16::from_le_bytes(bytes).to_string()),
        Dtype::UInt16 => text(sample, |bytes| u16::from_le_bytes(bytes).to_string()),
        Dtype::Int32 => text(sample, |bytes| i32::from_le_bytes(bytes).to_string()),
        Dtype::UInt32 => text(sample, |bytes| u32::from_le_bytes(bytes).to_string()),
        Dtype::Int64 => text(sample, |bytes| i64::from_le_bytes(bytes).to_string()),
        Dtype::UInt64 => text(sample, |bytes| u64::from_le_bytes(bytes).to_string()),
        Dtype::Float32 => text(sample, |bytes| float(f32::from_le_bytes(bytes))),
        Dtype::Float64 => text(sample, |bytes| float(f64::from_le_bytes(bytes))),
        Dtype::Float16 => text(sample, |bytes| float(shortest(bytes))),
        Dtype::Complex64 => text(sample, |bytes| complex(parts_of_complex64(bytes))),
        Dtype::Complex128 => text(sample, |bytes| complex(parts_of_complex128(bytes))),
    }
}

fn float<T: Copy + Display + LowerExp + Into<f64>>(value: T) -> String {
    match value.into().abs() {
        size if size.is_nan() => String::new(),
        size if size == 0.0 || (1e-5..1e16).contains(&size) || size.is_infinite() => value.to_string(),
        _ => format!("{value:e}"),
    }
}

fn complex<T: Copy + Display + LowerExp + Into<f64>>(parts: [T; 2]) -> String {
    let [re, im] = parts.map(float).map(|part| if part.is_empty() { "nan".to_owned() } else { part });
    let plus = if im.starts_with('-') { "" } else { "+" };
    if re == "nan" && im == "nan" { String::new() } else { format!("{re}{plus}{im}j") }
}

/// Returns a float16 rounded to the fewest decimal digits that no other float16 is nearer to.
fn shortest(bytes: [u8; 2]) -> f64 {
    let (exact, magnitude) = (f64::from(half(bytes)), u16::from_le_bytes(bytes) & 0x7fff);
    if !exact.is_finite() || exact == 0.0 {
        return exact;
    }
    // the greatest is rounded to as if there was one more
    let of = |bits: u16| if bits == 0x7c00 { 65536.0 } else { f64::from(half(bits.to_le_bytes())) };
    let [low, high] = [magnitude - 1, magnitude + 1].map(|next| f64::midpoint(of(next), exact.abs()));
    let is_nearest = |number: &f64| {
        let number = number.abs();
        // those in the middle are rounded to the even one
        (low < number && number < high) || (magnitude % 2 == 0 && (number == low || number == high))
    };
    let rounded = |digits: usize| format!("{exact:.digits$e}").parse().unwrap_or(exact);
    (0..5).map(rounded).find(is_nearest).unwrap_or(exact)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn float16_has_the_fewest_digits_that_read_back() {
        let of = |bits: u16| value(Dtype::Float16, &bits.to_le_bytes());
        let texts = [0x2e66, 0xb555, 0x7bff, 0x0001, 0x03ff, 0x8000, 0x7c00, 0x7e00].map(of);
        assert_eq!(texts, ["0.1", "-0.3333", "65500", "6e-8", "0.000061", "-0", "inf", ""]);
        // no other float16 is nearer
        let value = |bits: u16| f64::from(half(bits.to_le_bytes()));
        for bits in 0..0x7c00 {
            let (read, exact): (f64, f64) = (of(bits).parse().unwrap(), value(bits));
            let distance = (read - exact).abs();
            let to = |other: u16| (read - value(other)).abs();
            assert!(distance < to(bits + 1) || (distance == to(bits + 1) && bits % 2 == 0), "{bits:x} {read}");
            assert!(
                bits == 0 || distance < to(bits - 1) || (distance == to(bits - 1) && bits % 2 == 0),
                "{bits:x} {read}"
            );
        }
    }

    #[test]
    fn samples_are_exact_and_names_are_quoted_where_they_have_to_be() {
        for (sample, expected) in [
            (0.1f32, "0.1"),
            (-0.0, "-0"),
            (1e-30, "1e-30"),
            (3.4e38, "3.4e38"),
            (f32::INFINITY, "inf"),
            (f32::NAN, ""),
        ] {
            assert_eq!(value(Dtype::Float32, &sample.to_le_bytes()), expected);
        }
        assert_eq!(value(Dtype::Int64, &i64::MIN.to_le_bytes()), i64::MIN.to_string());
        assert_eq!(value(Dtype::UInt64, &u64::MAX.to_le_bytes()), u64::MAX.to_string());
        assert_eq!(value(Dtype::UInt16, &[1]), "");
        let complex = |re: f64, im: f64| value(Dtype::Complex128, &[re, im].map(f64::to_le_bytes).concat());
        assert_eq!(
            [complex(1.5, -2e-30), complex(-0.0, 0.0), complex(f64::NAN, -0.0)],
            ["1.5-2e-30j", "-0+0j", "nan-0j"]
        );
        assert_eq!([complex(1.0, f64::NAN), complex(f64::NAN, f64::NAN)], ["1+nanj", ""]);
        assert_eq!(value(Dtype::Complex64, &[0.1f32, f32::INFINITY].map(f32::to_le_bytes).concat()), "0.1+infj");
        assert_eq!(value(Dtype::Complex64, &[0; 7]), "");
        assert_eq!((column("x", Some("m")), column("x", Some(""))), ("x (m)".to_owned(), "x".to_owned()));
        assert_eq!(column("a,\"b\"\n", None), "\"a,\"\"b\"\" \"");
    }
}
