//! A stored layer as an array: the chunk of each brick, its location, its check and its decoding; and the bitmap of the
//! chunks that were checked.

use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use serde_json::json;

use super::chunk::{self, HEADER};
use super::chunk_grid::ChunkGrid;
use super::description::{Channel, SampleFormat};
use super::store::{CompressionMethod, Content, Record, StoredLayer};
use super::wavelet::{self, Expected};
use crate::format::{Array, Census, FormatError, MAX_COUNTED_BYTES, MAX_DESCRIBED_BYTES, StoredBrick, native};
use crate::source::{Blocking, IndexCache, Source, SourceError};
use crate::volume::{ArrayInfo, Brick, BrickCounts, BrickSet, Coded, Dims, Element, ObjectName, Plain, StoredLength};

pub(super) struct VdsArray {
    pub info: ArrayInfo,
    /// The layer's name in the container.
    pub name: Box<str>,
    pub grid: ChunkGrid,
    pub channel: Arc<Channel>,
    /// The adaptive level at which wavelet chunks are decoded; `None` for the best quality.
    pub quality: Option<u8>,
    pub source: Arc<dyn Source>,
    pub stored: StoredLayer,
    /// The chunks that [`VdsArray::check`] has passed.
    pub checked: CheckedBitmap,
    pub census: OnceLock<Option<Census>>,
}

impl VdsArray {
    fn damaged(&self, chunk: u64, why: String) -> FormatError {
        format!("chunk {chunk} of {}: {why}", self.name).into()
    }

    /// Returns the record of a chunk in the tables; errors name the layer.
    fn record(&self, chunk: u64, blocking: Blocking) -> Result<Record, FormatError> {
        self.stored.table.record(chunk, blocking).map_err(|e| e.of(&self.name))
    }

    fn is_bits(&self) -> bool {
        self.channel.format == SampleFormat::Bit
    }

    /// Returns whether the stored bytes of chunks are their samples.
    fn is_plain(&self) -> bool {
        self.stored.method == CompressionMethod::None && !self.is_bits()
    }

    /// Returns the brick of a chunk that has stored bytes.
    fn stored(&self, chunk: u64, at: &Dims, record: Record, blocking: Blocking) -> Result<Brick, FormatError> {
        if record.length == Some(0) {
            return Err(self.damaged(chunk, "it has data by its metadata, but no bytes".into()));
        }
        let plain = self.is_plain();
        if (plain || self.stored.table.has_checks()) && !self.checked.contains(chunk) {
            if blocking == Blocking::No {
                return Err(SourceError::WouldBlock.into());
            }
            self.check(chunk, at, &record, plain)?;
            self.checked.insert(chunk);
        }
        if plain {
            let layout = self.grid.layout(at, HEADER as u64);
            return Ok(Brick::Plain(Plain { object: record.object, offset: record.offset, layout }));
        }
        let (uncompressed, decoded) = (self.grid.uncompressed_bytes(at), self.grid.decoded_bytes(at));
        let most = chunk::most_stored_bytes(self.stored.method, uncompressed);
        let to_read = record.length.map(|length| self.bytes_to_read(&record, length));
        let length = match to_read {
            Some(length) if length > most => {
                return Err(
                    self.damaged(chunk, format!("its {length} bytes are more than {decoded} bytes of samples take"))
                );
            }
            Some(length) => StoredLength::Bytes(length),
            None => StoredLength::Rest { most },
        };
        Ok(Brick::Coded(Coded {
            object: record.object,
            offset: record.offset,
            length,
            decoded,
            scratch: match self.expected(at) {
                Some(expected) => wavelet::working_set(expected.size),
                None if self.is_bits() => uncompressed,
                None => 0,
            },
            layout: self.grid.layout(at, 0),
            codec: chunk,
        }))
    }

    /// Returns how many bytes of a chunk are read: at less than the best quality not all of them.
    fn bytes_to_read(&self, record: &Record, length: u64) -> u64 {
        match self.stored.method.is_wavelet() {
            true => wavelet::bytes_needed(&record.metadata.levels, length, self.quality),
            false => length,
        }
    }

