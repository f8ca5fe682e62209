//! Recently written files, whose timestamps do not yet prove that nothing changes.
//!
//! The system sets the time of a file when a write begins, and some of the bytes may arrive long after that: a reader
//! in between sees the new time together with old bytes, and no later change of the time tells. (Git calls such an
//! index entry racily clean.) So what is read of a file that was written a moment ago is read again later: 1.5 seconds
//! after the write began, then after 3, 6, 12, 24 and 48 seconds. A write that takes up to 3 seconds is followed by
//! such a refresh within 1.5 seconds of its end, a longer one within as much time as it took, and a store through a
//! shared map by the last one at the latest: by then the kernel has written the page back, and the next store sets a
//! new time.
//!
//! No clock is trusted with that: a time in the future counts from when it was first seen, and while the clock was set
//! a moment ago, every file may have been written a moment ago.

use std::collections::HashMap;
#[cfg(target_os = "linux")]
use std::fs::Metadata;
use std::mem;
#[cfg(target_os = "linux")]
use std::os::unix::fs::MetadataExt;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

#[cfg(target_os = "linux")]
use super::error::system_time;
use crate::sync::{Condvar, Mutex};

/// The age of a file at its first refresh; each further refresh is at twice the age of the one before.
const FIRST_REFRESH: Duration = Duration::from_millis(1500);
const REFRESHES: u32 = 6;
/// Of the age at which a file makes its dataset be refreshed, this part at least is between two refreshes.
const PART_BETWEEN: u32 = 4;
/// A wait for nothing in particular.
const LONG: Duration = Duration::from_secs(1 << 20);

/// The refreshes that are due, of all datasets of a mount. One thread waits for them.
#[derive(Debug, Default)]
pub(crate) struct RefreshQueue {
    state: Mutex<Due>,
    changed: Condvar,
    clock: WallClock,
}

#[derive(Debug, Default)]
struct Due {
    /// By the number of the dataset.
    at: HashMap<u64, Instant>,
    woken: bool,
}

impl RefreshQueue {
    /// Waits until a refresh is due, removes it, and returns the number of its dataset. Waits no longer than `at_most`,
    /// if there is a limit, and not after [`RefreshQueue::wake`]: `None` if no refresh is due then.
    pub(crate) fn next(&self, at_most: Option<Duration>) -> Option<u64> {
        // so that it is known within a moment when the clock was set; where no file is open the next record looks
        self.clock.look(Now::get());
        let mut due = self.state.lock();
        let end = at_most.map(|at_most| Instant::now() + at_most);
        loop {
            if mem::take(&mut due.woken) {
                return None;
            }
            let now = Instant::now();
            let first = due.at.iter().min_by_key(|(_, at)| **at).map(|(number, at)| (*number, *at));
            match first {
                Some((number, at)) if at <= now => {
                    due.at.remove(&number);
                    return Some(number);
                }
                _ if end.is_some_and(|end| end <= now) => return None,
                _ => {}
            }
            let until = first.map(|(_, at)| at).into_iter().chain(end).min();
            self.changed.wait_for(&mut due, until.map_or(LONG, |until| until - now));
        }
    }

    /// Ends the wait of [`RefreshQueue::next`], or the next one.
    pub(crate) fn wake(&self) {
        self.state.lock().woken = true;
        self.changed.notify_all();
    }

    fn insert(&self, number: u64, at: Instant) {
        let mut due = self.state.lock();
        due.at.entry(number).and_modify(|known| *known = at.min(*known)).or_insert(at);
        drop(due);
        self.changed.notify_one();
    }
}

/// Tells when one dataset has to be refreshed, since files of it were written a moment before they were read.
#[derive(Debug)]
pub(crate) struct RecentWrites {
    number: u64,
    queue: Arc<RefreshQueue>,
    next: Mutex<NextRefresh>,
    /// When the version was first seen, if another one was seen before: then its files are no older than that, whatever
    /// the clock of a file server says.
    first_seen: Option<Instant>,
    /// The latest times of files that were in the future when they were seen, and when each was first seen: of the
    /// content (mtime, which programs can set) and of the attributes (ctime).
    future: Mutex<[Option<(SystemTime, Instant)>; 2]>,
}

