//! One brick, as a format describes it to the reader.

use std::ops::{Deref, Range};
use std::sync::Arc;

use super::dims::{Dims, Layout, Region};
use super::dtype::Dtype;

/// How the samples of one brick are obtained. The three kinds differ in what reading them costs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Brick {
    /// All samples have this value: nothing is read or cached.
    Constant(Element),
    /// The stored bytes are the samples: only the requested ones are read, directly from the source. They are not
    /// cached, since the kernel's page cache holds them.
    Plain(Plain),
    /// The stored bytes must be decoded as a whole; the result goes into the cache.
    Coded(Coded),
}

impl Brick {
    /// Returns the positions of the samples; `None` if all have one value.
    #[must_use]
    pub(crate) fn layout(&self) -> Option<&Layout> {
        match self {
            Self::Constant(_) => None,
            Self::Plain(plain) => Some(&plain.layout),
            Self::Coded(coded) => Some(&coded.layout),
        }
    }
}

/// The name of an object of a source. Cloning is cheap, since each brick of a read has one.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct ObjectName(Option<Arc<str>>);

impl Deref for ObjectName {
    type Target = str;

    fn deref(&self) -> &str {
        self.0.as_deref().unwrap_or_default()
    }
}

impl<T: AsRef<str>> From<T> for ObjectName {
    fn from(name: T) -> Self {
        Self(Some(name.as_ref()).filter(|name| !name.is_empty()).map(Arc::from))
    }
}

/// A brick whose stored bytes are its samples.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Plain {
    /// The object of the source, empty for a dataset that is one file.
    pub object: ObjectName,
    /// Where the brick's bytes begin in the object.
    pub offset: u64,
    /// The positions of the samples, relative to `offset`.
    pub layout: Layout,
}

/// A brick that must be decoded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Coded {
    /// The object of the source, empty for a dataset that is one file.
    pub object: ObjectName,
    /// Where the stored bytes begin in the object.
    pub offset: u64,
    /// How many stored bytes to read; if the format does not record the length, an upper bound of it.
    pub length: StoredLength,
    pub decoded: usize,
    /// Scratch memory for decoding, in bytes, besides the stored and the decoded bytes.
    pub scratch: usize,
    /// The positions of the samples in the decoded bytes.
    pub layout: Layout,
    /// Opaque to the reader: the format gets it back when it decodes.
    pub codec: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StoredLength {
    Bytes(u64),
    /// All bytes to the end of the object, which is damaged if there are more than `most`.
    Rest {
        most: u64,
    },
}

impl StoredLength {
    /// Returns the greatest possible number of bytes.
    pub(crate) fn most(self) -> u64 {
        match self {
            Self::Bytes(length) => length,
            Self::Rest { most } => most,
        }
    }
}

/// One sample as bytes, little-endian.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Element {
    bytes: [u8; Dtype::MAX_SIZE],
    size: u8,
}

impl Element {
    /// Creates a sample of up to [`Dtype::MAX_SIZE`] bytes; further bytes are ignored.
    pub(crate) fn new(sample: &[u8]) -> Self {
        let size = sample.len().min(Dtype::MAX_SIZE);
        let mut bytes = [0; Dtype::MAX_SIZE];
        bytes[..size].copy_from_slice(&sample[..size]);
        Self { bytes, size: size as u8 }
    }

    /// Returns the zero of a type of `size` bytes (all bits are zero for every type).
    pub(crate) fn zero(size: usize) -> Self {
        Self { bytes: [0; Dtype::MAX_SIZE], size: size.min(Dtype::MAX_SIZE) as u8 }
    }

    /// Returns the sample's bytes, little-endian.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.size)]
    }

    /// Fills `out`, a whole number of samples, with copies of the sample.
    pub(crate) fn fill(&self, out: &mut [u8]) {
        match *self.bytes() {
            [] => {}
            [first, ref rest @ ..] if rest.iter().all(|b| *b == first) => out.fill(first),
            ref sample => out.chunks_exact_mut(sample.len()).for_each(|to| to.copy_from_slice(sample)),
        }
    }
}

/// Some of the bricks of a grid.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum BrickSet {
    Box(Region),
    /// The bricks with these numbers, which count the grid in C order.
    Run(Range<u64>),
}

impl BrickSet {
    pub(crate) fn len(&self) -> u64 {
        match self {
            Self::Box(region) => region.shape.product().unwrap_or(u64::MAX),
            Self::Run(numbers) => numbers.end.saturating_sub(numbers.start),
        }
    }

    /// Returns the index in the grid of brick `n` of the set; `count` is the number of bricks along each axis.
    pub(crate) fn nth(&self, n: u64, count: &Dims) -> Dims {
        match self {
            Self::Box(region) => {
                let within = region.shape.index_of(n);
                Dims::from_fn(count.len(), |axis| region.start[axis] + within[axis])
            }
            Self::Run(numbers) => count.index_of(numbers.start + n),
        }
    }
}

#[cfg(test)]
mod brick_tests {
    use super::*;

    #[test]
    fn elements_fill_whole_samples() {
        let mut out = [9; 6];
        Element::new(&[1, 2]).fill(&mut out);
        assert_eq!(out, [1, 2, 1, 2, 1, 2]);
        Element::zero(2).fill(&mut out);
        assert_eq!(out, [0; 6]);
        let (sample, mut out) = ((0..16).collect::<Vec<u8>>(), [9; 32]);
        Element::new(&sample).fill(&mut out);
        assert_eq!(out[..], [&sample[..], &sample].concat());
    }
}

#[cfg(test)]
mod brick_set_tests {
    use super::*;

    #[test]
    fn boxes_and_runs_count_in_c_order() {
        let count = Dims::from([3, 4, 5]);
        let whole = BrickSet::Box(Region::whole(count));
        let part = BrickSet::Box(Region { start: [1, 2, 3].into(), shape: [1, 2, 2].into() });
        assert_eq!((whole.len(), part.len()), (60, 4));
        assert!((0..60).all(|n| whole.nth(n, &count) == BrickSet::Run(0..60).nth(n, &count)));
        assert_eq!(part.nth(3, &count), Dims::from([1, 3, 4]));
        assert_eq!(BrickSet::Run(20..60).nth(2, &count), Dims::from([1, 0, 2]));
        assert_eq!(BrickSet::Run(5..5).len(), 0);
    }
}
