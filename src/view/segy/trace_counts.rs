//! How many traces a file has before each of its positions: read once from the channel that says which there are.

use std::sync::{Arc, LazyLock};

use super::brick_values::{BrickValues, Row};
use super::trace_order::TraceOrder;
use crate::format::{Array, FormatError};
use crate::memory::{LruByWeight, try_with_capacity};
use crate::sync::Mutex;
use crate::volume::{ArrayId, Dims};

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
