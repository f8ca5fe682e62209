//! Decoded bricks: held within a bound of bytes, each decoded once however many wait for it.
//!
//! Constant and plain bricks never come here. A reader holds the brick that it copies from, so that it survives being
//! dropped from the cache meanwhile. What failed is not kept: the next reader tries again.
//!
//! The bricks that scans go through have a part of the cache for themselves, within which the least recently used ones go first as
//! well: neither do readers here and there throw out a layer of bricks in the middle of a scan, nor does a scan throw out
//! everything that these use. Whoever asks finds the bricks of both parts.

use crate::sync::{Condvar, Mutex, MutexGuard};
use std::collections::HashMap;
use std::sync::Arc;

use crate::counters::Counters;
use crate::format::FormatError;
use crate::memory::{Buffer, LruByWeight};
use crate::volume::{ArrayId, Layout};

/// The samples of one brick, decoded.
pub struct DecodedBrick {
    /// The bytes.
    pub bytes: Arc<Buffer>,
    /// Where the samples stand in them.
    pub layout: Layout,
}

impl DecodedBrick {
    /// The same bytes with another layout.
    #[must_use]
    pub fn seen(&self, layout: Layout) -> Self {
        Self { bytes: Arc::clone(&self.bytes), layout }
    }
}

/// Which brick of which array.
pub type BrickKey = (ArrayId, u64);

/// A brick that is looked for, and what was found.
pub type Sought = (BrickKey, Option<Arc<DecodedBrick>>);

/// A brick, or why there is none: the same for all who wait for it.
pub type Outcome = Result<Arc<DecodedBrick>, FormatError>;

/// The decoded bricks of all datasets.
pub struct BrickCache {
    state: Mutex<State>,
    bound: usize,
    counters: Arc<Counters>,
}

struct State {
    held: LruByWeight<BrickKey, Arc<DecodedBrick>>,
    /// The bricks of scans.
    scanned: LruByWeight<BrickKey, Arc<DecodedBrick>>,
    /// What scans have passed drives out nothing that others use.
    modest: bool,
    flights: HashMap<BrickKey, Arc<Flight>>,
}

/// What is to be done with a brick that has been decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kept {
    /// It is not kept.
    No,
    /// It is kept for all readers.
    ForAll,
    /// It is kept for a scan.
    ForScan,
}

/// What scans get of the cache.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Loan {
    /// Bytes that are used elsewhere.
    pub elsewhere: usize,
    /// Bytes for bricks.
    pub bricks: usize,
    /// Bricks that a scan has passed drive out nothing that others use.
    pub modest: bool,
}

type Dropped = Vec<(BrickKey, Arc<DecodedBrick>)>;

impl State {
    /// The brick, which is now the most recently used.
    fn get(&mut self, key: &BrickKey) -> Option<Arc<DecodedBrick>> {
        self.scanned.get(key).or_else(|| self.held.get(key))
    }

    fn put(&mut self, key: BrickKey, brick: Arc<DecodedBrick>, kept: Kept) -> Dropped {
        let bytes = brick.bytes.capacity();
        match kept {
            Kept::No => vec![(key, brick)],
            Kept::ForAll => self.held.insert(key, brick, bytes),
            Kept::ForScan => {
                let passed = self.scanned.insert(key, brick, bytes);
                self.pass(passed)
            }
        }
    }

    /// What was kept for a scan may stay as one brick among others.
    fn pass(&mut self, bricks: Dropped) -> Dropped {
        let mut dropped = Vec::new();
        for (key, brick) in bricks {
            let bytes = brick.bytes.capacity();
            dropped.extend(if self.modest {
                self.held.insert_least_recent(key, brick, bytes)
            } else {
                self.held.insert(key, brick, bytes)
            });
        }
        dropped
    }
}

/// A brick that somebody decodes, and others wait for.
#[derive(Default)]
struct Flight {
    outcome: Mutex<Option<Outcome>>,
    landed: Condvar,
}

impl BrickCache {
    /// A cache of at most `bound` bytes.
    #[must_use]
    pub fn new(bound: usize, counters: Arc<Counters>) -> Self {
        let (held, scanned) = (LruByWeight::new(bound), LruByWeight::new(0));
        let state = State { held, scanned, modest: false, flights: HashMap::new() };
        Self { state: Mutex::new(state), bound, counters }
    }

