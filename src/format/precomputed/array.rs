//! A volume at one resolution as an array: maps each brick to a chunk, an object or a part of a shard, and decodes it.

use std::fmt::Write;
use std::ops::Range;
use std::sync::Arc;

use serde_json::Map;

use super::encoding::{Chunk, Encoding};
use super::metadata::{Scale, shape};
use super::sharding::{Address, Minishard, PLACE, Sharding};
use crate::codec::{Codec, codec};
use crate::format::bytes::read_bytes;
use crate::format::{Array, Census, FormatError, StoredBrick};
use crate::source::{Blocking, Folder, IndexCache, Source, SourceError};
use crate::volume::{ArrayInfo, Brick, Coded, Dims, Element, Layout, ObjectName, Plain, Region, StoredLength};

/// What the names of chunks may end in, in the order in which they are looked for: none, or what says how they are
/// compressed once more.
const SUFFIXES: [&str; 6] = ["", GZIP, ".br", ".zstd", ".xz", ".bz2"];
const GZIP: &str = ".gz";
/// How many of them are looked for where each look takes long: stores say in another way how objects are compressed.
const REMOTE_SUFFIXES: usize = 2;
/// How members of gzip begin.
const MAGIC: [u8; 3] = [0x1f, 0x8b, 8];
/// The most bytes that a byte of a member decodes to.
const EXPANSION: u64 = 1040;

/// Bytes of a shard's index that are read at a time.
const PAGE: u64 = 16 << 10;
/// A part of a chunk is decoded by itself if the chunk has this many times as many samples.
const MUCH_LESS: usize = 2;
/// The most bytes of an index that is requested with others.
const MAX_REQUESTED_INDEX: u64 = 256 << 10;
/// The most bytes of the index of a minishard.
const MAX_MINISHARD: u64 = 64 << 20;

pub(super) struct PrecomputedArray {
    info: ArrayInfo,
    scale: Scale,
    folder: Arc<dyn Folder>,
    /// What the names of objects begin with.
    prefix: String,
    gzip: Option<Box<dyn Codec>>,
    cache: Arc<IndexCache>,
    /// The first numbers of keys of the index cache: of objects and shards, and of minishards.
    id: u64,
    minishards_id: u64,
}

/// An object that has one chunk.
#[derive(Clone, Copy)]
struct Whole {
    length: u64,
    suffix: &'static str,
}

#[derive(Clone, Copy)]
enum Shard {
    Absent,
    Bytes(u64),
    /// Of an earlier form of the format: two objects in place of one.
    InTwo,
}

/// Where a shard has the index of a minishard, and its chunks.
struct MinishardPlace {
    index: Range<u64>,
    /// What lies behind the index of the shard.
    data: Range<u64>,
}

/// Where a chunk is stored.
struct Found {
    object: ObjectName,
    bytes: Range<u64>,
    gzip: Gzip,
}

/// Whether stored bytes are a member of gzip.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Gzip {
    Never,
    /// If they begin like one: stores keep objects so.
    Perhaps,
    Always,
}

impl PrecomputedArray {
    pub(super) fn new(
        info: ArrayInfo,
        scale: Scale,
        (folder, prefix): (Arc<dyn Folder>, String),
        cache: Arc<IndexCache>,
    ) -> Self {
        let gzip = codec("gzip", &Map::new()).ok();
        let (id, minishards_id) = (IndexCache::new_id(), IndexCache::new_id());
        Self { info, scale, folder, prefix, gzip, cache, id, minishards_id }
    }

    /// Returns the first voxel of a brick, and the samples that are stored for it; x, y, z.
    fn chunk(&self, at: &Dims) -> ([u64; 3], Chunk) {
        let scale = &self.scale;
        let begin = [0, 1, 2].map(|a| at[at.len() - 1 - a] * scale.chunk[a]);
        let extent = [0, 1, 2].map(|a| scale.chunk[a].min(scale.size[a] - begin[a]));
        (begin, Chunk { extent, channels: scale.channels, size: self.info.dtype.size() })
    }

    fn layout(&self, begin: [u64; 3], chunk: &Chunk) -> Layout {
        let (size, axes) = (chunk.size as u64, self.info.shape().len());
        let held = Region { start: shape_of(begin, axes), shape: shape(chunk.extent, chunk.channels) };
        let strides = if self.scale.encoding.has_pixels() {
            let pixel = size * chunk.channels;
            let [x, y, _] = chunk.extent;
            let all = [size, pixel * x * y, pixel * x, pixel];
            Dims::from_fn(axes, |axis| all[axis + all.len() - axes])
        } else {
            held.shape.strides(size)
        };
        Layout { held, first: 0, strides }
    }

