//! Decoded bricks: held within a bound of bytes, each decoded once however many wait for it.
//!
//! Constant and plain bricks never come here. A reader holds the brick that it copies from, so that it survives being
//! dropped from the cache meanwhile. What failed is not kept: the next reader tries again.

use std::collections::HashMap;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use crate::counters::Counters;
use crate::format::FormatError;
use crate::memory::{Buffer, Weighted};
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

/// A brick, or why there is none: the same for all who wait for it.
pub type Outcome = Result<Arc<DecodedBrick>, FormatError>;

/// The decoded bricks of all datasets.
pub struct BrickCache {
    state: Mutex<State>,
    bound: usize,
    counters: Arc<Counters>,
}

struct State {
    held: Weighted<BrickKey, Arc<DecodedBrick>>,
    flights: HashMap<BrickKey, Arc<Flight>>,
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
        let state = State { held: Weighted::new(bound), flights: HashMap::new() };
        Self { state: Mutex::new(state), bound, counters }
    }

    /// The brick, if it is held. Never waits for a decoder.
    #[must_use]
    pub fn get(&self, key: BrickKey) -> Option<Arc<DecodedBrick>> {
        let brick = self.lock().held.get(&key)?;
        self.counters.cache_hits.add(1);
        Some(brick)
    }

    /// The brick: held, awaited from another thread that decodes it, or decoded here by `decode`, which runs without any
    /// lock. What is decoded here is kept if `keep` says so.
    ///
    /// # Errors
    /// That of `decode`, whoever ran it.
    pub fn get_or_decode(&self, key: BrickKey, keep: bool, decode: impl FnOnce() -> Outcome) -> Outcome {
        let mut state = self.lock();
        if let Some(brick) = state.held.get(&key) {
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
        let mut landing = Landing { cache: self, key, keep, flight, outcome: None };
        let outcome = decode();
        landing.outcome = Some(outcome.clone());
        outcome
    }

    /// The brick, if it is held; this is not a use that counts.
    #[must_use]
    pub fn peek(&self, key: BrickKey) -> Option<Arc<DecodedBrick>> {
        self.lock().held.peek(&key)
    }

    /// Makes those of the bricks that are held the most recently used ones.
    pub fn touch(&self, keys: impl Iterator<Item = BrickKey>) {
        let mut state = self.lock();
        for key in keys {
            state.held.get(&key);
        }
    }

    /// Bytes that may be held, lent ones included.
    #[must_use]
    pub fn bound(&self) -> usize {
        self.bound
    }

    /// Lends bytes of the bound to somebody else, all in all so many.
    pub fn lend(&self, bytes: usize) {
        let dropped = self.lock().held.set_bound(self.bound.saturating_sub(bytes));
        drop(dropped);
    }

    /// Bytes held.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.lock().held.weight()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Flight {
    fn wait(&self) -> Outcome {
        let mut outcome = self.outcome.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            match &*outcome {
                Some(known) => return known.clone(),
                None => outcome = self.landed.wait(outcome).unwrap_or_else(PoisonError::into_inner),
            }
        }
    }
}

/// Ends a flight when it goes out of scope, also when the decoder panics: nobody waits for ever.
struct Landing<'a> {
    cache: &'a BrickCache,
    key: BrickKey,
    keep: bool,
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
            Ok(brick) if self.keep => state.held.put(self.key, Arc::clone(brick), brick.bytes.weight()),
            _ => Vec::new(),
        };
        drop(state);
        drop(dropped);
        *self.flight.outcome.lock().unwrap_or_else(PoisonError::into_inner) = Some(outcome);
        self.flight.landed.notify_all();
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
    use crate::memory::Buffers;

    fn brick(bytes: usize) -> Outcome {
        let layout = Layout::c_order([0].into(), [bytes as u64].into(), [bytes as u64].into(), 1);
        Ok(Arc::new(DecodedBrick { bytes: Buffers::new(0).take(bytes).into(), layout }))
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
                    let got = cache.get_or_decode(key, true, || {
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
        assert!(cache.get(key).is_some());
    }

    #[test]
    fn a_failure_reaches_everybody_and_is_not_kept() {
        let cache = cache(1 << 20);
        let key = (ArrayId::next(), 0);
        let bad = || Err(FormatError::Damaged("bad".into()));
        assert_eq!(cache.get_or_decode(key, true, bad).err(), Some(FormatError::Damaged("bad".into())));
        assert!(cache.get_or_decode(key, true, || brick(10)).is_ok());
        let panicked =
            catch_unwind(AssertUnwindSafe(|| cache.get_or_decode((key.0, 1), true, || panic!("on purpose"))));
        assert!(panicked.is_err());
        assert!(cache.get_or_decode((key.0, 1), true, || brick(10)).is_ok());
    }

    #[test]
    fn the_bound_holds_and_a_brick_beyond_it_is_served() {
        let cache = cache(10_000);
        let array = ArrayId::next();
        for n in 0..50 {
            assert!(cache.get_or_decode((array, n), true, || brick(3000)).is_ok());
            assert!(cache.bytes() <= 10_000);
        }
        assert!(cache.get_or_decode((array, 98), false, || brick(10)).is_ok());
        assert!(cache.get((array, 98)).is_none(), "it was not to be kept");
        cache.lend(5000);
        assert!(cache.bytes() <= 5000);
        cache.lend(0);
        assert!(cache.get_or_decode((array, 99), true, || brick(20_000)).is_ok());
        assert!(cache.get((array, 99)).is_none());
        assert!(cache.get((array, 49)).is_some());
    }
}
