//! Whether SOURCE itself is there. All that a mount shows fails at once when it is not, which is worth one log line.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::log_limit::{Decision, LogLimit};
use crate::source::Tree;

/// Whether SOURCE was there at the last look.
pub(crate) struct Presence {
    tree: Arc<dyn Tree>,
    is_gone: AtomicBool,
    /// Each change is worth a line, but a source may come and go many times a second.
    lines: LogLimit,
}

impl Presence {
    pub(crate) fn of(tree: Arc<dyn Tree>) -> Self {
        Self { tree, is_gone: AtomicBool::new(false), lines: LogLimit::new(Duration::ZERO) }
    }

    /// Looks at the source, and logs one line if SOURCE has gone since the last look, or come back. Returns whether it is
    /// gone.
    pub(crate) fn look_if_gone(&self) -> bool {
        let is_gone = self.tree.is_gone();
        let has_changed = self.is_gone.swap(is_gone, Ordering::Relaxed) != is_gone;
        if has_changed && self.lines.decide(is_gone, Instant::now()) != Decision::Suppress {
            let source = self.tree.source().display();
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
    pub(crate) fn was_gone(&self) -> bool {
        self.is_gone.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use super::*;
    use crate::source::LocalTree;

    fn presence_of(source: &Path) -> Presence {
        Presence::of(LocalTree::below(source, false, Arc::default()))
    }

    #[test]
    fn a_source_goes_and_comes_back() {
        let folder = tempfile::tempdir().unwrap();
        let source = folder.path().join("source");
        fs::create_dir(&source).unwrap();
        let presence = presence_of(&source);
        assert!(!presence.look_if_gone() && !presence.was_gone());
        fs::remove_dir(&source).unwrap();
        assert!(presence.look_if_gone() && presence.look_if_gone() && presence.was_gone());
        fs::write(&source, "").unwrap();
        assert!(presence.was_gone() && !presence.look_if_gone() && !presence.was_gone());
        // a folder above it may be gone as well, or be a file now
        assert!(presence_of(&source.join("below")).look_if_gone());
    }
}
