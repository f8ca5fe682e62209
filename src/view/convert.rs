//! Stored samples as float32 values, in either byte order.

use crate::volume::{Arithmetic, Dtype, OfNumbers, Scaling, half};

/// How values are written.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Form {
    /// The value that means "no data" where samples have no scaling; otherwise the scaling has it.
    pub no_value: Option<f64>,
    /// What is written in its place.
    pub void: f32,
    /// Whether the most significant byte comes first.
    pub big_endian: bool,
}

impl Form {
    /// Little-endian, with NaN for samples that their scaling gives no value.
    pub(crate) const LITTLE_ENDIAN: Self = Self { no_value: None, void: f32::NAN, big_endian: false };
}

/// Converts stored samples to values. `out` has 4 bytes for each.
pub(crate) fn to_float32(dtype: Dtype, scaling: Option<Scaling>, form: Form, stored: &[u8], out: &mut [u8]) {
    if form.big_endian {
        convert(dtype, scaling, form, stored, out, f32::to_be_bytes);
    } else {
        convert(dtype, scaling, form, stored, out, f32::to_le_bytes);
    }
}

fn convert(
    dtype: Dtype,
    scaling: Option<Scaling>,
    form: Form,
    stored: &[u8],
    out: &mut [u8],
    bytes: impl Fn(f32) -> [u8; 4],
) {
    match (dtype, scaling) {
        // values as they are, to the last bit
        (Dtype::Float32, None) => floats(form, stored, out, f32::from_le_bytes, bytes),
        (Dtype::Float16, None) => floats(form, stored, out, half, bytes),
        _ => {
            let plain = Scaling { no_value: form.no_value, is_code: false, ..Scaling::of_codes(1.0, 0.0) };
            dtype.with_numbers(Scale { scaling: scaling.unwrap_or(plain), void: form.void, bytes, stored, out });
        }
    }
}

fn floats<const N: usize>(
    form: Form,
    stored: &[u8],
    out: &mut [u8],
    value: impl Fn([u8; N]) -> f32,
    bytes: impl Fn(f32) -> [u8; 4],
) {
    match form.no_value.map(|no_value| no_value as f32) {
        None => each(stored, out, |v| bytes(value(v))),
        Some(no_value) if no_value.is_nan() => each(stored, out, |v| {
            let v = value(v);
            bytes(if v.is_nan() { form.void } else { v })
        }),
        Some(no_value) => each(stored, out, |v| {
            let v = value(v);
            bytes(if v == no_value { form.void } else { v })
        }),
    }
}

/// A scaling, how its values become bytes, and of which samples.
struct Scale<'a, B> {
    scaling: Scaling,
    void: f32,
    bytes: B,
    stored: &'a [u8],
    out: &'a mut [u8],
}

impl<B: Fn(f32) -> [u8; 4]> OfNumbers for Scale<'_, B> {
    type Output = ();

    /// Scales each sample. Each operation is rounded on its own, to the precision that the scaling requires.
    fn of<const N: usize>(self, widen: impl Fn([u8; N]) -> f64) {
        let Self { scaling, void, bytes, stored, out } = self;
        let Scaling { scale, offset, .. } = scaling;
        match (scaling.arithmetic, scaling.no_value) {
            (Arithmetic::Double, None) => each(stored, out, |v| bytes((widen(v) * scale + offset) as f32)),
            (Arithmetic::Single, None) => {
                each(stored, out, |v| bytes(widen(v) as f32 * scale as f32 + offset as f32));
            }
            (Arithmetic::Double, Some(no_value)) => each(stored, out, |v| {
                let v = widen(v);
                bytes(if v == no_value { void } else { (v * scale + offset) as f32 })
            }),
            (Arithmetic::Single, Some(no_value)) => each(stored, out, |v| {
                let v = widen(v);
                bytes(if v == no_value { void } else { v as f32 * scale as f32 + offset as f32 })
            }),
        }
    }
}

fn each<const N: usize>(stored: &[u8], out: &mut [u8], value: impl Fn([u8; N]) -> [u8; 4]) {
    let (from, _) = stored.as_chunks::<N>();
    let (to, _) = out.as_chunks_mut::<4>();
    for (from, to) in from.iter().zip(to) {
        *to = value(*from);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn big(dtype: Dtype, scaling: Option<Scaling>, no_value: Option<f64>, stored: &[u8]) -> Vec<u8> {
        let mut out = vec![0xee; stored.len() / dtype.size() * 4];
        to_float32(dtype, scaling, Form { no_value, void: 0.0, big_endian: true }, stored, &mut out);
        out
    }

    #[test]
    fn bits_of_floats_are_kept() {
        let values = [0x7fa0_0001u32, 0x8000_0000, 0x0000_0001, 0xff80_0000, 0x3f80_0000];
        let stored: Vec<u8> = values.iter().flat_map(|v| v.to_le_bytes()).collect();
        let expected: Vec<u8> = values.iter().flat_map(|v| v.to_be_bytes()).collect();
        assert_eq!(big(Dtype::Float32, None, None, &stored), expected);
        let without_nan: Vec<u8> = [&[0; 4], &expected[4..]].concat();
        assert_eq!(big(Dtype::Float32, None, Some(f64::NAN), &stored), without_nan);
        let without_one: Vec<u8> = [&expected[..16], &[0; 4]].concat();
        assert_eq!(big(Dtype::Float32, None, Some(1.0), &stored), without_one);
    }

    #[test]
    fn float16_is_exact_and_of_complex_the_magnitude_counts() {
        let floats = |values: &[f32]| values.iter().flat_map(|v| v.to_be_bytes()).collect::<Vec<_>>();
        let halves = [0, 0x3c, 1, 0, 0, 0x80, 0, 0xfc];
        assert_eq!(big(Dtype::Float16, None, None, &halves), floats(&[1.0, 2f32.powi(-24), -0.0, f32::NEG_INFINITY]));
        assert_eq!(big(Dtype::Float16, None, Some(1.0), &halves[..2]), floats(&[0.0]));
        assert_eq!(big(Dtype::Float16, None, Some(f64::NAN), &[0, 0x7e]), floats(&[0.0]));
        assert_eq!(big(Dtype::Float16, Some(Scaling::of_codes(2.0, 0.5)), None, &halves[..2]), floats(&[2.5]));
        let complex: Vec<u8> = [3.0f32, -4.0].into_iter().flat_map(f32::to_le_bytes).collect();
        assert_eq!(big(Dtype::Complex64, None, None, &complex), floats(&[5.0]));
    }

    #[test]
    fn integers_are_scaled_and_have_no_value() {
        let scaling = Scaling { no_value: Some(-1.0), ..Scaling::of_codes(0.5, 10.0) };
        let floats = |values: &[f32]| values.iter().flat_map(|v| v.to_be_bytes()).collect::<Vec<_>>();
        assert_eq!(big(Dtype::Int8, Some(scaling), None, &[0xff, 0x80, 3]), floats(&[0.0, -54.0, 11.5]));
        assert_eq!(big(Dtype::UInt16, None, Some(2.0), &[2, 0, 0, 1]), floats(&[0.0, 256.0]));
        assert_eq!(big(Dtype::Float64, None, None, &0.1f64.to_le_bytes()), floats(&[0.1]));
    }
}
