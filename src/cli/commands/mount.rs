//! `volfs mount`: checks the arguments, starts the daemon and waits until the mount answers.

mod announcement;
mod exec;
mod temporary_folder;

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::exit;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use serde_json::json;

use self::announcement::Announcement;
use crate::cli::args::MountArgs;
use crate::cli::chosen_source::{checked_source, resolved_source};
use crate::cli::deadline;
use crate::cli::error::CliError;
use crate::cli::file_system_options;
use crate::cli::machine::{limits, permission};
use crate::cli::mounts::mountpoint;
use crate::cli::mounts::status::Answer;
use crate::cli::output;
use crate::cli::text::size::Size;
use crate::fs::Options;
use crate::logging::{self, RecentLines, Target};
use crate::memory::{keep_reserve, limit_arenas};
use crate::mount::command::HeldSignals;
use crate::mount::daemon::{self, DaemonError, Ready, Role, Started};
use crate::mount::mountinfo::is_mount_of;
use crate::mount::readahead_process::ReadaheadProcess;
use crate::mount::session;
use crate::mount::signals::{Signals, Stop};
use crate::mount::watchdog::Watchdog;
use crate::source::{Origin, StoreOption, is_url, raise_descriptor_limit};

/// How long a mount may take until it answers.
const TIMEOUT: Duration = Duration::from_secs(30);

/// Mounts, and returns once the mount answers; with `--foreground`, once it is gone; with `--exec`, once the command has
/// ended and the mount is gone.
pub(crate) fn run(mut args: MountArgs) -> Result<(), CliError> {
    args.apply_options().map_err(CliError::Argument)?;
    if let Some(reason) = limits::too_few_open_files() {
        return Err(CliError::Machine(reason));
    }
    check_source_answers(&args.source, &args.file_system.store_option)?;
    if let Some(command) = args.exec.take() {
        return exec::run(args, &command);
    }
    let by_mount = args.called_by_mount;
    let mountpoint = args.mountpoint.take().unwrap_or_default();
    let plan = match Plan::make(args, &mountpoint) {
        // mount -a cannot tell that this mount is the one of its line, and mounts it again
        Err(CliError::AlreadyMounted { wanted, shown, .. }) if by_mount && wanted == shown => return Ok(()),
        plan => plan?,
    };
    if plan.foreground {
        limit_arenas();
        return plan.serve(None);
    }
    plan.start(&mut None).map(drop)
}

/// How long the mount lasts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Lifetime {
    /// Until it is unmounted.
    Unlimited,
    /// At most as long as the process that has started it, unless that process releases it. The mount point may be a
    /// temporary folder.
    OfStarter {
        /// Whether it is.
        temporary: bool,
    },
}

/// The checked arguments.
#[derive(Debug)]
struct Plan {
    options: Options,
    mountpoint: PathBuf,
    foreground: bool,
    /// Whether nothing is printed.
    silent: bool,
    lifetime: Lifetime,
    log: Target,
}

impl Plan {
    fn make(args: MountArgs, mountpoint: &Path) -> Result<Self, CliError> {
        let source = resolved_source(&args.source)?;
        let mountpoint = mountpoint::check(mountpoint, &source)?;
        permission::check(args.allow_other)?;
        // the daemon has another working directory
        let log_file = args.log_file.map(|file| std::path::absolute(&file).unwrap_or(file));
        let mut options = file_system_options::chosen(args.file_system, source, Some(&mountpoint))?;
        (options.direct_io, options.allow_other, options.ownership) =
            (args.direct_io, args.allow_other, args.ownership);
        let shown = [
            ("mountpoint", json!(mountpoint.to_string_lossy())),
            ("foreground", json!(args.foreground)),
            ("direct_io", json!(args.direct_io)),
            ("allow_other", json!(args.allow_other)),
            ("uid", json!(args.ownership.uid)),
            ("gid", json!(args.ownership.gid)),
            ("umask", json!(args.ownership.umask.map(|umask| format!("{umask:03o}")))),
            ("log_file", json!(log_file.as_ref().map(|file| file.to_string_lossy()))),
        ];
        options.shown.extend(shown.into_iter().map(|(name, value)| (name.to_owned(), value)));
        let log = match log_file {
            Some(file) => Target::File(file),
            None if args.foreground => Target::Stderr,
            None => Target::Syslog,
        };
        let (foreground, silent) = (args.foreground, args.called_by_mount);
        Ok(Self { options, mountpoint, foreground, silent, lifetime: Lifetime::Unlimited, log })
    }

