//! `volfs mount`: checks the arguments, starts the daemon and waits until the mount answers.

pub(super) mod options;

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Command, exit};
use std::sync::Arc;
use std::time::{Duration, Instant};
use std::{env, fs, io, thread};

use clap::Args;
use nix::unistd::mkdtemp;
use serde_json::json;

use super::error::{Cause, CliError};
use super::file_system::{self, FileSystemArgs, entries};
use super::interrupt::ending_signals;
use super::mounts::{self, NoStatus, check_mountpoint, decode, encode};
use super::source::{checked_source, resolved_source};
use super::text::{Size, counted, escaped_path, python_literal};
use super::umount::{self, UmountArgs};
use super::{deadline, machine, output};
use crate::catalog::{DatasetCount, count_datasets};
use crate::format::registry;
use crate::fs::{Options, Ownership};
use crate::logging::{self, RecentLines, Target};
use crate::memory::{keep_reserve, limit_arenas};
use crate::mount::{
    CommandError, DaemonError, HeldSignals, Link, Mounted, ReadaheadProcess, Ready, Role, SideProcess, Signals,
    Started, Stop, Watchdog, detach, is_mount_of, is_passed, place_of, run_command, volfs_at,
};
use crate::source::{Origin, StoreOption, is_url, raise_descriptor_limit};

#[derive(Debug, Args)]
#[command(after_help = MOUNT_EXAMPLE)]
pub(super) struct MountArgs {
    /// A folder of volumes, searched in depth, or one volume; or a URL of an object store
    ///
    /// s3://BUCKET/KEY, az://CONTAINER/KEY, gs://BUCKET/KEY, and https://HOST/PATH of a single volume. Credentials come from
    /// the environment: AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY or AWS_PROFILE, AZURE_STORAGE_ACCOUNT_NAME and
    /// AZURE_STORAGE_ACCOUNT_KEY or AZURE_STORAGE_CONNECTION_STRING, GOOGLE_APPLICATION_CREDENTIALS.
    pub(super) source: PathBuf,

    /// An empty folder, outside SOURCE, that will show them; with --exec a temporary one if left out
    ///
    /// /dev/fd/N is a connection to FUSE that the caller has opened and mounted, as Apptainer's --fusemount does: volfs
    /// answers it in the foreground until the caller unmounts it.
    #[arg(required_unless_present = "exec")]
    pub(super) mountpoint: Option<PathBuf>,

    /// Stay in the foreground and log to the terminal
    ///
    /// Ctrl-C (SIGINT) or SIGTERM unmounts.
    #[arg(short, long)]
    pub(super) foreground: bool,

    #[command(flatten)]
    file_system: FileSystemArgs,

    /// Bypass the kernel's page cache
    ///
    /// Faster for programs that stream a volume once with reads of 256 KiB and more; slower for programs that read
    /// data again or in small pieces.
    #[arg(long)]
    direct_io: bool,

    /// Let other users into the mount
    ///
    /// They may read what they may read in SOURCE: each file and folder has the owner, group and mode of its source, less
    /// writing (-o uid=, gid= and umask= set others). Unless you are root, /etc/fuse.conf must have the line
    /// `user_allow_other`.
    #[arg(long)]
    allow_other: bool,

    /// Log to the end of this file
    ///
    /// [default: the system's log; with --foreground the terminal]. The environment variable RUST_LOG sets the level:
    /// error, warn, info (the default), debug or trace.
    #[arg(long, value_name = "FILE")]
    log_file: Option<PathBuf>,

    /// Mount only while a command runs
    ///
    /// Must be the last option: all that follows is the command. The environment variable VOLFS_MNT names the mount point,
    /// and nothing else is written to standard output. When the command ends the mount is taken away, even if something
    /// else uses it, and the exit status is that of the command: 128 plus the number of the signal that ended it, 127 if
    /// there is no such program, 126 if it cannot be executed. Ctrl-C and SIGTERM go to the command.
    #[arg(long, value_name = "CMD", num_args = 1.., allow_hyphen_values = true, conflicts_with = "foreground")]
    pub(super) exec: Option<Vec<OsString>>,

