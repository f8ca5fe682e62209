//! Makes memory ready for the first slice that a client is likely to read.

use super::array_reader::Reader;
use crate::array::brick_sizes::layer_bricks;
use crate::format::Array;
use crate::source::Blocking;
use crate::volume::{Brick, Dims};

impl Reader {
    /// Has memory made ready for the bricks of a slice, for a client that has opened a file of the array and is likely to
    /// read samples next: the kernel takes longer to make their pages than fast codecs to decode them. Does nothing if
    /// the bricks need not be decoded, if their source takes longer than the pages, or if clients read already.
    pub(crate) fn prefault_slice(&self, array: &dyn Array, blocking: Blocking) {
        let (info, resources) = (array.info(), &self.resources);
        if array.source().fetches_ahead() || !resources.buffers.is_unused_for_bricks() {
            return;
        }
        // those at the edges of a survey are often constant
        let middle = Dims::from_fn(info.grid.count().len(), |a| info.grid.count()[a] / 2);
        // whoever reads it gets the error
        let Ok(Brick::Coded(coded)) = array.brick(&middle, blocking) else { return };
        resources.buffers.will_need_bricks(coded.decoded, usize::try_from(layer_bricks(info)).unwrap_or(usize::MAX));
        resources.prefault();
    }
}
