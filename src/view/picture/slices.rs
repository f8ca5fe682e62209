//! `lodN.slices/AXIS/INDEX.png`: each slice of a level as a picture; `lodN.slices/0.png` where the array has two axes
//! and is a single slice.
//!
//! A folder is not listed if its pictures would be too large. Each block of a PNG is computed from the rectangle of
//! samples that it shows.

use std::mem;
use std::ops::Range;
use std::sync::Arc;

use super::palettes;
use super::pixels::Pixels;
use super::plane::{Plane, Subject, why_no_pictures};
use super::png::{PixelFormat, PngLayout, combined};
use crate::format::{Array, FormatError};
use crate::memory::{LruByWeight, try_zeroed};
use crate::sync::{LazyPerProcess, Mutex};
use crate::view::entry::{Entry, numbered};
use crate::view::names::axis_names;
use crate::view::segments::{ComputedFile, Content, Convert, NextSegment, Samples, Segment};
use crate::view::{LayerRef, View, hash_of};
use crate::volume::ArrayId;

pub(crate) const SLICES: View = View { hidden, ..View::new(Some("slices"), entries) };

fn entries(layer: LayerRef<'_>) -> Vec<Entry> {
    numbered((0..layer.levels().len()).filter_map(|lod| level(layer, lod)).collect())
}

fn hidden(layer: LayerRef<'_>) -> Option<(String, String)> {
    let reason = || why_no_pictures(layer, "its slices are too many or too large").to_owned();
    entries(layer).is_empty().then(|| ("lod0.slices".to_owned(), reason()))
}

/// Returns the folder of a level; `None` if it has no pictures.
fn level(layer: LayerRef<'_>, lod: usize) -> Option<Entry> {
    let (shape, axes) = (layer.info(lod).shape(), Subject::of(layer, lod)?.axes);
    let grid = |name: String, across: Option<usize>| {
        let count = across.map_or(1, |axis| shape[axis]);
        let slice = move |layer: LayerRef<'_>, index| {
            SliceFile::new(&layer.levels()[lod], &Subject::of(layer, lod)?, across.map(|axis| (axis, index)))
        };
        slice(layer, 0).filter(|_| count > 0)?;
        Some(Entry::grid(name, [count].into(), ".png", move |layer, at| {
            let file = slice(layer, at[0]);
            let file = file.ok_or_else(|| FormatError::Unsupported(format!("there is no picture number {}", at[0])))?;
            Ok(Content::Computed(Arc::new(file)))
        }))
    };
    let name = format!("lod{lod}.slices");
    if axes == 2 {
        return grid(name, None);
    }
    let names = axis_names(layer.info(lod)).into_iter().take(axes).enumerate();
    let entries: Vec<Entry> = names.filter_map(|(axis, name)| grid(name, Some(axis))).collect();
    (!entries.is_empty()).then(|| Entry::dir(name, entries))
}

struct SliceFile {
    array: Arc<dyn Array>,
    plane: Plane,
    layout: PngLayout,
    pixels: Pixels,
}

impl SliceFile {
    /// Returns the picture of an array at an index along an axis, or of all of an array of two axes; `None` if there is
    /// none, or it would be too large.
    fn new(array: &Arc<dyn Array>, subject: &Subject, across: Option<(usize, u64)>) -> Option<Self> {
        let plane = Plane::new(array.info().shape(), subject, across);
        let pixels = Pixels::of(array.info(), subject);
        let layout = PngLayout::new(plane.width(), plane.height(), pixels.format())?;
        Some(Self { array: Arc::clone(array), plane, layout, pixels })
    }

