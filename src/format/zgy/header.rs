//! Finds, checks and reads the parts of the header. The order of the checks decides which error a damaged file gives.

use super::table::{Levels, swap_halves};
use crate::format::FormatError;
use crate::format::bytes::{ByteReader, read_bytes, truncated};
use crate::format::extents::Part;
use crate::source::{Source, SourceError, WHOLE};
use crate::volume::{Dtype, Histogram, Statistics};

/// Bytes of the histogram of version 1, and of the later versions.
const HISTOGRAM_V1: u64 = 1032;
const HISTOGRAM_V2: u64 = 2064;
/// Where the offsets of the parts of version 1 end.
const OFFSETS_V1_END: u64 = 40;
/// Where the info header of the later versions begins.
const INFO_V2: u64 = 9;
/// At most this much of the string list is read: only its first five strings are used.
const STRINGS: u64 = 64 << 10;

/// The first bytes of a ZGY file, and of its predecessor, a compressed format that is not published.
pub(super) const MAGIC: [u8; 4] = *b"VBS\0";
pub(super) const OLD_MAGIC: [u8; 4] = *b"VCS\0";

/// The header of a file of any version.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Header {
    pub version: u32,
    pub info: Info,
    /// The name and the description of the source, and the coordinate system.
    pub text: [String; 3],
    pub histogram: Histogram,
    pub levels: Levels,
    /// Offset of the alpha table, which lies within the file.
    pub alpha: u64,
    /// Offset of the brick table, which lies within the file.
    pub table: u64,
    /// The parts before the bricks.
    pub parts: Vec<Part>,
    pub file_bytes: u64,
}

impl Header {
    /// Reads and checks the header.
    pub(super) fn read(source: &dyn Source) -> Result<Self, FormatError> {
        let length = source.len(WHOLE)?.unwrap_or(0);
        let file = File { source, length };
        if length < 8 {
            return Err(FormatError::NotThisFormat("not a ZGY file (too short)".into()));
        }
        let head = file.read("file header", 0, 8)?;
        let mut fields = ByteReader::new("file header", &head);
        match fields.bytes()? {
            MAGIC => {}
            OLD_MAGIC => return Err(FormatError::Unsupported("old compressed ZGY is not supported".into())),
            _ => return Err(FormatError::NotThisFormat("not a ZGY file".into())),
        }
        match fields.u32()? {
            1 => file.version_1(),
            version @ 2..=4 => file.later_version(version),
            version => Err(FormatError::Unsupported(format!("unsupported ZGY version {version}"))),
        }
    }
}

/// A file and its length, against which every offset is checked before it is used.
struct File<'a> {
    source: &'a dyn Source,
    length: u64,
}