    /// Returns the properties that a wavelet chunk must have; `None` for other methods.
    fn expected(&self, at: &Dims) -> Option<Expected> {
        use CompressionMethod::{WaveletLossless, WaveletNormalizeBlock, WaveletNormalizeBlockLossless};
        self.stored.method.is_wavelet().then(|| Expected {
            size: self.grid.sizes(at).map(|n| n as usize),
            dtype: self.info.dtype,
            no_value: self.channel.no_value,
            scale: self.channel.integer_scale,
            offset: self.channel.integer_offset,
            normalized: matches!(self.stored.method, WaveletNormalizeBlock | WaveletNormalizeBlockLossless),
            lossless: matches!(self.stored.method, WaveletLossless | WaveletNormalizeBlockLossless),
        })
    }

    /// Checks that the tables agree on a chunk and, if it is `plain` and so will not be decoded, that its header agrees
    /// with them.
    fn check(&self, chunk: u64, at: &Dims, record: &Record, plain: bool) -> Result<(), FormatError> {
        self.stored.table.check(chunk, record).map_err(|e| e.of(&self.name))?;
        if !plain {
            return Ok(());
        }
        let source = &self.source;
        let length = match record.length {
            Some(length) => Some(length),
            None => source.len(&record.object)?,
        };
        let absent = || self.damaged(chunk, format!("{} is not there", &*record.object));
        let (length, expected) = (length.ok_or_else(absent)?, HEADER as u64 + self.grid.uncompressed_bytes(at) as u64);
        if length != expected {
            return Err(self.damaged(chunk, format!("it has {length} bytes, expected {expected}")));
        }
        let mut header = [0; HEADER];
        if !source.read_at(&record.object, record.offset, &mut header, Blocking::Yes)? {
            return Err(absent());
        }
        chunk::check_header(&header, &self.grid, self.channel.format, at).map_err(|why| self.damaged(chunk, why))
    }

    /// Visits the chunks that may have been written, in runs, until `visit` returns `false`.
    pub(super) fn visit_runs(
        &self,
        mut visit: impl FnMut(Range<u64>) -> Result<bool, FormatError>,
    ) -> Result<(), FormatError> {
        let (mut chunk, total) = (0, self.grid.total());
        while chunk < total {
            let run = self.stored.table.written_run(chunk, total)?;
            chunk = run.end.max(chunk + 1);
            if !run.is_empty() && !visit(run)? {
                break;
            }
        }
        Ok(())
    }

    /// Returns whether the records of all chunks have at most `most` bytes.
    fn is_within(&self, most: u64) -> bool {
        self.stored.table.cost().is_some_and(|cost| cost <= most)
    }

    fn count(&self) -> Result<Option<Census>, FormatError> {
        if !self.is_within(MAX_COUNTED_BYTES) {
            return Ok(None);
        }
        let mut counts = BrickCounts { total: self.grid.total(), ..BrickCounts::default() };
        let mut damaged = 0u64;
        for chunk in 0..counts.total {
            match self.stored.table.record(chunk, Blocking::Yes) {
                Ok(record) => match record.metadata.content() {
                    Content::Unwritten => counts.missing += 1,
                    Content::NoValue | Content::Constant(_) => counts.constant += 1,
                    Content::Stored => counts.stored += 1,
                },
                Err(FormatError::Damaged(_)) => damaged += 1,
                Err(other) => return Err(other),
            }
        }
        Ok(Some(Census { counts, codec: self.stored.method.codec(), native: native(json!({"damaged": damaged})) }))
    }
}

impl Array for VdsArray {
    fn info(&self) -> &ArrayInfo {
        &self.info
    }

    fn source(&self) -> &dyn Source {
        &*self.source
    }

    fn brick(&self, at: &Dims, blocking: Blocking) -> Result<Brick, FormatError> {
        let chunk = self.grid.number_of(at).ok_or_else(|| format!("there is no brick {at:?}"))?;
        let record = self.record(chunk, blocking)?;
        match record.metadata.content() {
            Content::Unwritten | Content::NoValue => Ok(Brick::Constant(self.unwritten())),
            Content::Constant(v) => Ok(Brick::Constant(chunk::element(&self.channel, v))),
            Content::Stored => self.stored(chunk, at, record, blocking),
        }
    }

    fn unwritten(&self) -> Element {
        chunk::no_value(&self.channel)
    }

    fn decode(&self, coded: &Coded, stored: &[u8], out: &mut [u8]) -> Result<(), FormatError> {
        let chunk = coded.codec;
        let at = self.grid.position_of(chunk);
        let decoded = match self.expected(&at) {
            Some(expected) => {
                wavelet::with_scratch(|scratch| wavelet::decode(stored, &expected, self.quality, scratch, out))
            }
            None => chunk::decode(self.stored.method, stored, &self.grid, self.channel.format, &at, out),
        };
        decoded.map_err(|why| self.damaged(chunk, why))
    }