    /// The caller is mount(8): nothing is printed, and a mount that exists already is not a failure
    #[arg(long, hide = true)]
    called_by_mount: bool,

    /// Options as in /etc/fstab, with commas between
    ///
    /// With an effect: the options above, with _ for - (allow_other, cache_size=SIZE, quality=LEVEL and so on); uid=USER
    /// and gid=GROUP, the owner and group of all files and folders, and umask=OCTAL, which gives all files the mode 0444
    /// and all folders 0555, less OCTAL (umask=022 lets everybody read everything, umask=077 only the owner). Accepted
    /// without an effect, since the mount is read-only or other programs act on them: defaults, ro, rw, dev, nodev,
    /// suid, nosuid, exec, noexec, auto, noauto, user, nouser, users, owner, group, nofail, _netdev, atime, noatime,
    /// relatime, norelatime, diratime, nodiratime, strictatime, nostrictatime, lazytime, nolazytime, sync, async,
    /// dirsync, nosymfollow, silent, loud, comment=*, x-*. An option that is also given by its own name has the value
    /// given there.
    #[arg(short = 'o', long = "options", value_name = "OPTIONS", value_delimiter = ',')]
    pub(super) options: Vec<String>,

    /// For -o alone, as are the next two: the owner of all files and folders
    #[arg(long, hide = true, value_name = "USER", value_parser = options::user)]
    uid: Option<u32>,

    /// The group of all files and folders
    #[arg(long, hide = true, value_name = "GROUP", value_parser = options::group)]
    gid: Option<u32>,

    /// What is taken from the modes 0444 and 0555
    #[arg(long, hide = true, value_name = "OCTAL", value_parser = options::umask)]
    umask: Option<u32>,
}

const MOUNT_EXAMPLE: &str = "\
Example:
  mkdir -p ~/vol
  volfs mount --cache-size 2GiB ~/surveys ~/vol
  ls ~/vol/north.zgy/data

  volfs mount ~/surveys --exec sh -c 'cp $VOLFS_MNT/north.zgy/data/lod1.npy .'";

/// How long a mount may take until it answers.
const TIMEOUT: Duration = Duration::from_secs(30);

/// Mounts, and returns once the mount answers; with `--foreground`, once it is gone; with `--exec`, once the command has
/// ended and the mount is gone.
pub(super) fn run(mut args: MountArgs) -> Result<(), CliError> {
    machine::check_open_files()?;
    check_source_answers(&args.source, &args.file_system.store.store_option)?;
    if let Some(command) = args.exec.take() {
        return run_during_mount(args, &command);
    }
    let by_mount = args.called_by_mount;
    let mountpoint = args.mountpoint.take().unwrap_or_default();
    let plan = match Plan::new(args, &mountpoint) {
        // mount -a cannot tell that this mount is the one of its line, and mounts it again
        Err(error) if by_mount && matches!(error.cause, Cause::MountedAlready) => return Ok(()),
        plan => plan?,
    };
    if plan.foreground {
        limit_arenas();
        return plan.serve(None);
    }
    plan.start(&mut None).map(drop)
}

struct Plan {
    options: Options,
    mountpoint: PathBuf,
    foreground: bool,
    is_silent: bool,
    /// Whether the mount lasts at most as long as the process that started it, unless that process releases it.
    is_bound: bool,
    /// Whether the mount point is removed when that process was killed.
    is_temporary: bool,
    log: Target,
}

