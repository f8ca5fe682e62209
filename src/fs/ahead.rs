//! Pages that a reader finds in the kernel's page cache before it asks for them.
//!
//! The kernel reads ahead of a reader by 128 KiB, so that the reader waits for this process again and again, and takes every page into
//! the page cache itself. Who reads a file in order is given the next pages by threads of the pool instead: they put them where the
//! kernel keeps pages, and the reader only copies. How far it has come is not known then, so that the first page of each block
//! is held back: it has to be asked for, it is answered at once, and another block follows.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::Ino;

/// Where the kernel keeps pages of files.
pub trait PageCache: Send + Sync {
    /// Puts bytes of a file there: whole pages, but for the last one of the file. May wait for answers to reads of them.
    fn store(&self, file: Ino, offset: u64, bytes: &[u8]);
}

/// A page.
const PAGE: u64 = 4096;
/// Bytes that are read and stored at a time.
const PIECE: u64 = 128 << 10;
/// Bytes of a block, of which only the first page is asked for.
const BLOCK: u64 = 512 << 10;
/// What is given lies so far before a reader; the next block follows when it is less.
const LEAD: u64 = 1 << 20;
/// A reader that has gone so far in order goes on, at least to the end of the plane.
const SURE: u64 = 256 << 10;
/// So far the kernel itself reads ahead, and out of order.
const WINDOW: u64 = 128 << 10;
/// Readers of one open file that are told apart.
const RUNS: usize = 4;
/// First pages of blocks that are kept for a reader.
const HELD_BACK: usize = 4;

/// The readers of one open file.
#[derive(Default)]
pub struct Runs {
    runs: Mutex<Vec<Arc<Run>>>,
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
    /// Bytes of a plane of its array.
    pub plane: u64,
}

/// One reader's way through a file.
struct Run {
    way: Mutex<Way>,
    /// One past the last byte asked for.
    reached: AtomicU64,
}

struct Way {
    /// The first byte asked for, and how many of those that follow were asked for or given.
    first: u64,
    covered: u64,
    /// What is before this and was not asked for is given.
    given: u64,
    /// The first pages of the last blocks.
    held_back: VecDeque<(u64, Arc<[u8]>)>,
}

/// Bytes that a reader is given without being asked.
pub struct Piece {
    run: Arc<Run>,
    /// Where they are, from one page to another or the end of the file.
    pub bytes: Range<u64>,
    /// The first page is held back.
    begins_block: bool,
}

impl Runs {
    /// Takes note of a read; gives what should follow.
    pub fn note(&self, asked: Asked) -> Vec<Piece> {
        let mut runs = self.lock();
        let run = match runs.iter().position(|run| run.is_near(asked.offset)) {
            Some(at) => runs.remove(at),
            None => {
                if runs.len() >= RUNS {
                    runs.remove(0).stop();
                }
                runs.push(Arc::new(Run::new(asked)));
                return Vec::new();
            }
        };
        runs.push(Arc::clone(&run));
        drop(runs);
        run.go_on(asked)
    }

    /// The first page of a block, if just that is asked for and it is there.
    pub fn held_back(&self, offset: u64, length: u64) -> Option<Arc<[u8]>> {
        let runs = self.lock();
        runs.iter().find_map(|run| {
            let way = run.way();
            let (_, page) = way.held_back.iter().find(|(at, page)| *at == offset && page.len() as u64 == length)?;
            Some(Arc::clone(page))
        })
    }

