//! What waits to be written. Whoever adds to it never waits.

use std::collections::{HashSet, VecDeque};
use std::time::{Duration, Instant};

use super::object_version::ObjectVersion;
use super::stored_range::StoredRange;
use crate::sync::{Condvar, Mutex};

/// Bytes that wait at most; one range may wait in any case.
const MOST_BYTES: usize = 16 << 20;

/// Bytes to write.
pub(crate) struct Put {
    pub object: ObjectVersion,
    pub range: StoredRange,
    pub bytes: Box<dyn AsRef<[u8]> + Send>,
}

/// What became of bytes to write.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Pushed {
    /// They wait.
    Queued,
    /// They waited already.
    Known,
    /// There is no room for them, or nothing is written for now.
    Dropped,
}

/// What there is to do.
pub(crate) enum Next {
    Write(Put),
    /// Nothing waits.
    Nothing,
    /// Nothing waits, and nothing will.
    End,
}

/// A queue that is bounded in bytes.
#[derive(Default)]
pub(crate) struct WriteQueue {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    puts: VecDeque<Put>,
    /// The ranges that wait or are being written.
    known: HashSet<StoredRange>,
    bytes: usize,
    off_until: Option<Instant>,
    closed: bool,
    ended: bool,
}

impl WriteQueue {
    /// Adds bytes to write. `size` is the number of them.
    pub(crate) fn push(&self, put: Put, size: usize) -> Pushed {
        let mut state = self.state.lock();
        let is_off = state.off_until.is_some_and(|until| Instant::now() < until);
        if state.known.contains(&put.range) {
            return Pushed::Known;
        }
        if state.closed || is_off || (state.bytes > 0 && state.bytes.saturating_add(size) > MOST_BYTES) {
            return Pushed::Dropped;
        }
        state.bytes += size;
        state.known.insert(put.range);
        state.puts.push_back(put);
        drop(state);
        self.changed.notify_all();
        Pushed::Queued
    }

    /// Returns what is to be written next; waits for it if `wait` is set. [`WriteQueue::done`] has to follow.
    pub(crate) fn next(&self, wait: bool) -> Next {
        let mut state = self.state.lock();
        loop {
            if let Some(put) = state.puts.pop_front() {
                return Next::Write(put);
            }
            if state.closed {
                return Next::End;
            }
            if !wait {
                return Next::Nothing;
            }
            self.changed.wait(&mut state);
        }
    }

    /// Notes that a range of so many bytes no longer waits.
    pub(crate) fn done(&self, range: StoredRange, size: usize) {
        let mut state = self.state.lock();
        state.known.remove(&range);
        state.bytes = state.bytes.saturating_sub(size);
        drop(state);
        self.changed.notify_all();
    }

    /// Admits nothing for some time, and returns how many ranges waited, which are dropped.
    pub(crate) fn turn_off(&self, time: Duration) -> usize {
        let mut state = self.state.lock();
        state.off_until = Instant::now().checked_add(time);
        let dropped = std::mem::take(&mut state.puts);
        for put in &dropped {
            state.known.remove(&put.range);
        }
        state.bytes = 0;
        drop(state);
        self.changed.notify_all();
        dropped.len()
    }

    /// Admits nothing any more.
    pub(crate) fn close(&self) {
        self.state.lock().closed = true;
        self.changed.notify_all();
    }

    /// Returns whether it was closed.
    pub(crate) fn is_closed(&self) -> bool {
        self.state.lock().closed
    }

    /// Notes that the thread that writes has ended.
    pub(crate) fn end(&self) {
        self.state.lock().ended = true;
        self.changed.notify_all();
    }

    /// Waits until nothing waits or is being written; `false` if that takes longer than `limit`.
    #[cfg(test)]
    pub(crate) fn wait_until_empty(&self, limit: Duration) -> bool {
        self.wait_for(limit, |state| state.known.is_empty())
    }

    /// Waits until the thread that writes has ended; `false` if that takes longer than `limit`.
    pub(crate) fn wait_for_end(&self, limit: Duration) -> bool {
        self.wait_for(limit, |state| state.ended)
    }

    fn wait_for(&self, limit: Duration, condition: impl Fn(&State) -> bool) -> bool {
        let began = Instant::now();
        let mut state = self.state.lock();
        while !condition(&state) {
            let Some(left) = limit.checked_sub(began.elapsed()) else { return false };
            self.changed.wait_for(&mut state, left);
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn push(queue: &WriteQueue, offset: u64, size: usize) -> Pushed {
        let object = ObjectVersion::new("s", "d", "o", "v");
        let range = StoredRange { object: 1, offset, length: 1 };
        queue.push(Put { object, range, bytes: Box::new([0_u8]) }, size)
    }

    fn next(queue: &WriteQueue) -> Option<StoredRange> {
        if let Next::Write(put) = queue.next(false) { Some(put.range) } else { None }
    }

    #[test]
    fn what_waits_is_bounded_and_never_waits_twice() {
        let queue = WriteQueue::default();
        assert_eq!(push(&queue, 0, 2 * MOST_BYTES), Pushed::Queued, "one in any case");
        assert_eq!(push(&queue, 1, 1), Pushed::Dropped);
        assert_eq!(push(&queue, 0, 1), Pushed::Known);
        let first = next(&queue).unwrap();
        assert_eq!(push(&queue, 0, 1), Pushed::Known, "it is being written");
        assert!(!queue.wait_until_empty(Duration::from_millis(1)));
        queue.done(first, 2 * MOST_BYTES);
        assert!(queue.wait_until_empty(Duration::ZERO));
        assert_eq!(push(&queue, 0, MOST_BYTES), Pushed::Queued);
        assert_eq!(push(&queue, 1, 1), Pushed::Dropped);
    }

    #[test]
    fn while_it_is_off_everything_is_dropped() {
        let queue = WriteQueue::default();
        assert_eq!(push(&queue, 0, 1), Pushed::Queued);
        assert_eq!(queue.turn_off(Duration::from_secs(3600)), 1);
        assert_eq!((push(&queue, 0, 1), next(&queue)), (Pushed::Dropped, None));
        queue.turn_off(Duration::ZERO);
        assert_eq!(push(&queue, 0, 1), Pushed::Queued);
        queue.close();
        assert_eq!(push(&queue, 1, 1), Pushed::Dropped);
        assert!(next(&queue).is_some(), "what waits is written before the end");
        assert!(matches!(queue.next(true), Next::End));
    }
}
