//! An array in chunks: maps each brick to a chunk, which is an object or a part of a shard, and decodes it.

use std::ops::Range;
use std::sync::Arc;

use super::node::{Chain, ChunkKeys, Shards};
use crate::codec::DecodeError;
use crate::format::bytes::read_bytes;
use crate::format::{Array, Census, FormatError, StoredBrick};
use crate::source::{Blocking, Folder, IndexCache, Source, SourceError, last_bytes};
use crate::volume::{ArrayInfo, Brick, Coded, Dims, Element, Layout, ObjectName, Plain, Region, StoredLength};

pub(super) struct ChunkedArray {
    pub info: ArrayInfo,
    pub folder: Arc<dyn Folder>,
    pub keys: ChunkKeys,
    pub chain: Chain,
    pub fill: Element,
    cache: Arc<IndexCache>,
    /// The first number of keys of the index cache.
    id: u64,
    /// The layout of a brick that begins at the first sample, if all of it lies in the array.
    whole: Layout,
}

/// A part of a brick is decoded by itself if the brick has this many times as many samples.
const MUCH_LESS: u64 = 2;
/// Bytes of a part of a large brick, at least.
const PART: u64 = 32 << 10;

/// Bytes of the longest index that is requested before it is needed: some dozens are at a time.
const MAX_REQUESTED_INDEX: u64 = 256 << 10;

/// Where the bytes of a chunk or a shard lie: bytes of the object.
type Place = Option<Range<u64>>;

impl ChunkedArray {
    pub(super) fn new(
        info: ArrayInfo,
        (folder, cache): (Arc<dyn Folder>, Arc<IndexCache>),
        keys: ChunkKeys,
        chain: Chain,
        fill: Element,
    ) -> Self {
        let stored = Dims::from_fn(chain.order.len(), |place| chain.brick[chain.order[place]]);
        let by_place = stored.strides(info.dtype.size() as u64);
        let mut strides = by_place;
        for (place, axis) in chain.order.iter().enumerate() {
            strides[*axis] = by_place[place];
        }
        let whole = Layout { held: Region::whole(chain.brick), first: 0, strides };
        Self { info, folder, keys, chain, fill, cache, id: IndexCache::new_id(), whole }
    }

    /// Returns the layout of the part of a brick that lies in the array.
    fn layout(&self, at: &Dims) -> Layout {
        let (shape, brick, mut layout) = (self.info.shape(), self.chain.brick, self.whole);
        for axis in 0..shape.len() {
            layout.held.start[axis] = at[axis] * brick[axis];
            layout.held.shape[axis] = brick[axis].min(shape[axis] - layout.held.start[axis]);
        }
        layout
    }

    /// Returns the object that a brick is in, and its number among all objects of the array.
    fn object(&self, at: &Dims) -> (ObjectName, u64) {
        let bricks = |axis: usize| self.chain.shards.iter().map(|level| level.count[axis]).product::<u64>().max(1);
        let object = Dims::from_fn(at.len(), |axis| at[axis] / bricks(axis));
        let count = Dims::from_fn(at.len(), |axis| self.info.grid.count()[axis].div_ceil(bricks(axis)));
        (self.keys.name(&object).into(), count.linear_of(&object))
    }

    /// Returns the length of an object; `None` if there is none.
    fn length(&self, object: &ObjectName, number: u64, blocking: Blocking) -> Result<Option<u64>, FormatError> {
        let key = (self.id, number, 0);
        if let Some(known) = self.cache.get::<Option<u64>>(key) {
            return Ok(*known);
        }
        if blocking == Blocking::No {
            return Err(SourceError::WouldBlock.into());
        }
        let length = match self.chain.shards.first().filter(|level| !level.index_at_start) {
            None => self.folder.len(object)?,
            // it comes with the index, which is needed next
            Some(level) => {
                let bytes = Self::index_bytes(level, object)?;
                let found = self.folder.read_end(object, bytes)?;
                let (length, index) = found.map_or((None, Vec::new()), |(length, index)| (Some(length), index));
                if index.len() as u64 == bytes {
                    self.keep_index(level, object, index, (self.id, number, 1))?;
                }
                length
            }
        };
        self.cache.insert(key, &Arc::new(length), size_of::<Option<u64>>());
        Ok(length)
    }

