//! Numbers the files and folders of a layer.

use std::iter::once;
use std::sync::Arc;

use super::arrays::{POSITIONS, chunk_grid};
use super::labels::label_name;
use super::nodes::Nodes;
use crate::format::Array;
use crate::view::virtual_file::LayerRef;
use crate::volume::Dims;

/// Returns the chunks along each axis of the arrays of each level. `None` if a level has no samples.
fn counts(layer: LayerRef<'_>) -> Option<Vec<Vec<Dims>>> {
    let arrays = |level: &Arc<dyn Array>| {
        let shape = level.info().shape();
        let positions = shape.iter().map(|count| [count.div_ceil(POSITIONS)].into());
        let chunks = once(chunk_grid(level.info()).count());
        (!shape.contains(&0)).then(|| chunks.chain(positions).collect())
    };
    layer.levels().iter().map(arrays).collect()
}

/// Numbers the files and folders of a layer, those of its label included. `None` if it has no samples, or too many
/// chunks.
pub(crate) fn nodes(layer: LayerRef<'_>) -> Option<Nodes> {
    let (own, label) = (counts(layer)?, label_name(layer));
    let label = label.map(|_| own.clone());
    Nodes::new(once(own).chain(label))
}
