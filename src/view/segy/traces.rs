//! Which traces a survey has, and their order in the file.

use std::ops::Range;
use std::sync::Arc;

use crate::format::{Array, FormatError, SegyImport};
use crate::memory::{self, LruByWeight, try_with_capacity, try_zeroed};
use crate::source::Blocking;
use crate::sync::{LazyPerProcess, Mutex};
use crate::view::segments::Samples;
use crate::volume::{ArrayId, Brick, Coded, Dims, Layout, Region, StoredLength};

/// Positions of a block, unless there are very many.
const BLOCK: u64 = 1024;
/// The most blocks, so that the counts of a survey have at most half a MiB.
const MAX_BLOCKS: u64 = 1 << 16;
/// The bytes of all counts that are kept.
const KEPT: usize = 1 << 20;

/// The most positions that a survey may have: each is looked at once, or a few times.
pub(super) const MAX_POSITIONS: u64 = 1 << 30;

/// The counts of surveys that were needed lately. An array is never another one under the same number.
static LATELY: LazyPerProcess<Mutex<LruByWeight<ArrayId, Arc<TraceCounts>>>> =
    LazyPerProcess::new(|| Mutex::new(LruByWeight::new(KEPT)));

/// The number of traces before each block of positions.
pub(super) struct TraceCounts {
    pub order: TraceOrder,
    /// Positions of a block.
    block: u64,
    /// Traces before each block, and all of them.
    before: Vec<u64>,
}

impl TraceCounts {
    /// Returns the counts for `traces` if they are known.
    pub(super) fn known(traces: &dyn Array) -> Option<Arc<Self>> {
        LATELY.lock().get(&traces.info().id)
    }

    /// Returns the counts of a file if they are known, otherwise [counts](count).
    pub(super) fn of(import: &SegyImport, traces: &dyn Array, headers: &dyn Array) -> Result<Arc<Self>, FormatError> {
        if let Some(known) = Self::known(traces) {
            return Ok(known);
        }
        let counts = Arc::new(count(import, traces, headers)?);
        let bytes = counts.before.capacity() * size_of::<u64>();
        let evicted = LATELY.lock().insert(traces.info().id, Arc::clone(&counts), bytes);
        drop(evicted);
        Ok(counts)
    }

    /// Counts the traces in an order. `traces` has a value for each position, 0 if there is no trace. May wait.
    pub(super) fn count(traces: &dyn Array, order: TraceOrder) -> Result<Self, FormatError> {
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
            // counts go one block further, so that their sums become counts before a block
            if order.step_along(row.axis) == 1 && row.values.stride == 0 {
                let mut number = order.number_of(&row.start);
                let end = number + row.count;
                while number < end {
                    let next = end.min((number / block + 1) * block);
                    before[(number / block) as usize + 1] += next - number;
                    number = next;
                }
                return;
            }
            row.live(&order).for_each(|number| before[(number / block) as usize + 1] += 1);
        })?;
        for at in 1..before.len() {
            before[at] += before[at - 1];
        }
        Ok(Self { order, block, before })
    }

    pub(super) fn traces(&self) -> u64 {
        self.before.last().copied().unwrap_or(0)
    }

    /// Returns the block of positions that has a trace, how many traces are before it, and whether each position has
    /// one.
    fn block_of(&self, trace: u64) -> (Range<u64>, u64, bool) {
        let number = self.before.partition_point(|before| *before <= trace).saturating_sub(1);
        let start = number as u64 * self.block;
        let positions = start..(start + self.block).min(self.order.positions());
        let [before, end] = [number, number + 1].map(|block| self.before.get(block).copied().unwrap_or(0));
        let is_full = end - before == positions.end - positions.start;
        (positions, before, is_full)
    }
}

/// Where trace headers have the number of the trace, in the line or in the file.
const NUMBERS: [u64; 2] = [0, 4];

/// How many parts of the survey have a trace that is looked at: with few traces, and holes between them, a wrong order
/// may have the same numbers by chance.
const PARTS: u64 = 24;

