//! Figures of a verification while it runs.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use crate::counters::Counter;

/// Figures that grow while bricks are checked. They may be read at any time.
#[derive(Debug, Default)]
pub(crate) struct Progress {
    /// Bricks that were checked, or that have no bytes.
    pub bricks: Counter,
    /// Bytes of them in the source.
    pub bytes: Counter,
    /// Bricks that are bad.
    pub bad: Counter,
    /// Bricks that could not be read by the system's fault.
    pub unread: Counter,
    /// Datasets that are done.
    pub datasets: Counter,
    total: AtomicU64,
    counted: AtomicBool,
}

impl Progress {
    /// Returns the number of all bricks if it is known by now.
    pub(crate) fn total(&self) -> Option<u64> {
        self.counted.load(Ordering::Acquire).then(|| self.total.load(Ordering::Relaxed))
    }

    /// Sets the number of all bricks.
    pub(super) fn set_total(&self, total: u64) {
        self.total.store(total, Ordering::Relaxed);
        self.counted.store(true, Ordering::Release);
    }
}
