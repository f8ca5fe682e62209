//! A pool of the scratch memory of wavelet decoders: memory is used again while chunks are being decoded.

use crate::sync::{Mutex, MutexGuard};

use super::wavelet::Scratch;

/// The most bytes that the pool keeps while no decoder is running.
const KEPT: usize = 16 << 20;

static POOL: Mutex<Pool> = Mutex::new(Pool { in_use: 0, spare: Vec::new(), bytes: 0 });

/// The scratch memories that no decoder uses, and the number of running decoders. There are never more scratch memories
/// than decoders have run at a time.
struct Pool {
    in_use: usize,
    spare: Vec<(Scratch, usize)>,
    bytes: usize,
}

fn pool() -> MutexGuard<'static, Pool> {
    POOL.lock()
}

/// Calls `decode` with scratch memory from the pool, which it grows to at most `bytes`.
pub(super) fn with<T>(bytes: usize, decode: impl FnOnce(&mut Scratch) -> T) -> T {
    let (scratch, had) = {
        let mut pool = pool();
        pool.in_use += 1;
        let (scratch, had) = pool.spare.pop().unwrap_or_default();
        pool.bytes -= had;
        (scratch, had)
    };
    let mut lent = Lent { scratch, bytes: bytes.max(had) };
    decode(&mut lent.scratch)
}

/// Scratch memory in use. It returns to the pool also when the decoder panics.
struct Lent {
    scratch: Scratch,
    bytes: usize,
}

impl Drop for Lent {
    fn drop(&mut self) {
        let (scratch, mut dropped) = (std::mem::take(&mut self.scratch), Vec::new());
        let mut pool = pool();
        pool.in_use -= 1;
        pool.bytes += self.bytes;
        pool.spare.push((scratch, self.bytes));
        if pool.in_use == 0 {
            while pool.bytes > KEPT
                && let Some((scratch, bytes)) = pool.spare.pop()
            {
                pool.bytes -= bytes;
                dropped.push(scratch);
            }
        }
        // memory is freed without the lock
        drop(pool);
        drop(dropped);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_memory_is_freed_when_no_decoder_runs() {
        with(KEPT, |_| with(KEPT, |_| assert!(pool().in_use >= 2)));
        let pool = pool();
        assert!(pool.in_use > 0 || pool.bytes <= KEPT);
        assert_eq!(pool.bytes, pool.spare.iter().map(|(_, bytes)| bytes).sum::<usize>());
    }
}
