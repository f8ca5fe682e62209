//! An array in the order of axes that one reader wants.

use std::sync::Arc;

use crate::cache::{BrickKey, DecodedBrick};
use crate::format::Array;
use crate::pool::Bulkhead;
use crate::volume::{ArrayInfo, AxisPermutation, Dims};

use super::brick_sizes::layer_bricks;

/// An array as a reader sees it. The cache holds bricks in the array's own order of axes, so that all views share them.
#[derive(Clone)]
pub(crate) struct ArrayView {
    /// The array; its axes are permuted already.
    pub array: Arc<dyn Array>,
    /// The permutation, `None` where the reader wants the array's own order.
    pub permutation: Option<AxisPermutation>,
    /// The concurrency limit of the source that the array is read from.
    pub bulkhead: Bulkhead,
}

impl ArrayView {
    /// The array's shape, type and brick grid, in the reader's order of axes.
    pub(crate) fn info(&self) -> &ArrayInfo {
        self.array.info()
    }

    /// The number of a brick in the reader's grid.
    pub(crate) fn number(&self, brick: &Dims) -> u64 {
        self.info().grid.count().linear_of(brick)
    }

    /// The cache's key of a brick: the same in every order of axes.
    pub(crate) fn key(&self, brick: &Dims) -> BrickKey {
        let info = self.info();
        let number = match &self.permutation {
            Some(order) => order.invert_dims(&info.grid.count()).linear_of(&order.invert_dims(brick)),
            None => self.number(brick),
        };
        (info.id, number)
    }

    /// The cache's keys of all bricks of a layer.
    pub(crate) fn layer_keys(&self, layer: u64) -> impl DoubleEndedIterator<Item = BrickKey> {
        let (count, bricks) = (self.info().grid.count(), layer_bricks(self.info()));
        (layer * bricks..(layer + 1) * bricks).map(move |number| self.key(&count.index_of(number)))
    }

    /// Converts a brick from the cache to the reader's order of axes. The bytes are shared.
    pub(crate) fn in_reader_order(&self, brick: Arc<DecodedBrick>) -> Arc<DecodedBrick> {
        match &self.permutation {
            Some(order) => Arc::new(brick.with_layout(order.permute_layout(&brick.layout))),
            None => brick,
        }
    }

    /// Converts a brick of the reader to the array's own order of axes, for the cache. The bytes are shared.
    pub(crate) fn in_cache_order(&self, brick: Arc<DecodedBrick>) -> Arc<DecodedBrick> {
        match &self.permutation {
            Some(order) => Arc::new(brick.with_layout(order.invert_layout(&brick.layout))),
            None => brick,
        }
    }
}