    /// Returns the bytes of a brick in its object; `None` if it was never written.
    fn place(&self, at: &Dims, object: &ObjectName, number: u64, blocking: Blocking) -> Result<Place, FormatError> {
        let Some(length) = self.length(object, number, blocking)? else { return Ok(None) };
        // bricks along each axis in a shard of this level
        let mut bricks = Dims::from_fn(at.len(), |a| self.chain.shards.iter().map(|level| level.count[a]).product());
        let (mut place, mut part) = (0..length, 1);
        for level in &self.chain.shards {
            let inner = Dims::from_fn(at.len(), |axis| bricks[axis] / level.count[axis]);
            let entry = level.entry(&Dims::from_fn(at.len(), |axis| at[axis] % bricks[axis] / inner[axis]));
            let index = self.index(level, object, &place, (self.id, number, part), blocking)?;
            let Some(found) = level.find(&index, entry) else { return Ok(None) };
            let bytes = place.end - place.start;
            if found.end > bytes || found.start > found.end {
                let Range { start, end } = found;
                return Err(FormatError::Damaged(format!(
                    "chunk {at:?} is at bytes {start} to {end} of a shard of {bytes} bytes, {}",
                    &**object
                )));
            }
            place = place.start + found.start..place.start + found.end;
            // no two indexes of an object have the same number
            part = level.count.product().map_or(0, |n| (n + 1).wrapping_mul(part)).wrapping_add(entry + 1);
            bricks = inner;
        }
        Ok(Some(place))
    }

    /// Returns the index of a shard, which lies at `place` in an object: from the cache, or read and checked.
    fn index(
        &self,
        level: &Shards,
        object: &ObjectName,
        place: &Range<u64>,
        key: (u64, u64, u64),
        blocking: Blocking,
    ) -> Result<Arc<Vec<u8>>, FormatError> {
        if let Some(index) = self.cache.get(key) {
            return Ok(index);
        }
        if blocking == Blocking::No {
            return Err(SourceError::WouldBlock.into());
        }
        let bytes = Self::index_bytes(level, object)?;
        let begin = if level.index_at_start { Some(place.start) } else { place.end.checked_sub(bytes) };
        let begin = begin.filter(|at| *at >= place.start && place.end - at >= bytes);
        let begin = begin.ok_or_else(|| {
            damaged_shard(object, &format!("a shard of {} bytes has no index", place.end - place.start))
        })?;
        let index = read_bytes(&*self.folder, object, begin, bytes)?.ok_or(SourceError::Changed)?;
        self.keep_index(level, object, index, key)
    }

    fn index_bytes(level: &Shards, object: &ObjectName) -> Result<u64, FormatError> {
        level.index_bytes().ok_or_else(|| damaged_shard(object, "its index is too long"))
    }

    /// Checks an index that was read, and keeps it in the cache.
    fn keep_index(
        &self,
        level: &Shards,
        object: &ObjectName,
        mut index: Vec<u8>,
        key: (u64, u64, u64),
    ) -> Result<Arc<Vec<u8>>, FormatError> {
        self.folder.check_unchanged()?;
        if level.index_has_checksum {
            let (entries, sum) =
                index.split_last_chunk::<4>().ok_or_else(|| damaged_shard(object, "it has no index"))?;
            if crate::codec::crc32c(entries) != u32::from_le_bytes(*sum) {
                return Err(damaged_shard(object, "the checksum of the index of a shard is wrong"));
            }
            index.truncate(index.len() - 4);
        }
        let index = Arc::new(index);
        self.cache.insert(key, &index, index.capacity());
        Ok(index)
    }
}

fn damaged_shard(object: &ObjectName, why: &str) -> FormatError {
    FormatError::DamagedObject(format!("{}: {why}", &**object))
}

impl Array for ChunkedArray {
    fn info(&self) -> &ArrayInfo {
        &self.info
    }

    fn source(&self) -> &dyn Source {
        &*self.folder
    }

