//! The thread that writes, evicts and scans.
//!
//! The budget B holds for all processes that share a folder: each knows the sum of all files but for what others have
//! written since it last looked, and keeps it below 7/8 B. It looks again (lists all folders) whenever it has itself
//! written B/64, unless it is alone. So others may have written B/64 each, and as much again during the look: five
//! processes never exceed B, and each further one adds B/32 at most. That is as long as ranges are small beside B/64;
//! one that takes more than B/16 is never written.

use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use super::files::Files;
use super::index::Amount;
use super::queue::{Next, Put, WriteQueue};
use super::stored_file;
use super::stored_range::{SHARDS, StoredRange};
use crate::log_limit::warn_seldom;

/// The most files; their index takes 24 to 27 MiB.
const MOST_FILES: u64 = 1 << 20;

/// How long nothing is written after a failure.
const OFF: Duration = Duration::from_secs(60);

/// The thread that writes.
pub(crate) struct Writer {
    files: Arc<Files>,
    queue: Arc<WriteQueue>,
    limits: Limits,
    scan: Option<Scan>,
    /// Bytes that were written since the last scan.
    written: u64,
    has_failed: bool,
}

/// What follows from the budget.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    budget: u64,
}

impl Limits {
    pub(crate) fn of(budget: u64) -> Self {
        Self { budget }
    }

    /// The most that a range may take.
    pub(crate) fn heaviest(self) -> u64 {
        self.budget / 16
    }

    /// What is written between two scans.
    fn step(self) -> u64 {
        self.budget / 64
    }

    /// What is there at most.
    fn high(self) -> Amount {
        Amount { bytes: self.budget - self.budget / 8, files: MOST_FILES }
    }

    /// What is left when files had to go.
    fn low(self) -> Amount {
        let high = self.high();
        Amount { bytes: high.bytes - self.budget / 32, files: high.files - high.files / 32 }
    }
}

/// A scan that is under way.
struct Scan {
    /// The next folder.
    next: usize,
    /// Others that are there, and when they last came or went.
    others: Option<((i64, i64), bool)>,
}

impl Writer {
    pub(crate) fn new(files: Arc<Files>, queue: Arc<WriteQueue>, limits: Limits) -> Self {
        let mut writer = Self { files, queue, limits, scan: None, written: 0, has_failed: false };
        writer.begin_scan();
        writer
    }

    /// Works until the queue is closed.
    pub(crate) fn run(mut self) {
        loop {
            if self.scan.is_some() && self.written >= self.limits.step() {
                // without it the budget might not hold
                if self.queue.is_closed() {
                    break;
                }
                self.scan_some();
                continue;
            }
            match self.queue.next(self.scan.is_none()) {
                Next::Write(put) => {
                    let size = (*put.bytes).as_ref().len();
                    let range = put.range;
                    self.write(put);
                    self.queue.done(range, size);
                    self.scan_some();
                }
                Next::Nothing => self.scan_some(),
                Next::End => break,
            }
        }
        // first the files: whoever waits for the end may remove the folder
        let queue = Arc::clone(&self.queue);
        drop(self);
        queue.end();
    }

    fn begin_scan(&mut self) {
        self.scan = Some(Scan { next: 0, others: self.files.own.others().ok() });
    }

    /// Scans a few folders, if a scan is under way.
    fn scan_some(&mut self) {
        const SOME: usize = 16;
        let Some(scan) = &mut self.scan else { return };
        let end = SHARDS.min(scan.next + SOME);
        (scan.next..end).for_each(|shard| self.files.scan(shard));
        scan.next = end;
        if end == SHARDS {
            self.files.scanned(scan.others);
            self.scan = None;
            self.written = 0;
            self.make_room(Amount::default());
        }
    }

    fn write(&mut self, put: Put) {
        let Put { object, range, bytes } = put;
        let bytes = (*bytes).as_ref();
        if self.files.index.cover(object.digest(), range.offset, range.end()).is_some() {
            return;
        }
        if !self.make_room(Amount { bytes: range.weight(), files: 1 }) {
            return self.turn_off(&io::Error::other("it is full, and none of its files can be removed"));
        }
        let name = self.files.own.new_name();
        match stored_file::write(&self.files.folder, &self.files.own, &name, &object, range, bytes) {
            Ok(()) => self.wrote(range),
            Err(error) => self.turn_off(&error),
        }
    }

    fn wrote(&mut self, range: StoredRange) {
        if std::mem::take(&mut self.has_failed) {
            log::info!("the disk cache {} is written to again", self.files.folder.path().display());
        }
        self.files.index.insert(range, self.files.clock.now());
        self.files.counts.written_bytes.fetch_add(u64::from(range.length), Relaxed);
        self.written = self.written.saturating_add(range.weight());
        if self.scan.is_none() && self.written >= self.limits.step() {
            self.written = 0;
            if self.files.may_have_unknown_files() {
                self.begin_scan();
            }
        }
    }

    fn turn_off(&mut self, error: &io::Error) {
        self.has_failed = true;
        let dropped = self.queue.turn_off(OFF);
        self.files.counts.dropped.fetch_add(dropped as u64 + 1, Relaxed);
        warn_seldom(&format!(
            "cannot write to the disk cache {}: {error}; it is read, and written to again when that succeeds",
            self.files.folder.path().display()
        ));
    }

    /// Evicts what was not used for the longest time, until `added` fits. Returns whether it does.
    fn make_room(&self, added: Amount) -> bool {
        let index = &self.files.index;
        let mut failed = 0;
        // where files of a round could not be removed, others have to go in their place
        while let Some(excess) = index.excess(added, self.limits.high(), self.limits.low()) {
            let tick = index.tick_of_excess(excess);
            let mut evicted = Amount::default();
            (0..SHARDS).for_each(|shard| {
                failed += self.evict(index.used(shard, |used| used < tick), &mut evicted, None);
            });
            for shard in 0..SHARDS {
                failed += self.evict(index.used(shard, |used| used == tick), &mut evicted, Some(excess));
            }
            if self.queue.is_closed() {
                break;
            }
            if failed >= index.amount().files {
                return false;
            }
        }
        true
    }

    /// Evicts files, until they amount to `enough`. Returns how many could not be removed.
    fn evict(&self, ranges: Vec<StoredRange>, evicted: &mut Amount, enough: Option<Amount>) -> u64 {
        let mut failed = 0;
        for range in ranges {
            if enough.is_some_and(|enough| evicted.covers(enough)) || self.queue.is_closed() {
                break;
            }
            match self.files.folder.remove(range) {
                Ok(()) => {
                    self.files.index.remove(range);
                    self.files.counts.evicted.fetch_add(1, Relaxed);
                    evicted.add(&range);
                }
                Err(error) => {
                    failed += 1;
                    // it is tried again when all others have had their turn
                    self.files.index.touch(range, self.files.clock.now());
                    warn_seldom(&format!(
                        "cannot remove a file of the disk cache {}: {error}; others are removed in its place",
                        self.files.folder.path().display()
                    ));
                }
            }
        }
        failed
    }
}
