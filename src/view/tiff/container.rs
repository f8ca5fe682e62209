//! Where everything stands in a TIFF file of a stack: a block of 4096 bytes, the samples as they are in lodN.raw, and
//! behind them the directories of all planes but the first.
//!
//! This is how ImageJ lays stacks out. It reads the first directory alone, and takes the number of planes from the text
//! in there; other programs follow the chain of directories. In a classic TIFF this needs positions of 32 bits: a
//! larger file has the first directory only, as ImageJ writes it too. Types that ImageJ cannot read are in a BigTIFF,
//! which has all directories whatever its size.

use std::ops::Range;

use super::super::array_file::Tail;
use super::super::stack::Stack;
use super::description;
use super::directory::{self, Field};
use crate::volume::{ArrayInfo, Dtype};

/// Where the samples begin: at a page of memory.
const SAMPLES_AT: u64 = 4096;

/// The tags.
const NEW_SUBFILE_TYPE: u16 = 254;
const IMAGE_WIDTH: u16 = 256;
const IMAGE_LENGTH: u16 = 257;
const BITS_PER_SAMPLE: u16 = 258;
const COMPRESSION: u16 = 259;
const PHOTOMETRIC: u16 = 262;
const IMAGE_DESCRIPTION: u16 = 270;
const STRIP_OFFSETS: u16 = 273;
const SAMPLES_PER_PIXEL: u16 = 277;
const ROWS_PER_STRIP: u16 = 278;
const STRIP_BYTE_COUNTS: u16 = 279;
const X_RESOLUTION: u16 = 282;
const Y_RESOLUTION: u16 = 283;
const RESOLUTION_UNIT: u16 = 296;
const EXTRA_SAMPLES: u16 = 338;
const SAMPLE_FORMAT: u16 = 339;

const ASCII: u16 = 2;
const SHORT: u16 = 3;
const RATIONAL: u16 = 5;

/// The file of a stack. Its directories are computed when they are read: those of two planes differ only in a position.
#[derive(Clone, Debug)]
pub(crate) struct Container {
    stack: Stack,
    /// Whether it is a BigTIFF.
    big: bool,
    /// Planes that have a directory: all, or the first alone.
    directories: u64,
    /// Zeros between samples and directories.
    padding: u64,
}

impl Container {
    /// Returns the file of a stack; `None` if it would be longer than a file can be.
    pub(crate) fn of(stack: Stack) -> Option<Self> {
        let is_for_imagej = match stack.dtype {
            Dtype::UInt8 => stack.channels == 1 || stack.is_rgb(),
            Dtype::Int16 | Dtype::UInt16 | Dtype::Int32 | Dtype::UInt32 | Dtype::Float32 => stack.channels == 1,
            // ImageJ reads int8 as uint8, and the others not at all
            Dtype::Int8 | Dtype::Int64 | Dtype::UInt64 | Dtype::Float64 => false,
        };
        let fits = |number: u64| number <= u32::MAX.into();
        let big = !is_for_imagej || ![stack.width, stack.height, stack.plane_bytes()].into_iter().all(fits);
        let planes = stack.planes();
        let samples = stack.plane_bytes().checked_mul(planes)?;
        let end = SAMPLES_AT.checked_add(samples)?;
        let padding = end.checked_next_multiple_of(SAMPLES_AT)? - end;
        let mut file = Self { stack, big, directories: planes, padding };
        let length = file.directory_size().checked_mul(planes - 1)?.checked_add(end)?.checked_add(padding)?;
        if !big && !fits(length) {
            file.directories = 1;
        }
        (length <= i64::MAX as u64).then_some(file)
    }

    /// Returns the block before the samples, with the first directory.
    pub(crate) fn header(&self, info: &ArrayInfo) -> Vec<u8> {
        let at = if self.big { 16 } else { 8 };
        let mut header = Vec::with_capacity(SAMPLES_AT as usize);
        match self.big {
            true => header.extend_from_slice(b"II\x2b\0\x08\0\0\0\x10\0\0\0\0\0\0\0"),
            false => header.extend_from_slice(b"II\x2a\0\x08\0\0\0"),
        }
        let mut text = description::text(&self.stack, info).into_bytes();
        text.push(0);
        let [x, y] = description::resolution(&self.stack, info);
        let packed = |(above, below): (u32, u32)| u64::from(above) | u64::from(below) << 32;
        let tables = self.tables_at();
        let resolutions_at = tables.end;
        let text_at = resolutions_at + 16;
        let mut fields = self.fields(0);
        fields.push(Field { tag: IMAGE_DESCRIPTION, kind: ASCII, count: text.len() as u64, value: text_at });
        for (tag, fraction, at) in [(X_RESOLUTION, x, resolutions_at), (Y_RESOLUTION, y, resolutions_at + 8)] {
            let value = if self.big { packed(fraction) } else { at };
            fields.push(Field { tag, kind: RATIONAL, count: 1, value });
        }
        // the unit is in the description
        fields.push(Field::short(RESOLUTION_UNIT, 1));
        fields.sort_by_key(|field| field.tag);
        debug_assert_eq!(directory::size(fields.len(), self.big) + at, tables.start);
        directory::write(&fields, self.next_after(0), self.big, &mut header);
        for value in self.table_values() {
            header.extend((0..self.stack.channels).flat_map(|_| value.to_le_bytes()));
        }
        header.extend_from_slice(&packed(x).to_le_bytes());
        header.extend_from_slice(&packed(y).to_le_bytes());
        header.extend_from_slice(&text);
        header.resize(SAMPLES_AT as usize, 0);
        header
    }

