//! Finds out in which order a file had its traces. An import sorts them by line numbers, so that a file that was sorted
//! otherwise is turned; but programs number the traces of a file, and the numbers are in the trace headers.

use super::brick_values::BrickValues;
use super::trace_counts::{TraceCounts, ranks, spread, spread_of_full};
use super::trace_order::TraceOrder;
use crate::format::{Array, FormatError, SegyImport};
use crate::volume::Dims;

/// Where trace headers have the number of the trace, in the line or in the file.
const NUMBERS: [u64; 2] = [0, 4];

/// How many parts of the survey have a trace that is looked at: with few traces, and holes between them, a wrong order
/// may have the same numbers by chance.
const PARTS: u64 = 24;

/// Counts the traces of a file in its order: that in which the traces are numbered, if they are; else the one that the
/// import names; else that of the arrays. May wait.
pub(crate) fn count(import: &SegyImport, traces: &dyn Array, headers: &dyn Array) -> Result<TraceCounts, FormatError> {
    let all = traces.info().shape();
    let shape = Dims::from_fn(all.len().saturating_sub(1), |axis| all[axis]);
    let otherwise = match import.sorted_by.filter(|axis| *axis < shape.len()) {
        Some(axis) => TraceOrder::sorted_by(shape, axis),
        None => TraceOrder::of_arrays(shape),
    };
    let stored = TraceCounts::count(traces, TraceOrder::of_arrays(shape))?;
    let is_full = stored.is_full();
    let probes = if is_full { spread_of_full(shape, PARTS) } else { spread(traces, shape, PARTS)? };
    let numbers = probes.iter().map(|index| numbers(headers, index, import.little_headers));
    let numbers = numbers.collect::<Result<Vec<_>, _>>()?;
    let probes = Probes { traces, is_full, probes, numbers };
    let orders = TraceOrder::all(shape);
    // the order of the arrays is the usual one: the others are not counted if it fits
    let (first, others) = orders.split_at(1);
    let found = match probes.find(first)? {
        None => probes.find(others)?,
        found => found,
    };
    let order = found.unwrap_or(otherwise);
    if order.is_of_arrays() || is_full { Ok(stored.in_order(order)) } else { TraceCounts::count(traces, order) }
}

/// Traces that are looked at.
struct Probes<'a> {
    traces: &'a dyn Array,
    /// Whether there is a trace at every position.
    is_full: bool,
    /// Their indexes, and the numbers in their headers.
    probes: Vec<Dims>,
    numbers: Vec<[i64; 2]>,
}

impl Probes<'_> {
    /// Returns the first of some orders in which the traces have these numbers.
    fn find(&self, orders: &[TraceOrder]) -> Result<Option<TraceOrder>, FormatError> {
        let numbers = &self.numbers;
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
        let ranks = match self.is_full {
            true => orders.iter().map(|order| self.probes.iter().map(|at| order.number_of(at)).collect()).collect(),
            false => ranks(self.traces, orders, &self.probes)?,
        };
        let fitting = orders.iter().zip(&ranks).find(|(_, ranks)| fields.iter().any(|field| fits(ranks, *field)));
        Ok(fitting.map(|(order, _)| *order))
    }
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
