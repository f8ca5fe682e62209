//! `lodN.by-AXIS.npy`: transposed views of an array. Another axis comes first, so that a slice across it is contiguous
//! in the file.

use std::sync::Arc;

use super::array_file::ArrayFile;
use super::content::{Content, ShownArray};
use super::names::axis_names;
use super::npy;
use super::virtual_file::{Entry, LayerRef, View};
use crate::format::FormatError;
use crate::volume::AxisPermutation;

/// The view of all levels. An array has one file for each axis except the first, which comes first in `lodN.npy`
/// already.
pub(crate) struct ByAxis;

impl ByAxis {
    /// Returns the number of files of one level.
    fn files_per_level(layer: LayerRef<'_>) -> u64 {
        layer.levels().first().map_or(0, |level| level.info().shape().len() as u64 - 1)
    }

    /// Returns the level of a node, and the axis that comes first in its file.
    fn level_and_axis(layer: LayerRef<'_>, node: u64) -> Option<(usize, usize)> {
        let files_per_level = Self::files_per_level(layer);
        let level = usize::try_from(node.checked_div(files_per_level)?).ok()?;
        let axis = (node % files_per_level) as usize + 1;
        let info = layer.levels().get(level)?.info();
        (axis < info.shape().len()).then_some((level, axis))
    }
}

impl View for ByAxis {
    fn name(&self) -> Option<&'static str> {
        Some("by-axis")
    }

    fn nodes(&self, layer: LayerRef<'_>) -> u64 {
        Self::files_per_level(layer).saturating_mul(layer.levels().len() as u64)
    }

    fn list(&self, layer: LayerRef<'_>, folder: Option<u64>, add: &mut dyn FnMut(Entry)) {
        if folder.is_some() {
            return;
        }
        let files_per_level = Self::files_per_level(layer);
        for (lod, level) in layer.levels().iter().enumerate() {
            for (n, name) in (0..files_per_level).zip(axis_names(level.info()).into_iter().skip(1)) {
                let node = lod as u64 * files_per_level + n;
                add(Entry { node, name: format!("lod{lod}.by-{name}.npy"), folder: false });
            }
        }
    }

    fn shown_array(&self, layer: LayerRef<'_>, node: u64) -> Option<ShownArray> {
        let (level, axis) = Self::level_and_axis(layer, node)?;
        let info = layer.info(level);
        Some(ShownArray { shape: AxisPermutation::to_front(axis).permute_dims(&info.shape()), dtype: info.dtype })
    }

    fn may_block(&self) -> bool {
        false
    }

    fn content(&self, layer: LayerRef<'_>, node: u64) -> Result<Content, FormatError> {
        let Some((level, axis)) = Self::level_and_axis(layer, node) else {
            return Err(FormatError::Unsupported(format!("there is no transposed file number {node}")));
        };
        let (array, permutation) = (Arc::clone(&layer.levels()[level]), AxisPermutation::to_front(axis));
        let header = npy::header(array.info().dtype, &permutation.permute_dims(&array.info().shape()));
        Ok(Content::Array(ArrayFile::permuted(header, array, permutation)))
    }
}
