//! `lodN.shape`: the extent along each axis, slowest first, as one line of text.

use crate::format::FormatError;
use crate::view::{Content, LayerRef, LevelFile};

/// The view of one level.
pub struct Shape;

impl LevelFile for Shape {
    fn suffix(&self) -> &'static str {
        ".shape"
    }

    fn content(&self, layer: LayerRef<'_>, lod: usize) -> Result<Content, FormatError> {
        let extents: Vec<String> = layer.info(lod).shape().iter().map(u64::to_string).collect();
        Ok(format!("{}\n", extents.join(" ")).into())
    }
}
