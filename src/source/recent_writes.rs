//! Recently written files, whose timestamps do not yet prove that nothing changes.
//!
//! The system sets the time of a file when a write begins, and some of the bytes may arrive long after that: a reader
//! in between sees the new time together with old bytes, and no later change of the time tells. (Git calls such an
//! index entry racily clean.) So what is read of a file that was written a moment ago is read again later: 1.5 seconds
//! after the write began, then after 3, 6, 12, 24 and 48 seconds. A write that takes up to 3 seconds is followed by
//! such a refresh within 1.5 seconds of its end, a longer one within as much time as it took, and a store through a
//! shared map by the last one at the latest: by then the kernel has written the page back, and the next store sets a
//! new time.

use std::collections::HashMap;
use std::fs::Metadata;
use std::mem;
use std::os::unix::fs::MetadataExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime};

use super::system_time;
use crate::sync::{Condvar, Mutex};

/// The age of a file at its first refresh; each further refresh is at twice the age of the one before.
const FIRST_REFRESH: Duration = Duration::from_millis(1500);
/// Number of refreshes.
const REFRESHES: u32 = 6;
/// A timestamp that is further in the future means nothing. A smaller difference may be that of two clocks.
const MAX_CLOCK_SKEW: Duration = Duration::from_secs(120);
/// A wait for nothing in particular.
const LONG: Duration = Duration::from_secs(1 << 20);
/// [`RecentWrites::due`] if nothing is due.
const NEVER: u64 = u64::MAX;

/// The refreshes that are due, of all datasets of a mount. One thread waits for them.
#[derive(Debug)]
pub struct RefreshQueue {
    state: Mutex<Due>,
    changed: Condvar,
    epoch: Instant,
}

/// The outcome of a wait for refreshes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// The dataset of this number is due.
    Due(u64),
    /// None is due yet.
    Nothing,
    /// The queue is closed.
    Closed,
}

#[derive(Debug, Default)]
struct Due {
    /// By the number of the dataset.
    at: HashMap<u64, Instant>,
    closed: bool,
    woken: bool,
}

impl Default for RefreshQueue {
    fn default() -> Self {
        Self { state: Mutex::default(), changed: Condvar::new(), epoch: Instant::now() }
    }
}

impl RefreshQueue {
    /// Waits until a refresh is due, and removes it; no longer than `at_most`, if there is a limit, and not after
    /// [`RefreshQueue::wake`].
    #[must_use]
    pub fn next(&self, at_most: Option<Duration>) -> Next {
        let mut due = self.state.lock();
        let end = at_most.map(|at_most| Instant::now() + at_most);
        loop {
            if due.closed {
                return Next::Closed;
            }
            if mem::take(&mut due.woken) {
                return Next::Nothing;
            }
            let now = Instant::now();
            let first = due.at.iter().min_by_key(|(_, at)| **at).map(|(number, at)| (*number, *at));
            match first {
                Some((number, at)) if at <= now => {
                    due.at.remove(&number);
                    return Next::Due(number);
                }
                _ if end.is_some_and(|end| end <= now) => return Next::Nothing,
                _ => {}
            }
            let until = first.map(|(_, at)| at).into_iter().chain(end).min();
            due = self.changed.wait_timeout(due, until.map_or(LONG, |until| until - now)).0;
        }
    }

    /// Ends the wait of [`RefreshQueue::next`], or the next one.
    pub fn wake(&self) {
        self.state.lock().woken = true;
        self.changed.notify_all();
    }

    /// Ends the wait for refreshes.
    pub fn close(&self) {
        self.state.lock().closed = true;
        self.changed.notify_all();
    }

    fn insert(&self, number: u64, at: Instant) {
        let mut due = self.state.lock();
        let earliest = due.at.get(&number).map_or(at, |known| at.min(*known));
        due.at.insert(number, earliest);
        drop(due);
        self.changed.notify_one();
    }

    fn nanoseconds(&self, at: Instant) -> u64 {
        u64::try_from(at.saturating_duration_since(self.epoch).as_nanos()).unwrap_or(NEVER - 1)
    }
}

