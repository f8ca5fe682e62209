//! One dataset: what its header says, as an array, or why it is not shown.

use std::sync::{Arc, OnceLock};

use serde_json::{Value, json};

use super::array::{Hdf5Array, Storage};
use super::chunks::Chunks;
use super::data_type::DataType;
use super::file::File;
use super::filters::Filters;
use super::header::{Dataspace, Header, Place, kind};
use super::heap::global_value;
use super::mapping::mappings;
use super::message::{self, IndexKind, Layout};
use super::settled;
use super::sources::{Sources, resolve};
use crate::format::chunked::Hidden;
use crate::format::{FormatError, native};
use crate::source::Blocking;
use crate::volume::{ArrayInfo, Axis, BrickGrid, Dims, MAX_AXES, slab};

/// Chunks that are decoded so often in one pass are slow to read.
const MANY_DECODES: u64 = 8;

/// Returns what a header describes, or why it is not shown; a virtual dataset if its `sources` may be looked for. Fails
/// if the system has failed.
pub(super) fn open(
    at: &Place<'_>,
    file: &Arc<File>,
    header: &Header,
    sources: Option<&Sources<'_>>,
) -> Result<Result<Hdf5Array, Hidden>, FormatError> {
    let mut shape = None;
    let opened = describe(at, file, header, (sources, &mut shape));
    settled(opened).map(|opened| opened.map_err(|hidden| Hidden { shape, ..hidden }))
}

