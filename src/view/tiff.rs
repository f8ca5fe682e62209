//! `tiff/lodN.tif`: a level as a stack of planes, in a form that ImageJ reads where it has one, described for it and as
//! OME-TIFF. The samples are one contiguous range; the directories of the planes are behind them.

use std::fmt::Write;
use std::ops::Range;
use std::sync::Arc;

use super::entry::Entry;
use super::headers::{Stack, number, rounded, step};
use super::segments::{ArrayFile, Content};
use super::{LayerRef, View};
use crate::format::{Array, FormatError};
use crate::volume::{ArrayInfo, Axis, Dtype, conversion};

pub(crate) const TIFF: View = View { hidden, ..View::new(Some("tiff"), entries) };

const FOLDER: &str = "tiff";

fn entries(layer: LayerRef<'_>) -> Vec<Entry> {
    let shown = (0..layer.levels().len()).filter(|lod| Container::of(layer.info(*lod)).is_some());
    let file = |lod| Entry::file(format!("lod{lod}.tif"), move |layer| content(layer, lod));
    let entries: Vec<Entry> = shown.map(file).collect();
    if entries.is_empty() { entries } else { vec![Entry::dir(FOLDER, entries)] }
}

fn hidden(layer: LayerRef<'_>) -> Option<(String, String)> {
    let reason = match Stack::of(layer.info(0)) {
        None => "a TIFF file is a stack of images: of two to five axes, besides up to 64 channels",
        Some(_) => "it would be longer than a file can be",
    };
    entries(layer).is_empty().then(|| (FOLDER.to_owned(), reason.to_owned()))
}

fn content(layer: LayerRef<'_>, lod: usize) -> Result<Content, FormatError> {
    let array = &layer.levels()[lod];
    let none = || FormatError::Unsupported(format!("there is no TIFF file of level {lod}"));
    file(array, array.info(), layer.name()).map(Content::Array).ok_or_else(none)
}

/// Returns the file of an array whose samples are shown as `info` says; `None` as for [`Container::of`].
pub(crate) fn file(array: &Arc<dyn Array>, info: &ArrayInfo, name: &str) -> Option<ArrayFile> {
    let container = Container::of(info)?;
    let file = ArrayFile::new(container.header(info, name), array);
    Some(file.with_tail(container.tail_bytes(), move |bytes| container.tail(bytes)))
}

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

/// The types of fields.
const ASCII: u16 = 2;
const SHORT: u16 = 3;
const LONG: u16 = 4;
const RATIONAL: u16 = 5;
const LONG8: u16 = 16;

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
    /// The type of the samples in OME-XML. It describes only what it has a type for, and only planes with a directory.
    ome_type: Option<&'static str>,
}

impl Container {
    /// Returns the file of an array; `None` if it is no stack of images, or the file would be longer than a file can
    /// be.
    fn of(info: &ArrayInfo) -> Option<Self> {
        let stack = Stack::of(info)?;
        let is_for_imagej = match stack.dtype {
            Dtype::UInt8 => stack.channels == 1 || stack.is_rgb(),
            Dtype::Int16 | Dtype::UInt16 | Dtype::Int32 | Dtype::UInt32 | Dtype::Float32 => stack.channels == 1,
            // ImageJ reads int8 as uint8, and the others not at all
            _ => false,
        };
        let fits = |number: u64| number <= u32::MAX.into();
        let big = !is_for_imagej || ![stack.width, stack.height, stack.plane_bytes()].into_iter().all(fits);
        let planes = stack.planes();
        let samples = stack.plane_bytes().checked_mul(planes)?;
        let end = SAMPLES_AT.checked_add(samples)?;
        let padding = end.checked_next_multiple_of(SAMPLES_AT)? - end;
        let ome_type = ome_type(&stack);
        let mut file = Self { stack, big, directories: planes, padding, ome_type };
        let length = file.directory_size().checked_mul(planes - 1)?.checked_add(end)?.checked_add(padding)?;
        if !big && !fits(length) {
            (file.directories, file.ome_type) = (1, None);
        }
        (length <= i64::MAX as u64).then_some(file)
    }

