//! Standard output, remarks, and a progress bar on standard error where that is a terminal.
//!
//! A closed pipe (`volfs info X | head -1`) is not an error.

use std::io::{self, IsTerminal, Write};
use std::sync::Arc;
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use super::error::CliError;
use crate::sync::Mutex;

/// Writes `text` and a line end.
pub(super) fn line(text: &str) -> Result<(), CliError> {
    print(&format!("{text}\n"))
}

/// Writes `text`.
pub(super) fn print(text: &str) -> Result<(), CliError> {
    part(text.as_bytes()).map(|_| ())
}

/// Writes a part of the output. Returns `false` once its reader is gone, so that the caller can stop.
pub(super) fn part(bytes: &[u8]) -> Result<bool, CliError> {
    write_to(&mut io::stdout().lock(), bytes)
        .map_err(|error| CliError::new(format!("cannot write the output: {error}"), ""))
}

/// Writes a part of the output to `out`. Returns `false` once its reader is gone.
pub(super) fn write_to(out: &mut impl Write, bytes: &[u8]) -> io::Result<bool> {
    match out.write_all(bytes).and_then(|()| out.flush()) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(false),
        Err(error) => Err(error),
    }
}

/// Prints a remark on standard error, apart from the output.
pub(super) fn note(text: &str) {
    // an error of standard error cannot be reported anywhere
    drop(writeln!(io::stderr(), "volfs: {text}"));
}

/// Returns whether the output may have colours: it goes to a terminal, and neither NO_COLOR nor TERM=dumb is set.
pub(super) fn coloured() -> bool {
    let unwanted = |name| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    io::stdout().is_terminal() && !unwanted("NO_COLOR") && std::env::var_os("TERM").is_none_or(|term| term != "dumb")
}

/// How often the bar is drawn. Work that takes less time shows no bar.
const INTERVAL: Duration = Duration::from_millis(100);

/// A progress bar. Without a terminal it draws nothing.
#[derive(Clone)]
pub(super) struct Bar {
    bar: ProgressBar,
    /// Whether it was taken away for good. Locked while it is drawn, since another thread may do that.
    gone: Arc<Mutex<bool>>,
}

impl Bar {
    pub(super) fn new(template: &str) -> Self {
        let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
        bar.set_style(style(template));
        Self { bar, gone: Arc::default() }
    }

    /// Makes a bar that draws nothing.
    pub(super) fn hidden() -> Self {
        Self { bar: ProgressBar::hidden(), gone: Arc::default() }
    }

    pub(super) fn is_hidden(&self) -> bool {
        self.bar.is_hidden()
    }

    /// Draws the bar at intervals until the result is dropped. `draw` gets the time since the first call.
    pub(super) fn follow(&self, draw: impl Fn(&ProgressBar, Duration) + Send + 'static) -> Shown {
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

    /// Runs `print` while the bar is off the terminal.
    pub(super) fn suspend<T>(&self, print: impl FnOnce() -> T) -> T {
        self.bar.suspend(print)
    }

    /// Takes the bar away for good.
    pub(super) fn clear(&self) {
        let mut gone = self.gone.lock();
        if !std::mem::replace(&mut *gone, true) {
            self.bar.finish_and_clear();
        }
    }
}

/// The bar while it is shown.
pub(super) struct Shown {
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
pub(super) fn spawn(work: impl FnOnce() + Send + 'static) {
    drop(thread::Builder::new().name("volfs-bar".into()).spawn(work));
}

pub(super) fn style(template: &str) -> ProgressStyle {
    // the templates are valid: tests of their modules draw them
    ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar()).progress_chars("=> ")
}
