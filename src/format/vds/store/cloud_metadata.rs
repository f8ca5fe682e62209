//! The metadata of chunks in a folder of objects: in pages, with the object of each chunk, or in a file that lists the
//! metadata of all objects. Also finds out which chunks have an object.

use std::io;
use std::ops::Range;
use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value};

use super::ChunkMetadata;
use crate::format::FormatError;
use crate::format::bytes::{ByteReader, json_text, read_bytes};
use crate::format::extents::keep_least;
use crate::source::{Blocking, Folder, IndexCache, SourceError};
use crate::sync::Mutex;

/// At most so many bytes of a page are read at a time, in whole records.
const BLOCK: u64 = 16 << 10;
/// Bytes of a record that begins with the size of the chunk: 4 and 24 bytes of metadata.
const SIZED: u64 = 28;
/// Bytes of a record without the size.
const PLAIN: u64 = 8;
/// The chunks of a layer with more pages are not counted, since each page takes a request.
const MAX_COUNTED_PAGES: u64 = 64;

/// The pages of one layer.
pub(crate) struct MetadataPages {
    objects: Arc<Objects>,
    id: u64,
    layer: Box<str>,
    chunks: u64,
    /// Records in a page.
    size: u64,
    /// Bytes of a record.
    bytes: u64,
    /// The names of the pages, `None` for one that was never written. Without a directory the name of a page is its
    /// number.
    directory: Option<Vec<Option<Box<str>>>>,
}

impl MetadataPages {
    /// Creates the pages of a layer of `chunks` chunks with this record in `LayerStatus`.
    pub(crate) fn new(
        objects: Arc<Objects>,
        layer: &str,
        chunks: u64,
        status: &Map<String, Value>,
    ) -> Result<Self, String> {
        let size = number_at(status, "chunkMetadataPageSize")?.filter(|n| (1..=1 << 31).contains(n));
        let size = size.ok_or("chunkMetadataPageSize is missing or makes no sense")?;
        let bytes = number_at(status, "chunkMetadataByteSize")?.filter(|n| [PLAIN, SIZED].contains(n));
        let bytes = bytes.ok_or("chunkMetadataByteSize is neither 8 nor 28")?;
        let directory = status.get("pageDirectory").filter(|value| !value.is_null());
        let directory = directory.map(|value| names(value, chunks.div_ceil(size))).transpose()?;
        Ok(Self { objects, id: IndexCache::new_id(), layer: layer.into(), chunks, size, bytes, directory })
    }

    /// Reads the metadata of a chunk, and the size of its object if the record has it.
    pub(crate) fn record(&self, chunk: u64, blocking: Blocking) -> Result<(ChunkMetadata, Option<u64>), FormatError> {
        let page = chunk / self.size;
        let name = match &self.directory {
            None => page.to_string().into(),
            Some(names) => match usize::try_from(page).ok().and_then(|page| names.get(page)) {
                Some(Some(name)) => name.clone(),
                _ => return Ok((ChunkMetadata::default(), Some(0))),
            },
        };
        let number = chunk % self.size;
        let block = self.block(page, &name, number / self.per_block(), blocking)?;
        let mut records = block.chunks_exact(self.bytes as usize);
        let record = records.nth((number % self.per_block()) as usize).ok_or_else(|| {
            FormatError::Damaged(format!("chunk {chunk}: {} ends before its record", self.object(&name)))
        })?;
        let mut fields = ByteReader::new("metadata record", record);
        let length = if self.bytes == SIZED { Some(fields.u32()?.into()) } else { None };
        Ok((ChunkMetadata::of(fields.rest()), length))
    }

    fn per_block(&self) -> u64 {
        BLOCK / self.bytes
    }

    fn object(&self, name: &str) -> String {
        format!("{}/ChunkMetadata/{name}", self.layer)
    }