impl Plan {
    fn new(args: MountArgs, mountpoint: &Path) -> Result<Self, CliError> {
        let source = resolved_source(&args.source)?;
        let is_passed = is_passed(mountpoint);
        if is_passed && args.allow_other {
            let what = format!("--allow-other has no effect on {}, which is mounted already", mountpoint.display());
            return Err(CliError::argument(what));
        }
        let mountpoint = if is_passed { mountpoint.to_owned() } else { check_mountpoint(mountpoint, &source)? };
        machine::check_permission(args.allow_other)?;
        // the daemon has another working directory
        let log_file = args.log_file.map(|file| std::path::absolute(&file).unwrap_or(file));
        let mut options = file_system::options(args.file_system, source, Some(&mountpoint))?;
        (options.direct_io, options.allow_other) = (args.direct_io, args.allow_other);
        options.ownership = Ownership { uid: args.uid, gid: args.gid, umask: args.umask };
        options.shown.extend(entries(json!({
            "mountpoint": mountpoint.to_string_lossy(),
            "foreground": args.foreground,
            "direct_io": args.direct_io,
            "allow_other": args.allow_other,
            "uid": args.uid,
            "gid": args.gid,
            "umask": args.umask.map(|umask| format!("{umask:03o}")),
            "log_file": log_file.as_ref().map(|file| file.to_string_lossy()),
        })));
        let log = match log_file {
            Some(file) => Target::File(file),
            None if args.foreground || is_passed => Target::Stderr,
            None => Target::Syslog,
        };
        let (foreground, is_silent) = (args.foreground || is_passed, args.called_by_mount);
        Ok(Self { options, mountpoint, foreground, is_silent, is_bound: false, is_temporary: false, log })
    }

    /// Starts a daemon, and returns once the mount answers. In the daemon the call returns `None` when the mount is gone.
    /// Signals are `held` until there is a daemon.
    fn start(&self, held: &mut Option<HeldSignals>) -> Result<Option<Started>, CliError> {
        limit_arenas();
        let role = detach()?;
        drop(held.take());
        match role {
            Role::Daemon(ready) => self.serve(Some(ready)).map(|()| None),
            Role::Starter(starter) => {
                let announcement = Announcement::begin(self);
                let (source, mountpoint) = (&self.options.source, &self.mountpoint);
                let started = starter.wait(TIMEOUT, source, mountpoint)?;
                self.announce(announcement).inspect_err(|_| started.give_up(source, mountpoint))?;
                Ok(Some(started))
            }
        }
    }

    /// Mounts and answers requests until the mount is gone. A daemon reports to its starter through `ready` that the mount
    /// works, or why it failed.
    fn serve(&self, ready: Option<Ready>) -> Result<(), CliError> {
        // an announcement forks, and so has to begin before there are threads
        let report = ready.ok_or_else(|| (!is_passed(&self.mountpoint)).then(|| Announcement::begin(self)));
        let (mounted, stop) = match self.mount() {
            Ok(session) => session,
            Err(error) => {
                if let Ok(ready) = report {
                    ready.failed(&error.to_string());
                }
                return Err(error);
            }
        };
        let wanted = match report {
            Ok(ready) if self.is_bound => {
                let asked = stop.clone();
                Ok(ready.succeeded_bound(move || asked.is_connected(), self.end_of_starter(stop.clone())))
            }
            Ok(ready) => Ok(ready.succeeded()),
            Err(None) => Ok(true),
            Err(Some(announcement)) => match self.announce(announcement) {
                // it was unmounted meanwhile
                Err(_) if !is_mount_of(&self.options.source, &self.mountpoint) => Ok(true),
                announced => announced.map(|()| true),
            },
        };
        self.wait(mounted, &stop, wanted)
    }

