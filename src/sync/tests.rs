/// The locks of the scheduler with the methods of ours, and the clock by which waits time out.
#[cfg(feature = "shuttle")]
pub(crate) mod scheduled {
    use std::cell::{Cell, RefCell};
    use std::ops::{Deref, DerefMut};
    use std::sync::{Arc, PoisonError, TryLockError};
    use std::time::Duration;

    use shuttle::rand::Rng;
    use shuttle::{sync, thread};

    #[derive(Debug, Default)]
    pub(crate) struct Mutex<T: ?Sized>(sync::Mutex<T>);

    pub(crate) struct MutexGuard<'a, T: ?Sized> {
        mutex: &'a Mutex<T>,
        /// `None` only while a condition variable has it.
        locked: Option<sync::MutexGuard<'a, T>>,
    }

    impl<T> Mutex<T> {
        pub(crate) const fn new(value: T) -> Self {
            Self(sync::Mutex::new(value))
        }
    }

    impl<T: ?Sized> Mutex<T> {
        pub(crate) fn lock(&self) -> MutexGuard<'_, T> {
            MutexGuard { mutex: self, locked: Some(self.0.lock().unwrap_or_else(PoisonError::into_inner)) }
        }

        pub(crate) fn try_lock(&self) -> Option<MutexGuard<'_, T>> {
            let locked = match self.0.try_lock() {
                Ok(locked) => locked,
                Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
                Err(TryLockError::WouldBlock) => return None,
            };
            Some(MutexGuard { mutex: self, locked: Some(locked) })
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

    #[derive(Debug, Default)]
    pub(crate) struct Condvar(Arc<sync::Condvar>);

    /// Whether a wait timed out.
    pub(crate) struct WaitTimeoutResult(bool);

    impl WaitTimeoutResult {
        pub(crate) fn timed_out(&self) -> bool {
            self.0
        }
    }

    impl Condvar {
        pub(crate) fn new() -> Self {
            Self::default()
        }

        pub(crate) fn wait<T>(&self, guard: &mut MutexGuard<'_, T>) {
            if let Some(locked) = guard.locked.take() {
                guard.locked = Some(self.0.wait(locked).unwrap_or_else(PoisonError::into_inner));
            }
        }

        /// Times out when [`Clock`] says so.
        pub(crate) fn wait_for<T>(&self, guard: &mut MutexGuard<'_, T>, _: Duration) -> WaitTimeoutResult {
            let times_out = match CLOCK.get() {
                Clock::Stopped => false,
                Clock::Runs => shuttle::rand::thread_rng().gen_bool(0.5),
                Clock::Over => true,
            };
            if times_out {
                guard.locked = None;
                thread::yield_now();
                guard.locked = guard.mutex.lock().locked;
                return WaitTimeoutResult(true);
            }
            let waiting = Waiting::begin(&self.0);
            self.wait(guard);
            drop(waiting);
            WaitTimeoutResult(CLOCK.get() == Clock::Over)
        }

        pub(crate) fn notify_one(&self) {
            self.0.notify_one();
        }

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
}

#[cfg(not(feature = "shuttle"))]
#[test]
fn a_panic_under_a_lock_does_not_poison_it() {
    use std::panic::{AssertUnwindSafe, catch_unwind};

    use crate::sync::{Mutex, RwLock};

    let (mutex, lock) = (Mutex::new(1), RwLock::new(1));
    let panicked = catch_unwind(AssertUnwindSafe(|| {
        let (mut a, mut b) = (mutex.lock(), lock.write());
        (*a, *b) = (2, 2);
        std::panic::resume_unwind(Box::new(()));
    }));
    assert!(panicked.is_err());
    assert_eq!((*mutex.lock(), *lock.read()), (2, 2));
}
