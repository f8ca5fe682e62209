//! What a preview shows, and where: decided from shapes alone.

use std::ops::Range;

use super::plane::{Plane, Rectangle, Subject};
use super::png::{self, LAST_OF_SCALE, NO_VALUE, Palette, PixelFormat, PngLayout, of_label};
use crate::view::virtual_file::LayerRef;
use crate::volume::{ArrayInfo, Axis, Dtype, Scaling};

/// A level of fewer samples than this across is passed over for a finer one.
const MIN_ACROSS: u64 = 256;
/// The longest side of a slice in the preview, in pixels.
const MAX_SIDE: u64 = 1024;
/// The most pixels of a preview.
const MAX_PIXELS: u64 = 1 << 20;
/// Slices that are smaller than this are enlarged, by [`MAX_ZOOM`] at most.
const MIN_SIDE: u64 = 512;
const MAX_ZOOM: u64 = 8;
/// Samples of an axis are not passed over if fewer than this are shown then: a thin stack stays visible.
const MIN_SHOWN: u64 = 64;
/// The most pixels that a sample is drawn as long along one axis as along another.
const MAX_STRETCH: f64 = 8.0;
/// The pixels between two slices.
pub(crate) const GAP: u64 = 8;

/// What a preview shows, and where.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Plan {
    /// The level.
    pub lod: usize,
    /// The slices, from left to right.
    pub parts: Vec<Part>,
    /// The layout of the file.
    pub layout: PngLayout,
    /// Whether samples are labels.
    pub is_labels: bool,
    /// Whether positive and negative values have colours of their own.
    pub is_seismic: bool,
}

/// One slice of a preview.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Part {
    /// The slice.
    pub plane: Plane,
    /// The samples from row to row.
    pub down: Line,
    /// The samples from column to column.
    pub along: Line,
    /// The first column of the picture.
    pub left: u64,
}

/// How the samples along one axis are drawn: every `skip`-th one, as `repeat` pixels.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Line {
    count: u64,
    /// From one sample that is shown to the next.
    pub skip: u64,
    /// Pixels of a sample.
    pub repeat: u64,
}

impl Line {
    /// Draws `count` samples about `zoom` pixels long each.
    fn new(count: u64, zoom: f64) -> Self {
        if zoom >= 1.0 {
            Self { count, skip: 1, repeat: zoom.round() as u64 }
        } else {
            let skip = ((1.0 / zoom).round() as u64).min(count / MIN_SHOWN);
            Self { count, skip: skip.max(1), repeat: 1 }
        }
    }

    /// Returns the samples that are shown.
    pub(crate) fn shown(&self) -> u64 {
        self.count.div_ceil(self.skip)
    }

    /// Returns the pixels of all samples that are shown.
    pub(crate) fn pixels(&self) -> u64 {
        self.shown().saturating_mul(self.repeat)
    }
}

impl Part {
    /// Returns the samples that are shown.
    pub(crate) fn shown(&self) -> u64 {
        self.down.shown() * self.along.shown()
    }
}

impl Plan {
    /// Returns the plan of a layer's preview; `None` if its arrays cannot be shown as pictures.
    pub(crate) fn of(layer: LayerRef<'_>) -> Option<Self> {
        let is_fine = |lod: &usize| Subject::of(layer, *lod).is_some_and(|s| is_fine(layer.info(*lod), &s));
        let lod = (0..layer.levels().len()).rev().find(is_fine).unwrap_or(0);
        Self::of_level(layer.info(lod), lod, &Subject::of(layer, lod)?)
    }

