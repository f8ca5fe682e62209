//! The system's mounts: the one that a path lies in, the mount point of a new one, and what mounts answer when they are
//! asked for their status.
//!
//! The list of mounts is read before a folder is touched: a system call on a mount that hangs never returns.

use std::collections::HashMap;
use std::fs::{self, File, Metadata};
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path, PathBuf};
use std::time::{Duration, Instant};

use nix::errno::Errno;
use serde_json::Value;
use thiserror::Error;

use super::error::{Cause, CliError};
use super::interrupt::with_timeout;
use super::text::{counted, duration, escaped_path};
use crate::mount::{Mount, SideProcess, UnmountError, read_mounts, topmost, unmount};
use crate::source::is_url;

/// The time for an existing mount at the mount point to answer.
const TIMEOUT: Duration = Duration::from_secs(5);

/// The status file, below the mount point.
const STATUS: &str = ".volfs/status.json";

/// More bytes than any status has.
const MAX_STATUS: usize = 64 << 10;

/// The most symbolic links on the way to a path, as many as the kernel allows.
const MAX_LINKS: usize = 40;

pub(super) fn all_mounts() -> Result<Vec<Mount>, CliError> {
    read_mounts()
        .map_err(|error| CliError::new(format!("cannot read the list of mounts: {error}"), "is /proc mounted?"))
}

/// Returns the volfs mount that a path lies in: the innermost one, if no other mount lies between.
pub(super) fn around<'a>(mounts: &'a [Mount], path: &Path) -> Option<&'a Mount> {
    let innermost = path.ancestors().find_map(|above| topmost(mounts, above));
    innermost.filter(|mount| mount.is_volfs())
}

/// Follows the links of a path outside of volfs mounts; mounts have no links. Names that do not exist stay as they are.
pub(super) fn resolve(typed: &Path, mounts: &[Mount]) -> io::Result<PathBuf> {
    let mut rest = std::path::absolute(typed)?;
    for _ in 0..=MAX_LINKS {
        let (mut place, mut parts) = (PathBuf::new(), rest.components());
        let target = loop {
            match parts.next() {
                None => return Ok(place),
                Some(Component::ParentDir) => drop(place.pop()),
                Some(part) => place.push(part),
            }
            if around(mounts, &place).is_none()
                && let Ok(target) = fs::read_link(&place)
            {
                break target;
            }
        };
        place.pop();
        rest = place.join(target).join(parts);
    }
    Err(Errno::ELOOP.into())
}

/// Checks that `source` (canonical) can be mounted at `typed`, and clears a volfs mount there whose daemon died.
pub(super) fn check_mountpoint(typed: &Path, source: &Path) -> Result<PathBuf, CliError> {
    let refused = |error: io::Error| {
        let place = escaped_path(typed);
        let remedy = match error.kind() {
            io::ErrorKind::NotFound => format!("make it with: mkdir -p {place}"),
            _ => "give an empty folder that you may read".to_owned(),
        };
        CliError::new(format!("cannot use the mount point {place}: {error}"), remedy)
    };
    let place = resolve(typed, &all_mounts()?).map_err(refused)?;
    clear(&place, source)?;
    let not_empty = |how| {
        Err(CliError::new(format!("the mount point {} is not {how}", escaped_path(&place)), "give an empty folder"))
    };
    let metadata = fs::metadata(&place).map_err(refused)?;
    if !metadata.is_dir() {
        return not_empty("a folder");
    }
    // an object store lies in no folder
    if !is_url(source) {
        let of_source = fs::metadata(source).map_err(refused)?;
        for (inner, outer, folder) in [(&*place, source, &of_source), (source, &*place, &metadata)] {
            if is_inside(inner, folder) {
                let what = format!("{} lies inside {}", escaped_path(inner), escaped_path(outer));
                return Err(CliError::new(what, "give a mount point outside the source"));
            }
        }
    }
    if fs::read_dir(&place).map_err(refused)?.next().is_some() {
        return not_empty("empty");
    }
    Ok(place)
}