    fn brick(&self, at: &Dims, blocking: Blocking) -> Result<Brick, FormatError> {
        let count = self.info.grid.count();
        if at.len() != count.len() || at.iter().zip(count.iter()).any(|(at, count)| at >= count) {
            return Err(FormatError::Damaged(format!("there is no chunk {at:?}")));
        }
        let (object, number) = self.object(at);
        let Some(place) = self.place(at, &object, number, blocking)? else { return Ok(Brick::Constant(self.fill)) };
        let (pipeline, length) = (&self.chain.pipeline, place.end - place.start);
        let damaged = |why: String| FormatError::Damaged(format!("chunk {at:?} in {}: {why}", &*object));
        let layout = self.layout(at);
        if pipeline.is_plain() {
            let wanted = pipeline.longest();
            if length != wanted {
                return Err(damaged(format!("it has {length} bytes, not {wanted}")));
            }
            return Ok(Brick::Plain(Plain { object, offset: place.start, layout }));
        }
        if length == 0 || length > pipeline.longest() {
            return Err(damaged(format!("it has {length} bytes, which is not what samples can take")));
        }
        let decoded = self.info.brick_shape.product().unwrap_or(u64::MAX).saturating_mul(self.info.dtype.size() as u64);
        Ok(Brick::Coded(Coded {
            offset: place.start,
            length: StoredLength::Bytes(length),
            decoded: usize::try_from(decoded).map_err(|_| damaged("it is too large".into()))?,
            scratch: pipeline.scratch(),
            layout,
            codec: count.linear_of(at),
            object,
        }))
    }

    fn unwritten(&self) -> Element {
        self.fill
    }

    fn part_around(&self, coded: &Coded, region: &Region) -> Option<Coded> {
        // planes of the slowest axis are contiguous
        let axis = *self.chain.order.first()?;
        if !self.chain.pipeline.has_parts() {
            return None;
        }
        let (mut layout, whole) = (coded.layout, &coded.layout.held);
        if !whole.contains(region) {
            return None;
        }
        // as many planes as blocks mostly have: they are decoded together anyway
        let planes = (PART / layout.strides[axis].max(1)).min(whole.shape[axis] / (2 * MUCH_LESS)).max(1);
        let begin = (region.start[axis] - whole.start[axis]) / planes * planes;
        let end = region.end(axis).saturating_sub(whole.start[axis]).next_multiple_of(planes).min(whole.shape[axis]);
        (layout.held.start[axis], layout.held.shape[axis]) = (whole.start[axis] + begin, end - begin);
        let decoded = usize::try_from((end - begin) * layout.strides[axis]).ok()?;
        (MUCH_LESS * (end - begin) <= whole.shape[axis]).then(|| Coded { decoded, layout, ..coded.clone() })
    }

    fn decodes_fast(&self) -> bool {
        self.chain.pipeline.is_fast()
    }

    fn decode(&self, coded: &Coded, stored: &[u8], out: &mut [u8]) -> Result<(), FormatError> {
        let (pipeline, held) = (&self.chain.pipeline, &coded.layout.held);
        let decoded = match self.chain.order.first() {
            Some(&axis) if (out.len() as u64) < self.chain.brick[axis] * self.whole.strides[axis] => {
                let plane = held.start[axis] % self.chain.brick[axis];
                pipeline.decode_part(stored, (plane * self.whole.strides[axis]) as usize, out)
            }
            _ => pipeline.decode(stored, out),
        };
        decoded.map_err(|error| match error {
            DecodeError::OutOfMemory(error) => error.into(),
            DecodeError::Damaged(why) => {
                let at = self.info.grid.count().index_of(coded.codec);
                FormatError::Damaged(format!("chunk {at:?} in {}: {why}", &*coded.object))
            }
        })
    }

    fn decoded_shape(&self, _at: &Dims) -> Option<Dims> {
        (!self.chain.pipeline.is_plain()).then_some(self.info.brick_shape)
    }

    fn stored_brick(&self, at: &Dims) -> Result<Option<StoredBrick>, FormatError> {
        // without shards each chunk would have to be asked for
        if self.chain.shards.is_empty() {
            return Ok(None);
        }
        let (object, number) = self.object(at);
        let place = self.place(at, &object, number, Blocking::Yes)?;
        let is_coded = !self.chain.pipeline.is_plain();
        Ok(Some(
            place.map_or(StoredBrick::EMPTY, |place| StoredBrick { bytes: Some(place.end - place.start), is_coded }),
        ))
    }

    fn stored_range(&self, at: &Dims) -> Result<Option<(ObjectName, Range<u64>)>, FormatError> {
        let (object, number) = self.object(at);
        let is_known = self.cache.get::<Option<u64>>((self.id, number, 0)).is_some();
        if self.chain.shards.is_empty() && !is_known {
            // whether there is such an object comes with its bytes
            return Ok(Some((object, 0..self.chain.pipeline.longest())));
        }
        Ok(self.place(at, &object, number, Blocking::Yes)?.map(|place| (object, place)))
    }

