//! What ImageJ wants to know of a stack: the text in the field `ImageDescription`, and the resolution.

use std::fmt::Write;

use super::super::spatial_transform::number;
use super::super::stack::Stack;
use crate::volume::{ArrayInfo, Axis, Dtype};

/// The longest name of a unit, in characters.
const MAX_UNIT: usize = 40;

/// Returns the text that ImageJ writes into its stacks. Its axes across the planes are called frames, slices and
/// channels, slowest first; one alone is slices. It names a unit only if rows and columns have the same.
pub(crate) fn text(stack: &Stack, info: &ArrayInfo) -> String {
    let names: &[&str] = match stack.across.len() {
        0 | 1 => &["slices"],
        2 => &["frames", "slices"],
        _ => &["frames", "slices", "channels"],
    };
    let mut text = format!("ImageJ=1.54f\nimages={}\n", stack.planes());
    for (name, extent) in names.iter().zip(&stack.across).rev() {
        let _ = writeln!(text, "{name}={extent}");
    }
    if stack.across.len() > 1 {
        text += "hyperstack=true\n";
    }
    if let Some([.., y, x]) = planes_axes(stack, info)
        && let Some(unit) = unit(x).filter(|_| unit(x) == unit(y))
    {
        let _ = writeln!(text, "unit={}", ascii(unit));
        if let Some(z) = slice_axis(stack, info)
            && z.unit == x.unit
        {
            let _ = writeln!(text, "spacing={}", number(step(z)));
        }
    }
    if let (Dtype::Float32, Some((min, max))) = (info.dtype, info.value_range)
        && min < max
        && (max - min).is_finite()
    {
        let _ = writeln!(text, "min={}\nmax={}", number(min), number(max));
    }
    text += "loop=false\n";
    text
}

/// Returns pixels per unit along a row and along a column, as numerator and denominator; ones if these have no common
/// unit.
pub(crate) fn resolution(stack: &Stack, info: &ArrayInfo) -> [(u32, u32); 2] {
    match planes_axes(stack, info) {
        Some([.., y, x]) if unit(x).is_some() && unit(x) == unit(y) => [x, y].map(|axis| rational(1.0 / step(axis))),
        _ => [(1, 1); 2],
    }
}

/// Returns the axes of the array without the channels.
fn planes_axes<'a>(stack: &Stack, info: &'a ArrayInfo) -> Option<&'a [Axis]> {
    info.axes.get(..stack.across.len() + 2)
}

/// Returns the axis that ImageJ calls slices.
fn slice_axis<'a>(stack: &Stack, info: &'a ArrayInfo) -> Option<&'a Axis> {
    info.axes.get(stack.across.len().clamp(1, 2) - 1).filter(|_| !stack.across.is_empty())
}

fn unit(axis: &Axis) -> Option<&str> {
    axis.unit.as_deref().filter(|unit| !unit.is_empty())
}

/// Returns the distance between neighbours, which has no direction here.
fn step(axis: &Axis) -> f64 {
    let step = axis.step.abs();
    if step.is_finite() && step > 0.0 { step } else { 1.0 }
}

/// Returns a unit as ImageJ writes it: short, and in ASCII.
fn ascii(unit: &str) -> String {
    let short = match unit {
        "nanometer" => "nm",
        "micrometer" => "µm",
        "millimeter" => "mm",
        "centimeter" => "cm",
        "meter" => "m",
        other => other,
    };
    let mut text = String::new();
    for c in short.chars().take(MAX_UNIT).map(|c| if c.is_control() { ' ' } else { c }) {
        if c.is_ascii() {
            text.push(c);
        } else {
            for code in c.encode_utf16(&mut [0; 2]) {
                let _ = write!(text, "\\u{code:04X}");
            }
        }
    }
    text
}

