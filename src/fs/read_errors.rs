//! Handles failed reads of datasets: returns the client's error, and writes the line in the log. Each brick is logged
//! once, and the number of lines in a minute is bounded.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::num::NonZeroUsize;
use std::time::{Duration, Instant};

use lru::LruCache;

use super::error::FsError;
use super::handles::DatasetLayer;
use crate::array::ReadError;
use crate::catalog::OpenDataset;
use crate::format::FormatError;
use crate::sync::Mutex;
use crate::volume::{ArrayId, ArrayInfo};

/// The number of damaged bricks and objects that are remembered, so that each is logged once.
const REMEMBERED: NonZeroUsize = NonZeroUsize::new(1024).unwrap();
/// The greatest number of lines that are logged in one period; the others are counted.
const MAX_LINES: u32 = 50;
const PERIOD: Duration = Duration::from_secs(60);

/// The errors that were logged lately.
pub struct ReadErrors {
    state: Mutex<State>,
}

struct State {
    logged: LruCache<(ArrayId, u64), ()>,
    period_start: Instant,
    lines: u32,
    suppressed: u64,
}

/// Whether an error is logged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Decision {
    /// It was logged before, or there are too many lines in this period.
    Suppress,
    /// It is logged, after a line about the suppressed ones, if any.
    Log { suppressed: u64 },
}

impl Default for ReadErrors {
    fn default() -> Self {
        let logged = LruCache::new(REMEMBERED);
        Self { state: Mutex::new(State { logged, period_start: Instant::now(), lines: 0, suppressed: 0 }) }
    }
}

impl ReadErrors {
    /// Returns the client's error for a read of an array that failed. Logs one line with dataset, layer, LOD, brick and
    /// cause: once for each brick, or once for an object that holds many.
    pub fn client_error(&self, layer: Option<&DatasetLayer>, info: &ArrayInfo, error: &ReadError) -> FsError {
        if let Some(layer) = layer {
            self.log(layer, info, error);
        }
        FsError::Io
    }

    fn log(&self, layer: &DatasetLayer, info: &ArrayInfo, error: &ReadError) {
        let key = match &error.cause {
            FormatError::DamagedObject(_) | FormatError::Source(_) => {
                let mut hasher = DefaultHasher::new();
                error.cause.to_string().hash(&mut hasher);
                hasher.finish()
            }
            _ => info.grid.count().linear_of(&error.brick),
        };
        let Decision::Log { suppressed } = self.decide((info.id, key), Instant::now()) else { return };
        if suppressed > 0 {
            log::warn!("{suppressed} more reads failed, of bricks that are not named here");
        }
        let name = layer.open.dataset.layers().get(layer.layer).map_or("", |layer| &layer.name);
        log::warn!("{}: layer {name}, lod {}, {error}", layer.open.path, info.lod);
    }

    fn decide(&self, key: (ArrayId, u64), now: Instant) -> Decision {
        let mut state = self.state.lock();
        if state.logged.get(&key).is_some() {
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
        state.logged.put(key, ());
        Decision::Log { suppressed: std::mem::take(&mut state.suppressed) }
    }
}

/// Returns the client's error for content that could not be computed when a file was opened. Logs dataset and cause.
pub fn content_error(open: &OpenDataset, error: &FormatError) -> FsError {
    log::warn!("{}: {error}", open.path);
    if error.would_block() { FsError::WouldBlock } else { FsError::Io }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_brick_is_logged_once_and_a_flood_is_counted() {
        let (errors, array, start) = (ReadErrors::default(), ArrayId::next(), Instant::now());
        let line = Decision::Log { suppressed: 0 };
        assert_eq!(errors.decide((array, 0), start), line);
        assert_eq!(errors.decide((array, 0), start), Decision::Suppress);
        let lines = (1..200).filter(|n| errors.decide((array, *n), start) == line).count();
        assert_eq!(lines, MAX_LINES as usize - 1);
        let later = start + 2 * PERIOD;
        assert_eq!(errors.decide((array, 500), later), Decision::Log { suppressed: 150 });
        assert_eq!(errors.decide((array, 0), later), Decision::Suppress);
        assert_eq!(errors.decide((array, 199), later), line, "a suppressed brick is logged when it fails again");
    }
}
