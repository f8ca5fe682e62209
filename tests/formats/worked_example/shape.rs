//! `lodN.shape`: the extent along each axis, slowest first, as one line of text.

use crate::view::{View, level_files};

/// The view of all levels.
pub const SHAPE: View = View::new(None, |layer| {
    level_files(layer, ".shape", |layer, lod| {
        let extents: Vec<String> = layer.info(lod).shape().iter().map(u64::to_string).collect();
        Ok(format!("{}\n", extents.join(" ")).into())
    })
});