    /// Returns the fields that every plane has.
    fn fields(&self, plane: u64) -> Vec<Field> {
        let stack = &self.stack;
        let rgb = stack.is_rgb();
        let tables = self.tables_at();
        let [bits, format, extra] = self.table_values();
        let mut position = tables.start;
        let mut shorts = |tag: u16, count: u64, value: u16| {
            let at = position;
            position += 2 * stack.channels;
            let fits = 2 * count <= directory::inline_bytes(self.big);
            let packed = (0..count.min(4)).fold(0, |packed, n| packed | u64::from(value) << (16 * n));
            Field { tag, kind: SHORT, count, value: if fits { packed } else { at } }
        };
        let bits = shorts(BITS_PER_SAMPLE, stack.channels, bits);
        let format = shorts(SAMPLE_FORMAT, stack.channels, format);
        let unexplained = stack.channels - if rgb { 3 } else { 1 };
        let extra = (unexplained > 0).then(|| shorts(EXTRA_SAMPLES, unexplained, extra));
        let mut fields = vec![
            Field::number(NEW_SUBFILE_TYPE, 0),
            Field::number(IMAGE_WIDTH, stack.width),
            Field::number(IMAGE_LENGTH, stack.height),
            bits,
            Field::short(COMPRESSION, 1),
            Field::short(PHOTOMETRIC, if rgb { 2 } else { 1 }),
            Field::position(STRIP_OFFSETS, SAMPLES_AT + plane * stack.plane_bytes(), self.big),
            Field::short(SAMPLES_PER_PIXEL, stack.channels as u16),
            Field::number(ROWS_PER_STRIP, stack.height),
            Field::position(STRIP_BYTE_COUNTS, stack.plane_bytes(), self.big),
        ];
        fields.extend(extra);
        fields.push(format);
        fields
    }

    /// Returns the value that each table of one number for each channel repeats: bits, format, and meaning of further
    /// channels (unknown).
    fn table_values(&self) -> [u16; 3] {
        let format = match self.stack.dtype {
            Dtype::UInt8 | Dtype::UInt16 | Dtype::UInt32 | Dtype::UInt64 => 1,
            Dtype::Int8 | Dtype::Int16 | Dtype::Int32 | Dtype::Int64 => 2,
            Dtype::Float32 | Dtype::Float64 => 3,
        };
        [8 * self.stack.dtype.size() as u16, format, 0]
    }

    /// Returns where the tables stand: behind the first directory, which has four fields more than others.
    fn tables_at(&self) -> Range<u64> {
        let header = if self.big { 16 } else { 8 };
        let start = header + directory::size(self.field_count() + 4, self.big);
        start..start + 3 * 2 * self.stack.channels
    }

    fn field_count(&self) -> usize {
        let has_extra = self.stack.channels > if self.stack.is_rgb() { 3 } else { 1 };
        if has_extra { 12 } else { 11 }
    }

    /// Returns the bytes of the directory of any plane but the first.
    fn directory_size(&self) -> u64 {
        directory::size(self.field_count(), self.big)
    }

    /// Returns the position of the directory that follows that of `plane`; 0 if there is none.
    fn next_after(&self, plane: u64) -> u64 {
        if plane + 1 >= self.directories {
            return 0;
        }
        let samples = self.stack.plane_bytes() * self.stack.planes();
        SAMPLES_AT + samples + self.padding + plane * self.directory_size()
    }
}

impl Tail for Container {
    fn length(&self) -> u64 {
        if self.directories > 1 { self.padding + (self.directories - 1) * self.directory_size() } else { 0 }
    }

