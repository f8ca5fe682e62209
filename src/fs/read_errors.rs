//! What the log says of bricks that cannot be read: each once, and not more than a reader of the log can bear.

use crate::sync::Mutex;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::num::NonZeroUsize;
use std::time::{Duration, Instant};

use lru::LruCache;

use super::handles::Belongs;
use crate::array::ReadError;
use crate::format::FormatError;
use crate::volume::{ArrayId, ArrayInfo};

/// Damaged bricks and objects that are remembered, so that each is reported once.
const REMEMBERED: NonZeroUsize = NonZeroUsize::new(1024).unwrap();
/// So many lines in so long a time; what is beyond them is counted.
const LINES: u32 = 50;
const TIME: Duration = Duration::from_secs(60);

/// What was reported lately.
pub struct Reports {
    state: Mutex<State>,
}

struct State {
    known: LruCache<(ArrayId, u64), ()>,
    since: Instant,
    lines: u32,
    unsaid: u64,
}

/// What is to be done about an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    /// It was reported, or there have been too many lines.
    Silence,
    /// A line; and before it one about those that were left out.
    Line { unsaid: u64 },
}

impl Default for Reports {
    fn default() -> Self {
        let known = LruCache::new(REMEMBERED);
        Self { state: Mutex::new(State { known, since: Instant::now(), lines: 0, unsaid: 0 }) }
    }
}

impl Reports {
    /// Reports a read that failed: one line for a brick, or for all that one object holds.
    pub fn add(&self, of: &Belongs, info: &ArrayInfo, error: &ReadError) {
        let what = match &error.cause {
            FormatError::DamagedObject(_) | FormatError::Source(_) => {
                let mut hasher = DefaultHasher::new();
                error.cause.to_string().hash(&mut hasher);
                hasher.finish()
            }
            _ => info.grid.count().linear_of(&error.brick),
        };
        let Verdict::Line { unsaid } = self.judge((info.id, what), Instant::now()) else { return };
        if unsaid > 0 {
            log::warn!("{unsaid} more reads failed, of bricks that are not named here");
        }
        let layer = of.open.dataset.layers().get(of.layer).map_or("", |layer| &layer.name);
        log::warn!("{}: layer {layer}, lod {}, {error}", of.open.path, info.lod);
    }

    fn judge(&self, what: (ArrayId, u64), now: Instant) -> Verdict {
        let mut state = self.state.lock();
        if state.known.get(&what).is_some() {
            return Verdict::Silence;
        }
        if now.duration_since(state.since) > TIME {
            (state.since, state.lines) = (now, 0);
        }
        if state.lines >= LINES {
            state.unsaid += 1;
            return Verdict::Silence;
        }
        state.lines += 1;
        state.known.put(what, ());
        Verdict::Line { unsaid: std::mem::take(&mut state.unsaid) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_brick_is_reported_once_and_a_flood_is_counted() {
        let (reports, array, start) = (Reports::default(), ArrayId::next(), Instant::now());
        let line = Verdict::Line { unsaid: 0 };
        assert_eq!(reports.judge((array, 0), start), line);
        assert_eq!(reports.judge((array, 0), start), Verdict::Silence);
        let lines = (1..200).filter(|n| reports.judge((array, *n), start) == line).count();
        assert_eq!(lines, LINES as usize - 1);
        let later = start + 2 * TIME;
        assert_eq!(reports.judge((array, 500), later), Verdict::Line { unsaid: 150 });
        assert_eq!(reports.judge((array, 0), later), Verdict::Silence);
        assert_eq!(reports.judge((array, 199), later), line, "what was left out is named when it fails again");
    }
}
