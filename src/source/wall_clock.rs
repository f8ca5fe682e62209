//! The system's clock, as far as the ages of files depend on it. It may be set while a mount lives, and it may differ
//! from the clock of a file server.

use std::time::{Duration, Instant, SystemTime};

use crate::sync::Mutex;

/// The clock counts as set if it is off by more than this from what it should have become. The system is not asked for
/// both of its clocks at once: a thread may have to wait in between.
const TOLERANCE: Duration = Duration::from_secs(1);

/// Notices when the system's clock is set.
#[derive(Debug)]
pub(super) struct WallClock(Mutex<State>);

#[derive(Debug)]
struct State {
    /// What both clocks said when the watch began, or when the clock had been set last.
    reference: Now,
    set_at: Option<Instant>,
}

/// A moment on both clocks: the one that files get their times from, and the one that nobody can set.
#[derive(Clone, Copy, Debug)]
pub(super) struct Now {
    pub wall: SystemTime,
    pub monotonic: Instant,
}

impl Now {
    /// Returns this moment.
    pub(super) fn get() -> Self {
        Self { wall: SystemTime::now(), monotonic: Instant::now() }
    }
}

impl Default for WallClock {
    fn default() -> Self {
        Self(Mutex::new(State { reference: Now::get(), set_at: None }))
    }
}

impl WallClock {
    /// Looks at the clocks. Returns the time since the clock was set, at most: what is known of ages by the times of
    /// files may be wrong by any amount, if it is more than that. A machine that was suspended looks the same.
    pub(super) fn look(&self, now: Now) -> Option<Duration> {
        let mut state = self.0.lock();
        let passed = now.monotonic.saturating_duration_since(state.reference.monotonic);
        let expected = state.reference.wall.checked_add(passed);
        let error = expected.map(|expected| match now.wall.duration_since(expected) {
            Ok(ahead) => ahead,
            Err(behind) => behind.duration(),
        });
        if error.is_none_or(|error| error > TOLERANCE) {
            *state = State { reference: now, set_at: Some(now.monotonic) };
        }
        state.set_at.map(|at| now.monotonic.saturating_duration_since(at))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