#[derive(Debug, Default)]
struct NextRefresh {
    due: Option<Instant>,
    /// When the last refresh began.
    last: Option<Instant>,
}

impl RecentWrites {
    /// Creates the record of a dataset, whose refreshes `queue` gets under `number`. `first_seen` is when this version
    /// of it was first seen, if another one was seen before.
    pub(crate) fn new(number: u64, queue: Arc<RefreshQueue>, first_seen: Option<Instant>) -> Arc<Self> {
        Arc::new(Self { number, queue, next: Mutex::default(), first_seen, future: Mutex::default() })
    }

    /// Creates a record for a dataset that is never refreshed.
    pub(crate) fn ignored() -> Arc<Self> {
        Self::new(0, Arc::default(), None)
    }

    /// Records that a file with this metadata is read from now on.
    #[cfg(target_os = "linux")]
    pub(super) fn record(&self, metadata: &Metadata) {
        let modified = system_time(metadata.mtime(), metadata.mtime_nsec());
        let changed = system_time(metadata.ctime(), metadata.ctime_nsec());
        self.record_times([modified, changed]);
    }

    /// Records that a file with these times (mtime and ctime) is read from now on.
    pub(super) fn record_times(&self, times: [SystemTime; 2]) {
        self.record_at(times, Now::get());
    }

    fn record_at(&self, times: [SystemTime; 2], now: Now) {
        let age = self.age(times, now);
        if let Some(delay) = next_refresh(age) {
            let due = now.monotonic + delay;
            let earliest = self.next.lock().last.map(|last| last + age.saturating_add(delay) / PART_BETWEEN);
            self.set_due(earliest.map_or(due, |earliest| due.max(earliest)));
        }
    }

    /// Returns how long ago a file with these times (mtime and ctime) was last written to or changed; less if that is
    /// not known. A program that has set a time in the future has a clock that is ahead: the file is at least as old as
    /// the time that has passed since this or a later time was first seen.
    fn age(&self, times: [SystemTime; 2], now: Now) -> Duration {
        let since = |at: Instant| now.monotonic.saturating_duration_since(at);
        let age = |(time, latest): (SystemTime, &mut Option<(SystemTime, Instant)>)| {
            if let Ok(age) = now.wall.duration_since(time) {
                return age;
            }
            let (_, seen) = *latest.insert(latest.filter(|(known, _)| *known >= time).unwrap_or((time, now.monotonic)));
            since(seen)
        };
        let age = times.into_iter().zip(&mut *self.future.lock()).map(age).min().unwrap_or_default();
        let bounds = [self.queue.clock.look(now), self.first_seen.map(since)];
        bounds.into_iter().flatten().fold(age, Duration::min)
    }

    /// Records that something about a file has changed that its [`ObjectVersion`](super::ObjectVersion) does not show:
    /// a refresh is due now.
    pub(crate) fn record_change(&self) {
        self.set_due(Instant::now());
    }

    pub(crate) fn is_due(&self) -> bool {
        self.next.lock().due.is_some_and(|at| at <= Instant::now())
    }

    pub(crate) fn is_pending(&self) -> bool {
        self.next.lock().due.is_some()
    }

    /// Forgets what was recorded: a refresh begins, and everything is read again.
    pub(crate) fn clear(&self) {
        *self.next.lock() = NextRefresh { due: None, last: Some(Instant::now()) };
    }

    /// Queues the refresh that is due later, if there is one: the queue keeps one time for each dataset, the earliest,
    /// and has removed it.
    pub(crate) fn requeue(&self) {
        let due = self.next.lock().due;
        due.into_iter().for_each(|at| self.queue.insert(self.number, at));
    }

    /// Records that a refresh is due at this time, unless one is due before.
    pub(crate) fn set_due(&self, at: Instant) {
        let mut next = self.next.lock();
        if next.due.is_none_or(|known| known > at) {
            next.due = Some(at);
            drop(next);
            self.queue.insert(self.number, at);
        }
    }
}

/// Returns the time until the next refresh of a file of this age; `None` if it needs no more.
fn next_refresh(age: Duration) -> Option<Duration> {
    (0..REFRESHES).map(|n| FIRST_REFRESH * 2u32.pow(n)).find(|at| *at > age).map(|at| at - age)
}

