//! Work on a source or a mount that may hang, with a deadline.
//!
//! A side process does such work, and stays behind if it hangs: a thread that waits for a file server keeps its whole
//! process from ending. An object store needs no side process, since each request has its own timeout.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::error::{Cause, CliError};
use super::output;
use super::processes::{status, status_field};
use super::source::store_behind;
use super::text::escaped_path;
use crate::mount::{Link, SideProcess};
use crate::source::is_url;

/// The time for a source to answer.
const LIMIT: Duration = Duration::from_secs(10);

/// The time between two looks at a side process that sends nothing.
const LOOK: Duration = Duration::from_millis(500);

/// Bytes of output in one message.
const PIECE: usize = 64 << 10;

/// The first byte of a message to the waiting process: output, a remark, the path that is looked at now, an error (with the
/// exit status in the next byte), and the end of the work.
const OUTPUT: u8 = b'o';
const NOTE: u8 = b'n';
const LOOKS: u8 = b'l';
const FAILED: u8 = b'f';
const DONE: u8 = b'd';

/// Where work prints to.
pub(super) enum Output<'a> {
    /// This process's standard output.
    Own,
    /// The process that waits for this one.
    Of(&'a Link),
}

impl Output<'_> {
    /// Writes a part of the output. Returns `false` once nobody reads it.
    pub(super) fn part(&self, bytes: &[u8]) -> Result<bool, CliError> {
        match self {
            Self::Own => output::part(bytes),
            Self::Of(link) => Ok(bytes.chunks(PIECE).all(|piece| link.send_waiting(&message(OUTPUT, piece)))),
        }
    }

    /// Prints a remark apart from the output.
    pub(super) fn note(&self, text: &str) {
        match self {
            Self::Own => output::note(text),
            Self::Of(link) => drop(link.send_waiting(&message(NOTE, text.as_bytes()))),
        }
    }

    /// Tells which path is looked at next: if nothing more comes, this path did not answer.
    pub(super) fn looks_at(&self, path: &Path) {
        if let Self::Of(link) = self {
            link.send_waiting(&message(LOOKS, path.as_os_str().as_bytes()));
        }
    }
}

fn message(kind: u8, text: &[u8]) -> Vec<u8> {
    [&[kind], text.get(..PIECE).unwrap_or(text)].concat()
}

fn failure(status: u8, text: &str) -> Vec<u8> {
    message(FAILED, &[&[status], text.as_bytes()].concat())
}

fn reported(status: u8, text: &[u8]) -> CliError {
    CliError::new(String::from_utf8_lossy(text), "").with_status(status)
}

fn timed_out(path: &Path, limit: Duration) -> CliError {
    let what = format!("the source {} does not answer within {} s", escaped_path(path), limit.as_secs());
    CliError::new(what, "is its server reachable?").with_cause(Cause::Timeout)
}

