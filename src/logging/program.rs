//! The log of the program: writes records to standard error, a file or syslog, and keeps the last lines in memory.
//!
//! `RUST_LOG` selects what is written (default `info`). A record is one line: messages contain names from data, so
//! control characters in them are escaped.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, Write};
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};
use std::process;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use env_logger::{Builder, Env, Logger};
use humantime::format_rfc3339_millis;
use log::{Level, LevelFilter, Log, Metadata, Record};
use rustix::fs::{FileType, Mode, OFlags, fcntl_setfl, fstat};
use thiserror::Error;

use crate::memory;
use crate::safe_open::{self, OpenError};
use crate::sync::Mutex;

/// Lines that [`RecentLines`] keeps.
const KEPT_LINES: usize = 100;

/// The longest message, in bytes. It must fit a datagram, and must not fill the memory of the kept lines.
const MAX_MESSAGE_BYTES: usize = 2000;

const SYSLOG: &str = "/dev/log";

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Target {
    Stderr,
    /// The end of a file, which is created if it does not exist.
    File(PathBuf),
    /// Syslog; nowhere if the machine has none.
    Syslog,
}

#[derive(Debug, Error)]
pub(crate) enum LoggingError {
    #[error(
        "cannot write the log file {}: {error}; choose another with --log-file",
        one_line(&.path.to_string_lossy())
    )]
    File { path: PathBuf, error: OpenError },
    /// The log file may have been put there by another user, who could read the log.
    #[error(
        "the log file {} belongs to another user (id {owner}); choose another with --log-file",
        one_line(&.path.to_string_lossy())
    )]
    OthersFile { path: PathBuf, owner: u32 },
    #[error("logging was started twice")]
    Twice,
}

/// A ring of the last log lines of level info and above.
#[derive(Debug, Default)]
pub(crate) struct RecentLines(Mutex<VecDeque<String>>);

impl RecentLines {
    /// Returns the lines, oldest first, each with a newline.
    pub(crate) fn text(&self) -> String {
        self.0.lock().iter().flat_map(|line| [line.as_str(), "\n"]).collect()
    }

    fn push(&self, line: String) {
        let mut lines = self.0.lock();
        if lines.len() == KEPT_LINES {
            lines.pop_front();
        }
        lines.push_back(line);
    }
}

/// Starts logging for the whole process. Panics are logged too, since a daemon's standard error is /dev/null.
pub(crate) fn start(target: Target, recent: Arc<RecentLines>) -> Result<(), LoggingError> {
    let filter = Builder::from_env(Env::default().default_filter_or("info,fuser=error")).build();
    let max_level = filter.filter().max(LevelFilter::Info);
    let logger = Tee { filter, recent, sink: Sink::open(target)? };
    log::set_boxed_logger(Box::new(logger)).map_err(|_| LoggingError::Twice)?;
    log::set_max_level(max_level);
    std::panic::set_hook(Box::new(|panic| {
        let message = panic.to_string();
        let is_bug = !memory::is_out_of_memory(&message);
        log::error!("{}: {message}", if is_bug { "this is a bug in volfs" } else { "no memory was left" });
    }));
    Ok(())
}

/// Escapes control characters, line breaks included, and characters that change the direction of writing: a name from
/// data must not move the cursor, colour the terminal or look like another name.
pub(crate) fn one_line(text: &str) -> Cow<'_, str> {
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

/// Writes each record that `RUST_LOG` selects to the sink, and keeps those of level info and above.
struct Tee {
    filter: Logger,
    recent: Arc<RecentLines>,
    sink: Sink,
}

impl Log for Tee {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.level() <= kept_level(metadata.target()) || self.filter.enabled(metadata)
    }

    fn log(&self, record: &Record<'_>) {
        let kept = record.level() <= kept_level(record.target());
        let written = self.filter.matches(record);
        if !kept && !written {
            return;
        }
        let message = record.args().to_string();
        let mut message = one_line(&message);
        if message.len() > MAX_MESSAGE_BYTES {
            let end = (0..=MAX_MESSAGE_BYTES).rev().find(|&end| message.is_char_boundary(end)).unwrap_or(0);
            message = Cow::Owned(format!("{}...", &message[..end]));
        }
        let line = format!("{} {:5} {}: {message}", timestamp(SystemTime::now()), record.level(), record.target());
        if written {
            self.sink.write(record.level(), &line, &message);
        }
        if kept {
            self.recent.push(line);
        }
    }

    fn flush(&self) {}
}

/// Returns the level down to which records of `target` are kept. Of the FUSE library only errors are kept, since it
/// warns about every operation that a read-only file system does not implement.
fn kept_level(target: &str) -> Level {
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
            Target::File(path) => Self::File(Mutex::new(open_file(&path)?)),
            // a slow syslog must not block the process
            Target::Syslog => {
                let socket = UnixDatagram::unbound().ok();
                Self::Syslog(socket.filter(|socket| socket.set_nonblocking(true).is_ok()))
            }
        })
    }

    /// Writes one line. Failures are ignored, since there is nowhere to report them.
    fn write(&self, level: Level, line: &str, message: &str) {
        match self {
            Self::Stderr => drop(writeln!(io::stderr().lock(), "{line}")),
            // one call, so that lines of two processes do not mix
            Self::File(file) => drop(file.lock().write_all(format!("{line}\n").as_bytes())),
            Self::Syslog(Some(socket)) => {
                drop(socket.send_to(syslog_datagram(level, message).as_bytes(), SYSLOG));
            }
            Self::Syslog(None) => {}
        }
    }
}

