//! Opens a path that a user gave, in a folder that others may write to: a link that another user planted there would
//! lead to a file of the user's own.

use std::ffi::OsString;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, FileType, Mode, OFlags, PROC_SUPER_MAGIC, fstat, fstatfs, openat, readlinkat};
use rustix::io::Errno;
use rustix::process::geteuid;
use thiserror::Error;

/// The most links after each other, as many as the kernel allows.
const MAX_LINKS: usize = 40;

#[derive(Debug)]
pub(crate) struct Opened {
    pub fd: OwnedFd,
    /// Whether a link in /proc led to it, such as /proc/self/fd/2 (/dev/stderr): this process had it open already.
    pub was_open: bool,
}

#[derive(Debug, Error)]
pub(crate) enum OpenError {
    /// It is a link of this user's, who may let it lead anywhere.
    #[error("it is a link that belongs to another user (id {0})")]
    OthersLink(u32),
    #[error(transparent)]
    System(#[from] Errno),
}

/// Opens a path. If the last name is a link, the link must belong to this process's user or root.
pub(crate) fn open(path: &Path, flags: OFlags, mode: Mode) -> Result<Opened, OpenError> {
    let opened = |fd, was_open| Ok(Opened { fd, was_open });
    let (mut path, mut base) = (path.to_owned(), None::<OwnedFd>);
    for _ in 0..MAX_LINKS {
        // without a slash at the end, which would make the kernel follow a link
        let plain: PathBuf = path.components().collect();
        let at = base.as_ref().map_or(CWD, AsFd::as_fd);
        let Some(name) = plain.file_name() else { return opened(openat(at, &plain, flags, mode)?, false) };
        let parent = plain.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
        // held, so that nobody can put another folder in its place between the calls
        let folder = openat(at, parent, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
        let error = match openat(&folder, name, flags | OFlags::NOFOLLOW, mode) {
            Ok(fd) => return opened(fd, false),
            // a link, where a file or a folder is wanted; ACCESS to create a file there, in a folder such as /tmp
            Err(error @ (Errno::LOOP | Errno::NOTDIR | Errno::ACCESS)) => error,
            Err(error) => return Err(error.into()),
        };
        let link = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let Ok(link) = openat(&folder, name, link, Mode::empty()) else { return Err(error.into()) };
        let stat = fstat(&link)?;
        if FileType::from_raw_mode(stat.st_mode) != FileType::Symlink {
            return Err(error.into());
        }
        if !is_trusted(stat.st_uid) {
            return Err(OpenError::OthersLink(stat.st_uid));
        }
        if fstatfs(&link)?.f_type == PROC_SUPER_MAGIC {
            // its text may be no path, such as pipe:[7]
            return opened(openat(&folder, name, flags, mode)?, true);
        }
        path = PathBuf::from(OsString::from_vec(readlinkat(&link, "", Vec::new())?.into_bytes()));
        base = Some(folder);
    }
    Err(Errno::LOOP.into())
}

/// Returns whether a user is this process's or root, who can do to it what they like anyway.
pub(crate) fn is_trusted(user: u32) -> bool {
    user == 0 || user == geteuid().as_raw()
}

#[cfg(test)]
mod tests {
    use std::fs::{self, File};
    use std::io::Read;
    use std::os::unix::fs::{lchown, symlink};

    use super::*;

    fn read(path: &Path) -> Result<String, OpenError> {
        let mut text = String::new();
        File::from(open(path, OFlags::RDONLY, Mode::empty())?.fd).read_to_string(&mut text).unwrap();
        Ok(text)
    }

    #[test]
    fn own_links_are_followed() {
        let folder = tempfile::tempdir().unwrap();
        let top = folder.path();
        fs::create_dir(top.join("a")).unwrap();
        fs::write(top.join("a/file"), "text").unwrap();
        symlink("file", top.join("a/one")).unwrap();
        symlink("a/one", top.join("two")).unwrap();
        symlink(top.join("two"), top.join("three")).unwrap();
        symlink("a/", top.join("folder")).unwrap();
        symlink("circle", top.join("circle")).unwrap();
        for name in ["a/file", "a/one", "two", "three", "folder/one", "a/../two"] {
            assert_eq!(read(&top.join(name)).unwrap(), "text", "{name}");
        }
        let is_folder = |name: &str| open(&top.join(name), OFlags::DIRECTORY, Mode::empty());
        assert!(["a", "a/", "folder", "folder/", "a/.."].iter().all(|name| is_folder(name).is_ok()));
        assert!(matches!(is_folder("a/file"), Err(OpenError::System(Errno::NOTDIR))));
        assert!(matches!(read(&top.join("circle")), Err(OpenError::System(Errno::LOOP))));
        assert!(matches!(read(&top.join("none")), Err(OpenError::System(Errno::NOENT))));
        assert!(read(Path::new("")).is_err() && is_folder("/").is_ok());
    }

    #[test]
    fn what_is_open_already_may_be_no_path() {
        let (reader, _writer) = std::io::pipe().unwrap();
        let path = format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&reader));
        assert!(open(Path::new(&path), OFlags::RDONLY, Mode::empty()).unwrap().was_open);
    }

    #[test]
    fn links_of_another_user_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let top = folder.path();
        fs::write(top.join("file"), "text").unwrap();
        symlink("file", top.join("link")).unwrap();
        symlink("link", top.join("own")).unwrap();
        symlink(".", top.join("folder")).unwrap();
        // only root may give a link away
        if ["link", "folder"].iter().any(|name| lchown(top.join(name), Some(65533), None).is_err()) {
            return;
        }
        for name in ["link", "own", "folder", "folder/"] {
            let refused = open(&top.join(name), OFlags::RDONLY, Mode::empty());
            assert!(matches!(refused, Err(OpenError::OthersLink(65533))), "{name}: {refused:?}");
        }
    }
}