    /// Returns the segment with the first of these bytes, which is in a block: the whole block if the read wants its
    /// CRC or the block is a part of a row, otherwise its head, or the rows that the read wants.
    fn block(self: &Arc<Self>, sums: &Arc<Checksums>, bytes: &Range<u64>) -> Segment {
        let number = self.layout.block_at(bytes.start);
        let block = self.layout.block(number);
        let (data, length) = (block.data(), self.layout.row_bytes());
        let (wants_crc, is_part) = (bytes.end > data.end, block.columns != (0..self.layout.width));
        if !wants_crc && bytes.start < data.start {
            return Segment::Bytes(block.offset, block.head().into());
        }
        let rows = match wants_crc || is_part {
            true => 0..block.rows.end - block.rows.start,
            false => (bytes.start - data.start) / length..(bytes.end - data.start).div_ceil(length),
        };
        let place = data.start + rows.start * length..data.start + rows.end * length;
        let rows = block.rows.start + rows.start..block.rows.start + rows.end;
        let place = if rows == block.rows { block.chunk() } else { place };
        self.rows(sums, number, rows, place)
    }

    /// Returns the segment of rows of a block. If they are all of them it is the whole block, whose checksum is
    /// recorded; a block may be looked at for that.
    fn rows(self: &Arc<Self>, sums: &Arc<Checksums>, number: u64, rows: Range<u64>, place: Range<u64>) -> Segment {
        let (file, sums, block) = (Arc::clone(self), Arc::clone(sums), self.layout.block(number));
        let rectangle = self.plane.rectangle(&rows, &block.columns);
        let samples = Samples::region(&self.array, rectangle.region);
        let convert: Convert = Box::new(move |samples, out| {
            let columns = block.columns.end - block.columns.start;
            let paint =
                |data: &mut [u8]| file.pixels.paint(samples, &rectangle, columns, block.columns.start == 0, data);
            if rows != block.rows {
                paint(out);
            } else if out.is_empty() {
                let chunk = block.chunk();
                sums.set(number, block.write(&mut try_zeroed((chunk.end - chunk.start) as usize)?, paint));
            } else {
                sums.set(number, block.write(out, paint));
            }
            Ok(())
        });
        Segment::Samples(place, samples, Some(convert))
    }
}

impl ComputedFile for SliceFile {
    fn len(&self) -> u64 {
        self.layout.len()
    }

    fn array(&self) -> &Arc<dyn Array> {
        &self.array
    }

    fn fingerprint(&self) -> u64 {
        hash_of((self.plane, self.layout, self.pixels.fingerprint()))
    }

    fn segments(self: Arc<Self>) -> NextSegment {
        let (layout, sums) = (self.layout, Checksums::of((self.array.info().id, self.plane), &self.layout));
        // whether blocks of the read are still to be computed, and the block before which all checksums are known
        let (mut waits, mut summed) = (false, 0);
        Box::new(move |bytes| {
            if bytes.start < layout.prefix_len() {
                let palette = (layout.format == PixelFormat::Indexed).then(palettes::labels);
                return Segment::Bytes(0, layout.prefix(palette.as_ref()).into());
            }
            if bytes.start < layout.suffix_at() {
                waits = true;
                return self.block(&sums, &bytes);
            }
            let place = bytes.start..bytes.start;
            if mem::take(&mut waits) {
                // looks at nothing, but what comes next depends on the blocks
                return Segment::Samples(place, Samples::range(&self.array, 0..0), Some(Box::new(|_, _| Ok(()))));
            }
            let wanted = layout.checksums();
            let wants_sum = bytes.start < wanted.end && bytes.end > wanted.start;
            match sums.missing(summed).filter(|_| wants_sum) {
                Some(number) => {
                    summed = number;
                    self.rows(&sums, number, layout.block(number).rows, place)
                }
                None => Segment::Bytes(layout.suffix_at(), PngLayout::suffix(sums.of_all(&layout)).into()),
            }
        })
    }
}

/// The bytes of all checksums that are remembered.
const MAX_SUMS: usize = 1 << 20;

/// The checksums of the slices that were read last: a reader that has read a file from its front to its end finds that
/// of the whole already there, and one that reads only its end again does not read the whole again.
static SUMS: LazyPerProcess<Mutex<ChecksumsBySlice>> = LazyPerProcess::new(|| Mutex::new(LruByWeight::new(MAX_SUMS)));