    fn decoded_shape(&self, at: &Dims) -> Option<Dims> {
        (!self.is_plain()).then(|| self.grid.layout(at, 0).held.shape)
    }

    fn stored_brick(&self, at: &Dims) -> Result<Option<StoredBrick>, FormatError> {
        let known = self.grid.number_of(at).filter(|_| self.is_within(MAX_DESCRIBED_BYTES));
        let Some(chunk) = known else { return Ok(None) };
        let record = match self.record(chunk, Blocking::Yes) {
            Err(FormatError::Damaged(_)) => return Ok(Some(StoredBrick::EMPTY)),
            record => record?,
        };
        Ok(Some(match record.metadata.content() {
            Content::Stored => StoredBrick {
                bytes: record.length.map(|length| self.bytes_to_read(&record, length)),
                is_coded: !self.is_plain(),
            },
            Content::Unwritten | Content::NoValue | Content::Constant(_) => StoredBrick::EMPTY,
        }))
    }

    fn stored_range(&self, at: &Dims) -> Result<Option<(ObjectName, Range<u64>)>, FormatError> {
        let Some(chunk) = self.grid.number_of(at) else { return Ok(None) };
        let most = chunk::most_stored_bytes(self.stored.method, self.grid.uncompressed_bytes(at));
        if let Some(object) = self.stored.table.unread_object(chunk) {
            return Ok(Some((object, 0..most)));
        }
        let record = self.record(chunk, Blocking::Yes)?;
        if record.metadata.content() != Content::Stored {
            return Ok(None);
        }
        let length = record.length.map_or(most, |length| self.bytes_to_read(&record, length));
        // reading the chunk says so
        if length > most {
            return Ok(None);
        }
        Ok(Some((record.object, record.offset..record.offset.saturating_add(length))))
    }

    fn visit_stored(&self, visit: &mut dyn FnMut(BrickSet) -> bool) -> Result<(), FormatError> {
        // chunks and bricks are numbered in the same order
        self.visit_runs(|run| Ok(visit(BrickSet::Run(run))))
    }

    fn census(&self) -> Result<Option<Census>, FormatError> {
        if let Some(known) = self.census.get() {
            return Ok(known.clone());
        }
        let counted = self.count()?;
        Ok(self.census.get_or_init(|| counted).clone())
    }
}

/// 64-bit words of a block.
const WORDS: usize = 64;
/// Chunks of a block.
const CHUNKS: u64 = 64 * WORDS as u64;

type Block = [AtomicU64; WORDS];

/// The checked chunks of one layer. Blocks may be evicted: their chunks are then checked again.
pub(super) struct CheckedBitmap {
    cache: Arc<IndexCache>,
    id: u64,
}

impl CheckedBitmap {
    pub(super) fn new(cache: Arc<IndexCache>) -> Self {
        Self { cache, id: IndexCache::new_id() }
    }

    pub(super) fn contains(&self, chunk: u64) -> bool {
        let (block, word, bit) = self.find(chunk);
        block[word].load(Ordering::Relaxed) & bit != 0
    }

    pub(super) fn insert(&self, chunk: u64) {
        let (block, word, bit) = self.find(chunk);
        block[word].fetch_or(bit, Ordering::Relaxed);
    }

    /// Returns the block of a chunk, and the word and the bit in it.
    fn find(&self, chunk: u64) -> (Arc<Block>, usize, u64) {
        let key = (self.id, chunk / CHUNKS, 0);
        let block = self.cache.get::<Block>(key).unwrap_or_else(|| {
            let block = Arc::new(std::array::from_fn(|_| AtomicU64::new(0)));
            self.cache.insert(key, &block, size_of::<Block>());
            block
        });
        (block, (chunk / 64) as usize % WORDS, 1 << (chunk % 64))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_inserted_chunks_are_contained() {
        let bitmap = CheckedBitmap::new(IndexCache::new(1 << 20));
        let set = [0, 1, 63, 64, 4095, 4096, u64::MAX];
        set.iter().for_each(|chunk| bitmap.insert(*chunk));
        assert!(set.iter().all(|chunk| bitmap.contains(*chunk)));
        assert!([2, 62, 65, 4094, 4097, 8192].iter().all(|chunk| !bitmap.contains(*chunk)));
    }
}
