//! The header of a file: dimensions, attributes and variables, all big-endian.

use serde_json::{Map, Value};

use crate::format::FormatError;
use crate::format::bytes::{ByteReader, PastEnd, read_bytes};
use crate::source::{Source, SourceError, WHOLE};
use crate::volume::{Dtype, NativeJson};

/// Bytes of the longest header that is read, and of the part that is read first.
const MAX_HEADER: u64 = 16 << 20;
const FIRST_READ: u64 = 32 << 10;
/// Bytes of the longest name. Programs write at most 256.
const MAX_NAME: u64 = 4096;
/// The most dimensions and variables of a file: a variable takes 2 KiB of memory.
const MAX_DIMENSIONS: u64 = 1 << 16;
const MAX_VARIABLES: u64 = 1 << 13;
/// The most numbers of all attributes of a file: each takes 32 bytes of memory. An attribute itself counts as some.
const MAX_NUMBERS: u64 = 1 << 17;
const PER_ATTRIBUTE: u64 = 8;
/// The number of records of a file whose writer did not know it.
const STREAMING: u64 = u32::MAX as u64;

#[derive(Debug, Default)]
pub(super) struct Header {
    /// 1, 2 (offsets of 64 bits) or 5 (all numbers of 64 bits).
    pub version: u8,
    pub records: u64,
    /// Bytes from one record to the next.
    pub record_size: u64,
    /// Names and lengths; the length of the dimension of records is 0.
    pub dimensions: Vec<(String, u64)>,
    pub attributes: NativeJson,
    pub variables: Vec<Variable>,
    pub warnings: Vec<String>,
}

#[derive(Debug)]
pub(super) struct Variable {
    pub name: String,
    /// The numbers of its dimensions, the slowest first.
    pub dimensions: Vec<usize>,
    pub attributes: NativeJson,
    /// `None` for text.
    pub dtype: Option<Dtype>,
    /// Where its samples begin in the file, or those of its first record.
    pub begin: u64,
    pub has_records: bool,
    /// Bytes of its samples, or of those of one record.
    pub bytes: u64,
}

impl Header {
    /// Reads the header of a file of `end` bytes.
    pub(super) fn read(source: &dyn Source, end: u64) -> Result<Self, FormatError> {
        let mut length = FIRST_READ;
        loop {
            let bytes = read_bytes(source, WHOLE, 0, length.min(end).min(MAX_HEADER))?.ok_or(SourceError::Changed)?;
            match Self::parse(&bytes, end) {
                Err(Fault::PastEnd(_)) if length < end.min(MAX_HEADER) => length *= 4,
                Err(Fault::PastEnd(_)) if length < end => return Err("its header is longer than 16 MiB".into()),
                Err(Fault::PastEnd(part)) => return Err(part.into()),
                Err(Fault::Wrong(why)) => return Err(why.into()),
                Ok(header) => return Ok(header),
            }
        }
    }

    fn parse(bytes: &[u8], end: u64) -> Result<Self, Fault> {
        let mut reader = ByteReader::new("header", bytes);
        let magic = reader.bytes::<4>()?;
        let version = magic[3];
        let mut fields = Fields { reader, version, numbers: MAX_NUMBERS };
        let mut header = Self { version, records: fields.count()?, ..Self::default() };
        fields.reader.enter("list of dimensions");
        let count = fields.list(0x0A)?;
        if count > MAX_DIMENSIONS {
            return Err(Fault::Wrong(format!("it has {count} dimensions")));
        }
        for _ in 0..count {
            header.dimensions.push((fields.name()?, fields.count()?));
        }
        fields.reader.enter("attributes of the file");
        header.attributes = fields.attributes()?;
        fields.reader.enter("list of variables");
        let count = fields.list(0x0B)?;
        if count > MAX_VARIABLES {
            header.warnings.push(format!("it has {count} variables, of which the first {MAX_VARIABLES} are shown"));
        }
        // where the samples of one record begin, and their bytes, also of variables that are not shown
        let mut with_records = Vec::new();
        for number in 0..count {
            let variable = fields.variable(&header.dimensions)?;
            if variable.has_records {
                with_records.push((variable.begin, variable.bytes));
            }
            if number < MAX_VARIABLES {
                header.variables.push(variable);
            }
        }
        if fields.numbers == 0 {
            header.warnings.push("it has so many attributes that not all are shown".into());
        }
        header.set_records(end, &with_records)?;
        Ok(header)
    }

