//! The layout of OpenVDS in object stores, here a folder: an object for the description, one for the list of layers,
//! and one for each chunk.

use std::ops::Range;
use std::sync::{Arc, OnceLock};

use serde_json::{Map, Value};

use super::cloud_metadata::{ChunkObjects, MetadataPages, Objects, number_at};
use super::{
    ChunkMetadata, ChunkTable, CompressionMethod, Content, DescriptionText, MAX_DESCRIPTION_BYTES, Record, StoredLayer,
};
use crate::format::FormatError;
use crate::format::bytes::{decimal, json_text, read_bytes};
use crate::source::{Blocking, Folder, IndexCache, Source, SourceError};
use crate::volume::ObjectName;

/// The object with the description.
pub(crate) const LAYOUT: &str = "VolumeDataLayout";
/// The object that lists the layers.
pub(crate) const STATUS: &str = "LayerStatus";
/// Copies of a dataset may have this extension on both names.
pub(crate) const EXTENSION: &str = ".json";

pub(crate) struct Cloud {
    objects: Arc<Objects>,
    status: Vec<Map<String, Value>>,
}

impl Cloud {
    pub(crate) fn open(folder: Arc<dyn Folder>, cache: Arc<IndexCache>) -> Result<Self, FormatError> {
        let damaged = |why: String| FormatError::Damaged(format!("{STATUS}: {why}"));
        let (name, length) = find_object(&*folder, STATUS)?;
        if length > MAX_DESCRIPTION_BYTES {
            return Err(damaged(format!("it has {length} bytes")));
        }
        let text = read_bytes(&*folder, &name, 0, length)?.ok_or_else(|| absent(&name))?;
        let text = json_text(&text).map_err(damaged)?;
        let status: Vec<Map<_, _>> = serde_json::from_slice(text).map_err(|e| damaged(e.to_string()))?;
        Ok(Self { objects: Arc::new(Objects { folder, cache, id: IndexCache::new_id() }), status })
    }

    /// Returns the text of the description.
    pub(crate) fn text(&self) -> Result<DescriptionText, FormatError> {
        let (name, length) = find_object(&*self.objects.folder, LAYOUT)?;
        let source = Arc::clone(&self.objects.folder) as Arc<dyn Source>;
        let text = DescriptionText { source, object: (&name).into(), offset: 0, length, is_json: true };
        text.checked().map_err(|e| e.of(&name))
    }

    /// Returns the stored layers: the number of the record, and the name. OpenVDS computes the others from these; their
    /// `produceStatus` is not Normal.
    pub(crate) fn layers(&self) -> impl Iterator<Item = (usize, &str)> {
        let is_stored = |record: &Map<String, Value>| match record.get("produceStatus") {
            Some(Value::String(status)) => status == "Normal",
            _ => true,
        };
        let layers = self.status.iter().enumerate().filter(move |(_, record)| is_stored(record));
        layers.map(|(number, record)| (number, name_of(record)))
    }

    /// Opens a stored layer, which has `chunks` chunks by its chunk grid.
    pub(crate) fn layer(&self, number: usize, chunks: u64) -> Result<StoredLayer, FormatError> {
        let record = &self.status[number];
        let name = name_of(record);
        if name.split('/').any(|part| matches!(part, "" | "." | "..")) {
            return Err("its name is no name of a folder".into());
        }
        let method = match record.get("compressionMethod") {
            None => CompressionMethod::None,
            Some(Value::String(method)) => CompressionMethod::of_name(method)
                .ok_or_else(|| FormatError::Unsupported(format!("compression method {method} is not known")))?,
            Some(other) => return Err(format!("compressionMethod {other} is no name").into()),
        };
        let stated = number_at(record, "chunkCount")?;
        let pages = match record.get("hasChunkMetadataPages").and_then(Value::as_bool) {
            Some(true) => Some(MetadataPages::new(Arc::clone(&self.objects), name, chunks, record)?),
            _ => None,
        };
        let tolerance = record.get("compressionTolerance").and_then(Value::as_f64).map(|t| t as f32);
        let table = CloudTable {
            objects: Arc::clone(&self.objects),
            id: IndexCache::new_id(),
            layer: name.into(),
            pages,
            window: ChunkObjects::default(),
            tells_names: OnceLock::new(),
        };
        let valid = record.get("validChunkCount").and_then(Value::as_u64);
        Ok(StoredLayer { method, tolerance, chunks: stated, valid, table: Box::new(table) })
    }
}

fn name_of(record: &Map<String, Value>) -> &str {
    record.get("layerName").and_then(Value::as_str).unwrap_or("")
}

/// Finds the name of an object, with or without the extension, and its length.
fn find_object(folder: &dyn Folder, name: &str) -> Result<(String, u64), FormatError> {
    for name in [name.to_owned(), format!("{name}{EXTENSION}")] {
        if let Some(length) = folder.len(&name)? {
            return Ok((name, length));
        }
    }
    Err(absent(name))
}

