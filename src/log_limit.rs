//! A limit on log lines: each message is logged once in a while, and the number of lines in a minute is bounded, so
//! that a source that fails does not fill a disk.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::num::NonZeroUsize;
use std::sync::LazyLock;
use std::time::{Duration, Instant};

use lru::LruCache;

use crate::sync::Mutex;

/// The number of messages that are remembered.
const REMEMBERED: NonZeroUsize = NonZeroUsize::new(1024).unwrap();
/// The greatest number of lines that are logged in one period; the others are counted.
const MAX_LINES: u32 = 50;
const PERIOD: Duration = Duration::from_secs(60);
/// A message of [`warn_seldom`] is logged again after this time.
const AGAIN_AFTER: Duration = Duration::from_secs(600);

/// The messages that were logged lately.
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

/// Whether a message is logged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Decision {
    /// It was logged before, or there are too many lines in this period.
    Suppress,
    /// It is logged, after a line about the suppressed ones, if any.
    Log {
        /// The messages since the last line that were suppressed because there were too many.
        suppressed: u64,
    },
}

impl LogLimit {
    /// Admits a message again when this time has passed.
    pub(crate) fn new(again_after: Duration) -> Self {
        let logged = LruCache::new(REMEMBERED);
        let state = State { logged, period_start: Instant::now(), lines: 0, suppressed: 0 };
        Self { state: Mutex::new(state), again_after }
    }

    /// Decides whether a message, which `key` identifies, is logged `now`.
    pub(crate) fn decide(&self, key: impl Hash, now: Instant) -> Decision {
        let mut hasher = DefaultHasher::new();
        key.hash(&mut hasher);
        let key = hasher.finish();
        let mut state = self.state.lock();
        if state.logged.get(&key).is_some_and(|at| now.duration_since(*at) < self.again_after) {
            return Decision::Suppress;
        }
        if now.duration_since(state.period_start) > PERIOD {
            (state.period_start, state.lines) = (now, 0);
        }
        if state.lines >= MAX_LINES {
            state.suppressed += 1;
            return Decision::Suppress;
        }
        state.lines += 1;
        state.logged.put(key, now);
        Decision::Log { suppressed: std::mem::take(&mut state.suppressed) }
    }
}

/// Logs a warning unless the same one was logged a few minutes ago, or many others just now.
pub(crate) fn warn_seldom(message: &str) {
    static LIMIT: LazyLock<LogLimit> = LazyLock::new(|| LogLimit::new(AGAIN_AFTER));
    let Decision::Log { suppressed } = LIMIT.decide(message, Instant::now()) else { return };
    if suppressed > 0 {
        log::warn!("{suppressed} more failures that are not named here");
    }
    log::warn!("{message}");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_logged_once_and_a_flood_is_counted() {
        let (limit, start) = (LogLimit::new(Duration::MAX), Instant::now());
        let line = Decision::Log { suppressed: 0 };
        assert_eq!(limit.decide(0, start), line);
        assert_eq!(limit.decide(0, start), Decision::Suppress);
        let lines = (1..200).filter(|n| limit.decide(*n, start) == line).count();
        assert_eq!(lines, MAX_LINES as usize - 1);
        let later = start + 2 * PERIOD;
        assert_eq!(limit.decide(500, later), Decision::Log { suppressed: 150 });
        assert_eq!(limit.decide(0, later), Decision::Suppress);
        assert_eq!(limit.decide(199, later), line, "a suppressed message is logged when it comes again");
    }

    #[test]
    fn a_message_is_logged_again_after_a_while() {
        let (limit, start) = (LogLimit::new(PERIOD), Instant::now());
        assert_ne!(limit.decide("a", start), Decision::Suppress);
        assert_eq!(limit.decide("a", start + PERIOD / 2), Decision::Suppress);
        assert_ne!(limit.decide("a", start + PERIOD), Decision::Suppress);
    }
}
