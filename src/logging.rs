//! Where log lines go: to the terminal, a file or the system's log, and always to a short memory of the last ones.
//!
//! `RUST_LOG` says what is written (default `info`). A record is one line: messages hold names from data, so that control
//! characters in them are escaped.

use crate::sync::{Mutex, MutexGuard};
use std::borrow::Cow;
use std::collections::VecDeque;
use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, Write};
use std::os::unix::net::UnixDatagram;
use std::path::PathBuf;
use std::process;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use env_logger::{Builder, Env, Logger};
use log::{Level, LevelFilter, Log, Metadata, Record};
use thiserror::Error;

/// Lines that [`Recent`] holds.
const RECENT_LINES: usize = 100;

/// The longest line, in bytes: one message must not fill the memory of 100 lines or a datagram.
const LONGEST_LINE: usize = 2000;

/// Where the system's log listens.
const SYSLOG: &str = "/dev/log";

/// Where log lines go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// Standard error.
    Stderr,
    /// The end of a file, which is made if it is not there.
    File(PathBuf),
    /// The system's log; nowhere if there is none.
    Syslog,
}

/// Why logging could not start.
#[derive(Debug, Error)]
pub enum LoggingError {
    /// The log file cannot be written.
    #[error("cannot write the log file {}: {error}; choose another with --log-file", one_line(&.path.to_string_lossy()))]
    File {
        /// The file.
        path: PathBuf,
        /// The system's words.
        error: io::Error,
    },
    /// The process logs already.
    #[error("logging was started twice")]
    Twice,
}

/// The last log lines, of level info and above.
#[derive(Debug, Default)]
pub struct Recent(Mutex<VecDeque<String>>);

impl Recent {
    /// The lines, the oldest first, each with its line end.
    #[must_use]
    pub fn text(&self) -> String {
        locked(&self.0).iter().flat_map(|line| [line.as_str(), "\n"]).collect()
    }

    fn push(&self, line: String) {
        let mut lines = locked(&self.0);
        if lines.len() == RECENT_LINES {
            lines.pop_front();
        }
        lines.push_back(line);
    }
}

/// Starts logging for the whole process. A panic is logged too: a daemon's standard error leads nowhere.
///
/// # Errors
/// [`LoggingError::File`] if the file cannot be opened, [`LoggingError::Twice`] on a second call.
pub fn start(target: Target, recent: Arc<Recent>) -> Result<(), LoggingError> {
    let filter = Builder::from_env(Env::default().default_filter_or("info,fuser=error")).build();
    let most = filter.filter().max(LevelFilter::Info);
    let logger = Tee { filter, recent, sink: Sink::open(target)? };
    log::set_boxed_logger(Box::new(logger)).map_err(|_| LoggingError::Twice)?;
    log::set_max_level(most);
    std::panic::set_hook(Box::new(|panic| log::error!("this is a bug in volfs: {panic}")));
    Ok(())
}

/// `text` on one line and without control characters or marks that change the direction of writing: a name from data must
/// not move the cursor, colour the terminal or look like another name.
#[must_use]
pub fn one_line(text: &str) -> Cow<'_, str> {
    if !text.chars().any(is_unprintable) {
        return Cow::Borrowed(text);
    }
    let mut clean = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        if is_unprintable(c) { clean.extend(c.escape_default()) } else { clean.push(c) }
    }
    Cow::Owned(clean)
}

fn is_unprintable(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}')
}

/// Hands each record to the memory and, if `RUST_LOG` wants it, to the sink.
struct Tee {
    filter: Logger,
    recent: Arc<Recent>,
    sink: Sink,
}

impl Log for Tee {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.level() <= least_of(metadata.target()) || self.filter.enabled(metadata)
    }

    fn log(&self, record: &Record<'_>) {
        let remembered = record.level() <= least_of(record.target());
        let written = self.filter.matches(record);
        if !remembered && !written {
            return;
        }
        let message = record.args().to_string();
        let mut message = one_line(&message);
        if message.len() > LONGEST_LINE {
            let end = (0..=LONGEST_LINE).rev().find(|&end| message.is_char_boundary(end)).unwrap_or(0);
            message = Cow::Owned(format!("{}...", &message[..end]));
        }
        let line = format!("{} {:5} {}: {message}", timestamp(SystemTime::now()), record.level(), record.target());
        if written {
            self.sink.write(record.level(), &line, &message);
        }
        if remembered {
            self.recent.push(line);
        }
    }

    fn flush(&self) {}
}

/// What is remembered of a part of the program. The FUSE library warns of all that a read-only file system does not do.
fn least_of(target: &str) -> Level {
    if target.starts_with("fuser") { Level::Error } else { Level::Info }
}

enum Sink {
    Stderr,
    File(Mutex<File>),
    Syslog(Option<UnixDatagram>),
}

impl Sink {
    fn open(target: Target) -> Result<Self, LoggingError> {
        Ok(match target {
            Target::Stderr => Self::Stderr,
            Target::File(path) => match File::options().append(true).create(true).open(&path) {
                Ok(file) => Self::File(Mutex::new(file)),
                Err(error) => return Err(LoggingError::File { path, error }),
            },
            // a system's log that is slow must not make us slow
            Target::Syslog => {
                Self::Syslog(UnixDatagram::unbound().ok().filter(|socket| socket.set_nonblocking(true).is_ok()))
            }
        })
    }

