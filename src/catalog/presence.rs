//! Whether SOURCE itself is there. All that a mount shows fails at once when it is not, which is worth one log line.

use std::fs;
use std::io::ErrorKind;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::log_limit::{Decision, LogLimit};

/// Whether SOURCE was there at the last look.
pub struct Presence {
    source: PathBuf,
    is_gone: AtomicBool,
    /// Each change is worth a line, but a source may come and go many times a second.
    lines: LogLimit,
}

impl Presence {
    pub fn of(source: PathBuf) -> Self {
        Self { source, is_gone: AtomicBool::new(false), lines: LogLimit::new(Duration::ZERO) }
    }

    /// Looks at the disk, and logs one line if SOURCE has gone since the last look, or come back. Returns whether it is
    /// gone.
    pub fn look_if_gone(&self) -> bool {
        let is_absent = |kind| matches!(kind, ErrorKind::NotFound | ErrorKind::NotADirectory);
        let is_gone = fs::metadata(&self.source).is_err_and(|error| is_absent(error.kind()));
        let has_changed = self.is_gone.swap(is_gone, Ordering::Relaxed) != is_gone;
        if has_changed && self.lines.decide(is_gone, Instant::now()) != Decision::Suppress {
            let source = self.source.display();
            if is_gone {
                log::error!(
                    "the source {source} is gone: it was deleted, moved or unmounted, and nothing of it can be read \
                     until it is there again"
                );
            } else {
                log::info!("the source {source} is there again");
            }
        }
        is_gone
    }

    /// Returns whether it was gone at the last look.
    pub fn was_gone(&self) -> bool {
        self.is_gone.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_source_goes_and_comes_back() {
        let folder = tempfile::tempdir().unwrap();
        let source = folder.path().join("source");
        fs::create_dir(&source).unwrap();
        let presence = Presence::of(source.clone());
        assert!(!presence.look_if_gone() && !presence.was_gone());
        fs::remove_dir(&source).unwrap();
        assert!(presence.look_if_gone() && presence.look_if_gone() && presence.was_gone());
        fs::write(&source, "").unwrap();
        assert!(presence.was_gone() && !presence.look_if_gone() && !presence.was_gone());
        // a folder above it may be gone as well, or be a file now
        assert!(Presence::of(source.join("below")).look_if_gone());
    }
}