/// Finds the volfs mount that `typed` names. `remedy` says what to do about the mount of another program.
pub(super) fn find_volfs_mount(typed: &Path, remedy: impl FnOnce(&str) -> String) -> Result<Mount, CliError> {
    let mounts = all_mounts()?;
    let to_see = "to see all mounts type: volfs stats";
    let failed = |error| CliError::new(format!("cannot find {}: {error}", escaped_path(typed)), to_see);
    let place = resolve(typed, &mounts).map_err(failed)?;
    let shown = escaped_path(&place);
    let Some(mount) = topmost(&mounts, &place) else {
        if around(&mounts, &place).is_none() {
            place.symlink_metadata().map_err(failed)?;
        }
        let around = mounts.iter().find(|m| m.is_volfs() && place.starts_with(&m.mountpoint));
        let remedy = around.map(|mount| format!("the mount around it is at {}", escaped_path(&mount.mountpoint)));
        let what = format!("nothing is mounted at {shown}");
        return Err(CliError::new(what, remedy.as_deref().unwrap_or(to_see)).with_cause(Cause::NotMounted));
    };
    if !mount.is_volfs() {
        let what = format!("{shown} is a mount of {}, not of volfs", mount.name.to_string_lossy());
        return Err(CliError::new(what, remedy(&shown)));
    }
    Ok(mount.clone())
}

/// Unmounts all volfs mounts at `place` whose daemon certainly died; any other mount there is an error.
fn clear(place: &Path, source: &Path) -> Result<(), CliError> {
    let shown = escaped_path(place);
    while let Some(mount) = topmost(&all_mounts()?, place) {
        if !mount.is_volfs() {
            let name = mount.name.to_string_lossy();
            return Err(CliError::new(format!("{shown} is the mount point of {name} already"), "give another folder"));
        }
        if ask(place, TIMEOUT) != Err(NoStatus::Dead) {
            let what = format!("{shown} shows {} already", escaped_path(mount.source()));
            let error = CliError::new(what, format!("to use it for another mount type: volfs umount {shown}"));
            let is_same = mount.source() == source;
            return Err(if is_same { error.with_cause(Cause::MountedAlready) } else { error });
        }
        clear_dead(place)?;
    }
    Ok(())
}

/// Unmounts a mount whose daemon died, lazily: files of it that are still open cannot be read any more anyway.
pub(super) fn clear_dead(place: &Path) -> Result<(), CliError> {
    match unmount(place, true) {
        Ok(()) | Err(UnmountError::NotMounted) => Ok(()),
        Err(error) => Err(cannot_unmount(place, &error)),
    }
}

pub(super) fn cannot_unmount(place: &Path, error: &UnmountError) -> CliError {
    CliError::new(format!("cannot unmount {}: {error}", escaped_path(place)), "")
}

/// Returns whether `path` is, or lies below, the folder (or file) with this metadata, under any name.
fn is_inside(path: &Path, folder: &Metadata) -> bool {
    path.ancestors().any(|above| fs::metadata(above).is_ok_and(|m| (m.dev(), m.ino()) == (folder.dev(), folder.ino())))
}

#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub(super) enum NoStatus {
    #[error("its daemon died")]
    Dead,
    /// It may be busy.
    #[error("it did not answer in time")]
    Silent,
    /// Its denial shows that it lives.
    #[error("it belongs to another user, who did not mount it with --allow-other")]
    Denied,
    /// It answers with an error, or with an invalid status.
    #[error("{0}")]
    Error(String),
}

pub(super) type Status = Result<Value, NoStatus>;

/// Asks the mount at `mountpoint` for its status, which shows whether its daemon lives. It should be called before there
/// are threads; otherwise a mount that hangs keeps this process from ending.
pub(super) fn ask(mountpoint: &Path, limit: Duration) -> Status {
    Asker::default().ask(&[mountpoint.to_owned()], limit).pop().unwrap_or(Err(NoStatus::Silent))
}

