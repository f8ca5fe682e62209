//! The error that a command ends with: one line that names the failure, the place and the remedy.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use nix::unistd::getuid;
use thiserror::Error;

use super::text::choice::similar;
use super::text::escape::{path, text};
use crate::array::ReadError;
use crate::catalog::{CatalogError, OpenError};
use crate::logging::LoggingError;
use crate::mount::daemon::DaemonError;
use crate::mount::session::MountError;
use crate::mount::unmount::UnmountError;
use crate::source::disk_cache::DiskCacheError;

/// The most names of a folder that are compared with one that is not there.
const MOST_NAMES: usize = 10_000;

/// Why a command failed.
#[derive(Debug, Error)]
pub(crate) enum CliError {
    /// The arguments are wrong, or ask for help.
    #[error(transparent)]
    Usage(#[from] clap::Error),
    /// SOURCE cannot be opened.
    #[error("cannot find the source {}: {error}; give a folder of volumes or one volume (commands: volfs --help)", path(.typed))]
    Source {
        /// SOURCE as it was typed.
        typed: PathBuf,
        /// The system's error.
        error: io::Error,
    },
    /// SOURCE is a URL that cannot be used; with the reason and the remedy.
    #[error("cannot use {place}: {1}", place = path(.0))]
    Store(PathBuf, String),
    /// The source of the mount that a path lies in is gone.
    #[error(
        "the mount at {mountpoint} shows {shown}, which cannot be found: {error}; if it was moved, type: volfs umount \
         {mountpoint}, and mount it from its new place", mountpoint = path(.mountpoint), shown = path(.source_path)
    )]
    SourceGone {
        /// Where the mount is.
        mountpoint: PathBuf,
        /// The source that it shows.
        source_path: PathBuf,
        /// The system's error.
        error: io::Error,
    },
    /// A path lies in the mount of another user.
    #[error(
        "the mount at {} belongs to another user ({}), who may claim any source for it; if you trust that it is {place}, \
         give that itself", path(.mountpoint), .owner.map_or_else(|| "unknown".to_owned(), |id| format!("id {id}")),
         place = path(.source_path)
    )]
    OthersSource {
        /// Where the mount is.
        mountpoint: PathBuf,
        /// The source that its name claims.
        source_path: PathBuf,
        /// The number of the user who mounted it.
        owner: Option<u32>,
    },
    /// A path inside a mount is not in its source.
    #[error("{} is not there: it would show {}; to see what is there type: volfs ls {}", path(.shown), path(.wanted), path(.wanted.parent().unwrap_or(.wanted)))]
    NotInSource {
        /// The path in the mount.
        shown: PathBuf,
        /// The path in the source.
        wanted: PathBuf,
    },
    /// A path inside a mount belongs to the mount itself.
    #[error("{} is about the mount and no volume; see: volfs stats {}", path(.shown), path(.mountpoint))]
    AboutMount {
        /// The path.
        shown: PathBuf,
        /// Where the mount is.
        mountpoint: PathBuf,
    },
    /// A path inside the folder of a dataset is not there.
    #[error("{} shows nothing of the volume {}; its layers have the folders {}", path(.shown), path(.dataset), text(.layers))]
    NotInDataset {
        /// The path in the mount.
        shown: PathBuf,
        /// The dataset in the source.
        dataset: PathBuf,
        /// The names of the folders.
        layers: String,
    },
    /// SOURCE does not answer within this time.
    #[error("the source {place} does not answer within {s} s; is its server reachable?", place = path(.0), s = .1.as_secs())]
    SourceTimeout(PathBuf, Duration),
    /// What another process of this command reports, with its exit status.
    #[error("{0}")]
    Reported(String, u8),
    /// SOURCE is neither a file nor a folder.
    #[error("{} is neither a file nor a folder; give a folder of volumes or one volume", path(.0))]
    SpecialFile(PathBuf),
    /// SOURCE is a file of an unknown format.
    #[error("{} is not a volume of a format that this version reads; give a folder of volumes or one volume", path(.0))]
    NotAVolume(PathBuf),
    /// MOUNTPOINT cannot be opened.
    #[error("cannot use the mount point {place}: {1}; {hint}", place = path(.0), hint = mountpoint_hint(.0, .1))]
    Mountpoint(PathBuf, io::Error),
    /// MOUNTPOINT is a file.
    #[error("the mount point {} is not a folder; give an empty folder", path(.0))]
    NotAFolder(PathBuf),
    /// MOUNTPOINT is not empty.
    #[error("the mount point {} is not empty; give an empty folder", path(.0))]
    NotEmpty(PathBuf),
    /// MOUNTPOINT lies in SOURCE, or SOURCE in MOUNTPOINT.
    #[error("{} lies inside {}; give a mount point outside the source", path(.inner), path(.outer))]
    Inside {
        /// The inner folder.
        inner: PathBuf,
        /// The outer folder.
        outer: PathBuf,
    },
    /// There is a volfs mount at MOUNTPOINT.
    #[error("{at} shows {what} already; to mount anew type: volfs umount {at}", at = path(.mountpoint), what = path(.shown))]
    AlreadyMounted {
        /// MOUNTPOINT.
        mountpoint: PathBuf,
        /// The source to mount.
        wanted: PathBuf,
        /// The source that is mounted there.
        shown: PathBuf,
    },
    /// Another program has a mount at MOUNTPOINT; with its name.
    #[error("{place} is the mount point of {name} already; give another folder", place = path(.0), name = text(.1))]
    ForeignMount(PathBuf, String),
    /// The machine or its configuration prevents what was asked for; the text names the remedy.
    #[error("{0}")]
    Machine(String),
    /// There is no server.
    #[cfg(feature = "serve")]
    #[error(transparent)]
    Serve(#[from] crate::serve::ServeError),
    /// The list of mounts cannot be read.
    #[error("cannot read what is mounted: {0}; is /proc there?")]
    Mounts(io::Error),
    /// The daemon could not start.
    #[error(transparent)]
    Daemon(#[from] DaemonError),
    /// Logging could not start.
    #[error(transparent)]
    Logging(#[from] LoggingError),
    /// The mount failed.
    #[error("{0}; to see more type: RUST_LOG=debug volfs mount --foreground ...")]
    Mount(MountError),
    /// The new mount does not answer; with the reason.
    #[error("the mount at {place} does not answer: {1}; --foreground shows more", place = path(.0))]
    NoAnswer(PathBuf, String),
    /// The FUSE session of a mount ended with an error.
    #[error("the mount at {} ended: {error}", path(.mountpoint))]
    Ended {
        /// MOUNTPOINT.
        mountpoint: PathBuf,
        /// The reason.
        error: MountError,
    },
    /// There is no place for a temporary mount point.
    #[error(
        "cannot make a temporary folder to mount on: {0}; give a mount point: volfs mount SOURCE MOUNTPOINT --exec ..."
    )]
    TemporaryFolder(io::Error),
    /// The command of `mount --exec` cannot be run.
    #[error("cannot run {}: {error}; give a program that is in PATH, or its path", path(.program))]
    CannotRun {
        /// The program as it was typed.
        program: PathBuf,
        /// The reason.
        error: io::Error,
    },
    /// The command of `mount --exec` ended with this exit status, which is passed on.
    #[error("the command ended with exit status {0}")]
    CommandEnded(u8),
    /// The folder to unmount cannot be opened.
    #[error("cannot find {place}: {1}; {hint}", place = path(.0), hint = mounted_hint(None))]
    NoFolder(PathBuf, io::Error),
    /// Nothing is mounted at this place; with the volfs mount around it, if any.
    #[error("nothing is mounted at {place}; {hint}", place = path(.0), hint = mounted_hint(.1.as_deref()))]
    NotMounted(PathBuf, Option<PathBuf>),
    /// The mount to unmount belongs to another program; with its name.
    #[error("{place} is a mount of {name}, not of volfs; to unmount it type: umount {place}", place = path(.0), name = text(.1))]
    NotOurs(PathBuf, String),
    /// The mount is in use; with the mounts and processes that use it.
    #[error("{mountpoint} is in use{by}; end that, or type: volfs umount --lazy {mountpoint}", mountpoint = path(.0), by = by(.1))]
    Busy(PathBuf, Vec<String>),
    /// The mount to unmount does not answer, maybe since its daemon (with its process id) is stopped.
    #[error("the mount at {place} does not answer{}; to take it away all the same type: volfs umount --lazy {place}", stopped(.1.as_ref()), place = path(.0))]
    Unresponsive(PathBuf, Option<u32>),
    /// The system refuses to unmount.
    #[error("cannot unmount {}: {error}", path(.mountpoint))]
    Unmount {
        /// MOUNTPOINT.
        mountpoint: PathBuf,
        /// The reason.
        error: UnmountError,
    },
    /// The mount is gone, but its daemon still runs; with its process id, and how long volfs has waited for it.
    #[error("{place} is unmounted, but its daemon (process {1}) has not ended within {s} s; it may wait for its source", place = path(.0), s = .2.as_secs())]
    DaemonStays(PathBuf, u32, Duration),
    /// The mount is gone, but others still see it, so that its daemon (with its process id) goes on.
    #[error("{place} is unmounted here, but {2} and others of its mount namespace (a container, say) still see it: its daemon (process {1}) goes on until they unmount it or end", place = path(.0))]
    SeenElsewhere(PathBuf, u32, String),
    /// The mount is still listed after this time.
    #[error("{place} is still mounted after {s} s; see /proc/self/mountinfo", place = path(.0), s = .1.as_secs())]
    StillMounted(PathBuf, Duration),
    /// A dataset cannot be opened.
    #[error("cannot open {place}: {error}{hint}", place = path(.dataset), hint = dataset_hint(.dataset, .error))]
    Dataset {
        /// PATH.
        dataset: PathBuf,
        /// The reason.
        error: OpenError,
    },
    /// SOURCE cannot be listed.
    #[error("cannot list {}: {error}", path(.source_path))]
    ListSource {
        /// SOURCE.
        source_path: PathBuf,
        /// The reason.
        error: CatalogError,
    },
    /// An argument does not fit the dataset.
    #[error("{0}")]
    Argument(String),
    /// Samples would be written to a terminal.
    #[error(
        "samples are not for a terminal; write them to a file (-o FILE), send them to a program (... | PROGRAM), \
         or insist with --force"
    )]
    Terminal,
    /// A brick cannot be read.
    #[error("{}, layer {}, lod {lod}, {error}; the brick has --region {held}, read around it", path(.dataset), text(.layer))]
    Brick {
        /// PATH.
        dataset: PathBuf,
        /// The layer's name.
        layer: String,
        /// The level of detail.
        lod: usize,
        /// The box that the brick holds, as slices.
        held: String,
        /// The brick, and why it cannot be read.
        error: Box<ReadError>,
    },
    /// The mount to ask for its status belongs to another program; with its name.
    #[error("{place} is a mount of {name}, not of volfs; to see those of volfs type: volfs stats", place = path(.0), name = text(.1))]
    NotVolfs(PathBuf, String),
    /// The daemon of the mount died.
    #[error("the daemon of the mount at {place} died; to clear it type: volfs umount {place}", place = path(.0))]
    DeadMount(PathBuf),
    /// The mount did not answer within this time; with what to do.
    #[error("the mount at {place} did not answer within {s} s; {2}", place = path(.0), s = .1.as_secs())]
    StatusTimeout(PathBuf, Duration, String),
    /// The mount belongs to another user, who did not share it.
    #[error("the mount at {} is another user's; ask as that user, or mount with --allow-other", path(.0))]
    OtherUsersMount(PathBuf),
    /// The mount's status cannot be read or parsed; with the reason.
    #[error("cannot read the status of the mount at {place}: {1}; is it of this version?", place = path(.0))]
    BadStatus(PathBuf, String),
    /// `volfs verify` found something that is bad.
    #[error("{bad} of {of} volumes {are} bad; restore what is named above from a copy: the rest can be read", are = if *.bad == 1 { "is" } else { "are" })]
    BadVolumes {
        /// Volumes that are bad.
        bad: u64,
        /// All volumes.
        of: u64,
    },
    /// `volfs verify` could not read something, and found nothing that is bad.
    #[error(
        "{unread} of {of} volumes could not be read in whole; see to what is named above \
         (disk, network, permissions, limits) and verify again"
    )]
    UnreadVolumes {
        /// Volumes that could not be read in whole.
        unread: u64,
        /// All volumes.
        of: u64,
    },
    /// `volfs doctor` found something that prevents mounting.
    #[error("this machine cannot mount yet; fix what is marked \"problem\" and run volfs doctor again")]
    Doctor,
    /// The folder for a disk cache cannot be found.
    #[error("cannot use {place} as a disk cache: {1}; give a folder that you may write to", place = path(.0))]
    DiskCacheFolder(PathBuf, io::Error),
    /// The folder for a disk cache lies in a mount.
    #[error("the disk cache {} lies inside the mount at {}; give a folder outside of it", path(.dir), path(.mountpoint))]
    DiskCacheInside {
        /// The folder.
        dir: PathBuf,
        /// Where the mount is.
        mountpoint: PathBuf,
    },
    /// A folder is no disk cache, or cannot be one.
    #[error("{}", text(&.0.to_string()))]
    DiskCache(#[from] DiskCacheError),
    /// The output cannot be written.
    #[error("cannot write the output: {0}")]
    Output(io::Error),
    /// The file for the output cannot be written.
    #[error("cannot write {place}: {1}; give another file with --output", place = path(.0))]
    OutputFile(PathBuf, io::Error),
}