    /// Returns the work of a daemon whose starter was killed.
    fn end_of_starter(&self, stop: Stop) -> impl FnOnce() + Send + 'static {
        let (mountpoint, is_temporary) = (self.mountpoint.clone(), self.is_temporary);
        move || {
            log::warn!("the command that this mount was for was killed: unmounting");
            let grace = stop.unmount_now(&mountpoint);
            if is_temporary {
                let _ = fs::remove_dir(&mountpoint);
            }
            thread::sleep(grace);
            stop.finished();
            exit(0);
        }
    }

    fn mount(&self) -> Result<(Mounted, Stop), CliError> {
        raise_descriptor_limit();
        // forks, and so has to run before there are threads
        let readahead = (!self.options.direct_io).then(ReadaheadProcess::start);
        let watchdog = Watchdog::start(self.log.clone());
        // here and not earlier: the processes beside the daemon need none
        keep_reserve();
        let signals = Signals::block(ending_signals())?;
        let recent = Arc::new(RecentLines::default());
        logging::start(self.log.clone(), Arc::clone(&recent))?;
        let readahead =
            readahead.and_then(|started| started.inspect_err(|error| log::warn!("read-ahead is off: {error}")).ok());
        let watchdog = watchdog.inspect_err(|error| log::warn!("cannot start the watchdog: {error}")).ok();
        let stop = signals.unmount_on_arrival(self.mountpoint.clone(), watchdog)?;
        let mounted = crate::mount::mount(&self.options, &self.mountpoint, readahead, &stop, recent);
        let to_see = "to see more type: RUST_LOG=debug volfs mount --foreground ...";
        let mounted = mounted.map_err(|error| CliError::new(error.to_string(), to_see))?;
        if let Some(connection) = &mounted.connection {
            stop.remember_mount(&self.mountpoint, connection);
        }
        let (source, mountpoint) = (self.options.source.display(), self.mountpoint.display());
        log::info!("{source} is mounted on {mountpoint}, cache {}", Size(self.options.cache_size));
        let is_closed = |folder: &&Path| folder.metadata().is_ok_and(|folder| folder.mode() & 0o001 == 0);
        if self.options.allow_other
            && !is_url(&self.options.source)
            && let Some(closed) = self.options.source.ancestors().skip(1).find(is_closed)
        {
            log::warn!(
                "{} is closed to other users, and --allow-other lets them into {source} below it, by its own modes",
                closed.display()
            );
        }
        Ok((mounted, stop))
    }

    /// Waits until the mount answers, and prints the announcement.
    fn announce(&self, announcement: Announcement<'_>) -> Result<(), CliError> {
        match announcement.ask() {
            Ok(()) => announcement.line().map_or(Ok(()), |line| output::line(&line)),
            Err(NoStatus::Silent) => Err(DaemonError::TimedOut(TIMEOUT).into()),
            Err(why) => {
                let what = format!("the mount at {} does not answer: {why}", escaped_path(&self.mountpoint));
                Err(CliError::new(what, "--foreground shows more"))
            }
        }
    }

    /// Waits until the mount is gone. Unless it is `wanted` (`Ok(true)`), unmounts first. If a signal arrived before
    /// the mount was announced, the failed announcement is no error.
    fn wait(&self, mounted: Mounted, stop: &Stop, wanted: Result<bool, CliError>) -> Result<(), CliError> {
        let outcome = if !matches!(wanted, Ok(true)) && !stop.is_requested() {
            stop.unmount_now(&self.mountpoint);
            wanted.map(drop)
        } else if let Err(error) = mounted.wait()
            && !stop.is_requested()
        {
            log::error!("the mount ended: {error}");
            stop.unmount_now(&self.mountpoint);
            Err(CliError::new(format!("the mount at {} ended: {error}", escaped_path(&self.mountpoint)), ""))
        } else {
            log::info!("unmounted");
            Ok(())
        };
        stop.finished();
        outcome
    }
}

/// Checks that SOURCE answers at all, and for a URL that it can be used. A look at a source whose server hangs might never
/// return, nor let this process end, so another process looks first.
fn check_source_answers(typed: &Path, store_options: &[StoreOption]) -> Result<(), CliError> {
    let url = is_url(typed).then(|| resolved_source(typed)).transpose()?;
    let path = url.unwrap_or_else(|| typed.to_owned());
    let origin = Origin { path: path.clone(), store_options: store_options.to_owned(), ..Origin::default() };
    deadline::check(&path, TIMEOUT, || {
        match checked_source(&origin) {
            Err(error) if origin.is_url() => Err(error),
            // an error of a local source is found again, without a network and without threads
            _ => Ok(()),
        }
    })
}