fn absent(name: &str) -> FormatError {
    FormatError::NotThisFormat(format!("there is no {name}"))
}

/// The table of the chunks of one layer.
struct CloudTable {
    objects: Arc<Objects>,
    id: u64,
    layer: Box<str>,
    /// `None` if each chunk has its metadata with its object.
    pages: Option<MetadataPages>,
    window: ChunkObjects,
    /// Whether names of objects are told, if that is known.
    tells_names: OnceLock<bool>,
}

/// The metadata and length of a chunk whose metadata is in no page.
type ChunkObject = (ChunkMetadata, u64);

impl CloudTable {
    fn object(&self, chunk: u64) -> ObjectName {
        format!("{}/{chunk}", self.layer).into()
    }

    /// Returns whether the source tells the names of objects: web servers do not.
    fn tells_names(&self) -> Result<bool, FormatError> {
        if let Some(known) = self.tells_names.get() {
            return Ok(*known);
        }
        let tells = self.objects.folder.list(&self.layer, &mut |_, _| false)?;
        Ok(*self.tells_names.get_or_init(|| tells))
    }

    /// Looks up a chunk whose metadata is in no page: it is with the chunk's object.
    fn look_up(&self, chunk: u64) -> Result<ChunkObject, FormatError> {
        let name = self.object(chunk);
        let object = &*name;
        let (length, tag) = (self.objects.folder.len(object)?, self.objects.metadata(object)?);
        let damaged = |why: &str| FormatError::Damaged(format!("chunk {chunk}: {why}"));
        match (length, tag) {
            (None, None) => Ok((ChunkMetadata::default(), 0)),
            (None, Some(tag)) if tag.content() == Content::Stored => {
                Err(damaged(&format!("{object} is not there, although there is metadata of it")))
            }
            (length, Some(tag)) => Ok((tag, length.unwrap_or(0))),
            // without metadata an object with bytes is data, since constant chunks have no bytes; any hash that stands
            // for data is right
            (Some(0), None) => Err(damaged(&format!(
                "{object} has no bytes, and its value was in metadata that this copy of the dataset has lost"
            ))),
            (Some(length), None) => Ok((ChunkMetadata { hash: 1, levels: [0; 16] }, length)),
        }
    }
}

impl ChunkTable for CloudTable {
    fn record(&self, chunk: u64, blocking: Blocking) -> Result<Record, FormatError> {
        let object = self.object(chunk);
        if let Some(pages) = &self.pages {
            let (metadata, length) = pages.record(chunk, blocking)?;
            return Ok(Record { metadata, object, offset: 0, length });
        }
        let key = (self.id, chunk, 0);
        let known = match self.objects.cache.get::<ChunkObject>(key) {
            Some(known) => known,
            None if blocking == Blocking::No => return Err(SourceError::WouldBlock.into()),
            None => {
                let known = Arc::new(self.look_up(chunk)?);
                self.objects.cache.insert(key, &known, size_of::<ChunkObject>());
                known
            }
        };
        let (metadata, length) = *known;
        Ok(Record { metadata, object, offset: 0, length: Some(length) })
    }

    fn unread_object(&self, chunk: u64) -> Option<ObjectName> {
        let is_unknown = self.pages.is_none() && self.objects.cache.get::<ChunkObject>((self.id, chunk, 0)).is_none();
        is_unknown.then(|| self.object(chunk))
    }

    fn check(&self, chunk: u64, record: &Record) -> Result<(), FormatError> {
        let Some(tag) = self.objects.metadata(&record.object)? else { return Ok(()) };
        let record = record.metadata;
        // not every writer stores the table of levels twice
        let levels = tag.levels == record.levels || [tag.levels, record.levels].contains(&[0; 16]);
        if self.pages.is_some() && (tag.hash != record.hash || !levels) {
            let why = "its metadata in the page and with the object are not the same: it was not written to the end";
            return Err(format!("chunk {chunk}: {why}").into());
        }
        Ok(())
    }

    fn has_checks(&self) -> bool {
        self.pages.is_some()
    }

    fn written_run(&self, chunk: u64, total: u64) -> Result<Range<u64>, FormatError> {
        if let Some(pages) = &self.pages {
            return Ok(pages.written_run(chunk, total));
        }
        if !self.tells_names()? {
            return Ok(chunk..total);
        }
        self.window.next_run(chunk, total, |visit| {
            self.objects.folder.list(&self.layer, &mut |name, _| {
                decimal(name).into_iter().for_each(&mut *visit);
                true
            })?;
            let below = format!("{}/", self.layer);
            let listed = self.objects.listed()?;
            let numbers = listed.0.iter().filter_map(|(object, _)| decimal(object.strip_prefix(&below)?));
            numbers.for_each(visit);
            Ok(())
        })
    }

    fn cost(&self) -> Option<u64> {
        self.pages.as_ref().and_then(MetadataPages::cost)
    }
}