/// Returns a fraction that is near to a positive number, by continued fractions; neither part is 0.
fn rational(value: f64) -> (u32, u32) {
    let (mut above, mut below) = ((0u64, 1u64), (1u64, 0u64));
    let mut rest = value;
    for _ in 0..32 {
        // casts of floats saturate
        let whole = rest.floor() as u64;
        let next = |(old, new): (u64, u64)| whole.checked_mul(new)?.checked_add(old);
        let (Some(a), Some(b)) = (next(above), next(below)) else { break };
        if a > u32::MAX.into() || b > u32::MAX.into() {
            break;
        }
        (above, below) = ((above.1, a), (below.1, b));
        let exact = a as f64 / b as f64;
        if (exact - value).abs() <= value * 1e-14 {
            break;
        }
        rest = 1.0 / (rest - rest.floor());
        if !rest.is_finite() {
            break;
        }
    }
    let clamped = |n: u64| u32::try_from(n).unwrap_or(u32::MAX).max(1);
    match (above.1, below.1) {
        // larger than any 32-bit fraction
        (_, 0) => (u32::MAX, 1),
        (a, b) => (clamped(a), if a == 0 { u32::MAX } else { clamped(b) }),
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::array_file::tests::zeros;
    use super::*;

    fn described(shape: &[u64], unit: impl Fn(usize) -> Option<&'static str>) -> (String, [(u32, u32); 2]) {
        let mut info = zeros(shape, Dtype::UInt16).info().clone();
        for (number, axis) in info.axes.iter_mut().enumerate() {
            axis.unit = unit(number).map(str::to_owned);
        }
        let stack = Stack::of(&info).unwrap();
        (text(&stack, &info), resolution(&stack, &info))
    }

    #[test]
    fn a_volume_is_described_as_imagej_does() {
        let (text, resolution) = described(&[40, 50, 70], |_| Some("micrometer"));
        let expected = "ImageJ=1.54f\nimages=40\nslices=40\nunit=\\u00B5m\nspacing=2\nloop=false\n";
        assert_eq!((text.as_str(), resolution), (expected, [(1, 4), (1, 3)]));
    }

    #[test]
    fn axes_of_different_kinds_have_no_common_unit() {
        let (text, resolution) = described(&[40, 50, 70], |axis| (axis == 2).then_some("ms"));
        assert_eq!(text, "ImageJ=1.54f\nimages=40\nslices=40\nloop=false\n");
        assert_eq!(resolution, [(1, 1), (1, 1)]);
        let (text, _) = described(&[40, 50, 70], |axis| (axis > 0).then_some("nm"));
        assert_eq!(text, "ImageJ=1.54f\nimages=40\nslices=40\nunit=nm\nloop=false\n");
    }

    #[test]
    fn more_axes_are_a_hyperstack() {
        let (text, _) = described(&[2, 3, 5, 7], |_| None);
        assert_eq!(text, "ImageJ=1.54f\nimages=6\nslices=3\nframes=2\nhyperstack=true\nloop=false\n");
        let (text, _) = described(&[2, 3, 4, 5, 7], |_| None);
        assert_eq!(text, "ImageJ=1.54f\nimages=24\nchannels=4\nslices=3\nframes=2\nhyperstack=true\nloop=false\n");
        let (text, _) = described(&[5, 7], |_| None);
        assert_eq!(text, "ImageJ=1.54f\nimages=1\nloop=false\n");
    }

    #[test]
    fn floats_have_a_range_of_display() {
        let mut info = zeros(&[2, 5, 7], Dtype::Float32).info().clone();
        info.value_range = Some((-0.5, 4000.0));
        assert!(text(&Stack::of(&info).unwrap(), &info).contains("\nmin=-0.5\nmax=4000\n"));
    }

    #[test]
    fn fractions_are_exact_where_they_can_be() {
        assert_eq!(rational(1.0 / 11.24), (25, 281));
        assert_eq!(rational(0.25), (1, 4));
        assert_eq!(rational(3.0), (3, 1));
        for value in [std::f64::consts::PI, 1e-7, 123_456.789, 1.0 / 3.0] {
            let (above, below) = rational(value);
            assert!((f64::from(above) / f64::from(below) / value - 1.0).abs() < 1e-8, "{value} {above} {below}");
        }
        assert_eq!(rational(1e30), (u32::MAX, 1));
        assert_eq!(rational(1e-30), (1, u32::MAX));
    }
}