    /// Returns a block of a page, from the cache or the source.
    fn block(&self, page: u64, name: &str, number: u64, blocking: Blocking) -> Result<Arc<Vec<u8>>, FormatError> {
        let key = (self.id, page, number);
        if let Some(block) = self.objects.cache.get(key) {
            return Ok(block);
        }
        if blocking == Blocking::No {
            return Err(SourceError::WouldBlock.into());
        }
        let object = self.object(name);
        let missing = || FormatError::Damaged(format!("{object} is not there"));
        let length = self.objects.folder.len(&object)?.ok_or_else(missing)?;
        // bytes beyond the page's last record are ignored
        let end = length.min(self.size.min(self.chunks) * self.bytes);
        let (begin, most) = (number * self.per_block() * self.bytes, self.per_block() * self.bytes);
        let bytes = read_bytes(&*self.objects.folder, &object, begin, end.saturating_sub(begin).min(most))?;
        let block = Arc::new(bytes.ok_or_else(missing)?);
        self.objects.cache.insert(key, &block, block.capacity());
        Ok(block)
    }

    /// Returns the next chunks from `chunk` on, all below `total`, whose page was written.
    pub(crate) fn written_run(&self, chunk: u64, total: u64) -> Range<u64> {
        let Some(names) = &self.directory else { return chunk..total };
        let first = usize::try_from(chunk / self.size).unwrap_or(usize::MAX);
        let written = names.iter().enumerate().skip(first).find(|(_, name)| name.is_some());
        match written {
            None => total..total,
            Some((page, _)) => {
                let begin = (page as u64).saturating_mul(self.size);
                begin.max(chunk).min(total)..begin.saturating_add(self.size).min(total)
            }
        }
    }

    /// Returns the bytes of all records; `None` if they are in many objects.
    pub(crate) fn cost(&self) -> Option<u64> {
        (self.chunks.div_ceil(self.size) <= MAX_COUNTED_PAGES).then(|| self.chunks.saturating_mul(self.bytes))
    }
}

/// Returns a number in a record of `LayerStatus`.
pub(super) fn number_at(status: &Map<String, Value>, key: &str) -> Result<Option<u64>, String> {
    match status.get(key) {
        None | Some(Value::Null) => Ok(None),
        Some(value) => value.as_u64().map(Some).ok_or_else(|| format!("{key} {value} makes no sense")),
    }
}

/// Parses a page directory, which must have an entry for each page.
fn names(directory: &Value, pages: u64) -> Result<Vec<Option<Box<str>>>, String> {
    let list = directory.as_array().ok_or("pageDirectory is no list")?;
    if list.len() as u64 != pages {
        return Err(format!("pageDirectory has {} entries for {pages} pages", list.len()));
    }
    let name = |value: &Value| match value {
        Value::Number(n) if n.as_i64() == Some(-1) => Ok(None),
        Value::Number(n) if n.is_u64() => Ok(Some(n.to_string().into())),
        other => Err(format!("pageDirectory has {other}, which is no page")),
    };
    list.iter().map(name).collect()
}

const NAME: &str = "vdschunkmetadata";
/// Its key in old datasets.
const OLD_NAME: &str = "vds-chunk-metadata";
/// The file in the root of a copy that has the metadata of all objects.
const FILE: &str = "ObjectMetadata.json";
/// The longest such file that is read.
const MAX_FILE_BYTES: u64 = 4 << 20;

/// The metadata in the JSON file, sorted by the names of objects. As long as the longest file that is read fits into
/// the cache of index tables, it is read once.
#[derive(Default)]
pub(crate) struct Listed(pub Vec<(Box<str>, ChunkMetadata)>);

impl Listed {
    fn new(mut objects: Vec<(Box<str>, ChunkMetadata)>) -> Self {
        objects.shrink_to_fit();
        objects.sort_unstable_by(|a, b| a.0.cmp(&b.0));
        Self(objects)
    }

    fn get(&self, name: &str) -> Option<ChunkMetadata> {
        let found = self.0.binary_search_by_key(&name, |(name, _)| &**name);
        Some(self.0.get(found.ok()?)?.1)
    }

    /// Returns the bytes that it takes; for the allocator each name takes more than its own.
    fn bytes(&self) -> usize {
        let names: usize = self.0.iter().map(|(name, _)| name.len() + 16).sum();
        names + self.0.capacity() * size_of::<(Box<str>, ChunkMetadata)>()
    }
}

/// The objects of one dataset.
pub(crate) struct Objects {
    pub folder: Arc<dyn Folder>,
    pub cache: Arc<IndexCache>,
    pub id: u64,
}

