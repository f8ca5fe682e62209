//! `preview.png`: the middle slice across each axis of a layer, side by side, small enough to be computed as a whole.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::ops::Range;
use std::sync::Arc;

use libdeflater::Adler32;

use super::plane::{Recent, Rectangle, why_no_pictures};
use super::png::{BACKGROUND, Palette, PngLayout};
use super::preview_values::{Part, Plan, Tile, Tiles, Values};
use crate::format::{Array, FormatError};
use crate::memory::{Buffer, BufferPool, Claim, OutOfMemory, claim, try_with_capacity};
use crate::view::file::{ComputedFile, Content, ReadSteps, SampleRequest, Samples, Step};
use crate::view::virtual_file::{Entry, LayerRef, View};
use crate::volume::ArrayId;

const NAME: &str = "preview.png";

/// The view of a layer.
pub(crate) struct Preview;

impl View for Preview {
    fn name(&self) -> Option<&'static str> {
        Some("preview")
    }

    fn nodes(&self, layer: LayerRef<'_>) -> u64 {
        Plan::of(layer).is_some().into()
    }

    fn hidden(&self, layer: LayerRef<'_>) -> Option<(String, String)> {
        let is_hidden = Plan::of(layer).is_none();
        is_hidden.then(|| (NAME.to_owned(), why_no_pictures(layer, "it is too long and thin").to_owned()))
    }

    fn list(&self, layer: LayerRef<'_>, folder: Option<u64>, add: &mut dyn FnMut(Entry)) {
        if let Some(entry) = self.find(layer, folder, NAME) {
            add(entry);
        }
    }

    fn find(&self, layer: LayerRef<'_>, folder: Option<u64>, name: &str) -> Option<Entry> {
        let exists = folder.is_none() && name == NAME && self.nodes(layer) > 0;
        exists.then(|| Entry { node: 0, name: NAME.to_owned(), folder: false })
    }

    fn may_block(&self) -> bool {
        false
    }

    fn content(&self, layer: LayerRef<'_>, _: u64) -> Result<Content, FormatError> {
        let plan = Plan::of(layer).ok_or_else(|| FormatError::Unsupported("the layer has no preview".into()))?;
        let array = Arc::clone(&layer.levels()[plan.lod]);
        Ok(Content::Computed(Arc::new(PreviewFile::new(array, plan))))
    }
}

/// The bytes of all pictures that are kept.
const MAX_KEPT: usize = 4 << 20;
/// The pictures that were read last.
static PICTURES: Recent<ArrayId, Arc<Vec<u8>>> = Recent::new(MAX_KEPT);

/// The file of a preview.
pub(crate) struct PreviewFile {
    array: Arc<dyn Array>,
    plan: Plan,
    values: Values,
}

impl PreviewFile {
    /// Creates the preview of an array.
    pub(crate) fn new(array: Arc<dyn Array>, plan: Plan) -> Self {
        let values = Values::of(array.info(), plan.is_labels);
        Self { array, plan, values }
    }

    /// Returns the bytes of memory of each sample that is shown.
    fn shown_bytes(&self) -> usize {
        if self.is_rgb() { 3 } else { size_of::<u16>() }
    }

    fn is_rgb(&self) -> bool {
        self.plan.layout.format().bytes() == 3
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
        let mut hasher = DefaultHasher::new();
        self.plan.hash(&mut hasher);
        hasher.finish()
    }

    fn is_long(&self, _: &Range<u64>) -> bool {
        PICTURES.get(&self.array.info().id).is_none()
    }

    fn read(self: Arc<Self>, bytes: Range<u64>) -> Box<dyn ReadSteps> {
        Box::new(PreviewRead { file: self, bytes, shown: None, tiles: Tiles::default(), pending: None })
    }
}

/// A read of a preview: the samples of all parts, tile by tile.
struct PreviewRead {
    file: Arc<PreviewFile>,
    bytes: Range<u64>,
    shown: Option<Shown>,
    tiles: Tiles,
    pending: Option<Tile>,
}

/// The samples that are shown of all parts, one part after the other, row by row.
struct Shown {
    /// The keys of values; empty if samples are colours.
    keys: Vec<u16>,
    /// Red, green and blue of each.
    rgb: Vec<u8>,
    _claim: Claim,
}

