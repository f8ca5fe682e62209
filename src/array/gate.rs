//! How many bricks are decoded at a time.

use crate::sync::{Condvar, Mutex};

/// Admits decoders: so many at a time, and no more of them than fit a budget of bytes; one is always admitted.
pub struct Gate {
    inside: Mutex<Inside>,
    left: Condvar,
    decoders: usize,
    budget: usize,
}

#[derive(Default)]
struct Inside {
    decoders: usize,
    bytes: usize,
    /// Threads that wait to be let in.
    waiting: usize,
}

impl Gate {
    /// A gate for at most `decoders` at a time that need no more than `budget` bytes together.
    #[must_use]
    pub fn new(decoders: usize, budget: usize) -> Self {
        Self { inside: Mutex::default(), left: Condvar::new(), decoders: decoders.max(1), budget }
    }

    /// How many may be inside.
    #[must_use]
    pub fn decoders(&self) -> usize {
        self.decoders
    }

    /// Runs `decode`, which needs `bytes` of memory, as soon as there is room.
    pub fn pass<T>(&self, bytes: usize, decode: impl FnOnce() -> T) -> T {
        let mut inside = self.inside.lock();
        while inside.decoders > 0
            && (inside.decoders >= self.decoders || inside.bytes.saturating_add(bytes) > self.budget)
        {
            inside.waiting += 1;
            inside = self.left.wait(inside);
            inside.waiting -= 1;
        }
        inside.decoders += 1;
        inside.bytes = inside.bytes.saturating_add(bytes);
        drop(inside);
        let _leave = Leave { gate: self, bytes };
        decode()
    }
}

struct Leave<'a> {
    gate: &'a Gate,
    bytes: usize,
}

impl Drop for Leave<'_> {
    fn drop(&mut self) {
        let mut inside = self.gate.inside.lock();
        inside.decoders -= 1;
        inside.bytes = inside.bytes.saturating_sub(self.bytes);
        let somebody = inside.waiting > 0;
        drop(inside);
        // those that wait need different amounts: any of them may be the one that fits now; to wake nobody is a call of the
        // system all the same
        if somebody {
            self.gate.left.notify_all();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::thread;

    use super::*;

    #[test]
    fn decoders_and_bytes_are_bounded_and_one_always_passes() {
        let (gate, now, most) = (Gate::new(3, 100), AtomicUsize::new(0), AtomicUsize::new(0));
        thread::scope(|scope| {
            for n in 0..24 {
                let (gate, now, most) = (&gate, &now, &most);
                scope.spawn(move || {
                    gate.pass(if n % 4 == 0 { 1000 } else { 50 }, || {
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
