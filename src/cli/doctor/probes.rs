//! The probes of `volfs doctor`: the facts about the machine, before any check.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::unistd::getuid;
use rustix::process::{Resource, getrlimit};

use crate::cli::machine::{self, DEVICE, FUSE_CONF, Privileges};
use crate::cli::mounts::{Asker, NoStatus, daemon_pid, stall};
use crate::cli::processes::Daemon;
use crate::mount::{Mount, SideProcess, find_helper, topmost};

/// How long all mounts together may take to answer, and then their sources.
const TIMEOUT: Duration = Duration::from_secs(3);

/// The configuration of updatedb, which fills the database of `locate`.
pub(super) const UPDATEDB_CONF: &str = "/etc/updatedb.conf";

/// The paths that are probed.
#[derive(Clone, Debug)]
pub(super) struct ProbePaths {
    /// The FUSE device.
    pub(super) device: PathBuf,
    /// The configuration of the mount helper.
    pub(super) conf: PathBuf,
    /// The configuration of updatedb.
    pub(super) updatedb: PathBuf,
    /// The socket of the system's log.
    pub(super) syslog: PathBuf,
    /// The file with the kernel's release.
    pub(super) release: PathBuf,
    /// The folder with the kernel's settings of each mounted device.
    pub(super) devices: PathBuf,
    /// The helper that mounts for ordinary users.
    pub(super) helper: Option<PathBuf>,
}

impl ProbePaths {
    /// Returns the paths of an ordinary Linux machine.
    pub(super) fn system() -> Self {
        Self {
            device: DEVICE.into(),
            conf: FUSE_CONF.into(),
            updatedb: UPDATEDB_CONF.into(),
            syslog: "/dev/log".into(),
            release: "/proc/sys/kernel/osrelease".into(),
            devices: "/sys/class/bdi".into(),
            helper: find_helper(),
        }
    }
}

/// What the probes found.
#[derive(Debug)]
pub(super) struct Probes {
    /// The result of opening the FUSE device.
    pub(super) device: io::Result<()>,
    /// The device's permission bits, if it exists.
    pub(super) mode: Option<u32>,
    /// The helper that mounts for ordinary users.
    pub(super) helper: Option<Helper>,
    /// Whether the user is root.
    pub(super) root: bool,
    /// Whether this process or the helper may mount.
    pub(super) privileges: Privileges,
    /// The text of fuse.conf.
    pub(super) conf: String,
    /// The text of updatedb.conf, if it exists and can be read.
    pub(super) updatedb: Option<String>,
    /// The kernel's release.
    pub(super) release: String,
    /// The mounts of volfs.
    pub(super) mounts: Vec<MountProbe>,
    /// The limit of open files of a process, if there is one.
    pub(super) open_files: Option<u64>,
    /// Bytes of memory that this process may use.
    pub(super) memory: u64,
    /// Bytes of memory of the machine.
    pub(super) machine_memory: Option<u64>,
    /// Bytes of a mount's cache by default.
    pub(super) cache: u64,
    /// Whether the system has a log.
    pub(super) syslog: bool,
}

/// The helper that mounts for ordinary users.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Helper {
    /// Its path.
    pub(super) path: PathBuf,
    /// Whether it is owned by root and has the setuid bit.
    pub(super) setuid: bool,
}

/// A mount of volfs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct MountProbe {
    /// The mount point.
    pub(super) mountpoint: PathBuf,
    /// The source, as the mount's name has it.
    pub(super) source: PathBuf,
    /// Whether it gives its status.
    pub(super) answer: Result<(), NoStatus>,
    /// How its source answers, if its daemon lives.
    pub(super) source_state: SourceState,
    /// Its daemon, if the mount or its source does not answer and the daemon can be found.
    pub(super) daemon: Option<Daemon>,
    /// The kernel's read-ahead in KiB, and the file that sets it.
    pub(super) read_ahead: Option<(u64, PathBuf)>,
}

/// How the source of a mount answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum SourceState {
    /// It does, or nothing is known of it.
    Answers,
    /// It is gone.
    Gone,
    /// It has not answered in time.
    Silent,
    /// The mount tells for how long the source has not answered, and how many reads wait for it.
    Stalls(String),
}

impl Probes {
    /// Probes the machine. Has to be called before there are threads.
    pub(super) fn collect(paths: &ProbePaths, mounts: &[Mount]) -> Self {
        Self {
            device: machine::open_device(&paths.device),
            mode: fs::metadata(&paths.device).ok().map(|metadata| metadata.mode() & 0o7777),
            helper: paths.helper.as_deref().map(Helper::at),
            root: getuid().is_root(),
            privileges: Privileges::of_process(),
            conf: machine::conf(&paths.conf),
            updatedb: fs::read_to_string(&paths.updatedb).ok(),
            release: fs::read_to_string(&paths.release).unwrap_or_default().trim().to_owned(),
            mounts: mount_probes(mounts, &paths.devices),
            open_files: getrlimit(Resource::Nofile).current,
            memory: machine::allowed_memory(),
            machine_memory: machine::memory_of_machine(),
            cache: machine::default_cache_size(),
            syslog: paths.syslog.exists(),
        }
    }
}

impl Helper {
    fn at(path: &Path) -> Self {
        let setuid = fs::metadata(path).is_ok_and(|metadata| metadata.uid() == 0 && metadata.mode() & 0o4000 != 0);
        Self { path: path.to_owned(), setuid }
    }
}

