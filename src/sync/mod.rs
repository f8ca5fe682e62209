//! Locks without poisoning, atomic numbers and threads. With the feature `shuttle`, which only
//! scripts/stress/schedules.sh sets, a scheduler decides which thread goes on at each of them.

#[cfg_attr(feature = "shuttle", allow(dead_code))]
mod locks;
#[cfg(feature = "shuttle")]
mod scheduled;

#[cfg(feature = "shuttle")]
pub(crate) use scheduled::{Clock, Condvar, Mutex, MutexGuard};
#[cfg(feature = "shuttle")]
pub(crate) use shuttle::{sync::atomic, thread};
#[cfg(not(feature = "shuttle"))]
pub(crate) use std::{sync::MutexGuard, sync::atomic, thread};

pub(crate) use locks::RwLock;
#[cfg(not(feature = "shuttle"))]
pub(crate) use locks::{Condvar, Mutex};
