//! What a format says of one brick.

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use super::Layout;

/// Where the samples of one brick are to be had. Three kinds, since they cost so differently.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Brick {
    /// Every sample has this value; nothing is read and nothing is cached.
    Constant(Element),
    /// The stored bytes are the samples: only those asked for are read, straight from the source; never cached, the
    /// kernel holds them already.
    Plain(Plain),
    /// The stored bytes have to be decoded as a whole; the result goes into the cache.
    Coded(Coded),
}

/// The name of an object of a source. Cheap to clone: there is one for each brick of a read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ObjectName(Option<Arc<str>>);

impl Deref for ObjectName {
    type Target = str;

    fn deref(&self) -> &str {
        self.0.as_deref().unwrap_or_default()
    }
}

impl fmt::Display for ObjectName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self)
    }
}

impl From<&str> for ObjectName {
    fn from(name: &str) -> Self {
        Self((!name.is_empty()).then(|| name.into()))
    }
}

impl From<String> for ObjectName {
    fn from(name: String) -> Self {
        name.as_str().into()
    }
}

/// A brick whose stored bytes are its samples.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plain {
    /// The object of the source, empty for a dataset that is one file.
    pub object: ObjectName,
    /// Where the brick's bytes begin in the object.
    pub offset: u64,
    /// Where the samples stand, from `offset`.
    pub layout: Layout,
}

/// A brick that has to be decoded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Coded {
    /// The object of the source, empty for a dataset that is one file.
    pub object: ObjectName,
    /// Where the stored bytes begin in the object.
    pub offset: u64,
    /// How many stored bytes to read; for formats that do not say, no fewer than the brick has.
    pub length: StoredLength,
    /// Zero bytes that the decoder wants behind the stored ones.
    pub padding: usize,
    /// Bytes after decoding.
    pub decoded: usize,
    /// Memory that decoding takes beyond the stored bytes and the decoded ones.
    pub scratch: usize,
    /// Where the samples stand in the decoded bytes.
    pub layout: Layout,
    /// What the format needs to know again when it decodes: its own matter.
    pub codec: u64,
}

/// How many stored bytes a brick has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StoredLength {
    /// So many.
    Bytes(u64),
    /// All to the end of the object. More than `most` cannot be a brick.
    Rest {
        /// Bytes.
        most: u64,
    },
}

impl StoredLength {
    /// As many bytes as there can be.
    #[must_use]
    pub fn most(self) -> u64 {
        match self {
            Self::Bytes(length) => length,
            Self::Rest { most } => most,
        }
    }
}

/// One sample as bytes, little-endian.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Element {
    bytes: [u8; 8],
    size: u8,
}

impl Element {
    /// A sample of up to 8 bytes; what is beyond the eighth is dropped.
    #[must_use]
    pub fn new(sample: &[u8]) -> Self {
        let size = sample.len().min(8);
        let mut bytes = [0; 8];
        bytes[..size].copy_from_slice(&sample[..size]);
        Self { bytes, size: size as u8 }
    }

    /// The zero of a type of `size` bytes (which is all zero bytes for every type).
    #[must_use]
    pub fn zero(size: usize) -> Self {
        Self { bytes: [0; 8], size: size.min(8) as u8 }
    }

    /// The sample's bytes, little-endian.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.size)]
    }

    /// Writes the sample over and over; `out` is a whole number of samples.
    pub fn fill(&self, out: &mut [u8]) {
        match *self.bytes() {
            [] => {}
            [first, ref rest @ ..] if rest.iter().all(|b| *b == first) => out.fill(first),
            ref sample => out.chunks_exact_mut(sample.len()).for_each(|to| to.copy_from_slice(sample)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_fill_whole_samples() {
        let mut out = [9; 6];
        Element::new(&[1, 2]).fill(&mut out);
        assert_eq!(out, [1, 2, 1, 2, 1, 2]);
        Element::zero(2).fill(&mut out);
        assert_eq!(out, [0; 6]);
    }
}
