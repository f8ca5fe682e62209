//! `volfs mount`.

use std::ffi::OsStr;
use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use super::args::MountArgs;
use super::error::CliError;
use super::mount_options::MountOption;
use super::size::Size;
use super::status::{self, Answer};
use super::summary::Count;
use super::{limits, machine, mountpoint, output};
use crate::format::{Format, registry};
use crate::fs::daemon::{self, DaemonError, Ready, Role, Signals};
use crate::fs::forerunner::Forerunner;
use crate::fs::{Options, fuse};
use crate::logging::{self, RecentLines, Target};
use crate::memory::limit_arenas;

/// How long a mount may take until it answers.
const PATIENCE: Duration = Duration::from_secs(30);

/// Bytes of a file that tell its format.
const HEAD: u64 = 16;

/// Mounts, and returns once the mount answers; with `--foreground`, once it is gone.
///
/// # Errors
/// [`CliError`]: what stands in the way.
pub fn run(args: MountArgs) -> Result<(), CliError> {
    let by_mount = args.called_by_mount;
    let plan = match Plan::make(args) {
        // mount -a finds it hard to see that this is the source of its line
        Err(CliError::AlreadyMounted { wanted, shown, .. }) if by_mount && wanted == shown => return Ok(()),
        plan => plan?,
    };
    limit_arenas();
    if plan.foreground {
        return plan.serve(None);
    }
    match daemon::detach()? {
        Role::Daemon(ready) => plan.serve(Some(ready)),
        Role::Starter(starter) => {
            let count = plan.begin_count();
            let started = starter.wait(PATIENCE, &plan.mountpoint)?;
            plan.announce(count).inspect_err(|_| started.give_up(&plan.mountpoint))
        }
    }
}

/// What the arguments mean, checked.
#[derive(Debug)]
struct Plan {
    options: Options,
    mountpoint: PathBuf,
    foreground: bool,
    log: Target,
}

impl Plan {
    fn make(args: MountArgs) -> Result<Self, CliError> {
        let source = checked_source(&args.source)?;
        let mountpoint = mountpoint::check(&args.mountpoint, &source)?;
        let mut allow_other = args.allow_other;
        let mut direct_io = args.direct_io;
        let (mut cache_size, mut threads, mut log_file) = (None, None, None);
        for option in args.options {
            match option {
                MountOption::NoEffect => {}
                MountOption::AllowOther => allow_other = true,
                MountOption::DirectIo => direct_io = true,
                MountOption::CacheSize(size) => cache_size = Some(size),
                MountOption::Threads(n) => threads = Some(n),
                MountOption::LogFile(file) => log_file = Some(file),
            }
        }
        machine::check(allow_other)?;
        // the daemon has another working directory
        let log_file = args.log_file.or(log_file).map(|file| std::path::absolute(&file).unwrap_or(file));
        let shown_log = log_file.as_ref().map_or("", |file| file.to_str().unwrap_or("(not UTF-8)")).to_owned();
        let cache_size = args.cache_size.or(cache_size).map_or_else(limits::default_cache_size, Size::bytes);
        let threads = args.threads.or(threads).unwrap_or_else(limits::default_threads);
        let shown = [
            ("mountpoint", mountpoint.to_string_lossy().into_owned()),
            ("foreground", args.foreground.to_string()),
            ("cache_size", cache_size.to_string()),
            ("threads", threads.to_string()),
            ("direct_io", direct_io.to_string()),
            ("allow_other", allow_other.to_string()),
            ("follow_links", args.follow_links.to_string()),
            ("log_file", shown_log),
        ];
        let quality = args.quality.map(|level| ("quality", level.to_string()));
        let options = Options {
            source,
            cache_size,
            threads,
            direct_io,
            follow_links: args.follow_links,
            quality: args.quality,
            allow_other,
            shown: shown.into_iter().chain(quality).map(|(name, value)| (name.to_owned(), value)).collect(),
        };
        let log = match log_file {
            Some(file) => Target::File(file),
            None if args.foreground => Target::Stderr,
            None => Target::Syslog,
        };
        Ok(Self { options, mountpoint, foreground: args.foreground, log })
    }

    /// Mounts and answers requests until the mount is gone. A daemon tells its caller when it is `ready`, or why not.
    fn serve(self, ready: Option<Ready>) -> Result<(), CliError> {
        match self.mount() {
            Err(error) => {
                if let Some(ready) = ready {
                    ready.failed(&error.to_string());
                }
                Err(error)
            }
            Ok(session) => {
                let answering = match ready {
                    Some(ready) => Ok(ready.succeeded()),
                    None => self.announce(self.begin_count()).map(|()| true),
                };
                session.wait_unless(answering, self)
            }
        }
    }

