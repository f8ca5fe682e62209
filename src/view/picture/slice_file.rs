//! The file of one slice: each block of the PNG is computed from the rectangle of samples that it shows.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::ops::Range;
use std::sync::Arc;

use libdeflater::adler32;

use super::checksums::Checksums;
use super::colours;
use super::pixels::Pixels;
use super::plane::Plane;
use super::png_layout::{Block, PixelFormat, PngLayout};
use crate::format::Array;
use crate::memory::{Buffer, BufferPool, OutOfMemory};
use crate::view::computed_file::{ComputedFile, ReadSteps, SampleRequest, Samples, Step};

/// The bytes of the suffix before the checksum of all blocks; it and the CRC of its chunk take 8 more.
const BEFORE_SUM: u64 = 8;
/// The file of one slice.
pub(crate) struct SliceFile {
    array: Arc<dyn Array>,
    plane: Plane,
    layout: PngLayout,
    pixels: Pixels,
}

impl SliceFile {
    /// Creates the file of a plane of an array; `None` if it is too large for a picture.
    pub(crate) fn new(array: Arc<dyn Array>, plane: Plane, pixels: Pixels) -> Option<Self> {
        let layout = PngLayout::new(plane.width(), plane.height(), pixels.format())?;
        Some(Self { array, plane, layout, pixels })
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
        let mut hasher = DefaultHasher::new();
        (self.plane, self.layout, self.pixels.fingerprint()).hash(&mut hasher);
        hasher.finish()
    }

    fn read(self: Arc<Self>, bytes: Range<u64>) -> Box<dyn ReadSteps> {
        let sums = Checksums::of((self.array.info().id, self.plane), &self.layout);
        let layout = self.layout;
        let blocks = match bytes.end <= layout.prefix_len() || bytes.start >= layout.suffix_at() {
            true => 0..0,
            false => layout.block_at(bytes.start)..layout.block_at(bytes.end - 1) + 1,
        };
        Box::new(SliceRead { file: self, bytes, sums, out: None, blocks, summed: 0, pending: None })
    }
}

/// A read of a slice. It goes through the blocks that it has bytes of; then, for the checksum at the end of the file,
/// through all others that nobody has read yet.
struct SliceRead {
    file: Arc<SliceFile>,
    bytes: Range<u64>,
    sums: Arc<Checksums>,
    out: Option<Buffer>,
    /// The blocks that are still to be read.
    blocks: Range<u64>,
    /// The checksums before this one are known.
    summed: u64,
    pending: Option<Pending>,
}

/// Rows of a block whose samples are requested.
struct Pending {
    number: u64,
    block: Block,
    rows: Range<u64>,
}

impl Pending {
    fn is_whole(&self) -> bool {
        self.rows == self.block.rows
    }
}

impl SliceRead {
    /// Copies what the read wants of `bytes`, which are at an offset of the file.
    fn put(&mut self, offset: u64, bytes: &[u8]) {
        let (start, end) = (offset.max(self.bytes.start), (offset + bytes.len() as u64).min(self.bytes.end));
        if let (Some(out), true) = (&mut self.out, start < end) {
            let to = (start - self.bytes.start) as usize..(end - self.bytes.start) as usize;
            out[to].copy_from_slice(&bytes[(start - offset) as usize..(end - offset) as usize]);
        }
    }

    /// Returns the rows of a block that the read needs: all if it wants the checksum, or the block is a part of a row.
    fn rows(&self, block: &Block) -> Option<Range<u64>> {
        let (data, row) = (block.data(), self.file.layout.row_bytes());
        let wanted = self.bytes.start.max(data.start)..self.bytes.end.min(data.end);
        let wants_crc = self.bytes.start < data.end + 4 && self.bytes.end > data.end;
        let is_part = block.columns != (0..self.file.layout.width());
        match wanted.is_empty() {
            true if !wants_crc => None,
            false if !wants_crc && !is_part => {
                let first = block.rows.start + (wanted.start - data.start) / row;
                Some(first..block.rows.start + (wanted.end - data.start).div_ceil(row))
            }
            _ => Some(block.rows.clone()),
        }
    }

