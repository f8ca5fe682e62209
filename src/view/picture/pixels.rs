//! How the samples of a slice become pixels.

use super::palettes::of_label;
use super::plane::{Rectangle, Subject};
use super::png::PixelFormat;
use crate::volume::{ArrayInfo, Dtype, OfNumbers, Scaling};

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Pixels {
    dtype: Dtype,
    components: usize,
    shade: Shade,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Shade {
    /// The sample itself: uint8 and uint16.
    Stored,
    Grey(Grey),
    /// The number of a label's colour.
    Label,
}

/// A linear map from stored samples to greys of 0 to 255.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Grey {
    factor: f64,
    offset: f64,
    no_value: Option<f64>,
}

impl Pixels {
    /// Returns the pixels of a level: uint8 and uint16 as they are; other labels in colours; everything else by the
    /// value range, black where there is no value.
    pub(crate) fn of(info: &ArrayInfo, subject: &Subject) -> Self {
        let shade = match info.dtype {
            Dtype::UInt8 | Dtype::UInt16 => Shade::Stored,
            _ if subject.is_labels => Shade::Label,
            _ => Shade::Grey(Grey::of(info)),
        };
        Self { dtype: info.dtype, components: subject.components, shade }
    }

    pub(crate) fn format(&self) -> PixelFormat {
        match (self.shade, self.dtype, self.components) {
            (Shade::Stored, Dtype::UInt8, 3) => PixelFormat::Rgb8,
            (Shade::Stored, Dtype::UInt16, 3) => PixelFormat::Rgb16,
            (Shade::Stored, Dtype::UInt16, _) => PixelFormat::Grey16,
            (Shade::Label, ..) => PixelFormat::Indexed,
            _ => PixelFormat::Grey8,
        }
    }

    /// Writes the pixels of a rectangle row by row, given its samples. `filters`: there is a filter byte 0 before each
    /// row.
    pub(crate) fn paint(&self, samples: &[u8], rectangle: &Rectangle, columns: u64, filters: bool, out: &mut [u8]) {
        let to = Rows { rectangle, columns: columns as usize, filters, out };
        match (self.shade, self.format()) {
            (Shade::Grey(grey), _) => self.dtype.with_numbers(Greys { samples, to, grey }),
            (Shade::Label, _) => paint_labels(self.dtype, samples, to),
            (Shade::Stored, PixelFormat::Rgb8) => to.paint(samples, |rgb: [u8; 3]| rgb),
            (Shade::Stored, PixelFormat::Grey16) => to.paint(samples, |[low, high]| [high, low]),
            (Shade::Stored, PixelFormat::Rgb16) => to.paint(samples, |[a, b, c, d, e, f]| [b, a, d, c, f, e]),
            (Shade::Stored, _) => to.paint(samples, |grey: [u8; 1]| grey),
        }
    }

    /// Returns what tells these pixels from others of the same type.
    pub(crate) fn fingerprint(&self) -> [u64; 3] {
        match self.shade {
            Shade::Stored => [0; 3],
            Shade::Label => [1; 3],
            Shade::Grey(grey) => [grey.factor.to_bits(), grey.offset.to_bits(), grey.no_value.map_or(2, f64::to_bits)],
        }
    }
}

impl Grey {
    fn of(info: &ArrayInfo) -> Self {
        let Scaling { scale, offset, no_value, .. } = info.scaling.unwrap_or(Scaling::of_codes(1.0, 0.0));
        let known = info.value_range.filter(|(low, high)| low.is_finite() && high.is_finite());
        let (low, high) = known.unwrap_or_else(|| {
            let [one, other] = range_of(info.dtype).map(|end| end * scale + offset);
            (one.min(other), one.max(other))
        });
        let factor = if high > low { 255.0 / (high - low) } else { 0.0 };
        Self { factor: scale * factor, offset: (offset - low) * factor, no_value: no_value.or(info.no_value) }
    }

    fn of_sample(&self, sample: f64) -> u8 {
        // what is no number becomes 0, and what is beyond the range becomes its end
        if self.no_value == Some(sample) { 0 } else { (sample * self.factor + self.offset + 0.5) as u8 }
    }
}

/// Greys of samples, and where they go.
struct Greys<'a> {
    samples: &'a [u8],
    to: Rows<'a>,
    grey: Grey,
}