/// The clock counts as set if it is off by more than this from what it should have become. The system is not asked for
/// both of its clocks at once: a thread may have to wait in between.
const TOLERANCE: Duration = Duration::from_secs(1);

/// A moment on both clocks: the one that files get their times from, and the one that nobody can set.
#[derive(Clone, Copy, Debug)]
struct Now {
    wall: SystemTime,
    monotonic: Instant,
}

impl Now {
    fn get() -> Self {
        Self { wall: SystemTime::now(), monotonic: Instant::now() }
    }
}

/// Notices when the system's clock is set. Has what both clocks said when the watch began or the clock had been set
/// last, and when it was set.
#[derive(Debug)]
struct WallClock(Mutex<(Now, Option<Instant>)>);

impl Default for WallClock {
    fn default() -> Self {
        Self(Mutex::new((Now::get(), None)))
    }
}

impl WallClock {
    /// Looks at the clocks. Returns the time since the clock was set, at most: what is known of ages by the times of
    /// files may be wrong by any amount, if it is more than that. A machine that was suspended looks the same.
    fn look(&self, now: Now) -> Option<Duration> {
        let mut state = self.0.lock();
        let (reference, set_at) = &mut *state;
        let passed = now.monotonic.saturating_duration_since(reference.monotonic);
        let off_by = |expected| now.wall.duration_since(expected).unwrap_or_else(|behind| behind.duration());
        if reference.wall.checked_add(passed).map(off_by).is_none_or(|error| error > TOLERANCE) {
            (*reference, *set_at) = (now, Some(now.monotonic));
        }
        set_at.map(|at| now.monotonic.saturating_duration_since(at))
    }
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

    fn after(start: Now, passed: Duration) -> Now {
        Now { wall: start.wall + passed, monotonic: start.monotonic + passed }
    }

    #[test]
    fn the_age_is_that_of_the_latest_time() {
        let (recent, now) = (RecentWrites::ignored(), Now::get());
        assert_eq!(recent.age([now.wall - ms(5000), now.wall - ms(7)], now), ms(7), "the attributes changed last");
        assert_eq!(recent.age([now.wall - ms(7), now.wall - ms(5000)], now), ms(7));
        assert_eq!(recent.age([now.wall - ms(7000), now.wall - ms(5000)], now), ms(5000));
    }

    #[test]
    fn a_time_in_the_future_counts_from_when_it_was_first_seen() {
        let (recent, start) = (RecentWrites::ignored(), Now::get());
        let (old, day) = (start.wall - ms(1_000_000), ms(24 * 3_600_000));
        assert_eq!(recent.age([old, start.wall + day], start), ms(0));
        let later = after(start, ms(10_000));
        assert_eq!(recent.age([old, start.wall + day], later), ms(10_000));
        assert_eq!(recent.age([old, start.wall + day / 2], later), ms(10_000), "written before the other one");
        assert_eq!(recent.age([old, start.wall + day + ms(1)], later), ms(0), "written after the other one");
        // a program has set a time, and the file is written later
        let [recent, far] = [(); 2].map(|()| RecentWrites::ignored());
        assert_eq!(recent.age([start.wall + 9 * day, old], start), ms(0));
        assert_eq!(recent.age([start.wall + 9 * day, later.wall - ms(5)], later), ms(5));
        assert_eq!(far.age([start.wall + day, old], later), ms(0), "each dataset has its own");
    }

    #[test]
    fn a_file_of_the_future_is_refreshed_no_more_often_than_another_one() {
        let (recent, start) = (RecentWrites::ignored(), Now::get());
        let future = start.wall + ms(24 * 3_600_000);
        let (mut passed, mut refreshes) = (ms(0), 0);
        while let Some(delay) = next_refresh(recent.age([future, future], after(start, passed))) {
            (passed, refreshes) = (passed + delay, refreshes + 1);
            assert!(refreshes <= REFRESHES, "it never ends");
        }
        assert_eq!((passed, refreshes), (ms(48_000), REFRESHES));
    }

