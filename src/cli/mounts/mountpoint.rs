//! Checks and finds mount points. The system's list of mounts is read before the folder itself is touched: a system
//! call on a mount that hangs never returns.

use std::fs::{self, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::cli::error::CliError;
use crate::cli::mounts::status::{self, Answer};
use crate::mount::mountinfo::{self, Mount};
use crate::mount::unmount::{UnmountError, unmount};
use crate::source::is_url;

/// How long an existing mount at the mount point may take to answer.
const TIMEOUT: Duration = Duration::from_secs(5);

/// Returns the path as the system's list of mounts has it: absolute and without symbolic links. Does not touch the
/// folder itself if something is mounted there.
pub(crate) fn locate(typed: &Path, mounts: &[Mount]) -> io::Result<PathBuf> {
    let absolute = std::path::absolute(typed)?;
    let (Some(parent), Some(name)) = (absolute.parent(), absolute.file_name()) else { return Ok(absolute) };
    // `..` is the parent of the folder that the links before it lead to
    if name == ".." {
        return fs::canonicalize(&absolute);
    }
    let place = fs::canonicalize(parent)?.join(name);
    if mountinfo::topmost(mounts, &place).is_some() { Ok(place) } else { fs::canonicalize(place) }
}

/// Checks that `source` (canonical) can be mounted at `typed`, and clears a volfs mount there whose daemon died.
pub(crate) fn check(typed: &Path, source: &Path) -> Result<PathBuf, CliError> {
    let refused = |error| CliError::Mountpoint(typed.to_owned(), error);
    let place = clear(&locate(typed, &mounts()?).map_err(refused)?, source)?;
    let metadata = fs::metadata(&place).map_err(refused)?;
    if !metadata.is_dir() {
        return Err(CliError::NotAFolder(place));
    }
    // an object store lies in no folder
    if !is_url(source) {
        let of_source = fs::metadata(source).map_err(refused)?;
        if is_inside(&place, &of_source) {
            return Err(CliError::Inside { inner: place, outer: source.to_owned() });
        }
        if is_inside(source, &metadata) {
            return Err(CliError::Inside { inner: source.to_owned(), outer: place });
        }
    }
    if fs::read_dir(&place).map_err(refused)?.next().is_some() {
        return Err(CliError::NotEmpty(place));
    }
    Ok(place)
}

/// Finds the volfs mount that `typed` names, and its canonical mount point. `foreign` makes the error for the mount of
/// another program.
pub(crate) fn find_volfs_mount(
    typed: &Path,
    foreign: impl FnOnce(PathBuf, String) -> CliError,
) -> Result<(PathBuf, Mount), CliError> {
    let mounts = mounts()?;
    let place = locate(typed, &mounts).map_err(|error| CliError::NoFolder(typed.to_owned(), error))?;
    let Some(mount) = mountinfo::topmost(&mounts, &place) else {
        let around = mounts.iter().find(|m| m.is_volfs() && place.starts_with(&m.mountpoint));
        return Err(CliError::NotMounted(place, around.map(|m| m.mountpoint.clone())));
    };
    if mount.is_volfs() {
        Ok((place, mount.clone()))
    } else {
        Err(foreign(place, mount.name.to_string_lossy().into_owned()))
    }
}

/// Returns all mounts of the system.
pub(crate) fn mounts() -> Result<Vec<Mount>, CliError> {
    mountinfo::read().map_err(CliError::Mounts)
}

/// Returns `place` once nothing is mounted there. Unmounts only volfs mounts whose daemon certainly died.
fn clear(place: &Path, source: &Path) -> Result<PathBuf, CliError> {
    loop {
        let mounts = mounts()?;
        let Some(mount) = mountinfo::topmost(&mounts, place) else { return Ok(place.to_owned()) };
        if !mount.is_volfs() {
            return Err(CliError::ForeignMount(place.to_owned(), mount.name.to_string_lossy().into_owned()));
        }
        if status::ask(place, TIMEOUT) != Answer::Dead {
            return Err(CliError::AlreadyMounted {
                mountpoint: place.to_owned(),
                wanted: source.to_owned(),
                shown: mountinfo::source_of(mount).to_owned(),
            });
        }
        clear_dead(place)?;
    }
}

/// Unmounts a mount whose daemon died, lazily: files of it that are still open cannot be read any more anyway.
pub(crate) fn clear_dead(place: &Path) -> Result<(), CliError> {
    match unmount(place, true) {
        Ok(()) | Err(UnmountError::NotMounted) => Ok(()),
        Err(error) => Err(CliError::Unmount { mountpoint: place.to_owned(), error }),
    }
}

/// Returns whether `path` is, or lies below, the folder (or file) with this metadata, under any name.
fn is_inside(path: &Path, folder: &Metadata) -> bool {
    path.ancestors().any(|above| fs::metadata(above).is_ok_and(|m| (m.dev(), m.ino()) == (folder.dev(), folder.ino())))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

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
            assert_eq!(check(&top.join(name), &top.join("source")).unwrap(), top.join("mnt"), "{name}");
        }
    }

    #[test]
    fn other_folders_are_refused() {
        let (_guard, top) = folder(&["source/mnt", "full/x", "inner/source", "mnt"]);
        fs::write(top.join("file"), "").unwrap();
        symlink("source/mnt", top.join("link")).unwrap();
        let outcome = |mountpoint: &str, source: &str| check(&top.join(mountpoint), &top.join(source)).unwrap_err();
        assert!(matches!(outcome("source/mnt", "source"), CliError::Inside { .. }));
        assert!(matches!(outcome("link", "source"), CliError::Inside { .. }));
        assert!(matches!(outcome("source", "source"), CliError::Inside { .. }));
        assert!(matches!(outcome("inner", "inner/source"), CliError::Inside { .. }));
        assert!(matches!(outcome("full", "source"), CliError::NotEmpty(_)));
        assert!(matches!(outcome("file", "source"), CliError::NotAFolder(_)));
        assert!(matches!(outcome("none", "source"), CliError::Mountpoint(..)));
        assert!(matches!(outcome("none/mnt", "source"), CliError::Mountpoint(..)));
        assert!(check(&top.join("mnt"), &top.join("file")).is_ok());
    }

    #[test]
    fn a_mount_of_another_program_is_refused() {
        let (_guard, top) = folder(&[]);
        assert!(matches!(check(Path::new("/proc"), &top), Err(CliError::ForeignMount(..))));
    }
}