/// How long the line waits for the count of datasets and the first array.
const LINE_TIMEOUT: Duration = Duration::from_millis(300);

/// How long a side process waits for the mount to be made.
const MOUNT_TIMEOUT: Duration = Duration::from_secs(60);

/// The message to a side process that the mount is made.
const MOUNTED: &[u8] = b"mounted";

/// The line that `volfs mount` prints: what is mounted where, and how to open the first array. Side processes look up all
/// that it says, since they may hang with the source. The line leaves out what is not known in time, and they end then.
struct Announcement<'a> {
    /// `None` if nothing is said.
    source: Option<PathBuf>,
    mountpoint: &'a Path,
    count: Option<SideProcess>,
    asker: Option<SideProcess>,
}

impl<'a> Announcement<'a> {
    /// Starts to count below the source, unless there will be nothing to say. Must be called before there are threads.
    fn begin(plan: &'a Plan) -> Self {
        let source = (!plan.is_silent).then(|| plan.options.origin());
        let mountpoint = plan.mountpoint.as_path();
        let count = source.as_ref().and_then(|origin| {
            let count = |link: Link| {
                let count = count_datasets(registry(), origin, Instant::now() + LINE_TIMEOUT);
                messages(&count).iter().all(|message| link.send(message));
            };
            SideProcess::start(count).ok()
        });
        let ask = |link: Link| ask_mount(&link, mountpoint);
        Self { source: source.map(|origin| origin.path), mountpoint, count, asker: SideProcess::start(ask).ok() }
    }

    /// Waits until the mount answers, for at most [`TIMEOUT`] once it is made.
    fn ask(&self) -> Result<(), NoStatus> {
        let answer = match &self.asker {
            Some(asker) => {
                asker.link.send(MOUNTED);
                decode(asker.link.receive(Instant::now() + TIMEOUT))
            }
            None => mounts::ask(self.mountpoint, TIMEOUT),
        };
        match answer {
            Ok(_) | Err(NoStatus::Denied) => Ok(()),
            Err(why) => Err(why),
        }
    }

    fn line(self) -> Option<String> {
        let deadline = Instant::now() + LINE_TIMEOUT;
        let mut line = format!("{} is mounted on {}", escaped_path(&self.source?), escaped_path(self.mountpoint));
        let mut array = || {
            let counter = &self.count.as_ref()?.link;
            line.push_str(&String::from_utf8_lossy(&counter.receive(deadline)?));
            let first = counter.receive(deadline)?;
            let asker = &self.asker.as_ref()?.link;
            asker.send(self.mountpoint.join(OsStr::from_bytes(&first)).as_os_str().as_bytes());
            asker.receive(deadline)
        };
        if let Some(array) = array() {
            let array = python_literal(Path::new(OsStr::from_bytes(&array)));
            line.push_str(&format!(", try np.load({array}, mmap_mode=\"r\")"));
        }
        Some(line)
    }
}

/// Asks the mount for its status once it is made, and then for the first array in a dataset's folder.
fn ask_mount(link: &Link, mountpoint: &Path) {
    if link.receive(Instant::now() + MOUNT_TIMEOUT).is_none() {
        return;
    }
    link.send(&encode(mounts::wait_for(mountpoint)));
    let Some(folder) = link.receive(Instant::now() + MOUNT_TIMEOUT) else { return };
    if let Some(array) = first_array(Path::new(OsStr::from_bytes(&folder))) {
        link.send(array.as_os_str().as_bytes());
    }
}

/// Returns the messages about a count: what the line says of it, and the first dataset.
fn messages(count: &DatasetCount) -> Vec<Vec<u8>> {
    let first = count.first.iter().map(|first| first.as_os_str().as_bytes().to_vec());
    std::iter::once(dataset_count(count).into_bytes()).chain(first).collect()
}

