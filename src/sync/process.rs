//! Values that each process has for itself, although fork(2) copies them.
//!
//! A forked child has the memory of its parent, but none of its other threads: a lock that one of them held stays
//! locked for ever, and a queue has no workers. So a child makes what it needs anew, and leaves what it inherited where
//! it is: it is neither used nor freed.
#![allow(unsafe_code)]

use std::marker::PhantomData;
use std::mem;
use std::ops::Deref;
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

/// Returns whether this process has made what was made after so many changes. A child may drop what it inherited before
/// it calls [`enter`], so this asks the system, too. A process that never calls `enter` owns all that it has.
fn owns(changes: u64) -> bool {
    let known = PROCESS.load(Ordering::Relaxed);
    known >> 32 == changes && (known == 0 || known & u64::from(u32::MAX) == u64::from(process::id()))
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
        self.value_of(self.made.load(Ordering::Acquire))
    }

    /// Returns the value that was stored, if this process has made it.
    fn value_of(&self, made: *const Made<T>) -> Option<&T> {
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
        // one look: a value that another thread stores after it is not replaced
        let before = self.made.load(Ordering::Acquire);
        if let Some(value) = self.value_of(before) {
            return Ok(value);
        }
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
        // SAFETY: as in `value_of`; `other` was stored by another thread of this process meanwhile, so it is not null.
        Ok(unsafe { &(*stored).value })
    }
}

impl<T> Drop for PerProcess<T> {
    fn drop(&mut self) {
        let made = *self.made.get_mut();
        // SAFETY: it is null or came from `into_raw`, and nobody has a reference to it any more.
        if unsafe { made.as_ref() }.is_some_and(|made| owns(made.changes)) {
            // SAFETY: as above
            drop(unsafe { Box::from_raw(made) });
        }
    }
}

/// For statics, in place of `LazyLock`: a child waits for ever for one that another thread of its parent was about to
/// make. Threads that ask at the same time may make it several times.
pub(crate) struct LazyPerProcess<T> {
    value: PerProcess<T>,
    make: fn() -> T,
}

impl<T> LazyPerProcess<T> {
    pub(crate) const fn new(make: fn() -> T) -> Self {
        Self { value: PerProcess::new(), make }
    }
}

impl<T: Send + Sync> Deref for LazyPerProcess<T> {
    type Target = T;

    fn deref(&self) -> &T {
        self.value.get_or_init(self.make)
    }
}

/// For values of a thread: the thread that forks goes on in the child, where it begins with a default. What it
/// inherited may have to take locks when it is dropped, so it is not.
pub(crate) struct OfProcess<T> {
    changes: u64,
    /// `None` once it is dropped.
    value: Option<T>,
}

impl<T: Default> OfProcess<T> {
    pub(crate) const fn new(value: T) -> Self {
        Self { changes: 0, value: Some(value) }
    }

    /// Returns the value of this process.
    pub(crate) fn get(&mut self) -> &mut T {
        if self.changes != changes() {
            mem::forget(self.value.take());
            self.changes = changes();
        }
        self.value.get_or_insert_default()
    }
}

impl<T> Drop for OfProcess<T> {
    fn drop(&mut self) {
        if !owns(self.changes) {
            mem::forget(self.value.take());
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use nix::libc;
    use nix::sys::wait::{WaitStatus, waitpid};
    use nix::unistd::{ForkResult, alarm, fork};

    use super::*;
    use crate::sync::Mutex;

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

    #[test]
    fn a_child_neither_uses_nor_drops_what_it_inherits() {
        static LOCKED: LazyPerProcess<Mutex<u8>> = LazyPerProcess::new(|| Mutex::new(1));
        enter();
        let mut guard = LOCKED.lock();
        *guard = 2;
        let (shared, field, mut of_thread, mut unused) =
            (Arc::new(()), PerProcess::new(), OfProcess::new(None), OfProcess::new(None));
        field.get_or_init(|| Arc::clone(&shared));
        *of_thread.get() = Some(Arc::clone(&shared));
        *unused.get() = Some(Arc::clone(&shared));
        // SAFETY: the child allocates, which the C library allows, and takes no lock that another thread may hold.
        match unsafe { fork() }.unwrap() {
            ForkResult::Child => {
                alarm::set(60);
                drop(unused);
                let kept = Arc::strong_count(&shared) == 4;
                enter();
                let locks = LOCKED.lock();
                let is_new = *locks == 1 && field.get().is_none() && of_thread.get().is_none();
                drop((field, of_thread));
                let is_kept = kept && Arc::strong_count(&shared) == 4;
                // SAFETY: it ends the process, without the destructors of the parent.
                unsafe { libc::_exit(if is_new && is_kept { 0 } else { 1 }) }
            }
            ForkResult::Parent { child } => {
                assert_eq!(waitpid(child, None), Ok(WaitStatus::Exited(child, 0)));
                drop((field, of_thread, unused));
                assert_eq!((*guard, Arc::strong_count(&shared)), (2, 1));
            }
        }
    }
}