    /// Returns the name of the object of a chunk that is not in a shard.
    fn name(&self, begin: [u64; 3], chunk: &Chunk) -> String {
        let mut name = self.prefix.clone();
        for (a, begin) in begin.into_iter().enumerate() {
            let first = i128::from(self.scale.offset[a]) + i128::from(begin);
            let separator = if a > 0 { "_" } else { "" };
            // writing to a string does not fail
            let _ = write!(name, "{separator}{first}-{}", first + i128::from(chunk.extent[a]));
        }
        name
    }

    /// Returns what the cache has under a key, or else makes it, which may wait.
    fn cached<T: Send + Sync + 'static>(
        &self,
        key: (u64, u64, u64),
        blocking: Blocking,
        make: impl FnOnce() -> Result<(T, usize), FormatError>,
    ) -> Result<Arc<T>, FormatError> {
        if let Some(known) = self.cache.get(key) {
            return Ok(known);
        }
        if blocking == Blocking::No {
            return Err(SourceError::WouldBlock.into());
        }
        let (made, bytes) = make()?;
        let made = Arc::new(made);
        self.cache.insert(key, &made, bytes);
        Ok(made)
    }

    /// Returns the object of a chunk that is not in a shard; `None` if it was never written.
    fn whole(&self, name: &str, number: u64, blocking: Blocking) -> Result<Option<Whole>, FormatError> {
        let found = self.cached((self.id, number, 0), blocking, || {
            let suffixes = if self.folder.fetches_ahead() { REMOTE_SUFFIXES } else { SUFFIXES.len() };
            let mut found = None;
            for suffix in &SUFFIXES[..suffixes] {
                let length = match *suffix {
                    "" => self.folder.len(name)?,
                    suffix => self.folder.len(&format!("{name}{suffix}"))?,
                };
                if let Some(length) = length {
                    found = Some(Whole { length, suffix });
                    break;
                }
            }
            Ok((found, size_of::<Option<Whole>>()))
        });
        Ok(*found?)
    }

    /// Returns where a chunk is stored; `None` if it was never written.
    fn find(&self, at: &Dims, blocking: Blocking) -> Result<Option<Found>, FormatError> {
        let (begin, chunk) = self.chunk(at);
        if let Some(sharding) = &self.scale.sharding {
            let position = [0, 1, 2].map(|a| at[at.len() - 1 - a]);
            return self.find_in_shard(sharding, sharding.address(position), blocking);
        }
        let name = self.name(begin, &chunk);
        let Some(whole) = self.whole(&name, self.info.grid.count().linear_of(at), blocking)? else { return Ok(None) };
        let gzip = match whole.suffix {
            "" => Gzip::Perhaps,
            GZIP => Gzip::Always,
            suffix => return Err(FormatError::Unsupported(format!("{name}{suffix}: {suffix} is not supported"))),
        };
        let object = if whole.suffix.is_empty() { name } else { format!("{name}{}", whole.suffix) };
        Ok(Some(Found { object: object.into(), bytes: 0..whole.length, gzip }))
    }

    fn find_in_shard(
        &self,
        sharding: &Sharding,
        address: Address,
        blocking: Blocking,
    ) -> Result<Option<Found>, FormatError> {
        let object = self.shard_name(sharding, &address);
        let place = self.minishard_place(sharding, &object, &address, blocking)?;
        let Some(MinishardPlace { index, data }) = place else { return Ok(None) };
        let minishard = self.cached((self.minishards_id, address.shard, address.minishard), blocking, || {
            let damaged = || {
                FormatError::DamagedObject(format!("{object}: the index of minishard {} is damaged", address.minishard))
            };
            let most = self.info.grid.total().saturating_mul(24).min(MAX_MINISHARD);
            let stored = index.end - index.start;
            let gzip = self.gzip.as_ref().filter(|_| sharding.index_is_gzip);
            if stored > gzip.map_or(most, |gzip| gzip.longest(most)) {
                return Err(damaged());
            }
            let stored = read_bytes(&*self.folder, &object, index.start, stored)?;
            let mut index = stored.ok_or(SourceError::Changed)?;
            self.folder.check_unchanged()?;
            if let Some(gzip) = gzip {
                index = gzip.decode_unsized(&index, most as usize).map_err(|_| damaged())?;
            }
            let minishard = Minishard::parse(&index).ok_or_else(damaged)?;
            let bytes = minishard.bytes();
            Ok((minishard, bytes))
        })?;
        let Some((start, bytes)) = minishard.find(address.chunk) else { return Ok(None) };
        let end = start.checked_add(bytes).filter(|end| *end <= data.end - data.start);
        let end = end.ok_or_else(|| {
            let number = address.chunk;
            FormatError::Damaged(format!("{object}: chunk {number} of {bytes} bytes at {start} is beyond its end"))
        })?;
        let gzip = if sharding.data_is_gzip { Gzip::Always } else { Gzip::Never };
        Ok(Some(Found { object: object.into(), bytes: data.start + start..data.start + end, gzip }))
    }

    fn shard_name(&self, sharding: &Sharding, address: &Address) -> String {
        format!("{}{}.shard", self.prefix, sharding.name(address.shard))
    }

    /// Returns where the index of a minishard is; `None` if it has no chunks.
    fn minishard_place(
        &self,
        sharding: &Sharding,
        object: &str,
        address: &Address,
        blocking: Blocking,
    ) -> Result<Option<MinishardPlace>, FormatError> {
        let shard = self.cached((self.id, address.shard, 0), blocking, || {
            let shard = match self.folder.len(object)? {
                Some(length) => Shard::Bytes(length),
                None if self.folder.len(&in_two(object))?.is_some() => Shard::InTwo,
                None => Shard::Absent,
            };
            Ok((shard, size_of::<Shard>()))
        })?;
        let length = match *shard {
            Shard::Absent => return Ok(None),
            Shard::InTwo => {
                let name = in_two(object);
                return Err(FormatError::Unsupported(format!("{name}: shards in two files are not supported")));
            }
            Shard::Bytes(length) => length,
        };
        let damaged = |why: String| FormatError::DamagedObject(format!("{object}: {why}"));
        let begin = sharding.index_bytes().filter(|begin| *begin <= length);
        let begin = begin.ok_or_else(|| damaged(format!("it has {length} bytes, fewer than its index")))?;
        let page = page_of(address, begin);
        let page = self.cached((self.id, address.shard, 1 + page.start / PAGE), blocking, || {
            let page = read_bytes(&*self.folder, object, page.start, page.end - page.start)?;
            let page = page.ok_or(SourceError::Changed)?;
            self.folder.check_unchanged()?;
            let bytes = page.capacity();
            Ok((page, bytes))
        })?;
        let entry = page.get((address.minishard * PLACE % PAGE) as usize..);
        let entry = entry.and_then(|rest| rest.first_chunk::<{ PLACE as usize }>());
        let (numbers, _) = entry.ok_or("the index of a shard is cut off")?.as_chunks::<8>();
        let [start, end] = [numbers[0], numbers[1]].map(u64::from_le_bytes);
        if start == end {
            return Ok(None);
        }
        if end > length - begin || start > end {
            return Err(damaged(format!("the index of minishard {} is at bytes {start} to {end}", address.minishard)));
        }
        Ok(Some(MinishardPlace { index: begin + start..begin + end, data: begin..length }))
    }

    /// Returns the most bytes that a chunk takes before it is made a member of gzip, of which there are `stored`.
    fn most_unpacked(&self, chunk: &Chunk, stored: u64) -> u64 {
        self.scale.encoding.longest(chunk).min(stored.saturating_mul(EXPANSION))
    }

    /// Returns the most bytes that a chunk takes as it is stored.
    fn longest(&self, chunk: &Chunk, gzip: Gzip) -> u64 {
        let bare = self.scale.encoding.longest(chunk);
        match self.gzip.as_ref().filter(|_| gzip != Gzip::Never) {
            Some(codec) => codec.longest(bare),
            None => bare,
        }
    }

    fn scratch(&self, chunk: &Chunk, stored: u64, gzip: Gzip) -> u64 {
        let encoding = self.scale.encoding;
        let Some(codec) = self.gzip.as_ref().filter(|_| gzip != Gzip::Never) else {
            return encoding.scratch(chunk, stored);
        };
        let own = codec.scratch(usize::try_from(chunk.bytes()).unwrap_or(usize::MAX)) as u64;
        if encoding == Encoding::Raw {
            return own;
        }
        let unpacked = self.most_unpacked(chunk, stored);
        own.saturating_add(unpacked).saturating_add(encoding.scratch(chunk, unpacked))
    }

    /// Returns how the chunk of a coded brick is stored, by its object.
    fn gzip_of(&self, object: &str) -> Gzip {
        match &self.scale.sharding {
            Some(sharding) if sharding.data_is_gzip => Gzip::Always,
            Some(_) => Gzip::Never,
            None if object.ends_with(GZIP) => Gzip::Always,
            None => Gzip::Perhaps,
        }
    }

    /// Decodes samples of a chunk: all, or those that are wanted along x, y and z.
    fn decode_chunk(
        &self,
        gzip: Gzip,
        stored: &[u8],
        (chunk, wanted): (&Chunk, &[Range<usize>; 3]),
        out: &mut [u8],
    ) -> Result<(), String> {
        let encoding = self.scale.encoding;
        let is_gzip = gzip == Gzip::Always || gzip == Gzip::Perhaps && stored.starts_with(&MAGIC);
        let Some(codec) = self.gzip.as_ref().filter(|_| is_gzip) else {
            return encoding.decode(stored, chunk, wanted, out);
        };
        if encoding == Encoding::Raw {
            return codec.decode(stored, out);
        }
        let most = usize::try_from(self.most_unpacked(chunk, stored.len() as u64)).unwrap_or(usize::MAX);
        encoding.decode(&codec.decode_unsized(stored, most)?, chunk, wanted, out)
    }
}

