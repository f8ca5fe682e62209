//! The layer that a view shows.

use std::sync::Arc;

use crate::catalog::OpenDataset;
use crate::format::{Array, Layer};
use crate::volume::ArrayInfo;

/// One layer of an open dataset.
#[derive(Clone, Copy)]
pub struct LayerRef<'a> {
    /// The dataset.
    pub open: &'a OpenDataset,
    /// Index of the layer in the dataset.
    pub layer: usize,
}

impl<'a> LayerRef<'a> {
    fn layer(&self) -> &'a Layer {
        &self.open.dataset.layers()[self.layer]
    }

    /// Returns the name of the layer.
    #[must_use]
    pub fn name(&self) -> &'a str {
        &self.layer().name
    }

    /// Returns the arrays of the layer, LOD 0 first.
    #[must_use]
    pub fn levels(&self) -> &'a [Arc<dyn Array>] {
        &self.layer().levels
    }

    /// Returns the metadata of the layer at `lod`, which must exist.
    #[must_use]
    pub fn info(&self, lod: usize) -> &'a ArrayInfo {
        self.levels()[lod].info()
    }
}