impl OfNumbers for Greys<'_> {
    type Output = ();

    fn of<const N: usize>(self, number: impl Fn([u8; N]) -> f64) {
        self.to.paint(self.samples, |sample| [self.grey.of_sample(number(sample))]);
    }
}

/// Returns the range of samples of which nothing else is known: all that an integer can be, and 0 to 1 for others.
fn range_of(dtype: Dtype) -> [f64; 2] {
    let numbers = 2f64.powi(8 * dtype.size() as i32);
    match dtype {
        Dtype::Int8 | Dtype::Int16 | Dtype::Int32 | Dtype::Int64 => [-numbers / 2.0, numbers / 2.0 - 1.0],
        Dtype::UInt8 | Dtype::UInt16 | Dtype::UInt32 | Dtype::UInt64 => [0.0, numbers - 1.0],
        Dtype::Float16 | Dtype::Float32 | Dtype::Float64 | Dtype::Complex64 | Dtype::Complex128 => [0.0, 1.0],
    }
}

fn paint_labels(dtype: Dtype, samples: &[u8], to: Rows<'_>) {
    match dtype.size() {
        1 => to.paint(samples, |b: [u8; 1]| [of_label(b[0].into())]),
        2 => to.paint(samples, |b| [of_label(u16::from_le_bytes(b).into())]),
        4 => to.paint(samples, |b| [of_label(u32::from_le_bytes(b).into())]),
        _ => to.paint(samples, |b| [of_label(u64::from_le_bytes(b))]),
    }
}

/// Where the rows of a rectangle go.
struct Rows<'a> {
    rectangle: &'a Rectangle,
    columns: usize,
    filters: bool,
    out: &'a mut [u8],
}

