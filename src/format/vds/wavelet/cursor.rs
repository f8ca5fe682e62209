//! Reading fields one after the other.

use super::error::{Part, WaveletError};

/// A place in some bytes.
#[derive(Clone, Copy)]
pub(super) struct Cursor<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Cursor<'a> {
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0 }
    }

    /// Where it stands.
    pub fn at(&self) -> usize {
        self.at
    }

    /// Goes on by `count` bytes, which need not be there.
    pub fn skip(&mut self, count: usize) {
        self.at = self.at.saturating_add(count);
    }

    /// The next `count` bytes.
    #[inline]
    pub fn take(&mut self, count: usize, part: Part) -> Result<&'a [u8], WaveletError> {
        let rest = self.bytes.get(self.at..).ok_or(WaveletError::PastEnd(part))?;
        let field = rest.get(..count).ok_or(WaveletError::PastEnd(part))?;
        self.at += count;
        Ok(field)
    }

    /// All bytes from here on.
    pub fn rest(&self) -> &'a [u8] {
        self.bytes.get(self.at..).unwrap_or(&[])
    }

    /// The next 32-bit integer.
    pub fn i32(&mut self, part: Part) -> Result<i32, WaveletError> {
        match self.take(4, part)? {
            &[a, b, c, d] => Ok(i32::from_le_bytes([a, b, c, d])),
            _ => Err(WaveletError::PastEnd(part)),
        }
    }

    /// The next 32-bit float.
    pub fn f32(&mut self, part: Part) -> Result<f32, WaveletError> {
        self.i32(part).map(|bits| f32::from_bits(bits as u32))
    }
}

/// The next multiple of four.
pub(super) fn up4(count: usize) -> usize {
    count.saturating_add(3) & !3
}

/// The floats that `bytes` hold.
pub(super) fn floats(bytes: &[u8]) -> impl Iterator<Item = f32> + '_ {
    bytes.as_chunks::<4>().0.iter().map(|b| f32::from_le_bytes(*b))
}
