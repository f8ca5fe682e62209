//! Which traces a survey has, and their order in the file.

use std::ops::Range;
use std::sync::{Arc, LazyLock};

use crate::format::{Array, FormatError};
use crate::memory::{self, LruByWeight, try_with_capacity, try_zeroed};
use crate::source::Blocking;
use crate::sync::Mutex;
use crate::volume::{ArrayId, Brick, Coded, Dims, Layout, Region, StoredLength};

/// Positions of a block, unless there are very many.
const BLOCK: u64 = 1024;
/// The most blocks, so that the counts of a survey have at most half a MiB.
const MAX_BLOCKS: u64 = 1 << 16;
/// The bytes of all counts that are kept.
const KEPT: usize = 1 << 20;

/// The most positions that a survey may have: each is looked at once, or a few times.
pub(crate) const MAX_POSITIONS: u64 = 1 << 30;

/// The counts of surveys that were needed lately. An array is never another one under the same number.
static LATELY: LazyLock<Mutex<LruByWeight<ArrayId, Arc<TraceCounts>>>> =
    LazyLock::new(|| Mutex::new(LruByWeight::new(KEPT)));

/// The number of traces before each block of positions.
pub(crate) struct TraceCounts {
    order: TraceOrder,
    /// Positions of a block.
    block: u64,
    /// Traces before each block, and all of them.
    before: Vec<u64>,
}

impl TraceCounts {
    /// Returns the counts for `traces` if they are known.
    pub(crate) fn known(traces: &dyn Array) -> Option<Arc<Self>> {
        LATELY.lock().get(&traces.info().id)
    }

    /// Returns the counts for `traces` if they are known; otherwise makes them with `count`.
    pub(crate) fn known_or(
        traces: &dyn Array,
        count: impl FnOnce() -> Result<Self, FormatError>,
    ) -> Result<Arc<Self>, FormatError> {
        if let Some(known) = Self::known(traces) {
            return Ok(known);
        }
        let counts = Arc::new(count()?);
        let bytes = counts.before.capacity() * size_of::<u64>();
        let evicted = LATELY.lock().insert(traces.info().id, Arc::clone(&counts), bytes);
        drop(evicted);
        Ok(counts)
    }

    /// Counts the traces in an order. `traces` has a value for each position, 0 if there is no trace. May wait.
    pub(crate) fn count(traces: &dyn Array, order: TraceOrder) -> Result<Self, FormatError> {
        let block = BLOCK.max(order.positions().div_ceil(MAX_BLOCKS).next_power_of_two());
        Self::count_in_blocks(traces, order, block)
    }

    /// Counts the traces in blocks of so many positions.
    pub(super) fn count_in_blocks(traces: &dyn Array, order: TraceOrder, block: u64) -> Result<Self, FormatError> {
        let positions = order.positions();
        let blocks = positions.div_ceil(block) as usize;
        let mut before = try_with_capacity(blocks + 1)?;
        before.resize(blocks + 1, 0u64);
        visit(traces, &mut |row| {
            let mut number = order.number_of(&row.start);
            let step = order.step_along(row.axis);
            // counts go one block further, so that their sums become counts before a block
            if step == 1 && row.values.constant().is_some() {
                let end = number + row.count;
                while number < end {
                    let next = end.min((number / block + 1) * block);
                    before[(number / block) as usize + 1] += next - number;
                    number = next;
                }
                return;
            }
            for at in 0..row.count {
                if row.is_there(at) {
                    before[(number / block) as usize + 1] += 1;
                }
                number = number.wrapping_add_signed(step);
            }
        })?;
        for at in 1..before.len() {
            before[at] += before[at - 1];
        }
        Ok(Self { order, block, before })
    }

    /// Returns whether there is a trace at every position.
    pub(crate) fn is_full(&self) -> bool {
        self.traces() == self.order.positions()
    }

    /// Returns the counts of the same traces in another order, if there is one at every position.
    pub(crate) fn in_order(mut self, order: TraceOrder) -> Self {
        self.order = order;
        self
    }

    /// Returns the order of the traces.
    pub(crate) fn order(&self) -> &TraceOrder {
        &self.order
    }

    /// Returns how many traces there are.
    pub(crate) fn traces(&self) -> u64 {
        self.before.last().copied().unwrap_or(0)
    }