    fn mount(&self) -> Result<Session, CliError> {
        // before there are threads
        let forerunner = (!self.options.direct_io).then(Forerunner::start);
        let signals = Signals::hold()?;
        let recent = Arc::new(RecentLines::default());
        logging::start(self.log.clone(), Arc::clone(&recent))?;
        let forerunner = forerunner.and_then(|started| {
            started.inspect_err(|error| log::warn!("there will be no reading ahead: {error}")).ok()
        });
        let stop = signals.unmount_on_arrival(self.mountpoint.clone());
        let mounted = fuse::mount(&self.options, &self.mountpoint, forerunner, recent).map_err(CliError::Mount)?;
        stop.remember_mount(&self.mountpoint);
        let (source, mountpoint) = (self.options.source.display(), self.mountpoint.display());
        log::info!("{source} is mounted on {mountpoint}, cache {}", Size::of(self.options.cache_size));
        Ok(Session { mounted, stop })
    }

    fn begin_count(&self) -> Count {
        Count::begin(&self.options.source, self.options.follow_links)
    }

    /// Makes sure that the mount answers, and prints the line that says so.
    fn announce(&self, count: Count) -> Result<(), CliError> {
        match status::ask(&self.mountpoint, PATIENCE) {
            Answer::Alive(_) => output::line(&count.line(&self.options.source, &self.mountpoint)),
            Answer::Silent => Err(DaemonError::TimedOut(PATIENCE).into()),
            Answer::Dead => Err(CliError::NoAnswer(self.mountpoint.clone(), "its daemon died".to_owned())),
            Answer::Error(error) => Err(CliError::NoAnswer(self.mountpoint.clone(), error)),
        }
    }
}

/// A mount whose requests are being answered.
struct Session {
    mounted: fuse::Mounted,
    stop: daemon::Stop,
}

impl Session {
    /// Waits until the mount is gone. Unless it is wanted (`Ok(true)`) it is taken away first. A signal that came before the
    /// mount could be announced is the reason why it was not, and no failure.
    fn wait_unless(self, wanted: Result<bool, CliError>, plan: Plan) -> Result<(), CliError> {
        if !matches!(wanted, Ok(true)) && !self.stop.told() {
            self.stop.unmount_now(&plan.mountpoint);
            return wanted.map(|_| ());
        }
        match self.mounted.wait() {
            Err(error) if !self.stop.told() => {
                log::error!("the mount ended: {error}");
                self.stop.unmount_now(&plan.mountpoint);
                Err(CliError::Ended { mountpoint: plan.mountpoint, error })
            }
            _ => {
                log::info!("unmounted");
                Ok(())
            }
        }
    }
}

/// SOURCE as an absolute path without links: the daemon has another working directory.
///
/// # Errors
/// [`CliError`]: it is not there, or nothing that could be shown.
pub fn checked_source(typed: &Path) -> Result<PathBuf, CliError> {
    let failed = |error| CliError::Source { typed: typed.to_owned(), error };
    let source = fs::canonicalize(typed).map_err(failed)?;
    let metadata = fs::metadata(&source).map_err(failed)?;
    if !metadata.is_dir() && !metadata.is_file() {
        return Err(CliError::OddSource(source));
    }
    if metadata.is_dir() {
        // one that may not be read would be an empty mount
        fs::read_dir(&source).map_err(failed)?;
    } else if !is_volume(&source).map_err(failed)? {
        return Err(CliError::NotAVolume(source));
    }
    Ok(source)
}

/// Whether a file is, or by its extension is meant to be, of a format that is known. One that is damaged gets a mount: that
/// says what is wrong with it.
fn is_volume(file: &Path) -> io::Result<bool> {
    let mut head = Vec::new();
    fs::File::open(file)?.take(HEAD).read_to_end(&mut head)?;
    let extension = file.extension().and_then(OsStr::to_str);
    let meant = |format: &dyn Format| {
        extension.zip(format.extension()).is_some_and(|(one, other)| one.eq_ignore_ascii_case(other))
    };
    Ok(registry().iter().any(|format| format.is_file(&head) || meant(*format)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_source_becomes_absolute() {
        let folder = tempfile::tempdir().unwrap();
        let top = folder.path().canonicalize().unwrap();
        assert_eq!(checked_source(&top.join(".")).unwrap(), top);
        assert!(matches!(checked_source(&top.join("none")), Err(CliError::Source { .. })));
        fs::write(top.join("notes.txt"), "not a volume").unwrap();
        assert!(matches!(checked_source(&top.join("notes.txt")), Err(CliError::NotAVolume(_))));
        fs::write(top.join("broken.ZGY"), "not a volume").unwrap();
        assert!(checked_source(&top.join("broken.ZGY")).is_ok());
        assert!(matches!(checked_source(Path::new("/dev/null")), Err(CliError::OddSource(_))));
    }
}
