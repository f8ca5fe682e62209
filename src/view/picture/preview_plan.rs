//! What a preview shows, and where: decided from shapes alone.

use super::plane::Plane;
use super::png_layout::{PixelFormat, PngLayout};
use super::subject::Subject;
use crate::view::virtual_file::LayerRef;
use crate::volume::{ArrayInfo, Axis};

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
    use super::super::super::array_file::tests::zeros;
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