    /// Computes the bytes of the rows whose samples have come.
    fn finish(&mut self, pending: &Pending, samples: &[u8], buffers: &Arc<BufferPool>) -> Result<(), OutOfMemory> {
        let Pending { number, block, rows } = pending;
        let (layout, count) = (self.file.layout, rows.end - rows.start);
        let rectangle = self.file.plane.rectangle(rows, &block.columns);
        let length = block.length / (block.rows.end - block.rows.start) * count;
        let mut data = buffers.take_scratch(length as usize)?;
        let columns = block.columns.end - block.columns.start;
        self.file.pixels.paint(samples, &rectangle, columns, block.columns.start == 0, &mut data);
        let before = (rows.start - block.rows.start) * layout.row_bytes();
        self.put(block.data().start + before, &data);
        if pending.is_whole() {
            self.put(block.data().end, &block.tail(&data));
            self.sums.set(*number, adler32(&data));
        }
        Ok(())
    }

    /// Returns the next rows to read; `None` if there are none.
    fn next(&mut self) -> Option<Pending> {
        let layout = self.file.layout;
        while let Some(number) = self.blocks.next() {
            let block = layout.block(number);
            self.put(block.offset, &block.head());
            if let Some(rows) = self.rows(&block) {
                return Some(Pending { number, block, rows });
            }
        }
        let sum = layout.suffix_at() + BEFORE_SUM..layout.suffix_at() + BEFORE_SUM + 8;
        let wants_sum = self.bytes.start < sum.end && self.bytes.end > sum.start;
        let number = self.sums.missing(self.summed).filter(|_| wants_sum)?;
        self.summed = number;
        let block = layout.block(number);
        Some(Pending { number, rows: block.rows.clone(), block })
    }
}