    /// Returns the block that has a trace: its first position, and how many traces come before.
    pub(crate) fn block_of(&self, trace: u64) -> (u64, u64) {
        let block = self.before.partition_point(|before| *before <= trace).saturating_sub(1);
        (block as u64 * self.block, self.before.get(block).copied().unwrap_or(0))
    }

    /// Returns the end of the block of a position, and whether all of its positions have traces, or none has, if one of
    /// them is so.
    pub(crate) fn block_at(&self, position: u64) -> (u64, Option<bool>) {
        let block = (position / self.block) as usize;
        let start = block as u64 * self.block;
        let end = (start + self.block).min(self.order.positions());
        let traces = self.before.get(block..block + 2).map_or(0, |ends| ends[1] - ends[0]);
        let alike = [(0, false), (end - start, true)].into_iter().find(|(count, _)| *count == traces);
        (end, alike.map(|(_, all)| all))
    }
}

/// Counts the traces before each of some positions, in each of some orders. May wait.
pub(crate) fn ranks(
    traces: &dyn Array,
    orders: &[TraceOrder],
    positions: &[Dims],
) -> Result<Vec<Vec<u64>>, FormatError> {
    let numbers = |order: &TraceOrder| positions.iter().map(|index| order.number_of(index)).collect::<Vec<_>>();
    let of: Vec<Vec<u64>> = orders.iter().map(numbers).collect();
    let mut ranks = vec![vec![0; positions.len()]; orders.len()];
    visit(traces, &mut |row| {
        for (order, (numbers, ranks)) in orders.iter().zip(of.iter().zip(&mut ranks)) {
            let (mut number, step) = (order.number_of(&row.start), order.step_along(row.axis));
            for at in 0..row.count {
                if row.is_there(at) {
                    numbers.iter().zip(&mut *ranks).for_each(|(of, rank)| *rank += u64::from(number < *of));
                }
                number = number.wrapping_add_signed(step);
            }
        }
    })?;
    Ok(ranks)
}

/// Returns where `count` parts of a survey begin, in the order of the arrays.
fn parts(shape: Dims, count: u64) -> impl Iterator<Item = u64> {
    let positions = shape.product().unwrap_or(0);
    let length = positions.div_ceil(count.max(1)).max(1);
    // a little more than a part, so that they are not all at the same place of their lines
    let more = if length > 8 { positions / 7 % 5 } else { 0 };
    (0..count).map(move |part| part * (length + more)).filter(move |at| *at < positions)
}

/// Like [`spread`], of a survey that has a trace at every position.
pub(crate) fn spread_of_full(shape: Dims, count: u64) -> Vec<Dims> {
    let last = shape.product().and_then(|positions| positions.checked_sub(1));
    let mut numbers: Vec<u64> = parts(shape, count).chain(last).collect();
    numbers.sort_unstable();
    numbers.dedup();
    numbers.into_iter().map(|number| shape.index_of(number)).collect()
}

/// Returns the index of some traces of a survey, which are spread over it: the first one of each of `count` parts, and
/// the last of all. May wait.
pub(crate) fn spread(traces: &dyn Array, shape: Dims, count: u64) -> Result<Vec<Dims>, FormatError> {
    let order = TraceOrder::of_arrays(shape);
    let mut found: Vec<(u64, Option<u64>)> = parts(shape, count).map(|from| (from, None)).collect();
    let mut last = None;
    visit(traces, &mut |row| {
        let (mut number, step) = (order.number_of(&row.start), order.step_along(row.axis));
        for at in 0..row.count {
            if row.is_there(at) {
                for (from, first) in &mut found {
                    if number >= *from && first.is_none_or(|first| number < first) {
                        *first = Some(number);
                    }
                }
                last = last.max(Some(number));
            }
            number = number.wrapping_add_signed(step);
        }
    })?;
    let mut numbers: Vec<u64> = found.into_iter().filter_map(|(_, first)| first).chain(last).collect();
    numbers.sort_unstable();
    numbers.dedup();
    Ok(numbers.into_iter().map(|number| shape.index_of(number)).collect())
}

/// Positions of a brick side by side along an axis of the grid.
struct Positions<'a> {
    values: Row<'a>,
    /// The index of the first.
    start: Dims,
    axis: usize,
    count: u64,
}