/// Counts the traces of a file in its order: that in which the traces are numbered, if they are; else the one that the
/// import names; else that of the arrays. May wait.
pub(super) fn count(import: &SegyImport, traces: &dyn Array, headers: &dyn Array) -> Result<TraceCounts, FormatError> {
    let all = traces.info().shape();
    let shape = Dims::from_fn(all.len().saturating_sub(1), |axis| all[axis]);
    let otherwise = TraceOrder::sorted_by(shape, import.sorted_by.filter(|axis| *axis < shape.len()).unwrap_or(0));
    let stored = TraceCounts::count(traces, TraceOrder::sorted_by(shape, 0))?;
    let is_full = stored.traces() == stored.order.positions();
    let probes = spread(traces, shape, is_full)?;
    let numbers = probes.iter().map(|index| numbers(headers, index, import.little_headers));
    let numbers = numbers.collect::<Result<Vec<_>, _>>()?;
    let order = numbered_order(traces, shape, is_full, &probes, &numbers)?.unwrap_or(otherwise);
    match is_full {
        true => Ok(TraceCounts { order, ..stored }),
        false if order.is_of_arrays() => Ok(stored),
        false => TraceCounts::count(traces, order),
    }
}

/// Returns the first order in which the traces at some positions have the numbers in their headers.
fn numbered_order(
    traces: &dyn Array,
    shape: Dims,
    is_full: bool,
    positions: &[Dims],
    numbers: &[[i64; 2]],
) -> Result<Option<TraceOrder>, FormatError> {
    // traces without numbers fit none, and one trace fits all
    let is_numbered = |field: &usize| numbers.windows(2).any(|pair| pair[0][*field] != pair[1][*field]);
    let fields: Vec<usize> = (0..NUMBERS.len()).filter(is_numbered).collect();
    if fields.is_empty() {
        return Ok(None);
    }
    let fits = |ranks: &[u64], field: usize| {
        let first = numbers[0][field] - ranks[0] as i64;
        ranks.iter().zip(numbers).all(|(rank, number)| number[field] - *rank as i64 == first)
    };
    let orders = TraceOrder::all(shape);
    // the order of the arrays is the usual one: the others are not counted if it fits
    let (first, others) = orders.split_at(1);
    for orders in [first, others] {
        let ranks = match is_full {
            true => orders.iter().map(|order| positions.iter().map(|at| order.number_of(at)).collect()).collect(),
            false => ranks(traces, orders, positions)?,
        };
        let fitting = orders.iter().zip(&ranks).find(|(_, ranks)| fields.iter().any(|field| fits(ranks, *field)));
        if let Some((order, _)) = fitting {
            return Ok(Some(*order));
        }
    }
    Ok(None)
}

/// Counts the traces before each of some positions, in each of some orders. May wait.
fn ranks(traces: &dyn Array, orders: &[TraceOrder], positions: &[Dims]) -> Result<Vec<Vec<u64>>, FormatError> {
    let numbers = |order: &TraceOrder| positions.iter().map(|index| order.number_of(index)).collect::<Vec<_>>();
    let of: Vec<Vec<u64>> = orders.iter().map(numbers).collect();
    let mut ranks = vec![vec![0; positions.len()]; orders.len()];
    visit(traces, &mut |row| {
        for (order, (numbers, ranks)) in orders.iter().zip(of.iter().zip(&mut ranks)) {
            for number in row.live(order) {
                numbers.iter().zip(&mut *ranks).for_each(|(of, rank)| *rank += u64::from(number < *of));
            }
        }
    })?;
    Ok(ranks)
}

