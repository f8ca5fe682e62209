//! Walks along the traces of a file, and finds the position of each.

use std::ops::Range;

use super::trace_counts::TraceCounts;

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