impl File<'_> {
    fn read(&self, part: &str, offset: u64, length: u64) -> Result<Vec<u8>, FormatError> {
        self.check_part(part, offset, length)?;
        Ok(read_bytes(self.source, WHOLE, offset, length)?.ok_or(SourceError::Changed)?)
    }

    /// Reads the header of version 1, whose parts are at the offsets that follow the version number.
    fn version_1(&self) -> Result<Header, FormatError> {
        let offsets = self.read("offset header", 8, 32)?;
        let mut fields = ByteReader::new("offset header", &offsets);
        let mut offset_of = |part: &str, length: u64| {
            let offset = swap_halves(fields.u64()?);
            let outside = || FormatError::Damaged(format!("damaged: offset of the {part} outside the file"));
            self.check_part(part, offset, length).map_err(|_| outside())?;
            Ok::<_, FormatError>(offset)
        };
        let at = offset_of(INFO, LENGTH_V1)?;
        // the lengths of the tables follow from the info header; both have at least one entry
        let alpha = offset_of("alpha table", 8)?;
        let table = offset_of("brick table", 8)?;
        let histogram_at = offset_of("histogram", HISTOGRAM_V1)?;

        let histogram = histogram_v1(&self.read("histogram", histogram_at, HISTOGRAM_V1)?)?;
        let info = Info::v1(&self.read(INFO, at, LENGTH_V1)?, &histogram)?;
        // no file is long enough for tables whose size overflows
        let levels = Levels::new(info.size, info.brick).ok_or_else(|| truncated("alpha table"))?;
        self.check_part("alpha table", alpha, levels.alpha_entries.saturating_mul(8))?;
        self.check_part("brick table", table, levels.entries.saturating_mul(8))?;
        let parts = vec![
            ("the file header".into(), 0, OFFSETS_V1_END),
            ("the info header".into(), at, LENGTH_V1),
            ("the histogram".into(), histogram_at, HISTOGRAM_V1),
            ("the alpha table".into(), alpha, levels.alpha_entries * 8),
            ("the brick table".into(), table, levels.entries * 8),
        ];
        let (text, file_bytes) = (Default::default(), self.length);
        Ok(Header { version: 1, info, text, histogram, levels, alpha, table, parts, file_bytes })
    }

    /// Reads the header of versions 2 to 4, whose parts follow each other.
    fn later_version(&self, version: u32) -> Result<Header, FormatError> {
        let bytes = self.read(INFO, INFO_V2, LENGTH_V2)?;
        let (mut info, strings) = Info::v2(&bytes)?;
        // no file is long enough for tables whose size overflows
        let levels = Levels::new(info.size, info.brick).ok_or_else(|| truncated("alpha table"))?;

        let strings_at = INFO_V2 + LENGTH_V2;
        let histogram_at = self.check_part("string list", strings_at, strings.into())?;
        let alpha = self.check_part("histogram", histogram_at, HISTOGRAM_V2)?;
        let table = self.check_part("alpha table", alpha, levels.alpha_entries.saturating_mul(8))?;
        self.check_part("brick table", table, levels.entries.saturating_mul(8))?;

        let strings = self.read("string list", strings_at, u64::from(strings).min(STRINGS))?;
        let [source_name, source_description, system, horizontal, vertical] = five_strings(&strings);
        (info.horizontal.name, info.vertical.name) = (horizontal, vertical);
        let histogram = histogram_v2(&self.read("histogram", histogram_at, HISTOGRAM_V2)?)?;
        let text = [source_name, source_description, system];
        let parts = vec![("the header".into(), 0, table + 8 * levels.entries)];
        Ok(Header { version, info, text, histogram, levels, alpha, table, parts, file_bytes: self.length })
    }

    /// Returns the end of a part, which must lie within the file.
    fn check_part(&self, part: &str, offset: u64, length: u64) -> Result<u64, FormatError> {
        let end = offset.checked_add(length).filter(|end| *end <= self.length);
        end.ok_or_else(|| truncated(part))
    }
}

/// Returns the first five strings of the list. Missing ones are empty.
fn five_strings(list: &[u8]) -> [String; 5] {
    let mut strings = list.split(|byte| *byte == 0).map(|text| String::from_utf8_lossy(text).into_owned());
    [(); 5].map(|()| strings.next().unwrap_or_default())
}

/// Reads the histogram of version 1. The maximum comes first, and the number of samples is the sum of the bins.
fn histogram_v1(bytes: &[u8]) -> Result<Histogram, FormatError> {
    let mut fields = ByteReader::new("histogram", bytes);
    let (max, min) = (fields.f32()?.into(), fields.f32()?.into());
    let bins: Vec<i64> = (0..256).map(|_| fields.u32().map(i64::from)).collect::<Result<_, _>>()?;
    Ok(Histogram { count: bins.iter().sum(), min, max, bins })
}

fn histogram_v2(bytes: &[u8]) -> Result<Histogram, FormatError> {
    let mut fields = ByteReader::new("histogram", bytes);
    let (count, min, max) = (fields.i64()?, fields.f32()?.into(), fields.f32()?.into());
    let bins = (0..256).map(|_| fields.i64()).collect::<Result<_, _>>()?;
    Ok(Histogram { count, min, max, bins })
}