impl Positions<'_> {
    /// Returns whether the file has a trace at the position that is `at` steps from the first.
    fn is_there(&self, at: u64) -> bool {
        self.values.value(at) != 0
    }
}

/// Visits all positions, brick by brick. Rows without any trace may be left out.
fn visit(traces: &dyn Array, of_row: &mut dyn FnMut(&Positions<'_>)) -> Result<(), FormatError> {
    let grid = &traces.info().grid;
    let axes = grid.shape().len().saturating_sub(1);
    let bricks = grid.count();
    for number in 0..grid.total() {
        let brick = BrickValues::read(traces, &bricks.index_of(number))?;
        if brick.constant() == Some(0) || axes == 0 {
            continue;
        }
        let (axis, count) = (axes - 1, brick.owned.shape[axes - 1]);
        let rows = Dims::from_fn(axes, |a| if a == axis { 1 } else { brick.owned.shape[a] });
        for row in 0..rows.product().unwrap_or(0) {
            let within = rows.index_of(row);
            let start = Dims::from_fn(axes, |a| brick.owned.start[a] + within[a]);
            let first = Dims::from_fn(axes + 1, |a| start.get(a).copied().unwrap_or(brick.owned.start[axes]));
            of_row(&Positions { values: brick.row(&first, axis), start, axis, count });
        }
    }
    Ok(())
}

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

/// The most positions that are looked at in one step.
const LOOK: u64 = 4096;

/// A walk along the traces of a file from some trace on.
pub(crate) struct LiveTraces {
    /// The position that comes next, and how many traces are before it.
    next: (u64, u64),
    /// Positions of which it is known whether there is a trace, and for each whether there is one.
    seen: Range<u64>,
    live: Vec<u8>,
}

/// What comes next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// Traces at positions side by side.
    Traces(Range<u64>),
    /// First it has to be known which of these positions have traces.
    Look(Range<u64>),
    /// There are no more traces.
    End,
}

impl LiveTraces {
    /// Begins a walk at `trace`, counted from 0, or before.
    pub(crate) fn new(counts: &TraceCounts, trace: u64) -> Self {
        Self { next: counts.block_of(trace), seen: 0..0, live: Vec::new() }
    }

    /// Takes what was to be looked at: a value for each position, 0 if there is no trace.
    pub(crate) fn saw(&mut self, positions: Range<u64>, live: Vec<u8>) {
        self.seen = positions.start..positions.end.min(positions.start + live.len() as u64);
        self.live = live;
    }

    /// Returns where `trace` and those after it are, `most` at most. Traces are asked for in ascending order.
    pub(crate) fn find(&mut self, counts: &TraceCounts, trace: u64, most: u64) -> Next {
        let order = counts.order();
        loop {
            let (position, before) = self.next;
            if position >= order.positions() || trace >= counts.traces() {
                return Next::End;
            }
            let (end, alike) = counts.block_at(position);
            match alike {
                Some(false) => self.next.0 = end,
                Some(true) => {
                    let first = position + (trace - before.min(trace));
                    if first < end {
                        // blocks in which all positions have traces go on
                        let mut last = end;
                        while last - first < most && counts.block_at(last).1 == Some(true) && last < order.positions() {
                            last = counts.block_at(last).0;
                        }
                        let run = order.run(first, most.min(last - first));
                        self.next = (first, trace);
                        return Next::Traces(first..first + run);
                    }
                    self.next = (end, before + (end - position));
                }
                None if !self.seen.contains(&position) => {
                    return Next::Look(position..position + order.run(position, LOOK.min(end - position)));
                }
                None => {
                    if let Some(traces) = self.find_seen(trace, most) {
                        return Next::Traces(traces);
                    }
                }
            }
        }
    }

    /// Finds traces among the positions that were looked at; goes on to their end if there are none.
    fn find_seen(&mut self, trace: u64, most: u64) -> Option<Range<u64>> {
        let (mut position, mut before) = self.next;
        let is_live = |at: u64| self.live.get((at - self.seen.start) as usize).is_some_and(|live| *live != 0);
        while position < self.seen.end {
            if is_live(position) {
                if before == trace {
                    let run =
                        (position..self.seen.end).take(most as usize).take_while(|at| is_live(*at)).count() as u64;
                    self.next = (position, before);
                    return Some(position..position + run);
                }
                before += 1;
            }
            position += 1;
        }
        self.next = (position, before);
        None
    }
}

