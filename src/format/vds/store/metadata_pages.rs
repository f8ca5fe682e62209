//! Chunk metadata in pages: one object has the metadata of many chunks.

use std::ops::Range;
use std::sync::Arc;

use serde_json::Value;

use super::chunk_table::ChunkMetadata;
use crate::format::FormatError;
use crate::format::bytes::ByteReader;
use crate::source::{Blocking, Folder, IndexCache, SourceError};

/// Bytes of a page that are read at a time.
const BLOCK: u64 = 16 << 10;
/// Bytes of a record that begins with the size of the chunk: 4 and 24 bytes of metadata.
const SIZED: u64 = 28;
/// Bytes of a record without the size.
const PLAIN: u64 = 8;
/// The chunks of a layer with more pages are not counted, since each page takes a request.
const MAX_COUNTED_PAGES: u64 = 64;

/// The pages of one layer.
pub(crate) struct MetadataPages {
    folder: Arc<dyn Folder>,
    cache: Arc<IndexCache>,
    id: u64,
    layer: Box<str>,
    /// The number of chunks of the layer.
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
    /// Creates the pages of a layer of `chunks` chunks.
    pub(crate) fn new(
        folder: Arc<dyn Folder>,
        cache: Arc<IndexCache>,
        layer: &str,
        chunks: u64,
        size: Option<u64>,
        bytes: Option<u64>,
        directory: Option<&Value>,
    ) -> Result<Self, String> {
        let size = size.filter(|n| (1..=1 << 31).contains(n));
        let size = size.ok_or("chunkMetadataPageSize is missing or makes no sense")?;
        let bytes = bytes.filter(|n| [PLAIN, SIZED].contains(n));
        let bytes = bytes.ok_or("chunkMetadataByteSize is neither 8 nor 28")?;
        let directory = directory.map(|value| names(value, chunks.div_ceil(size))).transpose()?;
        Ok(Self { folder, cache, id: IndexCache::new_id(), layer: layer.into(), chunks, size, bytes, directory })
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
        let mut record = [0; SIZED as usize];
        let record = &mut record[..self.bytes as usize];
        let mut at = chunk % self.size * self.bytes;
        let mut left = &mut record[..];
        // a record may begin in one block and end in the next
        while !left.is_empty() {
            let block = self.block(page, &name, at / BLOCK, blocking)?;
            let within = (at % BLOCK) as usize;
            let found = block.get(within..).filter(|bytes| !bytes.is_empty()).ok_or_else(|| {
                FormatError::Damaged(format!("chunk {chunk}: {} ends before its record", self.object(&name)))
            })?;
            let n = found.len().min(left.len());
            let (head, rest) = left.split_at_mut(n);
            head.copy_from_slice(&found[..n]);
            left = rest;
            at += n as u64;
        }
        let mut fields = ByteReader::new("metadata record", &*record);
        let length = if self.bytes == SIZED { Some(fields.u32()?.into()) } else { None };
        Ok((ChunkMetadata::of(fields.rest()), length))
    }

    fn object(&self, name: &str) -> String {
        format!("{}/ChunkMetadata/{name}", self.layer)
    }

    /// Returns a block of a page, from the cache or the source.
    fn block(&self, page: u64, name: &str, number: u64, blocking: Blocking) -> Result<Arc<Vec<u8>>, FormatError> {
        let key = (self.id, page, number);
        if let Some(block) = self.cache.get(key) {
            return Ok(block);
        }
        if blocking == Blocking::No {
            return Err(SourceError::WouldBlock.into());
        }
        let object = self.object(name);
        let missing = || FormatError::Damaged(format!("{object} is not there"));
        let length = self.folder.len(&object)?.ok_or_else(missing)?;
        // bytes beyond the page's last record are ignored
        let end = length.min(self.size.min(self.chunks) * self.bytes);
        let mut bytes = vec![0; end.saturating_sub(number * BLOCK).min(BLOCK) as usize];
        if !self.folder.read_at(&object, number * BLOCK, &mut bytes, blocking)? {
            return Err(missing());
        }
        let block = Arc::new(bytes);
        self.cache.insert(key, &block, block.capacity());
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