    /// Returns the plan of one level.
    fn of_level(info: &ArrayInfo, lod: usize, subject: &Subject) -> Option<Self> {
        let shape = info.shape();
        if shape.contains(&0) {
            return None;
        }
        let planes: Vec<Plane> = match subject.axes {
            2 => vec![Plane::new(shape, subject, None)],
            axes => (0..axes).map(|axis| Plane::new(shape, subject, Some((axis, shape[axis] / 2)))).collect(),
        };
        // a slice that is one sample thin shows nothing where there are others
        let is_thin = |plane: &Plane| plane.width().min(plane.height()) < 2;
        let has_others = !planes.iter().all(is_thin);
        let planes: Vec<Plane> = planes.into_iter().filter(|plane| !(has_others && is_thin(plane))).collect();
        let stretches = stretches(info, subject);
        let zooms = (2..=MAX_ZOOM).rev().map(|zoom| (zoom as f64, MIN_SIDE));
        let shrinks = std::iter::successors(Some(1u64), |divisor| Some(divisor + (divisor / 8).max(1)));
        let reductions =
            shrinks.take_while(|divisor| *divisor < 1 << 40).map(|divisor| (1.0 / divisor as f64, MAX_SIDE));
        zooms.chain(reductions).find_map(|(zoom, most)| {
            let parts = arrange(&planes, &stretches.map(|stretch| stretch * zoom));
            let size = |line: &Line| line.pixels() <= most;
            let fits = parts.iter().all(|part| size(&part.down) && size(&part.along));
            let right = parts.last().map_or(0, |part| part.left.saturating_add(part.along.pixels()));
            let height = parts.iter().map(|part| part.down.pixels()).max()?;
            let fits = fits && right.saturating_mul(height) <= MAX_PIXELS;
            let format = if subject.components == 3 { PixelFormat::Rgb8 } else { PixelFormat::Indexed };
            let layout = PngLayout::new(right, height, format).filter(|_| fits)?;
            Some(Self { lod, parts, layout, is_labels: subject.is_labels, is_seismic: subject.vertical.is_some() })
        })
    }
}

/// Whether a level has enough samples to show something: along two axes at least, so that no slice is a strip.
fn is_fine(info: &ArrayInfo, subject: &Subject) -> bool {
    let shape = info.shape();
    shape[..subject.axes].iter().filter(|samples| **samples >= MIN_ACROSS).count() >= 2
}

/// Places slices side by side.
fn arrange(planes: &[Plane], zooms: &[f64; 3]) -> Vec<Part> {
    let mut left = 0;
    let place = |plane: &Plane| {
        let [down, along] = plane.axes();
        let (down, along) = (Line::new(plane.height(), zooms[down]), Line::new(plane.width(), zooms[along]));
        let part = Part { plane: *plane, down, along, left };
        left = left.saturating_add(along.pixels()).saturating_add(GAP);
        part
    };
    planes.iter().map(place).collect()
}

/// Returns how long a sample is drawn along each axis, compared with the axis along which it is shortest.
fn stretches(info: &ArrayInfo, subject: &Subject) -> [f64; 3] {
    let shape = info.shape();
    let axes = &shape[..subject.axes];
    let of = |stretch: &dyn Fn(usize) -> f64| {
        std::array::from_fn(|axis| if axis < axes.len() { stretch(axis).clamp(1.0, MAX_STRETCH) } else { 1.0 })
    };
    if subject.vertical.is_some() {
        // time has no scale in common with distance: short axes are drawn long enough to be seen
        let longest = axes.iter().max().copied().unwrap_or(1);
        return of(&|axis| longest.div_ceil(4).div_ceil(axes[axis].max(1)) as f64);
    }
    let step = |axis: usize| info.axes.get(axis).map_or(1.0, |axis: &Axis| axis.step.abs());
    let least = (0..axes.len()).map(step).fold(f64::INFINITY, f64::min);
    let units: Vec<_> = info.axes.iter().take(axes.len()).map(|axis| &axis.unit).collect();
    let is_known = least > 0.0 && least.is_finite() && units.windows(2).all(|pair| pair[0] == pair[1]);
    of(&|axis| if is_known && step(axis).is_finite() { step(axis) / least } else { 1.0 })
}

#[cfg(test)]
pub(super) mod tests {
    use super::super::super::file::tests::zeros;
    use super::*;
    use crate::volume::Dtype;

    const PLAIN: Subject = Subject { axes: 3, components: 1, is_labels: false, vertical: None };
    const SEISMIC: Subject = Subject { vertical: Some(2), ..PLAIN };

    fn info(shape: &[u64], steps: [f64; 3]) -> ArrayInfo {
        let mut info = zeros(shape, Dtype::UInt8).info().clone();
        for (axis, step) in info.axes.iter_mut().zip(steps) {
            axis.step = step;
        }
        info
    }

