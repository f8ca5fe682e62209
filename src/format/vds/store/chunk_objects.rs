//! The chunks of a layer that have an object of their own, found by their names: a grid may have more chunks than
//! anybody can look up one by one.

use std::ops::Range;

use crate::format::FormatError;
use crate::sync::Mutex;

/// Numbers that are kept at least, if there are so many; never more than twice as many.
const WINDOW: usize = 1 << 18;

/// The numbers of the chunks that have an object. As many as memory is meant to hold are known at a time.
#[derive(Default)]
pub(crate) struct ChunkObjects(Mutex<Option<Window>>);

/// All numbers from `begin` to before `end`, in ascending order.
#[derive(Debug, PartialEq, Eq)]
struct Window {
    begin: u64,
    /// `None` if there are no others behind them.
    end: Option<u64>,
    numbers: Vec<u64>,
}

impl ChunkObjects {
    /// Returns the next chunks from `chunk` on, all below `total`, that have an object. `visit_all` visits the numbers
    /// of all chunks that have one, in any order and perhaps several times.
    pub(crate) fn next_run(
        &self,
        chunk: u64,
        total: u64,
        visit_all: impl FnOnce(&mut dyn FnMut(u64)) -> Result<(), FormatError>,
    ) -> Result<Range<u64>, FormatError> {
        let mut window = self.0.lock();
        let known = window.take().filter(|known| known.begin <= chunk && known.end.is_none_or(|end| chunk < end));
        let known = match known {
            Some(known) => known,
            None => Window::read(chunk, WINDOW, visit_all)?,
        };
        let run = known.run_from(chunk, total);
        *window = Some(known);
        Ok(run)
    }
}

impl Window {
    /// Keeps the `size` least numbers from `begin` on.
    fn read(
        begin: u64,
        size: usize,
        visit_all: impl FnOnce(&mut dyn FnMut(u64)) -> Result<(), FormatError>,
    ) -> Result<Self, FormatError> {
        let (mut numbers, mut end) = (Vec::new(), None);
        visit_all(&mut |number| {
            if number < begin || end.is_some_and(|end| number >= end) {
                return;
            }
            numbers.push(number);
            if numbers.len() >= 2 * size {
                numbers.sort_unstable();
                numbers.dedup();
                if numbers.len() > size {
                    end = numbers.get(size).copied();
                    numbers.truncate(size);
                }
            }
        })?;
        numbers.sort_unstable();
        numbers.dedup();
        Ok(Self { begin, end, numbers })
    }

    /// Returns the next numbers from `chunk` on that follow one another. If there are none in the window, the result is
    /// empty and ends where the next window begins.
    fn run_from(&self, chunk: u64, total: u64) -> Range<u64> {
        let at = self.numbers.partition_point(|number| *number < chunk);
        let rest = self.numbers.get(at..).unwrap_or_default();
        let Some(first) = rest.first() else {
            let end = self.end.map_or(total, |end| end.min(total));
            return end..end;
        };
        let length = rest.iter().zip(*first..).take_while(|(number, expected)| *number == expected).count() as u64;
        (*first).min(total)..first.saturating_add(length).min(total)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn runs_are_those_of_the_objects() {
        let (objects, mut listings) = (ChunkObjects::default(), 0);
        let mut run = |chunk| {
            let run = objects.next_run(chunk, 100, |visit| {
                listings += 1;
                [7, 200, 3, 4, 5, 99, 4].into_iter().for_each(visit);
                Ok(())
            });
            run.unwrap()
        };
        assert_eq!([run(0), run(4), run(6), run(8), run(100)], [3..6, 4..6, 7..8, 99..100, 100..100]);
        assert_eq!(listings, 1);
    }

    proptest! {
        #[test]
        fn windows_hold_all_numbers(
            numbers in prop::collection::vec(0u64..200, 0..100), size in 1usize..20, total in 0u64..220
        ) {
            let mut expected: Vec<u64> = numbers.iter().copied().filter(|number| *number < total).collect();
            expected.sort_unstable();
            expected.dedup();
            let (mut found, mut chunk) = (Vec::new(), 0);
            while chunk < total {
                let window = Window::read(chunk, size, |visit| {
                    numbers.iter().copied().for_each(visit);
                    Ok(())
                });
                let window = window.unwrap();
                prop_assert!(window.numbers.len() <= 2 * size);
                let run = window.run_from(chunk, total);
                found.extend(run.clone());
                // as `Array::visit_stored` goes on
                chunk = run.end.max(chunk + 1);
            }
            prop_assert_eq!(found, expected);
        }
    }
}
