//! Little-endian fields, one after the other.

use crate::format::FormatError;

/// What is left of a header part.
pub(super) struct Fields<'a> {
    part: &'static str,
    rest: &'a [u8],
}

impl<'a> Fields<'a> {
    /// The fields of `bytes`; `part` names them for an error.
    pub(super) fn new(part: &'static str, bytes: &'a [u8]) -> Self {
        Self { part, rest: bytes }
    }

    /// The next `N` bytes.
    pub(super) fn bytes<const N: usize>(&mut self) -> Result<[u8; N], FormatError> {
        let (head, rest) = self.rest.split_first_chunk().ok_or_else(|| truncated(self.part))?;
        self.rest = rest;
        Ok(*head)
    }

    /// Leaves out `count` bytes.
    pub(super) fn skip(&mut self, count: usize) -> Result<(), FormatError> {
        self.rest = self.rest.get(count..).ok_or_else(|| truncated(self.part))?;
        Ok(())
    }

    pub(super) fn u8(&mut self) -> Result<u8, FormatError> {
        self.bytes().map(u8::from_le_bytes)
    }

    pub(super) fn u32(&mut self) -> Result<u32, FormatError> {
        self.bytes().map(u32::from_le_bytes)
    }

    pub(super) fn i64(&mut self) -> Result<i64, FormatError> {
        self.bytes().map(i64::from_le_bytes)
    }

    pub(super) fn f64(&mut self) -> Result<f64, FormatError> {
        self.bytes().map(f64::from_le_bytes)
    }

    /// A 64-bit number of version 1: the half that counts most comes first (section 4).
    pub(super) fn swapped_u64(&mut self) -> Result<u64, FormatError> {
        self.bytes().map(u64::from_le_bytes).map(put_right)
    }

    /// A float32 as float64, which is exact.
    pub(super) fn f32(&mut self) -> Result<f64, FormatError> {
        self.bytes().map(|bytes| f32::from_le_bytes(bytes).into())
    }

    pub(super) fn i32s<const N: usize>(&mut self) -> Result<[i32; N], FormatError> {
        self.many(|fields| fields.bytes().map(i32::from_le_bytes))
    }

    /// Whole numbers as float64, which is exact.
    pub(super) fn i32s_as_f64<const N: usize>(&mut self) -> Result<[f64; N], FormatError> {
        self.i32s().map(|numbers| numbers.map(f64::from))
    }

    pub(super) fn f32s<const N: usize>(&mut self) -> Result<[f64; N], FormatError> {
        self.many(Self::f32)
    }

    pub(super) fn f64s<const N: usize>(&mut self) -> Result<[f64; N], FormatError> {
        self.many(Self::f64)
    }

    fn many<T: Copy + Default, const N: usize>(
        &mut self,
        one: impl Fn(&mut Self) -> Result<T, FormatError>,
    ) -> Result<[T; N], FormatError> {
        let mut all = [T::default(); N];
        for to in &mut all {
            *to = one(self)?;
        }
        Ok(all)
    }
}

/// A half-swapped number with its halves in order; the exchange is its own inverse.
pub(super) fn put_right(number: u64) -> u64 {
    number.rotate_left(32)
}

/// The error of a file that ends inside `part`.
pub(super) fn truncated(part: &str) -> FormatError {
    FormatError::Damaged(format!("truncated in the {part}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_follow_each_other_until_the_end() {
        let mut fields = Fields::new("test", &[1, 0, 0, 192, 63, 254, 255, 255, 255, 9]);
        assert_eq!(fields.u8(), Ok(1));
        assert_eq!(fields.f32s(), Ok([1.5]));
        assert_eq!(fields.i32s_as_f64(), Ok([-2.0]));
        assert_eq!(fields.u32(), Err(FormatError::Damaged("truncated in the test".into())));
        assert_eq!(fields.skip(2), Err(truncated("test")));
        assert_eq!(fields.skip(1), Ok(()));
        assert_eq!(fields.u8(), Err(truncated("test")));
    }

    #[test]
    fn version_1_numbers_have_their_halves_exchanged() {
        let mut fields = Fields::new("test", &[0, 0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 128, 3, 0, 0, 0]);
        assert_eq!(fields.swapped_u64(), Ok(1));
        assert_eq!(fields.swapped_u64(), Ok(0x8000_0002_0000_0003));
    }
}
