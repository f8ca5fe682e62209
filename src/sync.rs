//! Locks without poisoning, atomic numbers and threads. With the feature `shuttle`, which only
//! scripts/stress/schedules.sh sets, a scheduler decides which thread goes on at each of them.
//!
//! A thread that panics while it holds a lock leaves consistent data behind: critical sections of this crate update a
//! few fields and call no foreign code. So one failed request does not fail all later ones.

pub(crate) use locks::RwLock;
#[cfg(not(all(test, feature = "shuttle")))]
pub(crate) use locks::{Condvar, Mutex, MutexGuard};
#[cfg(all(test, feature = "shuttle"))]
pub(crate) use shuttle::{sync::atomic, thread};
#[cfg(not(all(test, feature = "shuttle")))]
pub(crate) use std::{sync::atomic, thread};
#[cfg(all(test, feature = "shuttle"))]
pub(crate) use tests::scheduled::{Clock, Condvar, Mutex, MutexGuard};

#[cfg_attr(all(test, feature = "shuttle"), allow(dead_code))]
mod locks;
mod process;
#[cfg(test)]
mod tests;

pub(crate) use process::{LazyPerProcess, OfProcess, PerProcess, enter};
