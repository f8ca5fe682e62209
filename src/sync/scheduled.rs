//! The locks of the scheduler, and the clock by which waits time out.

use std::cell::{Cell, RefCell};
use std::ops::{Deref, DerefMut};
use std::sync::{Arc, PoisonError, TryLockError};
use std::time::Duration;

use shuttle::rand::Rng;
use shuttle::{sync, thread};

/// A mutex whose lock is never poisoned.
#[derive(Debug, Default)]
pub(crate) struct Mutex<T: ?Sized>(sync::Mutex<T>);

/// A locked mutex.
pub(crate) struct MutexGuard<'a, T: ?Sized> {
    mutex: &'a Mutex<T>,
    /// `None` only while a condition variable has it.
    locked: Option<sync::MutexGuard<'a, T>>,
}

impl<T> Mutex<T> {
    /// Creates a mutex that holds `value`.
    pub(crate) const fn new(value: T) -> Self {
        Self(sync::Mutex::new(value))
    }
}

impl<T: ?Sized> Mutex<T> {
    /// Locks the mutex; waits until it is free.
    pub(crate) fn lock(&self) -> MutexGuard<'_, T> {
        self.guard(self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Locks the mutex if it is free; never waits.
    pub(crate) fn try_lock(&self) -> Option<MutexGuard<'_, T>> {
        match self.0.try_lock() {
            Ok(locked) => Some(self.guard(locked)),
            Err(TryLockError::Poisoned(poisoned)) => Some(self.guard(poisoned.into_inner())),
            Err(TryLockError::WouldBlock) => None,
        }
    }

    fn guard<'a>(&'a self, locked: sync::MutexGuard<'a, T>) -> MutexGuard<'a, T> {
        MutexGuard { mutex: self, locked: Some(locked) }
    }
}

impl<T: ?Sized> Deref for MutexGuard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        match &self.locked {
            Some(locked) => locked,
            None => unreachable!("a guard that waits is not used"),
        }
    }
}

impl<T: ?Sized> DerefMut for MutexGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        match &mut self.locked {
            Some(locked) => locked,
            None => unreachable!("a guard that waits is not used"),
        }
    }
}

/// A condition variable for locks that are never poisoned.
#[derive(Debug, Default)]
pub(crate) struct Condvar(Arc<sync::Condvar>);

impl Condvar {
    /// Creates a condition variable.
    pub(crate) fn new() -> Self {
        Self::default()
    }

    /// Unlocks, waits to be notified, and locks again.
    pub(crate) fn wait<'a, T>(&self, mut guard: MutexGuard<'a, T>) -> MutexGuard<'a, T> {
        if let Some(locked) = guard.locked.take() {
            guard.locked = Some(self.0.wait(locked).unwrap_or_else(PoisonError::into_inner));
        }
        guard
    }

    /// Like [`Condvar::wait`], but times out: when [`Clock`] says so. The second value tells whether the wait timed
    /// out.
    pub(crate) fn wait_timeout<'a, T>(&self, guard: MutexGuard<'a, T>, _: Duration) -> (MutexGuard<'a, T>, bool) {
        let times_out = match CLOCK.get() {
            Clock::Stopped => false,
            Clock::Runs => shuttle::rand::thread_rng().gen_bool(0.5),
            Clock::Over => true,
        };
        if times_out {
            let mutex = guard.mutex;
            drop(guard);
            thread::yield_now();
            return (mutex.lock(), true);
        }
        let waiting = Waiting::begin(&self.0);
        let guard = self.wait(guard);
        drop(waiting);
        (guard, CLOCK.get() == Clock::Over)
    }

    /// Wakes one waiting thread.
    pub(crate) fn notify_one(&self) {
        self.0.notify_one();
    }

    /// Wakes all waiting threads.
    pub(crate) fn notify_all(&self) {
        self.0.notify_all();
    }
}

/// Whether waits time out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Clock {
    /// None does: a thread that is not notified waits for ever, which the scheduler reports.
    Stopped,
    /// Each may, at once.
    Runs,
    /// All do.
    Over,
}

thread_local! {
    // all threads of a test are tasks of one thread of the system
    static CLOCK: Cell<Clock> = const { Cell::new(Clock::Stopped) };
    static WAITING: RefCell<Vec<Arc<sync::Condvar>>> = const { RefCell::new(Vec::new()) };
}

impl Clock {
    /// Sets the clock at the beginning of a test.
    pub(crate) fn start(self) {
        CLOCK.set(self);
        WAITING.take();
    }

    /// Has all waits with a timeout end.
    pub(crate) fn end() {
        CLOCK.set(Self::Over);
        loop {
            let waiting = WAITING.with_borrow(Vec::clone);
            if waiting.is_empty() {
                return;
            }
            waiting.iter().for_each(|condvar| condvar.notify_all());
            thread::yield_now();
        }
    }
}

/// A wait with a timeout.
struct Waiting(Arc<sync::Condvar>);

impl Waiting {
    fn begin(condvar: &Arc<sync::Condvar>) -> Self {
        WAITING.with_borrow_mut(|waiting| waiting.push(Arc::clone(condvar)));
        Self(Arc::clone(condvar))
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        WAITING.with_borrow_mut(|waiting| {
            if let Some(at) = waiting.iter().position(|other| Arc::ptr_eq(other, &self.0)) {
                waiting.swap_remove(at);
            }
        });
    }
}
