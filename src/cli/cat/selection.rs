//! The box that `--region` and `--at` select: slices by index, as in Python, and slices by annotation, such as line
//! numbers.

use std::cmp::Ordering;
use std::fmt;

use crate::cli::text::{choose, float};
use crate::volume::{ArrayInfo, Axis, Dims, Region, conversion};

/// Returns how far from a position a value may be, in steps of the axis: many formats have the first position and the step
/// as float32.
fn tolerance(axis: &Axis, last: f64) -> f64 {
    let farthest = axis.first.abs().max((axis.first + last * axis.step).abs());
    (2.0 * f64::from(f32::EPSILON) * farthest / axis.step.abs()).clamp(1e-6, 0.01)
}

/// What stands before a number that need not be one of the axis'.
const NEAREST: &str = "nearest:";

/// Significant digits of annotations in messages.
const DIGITS: usize = 9;

/// One slice, of indexes or of annotation values.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Slice<T> {
    One(T),
    /// `first:last`; `None` is the end of the axis.
    Range(Option<T>, Option<T>),
}

impl<T> Slice<T> {
    fn read(text: &str, number: impl Fn(&str) -> Result<T, String>) -> Result<Self, String> {
        let end = |text: &str| if text.trim().is_empty() { Ok(None) } else { number(text.trim()).map(Some) };
        match text.split_once(':') {
            Some((from, to)) => Ok(Self::Range(end(from)?, end(to)?)),
            None => number(text.trim()).map(Self::One),
        }
    }
}

/// The slices of `--region`, one for each of the first axes.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Slices(Vec<Slice<i64>>);

impl Slices {
    /// Parses `0:64,:,128`.
    pub(super) fn read(text: &str) -> Result<Self, String> {
        let number =
            |text: &str| text.parse().map_err(|_| format!("{text:?} is not a slice; write it as a:b, a:, :b, : or a"));
        text.split(',').map(|slice| Slice::read(slice, number)).collect::<Result<_, _>>().map(Self)
    }
}

/// A position along an axis, as it was typed.
#[derive(Clone, Debug, PartialEq)]
struct Position {
    number: f64,
    /// The axis' own if empty.
    unit: String,
}

impl Position {
    fn read(text: &str) -> Option<Self> {
        let end = text.rfind(|c: char| c.is_ascii_digit() || c == '.').map_or(0, |last| last + 1);
        let (number, unit) = text.split_at(end);
        let number = number.parse().ok().filter(|number: &f64| number.is_finite())?;
        Some(Self { number, unit: unit.trim().to_owned() })
    }

    /// Returns the position in the unit of an axis. The caller puts the axis' name before an error.
    fn on(&self, axis: &Axis) -> Result<f64, String> {
        let own = axis.unit.as_deref().unwrap_or_default();
        let factor = if self.unit.is_empty() { Some(1.0) } else { conversion(&self.unit, own) };
        let has = || if own.is_empty() { "has no unit".to_owned() } else { format!("is in {own}") };
        factor.map(|factor| self.number * factor).ok_or_else(|| format!("{}: {self} does not fit", has()))
    }
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", float(self.number, DIGITS), self.unit)
    }
}

/// One `--at`: a slice of one axis, by annotation.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct At {
    axis: String,
    /// The slice: one position, or all that lie between two, both included.
    slice: Slice<Position>,
    /// Whether one position stands for the nearest that there is.
    nearest: bool,
}

impl At {
    /// Parses `inline=1234`, `inline=nearest:1234`, `inline=1234:1300` and `z=0.1um:0.3um`.
    pub(super) fn read(text: &str) -> Result<Self, String> {
        let example = "write it as inline=1234, inline=1234:1300, inline=nearest:1234 or sample=1.2s";
        let (axis, value) = text.rsplit_once('=').ok_or_else(|| example.to_owned())?;
        let one = value.trim().strip_prefix(NEAREST);
        let position = |text: &str| Position::read(text).ok_or_else(|| format!("{text:?} is not a number; {example}"));
        let slice = Slice::read(one.unwrap_or(value), position)?;
        match &slice {
            Slice::Range(..) if one.is_some() => Err(format!("{NEAREST} takes one number, and not a range")),
            Slice::Range(Some(a), Some(b)) if a.unit.is_empty() != b.unit.is_empty() => {
                Err(format!("{a}:{b} has one unit; give it to both numbers or to none"))
            }
            _ => Ok(Self { axis: axis.trim().to_owned(), slice, nearest: one.is_some() }),
        }
    }
}