/// Runs a command that looks at `path`, and prints what it prints; fails if it does nothing for [`LIMIT`]. It must be
/// called before there are threads.
pub(super) fn run(path: &Path, work: impl FnOnce(&Output<'_>) -> Result<(), CliError>) -> Result<(), CliError> {
    if is_url(path) { work(&Output::Own) } else { run_within(LIMIT, path, work) }
}

/// Like [`run`], with another limit.
pub(super) fn run_within(
    limit: Duration,
    path: &Path,
    work: impl FnOnce(&Output<'_>) -> Result<(), CliError>,
) -> Result<(), CliError> {
    let mut work = Some(work);
    let started = start(|link| {
        let Some(work) = work.take() else { return };
        if let Some(url) = store_behind(path) {
            Output::Of(link).looks_at(&url);
        }
        let outcome = match work(&Output::Of(link)) {
            Ok(()) => vec![DONE],
            Err(error) => failure(error.exit_status(), &error.to_string()),
        };
        link.send_waiting(&outcome);
    });
    match (started, work) {
        (Some(process), _) => print(limit, path, &process),
        // without another process, this one may hang
        (None, work) => work.map_or(Ok(()), |work| work(&Output::Own)),
    }
}

/// Starts a side process in the working directory of this one, to which names are relative; `None` if the system refuses,
/// or this process has other threads.
fn start(work: impl FnOnce(&Link)) -> Option<SideProcess> {
    let here = std::env::current_dir();
    SideProcess::start(|link| {
        if let Ok(here) = here {
            let _ = std::env::set_current_dir(here);
        }
        work(link);
    })
    .ok()
}

/// Prints what a side process sends until it is done.
fn print(limit: Duration, path: &Path, process: &SideProcess) -> Result<(), CliError> {
    let mut looked_at = path.to_owned();
    loop {
        // the limit is none for a store, whose requests end by themselves
        let limit = if is_url(&looked_at) { None } else { Some(limit) };
        match receive(process, limit) {
            Received::Message(message) => match message.as_slice() {
                [OUTPUT, bytes @ ..] => {
                    if !output::part(bytes)? {
                        return Ok(());
                    }
                }
                [NOTE, text @ ..] => output::note(&String::from_utf8_lossy(text)),
                [LOOKS, path @ ..] => looked_at = PathBuf::from(OsStr::from_bytes(path)),
                [FAILED, status, text @ ..] => return Err(reported(*status, text)),
                _ => return Ok(()),
            },
            Received::Nothing(limit) => return Err(timed_out(&looked_at, limit)),
            Received::End => return Err(reported(1, b"internal error: the process that looked at the source ended")),
        }
    }
}

/// What came from a side process.
enum Received {
    Message(Vec<u8>),
    /// Nothing, and it has done nothing for this time.
    Nothing(Duration),
    /// It ended.
    End,
}

/// Waits for a message of a side process, for as long as it does something within each `limit`: one that reads a slow
/// source does, and one that hangs does not.
fn receive(process: &SideProcess, limit: Option<Duration>) -> Received {
    let (mut since, mut last) = (Instant::now(), None);
    loop {
        let deadline = Instant::now() + LOOK;
        if let Some(message) = process.link().receive(deadline) {
            return Received::Message(message);
        }
        if Instant::now() < deadline {
            return Received::End;
        }
        let now = switches(process.pid());
        if now.is_none() || (last.is_some() && now != last) {
            since = Instant::now();
        }
        last = now;
        if let Some(limit) = limit.filter(|limit| since.elapsed() >= *limit) {
            return Received::Nothing(limit);
        }
    }
}

/// Returns how often a process has waited and was interrupted; `None` if it computes just now.
fn switches(pid: u32) -> Option<Vec<String>> {
    let status = status(pid);
    let is_running = status_field(&status, "State").is_some_and(|state| state.starts_with('R'));
    let counts = status.lines().filter(|line| line.contains("ctxt_switches:")).map(str::to_owned).collect();
    (!is_running).then_some(counts)
}

/// Checks that a first look at `path` ends within `limit`: `look` may return what is wrong, as a line of text. It must be
/// called before there are threads.
pub(super) fn check(path: &Path, limit: Duration, look: impl FnOnce() -> Option<String>) -> Result<(), CliError> {
    let looked = start(|link| {
        link.send(&look().map_or_else(|| vec![DONE], |text| failure(1, &text)));
    });
    // without a further process, what is wrong is found later
    let Some(process) = looked else { return Ok(()) };
    let deadline = Instant::now() + limit;
    match process.link().receive(deadline).as_deref() {
        Some([FAILED, status, text @ ..]) => Err(reported(*status, text)),
        None if Instant::now() >= deadline => Err(timed_out(path, limit)),
        _ => Ok(()),
    }
}

/// Checks that a first look at a path ends within [`LIMIT`], unless it lies in an object store. It must be called before
/// there are threads.
pub(super) fn check_local(path: &Path, look: impl FnOnce()) -> Result<(), CliError> {
    if is_url(path) {
        return Ok(());
    }
    let looked = start(|link| {
        if store_behind(path).is_none() {
            look();
        }
        link.send(&[DONE]);
    });
    let Some(process) = looked else { return Ok(()) };
    match receive(&process, Some(LIMIT)) {
        Received::Nothing(limit) => Err(timed_out(path, limit)),
        _ => Ok(()),
    }
}
