//! An object pool for the scratch memory of wavelet decoders, so that each chunk does not allocate its own.

use crate::sync::{Mutex, MutexGuard};

use super::wavelet::Scratch;

/// The most bytes that the pool keeps while no decoder is running.
const MAX_IDLE_BYTES: usize = 40 << 20;

static POOL: Mutex<Pool> = Mutex::new(Pool { in_use: 0, spare: Vec::new(), bytes: 0 });

/// The pool. It never holds more scratch memories than decoders have run at a time.
struct Pool {
    /// Running decoders.
    in_use: usize,
    /// Unused scratch memories, and the bytes of each.
    spare: Vec<(Scratch, usize)>,
    /// Bytes of all unused scratch memories.
    bytes: usize,
}

fn pool() -> MutexGuard<'static, Pool> {
    POOL.lock()
}

/// Calls `decode` with scratch memory from the pool, which it grows to at most `bytes`.
pub(super) fn with<T>(bytes: usize, decode: impl FnOnce(&mut Scratch) -> T) -> T {
    let (scratch, size) = {
        let mut pool = pool();
        pool.in_use += 1;
        let (scratch, size) = pool.spare.pop().unwrap_or_default();
        pool.bytes -= size;
        (scratch, size)
    };
    let mut in_use = ScratchInUse { scratch, bytes: bytes.max(size) };
    decode(&mut in_use.scratch)
}

/// Gives up the scratch memory that no decoder uses.
pub(super) fn release_idle() {
    let mut pool = pool();
    let dropped = std::mem::take(&mut pool.spare);
    pool.bytes = 0;
    drop(pool);
    drop(dropped);
}

/// Scratch memory in use. It returns to the pool even if the decoder panics.
struct ScratchInUse {
    scratch: Scratch,
    bytes: usize,
}

impl Drop for ScratchInUse {
    fn drop(&mut self) {
        let (scratch, mut dropped) = (std::mem::take(&mut self.scratch), Vec::new());
        let mut pool = pool();
        pool.in_use -= 1;
        pool.bytes += self.bytes;
        pool.spare.push((scratch, self.bytes));
        if pool.in_use == 0 {
            while pool.bytes > MAX_IDLE_BYTES
                && let Some((scratch, bytes)) = pool.spare.pop()
            {
                pool.bytes -= bytes;
                dropped.push(scratch);
            }
        }
        // memory is freed after the lock is released
        drop(pool);
        drop(dropped);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_memory_is_freed_when_no_decoder_runs() {
        with(1000, |_| ());
        release_idle();
        with(MAX_IDLE_BYTES, |_| with(MAX_IDLE_BYTES, |_| assert!(pool().in_use >= 2)));
        let pool = pool();
        assert!(pool.in_use > 0 || pool.bytes <= MAX_IDLE_BYTES);
        assert_eq!(pool.bytes, pool.spare.iter().map(|(_, bytes)| bytes).sum::<usize>());
    }
}