/// Returns the selected box, which has all positions of the axes without a slice. An error tells which positions or values
/// an axis has.
pub(super) fn select(info: &ArrayInfo, slices: Option<&Slices>, at: &[At]) -> Result<Region, String> {
    let shape = info.shape();
    let names = names(info);
    let shown: Vec<&str> = names.iter().map(String::as_str).collect();
    let mut chosen: Vec<Option<(u64, u64)>> = vec![None; shape.len()];
    let slices = slices.map_or(&[][..], |slices| &slices.0);
    if slices.len() > shape.len() {
        let (n, axes) = (slices.len(), shape.len());
        return Err(format!("--region has {n} slices, but the array has {axes} axes: {}", names.join(", ")));
    }
    for (axis, slice) in slices.iter().enumerate().filter(|(_, slice)| **slice != Slice::Range(None, None)) {
        let has = || shape[axis].checked_sub(1).map_or("is empty".to_owned(), |last| format!("has 0 to {last}"));
        let failed = |what| format!("--region: {what} axis {} {}", names[axis], has());
        chosen[axis] = Some(by_index(*slice, shape[axis]).map_err(failed)?);
    }
    for at in at {
        let axis = choose("axis", &shown, &at.axis).map_err(|error| format!("--at: {error}"))?;
        if chosen[axis].is_some() {
            return Err(format!("axis {} is given twice; give it once, with --region or with --at", names[axis]));
        }
        let failed = |what| format!("--at: axis {} {what}", names[axis]);
        chosen[axis] = Some(by_value(at, info.axes.get(axis), shape[axis]).map_err(failed)?);
    }
    let range = |axis: usize| chosen[axis].unwrap_or((0, shape[axis]));
    let start = Dims::from_fn(shape.len(), |axis| range(axis).0);
    Ok(Region { start, shape: Dims::from_fn(shape.len(), |axis| range(axis).1 - range(axis).0) })
}

/// Returns the axes' names, with `axis0`, `axis1`, ... for missing and ambiguous ones.
fn names(info: &ArrayInfo) -> Vec<String> {
    let name = |axis: usize| info.axes.get(axis).map_or("", |a| a.name.as_str());
    let unique = |axis: usize| info.axes.iter().filter(|a| a.name == name(axis)).count() == 1;
    let shown =
        |axis| if unique(axis) && !name(axis).is_empty() { name(axis).to_owned() } else { format!("axis{axis}") };
    (0..info.shape().len()).map(shown).collect()
}

/// Returns the first index and one past the last. The caller appends to an error what the axis has.
fn by_index(slice: Slice<i64>, count: u64) -> Result<(u64, u64), String> {
    // only the end of a slice may be one past the last position
    let position = |index: i64, beyond: u64| {
        let at = i128::from(index) + if index < 0 { i128::from(count) } else { 0 };
        u64::try_from(at).ok().filter(|at| *at < count.saturating_add(beyond))
    };
    let from = |index| position(index, 0).ok_or_else(|| format!("{index} is out of range:"));
    let to = |index| position(index, 1).ok_or_else(|| format!("an end of {index} is out of range:"));
    let (a, b) = match slice {
        Slice::One(index) => return from(index).map(|at| (at, at + 1)),
        Slice::Range(a, b) => (a, b),
    };
    let range = (a.map_or(Ok(0), from)?, b.map_or(Ok(count), to)?);
    let text = |end: Option<i64>| end.map_or_else(String::new, |n| n.to_string());
    let what = format!("{}:{}", text(a), text(b));
    match range.0.cmp(&range.1) {
        Ordering::Less => Ok(range),
        Ordering::Equal => Err(format!("{what} is empty (a:b ends before b):")),
        Ordering::Greater => Err(format!("{what} runs backwards:")),
    }
}

