//! The thread that writes, evicts and scans, and the bounded queue of what it is to write.
//!
//! The budget B holds for all processes that share a folder: each knows the sum of all files but for what others have
//! written since it last looked, and keeps it below 7/8 B. It looks again (lists all folders) whenever it has itself
//! written B/64, unless it is alone. So others may have written B/64 each, and as much again during the look: five
//! processes never exceed B, and each further one adds B/32 at most. That is as long as ranges are small beside B/64;
//! one that takes more than B/16 is never written.

use std::collections::{HashSet, VecDeque};
use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::eviction::Amount;
use super::files::Files;
use super::format::{CacheKey, SHARDS, StoredRange};
use crate::logging::warn_seldom;
use crate::sync::{Condvar, Mutex};

/// The most files; their index takes 24 to 27 MiB.
const MAX_FILES: u64 = 1 << 20;
/// How long nothing is written after a failure.
const OFF: Duration = Duration::from_secs(60);
/// Bytes that are queued at most; one range may be in any case.
const MAX_QUEUED: usize = 16 << 20;

pub(super) struct Put {
    pub(super) key: CacheKey,
    pub(super) range: StoredRange,
    pub(super) bytes: Box<dyn AsRef<[u8]> + Send>,
}

/// A queue that is bounded in bytes; `push` never blocks.
#[derive(Default)]
pub(super) struct WriteQueue {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
pub(super) struct State {
    puts: VecDeque<Put>,
    known: HashSet<StoredRange>,
    bytes: usize,
    off_until: Option<Instant>,
    closed: bool,
    /// Whether the thread that writes has ended.
    pub(super) ended: bool,
}

impl WriteQueue {
    fn change<T>(&self, change: impl FnOnce(&mut State) -> T) -> T {
        let changed = change(&mut self.state.lock());
        self.changed.notify_all();
        changed
    }

    /// Adds bytes to write, unless the range is queued already. Returns `false` if there is no room for them, or
    /// nothing is written for now.
    pub(super) fn push(&self, put: Put) -> bool {
        let size = put.range.length as usize;
        self.change(|state| {
            if state.known.contains(&put.range) {
                return true;
            }
            let is_off = state.off_until.is_some_and(|until| Instant::now() < until);
            if state.closed || is_off || (state.bytes > 0 && state.bytes.saturating_add(size) > MAX_QUEUED) {
                return false;
            }
            state.bytes += size;
            state.known.insert(put.range);
            state.puts.push_back(put);
            true
        })
    }

    /// Returns what is to be written next, if anything, and waits for it if `wait` is set; `None` at the end.
    /// [`WriteQueue::done`] has to follow.
    fn next(&self, wait: bool) -> Option<Option<Put>> {
        let mut state = self.state.lock();
        while wait && state.puts.is_empty() && !state.closed {
            self.changed.wait(&mut state);
        }
        let put = state.puts.pop_front();
        (put.is_some() || !state.closed).then_some(put)
    }

    fn done(&self, range: StoredRange) {
        self.change(|state| {
            state.known.remove(&range);
            state.bytes = state.bytes.saturating_sub(range.length as usize);
        });
    }

    /// Admits nothing for some time, and returns how many ranges were queued, which are dropped.
    fn turn_off(&self, time: Duration) -> usize {
        let dropped = self.change(|state| {
            state.off_until = Instant::now().checked_add(time);
            state.bytes = 0;
            let dropped = std::mem::take(&mut state.puts);
            for put in &dropped {
                state.known.remove(&put.range);
            }
            dropped
        });
        dropped.len()
    }

    pub(super) fn close(&self) {
        self.change(|state| state.closed = true);
    }

    fn is_closed(&self) -> bool {
        self.state.lock().closed
    }

