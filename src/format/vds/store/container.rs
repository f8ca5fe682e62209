//! The single-file container: numbered chunks in named files, each with a paged table of its own (section 1.1).

use std::collections::HashMap;
use std::sync::Arc;

use super::cloud::LAYOUT;
use super::text::{Spelling, Text};
use super::{ChunkTable, Metadata, Method, Record, StoredLayer};
use crate::format::FormatError;
use crate::source::{Index, IndexCache, Source, SourceError, WHOLE, Wait};

/// How a container begins.
pub const MAGIC: &[u8; 12] = b"HueDataStore";
const HEADER: usize = 32;
/// Bytes of an entry of the file table before the name.
const ENTRY: usize = 32;
/// Longer file tables are not read: one of all layers that a VDS can have takes a few hundred KiB.
const LONGEST_TABLE: u64 = 16 << 20;
/// Bytes of metadata that a file or a chunk may have.
const MOST_METADATA: i32 = 1000;
/// The name of the older description.
const OBJECT: &str = "VDSObject";
/// The kind of the files that are layers.
const LAYER: &[u8; 4] = b"VDS ";
/// Bytes of a page directory before the file's metadata.
const DIRECTORY: u64 = 16;

/// An open container.
pub struct Container {
    source: Arc<dyn Source>,
    /// The whole file: tables are all over it.
    index: Arc<Index>,
    length: u64,
    files: Vec<StoredFile>,
    /// Where in `files` a layer is, the first of its name.
    places: HashMap<String, usize>,
}

/// What the file table says of one file: not yet checked.
#[derive(Clone, Debug, PartialEq, Eq)]
struct StoredFile {
    kind: [u8; 4],
    name: String,
    directory: i64,
    chunks: i32,
    per_page: i32,
    chunk_metadata: i32,
    file_metadata: i32,
}

impl Container {
    /// Reads the header and the file table.
    ///
    /// # Errors
    /// [`FormatError::NotThisFormat`], [`FormatError::Unsupported`] for another version, [`FormatError::Damaged`] if the table
    /// is not within the file.
    pub fn open(source: Arc<dyn Source>, cache: Arc<IndexCache>) -> Result<Self, FormatError> {
        let length = source.len(WHOLE)?.unwrap_or(0);
        let mut header = [0; HEADER];
        if length < HEADER as u64 || !source.read_at(WHOLE, 0, &mut header, Wait::Yes)? || !header.starts_with(MAGIC) {
            return Err(FormatError::NotThisFormat("not a VDS: it does not begin as a HueDataStore".into()));
        }
        let version = u32_at(&header, 12);
        if version >> 16 != 1 {
            let (major, minor) = (version >> 16, version & 0xffff);
            return Err(FormatError::Unsupported(format!("container version {major}.{minor} is not known (1 is)")));
        }
        let damaged = |why: &str| FormatError::Damaged(format!("damaged header: {why}"));
        let (table, count, name) = (i64_at(&header, 16), i32_at(&header, 24), i32_at(&header, 28));
        let (Ok(table), Ok(count), Ok(name)) = (u64::try_from(table), u64::try_from(count), u64::try_from(name)) else {
            return Err(damaged("it has a negative offset, count or length"));
        };
        let entry = name + ENTRY as u64;
        let bytes = entry.saturating_mul(count);
        if table.checked_add(bytes).is_none_or(|end| end > length) {
            return Err(damaged(&format!(
                "{count} entries of the file table at byte {table} are beyond the end of the file"
            )));
        }
        if bytes > LONGEST_TABLE {
            return Err(damaged(&format!("its file table has {bytes} bytes")));
        }
        let mut entries = vec![0; bytes as usize];
        source.read_at(WHOLE, table, &mut entries, Wait::Yes)?;
        let files = entries.chunks_exact(entry as usize).map(StoredFile::parse).collect::<Vec<_>>();
        let mut places = HashMap::new();
        for (place, file) in files.iter().enumerate().filter(|(_, file)| &file.kind == LAYER) {
            places.entry(file.name.clone()).or_insert(place);
        }
        let index = Arc::new(Index::new(Arc::clone(&source), WHOLE, 0, length, cache));
        Ok(Self { source, index, length, files, places })
    }