impl CliError {
    /// The exit status of the process.
    pub(crate) fn exit_status(&self) -> u8 {
        match self {
            Self::Usage(error) => u8::try_from(error.exit_code()).unwrap_or(2),
            Self::Argument(_) | Self::Terminal => 2,
            Self::CommandEnded(status) | Self::Reported(_, status) => *status,
            // as shells have it
            Self::CannotRun { error, .. } if error.kind() == io::ErrorKind::NotFound => 127,
            Self::CannotRun { .. } => 126,
            _ => 1,
        }
    }

    /// Prints the error on standard error; help that was asked for goes to standard output.
    pub(crate) fn print(&self) {
        // an error of standard error cannot be reported anywhere
        match self {
            Self::Usage(error) => drop(error.print()),
            // the command has said what there was to say
            Self::CommandEnded(_) => {}
            other => {
                drop(io::Write::write_fmt(&mut io::stderr(), format_args!("volfs: {}\n", text(&other.to_string()))))
            }
        }
    }
}

fn mountpoint_hint(mountpoint: &Path, error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::NotFound => format!("make it with: mkdir -p {}", path(mountpoint)),
        _ => "give an empty folder that you may read".to_owned(),
    }
}

fn mounted_hint(around: Option<&Path>) -> String {
    around.map_or_else(
        || "to see all mounts type: volfs stats".to_owned(),
        |m| format!("the mount around it is at {}", path(m)),
    )
}

