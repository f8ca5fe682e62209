//! The state that all reads share.

use std::sync::Arc;
use std::time::Duration;

use super::decode_gate::DecodeGate;
use crate::cache::BrickCache;
use crate::counters::Counters;
use crate::memory::BufferPool;
use crate::pool::{Bulkhead, Pool};
use crate::sync::atomic::{AtomicBool, Ordering};
use crate::sync::thread;

/// Its own bulkhead, so that it waits for no source.
const PREFAULTING: u64 = u64::MAX - 1;
/// Nobody decodes if no brick was decoded for this long.
const QUIET: Duration = Duration::from_millis(3);

/// The cache, the workers and the memory that all reads of the process share.
pub(crate) struct Resources {
    /// Decoded bricks.
    pub cache: BrickCache,
    /// Bounds the number of decoders and their memory.
    pub gate: DecodeGate,
    /// Worker threads.
    pub pool: Arc<Pool>,
    /// Recycles buffers.
    pub buffers: Arc<BufferPool>,
    /// The counters of status.json.
    pub counters: Arc<Counters>,
    /// A worker makes memory for the next bricks.
    pub prefaulting: AtomicBool,
}

impl Resources {
    /// Has a worker make the pages of the next bricks, within the room that the cache has, once nobody has decoded for a
    /// while, and for as long as nobody does.
    pub(crate) fn prefault(self: &Arc<Self>) {
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

#[cfg(all(test, not(feature = "shuttle")))]
mod tests {
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
                assert_eq!(resources.buffers.prefaulted_bytes(), 0, "somebody decodes");
            });
            resources.prefault();
            eventually("there are pages", || resources.buffers.prefaulted_bytes() == bricks * BRICK);
            eventually("the job has ended", || resources.pool.jobs() == 0);
            resources.prefault();
            assert_eq!(resources.pool.jobs(), 0, "there are enough");
        }
    }
}