impl PreviewRead {
    fn new_shown(&self) -> Result<Shown, OutOfMemory> {
        let file = &self.file;
        let samples = file.plan.parts.iter().map(Part::shown).sum::<u64>() as usize;
        let claim = claim(samples * file.shown_bytes() + file.len() as usize)?;
        let (mut keys, mut rgb) = (Vec::new(), Vec::new());
        if file.is_rgb() {
            rgb = try_with_capacity(3 * samples)?;
            rgb.resize(3 * samples, 0);
        } else {
            keys = try_with_capacity(samples)?;
            keys.resize(samples, 0);
        }
        Ok(Shown { keys, rgb, _claim: claim })
    }

    /// Takes over the samples of a tile that are shown.
    fn take(&mut self, tile: &Tile, samples: &[u8]) {
        let (file, Some(shown)) = (&self.file, &mut self.shown) else { return };
        let part = &file.plan.parts[tile.part];
        let before = file.plan.parts[..tile.part].iter().map(Part::shown).sum::<u64>();
        let Rectangle { row_step, column_step, .. } = tile.rectangle(part);
        let size = file.array.info().dtype.size();
        let pixel = size * part.plane.components();
        let (row_step, column_step) =
            (row_step * pixel * part.down.skip as usize, column_step * pixel * part.along.skip as usize);
        for (number, row) in tile.down.clone().enumerate() {
            let first = (before + row * part.along.shown() + tile.along.start) as usize;
            let count = (tile.along.end - tile.along.start) as usize;
            let pixels = samples[number * row_step..].chunks(column_step).map(|chunk| &chunk[..pixel]);
            if file.is_rgb() {
                let to = shown.rgb[3 * first..3 * (first + count)].chunks_exact_mut(3);
                // of 16 bits the upper 8
                to.zip(pixels).for_each(|(to, from)| (0..3).for_each(|c| to[c] = from[c * size + size - 1]));
            } else {
                let to = &mut shown.keys[first..first + count];
                to.iter_mut().zip(pixels).for_each(|(to, from)| *to = file.values.key(from));
            }
        }
    }

    /// Returns the bytes of the file once all samples are known.
    fn picture(&self, shown: &Shown) -> Result<Vec<u8>, OutOfMemory> {
        let (file, layout) = (&self.file, self.file.plan.layout);
        if file.is_rgb() {
            let colour = |at: usize, to: &mut [u8]| to.copy_from_slice(&shown.rgb[3 * at..3 * at + 3]);
            return file.draw(None, &layout, colour);
        }
        let (palette, numbers) = file.values.colours(&shown.keys, file.plan.is_seismic);
        let number = |at: usize, to: &mut [u8]| to[0] = numbers[usize::from(shown.keys[at])];
        file.draw(Some(&palette), &layout, number)
    }

    /// Returns the bytes of the read.
    fn done(&self, picture: &[u8], buffers: &Arc<BufferPool>) -> Result<Step, OutOfMemory> {
        let bytes = &picture[self.bytes.start as usize..self.bytes.end as usize];
        let mut out = buffers.take_reply(bytes.len())?;
        out.copy_from_slice(bytes);
        Ok(Step::Done(out))
    }
}

impl PreviewFile {
    /// Draws all parts; `colour` writes the pixel of a sample that is shown, by its number.
    fn draw(
        &self,
        palette: Option<&Palette>,
        layout: &PngLayout,
        colour: impl Fn(usize, &mut [u8]),
    ) -> Result<Vec<u8>, OutOfMemory> {
        let mut bytes = try_with_capacity(layout.len() as usize)?;
        bytes.extend_from_slice(&layout.prefix(palette));
        let (mut sum, pixel) = (Adler32::new(), layout.format().bytes() as usize);
        for block in (0..layout.blocks()).map(|number| layout.block(number)) {
            bytes.extend_from_slice(&block.head());
            let start = bytes.len();
            for y in block.rows.clone() {
                bytes.push(0);
                let row = bytes.len();
                bytes.resize(row + pixel * layout.width() as usize, BACKGROUND);
                self.draw_row(y, &mut bytes[row..], pixel, &colour);
            }
            sum.update(&bytes[start..]);
            let tail = block.tail(&bytes[start..]);
            bytes.extend_from_slice(&tail);
        }
        bytes.extend_from_slice(&PngLayout::suffix(sum.sum()));
        Ok(bytes)
    }