    /// Returns the plan of an array.
    pub(crate) fn plan(info: &ArrayInfo, subject: &Subject) -> Plan {
        Plan::of_level(info, 0, subject).unwrap()
    }

    /// Returns the sizes of the slices, and of the picture.
    fn sizes(shape: &[u64], steps: [f64; 3], subject: &Subject) -> (Vec<[u64; 2]>, [u64; 2]) {
        let plan = plan(&info(shape, steps), subject);
        let parts = plan.parts.iter().map(|part| [part.along.pixels(), part.down.pixels()]).collect();
        (parts, [plan.layout.width(), plan.layout.height()])
    }

    #[test]
    fn voxels_are_as_long_as_they_are() {
        let (parts, size) = sizes(&[100, 300, 400], [28.0, 11.24, 11.24], &PLAIN);
        assert_eq!(parts, [[400, 300], [400, 200], [300, 200]]);
        assert_eq!(size, [1100 + 2 * GAP, 300]);
        assert_eq!(sizes(&[20, 300, 400], [5000.0, 1.0, 1.0], &PLAIN).0[1], [400, 160]);
        assert_eq!(sizes(&[100, 300, 400], [f64::NAN, 0.0, 1.0], &PLAIN).0[1], [400, 100]);
    }

    #[test]
    fn seismic_slices_are_never_strips() {
        let (parts, _) = sizes(&[60, 400, 800], [1.0, 1.0, 4.0], &SEISMIC);
        assert_eq!(parts, [[400, 800], [240, 800], [400, 240]]);
        assert_eq!(sizes(&[400, 500, 500], [1.0, 1.0, 4.0], &SEISMIC).0, [[500, 500], [400, 500], [500, 400]]);
    }

    #[test]
    fn large_levels_are_thinned_out_and_small_ones_enlarged() {
        let (parts, size) = sizes(&[5000, 5000, 5000], [1.0; 3], &PLAIN);
        assert!(parts[0] == [556, 556] && size[0] * size[1] <= MAX_PIXELS, "{parts:?}");
        assert_eq!(sizes(&[1, 100_000, 100_000], [1.0; 3], &PLAIN).0, [[981, 981]]);
        assert_eq!(sizes(&[20, 30, 40], [1.0; 3], &PLAIN).0, [[320, 240], [320, 160], [240, 160]]);
        assert_eq!(sizes(&[1, 1, 1], [1.0; 3], &PLAIN).0, [[8, 8]; 3]);
        let (parts, _) = sizes(&[1, 1, 10_000_000_000], [1.0; 3], &PLAIN);
        assert!(parts.iter().all(|part| part[0] <= MAX_SIDE), "{parts:?}");
    }

    #[test]
    fn short_axes_keep_their_samples() {
        assert_eq!(sizes(&[20, 8000, 8000], [1.0; 3], &PLAIN).0[1], [572, 20]);
        assert_eq!(sizes(&[100_000, 20, 30], [1.0; 3], &PLAIN).0, [[30, 20], [30, 981], [20, 981]]);
    }

    #[test]
    fn thin_arrays_are_one_slice() {
        assert_eq!(sizes(&[300, 400, 1], [1.0; 3], &PLAIN).0, [[400, 300]]);
        assert_eq!(sizes(&[300, 500], [1.0; 3], &Subject { axes: 2, vertical: Some(1), ..PLAIN }).0, [[300, 500]]);
    }

    #[test]
    fn the_coarsest_level_with_enough_samples_is_shown() {
        let fine = |shape: &[u64]| is_fine(&info(shape, [1.0; 3]), &PLAIN);
        assert!(fine(&[256, 1, 256]) && !fine(&[255, 1000, 1]) && !fine(&[255, 255, 10_000]));
    }
}

/// The most samples that are requested at a time.
pub(crate) const MAX_SAMPLES: u64 = 1 << 17;

/// The next tile, by the number of its part and the numbers of its first samples along both axes, counting those that
/// are shown.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Tiles {
    part: usize,
    slow: u64,
    fast: u64,
}

/// A rectangle of samples of a part that are requested at a time, counting those that are shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Tile {
    /// The number of the part.
    pub part: usize,
    /// The rows.
    pub down: Range<u64>,
    /// The columns.
    pub along: Range<u64>,
}