/// Bytes of the info header of version 1, and of the later versions.
const LENGTH_V1: u64 = 146;
const LENGTH_V2: u64 = 337;
/// Its name in errors.
const INFO: &str = "info header";
/// The largest brick that is accepted, in bytes.
const BRICK_BYTES: u64 = 2 << 30;

/// The fields of the info header. Those that arrays depend on are checked.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Info {
    pub size: [u64; 3],
    pub brick: [u64; 3],
    pub dtype: Dtype,
    pub code: u8,
    /// Values of the least and the greatest storage value, as in the file.
    pub coding_range: [f64; 2],
    /// dataid, verid, previd.
    pub ids: [[u8; 16]; 3],
    /// First inline number, crossline number and vertical position; `inc` has their steps.
    pub orig: [f64; 3],
    pub inc: [f64; 3],
    pub statistics: Statistics,
    pub points: [ControlPoint; 4],
    /// Units without their names, which are in the string list.
    pub horizontal: Unit,
    pub vertical: Unit,
}

impl Info {
    /// Reads the fields of version 1, which has neither coding range nor statistics: those of the histogram are used.
    pub(super) fn v1(bytes: &[u8], histogram: &Histogram) -> Result<Self, FormatError> {
        let mut fields = ByteReader::new(INFO, bytes);
        let size = fields.several(ByteReader::i32)?;
        let (orig, inc) =
            (fields.several(ByteReader::i32)?.map(f64::from), fields.several(ByteReader::i32)?.map(f64::from));
        fields.take(12)?; // incfactor
        let (inlines, crosslines) =
            (fields.several(ByteReader::i32)?.map(f64::from), fields.several(ByteReader::i32)?.map(f64::from));
        let (x, y) = (fields.several(ByteReader::f64)?, fields.several(ByteReader::f64)?);
        let code = fields.u8()?;
        let coordinate_type = fields.u8()?;

        let dtype = dtype_of(code)?;
        let brick = [64; 3];
        Ok(Self {
            size: survey_size(size, dtype)?,
            brick,
            dtype,
            code,
            coding_range: [histogram.min, histogram.max],
            ids: Default::default(),
            orig,
            inc,
            statistics: Statistics { min: histogram.min, max: histogram.max, ..Statistics::default() },
            points: control_points(inlines, crosslines, x, y),
            horizontal: Unit::from_coordinate_type(coordinate_type),
            vertical: Unit::unknown(),
        })
    }

    /// Reads the fields of versions 2 to 4, and the length of the string list.
    pub(super) fn v2(bytes: &[u8]) -> Result<(Self, u32), FormatError> {
        let mut fields = ByteReader::new(INFO, bytes);
        let brick = fields.several(ByteReader::i32)?;
        let code = fields.u8()?;
        let coding_range = fields.several(ByteReader::f32)?.map(f64::from);
        let ids = fields.several(ByteReader::bytes)?;
        fields.take(1)?; // srctype
        let (orig, inc) =
            (fields.several(ByteReader::f32)?.map(f64::from), fields.several(ByteReader::f32)?.map(f64::from));
        let size = fields.several(ByteReader::i32)?;
        fields.take(24)?; // curorig, cursize
        let statistics = Statistics {
            count: Some(fields.i64()?),
            sum: Some(fields.f64()?),
            sum_of_squares: Some(fields.f64()?),
            min: fields.f32()?.into(),
            max: fields.f32()?.into(),
        };
        fields.take(24 + 1 + 32)?; // srvorig, srvsize, gdef, gazim, gbinsz
        let (inlines, crosslines) =
            (fields.several(ByteReader::f32)?.map(f64::from), fields.several(ByteReader::f32)?.map(f64::from));
        let (x, y) = (fields.several(ByteReader::f64)?, fields.several(ByteReader::f64)?);
        let horizontal = unit(&mut fields, 2)?;
        let vertical = unit(&mut fields, 3)?;
        let strings = fields.u32()?;

        let dtype = dtype_of(code)?;
        let info = Self {
            brick: brick_size(brick, dtype)?,
            size: survey_size(size, dtype)?,
            dtype,
            code,
            coding_range,
            ids,
            orig,
            inc,
            statistics,
            points: control_points(inlines, crosslines, x, y),
            horizontal,
            vertical,
        };
        Ok((info, strings))
    }
}