impl Objects {
    /// Reads the metadata of an object. May wait.
    pub(crate) fn metadata(&self, object: &str) -> Result<Option<ChunkMetadata>, FormatError> {
        let Some(tag) = self.folder.tag(object, NAME)? else { return Ok(self.listed()?.get(object)) };
        let damaged = || FormatError::Damaged(format!("{object}: its attribute {NAME} is no metadata of a chunk"));
        decode(&tag).map(Some).ok_or_else(damaged)
    }

    /// Returns the metadata in the JSON file; empty if there is none. May wait.
    pub(crate) fn listed(&self) -> Result<Arc<Listed>, FormatError> {
        let key = (self.id, 0, 0);
        if let Some(listed) = self.cache.get(key) {
            return Ok(listed);
        }
        let length = match self.folder.len(FILE) {
            // without the right to list, stores deny objects that do not exist; they have the metadata with each object
            Err(SourceError::Io { kind: io::ErrorKind::PermissionDenied, .. }) if self.folder.fetches_ahead() => None,
            length => length?,
        };
        let mut listed = Vec::new();
        if let Some(length) = length.filter(|length| *length <= MAX_FILE_BYTES) {
            let damaged = |why: String| FormatError::Damaged(format!("{FILE}: {why}"));
            let text = read_bytes(&*self.folder, FILE, 0, length)?.unwrap_or_default();
            let text = json_text(&text).map_err(damaged)?;
            let objects: Map<_, Value> = serde_json::from_slice(text).map_err(|e| damaged(e.to_string()))?;
            let ours = |key: &str| {
                let key = key.to_ascii_lowercase();
                key.ends_with(NAME) || key.ends_with(OLD_NAME)
            };
            for (object, entries) in objects {
                let entry = entries.as_object().and_then(|entries| entries.iter().find(|(key, _)| ours(key)));
                let Some((_, value)) = entry else { continue };
                let metadata = value.as_str().and_then(|text| decode(text.as_bytes()));
                let why = || damaged(format!("{object} has {value}, which is no metadata of a chunk"));
                listed.push((object.as_str().into(), metadata.ok_or_else(why)?));
            }
        }
        let listed = Arc::new(Listed::new(listed));
        self.cache.insert(key, &listed, listed.bytes());
        Ok(listed)
    }
}

/// Decodes metadata, which may be base64, as in object stores, or binary.
fn decode(tag: &[u8]) -> Option<ChunkMetadata> {
    let whole = |bytes: &[u8]| matches!(bytes.len(), 8 | 24).then(|| ChunkMetadata::of(bytes));
    whole(tag).or_else(|| whole(&STANDARD.decode(tag.trim_ascii()).ok()?))
}

/// The numbers that a window keeps at least, if there are more. It keeps at most twice this number.
const WINDOW: usize = 1 << 18;

/// The numbers of the chunks that have an object, of which a window is known at a time.
#[derive(Default)]
pub(crate) struct ChunkObjects(Mutex<Option<Window>>);

/// All numbers from `begin` to before `end`, in ascending order.
#[derive(Debug, PartialEq, Eq)]
struct Window {
    begin: u64,
    /// `None` if there are no others behind them.
    end: Option<u64>,
    numbers: Vec<u64>,
}

impl ChunkObjects {
    /// Returns the next chunks from `chunk` on, all below `total`, that have an object. `visit_all` visits the numbers
    /// of all chunks that have one, in any order and perhaps several times.
    pub(crate) fn next_run(
        &self,
        chunk: u64,
        total: u64,
        visit_all: impl FnOnce(&mut dyn FnMut(u64)) -> Result<(), FormatError>,
    ) -> Result<Range<u64>, FormatError> {
        let mut window = self.0.lock();
        let known = window.take().filter(|known| known.begin <= chunk && known.end.is_none_or(|end| chunk < end));
        let known = match known {
            Some(known) => known,
            None => Window::read(chunk, WINDOW, visit_all)?,
        };
        let run = known.run_from(chunk, total);
        *window = Some(known);
        Ok(run)
    }
}

