//! What commands print: to standard output, and to standard error remarks and, on a terminal, a progress bar.
//!
//! A closed pipe (`volfs info X | head -1`) is not an error. What a side process prints, the process that waits for it
//! prints in its place.

use std::io::{self, IsTerminal, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::sync::{LazyLock, OnceLock};
use std::thread;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde_json::Value;

use super::error::CliError;
use super::layout::TextLayout;
use crate::mount::Link;
use crate::view::json_text;

/// Bytes of output in one message.
const PIECE: usize = 64 << 10;

/// The first byte of a message to the process that prints: output, or a remark.
pub(super) const OUTPUT: u8 = b'o';
pub(super) const NOTE: u8 = b'n';

/// In a side process, the connection to the process that prints in its place.
static PRINTER: OnceLock<Link> = OnceLock::new();

/// Lets the process at the other end print in place of this one.
pub(super) fn print_there(link: Link) {
    let _ = PRINTER.set(link);
}

/// Whether a message could not be sent. Then nothing more is, or the output would seem to be complete.
static LACKS_MESSAGES: AtomicBool = AtomicBool::new(false);

/// Sends a message to the process that prints in place of this one. Returns whether that gets it; `None` if this process
/// prints itself.
pub(super) fn send(kind: u8, text: &[u8]) -> Option<bool> {
    let printer = PRINTER.get()?;
    Some(send_all(&LACKS_MESSAGES, kind, text, |message| printer.send_waiting(message)))
}

/// Sends a message in pieces, unless an earlier one is lacking.
fn send_all(lacks: &AtomicBool, kind: u8, text: &[u8], send: impl Fn(&[u8]) -> bool) -> bool {
    let mut pieces = text.chunks(PIECE);
    let is_sent = !lacks.load(Ordering::Relaxed) && pieces.all(|piece| send(&[&[kind], piece].concat()));
    lacks.fetch_or(!is_sent, Ordering::Relaxed);
    is_sent
}

/// Writes `text` and a line end.
pub(super) fn line(text: &str) -> Result<(), CliError> {
    print(&format!("{text}\n"))
}

pub(super) fn print(text: &str) -> Result<(), CliError> {
    part(text.as_bytes()).map(|_| ())
}

pub(super) fn json(object: &Value) -> Result<(), CliError> {
    print(&json_text(object))
}

/// Prints the object of `--json`, or the text for people.
pub(super) fn object_or_text(
    json: bool,
    object: impl FnOnce() -> Value,
    write: impl FnOnce(&mut TextLayout),
) -> Result<(), CliError> {
    if json {
        return self::json(&object());
    }
    let mut layout = TextLayout::new(*COLOURED);
    write(&mut layout);
    print(layout.text())
}

/// Writes a part of the output. Returns `false` once its reader is gone, so that the caller can stop.
pub(super) fn part(bytes: &[u8]) -> Result<bool, CliError> {
    let written = send(OUTPUT, bytes).map_or_else(|| write_to(&mut io::stdout().lock(), bytes), Ok);
    written.map_err(|error| CliError::new(format!("cannot write the output: {error}"), ""))
}

/// Writes a part of the output to `out`. Returns `false` once its reader is gone.
pub(super) fn write_to(out: &mut impl Write, bytes: &[u8]) -> io::Result<bool> {
    match out.write_all(bytes).and_then(|()| out.flush()) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(false),
        Err(error) => Err(error),
    }
}

pub(super) fn note(text: &str) {
    if send(NOTE, text.as_bytes()).is_none() {
        // an error of standard error cannot be reported anywhere
        drop(writeln!(io::stderr(), "volfs: {text}"));
    }
}

/// Whether the output may have colours: it goes to a terminal, and neither NO_COLOR nor TERM=dumb is set. A side process
/// has this from its parent.
pub(super) static COLOURED: LazyLock<bool> = LazyLock::new(|| {
    let unwanted = |name| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    io::stdout().is_terminal() && !unwanted("NO_COLOR") && std::env::var_os("TERM").is_none_or(|term| term != "dumb")
});

/// How often the bar is drawn. Work that takes less time shows no bar.
const INTERVAL: Duration = Duration::from_millis(100);

/// Makes a progress bar, which draws nothing without a terminal. It shows nothing any more once it is finished and cleared.
pub(super) fn bar(template: &str) -> ProgressBar {
    ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr()).with_style(style(template))
}

/// Draws a bar at intervals until the result is dropped. `draw` gets the time since the first call.
pub(super) fn follow(bar: &ProgressBar, draw: impl Fn(&ProgressBar, Duration) + Send + 'static) -> Shown {
    let (stop, stopped) = mpsc::channel::<()>();
    if !bar.is_hidden() {
        let bar = bar.clone();
        spawn(move || {
            let began = Instant::now();
            while stopped.recv_timeout(INTERVAL) == Err(RecvTimeoutError::Timeout) {
                draw(&bar, began.elapsed());
            }
        });
    }
    Shown { bar: bar.clone(), _stop: stop }
}

pub(super) struct Shown {
    bar: ProgressBar,
    /// The thread that draws ends when this is dropped.
    _stop: Sender<()>,
}

impl Drop for Shown {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sync::Mutex;

    #[test]
    fn nothing_is_sent_after_a_piece_that_was_lost() {
        let (sent, lacks) = (Mutex::new(Vec::new()), AtomicBool::new(false));
        let send = |text: &[u8], most: usize| {
            send_all(&lacks, OUTPUT, text, |message| {
                let mut sent = sent.lock();
                let has_room = sent.len() < most;
                sent.extend(has_room.then(|| (message[0], message.len() - 1)));
                has_room
            })
        };
        assert!(send(b"abc", 9) && send(&[0; PIECE + 1], 9));
        assert!(!send(&[0; 2 * PIECE], 4), "its second piece is lost");
        assert!(!send(b"abc", 9), "or the output would seem to be whole");
        assert_eq!(*sent.lock(), [3, PIECE, 1, PIECE].map(|length| (OUTPUT, length)));
    }
}