    /// Finds out how long a record is, and how many there are.
    fn set_records(&mut self, end: u64, with_records: &[(u64, u64)]) -> Result<(), Fault> {
        self.record_size = match *with_records {
            // one alone is not padded
            [(_, bytes)] => bytes,
            _ => with_records.iter().fold(0, |sum, (_, bytes)| sum.saturating_add(bytes.saturating_add(3) & !3)),
        };
        if self.records == STREAMING && self.version < 5 || self.records == u64::MAX {
            let begin = with_records.iter().map(|(begin, _)| *begin).min().unwrap_or(end);
            self.records = end.saturating_sub(begin).checked_div(self.record_size).unwrap_or(0);
        }
        let last = self.records.saturating_sub(1).checked_mul(self.record_size);
        if last.and_then(|last| last.checked_add(self.record_size)).is_none_or(|bytes| i64::try_from(bytes).is_err()) {
            return Err(Fault::Wrong(format!("{} records of {} bytes are too many", self.records, self.record_size)));
        }
        Ok(())
    }
}

/// Why a header is not read: it goes on, or it makes no sense.
enum Fault {
    PastEnd(PastEnd),
    Wrong(String),
}

impl From<PastEnd> for Fault {
    fn from(end: PastEnd) -> Self {
        Self::PastEnd(end)
    }
}

/// The fields of a header, one after another.
struct Fields<'a> {
    reader: ByteReader<'a>,
    version: u8,
    /// How many more numbers of attributes are kept.
    numbers: u64,
}

impl Fields<'_> {
    fn u32(&mut self) -> Result<u32, PastEnd> {
        self.reader.bytes().map(u32::from_be_bytes)
    }

    /// Reads a number of 4 bytes, or 8 if they are `wide`.
    fn number(&mut self, wide: bool) -> Result<u64, PastEnd> {
        if wide { self.reader.bytes().map(u64::from_be_bytes) } else { self.u32().map(u64::from) }
    }

    fn count(&mut self) -> Result<u64, PastEnd> {
        self.number(self.version >= 5)
    }

    /// Reads how many entries a list has, all of which have this tag.
    fn list(&mut self, tag: u32) -> Result<u64, Fault> {
        let (found, count) = (self.u32()?, self.count()?);
        if found == tag || found == 0 && count == 0 {
            return Ok(count);
        }
        Err(Fault::Wrong(format!("its header has the tag {found} in place of {tag}")))
    }

    /// Reads bytes that are padded to a multiple of 4.
    fn padded(&mut self, count: u64) -> Result<&[u8], PastEnd> {
        let bytes = self.reader.take(usize::try_from(count).unwrap_or(usize::MAX))?;
        // the padding of the last one may be missing
        self.reader.align(4);
        Ok(bytes)
    }

    fn name(&mut self) -> Result<String, Fault> {
        let length = self.count()?;
        if length > MAX_NAME {
            return Err(Fault::Wrong(format!("a name has {length} bytes")));
        }
        Ok(String::from_utf8_lossy(self.padded(length)?).into_owned())
    }

    fn attributes(&mut self) -> Result<NativeJson, Fault> {
        let mut attributes = Map::new();
        for _ in 0..self.list(0x0C)? {
            let name = self.name()?;
            let (kind, count) = (self.u32()?, self.count()?);
            let (dtype, size) = type_of(kind)?;
            let length =
                count.checked_mul(size).ok_or_else(|| Fault::Wrong(format!("attribute {name} is too long")))?;
            let numbers = PER_ATTRIBUTE + name.len() as u64 / 32 + dtype.map_or(count / 32, |_| count);
            let is_kept = numbers <= self.numbers;
            self.numbers = if is_kept { self.numbers - numbers } else { 0 };
            let bytes = self.padded(length)?;
            let value = match dtype {
                _ if !is_kept => continue,
                None => Value::from(String::from_utf8_lossy(bytes).trim_end_matches('\0')),
                Some(dtype) => {
                    let mut values = bytes.chunks_exact(size as usize).map(|bytes| number(dtype, bytes));
                    if count == 1 { values.next().into() } else { values.collect() }
                }
            };
            attributes.insert(name, value);
        }
        Ok(attributes)
    }

    fn variable(&mut self, known: &[(String, u64)]) -> Result<Variable, Fault> {
        let name = self.name()?;
        let mut dimensions = Vec::new();
        for _ in 0..self.count()? {
            let number = self.count()?;
            let found = usize::try_from(number).ok().filter(|number| *number < known.len());
            dimensions.push(found.ok_or_else(|| Fault::Wrong(format!("variable {name} has no dimension {number}")))?);
        }
        let attributes = self.attributes()?;
        let (dtype, size) = type_of(self.u32()?)?;
        // its size, which is wrong for large variables
        self.count()?;
        let begin = self.number(self.version >= 2)?;
        let has_records = dimensions.first().is_some_and(|first| known[*first].1 == 0);
        let mut extents = dimensions.iter().skip(usize::from(has_records)).map(|number| known[*number].1);
        let bytes = extents.try_fold(size, u64::checked_mul).filter(|bytes| i64::try_from(*bytes).is_ok());
        let bytes = bytes.ok_or_else(|| Fault::Wrong(format!("variable {name} has more than 2^63 bytes")))?;
        Ok(Variable { name, dimensions, attributes, dtype, begin, has_records, bytes })
    }
}