/// Waits for the text of a mount's status, so only a process that may be left behind may call this.
pub(super) fn wait_for(mountpoint: &Path) -> Result<Vec<u8>, NoStatus> {
    let file = mountpoint.join(STATUS);
    let read = match read_start(&file) {
        // a request in flight when the daemon dies ends so; the next one gets the mount's lasting error
        Err(error) if error.raw_os_error() == Some(Errno::ECONNABORTED as i32) => read_start(&file),
        read => read,
    };
    read.map_err(|error| match error.kind() {
        _ if error.raw_os_error() == Some(Errno::ENOTCONN as i32) => NoStatus::Dead,
        io::ErrorKind::PermissionDenied => NoStatus::Denied,
        _ => NoStatus::Error(error.to_string()),
    })
}

/// Reads the beginning of a file: another user's mount may show anything there.
fn read_start(file: &Path) -> io::Result<Vec<u8>> {
    let mut text = vec![0; MAX_STATUS];
    // one read, since the mount counts each; a shorter text than asked for is whole
    let length = File::open(file)?.read(&mut text)?;
    text.truncate(length);
    Ok(text)
}

/// Asks mounts for their status in side processes: a process whose mount hangs may never end, and this one can.
#[derive(Default)]
pub(super) struct Asker {
    /// Processes whose mounts have not answered yet. Such a mount is not asked again.
    waiting: HashMap<PathBuf, SideProcess>,
}

impl Asker {
    /// Returns what all mounts together answer within `limit`. It must be called before there are threads.
    pub(super) fn ask(&mut self, mountpoints: &[PathBuf], limit: Duration) -> Vec<Status> {
        let deadline = Instant::now() + limit;
        self.waiting.retain(|place, _| mountpoints.contains(place));
        let mut late = std::mem::take(&mut self.waiting);
        let send_status = |place: &Path| {
            SideProcess::start(|link| {
                link.send(&encode(wait_for(place)));
            })
        };
        let start = |place: &PathBuf| (place.clone(), late.remove(place).map_or_else(|| send_status(place), Ok));
        let asked: Vec<_> = mountpoints.iter().map(start).collect();
        let answers = asked.into_iter().map(|(place, process)| {
            let Ok(process) = process else {
                // without another process, ask in a thread
                return decode(with_timeout(limit, move || encode(wait_for(&place))));
            };
            let message = process.link.receive(deadline);
            // one that has ended is not waited for: the mount is asked again the next time
            if message.is_none() && Instant::now() >= deadline {
                self.waiting.insert(place, process);
            }
            decode(message)
        });
        answers.collect()
    }
}

/// Returns the message of a side process that has asked a mount: a letter, and a text.
pub(super) fn encode(status: Result<Vec<u8>, NoStatus>) -> Vec<u8> {
    match status {
        Ok(status) => [b"S".as_slice(), &status].concat(),
        Err(NoStatus::Dead) => b"D".to_vec(),
        Err(NoStatus::Silent) => b"T".to_vec(),
        Err(NoStatus::Denied) => b"A".to_vec(),
        Err(NoStatus::Error(error)) => [b"E".as_slice(), error.as_bytes()].concat(),
    }
}

/// Parses such a message; without one the mount is silent.
pub(super) fn decode(message: Option<Vec<u8>>) -> Status {
    match message.as_deref() {
        Some([b'S', status @ ..]) => serde_json::from_slice(status).map_err(|error| NoStatus::Error(error.to_string())),
        Some([b'D', ..]) => Err(NoStatus::Dead),
        Some([b'A', ..]) => Err(NoStatus::Denied),
        Some([b'E', error @ ..]) => Err(NoStatus::Error(String::from_utf8_lossy(error).into_owned())),
        _ => Err(NoStatus::Silent),
    }
}

/// Returns what a status.json says of a source that stalls: `the source has not answered for 48 s; 3 reads wait`.
pub(super) fn stall(status: &Value) -> Option<String> {
    let stall = &status["source_stall"];
    let time = duration(stall["seconds"].as_f64()?.floor());
    let reads = match stall["reads_waiting"].as_u64()? {
        1 => "1 read waits".to_owned(),
        n => format!("{n} reads wait"),
    };
    let others = stall["other_datasets"].as_u64().filter(|n| *n > 0).map(|n| format!(" and {}", counted(n, "other")));
    let dataset = stall["dataset"].as_str().map(|name| format!(" ({name}{})", others.unwrap_or_default()));
    Some(format!("the source{} has not answered for {time}; {reads}", dataset.unwrap_or_default()))
}