fn dataset_count(count: &DatasetCount) -> String {
    match (count.datasets, count.complete) {
        (0, true) => ": no datasets found".to_owned(),
        (0, false) => String::new(),
        (n, true) => format!(": {}", counted(n as u64, "dataset")),
        (n, false) => format!(": {n} or more datasets"),
    }
}

/// Returns the finest array of the first layer in a dataset's folder; `None` if the dataset cannot be opened.
fn first_array(folder: &Path) -> Option<PathBuf> {
    let entries = fs::read_dir(folder).ok()?;
    entries.filter_map(|entry| Some(entry.ok()?.path().join("lod0.npy"))).find(|array| array.is_file())
}

/// How long a look takes at a mount that may be another's: a dead one answers at once.
const LOOK_TIMEOUT: Duration = Duration::from_secs(1);

/// The environment variable that names the mount point.
const MOUNTPOINT_VARIABLE: &str = "VOLFS_MNT";

/// Mounts, runs `command`, and unmounts.
fn run_during_mount(mut args: MountArgs, command: &[OsString]) -> Result<(), CliError> {
    // a signal must not come between a temporary folder and the daemon, which removes it if this process ends
    let mut held = Some(HeldSignals::hold().map_err(DaemonError::System)?);
    // it is removed when this function ends, in whichever process
    let folder = match args.mountpoint {
        Some(_) => None,
        None => Some(TemporaryFolder::outside(&resolved_source(&args.source)?, usual_places())?),
    };
    let mountpoint = args.mountpoint.take().or_else(|| folder.as_ref().map(|folder| folder.0.clone()));
    let mut plan = Plan::new(args, &mountpoint.unwrap_or_default())?;
    if plan.foreground {
        return Err(CliError::argument("--exec needs a folder to mount on"));
    }
    // standard output is the command's
    plan.is_silent = true;
    (plan.is_bound, plan.is_temporary) = (true, folder.is_some());
    let Some(started) = plan.start(&mut held)? else { return Ok(()) };
    let device = volfs_at(&plan.mountpoint).map(|mount| mount.device);
    let outcome = run_to_end(command, &plan.mountpoint);
    // the mount of a daemon that was killed stays, and can be told from another's only by being dead
    if let Some(place) = device.and_then(place_of)
        && (started.is_mounted() || mounts::ask(&place, LOOK_TIMEOUT) == Err(NoStatus::Dead))
    {
        take_away(&place);
    }
    started.release();
    outcome
}

fn run_to_end(command: &[OsString], mountpoint: &Path) -> Result<(), CliError> {
    let (program, arguments) = command.split_first().ok_or_else(|| CliError::argument("--exec needs a command"))?;
    match run_command(Command::new(program).args(arguments).env(MOUNTPOINT_VARIABLE, mountpoint)) {
        Ok(0) => Ok(()),
        Ok(status) => {
            let text = format!("the command ended with exit status {status}");
            Err(CliError::new(text, "").with_status(status).with_cause(Cause::Command))
        }
        Err(CommandError::NotStarted(error)) => {
            let what = format!("cannot run {}: {error}", escaped_path(Path::new(program)));
            // as shells have it
            let status = if error.kind() == io::ErrorKind::NotFound { 127 } else { 126 };
            Err(CliError::new(what, "give a program that is in PATH, or its path").with_status(status))
        }
        Err(CommandError::System(error)) => Err(CliError::new(error.to_string(), "")),
    }
}

/// Unmounts, also if a process that the command left running uses the mount: programs that have files open can go on
/// reading, and the daemon ends with the last of them.
fn take_away(place: &Path) {
    let umount = |lazy| umount::run(&UmountArgs { mountpoint: place.to_owned(), lazy });
    let outcome = umount(false).or_else(|error| match &error.cause {
        Cause::Busy(users) => {
            let users = if users.is_empty() { "something" } else { &users.join(", ") };
            let place = escaped_path(place);
            output::note(&format!("the command has ended, but {users} uses {place}: the mount is taken away anyway"));
            umount(true)
        }
        Cause::Unresponsive => umount(true),
        _ => Err(error),
    });
    match outcome {
        // the command has unmounted it itself
        Err(error) if !matches!(error.cause, Cause::NotMounted) => output::note(&error.to_string()),
        _ => {}
    }
}

