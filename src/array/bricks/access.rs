//! The state that one reader needs to find and load bricks.

use std::sync::Arc;

use crate::array::array_view::ArrayView;
use crate::array::resources::Resources;
use crate::array::scan::Stream;
use crate::counters::{Counter, Counters};
use crate::format::Array;

/// One reader's access to the bricks of an array. Data only; its methods are in the other files of this folder.
#[derive(Clone)]
pub(crate) struct BrickAccess {
    /// The state that all readers share.
    pub resources: Arc<Resources>,
    /// The array as the reader sees it.
    pub view: ArrayView,
    /// The reader's scan, if the reader is sequential.
    pub scan: Option<Arc<Stream>>,
    /// Counters that count the work for this reader, besides those of all readers.
    pub counters: Option<Arc<Counters>>,
}

impl BrickAccess {
    /// The array, in the reader's order of axes.
    pub(crate) fn array(&self) -> &dyn Array {
        &*self.view.array
    }

    /// Adds to a counter of all readers, and of this one.
    pub(crate) fn count(&self, counter: impl Fn(&Counters) -> &Counter, n: u64) {
        self.resources.counters.add(self.counters.as_deref(), counter, n);
    }

    /// Counts bytes that were read from the source for this reader. Those of all readers are counted by the source.
    pub(crate) fn count_source_bytes(&self, n: usize) {
        self.counters.as_ref().inspect(|counters| counters.source_bytes.add(n as u64));
    }

    /// Bytes of a sample.
    pub(crate) fn sample_size(&self) -> usize {
        self.view.info().dtype.size()
    }
}
