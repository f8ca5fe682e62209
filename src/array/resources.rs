//! What all reads share: the cache, the workers, the memory, and the gate before the decoders.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::cache::BrickCache;
use crate::counters::Counters;
use crate::memory::BufferPool;
use crate::pool::{Bulkhead, Pool};
use crate::sync::atomic::{AtomicBool, Ordering};
use crate::sync::{Condvar, Mutex, thread};

/// The bulkhead of prefaulting: its own, so that it waits for no source.
const PREFAULTING: u64 = u64::MAX - 1;
/// How long a thread waits before the gate while others pass it.
const PATIENCE: Duration = Duration::from_millis(50);
/// Nobody decodes if no brick was decoded for this long.
const QUIET: Duration = Duration::from_millis(3);

/// The cache, the workers and the memory that all reads of the process share.
pub(super) struct Resources {
    pub(super) cache: BrickCache,
    pub(super) gate: DecodeGate,
    pub(super) pool: Arc<Pool>,
    pub(super) buffers: Arc<BufferPool>,
    pub(super) counters: Arc<Counters>,
    /// A worker makes memory for the next bricks.
    pub(super) prefaulting: AtomicBool,
}

impl Resources {
    /// Has a worker make the pages of the next bricks, within the room that the cache has, once nobody has decoded for
    /// a while, and for as long as nobody does.
    pub(super) fn prefault(self: &Arc<Self>) {
        let wants = self.buffers.wants_prefaulted(self.cache.room());
        if !wants || self.prefaulting.swap(true, Ordering::Relaxed) {
            return;
        }
        let job = Prefaulting(Arc::clone(self));
        self.pool.submit(Bulkhead::new(PREFAULTING), move || job.run());
    }
}

/// The job that makes pages; ends when it is dropped, also by a panic.
struct Prefaulting(Arc<Resources>);

impl Prefaulting {
    fn run(&self) {
        let Self(resources) = self;
        let decoded = || resources.counters.bricks_decoded.get();
        // before the first brick of the process there is nobody to wait for
        let mut before = 0;
        while decoded() != before {
            before = decoded();
            thread::sleep(QUIET);
        }
        let is_idle = || resources.gate.admitted().0 == 0 && decoded() == before;
        while is_idle() && resources.buffers.prefault_brick(resources.cache.room()) {
            // a client that was woken on this processor would wait until the kernel takes it away, which takes 3 ms
            thread::yield_now();
        }
    }
}

impl Drop for Prefaulting {
    fn drop(&mut self) {
        self.0.prefaulting.store(false, Ordering::Relaxed);
    }
}

/// A counting semaphore for decoders with a second budget, of bytes. One decoder is always admitted, however much it
/// needs. Whoever comes when there is room is admitted, since waking another thread takes longer than to decode a small
/// brick. While a thread that has waited for [`PATIENCE`] does not fit, nobody else is: otherwise it might starve.
pub(super) struct DecodeGate {
    admitted: Mutex<Admitted>,
    released: Condvar,
    /// The greatest number of decoders at a time, and of bytes that they need together.
    pub(super) decoders: usize,
    budget: usize,
}

#[derive(Default)]
struct Admitted {
    decoders: usize,
    bytes: usize,
    /// Threads that wait for admission.
    waiting: usize,
    /// One of them is admitted before all others.
    is_reserved: bool,
}

impl DecodeGate {
    /// Creates a gate that admits at most `decoders` decoders at a time, which need no more than `budget` bytes
    /// together.
    pub(super) fn new(decoders: usize, budget: usize) -> Self {
        Self { admitted: Mutex::default(), released: Condvar::new(), decoders: decoders.max(1), budget }
    }

    /// Returns the number of decoders that are admitted now, and the bytes that they need.
    pub(super) fn admitted(&self) -> (usize, usize) {
        let admitted = self.admitted.lock();
        (admitted.decoders, admitted.bytes)
    }

    /// Waits for admission, then runs `decode`, which needs `bytes` of memory.
    pub(super) fn admit<T>(&self, bytes: usize, decode: impl FnOnce() -> T) -> T {
        let mut admitted = self.admitted.lock();
        let (mut since, mut is_first) = (None, false);
        loop {
            let fits = admitted.decoders < self.decoders && admitted.bytes.saturating_add(bytes) <= self.budget;
            if (is_first || !admitted.is_reserved) && (fits || admitted.decoders == 0) {
                break;
            }
            let since = *since.get_or_insert_with(Instant::now);
            admitted.waiting += 1;
            let waited = self.released.wait_for(&mut admitted, PATIENCE);
            admitted.waiting -= 1;
            if !admitted.is_reserved && (waited.timed_out() || since.elapsed() >= PATIENCE) {
                (is_first, admitted.is_reserved) = (true, true);
            }
        }
        admitted.is_reserved &= !is_first;
        admitted.decoders += 1;
        admitted.bytes = admitted.bytes.saturating_add(bytes);
        let has_waiters = admitted.waiting > 0;
        drop(admitted);
        if is_first && has_waiters {
            self.released.notify_all();
        }
        let _permit = Permit { gate: self, bytes };
        decode()
    }
}