/// Returns the type of samples, `None` for text, and their bytes.
fn type_of(number: u32) -> Result<(Option<Dtype>, u64), Fault> {
    let dtype = match number {
        1 => Dtype::Int8,
        2 => return Ok((None, 1)),
        3 => Dtype::Int16,
        4 => Dtype::Int32,
        5 => Dtype::Float32,
        6 => Dtype::Float64,
        7 => Dtype::UInt8,
        8 => Dtype::UInt16,
        9 => Dtype::UInt32,
        10 => Dtype::Int64,
        11 => Dtype::UInt64,
        other => return Err(Fault::Wrong(format!("its header has the unknown type {other}"))),
    };
    Ok((Some(dtype), dtype.size() as u64))
}

/// Returns a big-endian number as JSON has it; null for floats that it does not have.
fn number(dtype: Dtype, bytes: &[u8]) -> Value {
    let mut word = [0; 8];
    word[8 - bytes.len()..].copy_from_slice(bytes);
    let (word, unused) = (u64::from_be_bytes(word), 64 - 8 * bytes.len() as u32);
    match dtype {
        // as it is written: not all digits of the double
        Dtype::Float32 => f32::from_bits(word as u32).to_string().parse::<f64>().ok().into(),
        Dtype::Float64 => f64::from_bits(word).into(),
        Dtype::UInt8 | Dtype::UInt16 | Dtype::UInt32 | Dtype::UInt64 => word.into(),
        _ => ((word << unused) as i64 >> unused).into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_that_are_not_shown_have_their_part_of_each_record() {
        let count = MAX_VARIABLES as u32 + 2;
        let words = |words: &[u32]| words.iter().flat_map(|word| word.to_be_bytes()).collect::<Vec<u8>>();
        let name = u32::from_be_bytes(*b"v\0\0\0");
        // three records, a dimension of records, no attributes, and variables of one byte
        let mut bytes = [b"CDF\x01".to_vec(), words(&[3, 0x0A, 1, 1, name, 0, 0, 0, 0x0B, count])].concat();
        for _ in 0..count {
            bytes.extend(words(&[1, name, 1, 0, 0, 0, 1, 4, 0]));
        }
        let header = Header::parse(&bytes, 1 << 30).ok().unwrap();
        assert_eq!((header.variables.len() as u64, header.record_size), (MAX_VARIABLES, 4 * u64::from(count)));
        assert_eq!(header.warnings.len(), 1);
    }
}
