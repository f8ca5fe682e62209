//! The single-file container, which begins with `HueDataStore`: named files of numbered chunks, each with a paged table
//! of its chunks.

use super::{ChunkMetadata, ChunkTable, CompressionMethod, DescriptionText, LAYOUT, Record, StoredLayer};
use crate::format::FormatError;
use crate::format::bytes::{ByteReader, read_bytes};
use crate::format::extents::Part;
use crate::source::{Blocking, Index, IndexCache, Source, SourceError, WHOLE};
use std::ops::Range;
use std::sync::Arc;

pub(crate) const MAGIC: &[u8; 12] = b"HueDataStore";
const HEADER: usize = 32;
/// Bytes of an entry of the file table before its name.
const ENTRY: usize = 32;
/// The longest file table that is read; one of all layers that a VDS can have takes a few hundred KiB.
const MAX_TABLE_BYTES: u64 = 16 << 20;
/// The most bytes of metadata of a file or a chunk.
const MAX_METADATA_BYTES: u64 = 1000;
/// The greatest count that is not negative.
const MAX_COUNT: u64 = i32::MAX as u64;
/// The file with the older description.
const OBJECT: &str = "VDSObject";
/// The kind of files that are stored layers.
const LAYER: &[u8; 4] = b"VDS ";
/// Bytes of a page directory before the file's metadata, and of a chunk's entry before its metadata.
const DIRECTORY: u64 = 16;

pub(crate) struct Container {
    source: Arc<dyn Source>,
    /// A cached reader of tables, which may be anywhere in the file.
    index: Arc<Index>,
    /// The version of the container: major and minor.
    pub version: (u32, u32),
    files: Vec<StoredFile>,
    file_table: Part,
}

/// An entry of the file table, not yet checked. Its numbers are signed in OpenVDS: negative ones are too large here.
#[derive(Clone, Debug, PartialEq, Eq)]
struct StoredFile {
    kind: [u8; 4],
    name: String,
    directory: u64,
    chunks: u64,
    per_page: u64,
    chunk_metadata: u64,
    file_metadata: u64,
}

impl Container {
    /// Reads the header and the file table.
    pub(crate) fn open(source: Arc<dyn Source>, cache: Arc<IndexCache>) -> Result<Self, FormatError> {
        let length = source.len(WHOLE)?.unwrap_or(0);
        let mut header = [0; HEADER];
        if length < HEADER as u64
            || !source.read_at(WHOLE, 0, &mut header, Blocking::Yes)?
            || !header.starts_with(MAGIC)
        {
            return Err(FormatError::NotThisFormat("not a VDS: it does not begin as a HueDataStore".into()));
        }
        let mut fields = ByteReader::new("container header", &header);
        fields.take(MAGIC.len())?;
        let version = fields.u32()?;
        let version @ (major, minor) = (version >> 16, version & 0xffff);
        if major != 1 {
            return Err(FormatError::Unsupported(format!("container version {major}.{minor} is not known (1 is)")));
        }
        let (table, count) = (fields.u64()?, u64::from(fields.u32()?));
        let entry = u64::from(fields.u32()?) + ENTRY as u64;
        let bytes = entry.saturating_mul(count);
        if table.checked_add(bytes).is_none_or(|end| end > length) {
            let text = format!("{count} entries of the file table at byte {table} are beyond the end of the file");
            return Err(format!("damaged header: {text}").into());
        }
        if bytes > MAX_TABLE_BYTES {
            return Err(format!("damaged header: its file table has {bytes} bytes").into());
        }
        let entries = read_bytes(&*source, WHOLE, table, bytes)?.ok_or(SourceError::Changed)?;
        let files = entries.chunks_exact(entry as usize).map(StoredFile::parse).collect::<Result<Vec<_>, _>>()?;
        let index = Arc::new(Index::new(Arc::clone(&source), WHOLE, 0, length, cache));
        let file_table = ("the file table".into(), table, bytes);
        Ok(Self { source, index, version, files, file_table })
    }

