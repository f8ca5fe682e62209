//! `preview.png`: the middle slice across each axis of a layer, side by side, small enough to be computed as a whole.
//!
//! What it shows, and where, is decided from shapes alone.

use std::ops::Range;
use std::sync::Arc;

use super::palettes::{BACKGROUND, Palette, Values};
use super::plane::{Plane, Rectangle, Subject, why_no_pictures};
use super::png::{PixelFormat, PngLayout, combined};
use crate::format::{Array, FormatError};
use crate::memory::{Claim, LruByWeight, OutOfMemory, claim, try_with_capacity, try_zeroed};
use crate::sync::{LazyPerProcess, Mutex};
use crate::view::entry::Entry;
use crate::view::segments::{ComputedFile, Content, Convert, NextSegment, Samples, Segment};
use crate::view::{LayerRef, View, hash_of};
use crate::volume::{ArrayId, ArrayInfo, Axis};

const NAME: &str = "preview.png";

/// A level of fewer samples than this across is passed over for a finer one.
const MIN_ACROSS: u64 = 256;
/// The longest side of a slice in the preview, in pixels.
const MAX_SIDE: u64 = 1024;
const MAX_PIXELS: u64 = 1 << 20;
/// Slices that are smaller than this are enlarged, by [`MAX_ZOOM`] at most.
const MIN_SIDE: u64 = 512;
const MAX_ZOOM: u64 = 8;
/// Samples of an axis are not passed over if fewer than this are shown then: a thin stack stays visible.
const MIN_SHOWN: u64 = 64;
/// The most pixels that a sample is drawn as long along one axis as along another.
const MAX_STRETCH: f64 = 8.0;
/// The pixels between two slices.
const GAP: u64 = 8;

/// The most samples that are read at a time.
const MAX_SAMPLES: u64 = 1 << 17;
const MAX_KEPT: usize = 4 << 20;

/// The pictures that were read last.
static PICTURES: LazyPerProcess<Mutex<LruByWeight<ArrayId, Arc<Vec<u8>>>>> =
    LazyPerProcess::new(|| Mutex::new(LruByWeight::new(MAX_KEPT)));

pub(crate) const PREVIEW: View = View { hidden, ..View::new(Some("preview"), entries) };

fn entries(layer: LayerRef<'_>) -> Vec<Entry> {
    let preview = Entry::file(NAME, |layer| {
        let plan = Plan::of(layer).ok_or_else(|| FormatError::Unsupported("the layer has no preview".into()))?;
        Ok(Content::Computed(Arc::new(PreviewFile::new(Arc::clone(&layer.levels()[plan.lod]), plan))))
    });
    Plan::of(layer).map(|_| preview).into_iter().collect()
}

fn hidden(layer: LayerRef<'_>) -> Option<(String, String)> {
    let is_hidden = Plan::of(layer).is_none();
    is_hidden.then(|| (NAME.to_owned(), why_no_pictures(layer, "it is too long and thin").to_owned()))
}

/// What a preview shows, and where.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Plan {
    lod: usize,
    /// The slices, from left to right.
    parts: Vec<Part>,
    layout: PngLayout,
    is_labels: bool,
    /// Whether positive and negative values have colours of their own.
    is_seismic: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Part {
    plane: Plane,
    down: Line,
    along: Line,
    /// The first column of the picture.
    left: u64,
    /// The number of the first sample that is shown, counting those of all slices.
    first: u64,
}

/// A rectangle of samples of a part that are read together, counting those that are shown.
struct Tile {
    part: Part,
    down: Range<u64>,
    along: Range<u64>,
}

/// How the samples along one axis are drawn: every `skip`-th one, as `repeat` pixels.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Line {
    count: u64,
    /// From one sample that is shown to the next.
    skip: u64,
    /// Pixels of a sample.
    repeat: u64,
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
    fn shown(&self) -> u64 {
        self.count.div_ceil(self.skip)
    }

    /// Returns the pixels of all samples that are shown.
    fn pixels(&self) -> u64 {
        self.shown().saturating_mul(self.repeat)
    }
}

impl Part {
    /// Returns the samples that are shown.
    fn shown(&self) -> u64 {
        self.down.shown().saturating_mul(self.along.shown())
    }

