//! The state that one reader needs to find and load bricks.

use std::sync::Arc;

use crate::array::array_view::ArrayView;
use crate::array::resources::Resources;
use crate::array::scan::Stream;
use crate::format::Array;

/// One reader's access to the bricks of an array. Data only; its methods are in the other files of this folder.
#[derive(Clone)]
pub struct BrickAccess {
    /// The state that all readers share.
    pub resources: Arc<Resources>,
    /// The array as the reader sees it.
    pub view: ArrayView,
    /// The reader's scan, if the reader is sequential.
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
