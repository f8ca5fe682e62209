//! The locks of the standard library, without poisoning.
//!
//! Each lock is a number of its own that its threads wait for. There is no table of all threads that wait, as other
//! implementations have one for the process: in a forked child it would be as the other threads of the parent left it,
//! and a lock of that table would never be released.

use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{self, PoisonError, RwLockReadGuard, RwLockWriteGuard, TryLockError, WaitTimeoutResult};
use std::time::Duration;

#[derive(Debug, Default)]
pub(crate) struct Mutex<T: ?Sized>(sync::Mutex<T>);

/// `None` only while a condition variable has it.
pub(crate) struct MutexGuard<'a, T: ?Sized>(Option<sync::MutexGuard<'a, T>>);

impl<T> Mutex<T> {
    pub(crate) const fn new(value: T) -> Self {
        Self(sync::Mutex::new(value))
    }
}

impl<T: ?Sized> Mutex<T> {
    pub(crate) fn lock(&self) -> MutexGuard<'_, T> {
        MutexGuard(Some(self.0.lock().unwrap_or_else(PoisonError::into_inner)))
    }

    pub(crate) fn try_lock(&self) -> Option<MutexGuard<'_, T>> {
        match self.0.try_lock() {
            Ok(locked) => Some(MutexGuard(Some(locked))),
            Err(TryLockError::Poisoned(poisoned)) => Some(MutexGuard(Some(poisoned.into_inner()))),
            Err(TryLockError::WouldBlock) => None,
        }
    }
}

impl<T: ?Sized> Deref for MutexGuard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        match &self.0 {
            Some(locked) => locked,
            None => unreachable!("a guard that waits is not used"),
        }
    }
}

impl<T: ?Sized> DerefMut for MutexGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        match &mut self.0 {
            Some(locked) => locked,
            None => unreachable!("a guard that waits is not used"),
        }
    }
}

/// A condition variable. What is waited for changes under the lock alone.
#[derive(Debug, Default)]
pub(crate) struct Condvar {
    condvar: sync::Condvar,
    /// Threads that wait, or are about to. It grows under the lock, so that who changes the condition afterwards sees
    /// it: the system is only asked to wake somebody if there is somebody.
    waiting: AtomicUsize,
}

impl Condvar {
    pub(crate) const fn new() -> Self {
        Self { condvar: sync::Condvar::new(), waiting: AtomicUsize::new(0) }
    }

    pub(crate) fn wait<T>(&self, guard: &mut MutexGuard<'_, T>) {
        if let Some(locked) = guard.0.take() {
            self.waiting.fetch_add(1, Ordering::Relaxed);
            guard.0 = Some(self.condvar.wait(locked).unwrap_or_else(PoisonError::into_inner));
            self.waiting.fetch_sub(1, Ordering::Relaxed);
        }
    }

    pub(crate) fn wait_for<T>(&self, guard: &mut MutexGuard<'_, T>, limit: Duration) -> WaitTimeoutResult {
        let Some(locked) = guard.0.take() else { unreachable!("a guard waits for one condition") };
        self.waiting.fetch_add(1, Ordering::Relaxed);
        let (locked, waited) = self.condvar.wait_timeout(locked, limit).unwrap_or_else(PoisonError::into_inner);
        self.waiting.fetch_sub(1, Ordering::Relaxed);
        guard.0 = Some(locked);
        waited
    }

    pub(crate) fn notify_one(&self) {
        if self.waiting.load(Ordering::Relaxed) > 0 {
            self.condvar.notify_one();
        }
    }

    pub(crate) fn notify_all(&self) {
        if self.waiting.load(Ordering::Relaxed) > 0 {
            self.condvar.notify_all();
        }
    }
}

#[derive(Debug, Default)]
pub(crate) struct RwLock<T: ?Sized>(sync::RwLock<T>);

impl<T> RwLock<T> {
    pub(crate) const fn new(value: T) -> Self {
        Self(sync::RwLock::new(value))
    }
}

impl<T: ?Sized> RwLock<T> {
    pub(crate) fn read(&self) -> RwLockReadGuard<'_, T> {
        self.0.read().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn write(&self) -> RwLockWriteGuard<'_, T> {
        self.0.write().unwrap_or_else(PoisonError::into_inner)
    }
}