/// Returns the name of the index of a shard whose data would be in another object.
fn in_two(object: &str) -> String {
    format!("{}.index", object.trim_end_matches(".shard"))
}

/// Returns the page of a shard's index, which has `index` bytes, that says where a minishard is.
fn page_of(address: &Address, index: u64) -> Range<u64> {
    let begin = address.minishard * PLACE / PAGE * PAGE;
    begin..index.min(begin + PAGE)
}

/// Returns x, y, z in the order of the array's axes; the first channel.
fn shape_of([x, y, z]: [u64; 3], axes: usize) -> Dims {
    if axes > 3 { Dims::from([0, z, y, x]) } else { Dims::from([z, y, x]) }
}

impl Array for PrecomputedArray {
    fn info(&self) -> &ArrayInfo {
        &self.info
    }

    fn source(&self) -> &dyn Source {
        &*self.folder
    }

    fn origin(&self) -> [i64; 3] {
        self.scale.offset
    }

    fn brick(&self, at: &Dims, blocking: Blocking) -> Result<Brick, FormatError> {
        let count = self.info.grid.count();
        if at.len() != count.len() || at.iter().zip(count.iter()).any(|(at, count)| at >= count) {
            return Err(format!("there is no chunk {at:?}").into());
        }
        let Some(Found { object, bytes, gzip }) = self.find(at, blocking)? else {
            return Ok(Brick::Constant(Element::zero(self.info.dtype.size())));
        };
        let (begin, chunk) = self.chunk(at);
        let (length, decoded, layout) = (bytes.end - bytes.start, chunk.bytes(), self.layout(begin, &chunk));
        if self.scale.encoding == Encoding::Raw && gzip != Gzip::Always && length == decoded {
            return Ok(Brick::Plain(Plain { object, offset: bytes.start, layout }));
        }
        let damaged = |why: String| FormatError::Damaged(format!("chunk {at:?} in {}: {why}", &*object));
        if length > self.longest(&chunk, gzip) {
            return Err(damaged(format!("it has {length} bytes, more than its samples can take")));
        }
        let scratch = self.scratch(&chunk, length, gzip);
        let sizes = usize::try_from(decoded).ok().zip(usize::try_from(scratch).ok());
        let (decoded, scratch) = sizes.ok_or_else(|| damaged("it is too large".into()))?;
        let (offset, length) = (bytes.start, StoredLength::Bytes(length));
        Ok(Brick::Coded(Coded { offset, length, decoded, scratch, layout, codec: count.linear_of(at), object }))
    }

