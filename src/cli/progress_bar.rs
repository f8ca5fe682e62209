//! A progress bar on standard error, drawn only if that is a terminal.

use std::sync::Arc;
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::sync::Mutex;

/// How often the bar is drawn. What is done sooner shows none.
const INTERVAL: Duration = Duration::from_millis(100);

/// The progress bar. Without a terminal it draws nothing.
#[derive(Clone)]
pub(crate) struct Bar {
    bar: ProgressBar,
    /// Whether it is gone for good. Locked while it is drawn: another thread may take it away.
    gone: Arc<Mutex<bool>>,
}

impl Bar {
    /// Makes a bar of this template.
    pub(crate) fn new(template: &str) -> Self {
        let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
        bar.set_style(style(template));
        Self { bar, gone: Arc::default() }
    }

    /// Makes a bar that draws nothing.
    pub(crate) fn hidden() -> Self {
        Self { bar: ProgressBar::hidden(), gone: Arc::default() }
    }

    /// Returns whether nothing is drawn.
    pub(crate) fn is_hidden(&self) -> bool {
        self.bar.is_hidden()
    }

    /// Draws the bar again and again, until the result is dropped. `draw` gets the time since the first call.
    pub(crate) fn follow(&self, draw: impl Fn(&ProgressBar, Duration) + Send + 'static) -> Shown {
        let (stop, stopped) = mpsc::channel::<()>();
        if !self.is_hidden() {
            let this = self.clone();
            spawn(move || {
                let began = Instant::now();
                while stopped.recv_timeout(INTERVAL) == Err(RecvTimeoutError::Timeout) {
                    let gone = this.gone.lock();
                    if !*gone {
                        draw(&this.bar, began.elapsed());
                    }
                }
            });
        }
        Shown { bar: self.clone(), stop }
    }

    /// Runs `print` while the bar is not there.
    pub(crate) fn suspend<T>(&self, print: impl FnOnce() -> T) -> T {
        self.bar.suspend(print)
    }

    /// Takes the bar away for good.
    pub(crate) fn clear(&self) {
        let mut gone = self.gone.lock();
        if !std::mem::replace(&mut *gone, true) {
            self.bar.finish_and_clear();
        }
    }
}

/// The bar while it is shown.
pub(crate) struct Shown {
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

/// Starts a thread for a bar. Without it the bar shows less, and nothing else changes.
pub(crate) fn spawn(work: impl FnOnce() + Send + 'static) {
    drop(thread::Builder::new().name("volfs-bar".into()).spawn(work));
}

/// Returns the style of a template.
pub(crate) fn style(template: &str) -> ProgressStyle {
    // the templates are valid: tests of their modules draw them
    ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar()).progress_chars("=> ")
}