    /// Starts a daemon, and returns once the mount answers. In the daemon the call returns `None` when the mount is gone.
    /// Signals are `held` until there is a daemon.
    fn start(&self, held: &mut Option<HeldSignals>) -> Result<Option<Started>, CliError> {
        limit_arenas();
        let role = daemon::detach()?;
        drop(held.take());
        match role {
            Role::Daemon(ready) => self.serve(Some(ready)).map(|()| None),
            Role::Starter(starter) => {
                let announcement = self.announcement();
                let (source, mountpoint) = (&self.options.source, &self.mountpoint);
                let started = starter.wait(TIMEOUT, source, mountpoint)?;
                self.announce(announcement).inspect_err(|_| started.give_up(source, mountpoint))?;
                Ok(Some(started))
            }
        }
    }

    /// Mounts and answers requests until the mount is gone. A daemon reports to its starter, through `ready`, that the
    /// mount works or why it failed.
    fn serve(&self, ready: Option<Ready>) -> Result<(), CliError> {
        // forks, and so has to run before there are threads
        let announcement = ready.is_none().then(|| self.announcement());
        match self.mount() {
            Err(error) => {
                if let Some(ready) = ready {
                    ready.failed(&error.to_string());
                }
                Err(error)
            }
            Ok(session) => {
                let answering = match (ready, announcement) {
                    (Some(ready), _) => Ok(match self.lifetime {
                        Lifetime::Unlimited => ready.succeeded(),
                        Lifetime::OfStarter { temporary } => {
                            ready.succeeded_bound(self.end_of_starter(&session, temporary))
                        }
                    }),
                    (None, Some(announcement)) => match self.announce(announcement) {
                        // somebody has unmounted it already
                        Err(_) if !is_mount_of(&self.options.source, &self.mountpoint) => Ok(true),
                        announced => announced.map(|()| true),
                    },
                    (None, None) => Ok(true),
                };
                session.wait_unless(answering, self)
            }
        }
    }

