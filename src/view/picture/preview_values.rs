//! The samples that a preview shows, in little memory, and the colours that they get once all of them are known.

use super::colours::{self, LAST_OF_SCALE, NO_VALUE, Palette, of_label};
use crate::volume::{ArrayInfo, Dtype, Scaling};

/// The share of the samples shown that a scale of greys leaves out at each end, and that the diverging scale leaves out
/// at both together.
const CLIPPED: f64 = 0.01;
/// Values are on both sides of 0 if the smaller side reaches this far, compared with the other one.
const BOTH_SIDES: f64 = 0.02;

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
    /// Returns the values of an array.
    pub(crate) fn of(info: &ArrayInfo, is_labels: bool) -> Self {
        let even = |least: f64, greatest: f64| Key::Even { least, step: (greatest - least) / f64::from(u16::MAX - 1) };
        let key = match (info.dtype, info.value_range) {
            _ if is_labels => Key::Label,
            (Dtype::Int8 | Dtype::UInt8, _) => even(-32767.0, 32767.0),
            (Dtype::Int16, _) => even(-32767.0, 32767.0),
            (Dtype::UInt16, _) => even(0.0, 65534.0),
            (Dtype::Float32 | Dtype::Float64, Some((low, high)))
                if low.is_finite() && high.is_finite() && low < high && (low > 0.0 || high < 0.0) =>
            {
                even(low, high)
            }
            _ => Key::FineNearZero,
        };
        let scaling = info.scaling.unwrap_or(Scaling::of_codes(1.0, 0.0));
        let no_value = scaling.no_value.or(info.no_value);
        Self { key, no_value, scaling, dtype: info.dtype, range: info.value_range }
    }

    /// Returns the key of a stored sample.
    pub(crate) fn key(&self, sample: &[u8]) -> u16 {
        let mut wide = [0; 8];
        wide[..sample.len()].copy_from_slice(sample);
        let bits = u64::from_le_bytes(wide);
        let number = match self.dtype {
            _ if self.key == Key::Label => return of_label(bits).into(),
            Dtype::Int8 => f64::from(bits as i8),
            Dtype::Int16 => f64::from(bits as i16),
            Dtype::Int32 => f64::from(bits as i32),
            Dtype::Int64 => bits as i64 as f64,
            Dtype::UInt8 | Dtype::UInt16 | Dtype::UInt32 | Dtype::UInt64 => bits as f64,
            Dtype::Float32 => f32::from_bits(bits as u32).into(),
            Dtype::Float64 => f64::from_bits(bits),
        };
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
    pub(crate) fn colours(&self, keys: &[u16], is_seismic: bool) -> (Palette, Vec<u8>) {
        let every_key = 0..=u16::MAX;
        if self.key == Key::Label {
            return (colours::labels(), every_key.map(|key| key as u8).collect());
        }
        let mut counts = vec![0u32; usize::from(u16::MAX) + 1];
        keys.iter().for_each(|key| counts[usize::from(*key)] += 1);
        let is_value = |(key, count): &(u16, u32)| *key > 0 && *count > 0;
        let mut values: Vec<(f64, u32)> =
            every_key.clone().zip(counts).filter(is_value).map(|(key, count)| (self.value(key), count)).collect();
        // infinite values have no place on a scale, and surveys have zeros where nothing was recorded
        values.retain(|(value, _)| value.is_finite() && !(is_seismic && *value == 0.0));
        values.sort_by(|(one, _), (other, _)| one.total_cmp(other));
        let (low, high) = clipped(&values, CLIPPED / 2.0, 1.0 - CLIPPED / 2.0);
        let has_both_signs = low < 0.0 && high > 0.0 && (-low).min(high) > BOTH_SIDES * (-low).max(high);
        let ((low, high), palette) = if is_seismic && has_both_signs {
            let most = magnitude(&values);
            ((-most, most), colours::diverging())
        } else {
            ((low, high), colours::greys())
        };
        // what is shown is all alike: its place in the whole layer says more
        let (low, high) = if low == high { self.range.unwrap_or((low, high)) } else { (low, high) };
        let factor = if high > low { f64::from(LAST_OF_SCALE) / (high - low) } else { 0.0 };
        let number = |key: u16| match key {
            0 => NO_VALUE,
            _ => ((self.value(key) - low) * factor).round().clamp(0.0, LAST_OF_SCALE.into()) as u8,
        };
        (palette, every_key.map(number).collect())
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

/// Returns the magnitude that all values have at most but a share.
fn magnitude(values: &[(f64, u32)]) -> f64 {
    let mut magnitudes: Vec<(f64, u32)> = values.iter().map(|(value, count)| (value.abs(), *count)).collect();
    magnitudes.sort_by(|(one, _), (other, _)| one.total_cmp(other));
    clipped(&magnitudes, 0.0, 1.0 - CLIPPED).1
}

#[cfg(test)]
mod tests {
    use super::super::super::array_file::tests::zeros;
    use super::*;

    fn info(dtype: Dtype) -> ArrayInfo {
        zeros(&[4, 5, 6], dtype).info().clone()
    }

    /// Returns the numbers of the colours of samples.
    fn numbers(info: &ArrayInfo, samples: &[u8], is_seismic: bool) -> (Palette, Vec<u8>) {
        let values = Values::of(info, false);
        let keys: Vec<u16> = samples.chunks(info.dtype.size()).map(|sample| values.key(sample)).collect();
        let (palette, numbers) = values.colours(&keys, is_seismic);
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
        assert_eq!(palette, colours::greys());
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
        assert_eq!(palette, colours::diverging());
        let of = |value: i32| numbers[(100_000 + 1000 + value) as usize];
        assert_eq!((numbers[0], of(0), of(-1000), numbers[101_501], numbers[101_502]), (126, 126, 0, 252, NO_VALUE));
        assert!(of(500).abs_diff(126 + 63) <= 2, "{}", of(500));
        let positive = floats((1..100).map(|n| n as f32));
        assert_eq!(super::tests::numbers(&info, &positive, true).0, colours::greys());
    }

    #[test]
    fn codes_count_as_their_values() {
        let mut info = info(Dtype::Int8);
        info.scaling = Some(Scaling { no_value: Some(5.0), ..Scaling::of_codes(-0.5, 0.0) });
        let samples: Vec<u8> = (-100..=100i8).flat_map(i8::to_le_bytes).collect();
        let (palette, numbers) = numbers(&info, &samples, true);
        assert_eq!(palette, colours::diverging());
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
        let mut offset = info(Dtype::Float32);
        offset.value_range = Some((3000.0, 3010.0));
        check(&offset, (0..=100).map(|n| (3000.0 + n as f32 / 10.0).to_le_bytes().to_vec()).collect());
        let values = Values::of(&offset, false);
        assert_ne!(values.key(&3000.5f32.to_le_bytes()), values.key(&3000.6f32.to_le_bytes()));
    }
}