fn dataset_hint(dataset: &Path, error: &OpenError) -> String {
    match error {
        OpenError::Unknown(_) if dataset.is_dir() => {
            format!("; to see the volumes in it type: volfs ls {}", path(dataset))
        }
        OpenError::Io { kind: io::ErrorKind::NotFound, .. } => {
            let folder = dataset.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
            let beside = |name| format!("; did you mean {}?", path(&folder.join(name)));
            let look = || format!("; to see what is there type: volfs ls {}", path(folder));
            similar_name(folder, dataset).map_or_else(look, beside)
        }
        OpenError::Io { kind: io::ErrorKind::PermissionDenied, .. } => {
            "; ask its owner for the right to read it".to_owned()
        }
        _ => String::new(),
    }
}

/// Returns the name in a folder that is most like that of a path which is not there.
fn similar_name(folder: &Path, wanted: &Path) -> Option<String> {
    let entries = std::fs::read_dir(folder).ok()?.take(MOST_NAMES).flatten();
    let names: Vec<String> = entries.filter_map(|entry| entry.file_name().into_string().ok()).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    similar(&names, wanted.file_name()?.to_str()?).map(str::to_owned)
}

fn stopped(daemon: Option<&u32>) -> String {
    daemon.map_or_else(String::new, |pid| {
        format!(", since its daemon (process {pid}) is stopped: to let it go on type: kill -CONT {pid}")
    })
}

fn by(holders: &[String]) -> String {
    match holders {
        [] if getuid().is_root() => {
            ": what used it may have ended just now (type the command again), or is no process, such as an NFS export"
                .to_owned()
        }
        [] => " by a process that this user cannot see".to_owned(),
        holders => format!(" by {}", holders.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_is_one_line_without_escapes() {
        let odd = PathBuf::from("/a\nb\x1b[2J");
        let errors = [
            CliError::Source { typed: odd.clone(), error: io::Error::from_raw_os_error(2) },
            CliError::Mountpoint(odd.clone(), io::Error::from_raw_os_error(2)),
            CliError::AlreadyMounted { mountpoint: odd.clone(), wanted: odd.clone(), shown: odd.clone() },
            CliError::Busy(odd.clone(), vec!["cat (process 7)".into()]),
            CliError::NotMounted(odd.clone(), Some(odd.clone())),
            DiskCacheError::NoCache(odd.clone()).into(),
            CliError::NotOurs(odd, "tmp\nfs".into()),
        ];
        for error in errors {
            let text = error.to_string();
            assert!(!text.contains(['\n', '\x1b']), "{text:?}");
            assert_eq!(error.exit_status(), 1);
        }
    }
}