/// Opens a log file. In a folder that others may write to, one of them may have put something at its place.
fn open_file(path: &Path) -> Result<File, LoggingError> {
    let failed = |error| LoggingError::File { path: path.to_owned(), error };
    // a pipe that nobody reads must not block the process
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::APPEND | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let opened = safe_open::open(path, flags, Mode::RUSR | Mode::WUSR).map_err(failed)?;
    let stat = fstat(&opened.fd).map_err(|error| failed(error.into()))?;
    // only root makes devices, such as /dev/null
    let is_device = FileType::from_raw_mode(stat.st_mode) == FileType::CharacterDevice;
    if !opened.was_open && !is_device && !safe_open::is_trusted(stat.st_uid) {
        return Err(LoggingError::OthersFile { path: path.to_owned(), owner: stat.st_uid });
    }
    // a slow reader gets all lines
    fcntl_setfl(&opened.fd, OFlags::APPEND).map_err(|error| failed(error.into()))?;
    Ok(opened.fd.into())
}

/// Formats the message with its priority (facility daemon); syslog adds the time.
fn syslog_datagram(level: Level, message: &str) -> String {
    let severity = match level {
        Level::Error => 3,
        Level::Warn => 4,
        Level::Info => 6,
        Level::Debug | Level::Trace => 7,
    };
    format!("<{}>volfs[{}]: {message}", 3 * 8 + severity, process::id())
}

/// The end of the year 9999, in seconds since 1970.
const END_OF_TIME: u64 = 253_402_300_799;

/// Formats a time as UTC to the millisecond: `2026-11-21T10:14:05.250Z`. Times before 1970 give 1970, times after the
/// year 9999 its end.
pub(crate) fn timestamp(time: SystemTime) -> String {
    let end = UNIX_EPOCH + Duration::from_secs(END_OF_TIME);
    format_rfc3339_millis(time.clamp(UNIX_EPOCH, end)).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::AsRawFd;

    #[test]
    fn only_the_last_lines_are_remembered() {
        let recent = RecentLines::default();
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
        assert_eq!(timestamp(UNIX_EPOCH - Duration::from_secs(9)), "1970-01-01T00:00:00.000Z");
        assert_eq!(at(1 << 55), "9999-12-31T23:59:59.000Z");
    }

    #[test]
    fn a_record_reaches_memory_and_file_once() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        let recent = Arc::new(RecentLines::default());
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
    fn a_log_file_is_one_of_the_own_user() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        let open = |name: &str| Sink::open(Target::File(at(name))).map(drop).map_err(|error| error.to_string());
        std::os::unix::fs::symlink("rotated", at("link")).unwrap();
        assert_eq!((open("link"), open("/dev/null")), (Ok(()), Ok(())));
        let created = std::fs::metadata(at("rotated")).unwrap();
        assert_eq!(std::os::unix::fs::PermissionsExt::mode(&created.permissions()) & 0o777, 0o600);
        nix::unistd::mkfifo(&at("pipe"), nix::sys::stat::Mode::S_IRWXU).unwrap();
        assert!(open("pipe").unwrap_err().contains("pipe: No such device"));
        let (mut reader, writer) = io::pipe().unwrap();
        let sink = Sink::open(Target::File(format!("/proc/self/fd/{}", writer.as_raw_fd()).into())).unwrap();
        sink.write(Level::Info, "line", "");
        // a write waits for a slow reader
        let Sink::File(file) = &sink else { panic!() };
        assert!(!rustix::fs::fcntl_getfl(&*file.lock()).unwrap().contains(OFlags::NONBLOCK));
        drop((sink, writer));
        assert_eq!(io::read_to_string(&mut reader).unwrap(), "line\n");

        // only root may give files away
        let give = |name: &str| std::os::unix::fs::lchown(at(name), Some(65533), Some(65533));
        if give("pipe").is_err() {
            return;
        }
        // a reader, for whom the open succeeds
        let flags = OFlags::RDONLY | OFlags::NONBLOCK;
        let _reader = rustix::fs::open(at("pipe"), flags, Mode::empty()).unwrap();
        assert!(open("pipe").unwrap_err().contains("pipe belongs to another user (id 65533); choose another"));
        std::fs::write(at("planted"), "").unwrap();
        give("planted").unwrap();
        assert!(open("planted").unwrap_err().contains("planted belongs to another user (id 65533)"));
        give("link").unwrap();
        assert!(open("link").unwrap_err().contains("link: it is a link that belongs to another user (id 65533)"));
        // as /tmp is
        std::fs::set_permissions(folder.path(), std::os::unix::fs::PermissionsExt::from_mode(0o1777)).unwrap();
        assert!(open("link").unwrap_err().contains("link: it is a link that belongs to another user (id 65533)"));
        assert_eq!(
            std::fs::metadata(at("rotated")).unwrap().len() + std::fs::metadata(at("planted")).unwrap().len(),
            0
        );
    }

    #[test]
    fn a_long_message_is_truncated() {
        let recent = Arc::new(RecentLines::default());
        let filter = Builder::new().parse_filters("off").build();
        let tee = Tee { filter, recent: Arc::clone(&recent), sink: Sink::Syslog(None) };
        let long = "ä".repeat(MAX_MESSAGE_BYTES);
        tee.log(&Record::builder().level(Level::Warn).args(format_args!("{long}")).build());
        assert!(recent.text().len() < MAX_MESSAGE_BYTES + 100);
    }

    #[test]
    fn syslog_knows_the_severity() {
        assert!(syslog_datagram(Level::Warn, "x").starts_with("<28>volfs["));
    }
}