    /// Finds the text of the description, preferably the JSON; `None` if the container has none.
    pub(crate) fn text(&self) -> Result<Option<DescriptionText>, FormatError> {
        for (kind, name, is_json) in [(b"JSON", LAYOUT, true), (b"OBJ ", OBJECT, false)] {
            let Some(file) = self.files.iter().find(|file| &file.kind == kind && file.name == name) else { continue };
            // the only chunk of the file
            let text = || {
                let (table, _) = self.table(file)?;
                if table.chunks == 0 {
                    return Err("it is empty".into());
                }
                let (offset, length, _) = table.entry(0, Blocking::Yes)?;
                let source = Arc::clone(&self.source);
                DescriptionText { source, object: WHOLE.into(), offset, length, is_json }.checked()
            };
            return text().map(Some).map_err(|e: FormatError| e.of(name));
        }
        Ok(None)
    }

    /// Returns the parts of the container that are no chunks of layers.
    pub(crate) fn parts(&self) -> Vec<Part> {
        let mut parts = vec![("the header".into(), 0, HEADER as u64), self.file_table.clone()];
        for file in &self.files {
            // tables that are damaged are reported elsewhere
            let Ok((table, metadata)) = self.table(file) else { continue };
            let begin = table.pages.saturating_sub(DIRECTORY + metadata.len() as u64);
            let end = table.pages + 8 * table.chunks.div_ceil(table.per_page);
            parts.push((format!("the page directory of {}", file.name).into(), begin, end - begin));
            if &file.kind != LAYER
                && table.chunks > 0
                && let Ok((offset, length, _)) = table.entry(0, Blocking::Yes)
            {
                parts.push((file.name.clone().into(), offset, length));
            }
        }
        parts
    }

    /// Returns the stored layers: the number of the file, and its name.
    pub(crate) fn layers(&self) -> impl Iterator<Item = (usize, &str)> {
        let layers = self.files.iter().enumerate().filter(|(_, file)| &file.kind == LAYER);
        layers.map(|(number, file)| (number, file.name.as_str()))
    }

    pub(crate) fn layer(&self, number: usize) -> Result<StoredLayer, FormatError> {
        let file = &self.files[number];
        let (table, metadata) = self.table(file)?;
        let mut fields = ByteReader::new("layer metadata", &metadata);
        let code = fields.i32().map_err(|_| "it has no metadata that would say its method")?;
        let method = CompressionMethod::of_code(code)
            .ok_or_else(|| FormatError::Unsupported(format!("compression method {code} is not known")))?;
        if !matches!(table.chunk_metadata, 8 | 24) {
            let n = table.chunk_metadata;
            return Err(format!("it has {n} bytes of metadata for each chunk, not 8 or 24").into());
        }
        let tolerance = fields.f32().ok();
        let valid = fields.i32().ok().and_then(|valid| u64::try_from(valid).ok());
        let chunks = table.chunks;
        Ok(StoredLayer { method, tolerance, chunks: Some(chunks), valid, table: Box::new(table) })
    }

    /// Opens the table of a file's chunks, and the file's metadata.
    fn table(&self, file: &StoredFile) -> Result<(FileTable, Vec<u8>), FormatError> {
        let StoredFile { directory, chunks, per_page, chunk_metadata, file_metadata, .. } = *file;
        if chunks > MAX_COUNT {
            return Err("its number of chunks is negative".into());
        }
        if !(1..=MAX_COUNT).contains(&per_page) {
            return Err("its index pages have no entries".into());
        }
        if chunk_metadata.max(file_metadata) > MAX_METADATA_BYTES {
            return Err("the length of its metadata makes no sense".into());
        }
        let pages = directory.saturating_add(DIRECTORY + file_metadata);
        let end = chunks.div_ceil(per_page).checked_mul(8).and_then(|bytes| pages.checked_add(bytes));
        if end.is_none_or(|end| end > self.index.length()) {
            return Err(format!("its page directory at byte {directory} is not within the file").into());
        }
        let mut metadata = vec![0; file_metadata as usize];
        self.index.read(directory + DIRECTORY, &mut metadata, Blocking::Yes)?;
        let index = Arc::clone(&self.index);
        Ok((FileTable { index, pages, per_page, chunk_metadata, chunks }, metadata))
    }
}