impl Window {
    /// Keeps the `size` least numbers from `begin` on.
    fn read(
        begin: u64,
        size: usize,
        visit_all: impl FnOnce(&mut dyn FnMut(u64)) -> Result<(), FormatError>,
    ) -> Result<Self, FormatError> {
        let (mut numbers, mut last) = (Vec::new(), None);
        visit_all(&mut |number| {
            if number >= begin {
                keep_least(&mut numbers, &mut last, size, number);
            }
        })?;
        numbers.sort_unstable();
        numbers.dedup();
        Ok(Self { begin, end: last.map(|last| last.saturating_add(1)), numbers })
    }

    /// Returns the next numbers from `chunk` on that follow one another. The result is empty if the window has no such
    /// number, and ends where the next window begins.
    fn run_from(&self, chunk: u64, total: u64) -> Range<u64> {
        let at = self.numbers.partition_point(|number| *number < chunk);
        let rest = self.numbers.get(at..).unwrap_or_default();
        let Some(first) = rest.first() else {
            let end = self.end.map_or(total, |end| end.min(total));
            return end..end;
        };
        let length = rest.iter().zip(*first..).take_while(|(number, expected)| *number == expected).count() as u64;
        (*first).min(total)..first.saturating_add(length).min(total)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_longest_list_fits_into_the_cache() {
        // the cache of a mount keeps so many bytes of parts of tables
        let cache = (41 << 20) / 5;
        // each object takes one entry, whose value is an object with one entry, and so two of the values that a
        // description may have
        let (objects, name) = ((1 << 17) / 2, "layer/1234567");
        let entry = format!("\"{name}\":{{\"vdschunkmetadata\":\"AAAZQwEBAQE=\"}},").len();
        let of = |n: u64| ChunkMetadata { hash: n, levels: [7; 16] };
        let mut listed = vec![("a".into(), of(9))];
        for n in (0..objects.min(MAX_FILE_BYTES as usize / entry) as u64).rev() {
            listed.push((format!("layer/{n:07}").into(), of(n)));
        }
        let listed = Listed::new(listed);
        assert!(listed.bytes() + 4096 < cache, "{}", listed.bytes());
        let each = size_of::<(Box<str>, ChunkMetadata)>() + 16;
        assert!(MAX_FILE_BYTES as usize + objects * each < cache);
        assert_eq!(listed.get("layer/0004711"), Some(of(4711)));
        assert_eq!((listed.get("a"), listed.get("b"), listed.get("")), (Some(of(9)), None, None));
    }

    #[test]
    fn metadata_is_decoded_from_base64_or_used_as_it_is() {
        assert_eq!(decode(b"AAAZQwEBAQE="), Some(ChunkMetadata::of(&[0, 0, 0x19, 0x43, 1, 1, 1, 1])));
        assert_eq!(decode(&[7; 24]), Some(ChunkMetadata::of(&[7; 24])));
        assert_eq!(decode(b"AAAZQwEBAQE"), None);
        assert_eq!(decode(b"AAAA"), None);
        assert_eq!(decode(b""), None);
    }

    #[test]
    fn runs_are_those_of_the_objects() {
        let (objects, mut listings) = (ChunkObjects::default(), 0);
        let mut run = |chunk| {
            let run = objects.next_run(chunk, 100, |visit| {
                listings += 1;
                [7, 200, 3, 4, 5, 99, 4].into_iter().for_each(visit);
                Ok(())
            });
            run.unwrap()
        };
        assert_eq!([run(0), run(4), run(6), run(8), run(100)], [3..6, 4..6, 7..8, 99..100, 100..100]);
        assert_eq!(listings, 1);
    }

    proptest! {
        #[test]
        fn windows_hold_all_numbers(
            numbers in prop::collection::vec(0u64..200, 0..100), size in 1usize..20, total in 0u64..220
        ) {
            let mut expected: Vec<u64> = numbers.iter().copied().filter(|number| *number < total).collect();
            expected.sort_unstable();
            expected.dedup();
            let (mut found, mut chunk) = (Vec::new(), 0);
            while chunk < total {
                let window = Window::read(chunk, size, |visit| {
                    numbers.iter().copied().for_each(visit);
                    Ok(())
                });
                let window = window.unwrap();
                prop_assert!(window.numbers.len() <= 2 * size);
                let run = window.run_from(chunk, total);
                found.extend(run.clone());
                // as `Array::visit_stored` goes on
                chunk = run.end.max(chunk + 1);
            }
            prop_assert_eq!(found, expected);
        }
    }
}