    fn decodes_fast(&self) -> bool {
        matches!(self.scale.encoding, Encoding::CompressedSegmentation(_))
    }

    fn part_around(&self, coded: &Coded, region: &Region) -> Option<Coded> {
        let held = coded.layout.held;
        let (axes, block) = (held.axes(), self.scale.encoding.block()?);
        if axes != block.len() {
            return None;
        }
        // whole planes of blocks, across the axis along which the fewest samples are wanted
        let slab = |axis: usize| {
            let (block, first) = (block[axes - 1 - axis] as u64, region.start[axis].checked_sub(held.start[axis])?);
            let begin = first / block * block;
            let end = (first + region.shape[axis]).next_multiple_of(block).min(held.shape[axis]);
            Some((end.saturating_sub(begin), axis, begin))
        };
        let (planes, axis, begin) =
            (0..axes).filter_map(slab).min_by_key(|(n, axis, _)| n * 1000 / held.shape[*axis])?;
        let mut part = held;
        (part.start[axis], part.shape[axis]) = (held.start[axis] + begin, planes);
        let size = self.info.dtype.size();
        let decoded = usize::try_from(part.samples()).ok()?.checked_mul(size)?;
        let layout = Layout { held: part, first: 0, strides: part.shape.strides(size as u64) };
        let is_small = decoded.saturating_mul(MUCH_LESS) <= coded.decoded;
        (is_small && part.contains(region)).then(|| Coded { decoded, layout, ..coded.clone() })
    }

