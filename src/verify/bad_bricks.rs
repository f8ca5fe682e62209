//! The bad bricks of one dataset. Those that follow one another for the same reason are one entry.

use super::fault::Fault;
use crate::volume::Dims;

/// Bricks of one level that follow one another in C order and cannot be read for the same reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct BadBricks {
    /// The number of the level among all levels of the dataset.
    pub level: usize,
    /// The index of the first one.
    pub first: Dims,
    /// The index of the last one.
    pub last: Dims,
    /// How many they are.
    pub count: u64,
    /// Whose fault it is.
    pub fault: Fault,
    /// What is wrong with the first one. That of the others differs in numbers only.
    pub reason: String,
    /// The number of the first one in the grid.
    number: u64,
}

/// Bricks that there was no room for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct BricksLeftOut {
    /// Bad ones.
    pub bad: u64,
    /// Those that could not be read by the system's fault.
    pub unread: u64,
}

impl BricksLeftOut {
    fn add(&mut self, fault: Fault, count: u64) {
        match fault {
            Fault::File => self.bad += count,
            Fault::System => self.unread += count,
        }
    }
}

/// All bricks of a dataset that cannot be read, as far as there is room for them.
#[derive(Debug)]
pub(super) struct BadBrickList {
    runs: Vec<BadBricks>,
    /// The most entries.
    most: usize,
    left_out: BricksLeftOut,
    /// Merging makes no room any more. It is not tried again for each brick: there may be a hundred million.
    full: bool,
}

impl BadBrickList {
    pub(super) fn new(most: usize) -> Self {
        Self { runs: Vec::new(), most, left_out: BricksLeftOut::default(), full: false }
    }

    /// Adds a brick; `number` is its number in the grid in C order.
    pub(super) fn add(&mut self, level: usize, at: Dims, number: u64, (fault, reason): (Fault, &str)) {
        if let Some(run) = self.runs.last_mut()
            && run.continues_with(level, number, (fault, reason))
        {
            (run.last, run.count) = (at, run.count + 1);
            return;
        }
        if self.runs.len() >= 2 * self.most && !self.full {
            self.merge();
            self.full = self.runs.len() >= self.most;
        }
        if self.full {
            self.left_out.add(fault, 1);
            return;
        }
        self.runs.push(BadBricks { level, first: at, last: at, count: 1, fault, reason: reason.to_owned(), number });
    }

    /// Sorts the entries and merges those that follow one another: threads add theirs in any order.
    fn merge(&mut self) {
        self.runs.sort_by_key(|run| (run.level, run.number));
        let mut merged: Vec<BadBricks> = Vec::new();
        for run in self.runs.drain(..) {
            match merged.last_mut() {
                Some(before) if before.continues_with(run.level, run.number, (run.fault, &run.reason)) => {
                    (before.last, before.count) = (run.last, before.count + run.count);
                }
                _ => merged.push(run),
            }
        }
        self.runs = merged;
    }

    /// Returns the entries in order, and the number of bricks that are in none.
    pub(super) fn entries(&mut self) -> (Vec<BadBricks>, BricksLeftOut) {
        self.merge();
        let mut left_out = self.left_out;
        self.runs.iter().skip(self.most).for_each(|run| left_out.add(run.fault, run.count));
        (self.runs.iter().take(self.most).cloned().collect(), left_out)
    }
}

impl BadBricks {
    fn continues_with(&self, level: usize, number: u64, (fault, reason): (Fault, &str)) -> bool {
        (self.level, self.fault) == (level, fault)
            && self.number + self.count == number
            && same_but_for_numbers(&self.reason, reason)
    }
}

/// Returns whether two texts are the same apart from the numbers in them, hexadecimal ones included.
fn same_but_for_numbers(a: &str, b: &str) -> bool {
    a == b || words(a).eq(words(b))
}

/// Returns the parts of a text, with nothing in place of each part that has a digit.
fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !c.is_alphanumeric())
        .map(|word| if word.contains(|c: char| c.is_ascii_digit()) { "" } else { word })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(most: usize, numbers: impl IntoIterator<Item = u64>) -> (Vec<(u64, u64)>, u64) {
        let mut list = BadBrickList::new(most);
        for number in numbers {
            let reason = format!("brick at byte {} ends beyond the end", number * 100);
            list.add(0, [number].into(), number, (Fault::File, &reason));
        }
        let (entries, left_out) = list.entries();
        (entries.iter().map(|run| (run.first[0], run.count)).collect(), left_out.bad)
    }

    #[test]
    fn neighbours_are_one_entry_in_whatever_order_they_come() {
        assert_eq!(list(10, [4, 5, 6, 1, 2, 3, 9]), (vec![(1, 6), (9, 1)], 0));
        assert_eq!(list(10, (0..1000).rev()), (vec![(0, 1000)], 0));
        assert_eq!(list(10, (0..1000).chain(5000..6000)), (vec![(0, 1000), (5000, 1000)], 0));
    }

    #[test]
    fn entries_have_a_most_and_the_others_are_counted() {
        let (entries, left_out) = list(10, (0..1000).map(|n| 2 * n));
        assert_eq!((entries.len(), left_out), (10, 990));
    }

    #[test]
    fn what_the_system_could_not_read_is_told_from_what_is_bad() {
        let mut list = BadBrickList::new(2);
        for (number, fault) in (0..).zip([Fault::File, Fault::System, Fault::System, Fault::File, Fault::System]) {
            list.add(0, [number].into(), number, (fault, "the same words"));
        }
        let (entries, left_out) = list.entries();
        let entries: Vec<_> = entries.iter().map(|run| (run.first[0], run.count, run.fault)).collect();
        assert_eq!(entries, [(0, 1, Fault::File), (1, 2, Fault::System)]);
        assert_eq!(left_out, BricksLeftOut { bad: 1, unread: 1 });
    }

    #[test]
    fn only_numbers_may_differ_in_a_reason() {
        assert!(same_but_for_numbers("brick entry 0xc1ab is [1, 2]", "brick entry 0x9f is [3, 4]"));
        assert!(!same_but_for_numbers("brick at byte 5", "chunk at byte 5"));
        let mut list = BadBrickList::new(10);
        list.add(0, [0].into(), 0, (Fault::File, "one"));
        list.add(0, [1].into(), 1, (Fault::File, "another"));
        list.add(1, [2].into(), 2, (Fault::File, "another"));
        assert_eq!(list.entries().0.len(), 3);
    }
}