    /// Returns the block before the samples, with the first directory.
    pub(crate) fn header(&self, info: &ArrayInfo, name: &str) -> Vec<u8> {
        let mut header = Vec::with_capacity(SAMPLES_AT as usize);
        let (classic, big) = (b"II\x2a\0\x08\0\0\0", b"II\x2b\0\x08\0\0\0\x10\0\0\0\0\0\0\0");
        header.extend_from_slice(if self.big { big } else { classic });
        // of two descriptions programs for OME take the first, and ImageJ the last
        let ome = self.ome_type.map(|kind| ome_xml(&self.stack, info, (name, kind)));
        let texts: Vec<String> = ome.into_iter().chain([text(&self.stack, info)]).map(|text| text + "\0").collect();
        let [x, y] = resolution(&self.stack, info);
        let packed = |(above, below): (u32, u32)| u64::from(above) | u64::from(below) << 32;
        let tables = self.tables_at();
        let (resolutions_at, mut text_at) = (tables.end, tables.end + 16);
        let mut fields = self.fields(0);
        for text in &texts {
            let count = text.len() as u64;
            fields.push(Field { tag: IMAGE_DESCRIPTION, kind: ASCII, count, value: text_at });
            text_at += count;
        }
        for (tag, fraction, at) in [(X_RESOLUTION, x, resolutions_at), (Y_RESOLUTION, y, resolutions_at + 8)] {
            let value = if self.big { packed(fraction) } else { at };
            fields.push(Field { tag, kind: RATIONAL, count: 1, value });
        }
        // the unit is in the description
        fields.push(Field::short(RESOLUTION_UNIT, 1));
        fields.sort_by_key(|field| field.tag);
        write(&fields, self.next_after(0), self.big, &mut header);
        debug_assert_eq!(header.len() as u64, tables.start);
        for value in self.table_values() {
            header.extend((0..self.stack.channels).flat_map(|_| value.to_le_bytes()));
        }
        header.extend_from_slice(&packed(x).to_le_bytes());
        header.extend_from_slice(&packed(y).to_le_bytes());
        texts.iter().for_each(|text| header.extend_from_slice(text.as_bytes()));
        debug_assert!(header.len() as u64 <= SAMPLES_AT);
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
            let fits = 2 * count <= if self.big { 8 } else { 4 };
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
            Dtype::Float16 | Dtype::Float32 | Dtype::Float64 => 3,
            Dtype::Complex64 | Dtype::Complex128 => 6,
        };
        [8 * self.stack.dtype.size() as u16, format, 0]
    }

    /// Returns where the tables stand: behind the first directory, which has four or five fields more than others.
    fn tables_at(&self) -> Range<u64> {
        let header = if self.big { 16 } else { 8 };
        let start = header + size(self.field_count() + 4 + usize::from(self.ome_type.is_some()), self.big);
        start..start + 3 * 2 * self.stack.channels
    }

    fn field_count(&self) -> usize {
        let has_extra = self.stack.channels > if self.stack.is_rgb() { 3 } else { 1 };
        if has_extra { 12 } else { 11 }
    }

    /// Returns the bytes of the directory of any plane but the first.
    fn directory_size(&self) -> u64 {
        size(self.field_count(), self.big)
    }

    /// Returns the position of the directory that follows that of `plane`; 0 if there is none.
    fn next_after(&self, plane: u64) -> u64 {
        if plane + 1 >= self.directories {
            return 0;
        }
        let samples = self.stack.plane_bytes() * self.stack.planes();
        SAMPLES_AT + samples + self.padding + plane * self.directory_size()
    }

    /// Returns the bytes behind the samples: padding, and the directories of all planes but the first.
    fn tail_bytes(&self) -> u64 {
        if self.directories > 1 { self.padding + (self.directories - 1) * self.directory_size() } else { 0 }
    }

    /// Returns a range of these bytes.
    fn tail(&self, bytes: Range<u64>) -> Vec<u8> {
        let length = (bytes.end - bytes.start) as usize;
        let mut out = vec![0; self.padding.saturating_sub(bytes.start).min(length as u64) as usize];
        let size = self.directory_size();
        let at = bytes.start.max(self.padding) - self.padding;
        let mut skip = (at % size) as usize;
        for plane in at / size + 1.. {
            if out.len() >= length {
                break;
            }
            let directory = out.len();
            write(&self.fields(plane), self.next_after(plane), self.big, &mut out);
            out.drain(directory..directory + std::mem::take(&mut skip));
        }
        out.truncate(length);
        out
    }
}