    fn write(&self, from: u64, out: &mut [u8]) {
        let padding = self.padding.saturating_sub(from).min(out.len() as u64) as usize;
        let (zeros, mut out) = out.split_at_mut(padding);
        zeros.fill(0);
        let size = self.directory_size();
        let mut at = (from + padding as u64).saturating_sub(self.padding);
        let mut bytes = Vec::new();
        while !out.is_empty() {
            let (plane, skip) = (at / size + 1, (at % size) as usize);
            bytes.clear();
            directory::write(&self.fields(plane), self.next_after(plane), self.big, &mut bytes);
            let count = (bytes.len() - skip).min(out.len());
            let (part, rest) = out.split_at_mut(count);
            part.copy_from_slice(&bytes[skip..skip + count]);
            out = rest;
            at += count as u64;
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::super::array_file::tests::zeros;
    use super::*;

    const DTYPES: [Dtype; 10] = [
        Dtype::Int8,
        Dtype::UInt8,
        Dtype::Int16,
        Dtype::UInt16,
        Dtype::Int32,
        Dtype::UInt32,
        Dtype::Int64,
        Dtype::UInt64,
        Dtype::Float32,
        Dtype::Float64,
    ];

    fn info(shape: &[u64], dtype: Dtype, channels: bool) -> ArrayInfo {
        let mut info = zeros(shape, dtype).info().clone();
        info.axes.last_mut().unwrap().spatial = !channels;
        info
    }

    fn file(info: &ArrayInfo) -> Container {
        Container::of(Stack::of(info).unwrap()).unwrap()
    }

    fn number(bytes: &[u8], at: usize, count: usize) -> u64 {
        bytes[at..at + count].iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte))
    }

    /// Follows the chain of directories as a reader does. Returns for each the values of each tag.
    fn directories(file: &[u8]) -> Vec<Vec<(u16, Vec<u64>)>> {
        let big = number(file, 2, 2) == 43;
        assert!(file.starts_with(b"II") && (big && number(file, 4, 4) == 8 || number(file, 2, 2) == 42));
        let (word, count) = if big { (8, 8) } else { (4, 2) };
        let mut at = number(file, if big { 8 } else { 4 }, word) as usize;
        let mut found = Vec::new();
        while at != 0 {
            let fields = number(file, at, count) as usize;
            at += count;
            let field = |n: usize| {
                let at = at + n * (4 + 2 * word);
                let size = match number(file, at + 2, 2) {
                    2 => 1,
                    3 => 2,
                    4 => 4,
                    5 | 16 => 8,
                    kind => panic!("type {kind}"),
                };
                let values = number(file, at + 4, word) as usize;
                let inline = values * size <= word;
                let from = if inline { at + 4 + word } else { number(file, at + 4 + word, word) as usize };
                (number(file, at, 2) as u16, (0..values).map(|n| number(file, from + n * size, size)).collect())
            };
            let directory: Vec<_> = (0..fields).map(field).collect();
            assert!(directory.is_sorted_by_key(|(tag, _)| *tag), "{directory:?}");
            found.push(directory);
            at = number(file, at + fields * (4 + 2 * word), word) as usize;
        }
        found
    }

    /// The whole file, with zeros for samples.
    fn whole(info: &ArrayInfo) -> Vec<u8> {
        let container = file(info);
        let samples = (container.stack.plane_bytes() * container.stack.planes()) as usize;
        let mut bytes = container.header(info);
        assert_eq!(bytes.len() as u64, SAMPLES_AT);
        bytes.resize(bytes.len() + samples, 0);
        let mut tail = vec![1; container.length() as usize];
        container.write(0, &mut tail);
        bytes.extend(tail);
        bytes
    }

    fn values(directory: &[(u16, Vec<u64>)], tag: u16) -> &[u64] {
        directory.iter().find(|(found, _)| *found == tag).map_or(&[], |(_, values)| values)
    }

