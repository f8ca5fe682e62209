//! Logging: a limit on lines sees to it that a source that fails does not fill a disk. Where the lines go is up to the
//! program, and in a process that only uses the library to that process.

#[cfg(feature = "mount")]
mod program;

use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher, Hash};
use std::num::NonZeroUsize;
use std::time::{Duration, Instant};

use lru::LruCache;

#[cfg(feature = "mount")]
pub(crate) use program::{LoggingError, RecentLines, Target, one_line, start, timestamp};

use crate::sync::{LazyPerProcess, Mutex};

const REMEMBERED: NonZeroUsize = NonZeroUsize::new(1024).unwrap();
/// The greatest number of lines that are logged in one period; the others are counted.
const MAX_LINES: u32 = 50;
const PERIOD: Duration = Duration::from_secs(60);
/// A message of [`warn_seldom`] is logged again after this time.
const AGAIN_AFTER: Duration = Duration::from_secs(600);

pub(crate) struct LogLimit {
    state: Mutex<State>,
    again_after: Duration,
}

struct State {
    logged: LruCache<u64, Instant>,
    period_start: Instant,
    lines: u32,
    suppressed: u64,
}

impl LogLimit {
    /// Admits a message again when this time has passed.
    pub(crate) fn new(again_after: Duration) -> Self {
        let logged = LruCache::new(REMEMBERED);
        let state = State { logged, period_start: Instant::now(), lines: 0, suppressed: 0 };
        Self { state: Mutex::new(state), again_after }
    }

    /// Returns `None` if a message, which `key` identifies, is suppressed `now`: it was logged before, or there are too
    /// many lines in this period. Otherwise returns how many were suppressed since the last line for the latter reason.
    pub(crate) fn admit(&self, key: impl Hash, now: Instant) -> Option<u64> {
        let key = BuildHasherDefault::<DefaultHasher>::default().hash_one(key);
        let mut state = self.state.lock();
        if state.logged.get(&key).is_some_and(|at| now.duration_since(*at) < self.again_after) {
            return None;
        }
        if now.duration_since(state.period_start) > PERIOD {
            (state.period_start, state.lines) = (now, 0);
        }
        if state.lines >= MAX_LINES {
            state.suppressed += 1;
            return None;
        }
        state.lines += 1;
        state.logged.put(key, now);
        Some(std::mem::take(&mut state.suppressed))
    }

    /// Logs a warning, which `key` identifies, unless it is suppressed.
    pub(crate) fn warn(&self, key: impl Hash, message: &str) {
        let Some(suppressed) = self.admit(key, Instant::now()) else { return };
        if suppressed > 0 {
            log::warn!("{suppressed} more failures that are not named here");
        }
        log::warn!("{message}");
    }
}

/// Logs a warning unless the same one was logged a few minutes ago, or many others just now.
pub(crate) fn warn_seldom(message: &str) {
    static LIMIT: LazyPerProcess<LogLimit> = LazyPerProcess::new(|| LogLimit::new(AGAIN_AFTER));
    LIMIT.warn(message, message);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_logged_once_and_a_flood_is_counted() {
        let (limit, start) = (LogLimit::new(Duration::MAX), Instant::now());
        let line = Some(0);
        assert_eq!(limit.admit(0, start), line);
        assert_eq!(limit.admit(0, start), None);
        let lines = (1..200).filter(|n| limit.admit(*n, start) == line).count();
        assert_eq!(lines, MAX_LINES as usize - 1);
        let later = start + 2 * PERIOD;
        assert_eq!(limit.admit(500, later), Some(150));
        assert_eq!(limit.admit(0, later), None);
        assert_eq!(limit.admit(199, later), line, "a suppressed message is logged when it comes again");
    }

    #[test]
    fn a_message_is_logged_again_after_a_while() {
        let (limit, start) = (LogLimit::new(PERIOD), Instant::now());
        assert_ne!(limit.admit("a", start), None);
        assert_eq!(limit.admit("a", start + PERIOD / 2), None);
        assert_ne!(limit.admit("a", start + PERIOD), None);
    }
}
