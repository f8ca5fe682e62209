//! Readers of headers and descriptions of every format: bytes of an object, little-endian fields that follow each
//! other, and the limit of the values of a text.

use serde_json::Value;

use super::FormatError;
use crate::memory::try_zeroed;
use crate::source::{Blocking, Source, SourceError};

/// Reads `length` bytes of an object from byte `offset` on; `None` if there is no such object. May wait.
pub(crate) fn read_bytes(
    source: &dyn Source,
    object: &str,
    offset: u64,
    length: u64,
) -> Result<Option<Vec<u8>>, SourceError> {
    let mut bytes = try_zeroed(length as usize)?;
    Ok(source.read_at(object, offset, &mut bytes, Blocking::Yes)?.then_some(bytes))
}

/// A position in a slice of bytes. `part` names the bytes in errors; [`ByteReader::enter`] changes it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ByteReader<'a> {
    bytes: &'a [u8],
    position: usize,
    part: &'static str,
}

/// The bytes end inside this part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PastEnd(pub &'static str);

/// Methods that read a little-endian number of the type of their name.
macro_rules! numbers {
    ($($number:ident)*) => {
        $(pub(crate) fn $number(&mut self) -> Result<$number, PastEnd> {
            self.bytes().map($number::from_le_bytes)
        })*
    };
}

impl<'a> ByteReader<'a> {
    pub(crate) fn new(part: &'static str, bytes: &'a [u8]) -> Self {
        Self { bytes, position: 0, part }
    }

    /// Names the part that begins here.
    pub(crate) fn enter(&mut self, part: &'static str) {
        self.part = part;
    }

    /// Returns the number of bytes before the next field.
    pub(crate) fn position(&self) -> usize {
        self.position
    }

    /// Returns all bytes that were not read; none if an alignment went past the end.
    pub(crate) fn rest(&self) -> &'a [u8] {
        self.bytes.get(self.position..).unwrap_or(&[])
    }

    /// Skips to the next multiple of `alignment`. The padding may be missing at the end.
    pub(crate) fn align(&mut self, alignment: usize) {
        self.position = self.position.next_multiple_of(alignment);
    }

    /// Reads the next `count` bytes. If there are fewer, the position stays.
    #[inline]
    pub(crate) fn take(&mut self, count: usize) -> Result<&'a [u8], PastEnd> {
        let field = self.bytes.get(self.position..).and_then(|rest| rest.get(..count)).ok_or(PastEnd(self.part))?;
        self.position += count;
        Ok(field)
    }

    /// Reads the next `N` bytes.
    pub(crate) fn bytes<const N: usize>(&mut self) -> Result<[u8; N], PastEnd> {
        let mut bytes = [0; N];
        bytes.copy_from_slice(self.take(N)?);
        Ok(bytes)
    }

    numbers!(u8 u32 i32 u64 i64 f32 f64);

    /// Reads `N` fields of one type.
    pub(crate) fn several<T: Copy + Default, const N: usize>(
        &mut self,
        field: impl Fn(&mut Self) -> Result<T, PastEnd>,
    ) -> Result<[T; N], PastEnd> {
        let mut fields = [T::default(); N];
        for to in &mut fields {
            *to = field(self)?;
        }
        Ok(fields)
    }
}

/// Returns the 32-bit floats that `bytes` hold; up to three further bytes are ignored.
pub(crate) fn f32_values(bytes: &[u8]) -> impl Iterator<Item = f32> + '_ {
    bytes.as_chunks::<4>().0.iter().map(|b| f32::from_le_bytes(*b))
}

/// Returns the error of a file that ends inside `part`.
pub(crate) fn truncated(part: &str) -> FormatError {
    FormatError::Damaged(format!("truncated in the {part}"))
}

impl From<PastEnd> for FormatError {
    fn from(PastEnd(part): PastEnd) -> Self {
        truncated(part)
    }
}

/// The most values of a description. Each takes far more memory than its text: an object with one key takes several
/// hundred bytes for seven of text.
const MAX_VALUES: usize = 1 << 17;

/// Refuses a text with too many values before memory is allocated for them. Each value has one of the bytes
/// `delimiters`.
pub(crate) fn check_values(text: &[u8], delimiters: &[u8]) -> Result<(), String> {
    let values = text.iter().filter(|byte| delimiters.contains(byte)).count();
    if values <= MAX_VALUES { Ok(()) } else { Err(format!("it has more than {MAX_VALUES} values")) }
}

/// Parses a decimal number without sign and leading zeros.
pub(crate) fn decimal(digits: &str) -> Option<u64> {
    let is_plain = digits.bytes().all(|byte| byte.is_ascii_digit()) && (digits == "0" || !digits.starts_with('0'));
    if is_plain { digits.parse().ok() } else { None }
}

/// Returns a whole number in JSON, which may be written with a decimal point.
pub(crate) fn whole(value: &Value) -> Option<i128> {
    let exact = |number: &f64| number.fract() == 0.0 && number.abs() < 9e15;
    value.as_number()?.as_i128().or_else(|| value.as_f64().filter(exact).map(|number| number as i128))
}

/// Returns a text of JSON without its byte order mark; refuses one with too many values.
pub(crate) fn json_text(text: &[u8]) -> Result<&[u8], String> {
    check_values(text, b",[{")?;
    Ok(text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_follow_each_other_until_the_end() {
        let mut fields = ByteReader::new("test", &[1, 0, 0, 192, 63, 254, 255, 255, 255, 9]);
        assert_eq!(fields.u8(), Ok(1));
        assert_eq!(fields.several(ByteReader::f32), Ok([1.5]));
        assert_eq!(fields.several(ByteReader::i32), Ok([-2]));
        assert_eq!(fields.u32(), Err(PastEnd("test")));
        assert_eq!(fields.take(2), Err(PastEnd("test")));
        assert_eq!((fields.position(), fields.rest()), (9, &[9][..]));
        assert_eq!(fields.take(1), Ok(&[9][..]));
        fields.enter("rest");
        assert_eq!(FormatError::from(fields.u8().unwrap_err()), FormatError::Damaged("truncated in the rest".into()));
    }

    #[test]
    fn padding_may_be_missing_at_the_end() {
        let mut fields = ByteReader::new("test", &[1, 2, 3, 4, 5]);
        fields.align(4);
        assert_eq!((fields.position(), fields.take(6).is_err()), (0, true));
        assert_eq!(fields.take(5), Ok(&[1, 2, 3, 4, 5][..]));
        fields.align(4);
        assert_eq!((fields.position(), fields.rest()), (8, &[][..]));
        assert!(fields.take(0).is_err() && fields.u8().is_err());
    }

    #[test]
    fn numbers_are_written_in_one_way() {
        assert_eq!(["0", "7", "120", "18446744073709551615"].map(decimal), [0, 7, 120, u64::MAX].map(Some));
        assert_eq!(["", "00", "01", "+1", "-1", " 1", "1.0", "x", "18446744073709551616"].map(decimal), [None; 9]);
    }

    #[test]
    fn values_are_counted_before_they_are_parsed() {
        assert_eq!(check_values(&[b','; MAX_VALUES], b",{"), Ok(()));
        assert!(check_values(&[b"{".repeat(MAX_VALUES), vec![b',']].concat(), b",{").is_err());
        assert_eq!(check_values(&vec![b'A'; MAX_VALUES + 1], b",{"), Ok(()));
    }
}