    fn decode(&self, coded: &Coded, stored: &[u8], out: &mut [u8]) -> Result<(), FormatError> {
        let at = self.info.grid.count().index_of(coded.codec);
        let (begin, chunk) = self.chunk(&at);
        let mut wanted = chunk.whole();
        if (out.len() as u64) < chunk.bytes() {
            for (a, wanted) in wanted.iter_mut().enumerate() {
                let (held, axis) = (&coded.layout.held, at.len() - 1 - a);
                let first = (held.start[axis] - begin[a]) as usize;
                *wanted = first..first + held.shape[axis] as usize;
            }
        }
        self.decode_chunk(self.gzip_of(&coded.object), stored, (&chunk, &wanted), out)
            .map_err(|why| FormatError::Damaged(format!("chunk {at:?} in {}: {why}", &*coded.object)))
    }

    fn decoded_shape(&self, at: &Dims) -> Option<Dims> {
        let is_plain = self.scale.encoding == Encoding::Raw && !self.scale.is_in_gzip();
        (!is_plain).then(|| shape(self.chunk(at).1.extent, self.scale.channels))
    }

    fn stored_brick(&self, at: &Dims) -> Result<Option<StoredBrick>, FormatError> {
        // without shards each chunk would have to be asked for
        if self.scale.sharding.is_none() {
            return Ok(None);
        }
        let found = match self.find(at, Blocking::Yes) {
            Err(FormatError::Source(error)) => return Err(error.into()),
            found => found.ok().flatten(),
        };
        let is_coded = self.decoded_shape(at).is_some();
        let stored = |found: Found| StoredBrick { bytes: Some(found.bytes.end - found.bytes.start), is_coded };
        Ok(Some(found.map_or(StoredBrick::EMPTY, stored)))
    }

    fn stored_range(&self, at: &Dims) -> Result<Option<(ObjectName, Range<u64>)>, FormatError> {
        if self.scale.sharding.is_none() {
            let (begin, chunk) = self.chunk(at);
            let number = self.info.grid.count().linear_of(at);
            if self.cache.get::<Option<Whole>>((self.id, number, 0)).is_none() {
                // whether there is such an object comes with its bytes
                return Ok(Some((self.name(begin, &chunk).into(), 0..self.longest(&chunk, Gzip::Never))));
            }
        }
        Ok(self.find(at, Blocking::Yes)?.map(|found| (found.object, found.bytes)))
    }

    fn table_range(&self, at: &Dims, depth: usize) -> Option<(ObjectName, Range<u64>)> {
        let sharding = self.scale.sharding.as_ref()?;
        let address = sharding.address([0, 1, 2].map(|a| at[at.len() - 1 - a]));
        let (shard, object) = (address.shard, || self.shard_name(sharding, &address));
        let range = match depth {
            0 => Some(page_of(&address, sharding.index_bytes()?))
                .filter(|page| self.cache.get::<Vec<u8>>((self.id, shard, 1 + page.start / PAGE)).is_none()),
            1 if self.cache.get::<Minishard>((self.minishards_id, shard, address.minishard)).is_none() => {
                // who reads the brick gets the error
                let place = self.minishard_place(sharding, &object(), &address, Blocking::Yes).ok().flatten();
                place.map(|place| place.index)
            }
            _ => None,
        };
        let range = range.filter(|range| range.end - range.start <= MAX_REQUESTED_INDEX)?;
        Some((object().into(), range))
    }

    fn census(&self) -> Result<Option<Census>, FormatError> {
        Ok(None)
    }
}