/// Returns the numbers in the header of a trace.
fn numbers(headers: &dyn Array, index: &Dims, little: bool) -> Result<[i64; 2], FormatError> {
    let grid = &headers.info().grid;
    let first = Dims::from_fn(index.len() + 1, |axis| index.get(axis).copied().unwrap_or(0));
    let brick = BrickValues::read(headers, &Dims::from_fn(first.len(), |axis| grid.brick_of(axis, first[axis])))?;
    if brick.owned.end(index.len()) < NUMBERS[1] + 4 {
        return Err(FormatError::Unsupported("its bricks of trace headers are parts of headers".into()));
    }
    let values = brick.row(&first, index.len());
    Ok(NUMBERS.map(|field| {
        let bytes = [0, 1, 2, 3].map(|byte| values.value(field + byte));
        i64::from(if little { i32::from_le_bytes(bytes) } else { i32::from_be_bytes(bytes) })
    }))
}

/// Returns the index of some traces of a survey, which are spread over it: the first one of each part, and the last of
/// all. May wait.
fn spread(traces: &dyn Array, shape: Dims, is_full: bool) -> Result<Vec<Dims>, FormatError> {
    let (order, positions) = (TraceOrder::sorted_by(shape, 0), shape.product().unwrap_or(0));
    let length = positions.div_ceil(PARTS).max(1);
    // a little more than a part, so that they are not all at the same place of their lines
    let more = if length > 8 { positions / 7 % 5 } else { 0 };
    let parts = (0..PARTS).map(|part| part * (length + more)).filter(|at| *at < positions);
    let mut found: Vec<(u64, Option<u64>)> = parts.map(|from| (from, is_full.then_some(from))).collect();
    let mut last = positions.checked_sub(1).filter(|_| is_full);
    if !is_full {
        visit(traces, &mut |row| {
            for number in row.live(&order) {
                for (from, first) in &mut found {
                    if number >= *from && first.is_none_or(|first| number < first) {
                        *first = Some(number);
                    }
                }
                last = last.max(Some(number));
            }
        })?;
    }
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
    /// Returns the numbers, in an order, of the positions that have a trace.
    fn live(&self, order: &TraceOrder) -> impl Iterator<Item = u64> {
        let (first, step) = (order.number_of(&self.start), order.step_along(self.axis));
        let live = (0..self.count).filter(|at| self.values.value(*at) != 0);
        live.map(move |at| first.wrapping_add_signed(step * at as i64))
    }
}