type ChecksumsBySlice = LruByWeight<(ArrayId, Plane), Arc<Checksums>>;

/// The Adler-32 of each block of a slice, as far as they are known.
struct Checksums(Mutex<Vec<Option<u32>>>);

impl Checksums {
    /// Returns what is known of a slice of this layout.
    fn of(slice: (ArrayId, Plane), layout: &PngLayout) -> Arc<Self> {
        let known = SUMS.lock().get(&slice);
        known.unwrap_or_else(|| {
            let blocks = layout.blocks() as usize;
            let sums = Arc::new(Self(Mutex::new(vec![None; blocks])));
            let evicted = SUMS.lock().insert(slice, Arc::clone(&sums), blocks * size_of::<Option<u32>>());
            drop(evicted); // not under the lock
            sums
        })
    }

    /// Returns the first block from `from` on whose checksum is not known.
    fn missing(&self, from: u64) -> Option<u64> {
        let sums = self.0.lock();
        let after = sums.iter().skip(from as usize);
        after.zip(from..).find_map(|(sum, number)| sum.is_none().then_some(number))
    }

    fn set(&self, number: u64, sum: u32) {
        if let Some(known) = self.0.lock().get_mut(number as usize) {
            *known = Some(sum);
        }
    }

    /// Returns the Adler-32 of all blocks, which must be known.
    fn of_all(&self, layout: &PngLayout) -> u32 {
        let sums = self.0.lock();
        (0..).zip(sums.iter().flatten()).fold(1, |all, (number, sum)| combined(all, *sum, layout.block(number).length))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::catalog::OpenDataset;
    use crate::format::Layer;
    use crate::source::Blocking;
    use crate::test_support::png::decode;
    use crate::view::tests::{self, Zeros, one_layer, zeros};
    use crate::view::tree::{Item, Tree};
    use crate::volume::{ArrayInfo, Dtype, NativeJson, Region};

    /// The files of a dataset.
    struct Files(OpenDataset, Tree);

    impl Files {
        fn of(levels: &[&[u64]]) -> Self {
            let levels = levels.iter().map(|shape| zeros(shape, Dtype::UInt8)).collect();
            let open = one_layer("zgy", Layer { name: "a".into(), levels, native: NativeJson::new() });
            let tree = Tree::new(&open, &[SLICES]);
            Self(open, tree)
        }

        /// Finds a path in the folder of the layer.
        fn find(&self, path: &str) -> Option<Item> {
            let layer = self.1.find(&self.0, Item::DATASET, "a", Blocking::No).unwrap().unwrap();
            let names = path.split('/').filter(|name| !name.is_empty());
            names.into_iter().try_fold(layer, |folder, name| self.1.find(&self.0, folder, name, Blocking::No).unwrap())
        }

        fn list(&self, folder: Item, from: u64) -> Vec<(Item, u64)> {
            let mut found = Vec::new();
            self.1.list(&self.0, folder, from, &mut |item, next| {
                found.push((item, next));
                true
            });
            found
        }

        fn names(&self, path: &str) -> Vec<String> {
            self.list(self.find(path).unwrap(), 0).into_iter().map(|(item, _)| self.1.name(item)).collect()
        }

        fn hidden(&self) -> Option<String> {
            Some((SLICES.hidden)(LayerRef { open: &self.0, layer: 0, views: &[] })?.1)
        }
    }

    #[test]
    fn every_node_is_listed_once_and_found_by_its_name() {
        let files = Files::of(&[&[3, 2000, 5], &[2, 1500, 3], &[1, 1, 1]]);
        let (open, tree, layer) = (&files.0, &files.1, files.find("").unwrap());
        let (mut seen, mut folders, mut streamed) = (Vec::new(), vec![layer], 0);
        while let Some(folder) = folders.pop() {
            streamed += u64::from(tree.is_streamed(folder));
            for (item, _) in files.list(folder, 0) {
                seen.push(tree.number(item) - tree.number(layer) - 1);
                assert_eq!(tree.item(open, tree.number(item)), Some(item));
                assert_eq!(tree.find(open, folder, &tree.name(item), Blocking::No).unwrap(), Some(item));
                assert_eq!(tree.parent(item), folder);
                assert_eq!(tree.content(open, item, Blocking::No).unwrap().is_none(), tree.is_folder(item));
                folders.extend(tree.is_folder(item).then_some(item));
            }
        }
        let all = 3 * 4 + 3 + 2000 + 5 + 2 + 1500 + 3 + 3;
        assert_eq!((seen.len() as u64, streamed), (all, 9));
        seen.sort_unstable();
        assert!(seen.into_iter().eq(0..all));
        assert_eq!(tree.item(open, tree.number(layer) + 1 + all), None);
    }

    #[test]
    fn pictures_are_named_by_axis_and_index() {
        let files = Files::of(&[&[3, 2000, 5], &[2, 1500, 3]]);
        assert_eq!(files.names(""), ["lod0.slices", "lod1.slices"]);
        assert_eq!(files.names("lod1.slices"), ["inline", "crossline", "sample"]);
        assert_eq!(files.names("lod1.slices/sample"), ["0.png", "1.png", "2.png"]);
        for name in ["3.png", "00.png", "01.png", "+1.png", "-1.png", "1.PNG", "1", "inline", ".png"] {
            assert_eq!(files.find(&format!("lod1.slices/sample/{name}")), None, "{name}");
        }
        for path in ["lod2.slices", "lod00.slices", "lod1.slices/z", "lod1.slices/0.png"] {
            assert_eq!(files.find(path), None, "{path}");
        }
        let rest = files.list(files.find("lod1.slices/crossline").unwrap(), 1498);
        let rest: Vec<_> = rest.into_iter().map(|(item, next)| (files.1.name(item), next)).collect();
        assert_eq!(rest, [("1498.png".into(), 1499), ("1499.png".into(), 1500)]);
    }

    #[test]
    fn an_array_of_two_axes_is_one_picture() {
        let files = Files::of(&[&[30, 40], &[15, 20]]);
        assert_eq!(
            (files.names(""), files.names("lod1.slices")),
            (vec!["lod0.slices".into(), "lod1.slices".into()], vec!["0.png".into()])
        );
        let (tree, picture) = (&files.1, files.find("lod1.slices/0.png").unwrap());
        assert_eq!(tree.number(picture) - tree.number(files.find("").unwrap()), 4);
        assert_eq!(tree.parent(picture), files.find("lod1.slices").unwrap());
        assert!(!tree.is_folder(picture));
        assert!(tree.content(&files.0, picture, Blocking::No).unwrap().unwrap().len() > 300);
    }

    #[test]
    fn pictures_that_are_too_large_are_not_listed() {
        let files = Files::of(&[&[2, 50_000, 60_000], &[1, 25_000, 30_000], &[1, 10_000, 15_000]]);
        assert_eq!(files.names("lod0.slices"), ["crossline", "sample"]);
        assert_eq!(files.names("lod2.slices"), ["inline", "crossline", "sample"]);
        assert_eq!((files.find("lod0.slices/inline"), files.hidden()), (None, None));
        for shape in [&[2, 3, 4, 5][..], &[1 << 34, 1, 1], &[0, 3, 4]] {
            let files = Files::of(&[shape]);
            assert!(files.names("").is_empty() && files.hidden().is_some(), "{shape:?}");
        }
    }

    /// The sample with a number in C order.
    fn sample(number: u64, dtype: Dtype) -> Vec<u8> {
        let value = number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40;
        match dtype {
            Dtype::Float32 => ((value % 256) as f32).to_le_bytes().to_vec(),
            // 0.5 to 64
            Dtype::Float16 => ((value % 8 + 14) << 10).to_le_bytes()[..2].to_vec(),
            Dtype::Complex64 => [0.0, (value % 256) as f32].map(f32::to_le_bytes).concat(),
            Dtype::Complex128 => [(value % 256) as f64, 0.0].map(f64::to_le_bytes).concat(),
            _ => value.to_le_bytes()[..dtype.size()].to_vec(),
        }
    }

    /// Reads bytes of a file; also returns how many samples were requested.
    fn read(file: &Arc<SliceFile>, bytes: Range<u64>) -> (Vec<u8>, u64) {
        let mut requested = 0;
        let read = tests::read(&Content::Computed(file.clone()), bytes, &mut |info, at| {
            requested += 1;
            sample(info.shape().linear_of(at), info.dtype)
        });
        (read.unwrap(), requested)
    }

    fn slice(shape: &[u64], dtype: Dtype, across: Option<(usize, u64)>, vertical: bool) -> Arc<SliceFile> {
        let info = ArrayInfo { value_range: Some((0.0, 255.0)), ..zeros(shape, dtype).info().clone() };
        let array: Arc<dyn Array> = Arc::new(Zeros(info));
        let components = if shape.len() > 3 { 3 } else { 1 };
        let axes = shape.len().min(3);
        let is_labels = dtype == Dtype::UInt32;
        let subject = Subject { axes, components, is_labels, vertical: vertical.then_some(axes - 1) };
        Arc::new(SliceFile::new(&array, &subject, across).unwrap())
    }

    /// Returns the pixels of a slice, one after the other.
    fn expected(file: &SliceFile) -> Vec<u8> {
        let (info, plane) = (file.array.info(), file.plane);
        let mut pixels = Vec::new();
        let places = (0..plane.height()).flat_map(|row| (0..plane.width()).map(move |column| (row, column)));
        for (row, column) in places {
            let region = plane.rectangle(&(row..row + 1), &(column..column + 1)).region;
            let first = info.shape().linear_of(&region.start);
            let stored = (first..first + region.samples()).map(|number| sample(number, info.dtype));
            match info.dtype {
                Dtype::UInt32 => {
                    pixels.extend(stored.map(|s| palettes::of_label(u32::from_le_bytes(s.try_into().unwrap()).into())));
                }
                Dtype::UInt8 | Dtype::UInt16 => pixels.extend(stored.flat_map(|s| s.into_iter().rev())),
                dtype => pixels.extend(stored.map(|s| (dtype.number(&s) + 0.5) as u8)),
            }
        }
        pixels
    }

    /// Slices whose rows are much shorter than a block, about as long, and longer.
    fn slices() -> impl Strategy<Value = ((Vec<u64>, Dtype, usize), bool)> {
        let shapes = vec![
            (vec![2, 200, 400], Dtype::UInt8, 0),
            (vec![200, 2, 200], Dtype::UInt16, 1),
            (vec![170, 450, 2], Dtype::Float32, 2),
            (vec![2, 90, 300, 3], Dtype::UInt8, 0),
            (vec![40, 2, 300, 3], Dtype::UInt16, 1),
            (vec![200, 2, 400], Dtype::UInt32, 1),
            (vec![2, 1, 70_000], Dtype::UInt8, 0),
            (vec![2, 66_000, 2], Dtype::Float32, 0),
            (vec![1, 2, 40_000], Dtype::UInt16, 0),
            (vec![300, 250], Dtype::Float32, 3),
            (vec![3, 300, 250], Dtype::Float16, 0),
            (vec![2, 90, 300], Dtype::Complex64, 1),
            (vec![70_000, 2], Dtype::Complex128, 3),
        ];
        (prop::sample::select(shapes), any::<bool>())
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(20))]
        #[test]
        fn any_bytes_of_a_slice_are_those_of_the_whole(
            ((shape, dtype, axis), vertical) in slices(),
            ranges in prop::collection::vec((0.0..1.0f64, 1u64..200_000), 1..6),
        ) {
            let across = (shape.len() > 2).then(|| (axis, shape[axis] / 2));
            let file = slice(&shape, dtype, across, vertical);
            for block in (0..file.layout.blocks()).map(|number| file.layout.block(number)) {
                let region = file.plane.rectangle(&block.rows, &block.columns).region;
                prop_assert!(Region::whole(file.array.info().shape()).contains(&region));
                prop_assert!(region.samples() * dtype.size() as u64 <= 1 << 20, "the request is bounded");
            }
            // the end comes first in half of the cases, so that checksums are missing
            let end_first = ranges.len() % 2 == 0;
            let last = (end_first).then(|| read(&file, file.len() - 20..file.len()).0);
            let whole = read(&file, 0..file.len()).0;
            prop_assert_eq!(whole.len() as u64, file.len());
            if let Some(last) = last {
                prop_assert_eq!(&*last, &whole[whole.len() - 20..]);
            }
            for (at, length) in ranges {
                let start = (at * file.len() as f64) as u64;
                let end = (start + length).min(file.len());
                prop_assert!(read(&file, start..end).0 == whole[start as usize..end as usize], "{start}..{end}");
            }
            let decoded = decode(&whole);
            prop_assert_eq!((decoded.width as u64, decoded.height as u64), (file.plane.width(), file.plane.height()));
            prop_assert!(decoded.pixels == expected(&file));
        }
    }

    #[test]
    fn a_read_needs_the_samples_of_its_own_rows() {
        let file = slice(&[3, 2000, 500], Dtype::UInt8, Some((0, 1)), false);
        let row = file.layout.row_bytes();
        let block = file.layout.block(5);
        let middle = block.data().start;
        assert_eq!(read(&file, middle + 10..middle + 20).1, 500);
        assert_eq!(read(&file, middle + row - 1..middle + row + 1).1, 1000);
        assert_eq!(read(&file, block.offset..middle).1, 0, "the head of a block needs none");
        assert_eq!(read(&file, 0..50).1, 0, "the header needs none");
        assert_eq!(read(&file, block.data().end..block.data().end + 1).1, 500 * (block.rows.end - block.rows.start));
    }

    #[test]
    fn the_checksum_of_the_whole_is_computed_once() {
        let all = 600 * 500;
        for reads_front_first in [true, false] {
            let file = slice(&[3, 600, 500], Dtype::UInt8, Some((0, 1)), false);
            if reads_front_first {
                assert_eq!(read(&file, 0..file.layout.suffix_at()).1, all);
                assert_eq!(read(&file, file.len() - 28..file.len()).1, 0);
            }
            assert_eq!(read(&file, file.len() - 12..file.len()).1, 0, "IEND needs nothing");
            read(&file, file.layout.block(2).chunk());
            let of_block = file.layout.block(2).rows;
            let rest = if reads_front_first { 0 } else { all - 500 * (of_block.end - of_block.start) };
            assert_eq!(read(&file, file.len() - 20..file.len()).1, rest);
            assert_eq!(read(&file, file.len() - 20..file.len()).1, 0);
            // the same slice of the dataset after it was refreshed is another one
            let again = slice(&[3, 600, 500], Dtype::UInt8, Some((0, 1)), false);
            assert_eq!(again.fingerprint(), file.fingerprint());
            assert_eq!(read(&again, file.len() - 20..file.len()).1, all);
            let whole = slice(&[3, 600, 500], Dtype::UInt8, Some((0, 1)), false);
            assert_eq!(read(&whole, 0..file.len()).1, all, "no block is read twice");
        }
    }

    #[test]
    fn slices_that_differ_have_different_fingerprints() {
        let of = |dtype, index| slice(&[3, 20, 50], dtype, Some((0, index)), false).fingerprint();
        assert_ne!(of(Dtype::UInt8, 0), of(Dtype::UInt8, 1));
        assert_ne!(of(Dtype::UInt8, 0), of(Dtype::Float32, 0));
        assert_eq!(of(Dtype::UInt8, 0), of(Dtype::UInt8, 0));
    }
}
