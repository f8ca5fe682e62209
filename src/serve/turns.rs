//! Turns: how many requests may be in progress, and which of them is ended when there are too many.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{sleep, timeout};

use crate::memory::trim_heap;
use crate::sync::{Mutex, thread};

/// How long a request waits for others to end.
const WAIT: Duration = Duration::from_secs(10);

/// So many requests at a time leave memory behind that the allocator keeps: their blocks lie between others.
const MANY: usize = 128;
/// How long after they have ended that is given back to the system.
const SETTLED: Duration = Duration::from_secs(2);
/// Requests of one connection that wait in the common queue at a time, so that connections take turns, and one with many
/// requests does not keep the others out.
const IN_QUEUE: usize = 1;

/// The turns of all requests.
pub(crate) struct Turns {
    free: Arc<Semaphore>,
    /// How many turns there are. As many requests may wait for one: each has its head in memory.
    count: usize,
    /// The most requests that had a turn since memory was last given back.
    peak: AtomicUsize,
    queue: Mutex<Queue>,
}

#[derive(Default)]
struct Queue {
    waiting: usize,
    /// How many of those waiting get the turn of a request that was ended for them.
    promised: usize,
}

/// The requests of one connection that wait.
pub(crate) struct Line {
    places: Semaphore,
    waiting: AtomicUsize,
}

impl Default for Line {
    fn default() -> Self {
        Self { places: Semaphore::new(IN_QUEUE), waiting: AtomicUsize::new(0) }
    }
}

/// A request that waits.
struct Waiting<'t>(&'t Turns, &'t Line);

impl Turns {
    /// Creates this many turns.
    pub(crate) fn new(count: usize) -> Arc<Self> {
        let count = count.clamp(1, Semaphore::MAX_PERMITS);
        let free = Arc::new(Semaphore::new(count));
        Arc::new(Self { free, count, peak: AtomicUsize::new(0), queue: Mutex::default() })
    }

    /// Waits for a turn; `None` if none comes free for too long, or too many requests wait already. A connection may
    /// always have one that waits.
    pub(crate) async fn next(&self, line: &Line) -> Option<OwnedSemaphorePermit> {
        if let Ok(turn) = Arc::clone(&self.free).try_acquire_owned() {
            self.peak.fetch_max(self.taken(), Ordering::SeqCst);
            return Some(turn);
        }
        let _waiting = self.wait(line)?;
        let turn = async {
            let _place = line.places.acquire().await.ok()?;
            Arc::clone(&self.free).acquire_owned().await.ok()
        };
        timeout(WAIT, turn).await.ok()?
    }

    fn taken(&self) -> usize {
        self.count.saturating_sub(self.free.available_permits())
    }

    /// Gives memory back to the system if many requests have ended.
    pub(crate) fn ended(&self) {
        let (peak, taken) = (self.peak.load(Ordering::SeqCst), self.taken());
        let are_over = peak >= MANY && taken <= peak / 8;
        if !are_over || self.peak.compare_exchange(peak, 0, Ordering::SeqCst, Ordering::SeqCst).is_err() {
            return;
        }
        if let Ok(runtime) = Handle::try_current() {
            runtime.spawn(async {
                // until their connections are closed, too
                sleep(SETTLED).await;
                let _ = thread::Builder::new().name("volfs-trim".into()).spawn(trim_heap);
            });
        }
    }

    fn wait<'t>(&'t self, line: &'t Line) -> Option<Waiting<'t>> {
        let mut queue = self.queue.lock();
        if queue.waiting >= self.count && line.waiting.load(Ordering::SeqCst) >= IN_QUEUE {
            return None;
        }
        queue.waiting += 1;
        line.waiting.fetch_add(1, Ordering::SeqCst);
        Some(Waiting(self, line))
    }

    /// Returns whether a stalled request has to end for one that waits. If so, the caller ends it.
    pub(crate) fn claim(&self) -> bool {
        let mut queue = self.queue.lock();
        let is_claimed = queue.promised < queue.waiting;
        queue.promised += usize::from(is_claimed);
        is_claimed
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        let mut queue = self.0.queue.lock();
        queue.waiting = queue.waiting.saturating_sub(1);
        queue.promised = queue.promised.saturating_sub(1);
        self.1.waiting.fetch_sub(1, Ordering::SeqCst);
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;
    use tokio::runtime::Builder;

    use super::*;

    fn run(test: impl Future<Output = ()>) {
        Builder::new_current_thread().enable_time().build().unwrap().block_on(test);
    }

    #[test]
    fn one_stalled_request_ends_for_each_that_waits() {
        run(async {
            let (turns, line) = (Turns::new(2), Line::default());
            let held = [turns.next(&line).await, turns.next(&line).await];
            assert!(held.iter().all(Option::is_some) && !turns.claim(), "nobody waits");
            let (mut first, mut second) = (Box::pin(turns.next(&line)), Box::pin(turns.next(&line)));
            assert!((&mut first).now_or_never().is_none() && (&mut second).now_or_never().is_none());
            assert!(turns.claim() && turns.claim() && !turns.claim());
            drop(held);
            let held = [first.await, second.await];
            assert!(held.iter().all(Option::is_some) && !turns.claim());
        });
    }

    #[test]
    fn a_connection_with_many_requests_does_not_keep_the_others_out() {
        run(async {
            let (turns, greedy, modest) = (Turns::new(6), Line::default(), Line::default());
            let mut held = Vec::new();
            for _ in 0..6 {
                held.extend(turns.next(&greedy).await);
            }
            let mut many: Vec<_> = (0..6).map(|_| Box::pin(turns.next(&greedy))).collect();
            assert!(many.iter_mut().all(|turn| turn.now_or_never().is_none()));
            assert!(turns.next(&greedy).now_or_never().is_some_and(|turn| turn.is_none()), "too many wait");
            let mut one = Box::pin(turns.next(&modest));
            assert!((&mut one).now_or_never().is_none(), "it may wait nevertheless");
            held.truncate(1);
            assert!((&mut one).now_or_never().is_some_and(|turn| turn.is_some()), "fewer are before it");
        });
    }
}