    /// The description, in whichever spelling there is; `None` if there is none.
    ///
    /// # Errors
    /// [`FormatError::Damaged`] if its tables make no sense, and those of the source.
    pub fn text(&self) -> Result<Option<Text>, FormatError> {
        for (kind, name, spelling) in [(b"JSON", LAYOUT, Spelling::Json), (b"OBJ ", OBJECT, Spelling::Object)] {
            if let Some(place) = self.only_chunk(kind, name)? {
                let text = Text::new(Arc::clone(&self.source), WHOLE.into(), place, spelling);
                return text.map(Some).map_err(|e| FormatError::Damaged(format!("{name}: {e}")));
            }
        }
        Ok(None)
    }

    /// Where the only chunk of a file is; `None` if there is no such file.
    ///
    /// # Errors
    /// [`FormatError::Damaged`] if its tables make no sense, and those of the source.
    fn only_chunk(&self, kind: &[u8; 4], name: &str) -> Result<Option<(u64, u64)>, FormatError> {
        let Some(file) = self.files.iter().find(|file| &file.kind == kind && file.name == name) else {
            return Ok(None);
        };
        let damaged = |why: String| FormatError::Damaged(format!("{name}: {why}"));
        let named = |e: FormatError| match e {
            FormatError::Damaged(why) => damaged(why),
            other => other,
        };
        let (table, _) = self.table(file).map_err(named)?;
        if table.chunks == 0 {
            return Err(damaged("it is empty".into()));
        }
        let (offset, length, _) = table.entry(0, Wait::Yes).map_err(named)?;
        Ok(Some((offset, length)))
    }

    /// The names of all stored layers.
    pub fn layers(&self) -> impl Iterator<Item = &str> {
        self.files.iter().filter(|file| &file.kind == LAYER).map(|file| file.name.as_str())
    }

    /// A stored layer.
    ///
    /// # Errors
    /// [`FormatError::Damaged`] if its tables make no sense, and those of the source.
    pub fn layer(&self, name: &str) -> Result<StoredLayer, FormatError> {
        let file = self.places.get(name).and_then(|place| self.files.get(*place));
        let file = file.ok_or_else(|| FormatError::Damaged("it is not in the file table".into()))?;
        let (table, metadata) = self.table(file)?;
        let code = metadata.get(..4).map(|_| i32_at(&metadata, 0));
        let code = code.ok_or_else(|| FormatError::Damaged("it has no metadata that would say its method".into()))?;
        let method = Method::of_code(code)
            .ok_or_else(|| FormatError::Unsupported(format!("compression method {code} is not known")))?;
        if !matches!(table.chunk_metadata, 8 | 24) {
            let n = table.chunk_metadata;
            return Err(FormatError::Damaged(format!("it has {n} bytes of metadata for each chunk, not 8 or 24")));
        }
        let tolerance = metadata.get(4..8).map(|_| f32::from_bits(u32_at(&metadata, 4)));
        let chunks = table.chunks;
        Ok(StoredLayer { method, tolerance, chunks: Some(chunks), table: Box::new(table) })
    }

    /// The table of a file's chunks, and the file's metadata.
    fn table(&self, file: &StoredFile) -> Result<(FileTable, Vec<u8>), FormatError> {
        let damaged = |why: &str| FormatError::Damaged(why.into());
        let (Ok(chunks), Ok(directory)) = (u64::try_from(file.chunks), u64::try_from(file.directory)) else {
            return Err(damaged("its number of chunks, or the place of its page directory, is negative"));
        };
        let per_page = u64::try_from(file.per_page).ok().filter(|n| *n > 0);
        let per_page = per_page.ok_or_else(|| damaged("its index pages have no entries"))?;
        let metadata = |n: i32| u64::try_from(n).ok().filter(|_| n <= MOST_METADATA);
        let (Some(chunk_metadata), Some(file_metadata)) = (metadata(file.chunk_metadata), metadata(file.file_metadata))
        else {
            return Err(damaged("the length of its metadata makes no sense"));
        };
        let pages = directory.saturating_add(DIRECTORY + file_metadata);
        let end = chunks.div_ceil(per_page).checked_mul(8).and_then(|bytes| pages.checked_add(bytes));
        if end.is_none_or(|end| end > self.length) {
            return Err(damaged(&format!("its page directory at byte {directory} is not within the file")));
        }
        let mut metadata = vec![0; file_metadata as usize];
        self.index.read(directory + DIRECTORY, &mut metadata, Wait::Yes)?;
        let (source, index) = (Arc::clone(&self.source), Arc::clone(&self.index));
        let length = self.length;
        Ok((FileTable { source, index, length, pages, per_page, chunk_metadata, chunks }, metadata))
    }
}

