//! The colours of pictures: palettes, the colours of labels, and those of the values that a preview shows.

use crate::memory::{OutOfMemory, try_with_capacity};
use crate::volume::{ArrayInfo, Dtype, Scaling};

/// The colours that the pixels of a picture name by number.
pub(crate) type Palette = [[u8; 3]; 256];

/// The last number of a scale of values; the least value has number 0, and the middle one is exact.
pub(crate) const LAST_OF_SCALE: u8 = 252;
/// The number of the colour for samples without a value.
pub(crate) const NO_VALUE: u8 = 254;
/// The number of the colour around the slices of a preview.
pub(crate) const BACKGROUND: u8 = 255;
/// The colours of labels are 1 to this; 0 is for no label.
const LAST_LABEL: u64 = 254;

/// The colour of samples without a value where all greys and the diverging scale mean values.
const NO_VALUE_COLOUR: [u8; 3] = [0x30, 0x48, 0x38];
const BACKGROUND_COLOUR: [u8; 3] = [0xff, 0xff, 0xff];
/// The same beside a diverging scale, whose middle is white.
const BACKGROUND_OF_DIVERGING: [u8; 3] = [0x50, 0x50, 0x50];

/// The colours at even distances along the diverging scale: blue for the least value, white for 0, red for the
/// greatest.
const DIVERGING: [[f64; 3]; 7] = [
    [0.02, 0.06, 0.30],
    [0.10, 0.25, 0.78],
    [0.52, 0.68, 0.97],
    [1.00, 1.00, 1.00],
    [0.98, 0.62, 0.52],
    [0.80, 0.13, 0.10],
    [0.32, 0.01, 0.05],
];

pub(crate) fn greys() -> Palette {
    scale(BACKGROUND_COLOUR, |part| [part; 3])
}

/// Returns the colours of a scale of values about 0.
pub(crate) fn diverging() -> Palette {
    let last = DIVERGING.len() - 1;
    scale(BACKGROUND_OF_DIVERGING, |part| {
        let at = part * last as f64;
        let before = (at as usize).min(last - 1);
        let between = at - before as f64;
        std::array::from_fn(|c| DIVERGING[before][c] * (1.0 - between) + DIVERGING[before + 1][c] * between)
    })
}

fn scale(background: [u8; 3], colour: impl Fn(f64) -> [f64; 3]) -> Palette {
    let mut palette = [NO_VALUE_COLOUR; 256];
    for (number, to) in palette.iter_mut().enumerate().take(usize::from(LAST_OF_SCALE) + 1) {
        *to = colour(number as f64 / f64::from(LAST_OF_SCALE)).map(byte);
    }
    palette[usize::from(BACKGROUND)] = background;
    palette
}

/// Returns the colours of labels: black for 0, and 254 colours that differ from black and white.
pub(crate) fn labels() -> Palette {
    // neighbours differ in all of hue, saturation and brightness
    let mut palette: Palette = std::array::from_fn(|number| {
        let hue = (number as f64 * 0.618_033_988_749_895).fract();
        let (saturation, brightness) = ([0.85, 0.5, 0.68][number % 3], [1.0, 0.62, 0.82, 0.94][number % 4]);
        from_hsv(hue, saturation, brightness)
    });
    palette[0] = [0; 3];
    palette[usize::from(BACKGROUND)] = BACKGROUND_COLOUR;
    palette
}