    #[test]
    fn when_the_clock_was_set_no_file_counts_as_old() {
        for set_by in [ms(3 * 3_600_000), ms(2000)] {
            let (recent, start) = (RecentWrites::ignored(), Now::get());
            let written = start.wall;
            let ahead = |passed| Now { wall: start.wall + set_by + passed, monotonic: start.monotonic + passed };
            assert_eq!(recent.age([written, written], ahead(ms(500))), ms(0));
            assert_eq!(recent.age([written, written], ahead(ms(2500))), ms(2000));
            assert!(next_refresh(recent.age([written, written], ahead(ms(60_000)))).is_none());
            // or set back: the file seems to come from the future
            let (recent, start) = (RecentWrites::ignored(), Now::get());
            let behind = |passed| Now { wall: start.wall - set_by + passed, monotonic: start.monotonic + passed };
            assert_eq!(recent.age([written, written], behind(ms(500))), ms(0));
            assert_eq!(recent.age([written, written], behind(ms(1500))), ms(1000));
        }
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
        assert_eq!(queue.next(Some(long)), Some(8));
        assert_eq!(queue.next(Some(ms(1))), None);
        assert_eq!(queue.next(Some(long)), Some(7), "after a wait");
        assert!(a.is_due());
        a.clear();
        assert!(!a.is_due() && !a.is_pending() && queue.state.lock().at.is_empty());
        queue.wake();
        assert_eq!((queue.next(None), queue.next(Some(ms(1)))), (None, None), "woken once");
    }

    #[test]
    fn a_refresh_that_is_due_later_is_not_lost_with_an_earlier_one() {
        let queue = Arc::<RefreshQueue>::default();
        let recent = RecentWrites::new(7, Arc::clone(&queue), None);
        recent.requeue();
        assert_eq!(queue.next(Some(ms(1))), None);
        recent.record_change();
        // somebody else refreshes before the queue gives the number out
        recent.clear();
        recent.set_due(Instant::now() + ms(200));
        assert_eq!(queue.next(Some(ms(1))), Some(7));
        assert!(!recent.is_due());
        recent.requeue();
        assert_eq!(queue.next(Some(Duration::from_secs(60))), Some(7));
        assert!(recent.is_due());
    }

    #[test]
    fn files_that_were_written_one_after_another_do_not_have_their_dataset_refreshed_for_each() {
        let queue = Arc::<RefreshQueue>::default();
        let recent = RecentWrites::new(7, Arc::clone(&queue), None);
        let now = Now::get();
        let record = |age| recent.record_at([now.wall - age; 2], now);
        let due = || recent.next.lock().due.map(|due| due - now.monotonic);
        let refresh = || *recent.next.lock() = NextRefresh { due: None, last: Some(now.monotonic) };
        // the age at which these files make a refresh due is 12 seconds
        record(ms(11_990));
        assert_eq!(due(), Some(ms(10)));
        refresh();
        record(ms(11_980));
        record(ms(6500));
        assert_eq!(due(), Some(ms(3000)), "a quarter of it after a refresh");
        recent.record_change();
        assert!(recent.is_due(), "a change that was seen does not wait");
        refresh();
        record(ms(100));
        assert_eq!(due(), Some(ms(1400)), "later than a quarter of its age");
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

    #[test]
    fn a_clock_that_is_set_either_way_is_noticed_and_one_that_goes_on_is_not() {
        let (clock, start) = (WallClock::default(), Now::get());
        let after = |seconds: u64, set_by: i64| {
            let monotonic = start.monotonic + Duration::from_secs(seconds);
            let (wall, by) = (start.wall + Duration::from_secs(seconds), Duration::from_secs(set_by.unsigned_abs()));
            Now { wall: if set_by < 0 { wall - by } else { wall + by }, monotonic }
        };
        let seconds = |n| Some(Duration::from_secs(n));
        assert_eq!(clock.look(after(0, 0)), None);
        assert_eq!(clock.look(after(100_000, 0)), None);
        assert_eq!(clock.look(after(100_010, 3600)), seconds(0));
        assert_eq!(clock.look(after(100_030, 3600)), seconds(20));
        assert_eq!(clock.look(after(100_040, -3600)), seconds(0));
        assert_eq!(clock.look(after(100_041, -3600)), seconds(1));
        assert_eq!(clock.look(after(100_030, -3601)), seconds(0), "threads may come in any order");
    }
}