    #[test]
    fn every_plane_has_a_directory_that_finds_its_samples() {
        for (dtype, channels) in DTYPES.into_iter().flat_map(|dtype| [1, 2, 3, 4, 9].map(|c| (dtype, c))) {
            let shape = [4, 5, 7, channels];
            let shape = if channels > 1 { &shape[..] } else { &shape[..3] };
            let bytes = whole(&info(shape, dtype, channels > 1));
            let found = directories(&bytes);
            assert_eq!(found.len(), 4);
            let plane = 35 * channels * dtype.size() as u64;
            for (directory, number) in found.iter().zip(0..) {
                let is = |tag: u16, expected: &[u64]| assert_eq!(values(directory, tag), expected, "{dtype} {tag}");
                let each = |value: u64| vec![value; channels as usize];
                let rgb = channels == 3 && matches!(dtype, Dtype::UInt8 | Dtype::UInt16);
                is(IMAGE_WIDTH, &[7]);
                is(IMAGE_LENGTH, &[5]);
                is(BITS_PER_SAMPLE, &each(8 * dtype.size() as u64));
                is(
                    SAMPLE_FORMAT,
                    &each(if dtype.is_integer() { 1 + u64::from(dtype.name().starts_with('i')) } else { 3 }),
                );
                is(PHOTOMETRIC, &[if rgb { 2 } else { 1 }]);
                is(EXTRA_SAMPLES, &vec![0; channels as usize - if rgb { 3 } else { 1 }]);
                is(SAMPLES_PER_PIXEL, &[channels]);
                is(STRIP_OFFSETS, &[SAMPLES_AT + number * plane]);
                is(STRIP_BYTE_COUNTS, &[plane]);
                is(ROWS_PER_STRIP, &[5]);
                assert_eq!(values(directory, IMAGE_DESCRIPTION).is_empty(), number > 0);
            }
            let text: Vec<u8> = values(&found[0], IMAGE_DESCRIPTION).iter().map(|byte| *byte as u8).collect();
            assert!(text.starts_with(b"ImageJ=1.54f\nimages=4\nslices=4\n") && text.ends_with(b"loop=false\n\0"));
            assert_eq!(values(&found[0], X_RESOLUTION), [1 << 32 | 1]);
        }
    }

    #[test]
    fn imagej_reads_what_it_has_types_for() {
        let is_big = |shape: &[u64], dtype, channels| file(&info(shape, dtype, channels)).big;
        let classic = [Dtype::UInt8, Dtype::Int16, Dtype::UInt16, Dtype::Int32, Dtype::UInt32, Dtype::Float32];
        for dtype in DTYPES {
            assert_eq!(is_big(&[4, 5, 7], dtype, false), !classic.contains(&dtype), "{dtype}");
            assert_eq!(is_big(&[4, 5, 7, 3], dtype, true), dtype != Dtype::UInt8, "{dtype}");
            assert!(is_big(&[4, 5, 7, 2], dtype, true));
        }
    }

    #[test]
    fn large_files_have_the_form_that_holds_them() {
        let of = |shape: &[u64], dtype| file(&info(shape, dtype, false));
        // just below 4 GiB with all directories, and just beyond
        let (fits, beyond) = (of(&[4095, 1024, 1024], Dtype::UInt8), of(&[4096, 1024, 1024], Dtype::UInt8));
        assert_eq!((fits.big, fits.directories, beyond.big, beyond.directories), (false, 4095, false, 1));
        assert_eq!((fits.length() > 0, beyond.length()), (true, 0));
        assert_eq!(beyond.next_after(0), 0);
        let planes = [of(&[2, 1 << 16, (1 << 16) - 1], Dtype::UInt8), of(&[2, 1 << 16, 1 << 16], Dtype::UInt8)];
        assert_eq!(planes.map(|file| file.big), [false, true]);
        let wide = of(&[2, 1, 1 << 33], Dtype::UInt8);
        assert!(wide.big && wide.fields(1).contains(&Field { tag: IMAGE_WIDTH, kind: 16, count: 1, value: 1 << 33 }));
        assert!(Container::of(Stack::of(&info(&[1 << 60, 1, 1], Dtype::UInt8, false)).unwrap()).is_none());
    }

    #[test]
    fn a_stack_of_any_number_of_planes_costs_no_memory() {
        let planes = 1 << 50;
        let container = file(&info(&[planes, 2, 2], Dtype::Float64, false));
        let mut last = vec![0; container.directory_size() as usize];
        container.write(container.length() - last.len() as u64, &mut last);
        assert_eq!(number(&last, last.len() - 8, 8), 0);
        // the seventh field
        assert_eq!(number(&last, 8 + 6 * 20, 2), u64::from(STRIP_OFFSETS));
        assert_eq!(number(&last, 8 + 6 * 20 + 12, 8), SAMPLES_AT + 32 * (planes - 1));
    }

    proptest! {
        #[test]
        fn every_part_of_the_tail_equals_that_of_the_whole(
            planes in 1u64..60, width in 1u64..40, dtype in 0usize..10, from in 0u64..9000, count in 0u64..9000,
        ) {
            let info = info(&[planes, 3, width], DTYPES[dtype], false);
            let container = file(&info);
            let bytes = whole(&info);
            let tail = &bytes[bytes.len() - container.length() as usize..];
            let start = from.min(container.length());
            let end = (start + count).min(container.length());
            let mut part = vec![1; (end - start) as usize];
            container.write(start, &mut part);
            prop_assert_eq!(&part[..], &tail[start as usize..end as usize]);
            prop_assert_eq!(directories(&bytes).len() as u64, planes);
        }
    }
}