    fn draw_row(&self, y: u64, row: &mut [u8], pixel: usize, colour: &impl Fn(usize, &mut [u8])) {
        let mut before = 0;
        for part in &self.plan.parts {
            if y < part.down.pixels() {
                let first = before + y / part.down.repeat * part.along.shown();
                let to = row[part.left as usize * pixel..].chunks_exact_mut(pixel);
                for (x, to) in (0..part.along.pixels()).zip(to) {
                    colour((first + x / part.along.repeat) as usize, to);
                }
            }
            before += part.shown();
        }
    }
}

impl ReadSteps for PreviewRead {
    fn step(&mut self, samples: Option<Buffer>, buffers: &Arc<BufferPool>) -> Result<Step, OutOfMemory> {
        let id = self.file.array.info().id;
        // another reader may have been faster
        if let Some(picture) = PICTURES.get(&id) {
            return self.done(&picture, buffers);
        }
        if self.shown.is_none() {
            self.shown = Some(self.new_shown()?);
        }
        if let (Some(tile), Some(samples)) = (self.pending.take(), samples) {
            self.take(&tile, &samples);
        }
        if let Some(tile) = self.tiles.next(&self.file.plan.parts) {
            let region = tile.rectangle(&self.file.plan.parts[tile.part]).region;
            self.pending = Some(tile);
            let request = SampleRequest { array: Arc::clone(&self.file.array), samples: Samples::Box(region) };
            return Ok(Step::Read(request));
        }
        let Some(shown) = self.shown.take() else { return Ok(Step::Done(buffers.empty())) };
        let picture = Arc::new(self.picture(&shown)?);
        PICTURES.put(id, Arc::clone(&picture), picture.len());
        self.done(&picture, buffers)
    }
}

#[cfg(test)]
mod tests {
    use super::super::plane::Subject;
    use super::super::png;
    use super::super::png::LAST_OF_SCALE;
    use super::super::preview_values::MAX_SAMPLES;
    use super::super::preview_values::tests::plan;
    use super::*;
    use crate::test_support::png::decode;
    use crate::view::file::tests::zeros;
    use crate::view::fixture;
    use crate::volume::Dtype;
    use crate::volume::Region;

    /// Reads bytes of a preview of which each sample is what `sample` says; returns how many samples were requested.
    fn read(file: &Arc<PreviewFile>, bytes: Range<u64>, sample: &dyn Fn(&[u64]) -> Vec<u8>) -> (Vec<u8>, u64) {
        let mut requested = 0;
        let read = fixture::read(file.clone(), bytes, &mut |request| {
            let Samples::Box(region) = &request.samples else { unreachable!() };
            assert!(Region::whole(request.array.info().shape()).contains(region));
            assert!(region.samples() <= 3 * MAX_SAMPLES, "the request is bounded");
            requested += region.samples();
            let at = |n: u64| {
                let index = region.shape.index_of(n);
                (0..index.len()).map(|axis| region.start[axis] + index[axis]).collect::<Vec<u64>>()
            };
            (0..region.samples()).flat_map(|n| sample(&at(n))).collect()
        });
        (read.unwrap(), requested)
    }

    const PLAIN: Subject = Subject { axes: 3, components: 1, is_labels: false, vertical: None };

    fn preview(shape: &[u64], dtype: Dtype, subject: &Subject) -> Arc<PreviewFile> {
        let mut info = zeros(shape, dtype).info().clone();
        info.axes.iter_mut().for_each(|axis| axis.step = 1.0);
        let plan = plan(&info, subject);
        Arc::new(PreviewFile::new(Arc::new(crate::view::file::tests::Zeros(info)), plan))
    }

    #[test]
    fn slices_stand_side_by_side_and_are_computed_once() {
        let file = preview(&[100, 200, 400], Dtype::UInt8, &PLAIN);
        let sample = |at: &[u64]| vec![((at[0] * 7 + at[1] * 13 + at[2] * 29) % 250) as u8];
        let (whole, requested) = read(&file, 0..file.len(), &sample);
        assert_eq!(requested, 200 * 400 + 100 * 400 + 100 * 200);
        let picture = decode(&whole);
        assert_eq!((picture.width, picture.height), (400 + 400 + 200 + 16, 200));
        assert_eq!(picture.palette, png::greys().as_flattened());
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
        assert_eq!(picture.palette, png::labels().as_flattened());
        assert_eq!((picture.pixels[100], picture.pixels[101]), (0, png::of_label(77_000)));
    }
}