/// One admission; dropping it releases the decoder's share, also when the decoder panics.
struct Permit<'a> {
    gate: &'a DecodeGate,
    bytes: usize,
}

impl Drop for Permit<'_> {
    fn drop(&mut self) {
        let mut admitted = self.gate.admitted.lock();
        admitted.decoders -= 1;
        admitted.bytes = admitted.bytes.saturating_sub(self.bytes);
        let has_waiters = admitted.waiting > 0;
        drop(admitted);
        // the waiters need different amounts, so any of them may be the one that fits now; without waiters the
        // notification would be a needless system call
        if has_waiters {
            self.gate.released.notify_all();
        }
    }
}

#[cfg(all(test, not(feature = "shuttle")))]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::thread;
    use std::time::Instant;

    use super::*;

    const BRICK: usize = 64 << 10;

    fn eventually(what: &str, holds: impl Fn() -> bool) {
        let begin = Instant::now();
        while !holds() {
            assert!(begin.elapsed() < Duration::from_secs(60), "{what}");
            thread::sleep(Duration::from_millis(1));
        }
    }

    #[test]
    fn pages_are_made_when_nobody_decodes_and_as_far_as_the_cache_has_room() {
        let resources = |cache: usize| {
            Arc::new(Resources {
                cache: BrickCache::new(cache),
                gate: DecodeGate::new(2, 1 << 20),
                pool: Pool::new(),
                buffers: BufferPool::for_bricks(0, 8 * BRICK),
                counters: Arc::default(),
                prefaulting: AtomicBool::new(false),
            })
        };
        let (large, small) = (resources(1 << 30), resources(5 * BRICK));
        for (resources, bricks) in [(&large, 8), (&small, 5)] {
            for _ in 0..8 {
                drop(resources.buffers.take_brick(BRICK));
            }
            resources.gate.admit(0, || {
                resources.prefault();
                eventually("the job has ended", || resources.pool.jobs() == 0);
                assert_eq!(resources.buffers.idle_bytes(), 0, "somebody decodes");
            });
            resources.prefault();
            eventually("there are pages", || resources.buffers.idle_bytes() == bricks * BRICK);
            eventually("the job has ended", || resources.pool.jobs() == 0);
            resources.prefault();
            assert_eq!(resources.pool.jobs(), 0, "there are enough");
        }
    }

    #[test]
    fn decoders_and_bytes_are_bounded_and_one_is_always_admitted() {
        let (gate, now, most) = (DecodeGate::new(3, 100), AtomicUsize::new(0), AtomicUsize::new(0));
        thread::scope(|scope| {
            for n in 0..24 {
                let (gate, now, most) = (&gate, &now, &most);
                scope.spawn(move || {
                    gate.admit(if n % 4 == 0 { 1000 } else { 50 }, || {
                        most.fetch_max(now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                        thread::yield_now();
                        now.fetch_sub(1, Ordering::SeqCst);
                    });
                });
            }
        });
        assert!(most.into_inner() <= 2);
        assert_eq!(now.into_inner(), 0);
    }

    #[test]
    fn one_that_needs_much_is_admitted_although_others_come_without_end() {
        const LONGEST: Duration = Duration::from_secs(30);
        let (gate, is_done, turns) = (DecodeGate::new(2, 100), AtomicBool::new(false), AtomicUsize::new(0));
        let began = Instant::now();
        let is_over = || is_done.load(Ordering::SeqCst) || began.elapsed() > LONGEST;
        thread::scope(|scope| {
            // two that take turns: each goes when the other has come, or neither would let anybody in
            let small = || {
                while !is_over() {
                    gate.admit(10, || {
                        let turn = turns.fetch_add(1, Ordering::SeqCst) + 1;
                        let is_alone = || turns.load(Ordering::SeqCst) == turn && gate.admitted.lock().waiting < 2;
                        while is_alone() && !is_over() {
                            thread::yield_now();
                        }
                    });
                }
            };
            scope.spawn(small);
            scope.spawn(small);
            eventually("they take turns", || turns.load(Ordering::SeqCst) > 9);
            gate.admit(1000, || assert_eq!(gate.admitted(), (1, 1000)));
            is_done.store(true, Ordering::SeqCst);
        });
        assert!(began.elapsed() < LONGEST, "it waited until nobody else came");
        assert_eq!(gate.admitted(), (0, 0));
    }
}
