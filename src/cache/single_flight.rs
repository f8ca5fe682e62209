//! Single flight: one thread decodes a brick, and all others that need it wait for that thread's result.

use std::sync::Arc;

use super::decoded_brick::DecodeResult;
use crate::format::FormatError;
use crate::sync::{Condvar, Mutex};

/// A brick that one thread is decoding.
#[derive(Default)]
pub(super) struct InFlight {
    result: Mutex<Option<DecodeResult>>,
    completed: Condvar,
}

impl InFlight {
    /// Waits for the decoding thread and returns its result.
    pub(crate) fn wait(&self) -> DecodeResult {
        let mut result = self.result.lock();
        loop {
            match &*result {
                Some(known) => return known.clone(),
                None => self.completed.wait(&mut result),
            }
        }
    }
}

/// Completes an [`InFlight`] when it is dropped, also when the decoder panics, so that no thread waits for ever.
pub(super) struct InFlightGuard<F: FnOnce(&DecodeResult)> {
    in_flight: Arc<InFlight>,
    result: Option<DecodeResult>,
    /// Publishes the result and removes the entry from the table of bricks in flight, before the waiters wake.
    publish: Option<F>,
}

impl<F: FnOnce(&DecodeResult)> InFlightGuard<F> {
    /// Guards a brick in flight. `publish` gets the result first.
    pub(crate) fn new(in_flight: Arc<InFlight>, publish: F) -> Self {
        Self { in_flight, result: None, publish: Some(publish) }
    }

    /// Completes it with `result`.
    pub(crate) fn complete(mut self, result: DecodeResult) {
        self.result = Some(result);
    }
}

impl<F: FnOnce(&DecodeResult)> Drop for InFlightGuard<F> {
    fn drop(&mut self) {
        let gave_up = || Err(FormatError::Damaged("the decoder gave up on it".into()));
        let result = self.result.take().unwrap_or_else(gave_up);
        if let Some(publish) = self.publish.take() {
            publish(&result);
        }
        // after publishing no thread can find the entry any more; without waiters the notification would be a needless
        // system call
        if Arc::strong_count(&self.in_flight) > 1 {
            *self.in_flight.result.lock() = Some(result);
            self.in_flight.completed.notify_all();
        }
    }
}