    /// Looks for many bricks under one lock. Never waits for a decoder.
    pub fn get_many(&self, bricks: &mut [Sought]) {
        if bricks.is_empty() {
            return;
        }
        let mut state = self.lock();
        for (key, brick) in bricks.iter_mut() {
            *brick = state.get(key);
        }
        drop(state);
        self.counters.cache_hits.add(bricks.iter().filter(|(_, brick)| brick.is_some()).count() as u64);
    }

    /// The brick: held, awaited from another thread that decodes it, or decoded here by `decode`, which runs without any
    /// lock. What is decoded here is kept as `kept` says.
    ///
    /// # Errors
    /// That of `decode`, whoever ran it.
    pub fn get_or_decode(&self, key: BrickKey, kept: Kept, decode: impl FnOnce() -> Outcome) -> Outcome {
        let mut state = self.lock();
        if let Some(brick) = state.get(&key) {
            drop(state);
            self.counters.cache_hits.add(1);
            return Ok(brick);
        }
        self.counters.cache_misses.add(1);
        if let Some(flight) = state.flights.get(&key).cloned() {
            drop(state);
            return flight.wait();
        }
        let flight = Arc::new(Flight::default());
        state.flights.insert(key, Arc::clone(&flight));
        drop(state);
        let mut landing = Landing { cache: self, key, kept, flight, outcome: None };
        let outcome = decode();
        landing.outcome = Some(outcome.clone());
        outcome
    }

    /// The brick, if it is held; this is not a use that counts.
    #[must_use]
    pub fn peek(&self, key: BrickKey) -> Option<Arc<DecodedBrick>> {
        let state = self.lock();
        state.scanned.peek(&key).or_else(|| state.held.peek(&key))
    }

    /// Drops a brick.
    pub fn forget(&self, key: BrickKey) {
        let mut state = self.lock();
        let dropped = (state.scanned.remove(&key), state.held.remove(&key));
        drop(state);
        drop(dropped);
    }

    /// Bytes that may be held, lent ones included.
    #[must_use]
    pub fn bound(&self) -> usize {
        self.bound
    }

    /// Lends part of the bound to scans, all in all so much. Those of the bricks `wanted` that are held are kept for scans from
    /// now on, and are the most recently used ones.
    pub fn lend(&self, loan: Loan, wanted: impl Iterator<Item = BrickKey>) {
        let mut state = self.lock();
        state.modest = loan.modest;
        let passed = state.scanned.set_capacity(loan.bricks);
        let mut dropped = Vec::new();
        for key in wanted {
            if state.scanned.get(&key).is_none()
                && let Some(brick) = state.held.remove(&key)
            {
                dropped.extend(state.put(key, brick, Kept::ForScan));
            }
        }
        let lent = loan.elsewhere.saturating_add(state.scanned.capacity());
        dropped.extend(state.held.set_capacity(self.bound.saturating_sub(lent)));
        dropped.extend(state.pass(passed));
        drop(state);
        drop(dropped);
    }

    /// Bricks that a scan has passed are the first to go, and the first of them before the others.
    pub fn retire(&self, keys: impl DoubleEndedIterator<Item = BrickKey>) {
        let mut state = self.lock();
        for key in keys.rev() {
            state.scanned.demote(&key);
        }
    }

    /// Bytes held.
    #[must_use]
    pub fn bytes(&self) -> usize {
        let state = self.lock();
        state.held.weight() + state.scanned.weight()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }
}

impl Flight {
    fn wait(&self) -> Outcome {
        let mut outcome = self.outcome.lock();
        loop {
            match &*outcome {
                Some(known) => return known.clone(),
                None => outcome = self.landed.wait(outcome),
            }
        }
    }
}

/// Ends a flight when it goes out of scope, also when the decoder panics: nobody waits for ever.
struct Landing<'a> {
    cache: &'a BrickCache,
    key: BrickKey,
    kept: Kept,
    flight: Arc<Flight>,
    outcome: Option<Outcome>,
}