    /// Waits until a condition holds; `false` if that takes longer than `limit`.
    pub(super) fn wait_for(&self, limit: Duration, condition: impl Fn(&State) -> bool) -> bool {
        let began = Instant::now();
        let mut state = self.state.lock();
        while !condition(&state) {
            let Some(left) = limit.checked_sub(began.elapsed()) else { return false };
            self.changed.wait_for(&mut state, left);
        }
        true
    }
}

pub(super) struct Writer {
    files: Arc<Files>,
    queue: Arc<WriteQueue>,
    /// Bytes that are written between two scans.
    step: u64,
    /// What is there at most, and what is left when files had to go.
    high: Amount,
    low: Amount,
    /// The scan that is under way: the folder that is next, and when others had last come or gone as it began, if none
    /// was there then.
    scan: Option<(usize, Option<(i64, i64)>)>,
    written: u64,
    has_failed: bool,
}

impl Writer {
    pub(super) fn new(files: Arc<Files>, queue: Arc<WriteQueue>, budget: u64) -> Self {
        let high = Amount { bytes: budget - budget / 8, files: MAX_FILES };
        let low = high.minus(Amount { bytes: budget / 32, files: MAX_FILES / 32 });
        let (step, written, has_failed) = (budget / 64, 0, false);
        let mut writer = Self { files, queue, step, high, low, scan: None, written, has_failed };
        writer.begin_scan();
        writer
    }

    pub(super) fn run(mut self) {
        loop {
            // without the scan the budget might not hold
            if self.scan.is_some() && self.written >= self.step {
                if self.queue.is_closed() {
                    break;
                }
            } else {
                let Some(next) = self.queue.next(self.scan.is_none()) else { break };
                if let Some(put) = next {
                    let range = put.range;
                    self.write(put);
                    self.queue.done(range);
                }
            }
            self.scan_some();
        }
        // first the files: the thread that waits for the end may remove the folder
        let queue = Arc::clone(&self.queue);
        drop(self);
        queue.change(|state| state.ended = true);
    }

    fn begin_scan(&mut self) {
        self.scan = Some((0, self.files.no_others_since()));
    }

    fn scan_some(&mut self) {
        const SOME: usize = 16;
        let Some((next, alone_since)) = self.scan else { return };
        let end = SHARDS.min(next + SOME);
        for shard in next..end {
            self.files.list(shard, true);
        }
        self.scan = Some((end, alone_since));
        if end == SHARDS {
            *self.files.alone_since.lock() = alone_since;
            self.scan = None;
            self.written = 0;
            self.make_room(Amount::default());
        }
    }

    fn write(&mut self, Put { key, range, bytes }: Put) {
        if self.files.index.cover(key.digest, range.offset, range.end()).is_some() {
            return;
        }
        if !self.make_room(Amount::one(&range)) {
            return self.turn_off(&io::Error::other("it is full, and none of its files can be removed"));
        }
        let own = self.files.own().map_err(io::Error::from);
        if let Err(error) = own.and_then(|own| own.write(&self.files.folder, &key, range, (*bytes).as_ref())) {
            return self.turn_off(&error);
        }
        if std::mem::take(&mut self.has_failed) {
            log::info!("the disk cache {} is written to again", self.files.folder.path.display());
        }
        self.files.index.insert(range, self.files.index.clock.now());
        self.files.statistics.lock().written_bytes += u64::from(range.length);
        self.written = self.written.saturating_add(range.weight());
        if self.scan.is_none() && self.written >= self.step {
            self.written = 0;
            if self.files.may_have_unknown_files() {
                self.begin_scan();
            }
        }
    }

    fn turn_off(&mut self, error: &io::Error) {
        self.has_failed = true;
        let dropped = self.queue.turn_off(OFF);
        self.files.statistics.lock().dropped += dropped as u64 + 1;
        warn_seldom(&format!(
            "cannot write to the disk cache {}: {error}; it is read, and written to again when that succeeds",
            self.files.folder.path.display()
        ));
    }

