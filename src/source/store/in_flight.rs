//! How many requests of one source are in flight at a time.

use tokio::sync::{AcquireError, Semaphore, SemaphorePermit};

use crate::sync::atomic::{AtomicU64, Ordering};

/// Bytes that are requested at a time, as far as their number is known before they come: as many as fill a fast link to
/// a store that takes 50 ms to answer. More would only wait for each other, and delay what is needed first.
const MAX_BYTES: u32 = 32 << 20;
/// The most requests in flight, if what they bring is short and there are connections enough.
pub(crate) const MAX_REQUESTS: usize = 64;
/// Answers to shorter requests tell nothing about others: they are of tables and headers.
const MIN_RECORDED: u64 = 128 << 10;

/// Bounds the requests of one source.
pub(crate) struct InFlight {
    /// A permit for each byte.
    permits: Semaphore,
    /// Permits that even the shortest request takes.
    least: u32,
    /// The bytes that an answer has brought, an average in which the last ones count most; 0 before the first.
    typical: AtomicU64,
}

impl InFlight {
    /// Allows at most `requests` requests at a time.
    pub(crate) fn new(requests: usize) -> Self {
        let requests = u32::try_from(requests).unwrap_or(u32::MAX).clamp(1, MAX_BYTES);
        let (permits, least) = (Semaphore::new(MAX_BYTES as usize), MAX_BYTES / requests);
        Self { permits, least, typical: AtomicU64::new(0) }
    }

    /// Waits until a request for a range of `length` bytes may be sent; it is in flight until the permit is dropped.
    /// Of ranges of which a format knows no more than a bound, those before tell how long they are.
    pub(crate) async fn admit(&self, length: u64) -> Result<SemaphorePermit<'_>, AcquireError> {
        let expected = match self.typical.load(Ordering::Relaxed) {
            0 => length,
            typical => typical.min(length),
        };
        let bytes = u32::try_from(expected).unwrap_or(u32::MAX).clamp(self.least, MAX_BYTES);
        self.permits.acquire_many(bytes).await
    }

    /// Records that the answer to a request for `length` bytes has brought `bytes`.
    pub(crate) fn record(&self, length: u64, bytes: u64) {
        if length >= MIN_RECORDED {
            let average = |before: u64| Some(if before == 0 { bytes } else { (before.saturating_mul(7) + bytes) / 8 });
            let _ = self.typical.fetch_update(Ordering::Relaxed, Ordering::Relaxed, average);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::task::{Context, Poll, Waker};

    use super::*;

    /// Returns how many requests for `length` bytes are sent before one has to wait.
    fn sent(in_flight: &InFlight, length: u64) -> usize {
        let mut admitted = Vec::new();
        loop {
            let mut next = Box::pin(in_flight.admit(length));
            match next.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
                Poll::Ready(permit) => admitted.push(permit.unwrap()),
                Poll::Pending => return admitted.len(),
            }
        }
    }

    #[test]
    fn short_requests_are_bounded_by_their_number_and_long_ones_by_their_bytes() {
        let in_flight = InFlight::new(MAX_REQUESTS);
        assert_eq!([1, 1 << 10, 1 << 20, 8 << 20, 1 << 40].map(|length| sent(&in_flight, length)), [64, 64, 32, 4, 1]);
        assert_eq!([1, 1 << 20, 4 << 20].map(|length| sent(&InFlight::new(10), length)), [10, 10, 8]);
        assert_eq!(sent(&InFlight::new(0), 1), 1);
    }

    #[test]
    fn the_length_of_answers_counts_where_requests_give_a_bound() {
        let in_flight = InFlight::new(MAX_REQUESTS);
        in_flight.record(64 << 10, 64 << 10);
        assert_eq!(sent(&in_flight, 1 << 20), 32, "a header tells nothing");
        in_flight.record(1 << 20, 100 << 10);
        assert_eq!(sent(&in_flight, 1 << 20), 64);
        (0..100).for_each(|_| in_flight.record(1 << 20, 1 << 20));
        assert_eq!([1 << 20, 1 << 10].map(|length| sent(&in_flight, length)), [32, 64]);
    }
}