/// The most bytes that a brick may have.
const MAX_BRICK: u64 = 64 << 20;

/// The values of one brick.
pub(crate) struct BrickValues {
    /// The samples that the brick owns.
    pub owned: Region,
    bytes: Bytes,
}

enum Bytes {
    Constant(u8),
    Held(Vec<u8>, Box<Layout>),
}

impl BrickValues {
    /// Reads the brick at a grid position of an array of uint8. May wait.
    pub(crate) fn read(array: &dyn Array, at: &Dims) -> Result<Self, FormatError> {
        let owned = array.info().grid.region(at);
        let bytes = match array.brick(at, Blocking::Yes)? {
            Brick::Constant(value) => Bytes::Constant(value.bytes().first().copied().unwrap_or(0)),
            Brick::Plain(plain) => {
                let end = plain.layout.end(1).filter(|end| *end <= MAX_BRICK).ok_or_else(too_large)?;
                Bytes::Held(stored(array, (&plain.object, plain.offset), end)?, Box::new(plain.layout))
            }
            Brick::Coded(coded) => Bytes::Held(decoded(array, &coded)?, Box::new(coded.layout)),
        };
        if let Bytes::Held(held, layout) = &bytes {
            let is_whole = layout.end(1).is_some_and(|end| end <= held.len() as u64) && layout.held.contains(&owned);
            if !is_whole {
                return Err(FormatError::Damaged("the brick is smaller than its layout".into()));
            }
        }
        array.source().check_unchanged()?;
        Ok(Self { owned, bytes })
    }

    /// Returns the values of samples side by side along `axis`, from one that the brick owns.
    pub(crate) fn row(&self, start: &Dims, axis: usize) -> Row<'_> {
        match &self.bytes {
            Bytes::Constant(value) => Row { bytes: std::slice::from_ref(value), stride: 0 },
            Bytes::Held(held, layout) => {
                let bytes = held.get(layout.offset_of(start) as usize..).unwrap_or_default();
                Row { bytes, stride: layout.strides[axis] as usize }
            }
        }
    }

    /// Returns the value of all samples, if it is one.
    pub(crate) fn constant(&self) -> Option<u8> {
        match self.bytes {
            Bytes::Constant(value) => Some(value),
            Bytes::Held(..) => None,
        }
    }
}

/// Values side by side along an axis.
#[derive(Clone, Copy)]
pub(crate) struct Row<'a> {
    bytes: &'a [u8],
    stride: usize,
}

impl Row<'_> {
    /// Returns the value of all, if the brick has but one.
    pub(crate) fn constant(&self) -> Option<u8> {
        self.bytes.first().copied().filter(|_| self.stride == 0)
    }

    /// Returns the value that is `at` steps from the first.
    pub(crate) fn value(&self, at: u64) -> u8 {
        self.bytes.get(at as usize * self.stride).copied().unwrap_or(0)
    }
}

fn too_large() -> FormatError {
    FormatError::Unsupported(format!("its bricks of traces have more than {MAX_BRICK} bytes"))
}

fn decoded(array: &dyn Array, coded: &Coded) -> Result<Vec<u8>, FormatError> {
    let most = match coded.length {
        StoredLength::Bytes(length) => length,
        StoredLength::Rest { most } => {
            let object = array.source().len(&coded.object)?.unwrap_or(0);
            most.min(object.saturating_sub(coded.offset))
        }
    };
    let needed = most.saturating_add(coded.decoded as u64).saturating_add(coded.scratch as u64);
    if needed > MAX_BRICK {
        return Err(too_large());
    }
    let _claim = memory::claim(needed as usize)?;
    let stored = stored(array, (&coded.object, coded.offset), most)?;
    let mut out = try_zeroed(coded.decoded)?;
    array.decode(coded, &stored, &mut out)?;
    Ok(out)
}

/// Reads bytes of an object.
fn stored(array: &dyn Array, (object, at): (&str, u64), length: u64) -> Result<Vec<u8>, FormatError> {
    let mut bytes = try_zeroed(length as usize)?;
    if !array.source().read_at(object, at, &mut bytes, Blocking::Yes)? {
        return Err(FormatError::Damaged(format!("{object} is not there")));
    }
    Ok(bytes)
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