fn describe(
    at: &Place<'_>,
    file: &Arc<File>,
    header: &Header,
    (sources, known_shape): (Option<&Sources<'_>>, &mut Option<Dims>),
) -> Result<Hdf5Array, FormatError> {
    let unsupported = |why: String| FormatError::Unsupported(why);
    let content = |kind: u16, what: &str| -> Result<_, FormatError> {
        header.content_of(at, kind)?.ok_or_else(|| format!("it has no {what}").into())
    };
    if let Some(unknown) = header.unknown() {
        return Err(unsupported(format!("its header has a message of the unknown kind {unknown}")));
    }
    let space = Dataspace::parse(file.fields("dataspace", &content(kind::DATASPACE, "dataspace")?))?;
    let mut own = space.shape.ok_or_else(|| unsupported("it has no samples".into()))?;
    *known_shape = Dims::from_slice(&own);
    let data_type = DataType::parse(at, &mut file.fields("type", &content(kind::DATATYPE, "type")?))?;
    let sample = data_type.sample().map_err(unsupported)?;
    let layout = header.find(kind::LAYOUT).ok_or("it has no layout")?;
    let content = header.content(at, layout)?;
    let layout = Layout::parse(file.fields("layout", &content), layout.address)?;
    let resolved = match layout {
        Layout::Virtual(list) => {
            let sources = sources.ok_or_else(|| unsupported("it is virtual itself, which is not supported".into()))?;
            let list = list.map(|(collection, number)| global_value(file, collection, number)).transpose()?;
            let list = list.map(|list| mappings(file.fields("list of mappings", &list))).transpose()?;
            // without axes it is as one sample along an axis
            let shape = if own.is_empty() { &[1][..] } else { &own[..] };
            Some(resolve(list.unwrap_or_default(), sources, shape, &sample)?)
        }
        _ => None,
    };
    if let Some(resolved) = &resolved {
        own.clone_from(&resolved.shape);
    }
    // one axis of one sample if there are none
    let mut extents = own.clone();
    extents.extend(&sample.inner);
    if extents.is_empty() {
        extents.push(1);
    }
    let axes = extents.len();
    let shape = Dims::from_slice(&extents)
        .ok_or_else(|| unsupported(format!("it has {axes} axes, and at most {MAX_AXES} are shown")))?;
    *known_shape = Some(shape);
    Hidden::unless_readable(&shape, sample.dtype).map_err(Hidden::error)?;
    if header.has(kind::EXTERNAL_FILES) {
        return Err(unsupported("its samples are in files beside this one, which is not supported".into()));
    }
    let filters = match header.content_of(at, kind::FILTERS)? {
        Some(content) => message::filters(file.fields("list of filters", &content))?,
        None => Vec::new(),
    };
    // many datasets may have the same message, and each describes its filters
    let bytes = |filter: &message::Filter| filter.name.len() + filter.parameters.len() * size_of::<Value>();
    file.count_names(filters.iter().map(bytes).sum())?;
    let fill = fill_value(at, header)?;
    let fill = message::fill_sample(&sample, fill.as_deref()).map_err(unsupported)?;
    let samples = shape.product().unwrap_or(u64::MAX);
    let bytes = samples.checked_mul(sample.stored as u64).ok_or("it has more than 2^64 bytes")?;
    let piece = |start: Option<u64>, stored: u64| match start {
        Some(start) if stored < bytes => {
            Err(FormatError::from(format!("its {bytes} bytes are stored in {stored} at address {start}")))
        }
        Some(start) => file.place(start, bytes, "samples").map(Some),
        None => Ok(None),
    };
    let (mut whole_edges, mut warnings) = (false, Vec::new());
    let (storage, brick, filters) = match layout {
        Layout::Compact(start, stored) => {
            (Storage::Whole(piece(Some(start), stored)?), slab(&shape), Filters::default())
        }
        Layout::Contiguous(start, stored) => {
            (Storage::Whole(piece(start, stored.unwrap_or(bytes))?), slab(&shape), Filters::default())
        }
        Layout::Virtual(_) => {
            let resolved = resolved.ok_or("it is not virtual")?;
            warnings = resolved.warnings;
            let brick = resolved.dataset.brick_shape(&shape);
            let decodes = resolved.dataset.decodes(&brick);
            if decodes >= MANY_DECODES {
                warnings
                    .push(format!("its mappings cut chunks of its sources, which are decoded up to {decodes} times"));
            }
            (Storage::Virtual(Box::new(resolved.dataset)), brick, Filters::default())
        }
        Layout::Chunked { chunk, index, address, whole_edges: edges } => {
            whole_edges = edges;
            let stored = match chunk.split_last() {
                Some((_, chunk)) if chunk.len() == own.len() && !chunk.is_empty() && !chunk.contains(&0) => chunk,
                _ => return Err(format!("its chunks of {chunk:?} are none of an array of {own:?}").into()),
            };
            let inner = sample.inner.iter().copied();
            let brick: Vec<u64> = stored.iter().copied().chain(inner).collect();
            let brick = Dims::from_slice(&brick).ok_or("its chunks have too many axes")?;
            let chunk = Dims::from_slice(stored).ok_or("its chunks have too many axes")?;
            let bytes = brick.product().and_then(|n| n.checked_mul(sample.stored.max(sample.dtype.size()) as u64));
            bytes.filter(|n| i64::try_from(*n).is_ok()).ok_or_else(|| format!("chunks of {stored:?} are too large"))?;
            let bytes = brick.product().unwrap_or(0) * sample.stored as u64;
            let chunks = |extents: &[u64]| {
                Dims::from_fn(own.len(), |axis| match extents[axis] {
                    u64::MAX => 0,
                    extent => extent.div_ceil(chunk[axis]),
                })
            };
            let (count, most, kind) = (chunks(&own), chunks(&space.most), index);
            let has_filters = !filters.is_empty();
            if matches!(kind, IndexKind::Single(Some(_))) && !has_filters {
                return Err("its only chunk has filters, and it has none".into());
            }
            let (file, header) = (Arc::clone(file), OnceLock::new());
            let chunks = Chunks { file, kind, address, chunk, count, most, bytes, has_filters, header };
            let filters = Filters::new(filters, sample.stored, bytes);
            (Storage::Chunked(Box::new(chunks)), brick, filters)
        }
    };
    let bytes = brick.product().unwrap_or(0).saturating_mul(sample.stored as u64);
    // chunks may be stored without a filter that is not supported
    let left_out = filters.optional().unwrap_or(0);
    let pipeline = filters.pipeline(left_out, bytes, sample.how).map_err(unsupported)?;
    let axis = |axis| Axis {
        name: format!("axis{axis}"),
        unit: None,
        first: 0.0,
        step: 1.0,
        count: shape[axis],
        spatial: axis < own.len(),
    };
    let info = ArrayInfo {
        axes: (0..shape.len()).map(axis).collect(),
        codec: Some(match &storage {
            Storage::Virtual(dataset) => dataset.codec(),
            _ => pipeline.name(),
        }),
        warnings,
        native: native(match (filters.json(), &storage) {
            (_, Storage::Virtual(dataset)) => json!({"type": data_type.name(), "sources": dataset.places()}),
            (Value::Array(list), _) if list.is_empty() => json!({"type": data_type.name()}),
            (filters, _) => json!({"type": data_type.name(), "filters": filters}),
        }),
        ..ArrayInfo::new(sample.dtype, BrickGrid::aligned(shape, brick), brick)
    };
    let file = Arc::clone(file);
    let array = Hdf5Array { info, file, storage, sample, filters, fill, pipeline, whole_edges };
    if left_out != 0 {
        // the first chunk stands for all
        let chunks = if let Storage::Chunked(chunks) = &array.storage { Some(chunks) } else { None };
        let at = Dims::filled(own.len(), 0);
        let first = chunks.map(|chunks| chunks.find(&at, Blocking::Yes)).transpose()?.flatten();
        if let Some(why) = array.filters.unsupported(first.map_or(0, |chunk| chunk.mask)) {
            return Err(unsupported(why));
        }
    }
    Ok(array)
}

fn fill_value(at: &Place<'_>, header: &Header) -> Result<Option<Vec<u8>>, FormatError> {
    for (kind, is_old) in [(kind::FILL, false), (kind::OLD_FILL, true)] {
        if let Some(content) = header.content_of(at, kind)?
            && let Some(value) = message::fill_value(at.file.fields("fill value", &content), is_old)?
        {
            return Ok(Some(value));
        }
    }
    Ok(None)
}