/// A tag and its values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Field {
    pub tag: u16,
    pub kind: u16,
    pub count: u64,
    /// The values if they fit, packed from the lowest byte on; otherwise the position in the file where they stand.
    pub value: u64,
}

impl Field {
    /// Returns a field of one 16-bit number.
    pub(crate) fn short(tag: u16, value: u16) -> Self {
        Self { tag, kind: SHORT, count: 1, value: value.into() }
    }

    /// Returns a field of one number, of 32 bits if it fits.
    pub(crate) fn number(tag: u16, value: u64) -> Self {
        Self { tag, kind: if value > u32::MAX.into() { LONG8 } else { LONG }, count: 1, value }
    }

    /// Returns a field of one number that has as many bits as positions in the file.
    pub(crate) fn position(tag: u16, value: u64, big: bool) -> Self {
        Self { tag, kind: if big { LONG8 } else { LONG }, count: 1, value }
    }
}

/// Returns the bytes of a directory with so many fields.
pub(crate) fn size(fields: usize, big: bool) -> u64 {
    let (count, field, next) = if big { (8, 20, 8) } else { (2, 12, 4) };
    count + field * fields as u64 + next
}

/// Appends a directory. Its fields are in ascending order of their tags; `next` is the position of the next directory,
/// 0 if there is none. In classic TIFF all numbers fit 32 bits.
pub(crate) fn write(fields: &[Field], next: u64, big: bool, out: &mut Vec<u8>) {
    let (word, count) = if big { (8, 8) } else { (4, 2) };
    let mut put = |value: u64, bytes: usize| out.extend_from_slice(&value.to_le_bytes()[..bytes]);
    put(fields.len() as u64, count);
    for field in fields {
        put(field.tag.into(), 2);
        put(field.kind.into(), 2);
        put(field.count, word);
        put(field.value, word);
    }
    put(next, word);
}

/// The longest name of a unit, in characters.
const MAX_UNIT: usize = 40;

/// Returns the text that ImageJ writes into its stacks. Its axes across the planes are called frames, slices and
/// channels, slowest first; one alone is slices. It names a unit only if rows and columns have the same.
pub(crate) fn text(stack: &Stack, info: &ArrayInfo) -> String {
    let names: &[&str] = match stack.across.len() {
        0 | 1 => &["slices"],
        2 => &["frames", "slices"],
        _ => &["frames", "slices", "channels"],
    };
    let mut text = format!("ImageJ=1.54f\nimages={}\n", stack.planes());
    for (name, extent) in names.iter().zip(&stack.across).rev() {
        let _ = writeln!(text, "{name}={extent}");
    }
    if stack.across.len() > 1 {
        text += "hyperstack=true\n";
    }
    if let Some((unit, _)) = common_unit(stack, info) {
        let _ = writeln!(text, "unit={}", ascii(unit));
        if let Some((_, spacing)) = slices(stack, info).map(measured).filter(|(of_z, _)| *of_z == unit) {
            let _ = writeln!(text, "spacing={}", number(spacing));
        }
    }
    if let (Dtype::Float32, Some((min, max))) = (info.dtype, info.value_range)
        && min < max
        && (max - min).is_finite()
    {
        let _ = writeln!(text, "min={}\nmax={}", number(min), number(max));
    }
    text += "loop=false\n";
    text
}

/// Returns the axis that ImageJ calls slices.
fn slices<'a>(stack: &Stack, info: &'a ArrayInfo) -> Option<&'a Axis> {
    info.axes.get(stack.across.len().clamp(1, 2) - 1).filter(|_| !stack.across.is_empty())
}

const MICROMETER: &str = "µm";

/// Returns the unit of an axis, and its step. Lengths are in µm: Bio-Formats takes the distance of slices for that.
fn measured(axis: &Axis) -> (&str, f64) {
    let (unit, step) = (axis.unit.as_deref().unwrap_or(""), step(axis.step).abs());
    conversion(unit, MICROMETER).map_or((unit, step), |factor| (MICROMETER, rounded(step * factor)))
}

