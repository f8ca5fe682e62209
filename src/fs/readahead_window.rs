//! Readers that go through a file in order, and what should be in the kernel's page cache when they come to it.
//!
//! The kernel reads ahead of a reader by 128 KiB: one or two requests at a time. Who reads in order has more asked for ahead of it. It then
//! asks for nothing itself, so that nobody would know how far it has come: the first page of each [`STRETCH`] is left out, and
//! tells when the reader asks for it.

use crate::sync::Mutex;
use std::iter;
use std::ops::Range;

/// What is asked for at a time; so far the kernel itself reads ahead, and out of order.
const STEP: u64 = 128 << 10;
/// Of each such part of a file the first page is left to the reader. No more is asked for in one errand.
const STRETCH: u64 = 2 << 20;
/// So far ahead of a reader is asked for, but no farther than it has come.
const LEAD: u64 = 4 << 20;
/// So far in any case.
const LEAST: u64 = 1 << 20;
/// What the kernel asks for begins at a multiple of this, or of more.
const PAGE: u64 = 4096;
/// No fewer bytes are asked for, unless nothing follows them.
const ENOUGH: u64 = 256 << 10;
/// A reader that has gone so far in order goes on, at least to the end of the plane.
const SURE: u64 = 256 << 10;
/// Readers of one open file that are told apart.
const RUNS: usize = 4;

/// The readers of one open file.
#[derive(Default)]
pub struct Runs {
    runs: Mutex<Vec<Run>>,
}

/// A read that the kernel asks for, and what it is of.
#[derive(Clone, Copy, Debug)]
pub struct Asked {
    /// The first byte.
    pub offset: u64,
    /// Bytes, no more than the file has.
    pub length: u64,
    /// Bytes of the file.
    pub file: u64,
    /// Bytes before its array.
    pub header: u64,
    /// Bytes of a plane of the array.
    pub plane: u64,
}

/// One reader's way through a file.
struct Run {
    /// The first byte asked for, and how many of those that follow were asked for, by whomever.
    first: u64,
    covered: u64,
    /// One past the last byte that the reader asked for.
    reached: u64,
    /// What is before this was asked for ahead.
    ahead: u64,
}

impl Runs {
    /// Takes note of a read; gives what should be asked for ahead, if somebody is `free` to do so.
    pub fn note(&self, asked: Asked, free: impl FnOnce() -> bool) -> Option<Range<u64>> {
        let mut runs = self.runs.lock();
        let Some(at) = runs.iter().position(|run| run.is_near(asked.offset)) else {
            if runs.len() >= RUNS {
                runs.remove(0);
            }
            runs.push(Run::new(asked));
            return None;
        };
        // the one that has not asked for longest is the first
        runs[at..].rotate_left(1);
        let run = runs.last_mut()?;
        let wanted = run.go_on(asked)?;
        free().then(|| {
            run.ahead = wanted.end;
            wanted
        })
    }
}

impl Run {
    fn new(Asked { offset, length, .. }: Asked) -> Self {
        Self { first: offset, covered: length, reached: offset + length, ahead: 0 }
    }

    /// Whether a read may be this reader's.
    fn is_near(&self, offset: u64) -> bool {
        (self.reached.saturating_sub(2 * STEP)..=self.reached.max(self.ahead).saturating_add(STEP)).contains(&offset)
    }

    fn go_on(&mut self, asked: Asked) -> Option<Range<u64>> {
        let Asked { offset, length, .. } = asked;
        let before = self.reached;
        self.reached = before.max(offset + length);
        let gone = self.reached - self.first;
        // what was asked for ahead it need not ask for
        self.covered = if self.ahead >= before { gone } else { self.covered + length };
        if gone < SURE {
            return None;
        }
        if self.covered < gone / 4 * 3 {
            (self.first, self.covered) = (self.reached, 0);
            return None;
        }
        // the kernel has asked for the next window already
        let from = if self.ahead > self.reached { self.ahead } else { (self.reached + STEP).next_multiple_of(STEP) };
        let bound = self.bound(asked);
        let lead = gone.clamp(LEAST, LEAD);
        let until = ((self.reached + lead) / STEP * STEP).min(from + STRETCH).min(bound);
        (until > from && (until - from >= ENOUGH || until == bound)).then_some(from..until)
    }

