//! An array with its axes in another order, cut to a box: for descriptions that name arrays of other formats.

use std::ops::Range;
use std::sync::Arc;

use super::{Array, Census, FormatError, StoredBrick};
use crate::source::{Blocking, Source};
use crate::volume::{ArrayInfo, Brick, BrickGrid, Coded, Dims, Element, Layout, MAX_AXES, ObjectName, Plain, Region};

pub(crate) struct Reoriented {
    info: ArrayInfo,
    array: Arc<dyn Array>,
    /// The axis of the inner array at each place. Axes that are left out have one sample.
    order: Vec<usize>,
    /// The first sample along each axis of the inner array.
    low: Dims,
}

impl Reoriented {
    /// Shows the samples of `array` from `low` on, with its axes in this `order`. `shape` is that of the box in the new
    /// order; it must lie in the array. Other facts are those of `info`, of which the grid is made here. Returns `None`
    /// if an axis that is left out has more than one sample in the array.
    pub(crate) fn new(
        array: Arc<dyn Array>,
        order: Vec<usize>,
        low: Dims,
        shape: Dims,
        info: impl FnOnce(ArrayInfo) -> ArrayInfo,
    ) -> Option<Self> {
        let inner = array.info();
        let (bounds, brick, step) = (inner.shape(), inner.brick_shape, inner.grid.step());
        let left_out = |axis: &usize| !order.contains(axis) && bounds[*axis] != 1;
        if order.len() != shape.len() || (0..bounds.len()).any(|axis| left_out(&axis)) {
            return None;
        }
        let fits = |(place, axis): (usize, &usize)| {
            low.get(*axis).is_some_and(|low| low.checked_add(shape[place]).is_some_and(|end| end <= bounds[*axis]))
        };
        if !order.iter().enumerate().all(fits) {
            return None;
        }
        let by_place = |dims: &Dims| Dims::from_fn(order.len(), |place| dims[order[place]]);
        let mut origin = [0; MAX_AXES];
        for (place, axis) in order.iter().enumerate() {
            origin[place] = -i64::try_from(low[*axis] % step[*axis]).ok()?;
        }
        let grid = BrickGrid::new(shape, origin, by_place(&step));
        let made = ArrayInfo {
            codec: inner.codec,
            no_value: inner.no_value,
            ..ArrayInfo::new(inner.dtype, grid, by_place(&brick))
        };
        Some(Self { info: info(made), order, low, array: Arc::clone(&array) })
    }

    /// Returns the index of a brick in the inner array.
    fn inner(&self, at: &Dims) -> Dims {
        let step = self.array.info().grid.step();
        let mut inner = Dims::filled(self.low.len(), 0);
        for (place, axis) in self.order.iter().enumerate() {
            inner[*axis] = at[place].saturating_add(self.low[*axis] / step[*axis]);
        }
        inner
    }

    /// Returns the part of a layout that lies in the box.
    fn layout(&self, inner: &Layout) -> Layout {
        let shape = self.info.shape();
        let (mut held, mut strides, mut first) = (Region::whole(shape), shape, inner.first);
        for (place, axis) in self.order.iter().enumerate() {
            let (low, stride) = (self.low[*axis], inner.strides[*axis]);
            let begin = inner.held.start[*axis].max(low);
            let end = inner.held.end(*axis).min(low + shape[place]);
            first += (begin - inner.held.start[*axis]) * stride;
            held.start[place] = begin - low;
            held.shape[place] = end.saturating_sub(begin);
            strides[place] = stride;
        }
        Layout { held, first, strides }
    }
}

impl Array for Reoriented {
    fn info(&self) -> &ArrayInfo {
        &self.info
    }

    fn source(&self) -> &dyn Source {
        self.array.source()
    }

    fn brick(&self, at: &Dims, blocking: Blocking) -> Result<Brick, FormatError> {
        let count = self.info.grid.count();
        if at.len() != count.len() || at.iter().zip(count.iter()).any(|(at, count)| at >= count) {
            return Err(FormatError::Damaged(format!("there is no brick {at:?}")));
        }
        Ok(match self.array.brick(&self.inner(at), blocking)? {
            Brick::Constant(value) => Brick::Constant(value),
            Brick::Plain(plain) => Brick::Plain(Plain { layout: self.layout(&plain.layout), ..plain }),
            Brick::Coded(coded) => Brick::Coded(Coded { layout: self.layout(&coded.layout), ..coded }),
        })
    }

    fn unwritten(&self) -> Element {
        self.array.unwritten()
    }

    fn decode(&self, coded: &Coded, stored: &[u8], out: &mut [u8]) -> Result<(), FormatError> {
        self.array.decode(coded, stored, out)
    }

    fn decoded_shape(&self, at: &Dims) -> Option<Dims> {
        let shape = self.array.decoded_shape(&self.inner(at))?;
        Some(Dims::from_fn(self.order.len(), |place| shape[self.order[place]]))
    }

    fn stored_brick(&self, at: &Dims) -> Result<Option<StoredBrick>, FormatError> {
        self.array.stored_brick(&self.inner(at))
    }

    fn stored_range(&self, at: &Dims) -> Result<Option<(ObjectName, Range<u64>)>, FormatError> {
        self.array.stored_range(&self.inner(at))
    }

    fn table_range(&self, at: &Dims, depth: usize) -> Option<(ObjectName, Range<u64>)> {
        self.array.table_range(&self.inner(at), depth)
    }

    fn census(&self) -> Result<Option<Census>, FormatError> {
        Ok(None)
    }
}
