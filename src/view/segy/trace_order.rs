//! The order of the traces in a file: how the positions of a survey are numbered.

use crate::volume::{Dims, Region};

/// An order in which a file has the traces of a grid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TraceOrder {
    /// The positions along each axis of the grid, slowest axis of the arrays first.
    shape: Dims,
    /// The axis of the grid at each place of the order, slowest first.
    axes: Dims,
    /// 1 for each axis of the grid along which the file goes backwards.
    backwards: Dims,
}

impl TraceOrder {
    /// Returns the order of the arrays themselves.
    pub(crate) fn of_arrays(shape: Dims) -> Self {
        let axes = shape.len();
        Self { shape, axes: Dims::from_fn(axes, |axis| axis as u64), backwards: Dims::filled(axes, 0) }
    }

    /// Returns the order in which `axis` comes first, the others keeping theirs.
    pub(crate) fn sorted_by(shape: Dims, axis: usize) -> Self {
        let mut order = Self::of_arrays(shape);
        if let Some(axes) = order.axes.get_mut(..=axis) {
            axes.rotate_right(1);
        }
        order
    }

    /// Returns all orders that a survey may have been sorted in: by either of its first two axes, along each of which
    /// it may go backwards. That of the arrays comes first.
    pub(crate) fn all(shape: Dims) -> Vec<Self> {
        let turnable = shape.len().min(2);
        let sorted = (0..turnable).map(|axis| Self::sorted_by(shape, axis));
        let turned = sorted.flat_map(|order| {
            (0..1u64 << turnable).map(move |turns| {
                let backwards = Dims::from_fn(shape.len(), |axis| turns >> axis.min(63) & 1);
                Self { backwards, ..order }
            })
        });
        turned.collect()
    }

    /// Returns whether the order is that of the arrays.
    pub(crate) fn is_of_arrays(&self) -> bool {
        *self == Self::of_arrays(self.shape)
    }

    /// Returns how many positions there are.
    pub(crate) fn positions(&self) -> u64 {
        self.shape.product().unwrap_or(u64::MAX)
    }

    /// Returns the number of a position, given its index in the grid.
    pub(crate) fn number_of(&self, index: &[u64]) -> u64 {
        self.axes.iter().fold(0, |number, axis| {
            let axis = *axis as usize;
            let last = self.shape[axis].saturating_sub(1);
            let at = if self.backwards[axis] == 1 { last.saturating_sub(index[axis]) } else { index[axis] };
            number * self.shape[axis] + at
        })
    }

    /// Returns how the number of a position changes with each step along an axis of the grid.
    pub(crate) fn step_along(&self, axis: usize) -> i64 {
        let place = self.axes.iter().position(|at| *at as usize == axis).unwrap_or(0);
        let step = self.axes[place + 1..].iter().fold(1, |step, axis| step * self.shape[*axis as usize]) as i64;
        if self.backwards[axis] == 1 { -step } else { step }
    }

    /// Returns how many positions from `number` on, `most` at most, are a box of the grid.
    pub(crate) fn run(&self, number: u64, most: u64) -> u64 {
        if self.is_of_arrays() {
            return most;
        }
        let line = self.fastest().1.max(1);
        most.min(line - number % line)
    }

    /// Returns the box of `values` along the last axis of positions that are [a run](Self::run), and whether the
    /// positions stand in it backwards.
    pub(crate) fn region(&self, number: u64, count: u64, values: (u64, u64)) -> (Region, bool) {
        let mut rest = number;
        let mut start = self.shape;
        for axis in self.axes.iter().rev().map(|axis| *axis as usize) {
            let length = self.shape[axis].max(1);
            let at = rest % length;
            rest /= length;
            start[axis] = if self.backwards[axis] == 1 { length - 1 - at } else { at };
        }
        let (fastest, _) = self.fastest();
        let is_backwards = self.backwards[fastest] == 1;
        if is_backwards {
            start[fastest] = (start[fastest] + 1).saturating_sub(count);
        }
        let axes = self.shape.len();
        let with_values =
            |dims: &Dims, last: u64| Dims::from_fn(axes + 1, |axis| dims.get(axis).copied().unwrap_or(last));
        let shape = Dims::from_fn(axes, |axis| if axis == fastest { count } else { 1 });
        let region = Region { start: with_values(&start, values.0), shape: with_values(&shape, values.1 - values.0) };
        (region, is_backwards)
    }

    /// Returns the fastest axis of the order, and its length.
    fn fastest(&self) -> (usize, u64) {
        let axis = self.axes.last().map_or(0, |axis| *axis as usize);
        (axis, self.shape[axis])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn orders_of_a_survey() {
        let shape = Dims::from([2, 3]);
        let numbers = |order: &TraceOrder| (0..6).map(|n| order.number_of(&shape.index_of(n))).collect::<Vec<_>>();
        let all = TraceOrder::all(shape);
        let found: Vec<Vec<u64>> = all.iter().map(numbers).collect();
        let expected = [
            [0, 1, 2, 3, 4, 5],
            [3, 4, 5, 0, 1, 2],
            [2, 1, 0, 5, 4, 3],
            [5, 4, 3, 2, 1, 0],
            [0, 2, 4, 1, 3, 5],
            [1, 3, 5, 0, 2, 4],
            [4, 2, 0, 5, 3, 1],
            [5, 3, 1, 4, 2, 0],
        ];
        assert_eq!(found, expected);
        assert!(all[0].is_of_arrays() && all[1..].iter().all(|order| !order.is_of_arrays()));
        // a line has no other axis, and offsets stay where they are
        assert_eq!(TraceOrder::all([7].into()).len(), 2);
        let gathers = TraceOrder::all([2, 3, 4].into());
        assert_eq!((gathers.len(), gathers[4].number_of(&[1, 2, 3])), (8, 2 * 8 + 4 + 3));
    }

    #[test]
    fn runs_are_boxes_with_the_positions_in_order() {
        for shape in [Dims::from([3, 4]), Dims::from([2, 3, 2]), Dims::from([5])] {
            for order in TraceOrder::all(shape) {
                let (mut number, positions) = (0, order.positions());
                while number < positions {
                    let count = order.run(number, 3.min(positions - number));
                    if order.is_of_arrays() {
                        number += count;
                        continue;
                    }
                    let (region, is_backwards) = order.region(number, count, (5, 7));
                    assert_eq!((region.start[shape.len()], region.shape[shape.len()]), (5, 2));
                    assert_eq!(region.samples(), count * 2);
                    for at in 0..count {
                        let place = if is_backwards { count - 1 - at } else { at };
                        let mut within = region.shape;
                        within[shape.len()] = 1;
                        let within = within.index_of(place);
                        let index = Dims::from_fn(shape.len(), |axis| region.start[axis] + within[axis]);
                        assert_eq!(order.number_of(&index), number + at, "{order:?}");
                    }
                    number += count;
                }
            }
        }
    }

    #[test]
    fn steps_along_axes() {
        for order in TraceOrder::all([3, 4, 5].into()) {
            for axis in 0..3 {
                let mut next = [1, 1, 1];
                next[axis] = 2;
                let step = order.number_of(&next) as i64 - order.number_of(&[1, 1, 1]) as i64;
                assert_eq!(order.step_along(axis), step, "{order:?} {axis}");
            }
        }
    }
}
