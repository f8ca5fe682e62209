//! What descriptions say of groups and arrays, the nodes of a hierarchy, and of images: several arrays that are levels of
//! one layer.

use std::fmt::Write;
use std::ops::Range;

use super::scaling::Values;
use crate::codec::Pipeline;
use crate::format::FormatError;
use crate::volume::{Axis, Dims, Dtype, Element, NativeJson};

/// A group or an array of a hierarchy.
#[derive(Default)]
pub(in crate::format) struct Node {
    /// Its path below the dataset's folder; empty for the top.
    pub path: String,
    pub attributes: NativeJson,
    /// What the array is, or why it is not shown; `None` for a group.
    pub array: Option<Result<ArrayMetadata, Hidden>>,
    /// Why the attributes are not known.
    pub warning: Option<String>,
    /// Bytes of the texts that describe it.
    pub text: u64,
}

/// An array that is not shown.
pub(in crate::format) struct Hidden {
    pub reason: String,
    pub damaged: bool,
    pub shape: Option<Dims>,
}

pub(in crate::format) struct ArrayMetadata {
    /// One axis of one sample for an array without axes.
    pub shape: Dims,
    pub dtype: Dtype,
    pub fill: Element,
    pub chain: Chain,
    pub keys: ChunkKeys,
    pub axes: Vec<Axis>,
    pub values: Values,
    /// The format's own keys of lodN.json.
    pub native: NativeJson,
}

/// How the objects of chunks are called.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::format) struct ChunkKeys {
    /// What all names begin with: the path of the array.
    pub prefix: String,
    /// Whether `c` and a separator come before the numbers.
    pub has_c: bool,
    pub separator: char,
    /// Whether the number along the fastest axis comes first.
    pub is_reversed: bool,
    /// Whether the array has no axes, and so no numbers.
    pub is_scalar: bool,
}

impl ChunkKeys {
    pub(super) fn name(&self, at: &Dims) -> String {
        let mut name = self.prefix.clone();
        if self.has_c {
            name.push('c');
        }
        if self.is_scalar {
            if !self.has_c {
                name.push('0');
            }
            return name;
        }
        for place in 0..at.len() {
            if self.has_c || place > 0 {
                name.push(self.separator);
            }
            let number = at[if self.is_reversed { at.len() - 1 - place } else { place }];
            // writing to a string does not fail
            let _ = write!(name, "{number}");
        }
        name
    }
}

/// Returns a path below a folder.
pub(in crate::format) fn join(folder: &str, name: &str) -> String {
    if folder.is_empty() { name.to_owned() } else { format!("{folder}/{name}") }
}

impl Hidden {
    pub(in crate::format) fn damaged(reason: String) -> Self {
        Self { reason, damaged: true, shape: None }
    }

    /// Refuses arrays that are too large to address.
    pub(in crate::format) fn unless_readable(shape: &Dims, dtype: Dtype) -> Result<(), Self> {
        // without samples along one axis the others still have to fit
        let each = Dims::from_fn(shape.len(), |axis| shape[axis].max(1));
        let bytes = each.product().and_then(|n| n.checked_mul(dtype.size() as u64));
        if bytes.is_none_or(|bytes| i64::try_from(bytes).is_err()) {
            return Err(Self { shape: Some(*shape), ..Self::damaged("it has more than 2^63 bytes".into()) });
        }
        Ok(())
    }

    pub(in crate::format) fn unsupported(reason: String) -> Self {
        Self { reason, damaged: false, shape: None }
    }

    /// Returns the error of one who has no other array to show.
    pub(in crate::format) fn error(self) -> FormatError {
        if self.damaged { FormatError::Damaged(self.reason) } else { FormatError::Unsupported(self.reason) }
    }
}

/// What the index of a shard has in place of a chunk that was never written.
const NOT_WRITTEN: u64 = u64::MAX;

/// How the chunks of an array are encoded.
pub(in crate::format) struct Chain {
    /// The shards, the outermost first; the chunks of the last one are the bricks. Empty without shards.
    pub shards: Vec<Shards>,
    /// Samples of a brick along each axis.
    pub brick: Dims,
    /// The array's axis at each place of the stored order, the slowest first.
    pub order: Vec<usize>,
    pub pipeline: Pipeline,
}

impl Chain {
    /// Says for people how bricks are stored: `shuffle, zstd, in shards of 4 x 4 x 4`.
    pub(super) fn text(&self) -> String {
        let mut parts = Vec::new();
        if !self.order.is_sorted() {
            parts.push(format!("axes in the order {:?}", self.order));
        }
        parts.extend(self.pipeline.names().map(str::to_owned));
        if parts.is_empty() {
            parts.push("as it is".to_owned());
        }
        for level in self.shards.iter().rev() {
            let count: Vec<String> = level.count.iter().map(u64::to_string).collect();
            parts.push(format!("in shards of {}", count.join(" x ")));
        }
        parts.join(", ")
    }
}

/// One level of shards: objects, or parts of shards, with an index of the chunks in them.
pub(in crate::format) struct Shards {
    /// The array's axis at each place of the order of the index.
    pub order: Vec<usize>,
    /// Chunks of a shard along each axis of the array.
    pub count: Dims,
    pub index_at_start: bool,
    pub index_big_endian: bool,
    pub index_has_checksum: bool,
}