/// Reads the dimension and the factor of a unit. A dimension above `known` counts as unknown.
fn unit(fields: &mut ByteReader<'_>, known: u8) -> Result<Unit, FormatError> {
    let dimension = fields.u8()?;
    let factor = fields.f64()?;
    Ok(Unit { dimension: if dimension <= known { dimension } else { 0 }, name: String::new(), factor })
}

fn control_points(inlines: [f64; 4], crosslines: [f64; 4], x: [f64; 4], y: [f64; 4]) -> [ControlPoint; 4] {
    [0, 1, 2, 3].map(|n: usize| ControlPoint { annotation: [inlines[n], crosslines[n]], world: [x[n], y[n]] })
}

fn brick_size(stored: [i32; 3], dtype: Dtype) -> Result<[u64; 3], FormatError> {
    checked_size("brick", stored, dtype, BRICK_BYTES, |n| n >= 4 && n.is_power_of_two())
}

fn survey_size(stored: [i32; 3], dtype: Dtype) -> Result<[u64; 3], FormatError> {
    checked_size("survey", stored, dtype, i64::MAX as u64, |n| n > 0)
}

/// Returns a size in samples if each side is valid and all samples have at most `most` bytes.
fn checked_size(
    what: &str,
    stored: [i32; 3],
    dtype: Dtype,
    most: u64,
    is_side: impl Fn(u64) -> bool,
) -> Result<[u64; 3], FormatError> {
    let size = stored.map(|n| u64::try_from(n).unwrap_or(0));
    let bytes = size.iter().try_fold(dtype.size() as u64, |bytes, n| bytes.checked_mul(*n));
    if size.iter().all(|n| is_side(*n)) && bytes.is_some_and(|bytes| bytes <= most) {
        return Ok(size);
    }
    let [i, j, k] = stored;
    Err(FormatError::Damaged(format!("damaged: {what} size {i} x {j} x {k}")))
}

/// Returns the sample type of a code in the header.
pub(super) fn dtype_of(code: u8) -> Result<Dtype, FormatError> {
    use Dtype::{Float32, Int8, Int16, Int32, UInt8, UInt16, UInt32};
    let known = [Int8, UInt8, Int16, UInt16, Int32, UInt32, Float32].get(usize::from(code)).copied();
    let name = if code == 7 { " (IBM float)" } else { "" };
    known.ok_or_else(|| FormatError::Unsupported(format!("unsupported sample type {code}{name}")))
}

/// A unit, as in the file.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Unit {
    /// The dimension's code: 1 length, 2 angle for horizontal units; 1 depth, 2 two-way time, 3 one-way time for
    /// vertical ones; 0 unknown.
    pub dimension: u8,
    pub name: String,
    /// The factor to SI units, as in the file.
    pub factor: f64,
}

impl Unit {
    pub(super) fn unknown() -> Self {
        Self { dimension: 0, name: String::new(), factor: 1.0 }
    }

    /// Returns the horizontal unit of a coordinate type of version 1. The factors of angles are those of OpenZGY's
    /// Python library; the C++ library exchanges them, and neither are SI units.
    pub(super) fn from_coordinate_type(code: u8) -> Self {
        let (dimension, name, factor) = match code {
            1 => (1, "m", 1.0),
            2 => (1, "ft", 0.3048),
            3 => (2, "arcsec", 1.0),
            4 => (2, "deg", 3600.0),
            5 => (0, "DMS", 1.0),
            _ => return Self::unknown(),
        };
        Self { dimension, name: name.into(), factor }
    }

