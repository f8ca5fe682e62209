//! When files were last used, in 4 bytes.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Ticks in a second.
const RATE: i64 = 32;
/// Nanoseconds of a tick.
const NANOSECONDS: i64 = 1_000_000_000 / RATE;
/// Files that were last used earlier than this before the process began count as equally old.
const OLDEST: Duration = Duration::from_secs(365 * 24 * 3600);
/// The time of use that a file has on disk is this late at most.
const LATE: u32 = 600 * RATE as u32;

/// The last tick.
pub(crate) const LATEST: u32 = u32::MAX - 1;

/// Converts times into ticks of 1/32 s, which last for three years.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    /// Seconds since 1970 at tick 0.
    start: i64,
}

impl Clock {
    pub(crate) fn new() -> Self {
        let start = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().saturating_sub(OLDEST);
        Self { start: i64::try_from(start.as_secs()).unwrap_or(0) }
    }

    /// Returns the tick of a time in seconds and nanoseconds since 1970.
    pub(crate) fn tick(self, seconds: i64, nanoseconds: i64) -> u32 {
        let ticks = seconds.saturating_sub(self.start).saturating_mul(RATE).saturating_add(nanoseconds / NANOSECONDS);
        u32::try_from(ticks.max(0)).unwrap_or(LATEST).min(LATEST)
    }

    pub(crate) fn now(self) -> u32 {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        self.tick(i64::try_from(now.as_secs()).unwrap_or(0), i64::from(now.subsec_nanos()))
    }

    /// Returns whether the time of use that a file has on disk is to be renewed.
    pub(crate) fn is_late(now: u32, used: u32) -> bool {
        now.saturating_sub(used) > LATE
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_follow_time_and_are_bounded() {
        let clock = Clock { start: 1000 };
        assert_eq!([clock.tick(1000, 0), clock.tick(1001, 0), clock.tick(1001, 999_999_999)], [0, 32, 63]);
        assert_eq!([clock.tick(-5, 0), clock.tick(i64::MIN, 0), clock.tick(i64::MAX, 0)], [0, 0, LATEST]);
        let clock = Clock::new();
        let now = clock.now();
        assert!(now > 364 * 24 * 3600 * 32 && now < u32::MAX / 2);
        assert!(!Clock::is_late(now, now + 1) && Clock::is_late(now, now - LATE - 1));
    }
}