/// Returns the daemon's process id from a status.json.
pub(super) fn daemon_pid(status: &Value) -> Option<u32> {
    status["pid"].as_u64()?.try_into().ok()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use serde_json::json;

    use super::*;

    fn folder(names: &[&str]) -> (tempfile::TempDir, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        for name in names {
            fs::create_dir_all(folder.path().join(name)).unwrap();
        }
        let path = folder.path().canonicalize().unwrap();
        (folder, path)
    }

    #[test]
    fn an_empty_folder_outside_the_source_is_accepted() {
        let (_guard, top) = folder(&["source", "mnt"]);
        symlink("mnt", top.join("link")).unwrap();
        for name in ["mnt", "mnt/", "link", "source/../mnt", "mnt/."] {
            assert_eq!(check_mountpoint(&top.join(name), &top.join("source")).unwrap(), top.join("mnt"), "{name}");
        }
    }

    #[test]
    fn other_folders_are_refused() {
        let (_guard, top) = folder(&["source/mnt", "full/x", "inner/source", "mnt"]);
        fs::write(top.join("file"), "").unwrap();
        symlink("source/mnt", top.join("link")).unwrap();
        let outcome = |mountpoint: &str, source: &str| {
            check_mountpoint(&top.join(mountpoint), &top.join(source)).unwrap_err().to_string()
        };
        for (mountpoint, source, error) in [
            ("source/mnt", "source", "lies inside"),
            ("link", "source", "lies inside"),
            ("source", "source", "lies inside"),
            ("inner", "inner/source", "lies inside"),
            ("full", "source", "is not empty; give an empty folder"),
            ("file", "source", "is not a folder; give an empty folder"),
            ("none", "source", "cannot use the mount point"),
            ("none/mnt", "source", "cannot use the mount point"),
        ] {
            assert!(outcome(mountpoint, source).contains(error), "{}", outcome(mountpoint, source));
        }
        assert!(check_mountpoint(&top.join("mnt"), &top.join("file")).is_ok());
    }

    #[test]
    fn a_mount_of_another_program_is_refused() {
        let (_guard, top) = folder(&[]);
        let error = check_mountpoint(Path::new("/proc"), &top).unwrap_err().to_string();
        assert!(error.contains("/proc is the mount point of"), "{error}");
    }

    #[test]
    fn the_process_id_is_found() {
        assert_eq!(daemon_pid(&json!({"version": "1", "pid": 4711})), Some(4711));
        assert_eq!(daemon_pid(&json!({"pid": -1})), None);
        assert_eq!(daemon_pid(&Value::Null), None);
    }

    #[test]
    fn an_answer_survives_the_way_between_processes() {
        for why in [NoStatus::Dead, NoStatus::Silent, NoStatus::Denied, NoStatus::Error("odd".to_owned())] {
            assert_eq!(decode(Some(encode(Err(why.clone())))), Err(why));
        }
        assert_eq!(decode(Some(encode(Ok(b"{\"pid\": 1}".to_vec())))), Ok(json!({"pid": 1})));
        assert!(matches!(decode(Some(encode(Ok(b"{".to_vec())))), Err(NoStatus::Error(_))));
        assert_eq!(decode(None), Err(NoStatus::Silent));
    }

    #[test]
    fn a_folder_without_status_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        assert!(matches!(ask(folder.path(), Duration::from_secs(10)), Err(NoStatus::Error(_))));
    }

    #[test]
    fn links_are_followed() {
        let folder = tempfile::tempdir().unwrap();
        let top = folder.path().canonicalize().unwrap();
        fs::create_dir_all(top.join("a/b")).unwrap();
        symlink("a/b", top.join("one")).unwrap();
        symlink(top.join("one"), top.join("two")).unwrap();
        symlink("circle", top.join("circle")).unwrap();
        let resolve = |name: &str| resolve(&top.join(name), &[]);
        assert_eq!(resolve("two/c").unwrap(), top.join("a/b/c"));
        assert_eq!(resolve("two/../c/.").unwrap(), top.join("a/c"));
        assert_eq!(resolve("none/../c").unwrap(), top.join("c"));
        assert!(resolve("circle").is_err());
    }
}