/// Returns the first index and one past the last. The caller puts the axis' name before an error.
fn by_value(at: &At, axis: Option<&Axis>, count: u64) -> Result<(u64, u64), String> {
    let usable = |axis: &&Axis| axis.first.is_finite() && axis.step.is_finite() && (axis.step != 0.0 || count == 1);
    let Some(axis) = axis.filter(usable).filter(|_| count > 0) else {
        return Err("has no numbers to choose by; give indexes with --region".to_owned());
    };
    let (last, step) = ((count - 1) as f64, if axis.step == 0.0 { 1.0 } else { axis.step });
    let text = |index: f64| float(axis.first + index * axis.step, DIGITS);
    let has = || {
        let steps = if count > 1 { format!(" in steps of {}", float(axis.step, DIGITS)) } else { String::new() };
        let unit = axis.unit.as_ref().map_or_else(String::new, |unit| format!(" {unit}"));
        format!("(it has {} to {}{steps}{unit})", text(0.0), text(last))
    };
    let tolerance = tolerance(axis, last);
    // in steps from the first position
    let place = |position: &Position| Ok::<f64, String>((position.on(axis)? - axis.first) / step);
    let (from, to) = match &at.slice {
        Slice::One(position) => {
            let exact = place(position)?;
            let nearest = exact.round().clamp(0.0, last);
            if !at.nearest && (exact - nearest).abs() > tolerance {
                return Err(format!("has no {position}; the nearest is {} {}", text(nearest), has()));
            }
            (nearest, nearest)
        }
        Slice::Range(a, b) => {
            let end = |end: &Option<Position>, open| end.as_ref().map_or(Ok(open), place);
            let (from, to) = (end(a, 0.0)?, end(b, last)?);
            let typed = |end: &Option<Position>| end.as_ref().map_or_else(String::new, ToString::to_string);
            let (a_typed, b_typed) = (typed(a), typed(b));
            if a.is_some() && b.is_some() && from > to + tolerance {
                return Err(format!("runs in the other direction: give {b_typed}:{a_typed}"));
            }
            let inside = ((from - tolerance).ceil().max(0.0), (to + tolerance).floor().min(last));
            if inside.0 > inside.1 {
                return Err(format!("has nothing in {a_typed}:{b_typed} {}", has()));
            }
            inside
        }
    };
    // both are within 0 and the last index
    Ok((from as u64, to as u64 + 1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::volume::{BrickGrid, Dtype};

    fn info(axes: &[(&str, u64, f64, f64)]) -> ArrayInfo {
        let shape = Dims::from_fn(axes.len(), |a| axes[a].1);
        let axis = |&(name, count, first, step): &(&str, u64, f64, f64)| Axis {
            name: name.into(),
            unit: None,
            first,
            step,
            count,
            spatial: true,
        };
        ArrayInfo {
            axes: axes.iter().map(axis).collect(),
            ..ArrayInfo::new(
                Dtype::Int8,
                BrickGrid::aligned(shape, Dims::filled(axes.len(), 8)),
                Dims::filled(axes.len(), 8),
            )
        }
    }

    fn survey() -> ArrayInfo {
        info(&[("inline", 50, 1000.0, 2.0), ("crossline", 70, 300.0, -1.0), ("sample", 100, -12.5, 0.1)])
    }

    fn ranges(region: Result<Region, String>) -> Result<Vec<(u64, u64)>, String> {
        region.map(|r| (0..r.axes()).map(|a| (r.start[a], r.end(a))).collect())
    }

    fn slices(text: &str) -> Result<Vec<(u64, u64)>, String> {
        ranges(select(&survey(), Some(&Slices::read(text)?), &[]))
    }

    fn at(texts: &[&str]) -> Result<Vec<(u64, u64)>, String> {
        let at: Vec<At> = texts.iter().map(|text| At::read(text)).collect::<Result<_, _>>()?;
        ranges(select(&survey(), None, &at))
    }

    #[test]
    fn slices_are_as_in_python() {
        for (text, wanted) in [
            (":", [(0, 50), (0, 70), (0, 100)]),
            ("1:2,3:4,5:6", [(1, 2), (3, 4), (5, 6)]),
            ("48:", [(48, 50), (0, 70), (0, 100)]),
            (":,:3,7", [(0, 50), (0, 3), (7, 8)]),
            ("-1,-70:-69,-2:", [(49, 50), (0, 1), (98, 100)]),
            (" 0 : 50 , 0:70", [(0, 50), (0, 70), (0, 100)]),
        ] {
            assert_eq!(slices(text).as_deref(), Ok(&wanted[..]), "{text}");
        }
    }

    #[test]
    fn a_wrong_slice_is_an_error_that_names_the_valid_range() {
        for (text, part) in [
            (",", "is not a slice"),
            ("", "is not a slice"),
            ("1:2:3", "is not a slice"),
            ("a", "is not a slice"),
            ("1.5", "is not a slice"),
            ("99999999999999999999", "is not a slice"),
            (":,:,:,:", "4 slices, but the array has 3 axes: inline, crossline, sample"),
            (":,70", "70 is out of range: axis crossline has 0 to 69"),
            (":,70:", "70 is out of range: axis crossline has 0 to 69"),
            (":,:71", "an end of 71 is out of range: axis crossline has 0 to 69"),
            (":,-71", "-71 is out of range: axis crossline has 0 to 69"),
            ("-9223372036854775808", "is out of range: axis inline has 0 to 49"),
            ("3:3", "3:3 is empty (a:b ends before b): axis inline has 0 to 49"),
            ("5:3", "5:3 runs backwards: axis inline has 0 to 49"),
            ("-1:-2", "-1:-2 runs backwards"),
            ("0:0", "0:0 is empty"),
        ] {
            let error = slices(text).unwrap_err();
            assert!(error.contains(part), "{text}: {error}");
        }
    }

    #[test]
    fn values_are_found_on_their_axes() {
        for (text, wanted) in [
            (&["inline=1000"][..], [(0, 1), (0, 70), (0, 100)]),
            (&["Inline=1098", "crossline=300:231"], [(49, 50), (0, 70), (0, 100)]),
            (&["crossline=:299", "inline=1002:1006"], [(1, 4), (0, 2), (0, 100)]),
            (&["sample=-12.5:-12.3"], [(0, 50), (0, 70), (0, 3)]),
            (&["sample=-2.6"], [(0, 50), (0, 70), (99, 100)]),
            (&["inline=1090:"], [(45, 50), (0, 70), (0, 100)]),
            (&["crossline=nearest:299.4", "inline=nearest: 1041"], [(21, 22), (1, 2), (0, 100)]),
            (&["inline=nearest:-1e300", "sample=nearest:1e300"], [(0, 1), (0, 70), (99, 100)]),
        ] {
            assert_eq!(at(text).as_deref(), Ok(&wanted[..]), "{text:?}");
        }
    }

    #[test]
    fn a_range_has_what_lies_inside() {
        for (text, wanted) in [
            ("inline=1001:1006.5", [(1, 4), (0, 70), (0, 100)]),
            ("inline=1000:2000", [(0, 50), (0, 70), (0, 100)]),
            ("inline=-1e308:1e308", [(0, 50), (0, 70), (0, 100)]),
            ("inline=:1001.9", [(0, 1), (0, 70), (0, 100)]),
            ("inline=:", [(0, 50), (0, 70), (0, 100)]),
            ("crossline=1000:298.5", [(0, 50), (0, 2), (0, 100)]),
            ("crossline=231.5:", [(0, 50), (69, 70), (0, 100)]),
            ("sample=-12.45:-12.25", [(0, 50), (0, 70), (1, 3)]),
        ] {
            assert_eq!(at(&[text]).as_deref(), Ok(&wanted[..]), "{text}");
        }
        for (text, part) in [
            ("inline=1001:1001.5", "axis inline has nothing in 1001:1001.5 (it has 1000 to 1098 in steps of 2)"),
            ("inline=1099:", "axis inline has nothing in 1099: (it has 1000 to 1098 in steps of 2)"),
            ("inline=:999", "axis inline has nothing in :999 (it has 1000 "),
            ("crossline=230:", "axis crossline has nothing in 230: (it has 300 to 231 in steps of -1)"),
            ("crossline=231.5:299.5", "axis crossline runs in the other direction: give 299.5:231.5"),
            ("inline=nearest:1000:1010", "nearest: takes one number"),
            ("inline=nearest:", "\"\" is not a number"),
        ] {
            let error = at(&[text]).unwrap_err();
            assert!(error.contains(part), "{text}: {error}");
        }
    }

    #[test]
    fn positions_of_float32_steps_are_found_by_their_decimals() {
        let step = f64::from(0.1_f32);
        let info = info(&[("sample", 2000, f64::from(0.3_f32), step), ("x", 9, 600_000.0, 12.5)]);
        let at = |text: &str| ranges(select(&info, None, &[At::read(text).unwrap()])).map(|ranges| ranges[0]);
        for (text, wanted) in [("sample=10", (97, 98)), ("sample=10:11", (97, 108)), ("sample=199.3", (1990, 1991))] {
            assert_eq!(at(text), Ok(wanted), "{text}");
        }
        assert!(at("sample=10.002").is_err());
    }

    #[test]
    fn positions_may_have_a_unit_of_the_kind_that_the_axis_has() {
        let mut info = info(&[("z", 50, 0.0, 28.0), ("sample", 70, 1200.0, 4.0), ("line", 9, 1.0, 1.0)]);
        for (axis, unit) in info.axes.iter_mut().zip(["nanometer", "ms"]) {
            axis.unit = Some(unit.to_owned());
        }
        let at = |text: &str| ranges(select(&info, None, &[At::read(text)?]));
        for (text, wanted) in [
            ("z=0.1um:0.3µm", [(4, 11), (0, 70), (0, 9)]),
            ("z=2.8e-8 m", [(1, 2), (0, 70), (0, 9)]),
            ("z=28", [(1, 2), (0, 70), (0, 9)]),
            ("z=nearest:0.1um", [(4, 5), (0, 70), (0, 9)]),
            ("sample=1.2s:1.208s", [(0, 50), (0, 3), (0, 9)]),
            ("sample=1.204s", [(0, 50), (1, 2), (0, 9)]),
            ("sample=:1204000us", [(0, 50), (0, 2), (0, 9)]),
        ] {
            assert_eq!(at(text).as_deref(), Ok(&wanted[..]), "{text}");
        }
        for (text, part) in [
            ("sample=1.2m", "axis sample is in ms: 1.2m does not fit"),
            ("sample=1.2fortnights:", "axis sample is in ms: 1.2fortnights does not fit"),
            ("line=nearest:3ms", "axis line has no unit: 3ms does not fit"),
            ("sample=1.2005s", "sample has no 1.2005s; the nearest is 1200 (it has 1200 to 1476 in steps of 4 ms)"),
            ("sample=1s:1.1s", "axis sample has nothing in 1s:1.1s (it has 1200 to 1476 in steps of 4 ms)"),
            ("sample=1.2:1.6s", "1.2:1.6s has one unit"),
            ("sample=s", "\"s\" is not a number"),
            ("sample=1.2.3s", "\"1.2.3s\" is not a number"),
            ("sample=1e999s", "\"1e999s\" is not a number"),
        ] {
            let error = at(text).unwrap_err();
            assert!(error.contains(part), "{text}: {error}");
        }
    }

    #[test]
    fn a_wrong_value_is_an_error_that_names_the_nearest() {
        for (text, part) in [
            (
                &["inline=1001.1"][..],
                "axis inline has no 1001.1; the nearest is 1002 (it has 1000 to 1098 in steps of 2)",
            ),
            (&["inline=5"], "has no 5; the nearest is 1000"),
            (&["crossline=231:300"], "axis crossline runs in the other direction: give 300:231"),
            (&["trace=5"], "there is no axis trace; there are inline, crossline, sample"),
            (&["inline=1000", "INLINE=1002"], "axis inline is given twice"),
            (&["inline"], "inline=1234"),
            (&["inline=x"], "\"x\" is not a number"),
            (&["inline=nan"], "\"nan\" is not a number"),
            (&["inline="], "\"\" is not a number"),
        ] {
            let error = at(text).unwrap_err();
            assert!(error.contains(part), "{text:?}: {error}");
        }
    }

    #[test]
    fn region_and_at_combine_but_not_on_one_axis() {
        let both = |slices: &str, at: &str| {
            let at = [At::read(at).unwrap()];
            ranges(select(&survey(), Some(&Slices::read(slices).unwrap()), &at))
        };
        assert_eq!(both(":,0:5", "inline=1004").unwrap(), [(2, 3), (0, 5), (0, 100)]);
        assert!(both("0:5", "inline=1004").unwrap_err().contains("axis inline is given twice"));
    }

    #[test]
    fn axes_without_unique_names_are_numbered() {
        let odd = info(&[("x", 5, f64::NAN, 1.0), ("x", 6, 0.0, 0.0), ("", 1, 7.0, 0.0)]);
        let at = |text: &str| ranges(select(&odd, None, &[At::read(text).unwrap()]));
        assert!(at("axis0=1").unwrap_err().contains("axis axis0 has no numbers"));
        assert!(at("axis1=0").unwrap_err().contains("axis axis1 has no numbers"));
        assert_eq!(at("axis2=7").unwrap(), [(0, 5), (0, 6), (0, 1)]);
        assert!(at("axis2=8").unwrap_err().contains("the nearest is 7 (it has 7 to 7)"));
        assert!(at("x=8").unwrap_err().contains("no axis x; there are axis0, axis1, axis2"));
    }
}