impl StoredFile {
    /// Parses an entry of at least [`ENTRY`] bytes.
    fn parse(entry: &[u8]) -> Result<Self, FormatError> {
        let mut fields = ByteReader::new("file table", entry);
        let (directory, chunks) = (fields.u64()?, fields.u32()?.into());
        fields.take(4)?;
        let (per_page, kind) = (fields.u32()?.into(), fields.bytes()?);
        let (chunk_metadata, file_metadata) = (fields.u32()?.into(), fields.u32()?.into());
        let name = fields.rest();
        let end = name.iter().position(|b| *b == 0).unwrap_or(name.len());
        let name = String::from_utf8_lossy(&name[..end]).into_owned();
        Ok(Self { kind, name, directory, chunks, per_page, chunk_metadata, file_metadata })
    }
}

/// The table of the chunks of one file.
struct FileTable {
    index: Arc<Index>,
    /// The offset of the list of index pages.
    pages: u64,
    per_page: u64,
    /// Bytes of metadata in each entry.
    chunk_metadata: u64,
    chunks: u64,
}

impl FileTable {
    /// Reads offset, length and metadata of a chunk; all zero if the page of its entry was never written.
    fn entry(&self, chunk: u64, blocking: Blocking) -> Result<(u64, u64, ChunkMetadata), FormatError> {
        let damaged = |why: String| FormatError::Damaged(format!("chunk {chunk}: {why}"));
        let page = self.index.u64_at(self.pages + 8 * (chunk / self.per_page), blocking)?;
        if page == 0 {
            return Ok((0, 0, ChunkMetadata::default()));
        }
        let size = DIRECTORY + self.chunk_metadata;
        let at = page.checked_add(chunk % self.per_page * size).filter(|at| *at < self.index.length());
        let at = at.ok_or_else(|| damaged(format!("its index page at byte {page} is not within the file")))?;
        let mut entry = [0; DIRECTORY as usize + MAX_METADATA_BYTES as usize];
        let entry = &mut entry[..size as usize];
        self.index.read(at, entry, blocking).map_err(|e| match e {
            SourceError::TooShort { .. } => damaged(format!("its index page at byte {page} is cut off")),
            other => other.into(),
        })?;
        let mut fields = ByteReader::new("index page", &*entry);
        let (offset, length) = (fields.u64()?, u64::from(fields.u32()?));
        if offset.checked_add(length).is_none_or(|end| end > self.index.length()) {
            return Err(damaged(format!("its {length} bytes at {offset} are beyond the end of the file")));
        }
        Ok((offset, length, ChunkMetadata::of(&entry[DIRECTORY as usize..])))
    }
}

impl ChunkTable for FileTable {
    fn record(&self, chunk: u64, blocking: Blocking) -> Result<Record, FormatError> {
        let (offset, length, metadata) = self.entry(chunk, blocking)?;
        Ok(Record { metadata, object: WHOLE.into(), offset, length: Some(length) })
    }

    fn written_run(&self, chunk: u64, total: u64) -> Result<Range<u64>, FormatError> {
        let mut page = chunk / self.per_page;
        let pages = total.div_ceil(self.per_page);
        while page < pages && self.index.u64_at(self.pages + 8 * page, Blocking::Yes)? == 0 {
            page += 1;
        }
        let end = page.saturating_add(1).saturating_mul(self.per_page).min(total);
        Ok((page * self.per_page).max(chunk).min(total)..end)
    }

    fn visit_pages(&self, visit: &mut dyn FnMut(u64, u64)) -> Result<(), FormatError> {
        let entry = DIRECTORY + self.chunk_metadata;
        for page in 0..self.chunks.div_ceil(self.per_page) {
            let offset = self.index.u64_at(self.pages + 8 * page, Blocking::Yes)?;
            // the padding of the last page may be cut off
            let entries = self.per_page.min(self.chunks - page * self.per_page);
            if offset != 0 {
                visit(offset, entries.saturating_mul(entry));
            }
        }
        Ok(())
    }

    fn cost(&self) -> Option<u64> {
        Some(self.chunks.saturating_mul(DIRECTORY + self.chunk_metadata))
    }
}