    /// Returns a tile by its number: several lines of samples along the faster axis, or a part of one.
    fn tile(self, number: u64) -> Option<Tile> {
        let is_turned = self.plane.down > self.plane.along;
        let (slow, fast) = if is_turned { (self.along, self.down) } else { (self.down, self.along) };
        let in_line = (MAX_SAMPLES / fast.skip).clamp(1, fast.shown());
        let lines = MAX_SAMPLES / fast.shown().saturating_mul(fast.skip) / slow.skip;
        let range = |number: u64, length: u64, of: Line| number * length..((number + 1) * length).min(of.shown());
        let in_row = fast.shown().div_ceil(in_line);
        let of_slow = range(number / in_row, lines.clamp(1, slow.shown()), slow);
        let of_fast = range(number % in_row, in_line, fast);
        let is_there = !of_slow.is_empty();
        let (down, along) = if is_turned { (of_fast, of_slow) } else { (of_slow, of_fast) };
        is_there.then_some(Tile { part: self, down, along })
    }
}

impl Tile {
    /// Returns the samples, with those between them that are not shown.
    fn rectangle(&self) -> Rectangle {
        let samples = |line: &Line, shown: &Range<u64>| shown.start * line.skip..(shown.end - 1) * line.skip + 1;
        self.part.plane.rectangle(&samples(&self.part.down, &self.down), &samples(&self.part.along, &self.along))
    }
}

impl Plan {
    fn tiles(&self) -> impl Iterator<Item = Tile> + Send + use<> {
        self.parts.clone().into_iter().flat_map(|part| (0..).map_while(move |number| part.tile(number)))
    }

    /// Returns the samples that are shown of all parts.
    fn shown(&self) -> u64 {
        self.parts.last().map_or(0, |part| part.first + part.shown())
    }