/// Returns the type that OME-XML has for the samples of a stack; `None` if it cannot describe the stack.
fn ome_type(stack: &Stack) -> Option<&'static str> {
    let has_two_kinds_of_channels = stack.channels > 1 && stack.across.len() == 3;
    match stack.dtype {
        Dtype::Int64 | Dtype::UInt64 | Dtype::Float16 => None,
        _ if has_two_kinds_of_channels => None,
        Dtype::Float32 => Some("float"),
        Dtype::Float64 => Some("double"),
        Dtype::Complex64 => Some("complex"),
        Dtype::Complex128 => Some("double-complex"),
        integer => Some(integer.name()),
    }
}

/// Returns the description of a stack as OME-XML (2016-06), with the axes across the planes as in [`text`].
pub(crate) fn ome_xml(stack: &Stack, info: &ArrayInfo, (name, kind): (&str, &str)) -> String {
    let name = name.chars().take(MAX_NAME).fold(String::new(), |name, c| match c {
        c if c.is_ascii_alphanumeric() || " _-.".contains(c) => name + c.encode_utf8(&mut [0; 4]),
        // XML has no form for these
        c if c.is_control() || matches!(c, '\u{fffe}' | '\u{ffff}') => name + " ",
        c => name + &format!("&#{};", u32::from(c)),
    });
    let across = |n: usize| stack.across.get(n).copied().unwrap_or(1);
    let [frames, depth, channels] = match stack.across.len() {
        0 | 1 => [1, across(0), 1],
        _ => [across(0), across(1), across(2)],
    };
    let [height, width] = [stack.across.len(), stack.across.len() + 1].map(|axis| info.axes.get(axis));
    let sizes = [("X", width), ("Y", height), ("Z", slices(stack, info))].map(|(axis, of)| match of.map(measured) {
        Some((MICROMETER, step)) => format!(" PhysicalSize{axis}=\"{}\"", number(step)),
        _ => String::new(),
    });
    let channel = match stack.channels {
        1 => String::new(),
        samples => format!("<Channel ID=\"Channel:0:0\" SamplesPerPixel=\"{samples}\"/>"),
    };
    format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<OME xmlns=\"{OME}\" \
        xmlns:xsi=\"http://www.w3.org/2001/XMLSchema-instance\" xsi:schemaLocation=\"{OME} {OME}/ome.xsd\">\
        <Image ID=\"Image:0\" Name=\"{name}\"><Pixels ID=\"Pixels:0\" DimensionOrder=\"XYCZT\" Type=\"{kind}\" \
        SizeX=\"{}\" SizeY=\"{}\" SizeZ=\"{depth}\" SizeC=\"{}\" SizeT=\"{frames}\"{} BigEndian=\"false\">\
        {channel}<TiffData/></Pixels></Image></OME>",
        stack.width,
        stack.height,
        channels * stack.channels,
        sizes.concat(),
    )
}

const OME: &str = "http://www.openmicroscopy.org/Schemas/OME/2016-06";

/// The longest name of an image, in characters.
const MAX_NAME: usize = 80;

/// Returns pixels per unit along a row and along a column, as numerator and denominator; ones if these have no common
/// unit.
pub(crate) fn resolution(stack: &Stack, info: &ArrayInfo) -> [(u32, u32); 2] {
    let pixels = |axis: &Axis| rational(1.0 / measured(axis).1);
    common_unit(stack, info).map_or([(1, 1); 2], |(_, axes)| axes.map(pixels))
}

/// Returns the unit that rows and columns have in common, and their axes, that along a row first.
fn common_unit<'a>(stack: &Stack, info: &'a ArrayInfo) -> Option<(&'a str, [&'a Axis; 2])> {
    let [.., y, x] = info.axes.get(..stack.across.len() + 2)? else { return None };
    let (unit, _) = measured(x);
    (!unit.is_empty() && unit == measured(y).0).then_some((unit, [x, y]))
}

/// Returns a unit as ImageJ writes it: short, and in ASCII.
fn ascii(unit: &str) -> String {
    let mut text = String::new();
    for c in unit.chars().take(MAX_UNIT).map(|c| if c.is_control() { ' ' } else { c }) {
        if c.is_ascii() {
            text.push(c);
        } else {
            for code in c.encode_utf16(&mut [0; 2]) {
                let _ = write!(text, "\\u{code:04X}");
            }
        }
    }
    text
}