/// Tells when one dataset has to be refreshed, since files of it were written a moment before they were read.
#[derive(Debug)]
pub struct RecentWrites {
    number: u64,
    queue: Arc<RefreshQueue>,
    /// When the next refresh is due, in nanoseconds of the queue's own time.
    due: AtomicU64,
    /// When the version was first seen, if another one was seen before: then its files are no older than that, whatever
    /// the clock of a file server says.
    first_seen: Option<Instant>,
}

impl RecentWrites {
    /// Creates the record of a dataset, whose refreshes `queue` gets under `number`. `first_seen` is when this version
    /// of it was first seen, if another one was seen before.
    #[must_use]
    pub fn new(number: u64, queue: Arc<RefreshQueue>, first_seen: Option<Instant>) -> Arc<Self> {
        Arc::new(Self { number, queue, due: AtomicU64::new(NEVER), first_seen })
    }

    /// Creates a record for a dataset that is never refreshed.
    #[must_use]
    pub fn ignored() -> Arc<Self> {
        Self::new(0, Arc::default(), None)
    }

    /// Records that a file with this metadata is read from now on.
    pub(super) fn record(&self, metadata: &Metadata) {
        let modified = system_time(metadata.mtime(), metadata.mtime_nsec());
        let changed = system_time(metadata.ctime(), metadata.ctime_nsec());
        let age = age(modified, changed, SystemTime::now());
        let age = self.first_seen.map_or(age, |seen| age.min(seen.elapsed()));
        if let Some(delay) = next_refresh(age) {
            self.set_due(Instant::now() + delay);
        }
    }

    /// Records that something about a file has changed that its [`FileStamp`](super::FileStamp) does not show: a
    /// refresh is due now.
    pub fn record_change(&self) {
        self.set_due(Instant::now());
    }

    /// Records that a refresh failed: it is due again after this time.
    pub fn record_failure(&self, again_after: Duration) {
        self.set_due(Instant::now() + again_after);
    }

    /// Returns whether a refresh is due now.
    #[must_use]
    pub fn is_due(&self) -> bool {
        let due = self.due.load(Ordering::Acquire);
        due != NEVER && due <= self.queue.nanoseconds(Instant::now())
    }

    /// Returns whether a refresh is due now or later.
    #[must_use]
    pub fn is_pending(&self) -> bool {
        self.due.load(Ordering::Acquire) != NEVER
    }

    /// Forgets what was recorded: a refresh begins, and everything is read again.
    pub fn clear(&self) {
        self.due.store(NEVER, Ordering::Release);
    }

    /// Queues the refresh that is due later, if there is one: the queue keeps one time for each dataset, the earliest,
    /// and has removed it.
    pub fn requeue(&self) {
        let due = self.due.load(Ordering::Acquire);
        if due != NEVER
            && let Some(at) = self.queue.epoch.checked_add(Duration::from_nanos(due))
        {
            self.queue.insert(self.number, at);
        }
    }

    fn set_due(&self, at: Instant) {
        let due = self.queue.nanoseconds(at);
        if self.due.fetch_min(due, Ordering::AcqRel) > due {
            self.queue.insert(self.number, at);
        }
    }
}

/// Returns how long ago a file was last written to or changed, by the times of its content and of its attributes.
fn age(modified: SystemTime, changed: SystemTime, now: SystemTime) -> Duration {
    let age_of = |time: SystemTime| match now.duration_since(time) {
        Ok(age) => age,
        Err(ahead) if ahead.duration() <= MAX_CLOCK_SKEW => Duration::ZERO,
        Err(_) => Duration::MAX,
    };
    age_of(modified).min(age_of(changed))
}

/// Returns the time until the next refresh of a file of this age; `None` if it needs no more.
fn next_refresh(age: Duration) -> Option<Duration> {
    (0..REFRESHES).map(|n| FIRST_REFRESH * 2u32.pow(n)).find(|at| *at > age).map(|at| at - age)
}

#[cfg(test)]
mod tests {
    use std::fs::{self, File};
    use std::time::UNIX_EPOCH;

    use super::*;