    fn table_range(&self, at: &Dims, depth: usize) -> Option<(ObjectName, Range<u64>)> {
        let level = self.chain.shards.first().filter(|_| depth == 0)?;
        let (object, number) = self.object(at);
        let is_known = self.cache.get::<Option<u64>>((self.id, number, 0)).is_some();
        let bytes = level.index_bytes().filter(|bytes| !is_known && *bytes <= MAX_REQUESTED_INDEX)?;
        Some((object, if level.index_at_start { 0..bytes } else { last_bytes(bytes) }))
    }

    fn census(&self) -> Result<Option<Census>, FormatError> {
        Ok(None)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::format::zarr::Zarr;
    use crate::format::{Format, OpenWith};
    use crate::test_support::memory_folder::MemoryFolder;

    /// Opens an array of two shards with this many chunks of one sample each, whose objects have the bytes `shard`.
    fn sharded(chunks: u64, index_location: &str, shard: &[u8]) -> Arc<dyn Array> {
        let bytes = json!({"name": "bytes", "configuration": {"endian": "little"}});
        let shards = json!({"name": "sharding_indexed", "configuration": {
            "chunk_shape": [1], "codecs": [bytes], "index_codecs": [bytes], "index_location": index_location}});
        array(chunks, shards, shard)
    }

    /// Opens an array of two shards of `chunks` samples with this codec, of which the second is there.
    fn array(chunks: u64, shards: serde_json::Value, shard: &[u8]) -> Arc<dyn Array> {
        let description = json!({
            "zarr_format": 3, "node_type": "array", "shape": [2 * chunks], "data_type": "uint8", "fill_value": 7,
            "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [chunks]}},
            "chunk_key_encoding": {"name": "default"}, "codecs": [shards],
        });
        let files = [("zarr.json", description.to_string().into_bytes()), ("c/1", shard.to_vec())];
        let files = files.map(|(name, bytes)| (name.to_owned(), bytes));
        let folder = Arc::new(MemoryFolder::new(files.into_iter().collect()));
        Zarr.open_array(folder, "", &OpenWith::for_one(None)).unwrap()
    }

    #[test]
    fn the_index_of_a_shard_is_named_until_it_is_known() {
        let index = [0, 1, u64::MAX, u64::MAX].map(u64::to_le_bytes).concat();
        let table = |array: &Arc<dyn Array>, at: u64| {
            let found = array.table_range(&[at].into(), 0);
            found.map(|(object, range)| (object.to_string(), range))
        };
        let array = sharded(2, "end", &[b"x", &index[..]].concat());
        for (at, object) in [(0, "c/0"), (1, "c/0"), (2, "c/1"), (3, "c/1")] {
            assert_eq!(table(&array, at), Some((object.to_owned(), last_bytes(32))));
        }
        assert!(matches!(array.brick(&[3].into(), Blocking::Yes), Ok(Brick::Constant(_))));
        assert!(matches!(array.brick(&[0].into(), Blocking::Yes), Ok(Brick::Constant(_))), "there is no such shard");
        assert_eq!([0, 1, 2, 3].map(|at| table(&array, at)), [const { None }; 4]);
        assert_eq!(table(&sharded(2, "start", &[]), 2), Some(("c/1".to_owned(), 0..32)));
        assert_eq!(table(&sharded(1 << 16, "end", &[]), 2), None, "it is too long");
    }

    #[test]
    fn a_chunk_lies_within_the_shard_that_is_in_a_shard() {
        let bytes = json!({"name": "bytes", "configuration": {"endian": "little"}});
        let shards = |chunk: u64, codec| {
            json!({"name": "sharding_indexed", "configuration": {
                "chunk_shape": [chunk], "codecs": [codec], "index_codecs": [bytes]}})
        };
        let index = |places: [u64; 4]| places.map(u64::to_le_bytes).concat();
        // four chunks of one sample, two in each inner shard; the last one would begin behind its shard
        let [first, second] = [index([0, 1, 1, 1]), index([0, 1, 34, 1])];
        let outer = index([0, 34, 34, 34]);
        let array =
            array(4, shards(2, shards(1, bytes.clone())), &[b"ab", &first[..], b"cd", &second, &outer].concat());
        let brick = |at: u64| array.brick(&[at].into(), Blocking::Yes);
        assert!((4..7).all(|at| brick(at).is_ok_and(|brick| !matches!(brick, Brick::Constant(_)))));
        let error = brick(7).err().map(|error| error.to_string()).unwrap_or_default();
        assert!(error.contains("is at bytes 34 to 35 of a shard of 34 bytes, c/1"), "{error}");
    }
}
