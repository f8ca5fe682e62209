//! What a store was asked for, and how long it took.

use std::time::Duration;

use super::super::store_status::StoreStatus;
use crate::counters::Counter;
use crate::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// Classes of latencies: four for each doubling, from 1 microsecond on. The last has all beyond an hour.
const CLASSES: usize = 128;

/// Counters of one store.
#[derive(Debug)]
pub(crate) struct Metrics {
    requests: Counter,
    bytes: Counter,
    failed: Counter,
    in_flight: AtomicUsize,
    latencies: [AtomicU64; CLASSES],
}

impl Default for Metrics {
    fn default() -> Self {
        let latencies = std::array::from_fn(|_| AtomicU64::new(0));
        Self {
            requests: Counter::default(),
            bytes: Counter::default(),
            failed: Counter::default(),
            in_flight: AtomicUsize::new(0),
            latencies,
        }
    }
}

/// A request that is in flight until this value is dropped.
pub(crate) struct InFlight<'a>(&'a Metrics);

impl Drop for InFlight<'_> {
    fn drop(&mut self) {
        self.0.in_flight.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Metrics {
    /// Counts a request that is being sent.
    pub(crate) fn begin(&self) -> InFlight<'_> {
        self.requests.add(1);
        self.in_flight.fetch_add(1, Ordering::Relaxed);
        InFlight(self)
    }

    /// Counts an answer that began after `took`. One that is `bad` (no answer at all, or an answer that says to try
    /// again) is tried again.
    pub(crate) fn answered(&self, took: Duration, bad: bool) {
        if bad {
            self.failed.add(1);
        }
        if let Some(class) = self.latencies.get(class_of(took)) {
            class.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Counts bytes that have arrived.
    pub(crate) fn add_bytes(&self, bytes: u64) {
        self.bytes.add(bytes);
    }

    /// Returns the counters; `staged` is the number of bytes that wait in memory for their readers.
    pub(crate) fn status(&self, staged: usize) -> StoreStatus {
        let counts: Vec<u64> = self.latencies.iter().map(|class| class.load(Ordering::Relaxed)).collect();
        StoreStatus {
            requests: self.requests.get(),
            bytes: self.bytes.get(),
            retries: self.failed.get(),
            in_flight: self.in_flight.load(Ordering::Relaxed),
            staged_bytes: staged,
            disk: None,
            latency_p50: quantile(&counts, 50),
            latency_p99: quantile(&counts, 99),
        }
    }
}

/// Returns the class of a latency: `4 log2` of its microseconds, with two bits behind the leading one.
fn class_of(took: Duration) -> usize {
    let micros = u64::try_from(took.as_micros()).unwrap_or(u64::MAX).max(4);
    let log = micros.ilog2();
    let fraction = (micros >> (log - 2)) & 3;
    (4 * (log as usize - 2) + fraction as usize).min(CLASSES - 1)
}

/// Returns the middle of a class.
fn middle_of(class: usize) -> Duration {
    let (log, fraction) = (class / 4 + 2, class as u64 % 4);
    let least = (4 + fraction) << (log - 2).min(56);
    Duration::from_micros(least + (least >> 4))
}

/// Returns a percentile; `None` if nothing was counted.
fn quantile(counts: &[u64], percent: u64) -> Option<Duration> {
    let total: u64 = counts.iter().sum();
    let mut left = (total.saturating_mul(percent)).div_ceil(100).max(1);
    let class = counts.iter().position(|count| {
        let found = left <= *count;
        left = left.saturating_sub(*count);
        found
    });
    class.filter(|_| total > 0).map(middle_of)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_within_an_eighth() {
        let metrics = Metrics::default();
        assert_eq!(metrics.status(0).latency_p50, None);
        for n in 1..=1000 {
            drop(metrics.begin());
            metrics.answered(Duration::from_micros(100 * n), n % 10 == 0);
        }
        let held = metrics.begin();
        let status = metrics.status(7);
        drop(held);
        assert_eq!((status.requests, status.retries, status.in_flight, status.staged_bytes), (1001, 100, 1, 7));
        assert_eq!(metrics.status(0).in_flight, 0);
        for (found, wanted) in [(status.latency_p50, 0.05), (status.latency_p99, 0.099)] {
            let found = found.unwrap().as_secs_f64();
            assert!((found / wanted - 1.0).abs() < 0.15, "{found} is not about {wanted}");
        }
    }

    #[test]
    fn every_latency_has_a_class() {
        for took in [0, 1, 3, 4, 5, 7, 8, 1 << 20, u64::MAX] {
            let took = Duration::from_micros(took);
            assert!(class_of(took) < CLASSES);
            assert!(took.as_micros() < 4 || class_of(middle_of(class_of(took))) == class_of(took));
        }
    }
}