/// Probes all mounts of volfs at the same time, except for those below another mount at the same place. What may hang,
/// side processes do.
fn mount_probes(mounts: &[Mount], devices: &Path) -> Vec<MountProbe> {
    let on_top = |mount: &&Mount| topmost(mounts, &mount.mountpoint) == Some(*mount);
    let mounts: Vec<&Mount> = mounts.iter().filter(|mount| mount.is_volfs()).filter(on_top).collect();
    let places: Vec<PathBuf> = mounts.iter().map(|mount| mount.mountpoint.clone()).collect();
    // before the sources, so that the daemons have both at the same time
    let look_at = |place: &PathBuf| {
        SideProcess::start(|link| {
            link.send(look(place));
        })
    };
    let looks: Vec<_> = places.iter().map(look_at).collect();
    let answers = Asker::default().ask(&places, TIMEOUT);
    let deadline = Instant::now() + TIMEOUT;
    let mut probes = Vec::new();
    for ((mount, answer), look) in mounts.into_iter().zip(answers).zip(looks) {
        let source_state = match &answer {
            Ok(status) => serde_json::from_slice(status).ok().and_then(|status| stall(&status)).map_or_else(
                || source_state(look.ok().map(|process| process.link().receive(deadline))),
                SourceState::Stalls,
            ),
            Err(_) => SourceState::Answers,
        };
        probes.push(MountProbe {
            mountpoint: mount.mountpoint.clone(),
            source: mount.source().to_owned(),
            daemon: match &answer {
                Err(NoStatus::Silent) => Daemon::find(mount),
                Ok(status) if source_state != SourceState::Answers => Daemon::find_answering(mount, daemon_pid(status)),
                _ => None,
            },
            answer: answer.map(drop),
            source_state,
            read_ahead: read_ahead(mount.device, devices),
        });
    }
    probes
}

/// The messages of a side process that has looked at the root of a mount, for which the daemon asks its source.
const GONE: &[u8] = b"gone";
const THERE: &[u8] = b"there";

fn look(mountpoint: &Path) -> &'static [u8] {
    let listed = fs::read_dir(mountpoint);
    if listed.is_err_and(|error| error.raw_os_error() == Some(Errno::ESTALE as i32)) { GONE } else { THERE }
}

/// Returns what a side process has said; `None` stands for none.
fn source_state(message: Option<Option<Vec<u8>>>) -> SourceState {
    match message {
        Some(None) => SourceState::Silent,
        Some(Some(message)) if message == GONE => SourceState::Gone,
        _ => SourceState::Answers,
    }
}

fn read_ahead((major, minor): (u32, u32), devices: &Path) -> Option<(u64, PathBuf)> {
    let file = devices.join(format!("{major}:{minor}")).join("read_ahead_kb");
    Some((fs::read_to_string(&file).ok()?.trim().parse().ok()?, file))
}

#[cfg(test)]
mod tests {
    use std::fs::Permissions;
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn a_machine_is_probed_at_the_given_paths() {
        let folder = tempfile::tempdir().unwrap();
        let place = |name: &str| folder.path().join(name);
        fs::write(place("fuse"), "").unwrap();
        fs::set_permissions(place("fuse"), Permissions::from_mode(0o640)).unwrap();
        fs::write(place("conf"), "user_allow_other\n").unwrap();
        fs::write(place("updatedb.conf"), "PRUNEFS=\"nfs\"\n").unwrap();
        fs::write(place("release"), "6.1.0-18-amd64\n").unwrap();
        fs::write(place("helper"), "").unwrap();
        fs::create_dir_all(place("bdi/0:51")).unwrap();
        fs::write(place("bdi/0:51/read_ahead_kb"), "4096\n").unwrap();
        let mount = Mount { device: (0, 51), name: "volfs:/data".into(), ..Mount::for_tests(place("mnt")) };
        let other = Mount { id: 41, name: "sshfs".into(), mountpoint: place("other"), ..mount.clone() };
        let paths = ProbePaths {
            device: place("fuse"),
            conf: place("conf"),
            updatedb: place("updatedb.conf"),
            syslog: place("log"),
            release: place("release"),
            devices: place("bdi"),
            helper: Some(place("helper")),
        };
        let probes = Probes::collect(&paths, &[mount, other]);
        assert!(probes.device.is_ok());
        assert_eq!(probes.mode, Some(0o640));
        assert_eq!(probes.helper, Some(Helper { path: place("helper"), setuid: false }));
        assert_eq!(
            (probes.conf.as_str(), probes.release.as_str(), probes.syslog),
            ("user_allow_other\n", "6.1.0-18-amd64", false)
        );
        assert_eq!(probes.updatedb.as_deref(), Some("PRUNEFS=\"nfs\"\n"));
        assert_eq!(probes.mounts.len(), 1);
        assert_eq!(probes.mounts[0].source.to_str(), Some("/data"));
        assert_eq!(probes.mounts[0].source_state, SourceState::Answers);
        assert!(matches!(probes.mounts[0].answer, Err(NoStatus::Error(_))));
        assert_eq!(probes.mounts[0].read_ahead, Some((4096, place("bdi/0:51/read_ahead_kb"))));
        assert!(probes.memory > 0 && probes.cache > 0);
        let nothing = Probes::collect(&ProbePaths { device: place("none"), helper: None, ..paths }, &[]);
        assert_eq!(nothing.device.unwrap_err().kind(), io::ErrorKind::NotFound);
        assert_eq!((nothing.mode, nothing.helper), (None, None));
    }
}
