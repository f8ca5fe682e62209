//! Handles failed reads of datasets: returns the client's error, and writes the line in the log. Each brick is logged
//! once, and the number of lines in a minute is bounded.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::{Duration, Instant};

use super::error::FsError;
use super::handles::DatasetLayer;
use crate::array::ReadError;
use crate::catalog::{Catalog, OpenDataset};
use crate::format::FormatError;
use crate::log_limit::{Decision, LogLimit, warn_seldom};
use crate::volume::ArrayInfo;

/// The errors that were logged lately.
pub struct ReadErrors(LogLimit);

impl Default for ReadErrors {
    fn default() -> Self {
        Self(LogLimit::new(Duration::MAX))
    }
}

impl ReadErrors {
    /// Returns the client's error for a read of an array that failed. Logs one line with dataset, layer, LOD, brick and
    /// cause: once for each brick, or once for an object that holds many, but none if the whole source is gone.
    pub fn client_error(
        &self,
        catalog: &Catalog,
        layer: Option<&DatasetLayer>,
        info: &ArrayInfo,
        error: &ReadError,
    ) -> FsError {
        if let Some(layer) = layer {
            self.log(catalog, layer, info, error);
        }
        if error.cause.is_out_of_memory() { FsError::NoMemory } else { FsError::Io }
    }

    fn log(&self, catalog: &Catalog, layer: &DatasetLayer, info: &ArrayInfo, error: &ReadError) {
        let key = match &error.cause {
            FormatError::DamagedObject(_) | FormatError::Source(_) => {
                let mut hasher = DefaultHasher::new();
                error.cause.to_string().hash(&mut hasher);
                hasher.finish()
            }
            _ => info.grid.count().linear_of(&error.brick),
        };
        // not the array's number: a dataset that is opened again has other arrays
        let array = (&layer.open.path, layer.open.stamp, layer.layer, info.lod);
        let Decision::Log { suppressed } = self.0.decide((array, key), Instant::now()) else { return };
        // the source was just asked in vain, so that it may be asked once more
        if matches!(error.cause, FormatError::Source(_)) && catalog.source_is_gone() {
            return;
        }
        if suppressed > 0 {
            log::warn!("{suppressed} more reads failed, of bricks that are not named here");
        }
        let name = layer.open.dataset.layers().get(layer.layer).map_or("", |layer| &layer.name);
        log::warn!("{}: layer {name}, lod {}, {error}", layer.open.path, info.lod);
    }
}

/// Returns the client's error for content that could not be computed when a file was opened. Logs dataset and cause.
pub fn content_error(catalog: &Catalog, open: &OpenDataset, error: &FormatError) -> FsError {
    if error.would_block() {
        return FsError::WouldBlock;
    }
    if !matches!(error, FormatError::Source(_)) || !catalog.source_is_gone() {
        warn_seldom(&format!("{}: {error}", open.path));
    }
    if error.is_out_of_memory() { FsError::NoMemory } else { FsError::Io }
}