impl Shards {
    /// Returns the bytes of an index.
    pub(in crate::format) fn index_bytes(&self) -> Option<u64> {
        let entries = self.count.product()?.checked_mul(16)?;
        entries.checked_add(if self.index_has_checksum { 4 } else { 0 })
    }

    /// Returns the bytes of a chunk in its shard by its entry in the index; `None` if it was never written.
    pub(in crate::format) fn find(&self, index: &[u8], entry: u64) -> Option<Range<u64>> {
        let (numbers, _) = index.as_chunks::<8>();
        let number = |at: u64| {
            let bytes = numbers.get(usize::try_from(at).ok()?)?;
            Some(if self.index_big_endian { u64::from_be_bytes(*bytes) } else { u64::from_le_bytes(*bytes) })
        };
        let (offset, length) = (number(2 * entry)?, number(2 * entry + 1)?);
        // a range beyond 64 bits ends before it begins
        let is_written = (offset, length) != (NOT_WRITTEN, NOT_WRITTEN);
        is_written.then(|| offset..offset.checked_add(length).unwrap_or(0))
    }

    /// Returns the entry of a chunk, by its place in the shard along each axis of the array.
    pub(in crate::format) fn entry(&self, at: &Dims) -> u64 {
        self.order.iter().fold(0, |number, axis| number * self.count[*axis] + at[*axis])
    }
}

/// An image: its axes, and the arrays that are its levels.
#[derive(Clone, Debug, Default, PartialEq)]
pub(in crate::format) struct Image {
    /// Empty if the arrays describe their axes themselves.
    pub axes: Vec<AxisDescription>,
    /// The finest first.
    pub levels: Vec<Level>,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub(in crate::format) struct AxisDescription {
    pub name: String,
    pub unit: Option<String>,
    /// Whether it is a direction in space or time.
    pub spatial: bool,
}

/// One level: the path of its array below the group, and the position of its samples.
#[derive(Clone, Debug, Default, PartialEq)]
pub(in crate::format) struct Level {
    pub path: String,
    /// The step and the position of sample 0 along each axis, if they are known.
    pub steps: Vec<f64>,
    pub firsts: Vec<f64>,
}

impl Image {
    /// Describes the axes of a level with this shape.
    pub(in crate::format) fn axes_of(&self, level: &Level, shape: &[u64], usual: &[Axis]) -> Vec<Axis> {
        let described = |axis: usize| {
            let named = self.axes.get(axis).filter(|_| self.axes.len() == shape.len())?;
            Some(Axis {
                name: named.name.clone(),
                unit: named.unit.clone(),
                first: level.firsts.get(axis).copied().unwrap_or(0.0),
                step: level.steps.get(axis).copied().unwrap_or(1.0),
                count: shape[axis],
                spatial: named.spatial,
            })
        };
        (0..shape.len()).filter_map(|axis| described(axis).or_else(|| usual.get(axis).cloned())).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codec::{Finish, codec};

    #[test]
    fn chains_are_described_in_the_order_of_encoding() {
        let text = |codecs: &[&str], finish, order: &[usize], shards: &[[u64; 2]]| {
            let codecs = codecs.iter().map(|name| codec(name, &NativeJson::new()).unwrap()).collect();
            let pipeline = Pipeline::new(codecs, 64, finish).unwrap();
            let shards = shards.iter().map(|count| Shards {
                order: vec![0, 1],
                count: (*count).into(),
                index_at_start: false,
                index_big_endian: false,
                index_has_checksum: true,
            });
            let brick = Dims::from([4, 4]);
            Chain { shards: shards.collect(), brick, order: order.to_vec(), pipeline }.text()
        };
        assert_eq!(text(&[], Finish::Nothing, &[0, 1], &[]), "as it is");
        let all = text(&["gzip", "crc32c"], Finish::Swap(4), &[1, 0], &[[8, 9], [2, 3]]);
        assert_eq!(all, "axes in the order [1, 0], big-endian, gzip, crc32c, in shards of 2 x 3, in shards of 8 x 9");
    }

    #[test]
    fn chunks_have_the_names_of_either_encoding() {
        let keys = |has_c, separator, is_scalar| {
            let is_reversed = false;
            ChunkKeys { prefix: "a/".into(), has_c, separator, is_reversed, is_scalar }
        };
        let at = Dims::from([1, 23]);
        assert_eq!(keys(true, '/', false).name(&at), "a/c/1/23");
        assert_eq!(keys(true, '.', false).name(&at), "a/c.1.23");
        assert_eq!(keys(false, '.', false).name(&at), "a/1.23");
        assert_eq!(keys(false, '/', false).name(&at), "a/1/23");
        let n5 = ChunkKeys { is_reversed: true, ..keys(false, '/', false) };
        assert_eq!(n5.name(&at), "a/23/1");
        assert_eq!([true, false].map(|c| keys(c, '/', true).name(&[0].into())), ["a/c", "a/0"]);
    }
}