    /// Returns what a daemon does when its starter was killed.
    fn end_of_starter(&self, session: &Session, temporary: bool) -> impl FnOnce() + Send + 'static {
        let (stop, mountpoint) = (session.stop.clone(), self.mountpoint.clone());
        move || {
            log::warn!("the command that this mount was for was killed: unmounting");
            let grace = stop.unmount_now(&mountpoint);
            if temporary {
                let _ = fs::remove_dir(&mountpoint);
            }
            thread::sleep(grace);
            stop.finished();
            exit(0);
        }
    }

    fn mount(&self) -> Result<Session, CliError> {
        raise_descriptor_limit();
        // forks, and so has to run before there are threads
        let readahead = (!self.options.direct_io).then(ReadaheadProcess::start);
        let watchdog = Watchdog::start(self.log.clone());
        // here and not earlier: the processes beside the daemon need none
        keep_reserve();
        let signals = Signals::block()?;
        let recent = Arc::new(RecentLines::default());
        logging::start(self.log.clone(), Arc::clone(&recent))?;
        let readahead = readahead.and_then(|started| {
            started.inspect_err(|error| log::warn!("there will be no reading ahead: {error}")).ok()
        });
        let watchdog = watchdog.inspect_err(|error| log::warn!("nobody will watch over this process: {error}")).ok();
        let stop = signals.unmount_on_arrival(self.mountpoint.clone(), watchdog)?;
        let mounted = session::mount(&self.options, &self.mountpoint, readahead, &stop, recent);
        let mounted = mounted.map_err(CliError::Mount)?;
        if let Some(connection) = mounted.connection() {
            stop.remember_mount(&self.mountpoint, connection);
        }
        let (source, mountpoint) = (self.options.source.display(), self.mountpoint.display());
        log::info!("{source} is mounted on {mountpoint}, cache {}", Size::of(self.options.cache_size));
        if let Some(closed) = self.closed_folder_above() {
            log::warn!(
                "{} is closed to other users, and --allow-other lets them into {source} below it, by its own modes",
                closed.display()
            );
        }
        Ok(Session { mounted, stop })
    }

    /// Returns a folder above SOURCE that other users may not enter, though they may enter the mount.
    fn closed_folder_above(&self) -> Option<&Path> {
        let is_asked = self.options.allow_other && !self.options.origin().is_url();
        let is_closed = |folder: &&Path| folder.metadata().is_ok_and(|folder| folder.mode() & 0o001 == 0);
        self.options.source.ancestors().skip(1).find(is_closed).filter(|_| is_asked)
    }

    fn announcement(&self) -> Announcement<'_> {
        let source = (!self.silent).then(|| self.options.origin());
        Announcement::begin(source, &self.mountpoint)
    }

    /// Waits until the mount answers, and prints the announcement.
    fn announce(&self, announcement: Announcement<'_>) -> Result<(), CliError> {
        match announcement.ask(TIMEOUT) {
            Answer::Alive(_) => announcement.line().map_or(Ok(()), |line| output::line(&line)),
            Answer::Silent => Err(DaemonError::TimedOut(TIMEOUT).into()),
            Answer::Dead => Err(CliError::NoAnswer(self.mountpoint.clone(), "its daemon died".to_owned())),
            Answer::Error(error) => Err(CliError::NoAnswer(self.mountpoint.clone(), error)),
        }
    }
}

/// A running FUSE session.
struct Session {
    mounted: session::Mounted,
    stop: Stop,
}

impl Session {
    /// Waits until the mount is gone. Unless it is `wanted` (`Ok(true)`), unmounts first. If a signal arrived before
    /// the mount was announced, the failed announcement is no error.
    fn wait_unless(self, wanted: Result<bool, CliError>, plan: &Plan) -> Result<(), CliError> {
        let Self { mounted, stop } = self;
        let outcome = if !matches!(wanted, Ok(true)) && !stop.is_requested() {
            stop.unmount_now(&plan.mountpoint);
            wanted.map(|_| ())
        } else {
            match mounted.wait() {
                Err(error) if !stop.is_requested() => {
                    log::error!("the mount ended: {error}");
                    stop.unmount_now(&plan.mountpoint);
                    Err(CliError::Ended { mountpoint: plan.mountpoint.clone(), error })
                }
                _ => {
                    log::info!("unmounted");
                    Ok(())
                }
            }
        };
        stop.finished();
        outcome
    }
}

/// Checks that SOURCE answers at all. A look at one whose server hangs might never return, nor let this process end, so
/// another process looks first.
fn check_source_answers(typed: &Path, store_options: &[StoreOption]) -> Result<(), CliError> {
    let url = is_url(typed).then(|| resolved_source(typed)).transpose()?;
    let path = url.unwrap_or_else(|| typed.to_owned());
    let origin = Origin { path: path.clone(), store_options: store_options.to_owned(), ..Origin::default() };
    deadline::check(&path, TIMEOUT, || {
        let checked = checked_source(&origin);
        // what is wrong with a local one is found again without a network and without threads
        checked.err().filter(|_| origin.is_url()).map(|error| error.to_string())
    })
}
