//! Values that each process has for itself, although fork(2) copies them.
//!
//! A forked child has the memory of its parent, but none of its other threads: a lock that one of them held stays
//! locked for ever, and a queue has no workers. So a child makes what it needs anew, and leaves what it inherited where
//! it is: it is neither used nor freed.
#![allow(unsafe_code)]

use std::marker::PhantomData;
use std::process;
use std::ptr;
use std::sync::atomic::{AtomicPtr, AtomicU64, Ordering};

/// The number of this process as [`enter`] saw it last, in the low half, and how often it changed, in the high half.
static PROCESS: AtomicU64 = AtomicU64::new(0);

/// Looks whether this is a forked child, in which all [`PerProcess`] values are made anew from then on. Whoever is
/// called by code that may fork calls this first.
pub(crate) fn enter() {
    let id = u64::from(process::id());
    let before = PROCESS.load(Ordering::Relaxed);
    if before & u64::from(u32::MAX) != id {
        let changes = (before >> 32) + u64::from(before != 0);
        // if it fails, another thread of this process has done it
        let _ = PROCESS.compare_exchange(before, changes << 32 | id, Ordering::AcqRel, Ordering::Relaxed);
    }
}

/// Returns how often the process has changed.
fn changes() -> u64 {
    PROCESS.load(Ordering::Relaxed) >> 32
}

/// A value that is made when a process first asks for it. Without locks: threads that ask at the same time may make it
/// several times, and all get the same one.
pub(crate) struct PerProcess<T> {
    /// From [`Box::into_raw`], or null.
    made: AtomicPtr<Made<T>>,
    owns: PhantomData<T>,
}

struct Made<T> {
    /// [`changes`] in the process that made it.
    changes: u64,
    value: T,
}

impl<T> PerProcess<T> {
    pub(crate) const fn new() -> Self {
        Self { made: AtomicPtr::new(ptr::null_mut()), owns: PhantomData }
    }
}

impl<T: Send + Sync> PerProcess<T> {
    /// Returns the value of this process, if it was made.
    pub(crate) fn get(&self) -> Option<&T> {
        let made = self.made.load(Ordering::Acquire);
        // SAFETY: what is stored here is freed by `drop` alone, which has the only reference.
        unsafe { made.as_ref() }.filter(|made| made.changes == changes()).map(|made| &made.value)
    }

    /// Returns the value of this process, and makes it if there is none.
    pub(crate) fn get_or_init(&self, init: impl FnOnce() -> T) -> &T {
        match self.get_or_try_init(|| Ok::<T, std::convert::Infallible>(init())) {
            Ok(value) => value,
            Err(never) => match never {},
        }
    }

    /// Like [`PerProcess::get_or_init`], for values that may not be had.
    pub(crate) fn get_or_try_init<E>(&self, init: impl FnOnce() -> Result<T, E>) -> Result<&T, E> {
        if let Some(value) = self.get() {
            return Ok(value);
        }
        let before = self.made.load(Ordering::Acquire);
        let made = Box::into_raw(Box::new(Made { changes: changes(), value: init()? }));
        // A value of another process stays in memory, unreachable: its locks may be held, so it cannot be dropped.
        let stored = match self.made.compare_exchange(before, made, Ordering::AcqRel, Ordering::Acquire) {
            Ok(_) => made,
            Err(other) => {
                // SAFETY: it came from `into_raw` above, and nobody else has seen it.
                drop(unsafe { Box::from_raw(made) });
                other
            }
        };
        // SAFETY: as in `get`; `other` was stored by another thread of this process meanwhile, so it is not null.
        Ok(unsafe { &(*stored).value })
    }
}

impl<T> Drop for PerProcess<T> {
    fn drop(&mut self) {
        let made = *self.made.get_mut();
        // SAFETY: it is null or came from `into_raw`, and nobody has a reference to it any more.
        if unsafe { made.as_ref() }.is_some_and(|made| made.changes == changes()) {
            drop(unsafe { Box::from_raw(made) });
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    #[test]
    fn a_value_is_made_once_and_dropped() {
        let (shared, value) = (Arc::new(()), PerProcess::new());
        assert!(value.get().is_none());
        assert!(value.get_or_try_init(|| Err::<Arc<()>, _>("not today")).is_err());
        let first = value.get_or_init(|| Arc::clone(&shared));
        assert!(ptr::eq(first, value.get_or_init(|| unreachable!())));
        assert_eq!(Arc::strong_count(&shared), 2);
        drop(value);
        assert_eq!(Arc::strong_count(&shared), 1);
    }
}