    /// Who has not come to another plane may want this one only; the kernel reads beyond it all the same.
    fn bound(&self, Asked { file, header, plane, .. }: Asked) -> u64 {
        // the kernel asks for whole pages, and of a map for as much before the page that is wanted as behind it
        let wanted = self.first + STEP / 2 + PAGE;
        let number = wanted.saturating_sub(header) / plane.max(1);
        let end = (number + 1).saturating_mul(plane).saturating_add(header);
        if self.reached > end.saturating_add(2 * STEP) { file } else { end.min(file) }
    }
}

/// What is asked for ahead, step by step: without the pages of `page` bytes that are left to the reader.
pub fn steps(bytes: Range<u64>, page: u64) -> impl Iterator<Item = Range<u64>> {
    let mut at = bytes.start;
    iter::from_fn(move || {
        if at.is_multiple_of(STRETCH) {
            at += page;
        }
        let next = (at + 1).next_multiple_of(STEP).min(bytes.end);
        let step = at..next;
        at = next;
        (!step.is_empty()).then_some(step)
    })
}

/// Whether a read from `offset` on is of a page that is left to the reader.
pub fn is_left(offset: u64, length: u64, page: u64) -> bool {
    offset.is_multiple_of(STRETCH) && length == page
}

/// Where the page that is left to the reader begins, if what is asked for ahead at `offset` follows it.
pub fn left_before(offset: u64, page: u64) -> Option<u64> {
    offset.checked_sub(page).filter(|at| at.is_multiple_of(STRETCH))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    const PLANE: u64 = 1 << 20;

    /// A client that reads a file, the kernel that asks for windows of what is not there, and somebody who is sent on errands.
    struct Client {
        runs: Runs,
        /// The file's pages that the kernel has.
        pages: BTreeSet<u64>,
        file: u64,
        header: u64,
        plane: u64,
        /// What the client has the kernel ask for.
        requests: usize,
        errands: Vec<Range<u64>>,
        /// How many errands come to nothing.
        lost: usize,
    }

    impl Client {
        fn new(file: u64, plane: u64) -> Self {
            let runs = Runs::default();
            Self { runs, pages: BTreeSet::new(), file, header: 0, plane, requests: 0, errands: Vec::new(), lost: 0 }
        }

        fn read(&mut self, bytes: Range<u64>) {
            for page in bytes.start / PAGE..bytes.end.div_ceil(PAGE) {
                if self.pages.contains(&page) {
                    continue;
                }
                let window = (page..page + STEP / PAGE).take_while(|page| !self.pages.contains(page)).count() as u64;
                let offset = page * PAGE;
                let length = (window * PAGE).min(self.file - offset);
                self.requests += 1;
                let asked = Asked { offset, length, file: self.file, header: self.header, plane: self.plane };
                let errand = self.runs.note(asked, || true);
                self.pages.extend(page..page + window);
                if let Some(errand) = errand {
                    self.run(errand);
                }
            }
        }

        fn run(&mut self, errand: Range<u64>) {
            assert!(errand.start < errand.end && errand.end <= self.file, "{errand:?}");
            assert!(errand.end - errand.start <= STRETCH, "{errand:?}");
            self.errands.push(errand.clone());
            if self.lost > 0 {
                self.lost -= 1;
                return;
            }
            let mut at = errand.start;
            for step in steps(errand.clone(), PAGE) {
                assert!(step.start == at || left_before(step.start, PAGE) == Some(at), "{step:?} after {at}");
                assert!(step.start < step.end && step.end - step.start <= STEP);
                assert!(step.start.is_multiple_of(PAGE));
                at = step.end;
                self.pages.extend(step.start / PAGE..step.end.div_ceil(PAGE));
            }
        }

        fn ahead_of(&self, end: u64) -> u64 {
            self.pages.range(end.div_ceil(PAGE)..).count() as u64 * PAGE
        }
    }

    #[test]
    fn who_goes_on_asks_for_a_page_of_each_stretch() {
        let mut client = Client::new(64 << 20, PLANE);
        for at in (0..64).map(|n| n * PLANE) {
            client.read(at..at + PLANE);
            assert!(client.ahead_of(at + PLANE) <= LEAD.min((at + PLANE).max(LEAST)) + STEP);
        }
        assert!(client.requests <= 74 / 2 + 16, "{}", client.requests);
        // each byte but those of the first windows and the pages that are left
        let sum: u64 = client.errands.iter().map(|errand| errand.end - errand.start).sum();
        assert!(sum > 62 << 20, "{sum}");
        let in_order = client.errands.windows(2).all(|two| two[0].end <= two[1].start);
        assert!(in_order);
    }

    #[test]
    fn who_wants_one_plane_gets_no_other() {
        for (header, plane) in [(0, PLANE), (128, PLANE), (0, 256 << 10), (128, 2 << 20)] {
            let mut client = Client::new(64 << 20, plane);
            client.header = header;
            let (begin, end) = (header + 5 * plane, header + 6 * plane);
            // by reads, or by faults of a map
            for begin in [begin, begin - STEP / 2] {
                client.runs = Runs::default();
                client.pages.clear();
                client.requests = 0;
                client.read(begin..end);
                assert!(client.requests <= 7, "{}", client.requests);
                assert!(client.ahead_of(end) <= STEP, "{}", client.ahead_of(end));
            }
            assert!(client.errands.iter().all(|errand| errand.end <= end));
        }
    }

    #[test]
    fn who_reads_here_and_there_gets_nothing() {
        let mut client = Client::new(64 << 20, PLANE);
        for n in 0..500u64 {
            let at = (n * 7_919_777) % (63 << 20) / PAGE * PAGE;
            let asked = Asked { offset: at, length: PAGE, file: client.file, header: 0, plane: client.plane };
            assert_eq!(client.runs.note(asked, || true), None);
        }
        // the rows of a box
        for at in (0..60).map(|n| n * PLANE) {
            client.read(at..at + (64 << 10));
        }
        assert!(client.errands.is_empty());
    }

    #[test]
    fn two_readers_of_a_file_are_told_apart() {
        let mut client = Client::new(64 << 20, PLANE);
        for at in (0..16).map(|n| n * PLANE) {
            client.read(at..at + PLANE);
            client.read((40 << 20) + at..(40 << 20) + at + PLANE);
        }
        assert!(client.requests <= 2 * (16 / 2 + 12), "{}", client.requests);
    }

    #[test]
    fn an_errand_that_nobody_is_free_for_is_not_forgotten() {
        let runs = Runs::default();
        let ask = |n: u64, free| {
            runs.note(Asked { offset: n * STEP, length: STEP, file: 64 << 20, header: 0, plane: PLANE }, || free)
        };
        assert_eq!((ask(0, true), ask(1, false)), (None, None));
        let wanted = ask(2, true).unwrap();
        assert_eq!(wanted, 4 * STEP..PLANE);
        assert_eq!(ask(3, true), None);
    }

    #[test]
    fn the_page_before_a_step_is_known() {
        let all: Vec<_> = steps(STRETCH - STEP..STRETCH + STEP, PAGE).collect();
        assert_eq!(all, [STRETCH - STEP..STRETCH, STRETCH + PAGE..STRETCH + STEP]);
        assert_eq!(left_before(all[1].start, PAGE), Some(STRETCH));
        assert_eq!((left_before(all[0].start, PAGE), left_before(0, PAGE)), (None, None));
        assert!(is_left(STRETCH, PAGE, PAGE) && !is_left(STRETCH, STEP, PAGE) && !is_left(STEP, PAGE, PAGE));
        assert_eq!(steps(STRETCH..STRETCH + 10, PAGE).count(), 0);
    }

    proptest! {
        #[test]
        fn whatever_is_read_errands_are_of_the_file(
            file in 1u64..20 << 20, plane in 1u64..4 << 20,
            reads in prop::collection::vec((0.0f64..1.0, 1u64..6 << 20), 1..8), lost in 0usize..6,
        ) {
            let mut client = Client::new(file, plane);
            client.lost = lost;
            for (at, length) in reads {
                let start = ((file as f64 * at) as u64).min(file - 1);
                client.read(start..start.saturating_add(length).min(file));
            }
        }
    }
}