/// Returns a fraction that is near to a positive number, by continued fractions; neither part is 0.
fn rational(value: f64) -> (u32, u32) {
    let (mut above, mut below) = ((0u64, 1u64), (1u64, 0u64));
    let mut rest = value;
    for _ in 0..32 {
        // casts of floats saturate
        let whole = rest.floor() as u64;
        let next = |(old, new): (u64, u64)| whole.checked_mul(new)?.checked_add(old);
        let (Some(a), Some(b)) = (next(above), next(below)) else { break };
        if a > u32::MAX.into() || b > u32::MAX.into() {
            break;
        }
        (above, below) = ((above.1, a), (below.1, b));
        let exact = a as f64 / b as f64;
        if (exact - value).abs() <= value * 1e-14 {
            break;
        }
        rest = 1.0 / (rest - rest.floor());
        if !rest.is_finite() {
            break;
        }
    }
    let clamped = |n: u64| u32::try_from(n).unwrap_or(u32::MAX).max(1);
    match (above.1, below.1) {
        // larger than any 32-bit fraction
        (_, 0) => (u32::MAX, 1),
        (a, b) => (clamped(a), if a == 0 { u32::MAX } else { clamped(b) }),
    }
}

#[cfg(test)]
mod container_tests {
    use proptest::prelude::*;

    use super::*;
    use crate::test_support::DTYPES;
    use crate::view::tests::zeros;

    fn info(shape: &[u64], dtype: Dtype, channels: bool) -> ArrayInfo {
        let mut info = zeros(shape, dtype).info().clone();
        info.axes.last_mut().unwrap().spatial = !channels;
        info
    }

    fn file(info: &ArrayInfo) -> Container {
        Container::of(info).unwrap()
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
        let mut bytes = container.header(info, "a");
        assert_eq!(bytes.len() as u64, SAMPLES_AT);
        bytes.resize(bytes.len() + samples, 0);
        bytes.extend(container.tail(0..container.tail_bytes()));
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
                let format = ["uint", "int", "float", "complex"].iter().position(|kind| dtype.name().starts_with(kind));
                is(SAMPLE_FORMAT, &each([1, 2, 3, 6][format.unwrap()]));
                is(PHOTOMETRIC, &[if rgb { 2 } else { 1 }]);
                is(EXTRA_SAMPLES, &vec![0; channels as usize - if rgb { 3 } else { 1 }]);
                is(SAMPLES_PER_PIXEL, &[channels]);
                is(STRIP_OFFSETS, &[SAMPLES_AT + number * plane]);
                is(STRIP_BYTE_COUNTS, &[plane]);
                is(ROWS_PER_STRIP, &[5]);
                assert_eq!(values(directory, IMAGE_DESCRIPTION).is_empty(), number > 0);
            }
            let texts = found[0].iter().filter(|(tag, _)| *tag == IMAGE_DESCRIPTION);
            let text: Vec<u8> = texts.flat_map(|(_, text)| text).map(|byte| *byte as u8).collect();
            let text = String::from_utf8(text).unwrap();
            let (ome, imagej) = text.split_at(text.find("ImageJ=").unwrap());
            assert!(imagej.starts_with("ImageJ=1.54f\nimages=4\nslices=4\n") && imagej.ends_with("loop=false\n\0"));
            assert_eq!(ome.is_empty(), matches!(dtype, Dtype::Int64 | Dtype::UInt64 | Dtype::Float16), "{dtype}");
            assert!(ome.is_empty() || ome.starts_with("<?xml") && ome.ends_with("</OME>\0"), "{ome}");
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
        assert_eq!((fits.tail_bytes() > 0, beyond.tail_bytes()), (true, 0));
        assert_eq!(beyond.next_after(0), 0);
        let planes = [of(&[2, 1 << 16, (1 << 16) - 1], Dtype::UInt8), of(&[2, 1 << 16, 1 << 16], Dtype::UInt8)];
        assert_eq!(planes.map(|file| file.big), [false, true]);
        let wide = of(&[2, 1, 1 << 33], Dtype::UInt8);
        assert!(wide.big && wide.fields(1).contains(&Field { tag: IMAGE_WIDTH, kind: 16, count: 1, value: 1 << 33 }));
        let long = info(&[1 << 60, 1, 1], Dtype::UInt8, false);
        assert!(Stack::of(&long).is_some() && Container::of(&long).is_none());
    }

    #[test]
    fn a_stack_of_any_number_of_planes_costs_no_memory() {
        let planes = 1 << 50;
        let container = file(&info(&[planes, 2, 2], Dtype::Float64, false));
        let end = container.tail_bytes();
        let last = container.tail(end - container.directory_size()..end);
        assert_eq!(number(&last, last.len() - 8, 8), 0);
        // the seventh field
        assert_eq!(number(&last, 8 + 6 * 20, 2), u64::from(STRIP_OFFSETS));
        assert_eq!(number(&last, 8 + 6 * 20 + 12, 8), SAMPLES_AT + 32 * (planes - 1));
    }

    proptest! {
        #[test]
        fn every_part_of_the_tail_equals_that_of_the_whole(
            planes in 1u64..60, width in 1u64..40, dtype in 0usize..13, from in 0u64..9000, count in 0u64..9000,
        ) {
            let info = info(&[planes, 3, width], DTYPES[dtype], false);
            let container = file(&info);
            let bytes = whole(&info);
            let tail = &bytes[bytes.len() - container.tail_bytes() as usize..];
            let start = from.min(container.tail_bytes());
            let end = (start + count).min(container.tail_bytes());
            prop_assert_eq!(&container.tail(start..end)[..], &tail[start as usize..end as usize]);
            prop_assert_eq!(directories(&bytes).len() as u64, planes);
        }
    }
}