fn usual_places() -> impl Iterator<Item = PathBuf> {
    let of_user = env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from);
    let usual = ["/var/tmp", "/dev/shm", "/run"].map(PathBuf::from);
    [env::temp_dir()].into_iter().chain(of_user).chain(usual)
}

/// A folder that is removed when this value is dropped, if it is empty by then.
#[derive(Debug)]
struct TemporaryFolder(PathBuf);

impl TemporaryFolder {
    /// Makes a folder in one of these places, outside of `source`, which is absolute and without symbolic links.
    fn outside(source: &Path, places: impl Iterator<Item = PathBuf>) -> Result<Self, CliError> {
        let mut failure = io::Error::other("all usual places lie inside the source");
        for place in places {
            match fs::canonicalize(place) {
                Ok(place) if place.starts_with(source) => {}
                Ok(place) => match mkdtemp(&place.join("volfs-XXXXXX")) {
                    Ok(folder) => return Ok(Self(folder)),
                    Err(errno) => failure = errno.into(),
                },
                Err(error) => failure = error,
            }
        }
        let what = format!("cannot make a temporary folder to mount on: {failure}");
        Err(CliError::new(what, "give a mount point: volfs mount SOURCE MOUNTPOINT --exec ..."))
    }
}

impl Drop for TemporaryFolder {
    fn drop(&mut self) {
        // the daemon and the command both remove it, in case the other one was killed
        let _ = fs::remove_dir(&self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_incomplete_count_is_a_lower_bound() {
        let text = |datasets, complete| dataset_count(&DatasetCount { datasets, complete, first: None });
        assert_eq!(text(3, true), ": 3 datasets");
        assert_eq!(text(1, true), ": 1 dataset");
        assert_eq!(text(3, false), ": 3 or more datasets");
        assert_eq!(text(0, true), ": no datasets found");
        assert_eq!(text(0, false), "");
    }

    #[test]
    fn a_count_survives_the_way_between_processes() {
        let first = Some(OsStr::from_bytes(b"a b/\xff.zgy").into());
        let count = DatasetCount { datasets: 12, complete: true, first };
        assert_eq!(messages(&count), [&b": 12 datasets"[..], b"a b/\xff.zgy"]);
        assert_eq!(messages(&DatasetCount { complete: false, first: None, ..count }), [b": 12 or more datasets"]);
    }

    #[test]
    fn the_first_array_is_one_that_can_be_loaded() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("dataset.json"), "").unwrap();
        assert_eq!(first_array(folder.path()), None);
        fs::create_dir(folder.path().join("data")).unwrap();
        fs::write(folder.path().join("data/lod0.npy"), "").unwrap();
        assert_eq!(first_array(folder.path()), Some(folder.path().join("data/lod0.npy")));
    }

    #[test]
    fn a_temporary_folder_lies_outside_of_the_source() {
        let top = tempfile::tempdir().unwrap();
        let top = top.path().canonicalize().unwrap();
        for name in ["source/tmp", "other"] {
            fs::create_dir_all(top.join(name)).unwrap();
        }
        let places = || ["none", "source/tmp", "other"].map(|name| top.join(name)).into_iter();
        let folder = TemporaryFolder::outside(&top.join("source"), places()).unwrap();
        let path = folder.0.clone();
        assert!(path.starts_with(top.join("other")) && path.is_dir());
        drop(folder);
        assert!(!path.exists());
        let error = TemporaryFolder::outside(&top, places()).unwrap_err().to_string();
        assert!(error.contains("give a mount point"), "{error}");
    }
}
