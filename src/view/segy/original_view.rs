//! `original.sgy`: the SEG-Y file that a dataset was imported from.

use std::sync::Arc;

use super::original_file::{Arrays, HEADERS, OriginalFile, check_length, trace_bytes};
use super::original_order;
use super::trace_counts::{MAX_POSITIONS, TraceCounts};
use crate::format::{Array, FormatError, SegyImport};
use crate::view::content::Content;
use crate::view::virtual_file::{Entry, LayerRef, View};

const NAME: &str = "original.sgy";

/// The view of the layer with the samples of the file.
pub(crate) struct OriginalSegy;

impl View for OriginalSegy {
    fn name(&self) -> Option<&'static str> {
        Some("segy")
    }

    fn nodes(&self, layer: LayerRef<'_>) -> u64 {
        u64::from(matches!(original(layer), Some(Ok(_))))
    }

    fn list(&self, layer: LayerRef<'_>, folder: Option<u64>, add: &mut dyn FnMut(Entry)) {
        if folder.is_none() && is_shown(layer) {
            add(Entry { node: 0, name: NAME.to_owned(), folder: false });
        }
    }

    fn find(&self, layer: LayerRef<'_>, folder: Option<u64>, name: &str) -> Option<Entry> {
        let is_there = folder.is_none() && name == NAME && is_shown(layer);
        is_there.then(|| Entry { node: 0, name: NAME.to_owned(), folder: false })
    }

    fn hidden(&self, layer: LayerRef<'_>) -> Option<(String, String)> {
        known(layer)?.err().map(|reason| (NAME.to_owned(), reason))
    }

    /// Counts the traces, at the first time.
    fn content(&self, layer: LayerRef<'_>, _node: u64) -> Result<Content, FormatError> {
        let absent = || FormatError::Unsupported("it does not come from a SEG-Y file".into());
        let (import, arrays) = original(layer).ok_or_else(absent)?.map_err(FormatError::Unsupported)?;
        let count = || original_order::count(import, &*arrays.traces, &*arrays.headers);
        let counts = TraceCounts::known_or(&*arrays.traces, count)?;
        Ok(Content::Computed(Arc::new(OriginalFile::new(import.clone(), arrays, counts)?)))
    }
}

fn is_shown(layer: LayerRef<'_>) -> bool {
    matches!(known(layer), Some(Ok(())))
}

/// Returns whether the file is shown, or why it is not, by all that is known so far: once its traces have been counted,
/// it may turn out that some were lost.
fn known(layer: LayerRef<'_>) -> Option<Result<(), String>> {
    let original = original(layer)?;
    Some(original.and_then(|(import, arrays)| match TraceCounts::known(&*arrays.traces) {
        Some(counts) => check_length(import, &arrays, &counts),
        None => Ok(()),
    }))
}

/// Returns what the file of a layer is made of, or why it cannot be made; `None` if the layer is not the one with the
/// samples of a SEG-Y file.
fn original(layer: LayerRef<'_>) -> Option<Result<(&SegyImport, Arrays), String>> {
    let import = match layer.open.dataset.segy_import()? {
        Ok(import) if import.samples == layer.layer => import,
        // the samples are in the first layer
        Err(reason) if layer.layer == 0 => return Some(Err(reason.to_owned())),
        _ => return None,
    };
    Some(arrays(layer, import).map(|arrays| (import, arrays)))
}

fn arrays(layer: LayerRef<'_>, import: &SegyImport) -> Result<Arrays, String> {
    let layers = layer.open.dataset.layers();
    let finest = |number: usize| layers.get(number).and_then(|layer| layer.levels.first()).map(Arc::clone);
    let arrays = [import.samples, import.traces, import.trace_headers].map(finest);
    let [Some(samples), Some(traces), Some(headers)] = arrays else { return Err("a layer is not there".into()) };
    let positions = traces.info().shape().product().unwrap_or(u64::MAX);
    if positions > MAX_POSITIONS {
        return Err(format!("it has room for {positions} traces, which are too many"));
    }
    check_size(import, &*samples, positions)?;
    Ok(Arrays { samples, traces, headers })
}

/// Checks whether the file can have had as many bytes as the import says.
fn check_size(import: &SegyImport, samples: &dyn Array, positions: u64) -> Result<(), String> {
    let Some(bytes) = import.file_bytes else { return Ok(()) };
    let trace = trace_bytes(import, samples);
    match bytes.checked_sub(HEADERS) {
        Some(traces) if traces % trace == 0 && traces / trace <= positions => Ok(()),
        Some(traces) if traces % trace == 0 => {
            Err(format!("the file had {} traces, and there is room for {positions}", traces / trace))
        }
        _ => Err(format!("the file had {bytes} bytes, which are no whole number of traces of {trace} bytes")),
    }
}
