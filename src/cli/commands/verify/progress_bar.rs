//! The progress bar: bricks, bytes, rate and time left, on standard error and only if that is a terminal.

use std::sync::Arc;
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::cli::text::size::Size;
use crate::sync::Mutex;
use crate::verify::Verification;

/// How often the bar is drawn.
const INTERVAL: Duration = Duration::from_millis(100);
/// The bar while the number of all bricks is not known, and then.
const COUNTING: &str = "{spinner} {human_pos} bricks{msg}, counting all";
const COUNTED: &str = "{spinner} [{bar:24}] {percent}% of {human_len} bricks{msg}, {eta} left";

/// The progress bar. Without a terminal it draws nothing.
#[derive(Clone)]
pub struct Bar {
    bar: ProgressBar,
    quick: bool,
    /// Whether it is gone for good. Locked while it is drawn: another thread may take it away.
    gone: Arc<Mutex<bool>>,
}

impl Bar {
    /// Makes the bar; `quick` if no bytes are read.
    pub fn new(quick: bool) -> Self {
        let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
        bar.set_style(style(COUNTING));
        Self { bar, quick, gone: Arc::default() }
    }

    /// Shows the progress of a verification until the result is dropped.
    pub fn follow(&self, verification: &Arc<Verification>) -> Shown {
        let (stop, stopped) = mpsc::channel::<()>();
        if self.bar.is_hidden() {
            return Shown { bar: self.clone(), stop };
        }
        // opens every volume once more, and so is worth it only for people
        let counting = Arc::clone(verification);
        spawn(move || counting.count());
        let (this, verification) = (self.clone(), Arc::clone(verification));
        spawn(move || {
            let began = Instant::now();
            while stopped.recv_timeout(INTERVAL) == Err(RecvTimeoutError::Timeout) {
                this.draw(&verification, began.elapsed());
            }
        });
        Shown { bar: self.clone(), stop }
    }

    fn draw(&self, verification: &Verification, since: Duration) {
        let gone = self.gone.lock();
        if *gone {
            return;
        }
        let progress = verification.progress();
        let done = progress.bricks.get();
        if let Some(total) = progress.total()
            && self.bar.length() != Some(total.max(done))
        {
            self.bar.set_length(total.max(done));
            self.bar.set_style(style(COUNTED));
        }
        let mut message = String::new();
        if !self.quick {
            let bytes = progress.bytes.get();
            let rate = bytes as f64 / since.as_secs_f64().max(0.001);
            message = format!(", {}, {}/s", Size::of(bytes), Size::of(rate as u64));
        }
        for (count, what) in [(progress.bad.get(), "bad"), (progress.unread.get(), "unread")] {
            if count > 0 {
                message.push_str(&format!(", {count} {what}"));
            }
        }
        self.bar.set_message(message);
        self.bar.set_position(done);
    }

    /// Runs `print` while the bar is not there.
    pub fn suspend<T>(&self, print: impl FnOnce() -> T) -> T {
        self.bar.suspend(print)
    }

    /// Takes the bar away for good.
    pub fn clear(&self) {
        let mut gone = self.gone.lock();
        if !std::mem::replace(&mut *gone, true) {
            self.bar.finish_and_clear();
        }
    }
}

/// The bar while it is shown.
pub struct Shown {
    bar: Bar,
    stop: Sender<()>,
}

impl Drop for Shown {
    fn drop(&mut self) {
        // the thread may be gone
        let _ = self.stop.send(());
        self.bar.clear();
    }
}

/// Starts a thread. Without it the bar shows less, and nothing else changes.
fn spawn(work: impl FnOnce() + Send + 'static) {
    drop(thread::Builder::new().name("volfs-bar".into()).spawn(work));
}

fn style(template: &str) -> ProgressStyle {
    // the templates are valid: a test draws them
    ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar()).progress_chars("=> ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_templates_are_valid() {
        for template in [COUNTING, COUNTED] {
            assert!(ProgressStyle::with_template(template).is_ok(), "{template}");
        }
    }
}