    /// A line that cannot be written is lost: there is nobody to tell.
    fn write(&self, level: Level, line: &str, message: &str) {
        match self {
            Self::Stderr => drop(writeln!(io::stderr().lock(), "{line}")),
            // one call, so that lines of two processes do not mix
            Self::File(file) => drop(locked(file).write_all(format!("{line}\n").as_bytes())),
            Self::Syslog(Some(socket)) => {
                drop(socket.send_to(syslog_datagram(level, message).as_bytes(), SYSLOG));
            }
            Self::Syslog(None) => {}
        }
    }
}

/// The message with its priority (facility daemon); the log's keeper puts the time before it.
fn syslog_datagram(level: Level, message: &str) -> String {
    let severity = match level {
        Level::Error => 3,
        Level::Warn => 4,
        Level::Info => 6,
        Level::Debug | Level::Trace => 7,
    };
    format!("<{}>volfs[{}]: {message}", 3 * 8 + severity, process::id())
}

/// UTC to the millisecond, as in `2026-11-21T10:14:05.250Z`.
#[must_use]
pub fn timestamp(time: SystemTime) -> String {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    let (year, month, day) = civil(since.as_secs() / 86_400);
    let second = since.as_secs() % 86_400;
    let mut text = format!("{year:04}-{month:02}-{day:02}T");
    let (h, m, s) = (second / 3600, second / 60 % 60, second % 60);
    // writing to a String cannot fail
    let _ = write!(text, "{h:02}:{m:02}:{s:02}.{:03}Z", since.subsec_millis());
    text
}

/// Year, month and day of the Gregorian calendar, from days since 1970. Counted in years that begin in March, so that the
/// leap day is a year's last.
fn civil(days: u64) -> (u64, u64, u64) {
    const DAYS_OF_400_YEARS: u64 = 146_097;
    // 1 March of the year 0 lies 719,468 days before 1970
    let days = days + 719_468;
    let era = days / DAYS_OF_400_YEARS;
    let day = days % DAYS_OF_400_YEARS;
    let year = (day - day / 1460 + day / 36_524 - day / (DAYS_OF_400_YEARS - 1)) / 365;
    let of_year = day - (365 * year + year / 4 - year / 100);
    // months from March: lengths 31 30 31 30 31, again and again
    let month = (5 * of_year + 2) / 153;
    let of_month = of_year - (153 * month + 2) / 5 + 1;
    let (month, next) = if month < 10 { (month + 3, 0) } else { (month - 9, 1) };
    (era * 400 + year + next, month, of_month)
}

/// A log must go on after a panic elsewhere.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn only_the_last_lines_are_remembered() {
        let recent = Recent::default();
        (0..150).for_each(|i| recent.push(format!("line {i}")));
        let text = recent.text();
        assert_eq!(text.lines().count(), 100);
        assert!(text.starts_with("line 50\n") && text.ends_with("line 149\n"));
    }

    #[test]
    fn a_name_cannot_start_a_line_or_move_the_cursor() {
        assert_eq!(one_line("north.zgy"), "north.zgy");
        assert_eq!(one_line("a\nb\x1b[2Jc"), "a\\nb\\u{1b}[2Jc");
        assert_eq!(one_line("gpj\u{202e}.zgy \u{9b}"), "gpj\\u{202e}.zgy \\u{9b}");
        assert_eq!(one_line("Ünïcode 地震"), "Ünïcode 地震");
    }

    #[test]
    fn dates_are_right() {
        let at = |seconds| timestamp(UNIX_EPOCH + Duration::from_millis(seconds));
        assert_eq!(at(0), "1970-01-01T00:00:00.000Z");
        assert_eq!(at(951_782_400_000), "2000-02-29T00:00:00.000Z");
        assert_eq!(at(1_709_251_199_999), "2024-02-29T23:59:59.999Z");
        assert_eq!(at(1_709_251_200_000), "2024-03-01T00:00:00.000Z");
        assert_eq!(at(4_107_542_400_000), "2100-03-01T00:00:00.000Z");
    }

    #[test]
    fn a_record_reaches_memory_and_file_once() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        let recent = Arc::new(Recent::default());
        let filter = Builder::new().parse_filters("error").build();
        let sink = Sink::open(Target::File(path.clone())).unwrap();
        let tee = Tee { filter, recent: Arc::clone(&recent), sink };
        for level in [Level::Error, Level::Info, Level::Debug] {
            tee.log(&Record::builder().level(level).target("t").args(format_args!("m\n{level}")).build());
        }
        assert_eq!(std::fs::read_to_string(path).unwrap().lines().count(), 1);
        assert_eq!(recent.text().lines().count(), 2);
        assert!(recent.text().contains(" INFO  t: m\\nINFO\n"), "{}", recent.text());
    }

    #[test]
    fn a_long_message_is_cut() {
        let recent = Arc::new(Recent::default());
        let filter = Builder::new().parse_filters("off").build();
        let tee = Tee { filter, recent: Arc::clone(&recent), sink: Sink::Syslog(None) };
        let long = "ä".repeat(LONGEST_LINE);
        tee.log(&Record::builder().level(Level::Warn).args(format_args!("{long}")).build());
        assert!(recent.text().len() < LONGEST_LINE + 100);
    }

    #[test]
    fn syslog_knows_the_severity() {
        assert!(syslog_datagram(Level::Warn, "x").starts_with("<28>volfs["));
    }
}
