//! Finds, checks and reads the parts of the header. The order of the checks decides which error a damaged file gives.

use super::info::{self, Info};
use super::levels::Levels;
use super::swapped::swapped_u64;
use crate::format::FormatError;
use crate::format::byte_reader::{ByteReader, truncated};
use crate::memory::try_zeroed;
use crate::source::{Blocking, Source, SourceError, WHOLE};
use crate::volume::Histogram;

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
    pub text: Text,
    pub histogram: Histogram,
    pub levels: Levels,
    /// Offset of the alpha table, which lies within the file.
    pub alpha: u64,
    /// Offset of the brick table, which lies within the file.
    pub table: u64,
    /// The parts before the bricks: name, offset and length.
    pub parts: Vec<(&'static str, u64, u64)>,
    /// Bytes of the file.
    pub file_bytes: u64,
}

/// The strings of the string list, except for the names of units.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Text {
    pub source_name: String,
    pub source_description: String,
    pub coordinate_system: String,
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
    /// Returns whether the file has `length` bytes from `offset` on.
    fn holds(&self, offset: u64, length: u64) -> bool {
        offset.checked_add(length).is_some_and(|end| end <= self.length)
    }

    fn read(&self, part: &str, offset: u64, length: u64) -> Result<Vec<u8>, FormatError> {
        if !self.holds(offset, length) {
            return Err(truncated(part));
        }
        let mut bytes = try_zeroed(usize::try_from(length).map_err(|_| truncated(part))?)?;
        match self.source.read_at(WHOLE, offset, &mut bytes, Blocking::Yes)? {
            true => Ok(bytes),
            false => Err(SourceError::Changed.into()),
        }
    }

    /// Reads the header of version 1, whose parts are at the offsets that follow the version number.
    fn version_1(&self) -> Result<Header, FormatError> {
        let offsets = self.read("offset header", 8, 32)?;
        let mut fields = ByteReader::new("offset header", &offsets);
        let mut offset_of = |part: &str, length: u64| {
            let offset = swapped_u64(&mut fields)?;
            let outside = || FormatError::Damaged(format!("damaged: offset of the {part} outside the file"));
            self.holds(offset, length).then_some(offset).ok_or_else(outside)
        };
        let at = offset_of(info::PART, info::LENGTH_V1)?;
        // the lengths of the tables follow from the info header; both have at least one entry
        let alpha = offset_of("alpha table", 8)?;
        let table = offset_of("brick table", 8)?;
        let histogram_at = offset_of("histogram", HISTOGRAM_V1)?;

        let histogram = histogram_v1(&self.read("histogram", histogram_at, HISTOGRAM_V1)?)?;
        let info = Info::v1(&self.read(info::PART, at, info::LENGTH_V1)?, &histogram)?;
        let levels = self.levels(&info)?;
        self.check_table("alpha table", alpha, levels.alpha_entries)?;
        self.check_table("brick table", table, levels.entries)?;
        let parts = vec![
            ("file header", 0, OFFSETS_V1_END),
            (info::PART, at, info::LENGTH_V1),
            ("histogram", histogram_at, HISTOGRAM_V1),
            ("alpha table", alpha, levels.alpha_entries * 8),
            ("brick table", table, levels.entries * 8),
        ];
        let (text, file_bytes) = (Text::default(), self.length);
        Ok(Header { version: 1, info, text, histogram, levels, alpha, table, parts, file_bytes })
    }

    /// Reads the header of versions 2 to 4, whose parts follow each other.
    fn later_version(&self, version: u32) -> Result<Header, FormatError> {
        let bytes = self.read(info::PART, INFO_V2, info::LENGTH_V2)?;
        let (mut info, strings) = Info::v2(&bytes)?;
        let levels = self.levels(&info)?;

        let strings_at = INFO_V2 + info::LENGTH_V2;
        let histogram_at = self.check_part("string list", strings_at, strings.into())?;
        let alpha = self.check_part("histogram", histogram_at, HISTOGRAM_V2)?;
        let table = self.check_table("alpha table", alpha, levels.alpha_entries)?;
        self.check_table("brick table", table, levels.entries)?;

        let strings = self.read("string list", strings_at, u64::from(strings).min(STRINGS))?;
        let [source_name, source_description, coordinate_system, horizontal, vertical] = five_strings(&strings);
        info.units.horizontal.name = horizontal;
        info.units.vertical.name = vertical;
        let histogram = histogram_v2(&self.read("histogram", histogram_at, HISTOGRAM_V2)?)?;
        let text = Text { source_name, source_description, coordinate_system };
        let parts = vec![("header", 0, table + 8 * levels.entries)];
        Ok(Header { version, info, text, histogram, levels, alpha, table, parts, file_bytes: self.length })
    }

    fn levels(&self, info: &Info) -> Result<Levels, FormatError> {
        // no file is long enough for tables whose size overflows
        Levels::new(info.size, info.brick).ok_or_else(|| truncated("alpha table"))
    }

    /// Returns the end of a part, which must lie within the file.
    fn check_part(&self, part: &str, offset: u64, length: u64) -> Result<u64, FormatError> {
        let end = offset.checked_add(length).filter(|end| *end <= self.length);
        end.ok_or_else(|| truncated(part))
    }

    fn check_table(&self, part: &str, offset: u64, entries: u64) -> Result<u64, FormatError> {
        let length = entries.checked_mul(8).ok_or_else(|| truncated(part))?;
        self.check_part(part, offset, length)
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
}