    pub(super) fn usable_factor(&self) -> Option<f64> {
        Some(self.factor).filter(|factor| factor.is_finite() && *factor > 0.0)
    }

    /// Returns the name of the dimension; `kinds` has the names by their codes.
    pub(super) fn kind(&self, kinds: &[&'static str]) -> &'static str {
        kinds.get(usize::from(self.dimension)).copied().unwrap_or("unknown")
    }
}

/// Returns a copy of the text, or `None` if it is empty.
pub(super) fn some_text(text: &str) -> Option<String> {
    (!text.is_empty()).then(|| text.to_owned())
}

/// Returns the text of an identifier (UUID). In the file its first three groups are little-endian.
pub(super) fn uuid([a, b, c, d, e, f, g, h, rest @ ..]: [u8; 16]) -> String {
    let (first, second, third) =
        (u32::from_le_bytes([a, b, c, d]), u16::from_le_bytes([e, f]), u16::from_le_bytes([g, h]));
    let rest = u64::from_be_bytes(rest);
    format!("{first:08x}-{second:04x}-{third:04x}-{:04x}-{:012x}", rest >> 48, rest & 0xffff_ffff_ffff)
}

/// A point with known annotation and world position.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct ControlPoint {
    /// Inline number, crossline number.
    pub annotation: [f64; 2],
    pub world: [f64; 2],
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_may_be_missing_open_or_too_many() {
        let of = |list: &[u8]| five_strings(list).join("|");
        assert_eq!(of(b"a\0b\0c\0m\0ms\0sixth\0"), "a|b|c|m|ms");
        assert_eq!(of(b"a\0b\0c\0d\0e"), "a|b|c|d|e");
        assert_eq!(of(b"only\0two\0"), "only|two|||");
        assert_eq!(of(b""), "||||");
        assert_eq!(of(b"\xc5sgard\0"), "\u{fffd}sgard||||");
    }

    #[test]
    fn the_histogram_of_version_1_begins_with_the_maximum() {
        let mut bytes = [2f32.to_le_bytes(), (-1f32).to_le_bytes()].concat();
        bytes.extend([7, 0, 0, 0].repeat(256));
        let histogram = histogram_v1(&bytes).unwrap();
        assert_eq!((histogram.min, histogram.max, histogram.count), (-1.0, 2.0, 7 * 256));
    }

    #[test]
    fn brick_sizes_are_powers_of_two_within_reason() {
        assert_eq!(brick_size([4, 64, 1024], Dtype::Float32), Ok([4, 64, 1024]));
        assert_eq!(brick_size([512, 1024, 1024], Dtype::Float32), Ok([512, 1024, 1024]));
        for bad in [[0, 64, 64], [64, -64, 64], [64, 64, 60], [2, 64, 64], [1024; 3], [1 << 30; 3]] {
            assert!(brick_size(bad, Dtype::Float32).is_err(), "{bad:?}");
        }
        let text = brick_size([64, -64, 64], Dtype::Int8).unwrap_err().to_string();
        assert_eq!(text, "damaged: brick size 64 x -64 x 64");
    }

    #[test]
    fn survey_sizes_are_positive_and_countable() {
        assert_eq!(survey_size([1, i32::MAX, i32::MAX], Dtype::Int8), Ok([1, 0x7fff_ffff, 0x7fff_ffff]));
        for bad in [[0, 1, 1], [1, -1, 1], [i32::MAX; 3], [2, i32::MAX, i32::MAX]] {
            assert!(survey_size(bad, Dtype::Int16).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn types_beyond_float32_are_refused() {
        assert_eq!(dtype_of(6), Ok(Dtype::Float32));
        assert_eq!(dtype_of(9), Err(FormatError::Unsupported("unsupported sample type 9".into())));
        assert!(dtype_of(7).is_err());
    }

    #[test]
    fn version_1_numbers_have_their_halves_exchanged() {
        assert_eq!([1 << 32, 0x8000_0002 | 3 << 32].map(swap_halves), [1, 0x8000_0002_0000_0003]);
    }
}