impl Rows<'_> {
    /// Makes a pixel of `M` bytes of all `N` bytes of samples.
    fn paint<const N: usize, const M: usize>(self, samples: &[u8], pixel: impl Fn([u8; N]) -> [u8; M]) {
        let filter = usize::from(self.filters);
        let Rectangle { row_step, column_step, .. } = *self.rectangle;
        let (samples, _) = samples.as_chunks::<N>();
        for (number, row) in self.out.chunks_exact_mut(filter + self.columns * M).enumerate() {
            row[..filter].fill(0);
            let (pixels, _) = row[filter..].as_chunks_mut::<M>();
            let of_row = samples.get(number * row_step..).unwrap_or_default();
            for (to, from) in pixels.iter_mut().zip(of_row.iter().step_by(column_step.max(1))) {
                *to = pixel(*from);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::view::tests::zeros;
    use crate::volume::{Arithmetic, Region};

    const PLAIN: Subject = Subject { axes: 3, components: 1, is_labels: false, vertical: None };

    /// Paints one row.
    fn paint(info: &ArrayInfo, subject: &Subject, samples: &[u8]) -> Vec<u8> {
        let pixels = Pixels::of(info, subject);
        let columns = samples.len() / info.dtype.size() / subject.components;
        let rectangle = Rectangle { region: Region::whole(info.shape()), row_step: columns, column_step: 1 };
        let mut out = vec![7; columns * pixels.format().bytes() as usize];
        pixels.paint(samples, &rectangle, columns as u64, false, &mut out);
        out
    }

    fn floats(values: &[f32]) -> Vec<u8> {
        values.iter().flat_map(|v| v.to_le_bytes()).collect()
    }

    #[test]
    fn greys_span_the_value_range() {
        let mut info = zeros(&[4, 5, 6], Dtype::Float32).info().clone();
        let samples = floats(&[-2.0, -1.0, 0.0, 0.5, 1.0, f32::NAN, f32::INFINITY, f32::NEG_INFINITY]);
        assert_eq!(paint(&info, &PLAIN, &samples), [0, 0, 0, 128, 255, 0, 255, 0], "0 to 1 if it is not known");
        info.value_range = Some((-1.0, 1.0));
        info.no_value = Some(0.5);
        assert_eq!(paint(&info, &PLAIN, &samples), [0, 0, 128, 0, 255, 0, 255, 0]);
        info.value_range = Some((f64::NAN, 1.0));
        assert_eq!(paint(&info, &PLAIN, &samples), [0, 0, 0, 0, 255, 0, 255, 0]);
        info.value_range = Some((0.25, 0.25));
        assert_eq!(paint(&info, &PLAIN, &samples)[..5], [0; 5]);
    }

    #[test]
    fn greys_of_complex_samples_are_those_of_their_magnitudes() {
        let complex = floats(&[0.3, 0.4, -0.6, -0.8, 0.0, 0.0, 3.0, 4.0, f32::NAN, 0.0]);
        assert_eq!(paint(zeros(&[4, 5, 6], Dtype::Complex64).info(), &PLAIN, &complex), [128, 255, 0, 255, 0]);
        let mut info = zeros(&[4, 5, 6], Dtype::Complex128).info().clone();
        info.value_range = Some((0.0, 10.0));
        let complex: Vec<u8> = [3.0f64, -4.0, 1e300, 1e300].into_iter().flat_map(f64::to_le_bytes).collect();
        assert_eq!(paint(&info, &PLAIN, &complex), [128, 255]);
        let halves = [0, 0x38, 0, 0x3c, 0, 0xbc, 0, 0x7e];
        assert_eq!(paint(zeros(&[4, 5, 6], Dtype::Float16).info(), &PLAIN, &halves), [128, 255, 0, 0]);
    }

    #[test]
    fn codes_are_shown_by_their_values() {
        let mut info = zeros(&[4, 5, 6], Dtype::Int16).info().clone();
        let samples: Vec<u8> = [-100i16, 0, 100, 50].iter().flat_map(|v| v.to_le_bytes()).collect();
        info.value_range = Some((-10.0, 10.0));
        info.scaling = Some(Scaling { no_value: Some(50.0), ..Scaling::of_codes(0.1, 0.0) });
        assert_eq!(paint(&info, &PLAIN, &samples), [0, 128, 255, 0]);
        info.scaling = Some(Scaling { arithmetic: Arithmetic::Single, ..Scaling::of_codes(-0.1, 0.0) });
        assert_eq!(paint(&info, &PLAIN, &samples), [255, 128, 0, 64]);
        (info.value_range, info.scaling) = (None, None);
        assert_eq!(paint(&info, &PLAIN, &[0, 0x80, 0xff, 0x7f, 0, 0]), [0, 255, 128]);
    }

    #[test]
    fn unsigned_bytes_and_words_are_as_they_are() {
        let info = |dtype| zeros(&[4, 5, 6], dtype).info().clone();
        let rgb = Subject { components: 3, ..PLAIN };
        let samples = [1, 2, 3, 4, 5, 6];
        assert_eq!(paint(&info(Dtype::UInt8), &PLAIN, &samples), samples);
        assert_eq!(paint(&info(Dtype::UInt8), &rgb, &samples), samples);
        assert_eq!(paint(&info(Dtype::UInt16), &PLAIN, &samples), [2, 1, 4, 3, 6, 5]);
        assert_eq!(paint(&info(Dtype::UInt16), &rgb, &samples), [2, 1, 4, 3, 6, 5]);
        let labels = Subject { is_labels: true, ..PLAIN };
        assert_eq!(paint(&info(Dtype::UInt8), &labels, &samples), samples);
    }

    #[test]
    fn wide_labels_have_colours() {
        let labels = Subject { is_labels: true, ..PLAIN };
        let info = zeros(&[4, 5, 6], Dtype::UInt64).info().clone();
        assert_eq!(Pixels::of(&info, &labels).format(), PixelFormat::Indexed);
        let ids = [0u64, 7, 7, u64::MAX];
        let samples: Vec<u8> = ids.iter().flat_map(|id| id.to_le_bytes()).collect();
        assert_eq!(paint(&info, &labels, &samples), ids.map(of_label));
    }

    #[test]
    fn rows_and_columns_may_be_exchanged() {
        let info = zeros(&[4, 5, 6], Dtype::UInt8).info().clone();
        let rectangle = Rectangle { region: Region::whole(info.shape()), row_step: 1, column_step: 2 };
        let mut out = [9; 8];
        Pixels::of(&info, &PLAIN).paint(&[1, 2, 3, 4, 5, 6], &rectangle, 3, true, &mut out);
        assert_eq!(out, [0, 1, 3, 5, 0, 2, 4, 6]);
    }
}