/// Returns the number of a label's colour: the same in all pictures, 0 for 0 alone.
pub(crate) fn of_label(label: u64) -> u8 {
    if label == 0 {
        return 0;
    }
    // the finalizer of a 64-bit hash, so that ids that differ in a bit anywhere get colours that have nothing in common
    let mixed = (label ^ (label >> 32)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mixed = (mixed ^ (mixed >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    (1 + (mixed >> 33) % LAST_LABEL) as u8
}

fn from_hsv(hue: f64, saturation: f64, brightness: f64) -> [u8; 3] {
    [0.0, 2.0, 4.0].map(|of_channel: f64| {
        // 1 within a sixth of the circle around the channel's own hue, 0 beyond a third
        let distance = (hue * 6.0 - of_channel + 9.0).rem_euclid(6.0) - 3.0;
        let share = (2.0 - distance.abs()).clamp(0.0, 1.0);
        byte(brightness * (1.0 - saturation * (1.0 - share)))
    })
}

fn byte(part: f64) -> u8 {
    (part * 255.0).round() as u8
}

/// The share of the samples shown that a scale of greys leaves out at each end, and that the diverging scale leaves out
/// at both together.
const CLIPPED: f64 = 0.01;
/// Values are on both sides of 0 if the smaller side reaches this far, compared with the other one.
const BOTH_SIDES: f64 = 0.02;

/// Keys that there are.
const KEYS: usize = 1 << 16;

/// How a sample becomes 16 bits: in order, and precise enough for the colours of a picture. 0 is for samples without
/// a value.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Key {
    /// The number of the colour, right away.
    Label,
    /// In even steps from a least to a greatest sample.
    Even { least: f64, step: f64 },
    /// In steps that are fine near 0: the sign, the exponent and 7 binary digits of a float32.
    FineNearZero,
}

/// The keys of samples, and what turns keys into colours.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Values {
    key: Key,
    no_value: Option<f64>,
    scaling: Scaling,
    dtype: Dtype,
    /// The range of values of the whole layer, if it is known.
    range: Option<(f64, f64)>,
}

impl Values {
    pub(crate) fn of(info: &ArrayInfo, is_labels: bool) -> Self {
        let even = |least: f64, greatest: f64| Key::Even { least, step: (greatest - least) / f64::from(u16::MAX - 1) };
        let key = match (info.dtype, info.value_range) {
            _ if is_labels => Key::Label,
            (Dtype::Int8 | Dtype::UInt8, _) => even(-32767.0, 32767.0),
            (Dtype::Int16, _) => even(-32767.0, 32767.0),
            (Dtype::UInt16, _) => even(0.0, 65534.0),
            (dtype, Some((low, high)))
                if !dtype.is_integer()
                    && low.is_finite()
                    && high.is_finite()
                    && low < high
                    && (low > 0.0 || high < 0.0) =>
            {
                even(low, high)
            }
            _ => Key::FineNearZero,
        };
        let scaling = info.scaling.unwrap_or(Scaling::of_codes(1.0, 0.0));
        let no_value = scaling.no_value.or(info.no_value);
        Self { key, no_value, scaling, dtype: info.dtype, range: info.value_range }
    }

    pub(crate) fn key(&self, sample: &[u8]) -> u16 {
        if self.key == Key::Label {
            let bits = sample.iter().rev().fold(0, |bits, byte| bits << 8 | u64::from(*byte));
            return of_label(bits).into();
        }
        let number = self.dtype.number(sample);
        if number.is_nan() || self.no_value == Some(number) {
            return 0;
        }
        match self.key {
            // a cast saturates
            Key::Even { least, step } => ((number - least) / step + 1.0).round().max(1.0) as u16,
            Key::FineNearZero | Key::Label => {
                let top = ((number as f32).to_bits() >> 16) as u16;
                if top & 0x8000 == 0 { top | 0x8000 } else { !top }.max(1)
            }
        }
    }

    /// Returns the value that the samples with a key have.
    fn value(&self, key: u16) -> f64 {
        let stored = match self.key {
            Key::Even { least, step } => least + f64::from(key.saturating_sub(1)) * step,
            Key::FineNearZero | Key::Label => {
                let top = if key & 0x8000 == 0 { !key } else { key & 0x7fff };
                f32::from_bits(u32::from(top) << 16).into()
            }
        };
        stored * self.scaling.scale + self.scaling.offset
    }

    /// Returns the colours of a picture of these samples, and the number of the colour for each key.
    pub(crate) fn colours(
        &self,
        keys: impl Iterator<Item = u16>,
        is_seismic: bool,
    ) -> Result<(Palette, Vec<u8>), OutOfMemory> {
        let every_key = 0..=u16::MAX;
        let mut numbers = try_with_capacity(KEYS)?;
        if self.key == Key::Label {
            numbers.extend(every_key.map(|key| key as u8));
            return Ok((labels(), numbers));
        }
        let mut counts = try_with_capacity(KEYS)?;
        counts.resize(KEYS, 0u32);
        keys.for_each(|key| counts[usize::from(key)] += 1);
        let is_value = |(key, count): &(u16, u32)| *key > 0 && *count > 0;
        let used = || every_key.clone().zip(counts.iter().copied()).filter(is_value);
        let mut values: Vec<(f64, u32)> = try_with_capacity(used().count())?;
        values.extend(used().map(|(key, count)| (self.value(key), count)));
        // infinite values have no place on a scale, and surveys have zeros where nothing was recorded
        values.retain(|(value, _)| value.is_finite() && !(is_seismic && *value == 0.0));
        // a stable sort would take memory without asking
        values.sort_unstable_by(|(one, _), (other, _)| one.total_cmp(other));
        let (low, high) = clipped(&values, CLIPPED / 2.0, 1.0 - CLIPPED / 2.0);
        let has_both_signs = low < 0.0 && high > 0.0 && (-low).min(high) > BOTH_SIDES * (-low).max(high);
        let ((low, high), palette) = if is_seismic && has_both_signs {
            // all values but a share have this magnitude at most
            let mut magnitudes = try_with_capacity(values.len())?;
            magnitudes.extend(values.iter().map(|(value, count)| (value.abs(), *count)));
            magnitudes.sort_unstable_by(|(one, _), (other, _)| one.total_cmp(other));
            let most = clipped(&magnitudes, 0.0, 1.0 - CLIPPED).1;
            ((-most, most), diverging())
        } else {
            ((low, high), greys())
        };
        // what is shown is all alike: its place in the whole layer says more
        let (low, high) = if low == high { self.range.unwrap_or((low, high)) } else { (low, high) };
        let factor = if high > low { f64::from(LAST_OF_SCALE) / (high - low) } else { 0.0 };
        let number = |key: u16| match key {
            0 => NO_VALUE,
            _ => ((self.value(key) - low) * factor).round().clamp(0.0, LAST_OF_SCALE.into()) as u8,
        };
        numbers.extend(every_key.map(number));
        Ok((palette, numbers))
    }
}

/// Returns the values between which all lie but a share at each end; the least and the greatest if these are equal.
fn clipped(values: &[(f64, u32)], from: f64, to: f64) -> (f64, f64) {
    let all: f64 = values.iter().map(|(_, count)| f64::from(*count)).sum();
    let at = |share: f64| {
        let mut sum = 0.0;
        let reaches = |(_, count): &&(f64, u32)| {
            sum += f64::from(*count);
            sum >= share * all
        };
        values.iter().find(reaches).or(values.last()).map_or(0.0, |(value, _)| *value)
    };
    let (low, high) = (at(from), at(to));
    match (values.first(), values.last()) {
        (Some((least, _)), Some((greatest, _))) if low >= high => (*least, *greatest),
        _ => (low, high),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::view::tests::zeros;

    #[test]
    fn scales_have_their_ends_and_their_middle() {
        let (grey, diverging, last) = (greys(), diverging(), usize::from(LAST_OF_SCALE));
        assert_eq!((grey[0], grey[last], grey[last / 2]), ([0; 3], [255; 3], [128; 3]));
        assert_eq!(diverging[last / 2], [255; 3]);
        let blue_and_red = |at: usize| (diverging[at][2] > 200, diverging[at][0] > 200);
        assert_eq!((blue_and_red(last / 4), blue_and_red(last * 3 / 4)), ((true, false), (false, true)));
        assert!(grey[..=last].windows(2).all(|pair| pair[0] < pair[1]));
    }

    #[test]
    fn labels_differ_from_each_other_and_from_nothing() {
        let palette = labels();
        let distinct: BTreeSet<_> = palette[..255].iter().collect();
        assert!(distinct.len() > 250, "{}", distinct.len());
        assert!(palette[1..255].iter().all(|colour| *colour.iter().max().unwrap() > 150 && *colour != [255; 3]));
        assert_eq!((of_label(0), palette[0]), (0, [0; 3]));
        // pictures of one dataset by different versions of volfs have the same colours
        assert_eq!([1, 2, 1 << 32, u32::MAX.into(), 3 << 32 | 3, u64::MAX].map(of_label), [82, 74, 220, 105, 66, 152]);
        let numbers: BTreeSet<u8> = (1..100).chain((1..100).map(|n| n << 40)).map(of_label).collect();
        assert!(numbers.len() > 120 && !numbers.contains(&0) && !numbers.contains(&BACKGROUND), "{}", numbers.len());
        let neighbours = (1..1000).filter(|id| of_label(*id) == of_label(id + 1)).count();
        assert!(neighbours < 12, "{neighbours} of 1000 neighbouring ids share a colour");
    }

    #[test]
    fn hues_are_those_of_the_circle() {
        let pure = |hue| from_hsv(hue, 1.0, 1.0);
        assert_eq!([0.0, 1.0 / 3.0, 2.0 / 3.0].map(pure), [[255, 0, 0], [0, 255, 0], [0, 0, 255]]);
        assert_eq!((pure(0.5), pure(1.0 / 6.0), from_hsv(0.3, 0.0, 1.0)), ([0, 255, 255], [255, 255, 0], [255; 3]));
    }

    fn info(dtype: Dtype) -> ArrayInfo {
        zeros(&[4, 5, 6], dtype).info().clone()
    }

    /// Returns the numbers of the colours of samples.
    fn numbers(info: &ArrayInfo, samples: &[u8], is_seismic: bool) -> (Palette, Vec<u8>) {
        let values = Values::of(info, false);
        let keys: Vec<u16> = samples.chunks(info.dtype.size()).map(|sample| values.key(sample)).collect();
        let (palette, numbers) = values.colours(keys.iter().copied(), is_seismic).unwrap();
        (palette, keys.iter().map(|key| numbers[usize::from(*key)]).collect())
    }

    fn floats(values: impl IntoIterator<Item = f32>) -> Vec<u8> {
        values.into_iter().flat_map(f32::to_le_bytes).collect()
    }

    #[test]
    fn greys_leave_out_the_outermost_samples() {
        let info = info(Dtype::UInt16);
        let samples: Vec<u8> = (0..1000u16).map(|n| 3000 + n).chain([60_000, 0]).flat_map(u16::to_le_bytes).collect();
        let (palette, numbers) = numbers(&info, &samples, false);
        assert_eq!(palette, greys());
        assert_eq!((numbers[0], numbers[1000], numbers[1001]), (0, LAST_OF_SCALE, 0));
        let black = numbers.iter().filter(|number| **number == 0).count();
        let white = numbers.iter().filter(|number| **number == LAST_OF_SCALE).count();
        assert!((5..10).contains(&black) && (5..10).contains(&white), "{black} {white}");
        assert!(numbers[..1000].is_sorted() && numbers[500].abs_diff(126) < 2);
    }

    #[test]
    fn seismic_is_symmetric_about_zero() {
        let info = info(Dtype::Float32);
        // zeros where nothing was recorded, amplitudes of -1000 to 500, and an outlier
        let recorded = (-1000..=500).map(|n| n as f32);
        let samples = floats(std::iter::repeat_n(0.0, 100_000).chain(recorded).chain([1e9, f32::NAN]));
        let (palette, numbers) = numbers(&info, &samples, true);
        assert_eq!(palette, diverging());
        let of = |value: i32| numbers[(100_000 + 1000 + value) as usize];
        assert_eq!((numbers[0], of(0), of(-1000), numbers[101_501], numbers[101_502]), (126, 126, 0, 252, NO_VALUE));
        assert!(of(500).abs_diff(126 + 63) <= 2, "{}", of(500));
        let positive = floats((1..100).map(|n| n as f32));
        assert_eq!(super::tests::numbers(&info, &positive, true).0, greys());
    }

    #[test]
    fn codes_count_as_their_values() {
        let mut info = info(Dtype::Int8);
        info.scaling = Some(Scaling { no_value: Some(5.0), ..Scaling::of_codes(-0.5, 0.0) });
        let samples: Vec<u8> = (-100..=100i8).flat_map(i8::to_le_bytes).collect();
        let (palette, numbers) = numbers(&info, &samples, true);
        assert_eq!(palette, diverging());
        assert_eq!((numbers[0], numbers[100], numbers[105], numbers[200]), (252, 126, NO_VALUE, 0));
    }

    #[test]
    fn samples_that_are_all_alike_have_a_colour() {
        for dtype in [Dtype::UInt8, Dtype::Int64, Dtype::Float64] {
            let samples = vec![0; 80];
            assert!(numbers(&info(dtype), &samples, true).1.iter().all(|number| *number == 0), "{dtype}");
        }
        let mut flags = info(Dtype::UInt8);
        flags.value_range = Some((0.0, 1.0));
        assert_eq!(numbers(&flags, &[1; 9], false).1, [LAST_OF_SCALE; 9], "every trace is there");
        let nothing = floats([f32::NAN; 10]);
        assert_eq!(numbers(&info(Dtype::Float32), &nothing, true).1, [NO_VALUE; 10]);
        let sparse: Vec<u8> = std::iter::repeat_n(0, 9999).chain([200]).collect();
        assert_eq!(numbers(&info(Dtype::UInt8), &sparse, false).1[9999], LAST_OF_SCALE);
    }

    #[test]
    fn keys_keep_the_order_of_samples() {
        let check = |info: &ArrayInfo, samples: Vec<Vec<u8>>| {
            let values = Values::of(info, false);
            let keys: Vec<u16> = samples.iter().map(|sample| values.key(sample)).collect();
            assert!(keys.is_sorted() && keys[0] > 0 && keys[0] < keys[keys.len() - 1], "{} {keys:?}", info.dtype);
            assert!(keys.iter().map(|key| values.value(*key)).is_sorted(), "{}", info.dtype);
        };
        check(&info(Dtype::Int8), (i8::MIN..=i8::MAX).map(|v| v.to_le_bytes().to_vec()).collect());
        check(&info(Dtype::Int16), (i16::MIN..=i16::MAX).step_by(99).map(|v| v.to_le_bytes().to_vec()).collect());
        check(&info(Dtype::Int64), [i64::MIN, -1, 0, 1, 1 << 40].map(|v| v.to_le_bytes().to_vec()).to_vec());
        check(&info(Dtype::UInt64), [0, 1, 1 << 40, u64::MAX].map(|v| v.to_le_bytes().to_vec()).to_vec());
        let floats = [f32::NEG_INFINITY, -1e30, -1.0, -1e-30, 0.0, 1e-30, 1.0, 2.0, f32::INFINITY];
        check(&info(Dtype::Float32), floats.map(|v| v.to_le_bytes().to_vec()).to_vec());
        let halves = [0xfc00, 0xbc00, 0x8001, 0, 1, 0x3c00, 0x4000, 0x7c00u16];
        check(&info(Dtype::Float16), halves.map(|bits| bits.to_le_bytes().to_vec()).to_vec());
        let complex = |part: fn(f64) -> Vec<u8>| [0.0, 1e-30, -1.0, 2.0, f64::INFINITY].map(part).to_vec();
        check(&info(Dtype::Complex64), complex(|x| [x as f32, 0.0].into_iter().flat_map(f32::to_le_bytes).collect()));
        check(&info(Dtype::Complex128), complex(|x| [0.0, x].into_iter().flat_map(f64::to_le_bytes).collect()));
        let mut offset = info(Dtype::Float32);
        offset.value_range = Some((3000.0, 3010.0));
        check(&offset, (0..=100).map(|n| (3000.0 + n as f32 / 10.0).to_le_bytes().to_vec()).collect());
        let values = Values::of(&offset, false);
        assert_ne!(values.key(&3000.5f32.to_le_bytes()), values.key(&3000.6f32.to_le_bytes()));
    }
}