    /// Evicts the least recently used files until `added` fits. Returns whether it does.
    fn make_room(&self, added: Amount) -> bool {
        let index = &self.files.index;
        let mut failed = 0;
        loop {
            let wanted = index.amount().plus(added);
            if self.high.covers(wanted) {
                return true;
            }
            let excess = wanted.minus(self.low);
            let tick = index.tick_of_excess(excess);
            let mut evicted = Amount::default();
            for shard in 0..SHARDS {
                failed += self.evict(index.used(shard, |used| used < tick), &mut evicted, None);
            }
            for shard in 0..SHARDS {
                failed += self.evict(index.used(shard, |used| used == tick), &mut evicted, Some(excess));
            }
            if self.queue.is_closed() {
                return true;
            }
            // others have to go in place of those that cannot be removed
            if failed >= index.amount().files {
                return false;
            }
        }
    }

    /// Evicts files, until they amount to `enough`. Returns how many could not be removed.
    fn evict(&self, ranges: Vec<StoredRange>, evicted: &mut Amount, enough: Option<Amount>) -> u64 {
        let (index, mut failed) = (&self.files.index, 0);
        for range in ranges {
            if enough.is_some_and(|enough| evicted.covers(enough)) || self.queue.is_closed() {
                break;
            }
            if let Err(error) = self.files.folder.remove(range) {
                failed += 1;
                // it is tried again when all others have had their turn
                index.touch(range, index.clock.now());
                warn_seldom(&format!(
                    "cannot remove a file of the disk cache {}: {error}; others are removed in its place",
                    self.files.folder.path.display()
                ));
                continue;
            }
            index.remove(range);
            self.files.statistics.lock().evicted += 1;
            *evicted = evicted.plus(Amount::one(&range));
        }
        failed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    impl WriteQueue {
        /// Waits until nothing is queued or being written; `false` if that takes longer than `limit`.
        pub(in crate::source::disk_cache) fn wait_until_empty(&self, limit: Duration) -> bool {
            self.wait_for(limit, |state| state.known.is_empty())
        }
    }

    fn push(queue: &WriteQueue, offset: u64, size: usize) -> bool {
        let key = CacheKey::new("s", "d", "o", "v");
        let range = StoredRange { object: 1, offset, length: size as u32 };
        queue.push(Put { key, range, bytes: Box::new([0_u8]) })
    }

    fn next(queue: &WriteQueue) -> Option<StoredRange> {
        queue.next(false).flatten().map(|put| put.range)
    }

    #[test]
    fn the_queue_is_bounded_and_no_range_is_in_it_twice() {
        let queue = WriteQueue::default();
        assert!(push(&queue, 0, 2 * MAX_QUEUED), "one in any case");
        assert!(!push(&queue, 1, 1));
        assert!(push(&queue, 0, 2 * MAX_QUEUED), "it is queued");
        let first = next(&queue).unwrap();
        assert!(push(&queue, 0, 2 * MAX_QUEUED), "it is being written");
        assert_eq!(next(&queue), None);
        assert!(!queue.wait_until_empty(Duration::from_millis(1)));
        queue.done(first);
        assert!(queue.wait_until_empty(Duration::ZERO));
        assert!(push(&queue, 0, MAX_QUEUED));
        assert!(!push(&queue, 1, 1));
    }

    #[test]
    fn while_it_is_off_everything_is_dropped() {
        let queue = WriteQueue::default();
        assert!(push(&queue, 0, 1));
        assert_eq!(queue.turn_off(Duration::from_secs(3600)), 1);
        assert_eq!((push(&queue, 0, 1), next(&queue)), (false, None));
        queue.turn_off(Duration::ZERO);
        assert!(push(&queue, 0, 1));
        queue.close();
        assert!(!push(&queue, 1, 1));
        assert!(next(&queue).is_some(), "what is queued is written before the end");
        assert!(queue.next(true).is_none());
    }
}
