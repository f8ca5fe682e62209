//! A semaphore for decoders, which bounds their number and the memory that they need.

use crate::sync::{Condvar, Mutex};

/// A counting semaphore with a second budget, of bytes. One decoder is always admitted, however much it needs.
pub(crate) struct DecodeGate {
    admitted: Mutex<Admitted>,
    released: Condvar,
    decoders: usize,
    budget: usize,
}

#[derive(Default)]
struct Admitted {
    decoders: usize,
    bytes: usize,
    /// Threads that wait for admission.
    waiting: usize,
}

impl DecodeGate {
    /// Creates a gate that admits at most `decoders` decoders at a time, which need no more than `budget` bytes
    /// together.
    pub(crate) fn new(decoders: usize, budget: usize) -> Self {
        Self { admitted: Mutex::default(), released: Condvar::new(), decoders: decoders.max(1), budget }
    }

    /// The greatest number of decoders at a time.
    pub(crate) fn decoders(&self) -> usize {
        self.decoders
    }

    /// Returns the number of decoders that are admitted now, and the bytes that they need.
    pub(crate) fn admitted(&self) -> (usize, usize) {
        let admitted = self.admitted.lock();
        (admitted.decoders, admitted.bytes)
    }

    /// Waits for admission, then runs `decode`, which needs `bytes` of memory.
    pub(crate) fn admit<T>(&self, bytes: usize, decode: impl FnOnce() -> T) -> T {
        let mut admitted = self.admitted.lock();
        while admitted.decoders > 0
            && (admitted.decoders >= self.decoders || admitted.bytes.saturating_add(bytes) > self.budget)
        {
            admitted.waiting += 1;
            self.released.wait(&mut admitted);
            admitted.waiting -= 1;
        }
        admitted.decoders += 1;
        admitted.bytes = admitted.bytes.saturating_add(bytes);
        drop(admitted);
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

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::thread;

    use super::*;

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
}