/// Visits all positions, brick by brick. Rows without any trace may be left out.
fn visit(traces: &dyn Array, of_row: &mut dyn FnMut(&Positions<'_>)) -> Result<(), FormatError> {
    let grid = &traces.info().grid;
    let axes = grid.shape().len().saturating_sub(1);
    let bricks = grid.count();
    for number in 0..grid.total() {
        let brick = BrickValues::read(traces, &bricks.index_of(number))?;
        if brick.held == [0] || axes == 0 {
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
pub(super) struct TraceOrder {
    /// The positions along each axis of the grid, slowest axis of the arrays first.
    shape: Dims,
    /// The axis of the grid at each place of the order, slowest first.
    axes: Dims,
    /// 1 for each axis of the grid along which the file goes backwards.
    backwards: Dims,
}

impl TraceOrder {
    /// Returns the order in which `axis` comes first, the others keeping theirs. By axis 0 it is that of the arrays.
    pub(super) fn sorted_by(shape: Dims, axis: usize) -> Self {
        let mut axes = Dims::from_fn(shape.len(), |axis| axis as u64);
        if let Some(axes) = axes.get_mut(..=axis) {
            axes.rotate_right(1);
        }
        Self { shape, axes, backwards: Dims::filled(shape.len(), 0) }
    }

    /// Returns all orders that a survey may have been sorted in: by either of its first two axes, along each of which
    /// it may go backwards. That of the arrays comes first.
    pub(super) fn all(shape: Dims) -> Vec<Self> {
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
    pub(super) fn is_of_arrays(&self) -> bool {
        self.axes.is_sorted() && !self.backwards.contains(&1)
    }

    pub(super) fn positions(&self) -> u64 {
        self.shape.product().unwrap_or(u64::MAX)
    }

    /// Returns the number of a position, given its index in the grid.
    pub(super) fn number_of(&self, index: &[u64]) -> u64 {
        self.axes.iter().fold(0, |number, axis| {
            let axis = *axis as usize;
            let last = self.shape[axis].saturating_sub(1);
            let at = if self.backwards[axis] == 1 { last.saturating_sub(index[axis]) } else { index[axis] };
            number * self.shape[axis] + at
        })
    }

    /// Returns how the number of a position changes with each step along an axis of the grid.
    pub(super) fn step_along(&self, axis: usize) -> i64 {
        let place = self.axes.iter().position(|at| *at as usize == axis).unwrap_or(0);
        let step = self.axes[place + 1..].iter().fold(1, |step, axis| step * self.shape[*axis as usize]) as i64;
        if self.backwards[axis] == 1 { -step } else { step }
    }

    /// Returns values of positions, in the order of the arrays or all in one line.
    pub(super) fn samples(&self, array: &Arc<dyn Array>, positions: &Range<u64>, values: &Range<u64>) -> Samples {
        if self.is_of_arrays() {
            let all = array.info().shape().last().copied().unwrap_or(1);
            return Samples::range(array, positions.start * all + values.start..(positions.end - 1) * all + values.end);
        }
        Samples::region(array, self.region(positions, values))
    }

    fn region(&self, positions: &Range<u64>, values: &Range<u64>) -> Region {
        let [first, last] = [positions.start, positions.end - 1].map(|number| self.index_of(number));
        let dims = |of: fn(u64, u64) -> u64, values: u64| {
            Dims::from_fn(first.len() + 1, |axis| first.get(axis).map_or(values, |at| of(*at, last[axis])))
        };
        let (start, shape) = (dims(u64::min, values.start), dims(|a, b| a.abs_diff(b) + 1, values.end - values.start));
        Region { start, shape }
    }

    fn index_of(&self, number: u64) -> Dims {
        let (mut index, mut rest) = (self.shape, number);
        for axis in self.axes.iter().rev().map(|axis| *axis as usize) {
            let length = self.shape[axis].max(1);
            index[axis] = if self.backwards[axis] == 1 { length - 1 - rest % length } else { rest % length };
            rest /= length;
        }
        index
    }

    /// Returns the axis along which positions of successive numbers lie in lines.
    fn fastest(&self) -> usize {
        self.axes.last().map_or(0, |axis| *axis as usize)
    }

    /// Returns the end of the positions in one line from `number` on; in the order of the arrays lines go on.
    fn end_of_line(&self, number: u64) -> u64 {
        let line = if self.is_of_arrays() { self.positions() } else { self.shape[self.fastest()] }.max(1);
        (number / line + 1) * line
    }
}

/// The most positions that are looked at in one step.
const LOOK: u64 = 4096;

/// Where the traces of a file are. They are found in ascending order.
pub(super) struct LiveTraces {
    counts: Arc<TraceCounts>,
    /// Positions that were looked at, those of them that have traces, and how many traces are before them.
    seen: Range<u64>,
    live: Vec<u64>,
    before: u64,
}

/// What is known of a trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Place {
    At(u64),
    /// It has to be known which of these positions have traces.
    Unknown(Range<u64>),
    Nowhere,
}

impl LiveTraces {
    pub(super) fn new(counts: &Arc<TraceCounts>) -> Self {
        Self { counts: Arc::clone(counts), seen: u64::MAX..u64::MAX, live: Vec::new(), before: 0 }
    }

    /// Returns where a trace is; its number is not less than that of the last one.
    pub(super) fn find(&mut self, trace: u64) -> Place {
        let (positions, before, is_full) = self.counts.block_of(trace);
        if is_full {
            return Place::At(positions.start + (trace - before));
        }
        if !positions.contains(&self.seen.start) {
            (self.seen, self.before) = (positions.start..positions.start, before);
            self.live.clear();
        }
        if let Some(position) = self.live.get((trace - self.before) as usize) {
            return Place::At(*position);
        }
        self.before += self.live.len() as u64;
        self.live.clear();
        let next = self.seen.end;
        self.seen = next..next;
        let end = positions.end.min(next + LOOK).min(self.counts.order.end_of_line(next));
        if next < end { Place::Unknown(next..end) } else { Place::Nowhere }
    }

    /// Takes [the samples](TraceOrder::samples) of positions that were unknown: 0 if there is no trace.
    pub(super) fn saw(&mut self, positions: Range<u64>, values: &[u8]) {
        let order = &self.counts.order;
        let is_backwards = order.backwards[order.fastest()] == 1;
        let place = |at: u64| if is_backwards { positions.end - 1 - at } else { at - positions.start };
        self.live.clear();
        self.live.extend(positions.clone().filter(|at| values[place(*at) as usize] != 0));
        self.seen = positions;
    }
}

/// The most bytes that a brick may have.
const MAX_BRICK: u64 = 64 << 20;

struct BrickValues {
    /// The samples that the brick owns.
    owned: Region,
    held: Vec<u8>,
    layout: Layout,
}

impl BrickValues {
    /// Reads the brick at a grid position of an array of uint8. May wait.
    fn read(array: &dyn Array, at: &Dims) -> Result<Self, FormatError> {
        let owned = array.info().grid.region(at);
        let (held, layout) = match array.brick(at, Blocking::Yes)? {
            Brick::Constant(value) => {
                // one byte, which is the value of all samples
                let layout = Layout { held: owned, first: 0, strides: Dims::filled(owned.axes(), 0) };
                (value.bytes().to_vec(), layout)
            }
            Brick::Plain(plain) => {
                let end = plain.layout.end(1).filter(|end| *end <= MAX_BRICK).ok_or_else(too_large)?;
                (stored(array, (&plain.object, plain.offset), end)?, plain.layout)
            }
            Brick::Coded(coded) => (decoded(array, &coded)?, coded.layout),
        };
        if layout.end(1).is_none_or(|end| end > held.len() as u64) || !layout.held.contains(&owned) {
            return Err(FormatError::Damaged("the brick is smaller than its layout".into()));
        }
        array.source().check_unchanged()?;
        Ok(Self { owned, held, layout })
    }

    /// Returns the values of samples side by side along `axis`, from one that the brick owns.
    fn row(&self, start: &Dims, axis: usize) -> Row<'_> {
        let bytes = self.held.get(self.layout.offset_of(start) as usize..).unwrap_or_default();
        Row { bytes, stride: self.layout.strides[axis] as usize }
    }
}

/// Values side by side along an axis; with a stride of 0 all are the same.
#[derive(Clone, Copy)]
struct Row<'a> {
    bytes: &'a [u8],
    stride: usize,
}

impl Row<'_> {
    /// Returns the value that is `at` steps from the first.
    fn value(&self, at: u64) -> u8 {
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
    fn lines_are_boxes_with_the_positions_in_order() {
        for shape in [Dims::from([3, 4]), Dims::from([2, 3, 2]), Dims::from([5])] {
            for order in TraceOrder::all(shape) {
                let (mut number, positions) = (0, order.positions());
                while number < positions {
                    let end = order.end_of_line(number).min(number + 3);
                    if order.is_of_arrays() {
                        assert_eq!(order.end_of_line(number), positions);
                        number = end;
                        continue;
                    }
                    let region = order.region(&(number..end), &(5..7));
                    assert_eq!((region.start[shape.len()], region.shape[shape.len()]), (5, 2));
                    assert_eq!(region.samples(), (end - number) * 2);
                    let mut box_of_positions = region.shape;
                    box_of_positions[shape.len()] = 1;
                    let is_backwards = order.backwards[order.fastest()] == 1;
                    for at in number..end {
                        let within = box_of_positions.index_of(if is_backwards { end - 1 - at } else { at - number });
                        let index = Dims::from_fn(shape.len(), |axis| region.start[axis] + within[axis]);
                        assert_eq!((order.number_of(&index), order.index_of(at)), (at, index), "{order:?}");
                    }
                    number = end;
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