    /// Returns the plan of a layer's preview; `None` if its arrays cannot be shown as pictures.
    fn of(layer: LayerRef<'_>) -> Option<Self> {
        let is_fine = |lod: &usize| Subject::of(layer, *lod).is_some_and(|s| is_fine(layer.info(*lod), &s));
        let lod = (0..layer.levels().len()).rev().find(is_fine).unwrap_or(0);
        Self::of_level(layer.info(lod), lod, &Subject::of(layer, lod)?)
    }

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
    let (mut left, mut first) = (0, 0);
    let place = |plane: &Plane| {
        let down = Line::new(plane.height(), zooms[plane.down]);
        let along = Line::new(plane.width(), zooms[plane.along]);
        let part = Part { plane: *plane, down, along, left, first };
        first = part.shown().saturating_add(first);
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

struct PreviewFile {
    array: Arc<dyn Array>,
    plan: Plan,
    values: Values,
}

impl PreviewFile {
    fn new(array: Arc<dyn Array>, plan: Plan) -> Self {
        let values = Values::of(array.info(), plan.is_labels);
        Self { array, plan, values }
    }

    fn is_rgb(&self) -> bool {
        self.plan.layout.format.bytes() == 3
    }

    /// Returns the bytes of memory of each sample that is shown.
    fn shown_bytes(&self) -> usize {
        if self.is_rgb() { 3 } else { size_of::<u16>() }
    }

    /// Returns memory for the samples that are shown of all parts, one part after the other, row by row: red, green and
    /// blue of each, or the key of its value.
    fn new_shown(&self) -> Result<(Vec<u8>, Claim), OutOfMemory> {
        let bytes = self.plan.shown() as usize * self.shown_bytes();
        let claim = claim(bytes + self.len() as usize)?;
        Ok((try_zeroed(bytes)?, claim))
    }

    /// Takes over the samples of a tile that are shown.
    fn take(&self, tile: &Tile, samples: &[u8], shown: &mut [u8]) {
        let (Tile { part, down, along }, to_bytes) = (tile, self.shown_bytes());
        let Rectangle { row_step, column_step, .. } = tile.rectangle();
        let size = self.array.info().dtype.size();
        let pixel = size * part.plane.components;
        let (row_step, column_step) =
            (row_step * pixel * part.down.skip as usize, column_step * pixel * part.along.skip as usize);
        for (number, row) in down.clone().enumerate() {
            let first = part.first + row * part.along.shown();
            let to = (first + along.start) as usize * to_bytes..(first + along.end) as usize * to_bytes;
            let to = shown[to].chunks_exact_mut(to_bytes);
            let shown = to.zip(samples[number * row_step..].chunks(column_step).map(|chunk| &chunk[..pixel]));
            if self.is_rgb() {
                // of 16 bits the upper 8
                shown.for_each(|(to, from)| (0..3).for_each(|c| to[c] = from[c * size + size - 1]));
            } else {
                shown.for_each(|(to, from)| to.copy_from_slice(&self.values.key(from).to_ne_bytes()));
            }
        }
    }

    /// Returns the bytes of the file once all samples are known.
    fn picture(&self, shown: &[u8]) -> Result<Vec<u8>, OutOfMemory> {
        if self.is_rgb() {
            return self.draw(None, |at, to| to.copy_from_slice(&shown[3 * at..3 * at + 3]));
        }
        let (keys, _) = shown.as_chunks();
        let key = |key: &[u8; 2]| u16::from_ne_bytes(*key);
        let (palette, numbers) = self.values.colours(keys.iter().map(key), self.plan.is_seismic)?;
        self.draw(Some(&palette), |at, to| to[0] = numbers[usize::from(key(&keys[at]))])
    }

    /// Draws all parts; `colour` writes the pixel of a sample that is shown, by its number.
    fn draw(&self, palette: Option<&Palette>, colour: impl Fn(usize, &mut [u8])) -> Result<Vec<u8>, OutOfMemory> {
        let layout = self.plan.layout;
        let mut bytes = try_with_capacity(layout.len() as usize)?;
        bytes.extend_from_slice(&layout.prefix(palette));
        let mut sum = 1;
        for block in (0..layout.blocks()).map(|number| layout.block(number)) {
            let start = bytes.len();
            bytes.resize(block.chunk().end as usize, BACKGROUND);
            let of_block = block.write(&mut bytes[start..], |data| {
                // a preview is so narrow that each block has whole rows
                for (y, row) in block.rows.clone().zip(data.chunks_exact_mut(layout.row_bytes() as usize)) {
                    row[0] = 0;
                    self.draw_row(y, &mut row[1..], &colour);
                }
            });
            sum = combined(sum, of_block, block.length);
        }
        bytes.extend_from_slice(&PngLayout::suffix(sum));
        Ok(bytes)
    }

    fn draw_row(&self, y: u64, row: &mut [u8], colour: &impl Fn(usize, &mut [u8])) {
        let pixel = self.plan.layout.format.bytes() as usize;
        for part in self.plan.parts.iter().filter(|part| y < part.down.pixels()) {
            let first = part.first + y / part.down.repeat * part.along.shown();
            let to = row[part.left as usize * pixel..].chunks_exact_mut(pixel);
            for (x, to) in (0..part.along.pixels()).zip(to) {
                colour((first + x / part.along.repeat) as usize, to);
            }
        }
    }
}

impl ComputedFile for PreviewFile {
    fn len(&self) -> u64 {
        self.plan.layout.len()
    }

    fn array(&self) -> &Arc<dyn Array> {
        &self.array
    }

    fn fingerprint(&self) -> u64 {
        hash_of(&self.plan)
    }

    fn is_long(&self, _: &Range<u64>) -> bool {
        PICTURES.lock().get(&self.array.info().id).is_none()
    }

    fn segments(self: Arc<Self>) -> NextSegment {
        let (id, mut tiles, shown) = (self.array.info().id, self.plan.tiles(), Arc::new(Mutex::new(None)));
        Box::new(move |bytes| {
            // another reader may have been faster
            if let Some(picture) = PICTURES.lock().get(&id) {
                return Segment::Whole(picture);
            }
            if let Some(tile) = tiles.next() {
                let samples = Samples::region(&self.array, tile.rectangle().region);
                let (file, shown) = (Arc::clone(&self), Arc::clone(&shown));
                let look: Convert = Box::new(move |samples, _| {
                    let mut shown = shown.lock();
                    if shown.is_none() {
                        *shown = Some(file.new_shown()?);
                    }
                    shown.iter_mut().for_each(|(shown, _)| file.take(&tile, samples, shown));
                    Ok(())
                });
                return Segment::Samples(bytes.start..bytes.start, samples, Some(look));
            }
            let Some((shown, _claim)) = shown.lock().take() else {
                return Segment::Failed(FormatError::Internal("a preview shows no samples".into()));
            };
            match self.picture(&shown) {
                Ok(picture) => {
                    let picture = Arc::new(picture);
                    let evicted = PICTURES.lock().insert(id, Arc::clone(&picture), picture.len());
                    drop(evicted); // not under the lock
                    Segment::Whole(picture)
                }
                Err(error) => Segment::Failed(error.into()),
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::palettes::{self, LAST_OF_SCALE};
    use super::*;
    use crate::test_support::png::decode;
    use crate::view::tests::{self, Zeros, zeros};
    use crate::volume::{Dtype, Region};

    const PLAIN: Subject = Subject { axes: 3, components: 1, is_labels: false, vertical: None };
    const SEISMIC: Subject = Subject { vertical: Some(2), ..PLAIN };

    fn info(shape: &[u64], steps: [f64; 3]) -> ArrayInfo {
        let mut info = zeros(shape, Dtype::UInt8).info().clone();
        for (axis, step) in info.axes.iter_mut().zip(steps) {
            axis.step = step;
        }
        info
    }

    fn plan(info: &ArrayInfo, subject: &Subject) -> Plan {
        Plan::of_level(info, 0, subject).unwrap()
    }

    /// Returns the sizes of the slices, and of the picture.
    fn sizes(shape: &[u64], steps: [f64; 3], subject: &Subject) -> (Vec<[u64; 2]>, [u64; 2]) {
        let plan = plan(&info(shape, steps), subject);
        let parts = plan.parts.iter().map(|part| [part.along.pixels(), part.down.pixels()]).collect();
        (parts, [plan.layout.width, plan.layout.height])
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

    #[test]
    fn every_sample_is_in_one_tile() {
        for (shape, subject) in [
            ([700, 900, 2000], PLAIN),
            ([700, 900, 2000], Subject { vertical: Some(2), ..PLAIN }),
            ([1, 2, 3_000_000], PLAIN),
            ([5, 1, 1], PLAIN),
        ] {
            let plan = plan(zeros(&shape, Dtype::UInt8).info(), &subject);
            let mut seen = vec![0; plan.shown() as usize];
            for tile in plan.tiles() {
                let Rectangle { region, .. } = tile.rectangle();
                assert!(Region::whole(shape.into()).contains(&region));
                assert!(region.samples() <= MAX_SAMPLES, "the request is bounded");
                for (down, along) in tile.down.clone().flat_map(|down| tile.along.clone().map(move |x| (down, x))) {
                    seen[(tile.part.first + down * tile.part.along.shown() + along) as usize] += 1;
                }
            }
            assert!(seen.iter().all(|count| *count == 1), "{shape:?}");
        }
    }

    /// Reads bytes of a preview of which each sample is what `sample` says; returns how many samples were requested.
    fn read(file: &Arc<PreviewFile>, bytes: Range<u64>, sample: &dyn Fn(&[u64]) -> Vec<u8>) -> (Vec<u8>, u64) {
        let mut requested = 0;
        let read = tests::read(&Content::Computed(file.clone()), bytes, &mut |_, at| {
            requested += 1;
            sample(at)
        });
        (read.unwrap(), requested)
    }

    fn preview(shape: &[u64], dtype: Dtype, subject: &Subject) -> Arc<PreviewFile> {
        let mut info = zeros(shape, dtype).info().clone();
        info.axes.iter_mut().for_each(|axis| axis.step = 1.0);
        let plan = plan(&info, subject);
        Arc::new(PreviewFile::new(Arc::new(Zeros(info)), plan))
    }

    #[test]
    fn slices_stand_side_by_side_and_are_computed_once() {
        let file = preview(&[100, 200, 400], Dtype::UInt8, &PLAIN);
        let sample = |at: &[u64]| vec![((at[0] * 7 + at[1] * 13 + at[2] * 29) % 250) as u8];
        let (whole, requested) = read(&file, 0..file.len(), &sample);
        assert_eq!(requested, 200 * 400 + 100 * 400 + 100 * 200);
        let picture = decode(&whole);
        assert_eq!((picture.width, picture.height), (400 + 400 + 200 + 16, 200));
        assert_eq!(picture.palette, palettes::greys().as_flattened());
        let pixel = |x: usize, y: usize| picture.pixels[y * picture.width + x];
        assert_eq!((pixel(404, 5), pixel(500, 150)), (BACKGROUND, BACKGROUND));
        // the middle slice across the first axis: its rows are the second axis
        let grey = |at: [u64; 3]| f64::from(sample(&at)[0]) / 249.0 * f64::from(LAST_OF_SCALE);
        for (x, y, at) in [(10, 190, [50, 190, 10]), (408 + 300, 80, [80, 100, 300]), (816 + 150, 20, [20, 150, 200])] {
            let close = (f64::from(pixel(x, y)) - grey(at)).abs() < 4.0;
            assert!(close, "{x} {y}: {} for {}", pixel(x, y), grey(at));
        }
        let (part, requested) = read(&file, 1000..5000, &sample);
        assert_eq!((&*part, requested), (&whole[1000..5000], 0));
        // another array, as after the dataset was refreshed
        let other = preview(&[100, 200, 400], Dtype::UInt8, &PLAIN);
        assert!(read(&other, 0..10, &sample).1 > 0 && other.fingerprint() == file.fingerprint());
        assert_ne!(preview(&[100, 200, 401], Dtype::UInt8, &PLAIN).fingerprint(), file.fingerprint());
    }

    #[test]
    fn large_slices_are_read_tile_by_tile() {
        for (shape, vertical) in [([3, 700, 500], None), ([700, 3, 500], Some(2)), ([1, 2, 300_000], None)] {
            let file = preview(&shape, Dtype::UInt16, &Subject { vertical, ..PLAIN });
            let whole = read(&file, 0..file.len(), &|at| ((at[0] + at[1] + at[2]) as u16).to_le_bytes().to_vec()).0;
            let picture = decode(&whole);
            assert!(picture.pixels.len() < 1 << 20 && whole.len() as u64 == file.len());
            assert!(picture.pixels.iter().any(|number| *number != BACKGROUND));
        }
    }

    #[test]
    fn complex_samples_are_shown_by_their_magnitude() {
        let part = |at: &[u64]| (at[1] + at[2]) as f32;
        let pictures = [Dtype::Float32, Dtype::Complex64, Dtype::Complex128].map(|dtype| {
            let file = preview(&[3, 300, 500], dtype, &PLAIN);
            let sample = |at: &[u64]| match dtype {
                Dtype::Float32 => part(at).to_le_bytes().to_vec(),
                Dtype::Complex64 => [0.6 * part(at), -0.8 * part(at)].map(f32::to_le_bytes).concat(),
                _ => [0.0, f64::from(part(at))].map(f64::to_le_bytes).concat(),
            };
            decode(&read(&file, 0..file.len(), &sample).0).pixels
        });
        assert!(pictures[2] == pictures[0]);
        assert!(pictures[1].iter().zip(&pictures[0]).all(|(one, other)| one.abs_diff(*other) < 3));
    }

    #[test]
    fn colours_are_shown_as_colours() {
        let rgb = Subject { components: 3, ..PLAIN };
        for dtype in [Dtype::UInt8, Dtype::UInt16] {
            let file = preview(&[4, 300, 500, 3], dtype, &rgb);
            let sample = |at: &[u64]| {
                let upper = [at[1] as u8, at[2] as u8, 7][at[3] as usize];
                vec![upper; dtype.size()]
            };
            let picture = decode(&read(&file, 0..file.len(), &sample).0);
            let pixel = |x: usize, y: usize| &picture.pixels[3 * (y * picture.width + x)..][..3];
            assert_eq!((picture.codes, pixel(450, 290)), ([8, 2], &[290u16 as u8, 450u16 as u8, 7][..]));
            assert_eq!(pixel(503, 0), [255; 3]);
        }
        let labels = preview(&[300, 300, 300], Dtype::UInt32, &Subject { is_labels: true, ..PLAIN });
        let sample = |at: &[u64]| (u32::from(at[2] > 100) * 77_000).to_le_bytes().to_vec();
        let picture = decode(&read(&labels, 0..labels.len(), &sample).0);
        assert_eq!(picture.palette, palettes::labels().as_flattened());
        assert_eq!((picture.pixels[100], picture.pixels[101]), (0, palettes::of_label(77_000)));
    }
}