impl StoredFile {
    /// Takes apart an entry of at least [`ENTRY`] bytes.
    fn parse(entry: &[u8]) -> Self {
        let name = &entry[ENTRY..];
        let end = name.iter().position(|b| *b == 0).unwrap_or(name.len());
        Self {
            directory: i64_at(entry, 0),
            chunks: i32_at(entry, 8),
            per_page: i32_at(entry, 16),
            kind: [entry[20], entry[21], entry[22], entry[23]],
            chunk_metadata: i32_at(entry, 24),
            file_metadata: i32_at(entry, 28),
            name: String::from_utf8_lossy(&name[..end]).into_owned(),
        }
    }
}

/// Where the chunks of one file are.
struct FileTable {
    source: Arc<dyn Source>,
    index: Arc<Index>,
    /// Bytes of the container.
    length: u64,
    /// Where the offsets of the index pages begin.
    pages: u64,
    per_page: u64,
    /// Bytes of metadata in each entry.
    chunk_metadata: u64,
    chunks: u64,
}

impl FileTable {
    /// LayerRef, length and metadata of a chunk; all zero if the page of its entry was never written.
    fn entry(&self, chunk: u64, wait: Wait) -> Result<(u64, u64, Metadata), FormatError> {
        let damaged = |why: String| FormatError::Damaged(format!("chunk {chunk}: {why}"));
        let page = self.index.u64_at(self.pages + 8 * (chunk / self.per_page), wait)?;
        if page == 0 {
            return Ok((0, 0, Metadata::default()));
        }
        let size = DIRECTORY + self.chunk_metadata;
        let at = page.checked_add(chunk % self.per_page * size).filter(|at| *at < self.length);
        let at = at.ok_or_else(|| damaged(format!("its index page at byte {page} is not within the file")))?;
        let mut entry = [0; DIRECTORY as usize + MOST_METADATA as usize];
        let entry = &mut entry[..size as usize];
        self.index.read(at, entry, wait).map_err(|e| match e {
            SourceError::TooShort { .. } => damaged(format!("its index page at byte {page} is cut off")),
            other => other.into(),
        })?;
        let (offset, length) = (i64_at(entry, 0), i32_at(entry, 8));
        let (Ok(offset), Ok(length)) = (u64::try_from(offset), u64::try_from(length)) else {
            return Err(damaged(format!("its place is negative ({length} bytes at {offset})")));
        };
        if offset.checked_add(length).is_none_or(|end| end > self.length) {
            return Err(damaged(format!("its {length} bytes at {offset} are beyond the end of the file")));
        }
        Ok((offset, length, Metadata::of(&entry[DIRECTORY as usize..])))
    }
}

impl ChunkTable for FileTable {
    fn source(&self) -> &dyn Source {
        &*self.source
    }

    fn record(&self, chunk: u64, wait: Wait) -> Result<Record, FormatError> {
        let (offset, length, metadata) = self.entry(chunk, wait)?;
        Ok(Record { metadata, object: WHOLE.into(), offset, length: Some(length) })
    }

    fn cost(&self) -> Option<u64> {
        Some(self.chunks.saturating_mul(DIRECTORY + self.chunk_metadata))
    }
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    bytes.get(at..).and_then(|b| b.first_chunk()).map_or(0, |b| u32::from_le_bytes(*b))
}

fn i32_at(bytes: &[u8], at: usize) -> i32 {
    u32_at(bytes, at) as i32
}

fn i64_at(bytes: &[u8], at: usize) -> i64 {
    bytes.get(at..).and_then(|b| b.first_chunk()).map_or(0, |b| i64::from_le_bytes(*b))
}