impl Drop for Landing<'_> {
    fn drop(&mut self) {
        let outcome =
            self.outcome.take().unwrap_or_else(|| Err(FormatError::Damaged("the decoder gave up on it".into())));
        let mut state = self.cache.lock();
        state.flights.remove(&self.key);
        let dropped = match &outcome {
            Ok(brick) => state.put(self.key, Arc::clone(brick), self.kept),
            Err(_) => Vec::new(),
        };
        drop(state);
        drop(dropped);
        // nobody comes to it any more; to wake nobody would cost a call of the system all the same
        if Arc::strong_count(&self.flight) > 1 {
            *self.flight.outcome.lock() = Some(outcome);
            self.flight.landed.notify_all();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::sync::Barrier;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::thread;
    use std::time::Duration;

    use super::*;
    use crate::memory::BufferPool;

    fn brick(bytes: usize) -> Outcome {
        let layout = Layout::c_order([0].into(), [bytes as u64].into(), [bytes as u64].into(), 1);
        Ok(Arc::new(DecodedBrick { bytes: BufferPool::new(0).take(bytes).into(), layout }))
    }

    fn cache(bound: usize) -> BrickCache {
        BrickCache::new(bound, Arc::default())
    }

    #[test]
    fn a_brick_is_decoded_once_however_many_wait() {
        let cache = cache(1 << 20);
        let (decoded, start, key) = (AtomicUsize::new(0), Barrier::new(8), (ArrayId::next(), 5));
        thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    start.wait();
                    let got = cache.get_or_decode(key, Kept::ForAll, || {
                        decoded.fetch_add(1, Ordering::Relaxed);
                        thread::sleep(Duration::from_millis(50));
                        brick(1000)
                    });
                    assert_eq!(got.unwrap().bytes.len(), 1000);
                });
            }
        });
        assert_eq!(decoded.into_inner(), 1);
        assert_eq!(cache.counters.cache_hits.get() + cache.counters.cache_misses.get(), 8);
        assert!(cache.peek(key).is_some());
    }

    #[test]
    fn a_failure_reaches_everybody_and_is_not_kept() {
        let cache = cache(1 << 20);
        let key = (ArrayId::next(), 0);
        let bad = || Err(FormatError::Damaged("bad".into()));
        assert_eq!(cache.get_or_decode(key, Kept::ForAll, bad).err(), Some(FormatError::Damaged("bad".into())));
        assert!(cache.get_or_decode(key, Kept::ForAll, || brick(10)).is_ok());
        let panicked =
            catch_unwind(AssertUnwindSafe(|| cache.get_or_decode((key.0, 1), Kept::ForAll, || panic!("on purpose"))));
        assert!(panicked.is_err());
        assert!(cache.get_or_decode((key.0, 1), Kept::ForAll, || brick(10)).is_ok());
    }

    #[test]
    fn the_bound_holds_and_a_brick_beyond_it_is_served() {
        let cache = cache(10_000);
        let array = ArrayId::next();
        for n in 0..50 {
            assert!(cache.get_or_decode((array, n), Kept::ForAll, || brick(3000)).is_ok());
            assert!(cache.bytes() <= 10_000);
        }
        assert!(cache.get_or_decode((array, 98), Kept::No, || brick(10)).is_ok());
        assert!(cache.peek((array, 98)).is_none(), "it was not to be kept");
        cache.lend(Loan { elsewhere: 5000, ..Loan::default() }, std::iter::empty());
        assert!(cache.bytes() <= 5000);
        cache.lend(Loan::default(), std::iter::empty());
        assert!(cache.get_or_decode((array, 99), Kept::ForAll, || brick(20_000)).is_ok());
        assert!(cache.peek((array, 99)).is_none());
        assert!(cache.peek((array, 49)).is_some());
    }

    #[test]
    fn scans_and_others_leave_each_other_their_bricks() {
        let cache = cache(20 * 1200);
        let array = ArrayId::next();
        let read = |n: u64, kept| assert!(cache.get_or_decode((array, n), kept, || brick(1000)).is_ok());
        let held = |from: u64, to: u64| (from..to).filter(|n| cache.peek((array, *n)).is_some()).count();
        for n in 0..20 {
            read(n, Kept::ForAll);
        }
        let loan = Loan { bricks: 10 * 1200, modest: true, ..Loan::default() };
        cache.lend(loan, (0..2).map(|n| (array, n)));
        // what the scan wants is its own now; of the others the last ones are left
        assert_eq!((held(0, 2), held(2, 20)), (2, 10));
        for n in 100..150 {
            read(n, Kept::ForScan);
        }
        assert_eq!((held(2, 20), held(140, 150)), (10, 10));
        for n in 200..250 {
            read(n, Kept::ForAll);
        }
        assert_eq!((held(140, 150), held(240, 250)), (10, 10));
        cache.retire((145..150).map(|n| (array, n)));
        (300..303).for_each(|n| read(n, Kept::ForScan));
        assert_eq!((held(140, 145), held(145, 148), held(148, 150)), (5, 0, 2), "what is passed goes first");
        cache.lend(Loan::default(), std::iter::empty());
        assert_eq!((held(140, 150), held(240, 250)), (7, 10));
        assert!(cache.bytes() <= 20 * 1200);
    }
}