impl ReadSteps for SliceRead {
    fn step(&mut self, samples: Option<Buffer>, buffers: &Arc<BufferPool>) -> Result<Step, OutOfMemory> {
        let layout = self.file.layout;
        if self.out.is_none() {
            self.out = Some(buffers.take_reply((self.bytes.end - self.bytes.start) as usize)?);
            if self.bytes.start < layout.prefix_len() {
                let palette = (layout.format() == PixelFormat::Indexed).then(colours::labels);
                self.put(0, &layout.prefix(palette.as_ref()));
            }
        }
        if let (Some(pending), Some(samples)) = (self.pending.take(), samples) {
            self.finish(&pending, &samples, buffers)?;
        }
        if let Some(pending) = self.next() {
            let region = self.file.plane.rectangle(&pending.rows, &pending.block.columns).region;
            self.pending = Some(pending);
            let request = SampleRequest { array: Arc::clone(&self.file.array), samples: Samples::Box(region) };
            return Ok(Step::Read(request));
        }
        if self.bytes.end > layout.suffix_at() {
            self.put(layout.suffix_at(), &PngLayout::suffix(self.sums.of_all(&layout)));
        }
        Ok(Step::Done(self.out.take().unwrap_or_else(|| buffers.empty())))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::subject::Subject;
    use super::*;
    use crate::format::{Census, FormatError};
    use crate::source::{Blocking, Source};
    use crate::test_support::png::decode;
    use crate::view::fixture;
    use crate::volume::{ArrayInfo, Axis, Brick, BrickGrid, Dims, Dtype, Region};

    /// An array whose samples follow from their numbers in C order.
    struct Numbers(ArrayInfo);

    impl Array for Numbers {
        fn info(&self) -> &ArrayInfo {
            &self.0
        }
        fn source(&self) -> &dyn Source {
            unreachable!()
        }
        fn brick(&self, _: &Dims, _: Blocking) -> Result<Brick, FormatError> {
            unreachable!()
        }
        fn census(&self) -> Result<Option<Census>, FormatError> {
            unreachable!()
        }
    }

    fn array(shape: &[u64], dtype: Dtype) -> Arc<Numbers> {
        let shape = Dims::from_slice(shape).unwrap();
        let axis = |count: &u64| Axis {
            name: "a".into(),
            unit: None,
            first: 0.0,
            step: 1.0,
            count: *count,
            spatial: *count != 3,
        };
        let axes = shape.iter().map(axis).collect();
        Arc::new(Numbers(ArrayInfo {
            axes,
            value_range: Some((0.0, 255.0)),
            ..ArrayInfo::new(dtype, BrickGrid::aligned(shape, shape), shape)
        }))
    }

    /// The sample with a number.
    fn sample(number: u64, dtype: Dtype) -> Vec<u8> {
        let value = number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40;
        match dtype {
            Dtype::Float32 => ((value % 256) as f32).to_le_bytes().to_vec(),
            _ => value.to_le_bytes()[..dtype.size()].to_vec(),
        }
    }

    fn samples_of(info: &ArrayInfo, region: &Region) -> Vec<u8> {
        let in_line = region.shape[region.axes() - 1];
        let lines = (0..region.samples()).step_by(in_line as usize).map(|first| {
            let index = region.shape.index_of(first);
            info.shape().linear_of(&Dims::from_fn(index.len(), |axis| region.start[axis] + index[axis]))
        });
        lines.flat_map(|first| (first..first + in_line).flat_map(|n| sample(n, info.dtype))).collect()
    }

    /// Reads bytes of a file as the file system does; also returns how many samples were requested.
    fn read(file: &Arc<SliceFile>, bytes: Range<u64>) -> (Vec<u8>, u64) {
        let mut requested = 0;
        let read = fixture::read(file.clone(), bytes, &mut |request| {
            let (info, Samples::Box(region)) = (request.array.info(), &request.samples) else { unreachable!() };
            assert!(Region::whole(info.shape()).contains(region));
            assert!(region.samples() * info.dtype.size() as u64 <= 1 << 19, "the request is bounded");
            requested += region.samples();
            samples_of(info, region)
        });
        (read.unwrap(), requested)
    }

    fn slice(shape: &[u64], dtype: Dtype, across: Option<(usize, u64)>, vertical: bool) -> Arc<SliceFile> {
        let array = array(shape, dtype);
        let components = if shape.len() > 3 { 3 } else { 1 };
        let axes = shape.len().min(3);
        let is_labels = dtype == Dtype::UInt32;
        let subject = Subject { axes, components, is_labels, vertical: vertical.then_some(axes - 1) };
        let pixels = Pixels::of(array.info(), &subject);
        Arc::new(SliceFile::new(array.clone(), Plane::new(array.info().shape(), &subject, across), pixels).unwrap())
    }

    /// Returns the pixels of a slice, one after the other.
    fn expected(file: &SliceFile) -> Vec<u8> {
        let (info, plane) = (file.array.info(), file.plane);
        let mut pixels = Vec::new();
        for row in 0..plane.height() {
            for column in 0..plane.width() {
                let region = plane.rectangle(&(row..row + 1), &(column..column + 1)).region;
                let stored = samples_of(info, &region);
                match info.dtype {
                    Dtype::Float32 => pixels.push(f32::from_le_bytes(stored.try_into().unwrap()) as u8),
                    Dtype::UInt32 => {
                        pixels.push(colours::of_label(u32::from_le_bytes(stored.try_into().unwrap()).into()))
                    }
                    _ => pixels.extend(stored.chunks(info.dtype.size()).flat_map(|s| s.iter().rev())),
                }
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
        let middle = file.layout.block(5).data().start;
        assert_eq!(read(&file, middle + 10..middle + 20).1, 500);
        assert_eq!(read(&file, middle + row - 1..middle + row + 1).1, 1000);
        assert_eq!(read(&file, 0..50).1, 0, "the header needs none");
        let block = file.layout.block(5);
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
            read(&file, file.layout.block(2).offset..file.layout.block(3).offset);
            let of_block = file.layout.block(2).rows;
            let rest = if reads_front_first { 0 } else { all - 500 * (of_block.end - of_block.start) };
            assert_eq!(read(&file, file.len() - 20..file.len()).1, rest);
            assert_eq!(read(&file, file.len() - 20..file.len()).1, 0);
            // the same slice of the dataset after it was refreshed is another one
            let again = slice(&[3, 600, 500], Dtype::UInt8, Some((0, 1)), false);
            assert_eq!(again.fingerprint(), file.fingerprint());
            assert_eq!(read(&again, file.len() - 20..file.len()).1, all);
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