impl Tiles {
    /// Returns the next tile: several lines of samples along the faster axis, or a part of one.
    pub(crate) fn next(&mut self, parts: &[Part]) -> Option<Tile> {
        let part = parts.get(self.part)?;
        let is_turned = part.plane.axes()[0] > part.plane.axes()[1];
        let (slow, fast) = if is_turned { (part.along, part.down) } else { (part.down, part.along) };
        let in_line = (MAX_SAMPLES / fast.skip).clamp(1, fast.shown() - self.fast);
        let lines = MAX_SAMPLES / fast.shown().saturating_mul(fast.skip) / slow.skip;
        let lines = if in_line == fast.shown() { lines.clamp(1, slow.shown() - self.slow) } else { 1 };
        let (of_slow, of_fast) = (self.slow..self.slow + lines, self.fast..self.fast + in_line);
        let (down, along) = if is_turned { (of_fast, of_slow) } else { (of_slow, of_fast) };
        let tile = Tile { part: self.part, down, along };
        self.fast += in_line;
        if self.fast == fast.shown() {
            (self.fast, self.slow) = (0, self.slow + lines);
        }
        if self.slow == slow.shown() {
            (self.slow, self.part) = (0, self.part + 1);
        }
        Some(tile)
    }
}

impl Tile {
    /// Returns the samples, with those between them that are not shown.
    pub(crate) fn rectangle(&self, part: &Part) -> Rectangle {
        let samples = |line: &Line, shown: &Range<u64>| shown.start * line.skip..(shown.end - 1) * line.skip + 1;
        part.plane.rectangle(&samples(&part.down, &self.down), &samples(&part.along, &self.along))
    }
}

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
            return (png::labels(), every_key.map(|key| key as u8).collect());
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
            ((-most, most), png::diverging())
        } else {
            ((low, high), png::greys())
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
mod preview_tiles_tests {
    use super::super::plane::Subject;
    use super::tests::plan;
    use super::*;
    use crate::view::file::tests::zeros;
    use crate::volume::Dtype;

    const PLAIN: Subject = Subject { axes: 3, components: 1, is_labels: false, vertical: None };

    #[test]
    fn every_sample_is_in_one_tile() {
        for (shape, subject) in [
            ([700, 900, 2000], PLAIN),
            ([700, 900, 2000], Subject { vertical: Some(2), ..PLAIN }),
            ([1, 2, 3_000_000], PLAIN),
            ([5, 1, 1], PLAIN),
        ] {
            let plan = plan(zeros(&shape, Dtype::UInt8).info(), &subject);
            let mut seen: Vec<Vec<u8>> = plan.parts.iter().map(|part| vec![0; part.shown() as usize]).collect();
            let mut tiles = Tiles::default();
            while let Some(tile) = tiles.next(&plan.parts) {
                let part = &plan.parts[tile.part];
                for (down, along) in tile.down.clone().flat_map(|down| tile.along.clone().map(move |x| (down, x))) {
                    seen[tile.part][(down * part.along.shown() + along) as usize] += 1;
                }
            }
            assert!(seen.iter().flatten().all(|count| *count == 1), "{shape:?}");
        }
    }
}

#[cfg(test)]
mod preview_values_tests {
    use super::*;
    use crate::view::file::tests::zeros;

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
        assert_eq!(palette, png::greys());
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
        assert_eq!(palette, png::diverging());
        let of = |value: i32| numbers[(100_000 + 1000 + value) as usize];
        assert_eq!((numbers[0], of(0), of(-1000), numbers[101_501], numbers[101_502]), (126, 126, 0, 252, NO_VALUE));
        assert!(of(500).abs_diff(126 + 63) <= 2, "{}", of(500));
        let positive = floats((1..100).map(|n| n as f32));
        assert_eq!(super::preview_values_tests::numbers(&info, &positive, true).0, png::greys());
    }

    #[test]
    fn codes_count_as_their_values() {
        let mut info = info(Dtype::Int8);
        info.scaling = Some(Scaling { no_value: Some(5.0), ..Scaling::of_codes(-0.5, 0.0) });
        let samples: Vec<u8> = (-100..=100i8).flat_map(i8::to_le_bytes).collect();
        let (palette, numbers) = numbers(&info, &samples, true);
        assert_eq!(palette, png::diverging());
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