    const fn ms(milliseconds: u64) -> Duration {
        Duration::from_millis(milliseconds)
    }

    #[test]
    fn refreshes_follow_a_write_at_growing_distances() {
        assert_eq!(next_refresh(ms(0)), Some(ms(1500)));
        assert_eq!(next_refresh(ms(1400)), Some(ms(100)));
        assert_eq!(next_refresh(ms(1500)), Some(ms(1500)));
        assert_eq!(next_refresh(ms(5000)), Some(ms(1000)));
        assert_eq!(next_refresh(ms(47_999)), Some(ms(1)));
        assert_eq!(next_refresh(ms(48_000)), None);
        assert_eq!(next_refresh(Duration::MAX), None);
    }

    #[test]
    fn the_age_is_that_of_the_latest_time_that_means_something() {
        let now = UNIX_EPOCH + ms(1_000_000_000);
        assert_eq!(age(now - ms(5000), now - ms(7), now), ms(7), "the attributes changed last");
        assert_eq!(age(now - ms(7), now - ms(5000), now), ms(7));
        assert_eq!(age(now + ms(60_000), now - ms(5000), now), ms(0), "the clock of a server is a minute ahead");
        let far = now + ms(1_000_000);
        assert_eq!(age(far, now - ms(5000), now), ms(5000), "a time in the future that a program has set");
        assert_eq!(age(far, far, now), Duration::MAX);
    }

    #[test]
    fn refreshes_are_queued_in_order_and_once() {
        let queue = Arc::<RefreshQueue>::default();
        let [a, b] = [7, 8].map(|number| RecentWrites::new(number, Arc::clone(&queue), None));
        assert!(!a.is_due() && !a.is_pending());
        a.set_due(Instant::now() + ms(40));
        b.record_change();
        b.record_change();
        assert!(b.is_due() && a.is_pending());
        let long = Duration::from_secs(60);
        assert_eq!(queue.next(Some(long)), Next::Due(8));
        assert_eq!(queue.next(Some(ms(1))), Next::Nothing);
        assert_eq!(queue.next(Some(long)), Next::Due(7), "after a wait");
        assert!(a.is_due());
        a.clear();
        assert!(!a.is_due() && !a.is_pending() && queue.state.lock().at.is_empty());
        queue.wake();
        assert_eq!((queue.next(None), queue.next(Some(ms(1)))), (Next::Nothing, Next::Nothing), "woken once");
        queue.close();
        assert_eq!(queue.next(None), Next::Closed);
    }

    #[test]
    fn a_refresh_that_is_due_later_is_not_lost_with_an_earlier_one() {
        let queue = Arc::<RefreshQueue>::default();
        let recent = RecentWrites::new(7, Arc::clone(&queue), None);
        recent.requeue();
        assert_eq!(queue.next(Some(ms(1))), Next::Nothing);
        recent.record_change();
        // somebody else refreshes before the queue gives the number out
        recent.clear();
        recent.set_due(Instant::now() + ms(200));
        assert_eq!(queue.next(Some(ms(1))), Next::Due(7));
        assert!(!recent.is_due());
        recent.requeue();
        assert_eq!(queue.next(Some(Duration::from_secs(60))), Next::Due(7));
        assert!(recent.is_due());
    }

    #[test]
    fn a_file_that_was_just_written_is_read_again_and_an_old_one_is_not() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x");
        fs::write(&path, b"x").unwrap();
        let recent = RecentWrites::new(1, Arc::default(), None);
        // the change of the time is itself a change of attributes
        File::options().write(true).open(&path).unwrap().set_modified(UNIX_EPOCH).unwrap();
        recent.record(&fs::metadata(&path).unwrap());
        assert!(recent.is_pending());
        let recent = RecentWrites::new(1, Arc::default(), None);
        recent.record(&fs::metadata("/proc/self/exe").unwrap());
        let replaced = RecentWrites::new(1, Arc::default(), Some(Instant::now()));
        replaced.record(&fs::metadata("/proc/1").unwrap());
        assert!(replaced.is_pending(), "of a version that was first seen a moment ago");
    }
}
