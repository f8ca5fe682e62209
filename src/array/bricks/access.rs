//! What one reader needs to get at bricks.

use std::sync::Arc;

use crate::array::array_view::ArrayView;
use crate::array::resources::Resources;
use crate::array::scan::Stream;
use crate::format::Array;

/// One reader's access to the bricks of an array. Data only; the other files of this folder say what is done with it.
#[derive(Clone)]
pub struct BrickAccess {
    /// What all readers share.
    pub resources: Arc<Resources>,
    /// The array as the reader sees it.
    pub view: ArrayView,
    /// The scan that the reader is on, if it is on one.
    pub scan: Option<Arc<Stream>>,
}

impl BrickAccess {
    /// The array, in the reader's order of axes.
    pub fn array(&self) -> &dyn Array {
        &*self.view.array
    }

    /// Bytes of a sample.
    pub fn sample_size(&self) -> usize {
        self.view.info().dtype.size()
    }
}