#[cfg(test)]
mod directory_tests {
    use super::*;

    #[test]
    fn numbers_take_32_bits_if_they_fit() {
        let kinds = [0, u32::MAX.into(), u64::from(u32::MAX) + 1].map(|value| Field::number(256, value).kind);
        assert_eq!(kinds, [LONG, LONG, LONG8]);
    }

    #[test]
    fn directories_have_the_size_that_is_computed() {
        let fields = [Field::short(254, 0), Field::number(256, 1 << 33), Field::position(273, 7, true)];
        for (big, expected) in [(true, 76), (false, 42)] {
            let mut out = Vec::new();
            write(&fields, 9, big, &mut out);
            assert_eq!((out.len() as u64, size(3, big)), (expected, expected));
        }
        let mut out = Vec::new();
        write(&fields[..1], 9, false, &mut out);
        assert_eq!(out, [1, 0, 254, 0, 3, 0, 1, 0, 0, 0, 0, 0, 0, 0, 9, 0, 0, 0]);
        assert_eq!(fields.map(|field| field.kind), [3, 16, 16]);
    }
}

#[cfg(test)]
mod description_tests {
    use super::*;
    use crate::view::tests::zeros;

    fn described(shape: &[u64], unit: impl Fn(usize) -> Option<&'static str>) -> (String, [(u32, u32); 2]) {
        let mut info = zeros(shape, Dtype::UInt16).info().clone();
        for (number, axis) in info.axes.iter_mut().enumerate() {
            axis.unit = unit(number).map(str::to_owned);
        }
        let stack = Stack::of(&info).unwrap();
        (text(&stack, &info), resolution(&stack, &info))
    }

    #[test]
    fn a_volume_is_described_as_imagej_does() {
        let (text, resolution) = described(&[40, 50, 70], |_| Some("micrometer"));
        let expected = "ImageJ=1.54f\nimages=40\nslices=40\nunit=\\u00B5m\nspacing=2\nloop=false\n";
        assert_eq!((text.as_str(), resolution), (expected, [(1, 4), (1, 3)]));
    }

    #[test]
    fn lengths_are_in_micrometers() {
        let (text, resolution) = described(&[40, 50, 70], |axis| Some(["nm", "nanometer", "mm"][axis]));
        let expected = "ImageJ=1.54f\nimages=40\nslices=40\nunit=\\u00B5m\nspacing=0.002\nloop=false\n";
        assert_eq!((text.as_str(), resolution), (expected, [(1, 4000), (1000, 3)]));
    }

