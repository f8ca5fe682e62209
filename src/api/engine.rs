//! The one engine of a process: cache, workers, tables. It is made when it is first needed, and again in a forked child.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use crate::array::Reader;
use crate::counters::Counters;
use crate::memory::BufferPool;
use crate::pool::Pool;
use crate::source::IndexCache;
use crate::sync::{Mutex, PerProcess};

/// The default bound of the cache, if it is not more than a quarter of the machine's memory.
const DEFAULT_CACHE: u64 = 512 << 20;
/// Bytes of the tables of all datasets.
const INDEX_BYTES: usize = 41 << 20;
/// Bytes of idle buffers for samples that are decoded or fetched and not cached.
const IDLE_BUFFERS: usize = 4 << 20;
/// Bytes of memory that are made ready for the next bricks, and the part of the cache that they are at most.
const PREFAULTED: usize = 64 << 20;
const PREFAULTED_PART: usize = 16;

/// The bound that the caller has set, plus one; 0 for none. A child has that of its parent.
static CACHE_SIZE: AtomicU64 = AtomicU64::new(0);
static ENGINE: PerProcess<Mutex<Arc<Engine>>> = PerProcess::new();

pub(super) struct Engine {
    pub(super) reader: Arc<Reader>,
    pub(super) index: Arc<IndexCache>,
    pub(super) counters: Arc<Counters>,
}

impl Engine {
    /// Returns the engine of this process.
    pub(super) fn get() -> Arc<Self> {
        Arc::clone(&ENGINE.get_or_init(|| Mutex::new(Arc::new(Self::new(cache_size())))).lock())
    }

    fn new(cache: u64) -> Self {
        let (cache, counters) = (usize::try_from(cache).unwrap_or(usize::MAX), Arc::<Counters>::default());
        let buffers = BufferPool::for_bricks(IDLE_BUFFERS, PREFAULTED.min(cache / PREFAULTED_PART));
        let threads = thread::available_parallelism().map_or(1, usize::from);
        let reader = Reader::new(cache, threads, buffers, Pool::new(), Arc::clone(&counters));
        Self { reader, index: IndexCache::new(INDEX_BYTES), counters }
    }
}

/// Returns the most bytes of decoded bricks that this process keeps in memory.
///
/// By default 512 MiB, or a quarter of the machine's memory if that is less.
pub fn cache_size() -> u64 {
    let default = || DEFAULT_CACHE.min(memory() / 4);
    CACHE_SIZE.load(Ordering::Relaxed).checked_sub(1).unwrap_or_else(default)
}

/// Returns the bytes of the machine's memory.
#[cfg(target_os = "linux")]
fn memory() -> u64 {
    let system = rustix::system::sysinfo();
    system.totalram.saturating_mul(system.mem_unit.into())
}

/// Elsewhere it is not asked for: any machine of today has four times the default cache.
#[cfg(not(target_os = "linux"))]
fn memory() -> u64 {
    4 * DEFAULT_CACHE
}

/// Sets the most bytes of decoded bricks that this process, and children that it forks, keep in memory each.
///
/// What the cache holds is given back. Reads that are in progress keep what they use.
pub fn set_cache_size(bytes: u64) {
    crate::sync::enter();
    CACHE_SIZE.store(bytes.saturating_add(1), Ordering::Relaxed);
    if let Some(engine) = ENGINE.get() {
        let mut engine = engine.lock();
        let new = Engine { index: Arc::clone(&engine.index), ..Engine::new(bytes) };
        *engine = Arc::new(new);
    }
}