    /// The file is closed: what is under way is of no use any more.
    pub fn stop(&self) {
        self.lock().drain(..).for_each(|run| run.stop());
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Arc<Run>>> {
        self.runs.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Run {
    fn new(asked: Asked) -> Self {
        let Asked { offset, length, .. } = asked;
        let way = Way { first: offset, covered: length, given: 0, held_back: VecDeque::new() };
        Self { way: Mutex::new(way), reached: AtomicU64::new(offset + length) }
    }

    /// Whether a read may be this reader's.
    fn is_near(&self, offset: u64) -> bool {
        let reached = self.reached.load(Ordering::Relaxed);
        (reached.saturating_sub(2 * WINDOW)..=reached.max(self.way().given).saturating_add(WINDOW)).contains(&offset)
    }

    fn go_on(self: &Arc<Self>, asked: Asked) -> Vec<Piece> {
        let Asked { offset, length, file, plane } = asked;
        let mut way = self.way();
        let before = self.reached.fetch_max(offset + length, Ordering::Relaxed);
        let reached = before.max(offset + length);
        way.held_back.retain(|(at, _)| *at >= offset);
        let gone = reached - way.first;
        // what it was given it need not ask for
        way.covered = if way.given >= before { gone } else { way.covered + length };
        if gone < SURE {
            return Vec::new();
        }
        if way.covered < gone / 4 * 3 {
            (way.first, way.covered) = (reached, 0);
            return Vec::new();
        }
        // who has not come to another plane may want this one only
        let plane_of = |at: u64| at / plane.max(1);
        let bound = if plane_of(way.first) == plane_of(reached.saturating_sub(1)) {
            (plane_of(way.first) + 1).saturating_mul(plane).checked_next_multiple_of(PAGE).unwrap_or(file).min(file)
        } else {
            file
        };
        if way.given <= reached {
            way.given = (reached + WINDOW).next_multiple_of(PIECE);
        }
        let until = bound.min(reached + LEAD);
        let mut pieces = Vec::new();
        while way.given < until {
            let (begin, end) = (way.given, (way.given + BLOCK).min(bound));
            while way.given < end {
                let next = (way.given + 1).next_multiple_of(PIECE).min(end);
                let begins_block = way.given == begin;
                pieces.push(Piece { run: Arc::clone(self), bytes: way.given..next, begins_block });
                way.given = next;
            }
        }
        pieces
    }

    /// Nothing is given to it any more.
    fn stop(&self) {
        self.reached.store(u64::MAX, Ordering::Relaxed);
    }

    fn way(&self) -> MutexGuard<'_, Way> {
        self.way.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Piece {
    /// Whether the reader has asked for it after all, or is gone.
    pub fn is_late(&self) -> bool {
        let asked_for = if self.begins_block { PAGE } else { 0 };
        self.run.reached.load(Ordering::Relaxed) > self.bytes.start + asked_for
    }

    /// Gives the bytes of the piece to the reader by way of `pages`.
    pub fn give(&self, file: Ino, bytes: &[u8], pages: &dyn PageCache) {
        if self.is_late() {
            return;
        }
        let held_back = if self.begins_block { bytes.len().min(PAGE as usize) } else { 0 };
        if held_back > 0 {
            let mut way = self.run.way();
            way.held_back.push_back((self.bytes.start, bytes[..held_back].into()));
            if way.held_back.len() > HELD_BACK {
                way.held_back.pop_front();
            }
        }
        if held_back < bytes.len() {
            pages.store(file, self.bytes.start + held_back as u64, &bytes[held_back..]);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    /// A file's pages in the kernel's cache.
    #[derive(Default)]
    struct Kernel {
        pages: Mutex<BTreeSet<u64>>,
        twice: AtomicU64,
    }

    impl PageCache for Kernel {
        fn store(&self, _: Ino, offset: u64, bytes: &[u8]) {
            assert!(offset.is_multiple_of(PAGE));
            assert!(bytes.iter().zip(offset..).all(|(byte, at)| *byte == (at / 7) as u8), "bytes of another place");
            let mut pages = self.pages.lock().unwrap();
            for page in offset / PAGE..(offset + bytes.len() as u64).div_ceil(PAGE) {
                self.twice.fetch_add(u64::from(!pages.insert(page)), Ordering::Relaxed);
            }
        }
    }

    fn content(bytes: Range<u64>) -> Vec<u8> {
        bytes.map(|at| (at / 7) as u8).collect()
    }

    /// A client that reads a file, and the kernel that asks for windows of what is not there.
    struct Client {
        runs: Runs,
        kernel: Kernel,
        file: u64,
        plane: u64,
        requests: usize,
        /// How many pieces are not read in time.
        slow: usize,
    }

    impl Client {
        fn new(file: u64, plane: u64) -> Self {
            Self { runs: Runs::default(), kernel: Kernel::default(), file, plane, requests: 0, slow: 0 }
        }

        fn read(&mut self, bytes: Range<u64>) {
            for page in bytes.start / PAGE..bytes.end.div_ceil(PAGE) {
                let there = |kernel: &Kernel, page| kernel.pages.lock().unwrap().contains(&page);
                if there(&self.kernel, page) {
                    continue;
                }
                let window = (page..page + WINDOW / PAGE).take_while(|page| !there(&self.kernel, *page)).count() as u64;
                let offset = page * PAGE;
                let length = (window * PAGE).min(self.file - offset);
                self.requests += 1;
                let pieces = self.runs.note(Asked { offset, length, file: self.file, plane: self.plane });
                if let Some(held) = self.runs.held_back(offset, length) {
                    assert_eq!(*held, *content(offset..offset + length));
                }
                self.kernel.pages.lock().unwrap().extend(page..page + window);
                for piece in pieces {
                    assert!(piece.bytes.end <= self.file && piece.bytes.start < piece.bytes.end);
                    assert!(piece.bytes.end.is_multiple_of(PAGE) || piece.bytes.end == self.file);
                    if self.slow > 0 {
                        self.slow -= 1;
                    } else {
                        piece.give(Ino(1), &content(piece.bytes.clone()), &self.kernel);
                    }
                }
            }
        }

        fn given_beyond(&self, end: u64) -> u64 {
            self.kernel.pages.lock().unwrap().range(end.div_ceil(PAGE)..).count() as u64 * PAGE
        }
    }

    #[test]
    fn who_goes_on_asks_for_a_page_of_each_block() {
        let mut client = Client::new(64 << 20, 1 << 20);
        for at in (0..64).map(|n| n << 20) {
            client.read(at..at + (1 << 20));
            assert!(client.given_beyond(at + (1 << 20)) <= LEAD + BLOCK);
        }
        assert!(client.requests <= 64 * 2 + 16, "{}", client.requests);
        assert_eq!(client.kernel.twice.into_inner(), 0);
    }

    #[test]
    fn who_wants_one_plane_gets_no_other() {
        let mut client = Client::new(64 << 20, 1 << 20);
        client.read(5 << 20..6 << 20);
        assert!(client.requests <= 5, "{}", client.requests);
        assert_eq!(client.given_beyond(6 << 20), 0);
    }

    #[test]
    fn who_reads_here_and_there_gets_nothing() {
        let mut client = Client::new(64 << 20, 1 << 20);
        for n in 0..500u64 {
            let at = (n * 7_919_777) % (63 << 20) / PAGE * PAGE;
            let asked = Asked { offset: at, length: PAGE, file: client.file, plane: client.plane };
            assert!(client.runs.note(asked).is_empty());
        }
        // the rows of a box
        for n in 0..60 {
            client.read(n << 20..(n << 20) + (64 << 10));
        }
        assert!(client.given_beyond(0) <= 61 * WINDOW);
    }

    #[test]
    fn nothing_is_given_after_the_file_is_closed_or_to_who_has_asked() {
        let (runs, kernel) = (Runs::default(), Kernel::default());
        let mut pieces = Vec::new();
        for offset in (0..2).map(|n| n * WINDOW) {
            pieces.extend(runs.note(Asked { offset, length: WINDOW, file: 64 << 20, plane: 1 << 20 }));
        }
        let (first, last) = (&pieces[0], &pieces[pieces.len() - 1]);
        assert!(!first.is_late() && !last.is_late());
        runs.note(Asked { offset: first.bytes.start, length: WINDOW, file: 64 << 20, plane: 1 << 20 });
        assert!(first.is_late() && !last.is_late());
        runs.stop();
        assert!(last.is_late());
        last.give(Ino(1), &content(last.bytes.clone()), &kernel);
        assert!(kernel.pages.lock().unwrap().is_empty());
    }

    proptest! {
        #[test]
        fn whatever_is_read_what_is_given_is_the_right_thing(
            file in 1u64..20 << 20, plane in 1u64..4 << 20,
            reads in prop::collection::vec((0.0f64..1.0, 1u64..3 << 20), 1..8), slow in 0usize..20,
        ) {
            let mut client = Client::new(file, plane);
            client.slow = slow;
            for (at, length) in reads {
                let start = ((file as f64 * at) as u64).min(file - 1);
                client.read(start..start.saturating_add(length).min(file));
            }
        }
    }
}