    #[test]
    fn ome_has_the_same_axes() {
        let xml = |shape: &[u64], last_spatial: bool, unit: Option<&str>, name: &str| {
            let mut info = zeros(shape, Dtype::UInt8).info().clone();
            info.axes.iter_mut().for_each(|axis| axis.unit = unit.map(str::to_owned));
            info.axes.last_mut().unwrap().spatial = last_spatial;
            ome_xml(&Stack::of(&info).unwrap(), &info, (name, "uint8"))
        };
        let has =
            |xml: &str, parts: &[&str]| parts.iter().for_each(|part| assert!(xml.contains(part), "{part}: {xml}"));
        let sizes = [r#"SizeX="7" SizeY="6" SizeZ="5" SizeC="1" SizeT="1""#];
        let volume = xml(&[5, 6, 7], true, Some("nm"), "<a & \u{e4}>\n");
        has(&volume, &sizes);
        has(&volume, &[r#"PhysicalSizeX="0.004" PhysicalSizeY="0.003" PhysicalSizeZ="0.002""#]);
        has(&volume, &[r#"Name="&#60;a &#38; &#228;&#62; ""#]);
        assert!(!xml(&[5, 6, 7], true, Some("ms"), "a").contains("Physical"));
        has(&xml(&[5, 6, 7, 3], false, None, "a"), &[r#"SizeZ="5" SizeC="3" SizeT="1""#, r#"SamplesPerPixel="3""#]);
        has(&xml(&[2, 3, 4, 6, 7], true, None, "a"), &[r#"SizeZ="3" SizeC="4" SizeT="2""#]);
        let longest = "\u{10ffff}".repeat(200);
        let mut info = zeros(&[2, 3, 64], Dtype::Float64).info().clone();
        info.axes[2].spatial = false;
        assert_eq!(Container::of(&info).unwrap().header(&info, &longest).len() as u64, SAMPLES_AT);
    }

    #[test]
    fn axes_of_different_kinds_have_no_common_unit() {
        let (text, resolution) = described(&[40, 50, 70], |axis| (axis == 2).then_some("ms"));
        assert_eq!(text, "ImageJ=1.54f\nimages=40\nslices=40\nloop=false\n");
        assert_eq!(resolution, [(1, 1), (1, 1)]);
        let (text, _) = described(&[40, 50, 70], |axis| (axis > 0).then_some("nm"));
        assert_eq!(text, "ImageJ=1.54f\nimages=40\nslices=40\nunit=\\u00B5m\nloop=false\n");
    }

    #[test]
    fn more_axes_are_a_hyperstack() {
        let (text, _) = described(&[2, 3, 5, 7], |_| None);
        assert_eq!(text, "ImageJ=1.54f\nimages=6\nslices=3\nframes=2\nhyperstack=true\nloop=false\n");
        let (text, _) = described(&[2, 3, 4, 5, 7], |_| None);
        assert_eq!(text, "ImageJ=1.54f\nimages=24\nchannels=4\nslices=3\nframes=2\nhyperstack=true\nloop=false\n");
        let (text, _) = described(&[5, 7], |_| None);
        assert_eq!(text, "ImageJ=1.54f\nimages=1\nloop=false\n");
    }

    #[test]
    fn floats_have_a_range_of_display() {
        let mut info = zeros(&[2, 5, 7], Dtype::Float32).info().clone();
        info.value_range = Some((-0.5, 4000.0));
        assert!(text(&Stack::of(&info).unwrap(), &info).contains("\nmin=-0.5\nmax=4000\n"));
    }

    #[test]
    fn fractions_are_exact_where_they_can_be() {
        assert_eq!(rational(1.0 / 11.24), (25, 281));
        assert_eq!(rational(0.25), (1, 4));
        assert_eq!(rational(3.0), (3, 1));
        for value in [std::f64::consts::PI, 1e-7, 123_456.789, 1.0 / 3.0] {
            let (above, below) = rational(value);
            assert!((f64::from(above) / f64::from(below) / value - 1.0).abs() < 1e-8, "{value} {above} {below}");
        }
        assert_eq!(rational(1e30), (u32::MAX, 1));
        assert_eq!(rational(1e-30), (1, u32::MAX));
    }
}
