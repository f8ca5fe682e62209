//! Where the samples go: standard output, or a file that is complete or not there at all.

use std::fs::{self, File, Metadata, Permissions};
use std::io::{self, IsTerminal};
use std::os::fd::AsFd;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use nix::errno::Errno;
use nix::fcntl::{FcntlArg, fcntl};

use super::unfinished::{Begun, Cleared, Unfinished};
use crate::cli::error::CliError;
use crate::cli::output;
use crate::cli::text::escape;
use crate::cli::text::size::Size;
use crate::counters::Counter;

/// The capacity wanted for an output pipe: a large one saves context switches between writer and reader.
const PIPE_BYTES: i32 = 1 << 20;

/// Bytes that are written at once, after which the progress is known.
const PART: usize = 4 << 20;

/// The most symbolic links on the way to a file, as many as the kernel allows.
const MAX_LINKS: usize = 40;

/// An open output.
pub(crate) struct Destination {
    file: File,
    progress: ClearingUp,
}

/// The progress of an output; dropping clears up what is not complete.
struct ClearingUp(Arc<Progress>);

impl Drop for ClearingUp {
    fn drop(&mut self) {
        self.0.unfinished.abandon();
    }
}

/// How far the output is, for the progress bar and for a signal.
pub(crate) struct Progress {
    /// Bytes written.
    pub written: Counter,
    /// Bytes of the whole output.
    pub total: u64,
    target: Target,
    unfinished: Arc<Unfinished>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Target {
    /// A file of this name.
    Named(PathBuf),
    /// Standard output, which is a file.
    Redirected,
    /// Standard output, which is a pipe, a terminal or a device.
    Stream,
}

impl Destination {
    /// Opens the output for `total` bytes: standard output, or the file of this name, which is `unfinished` until
    /// [`Self::finish`]. `volume` is what is read.
    pub(crate) fn open(
        name: Option<&Path>,
        total: u64,
        volume: &Path,
        force: bool,
        unfinished: &Arc<Unfinished>,
    ) -> Result<Self, CliError> {
        let (file, target) = match name.filter(|name| *name != Path::new("-") && !is_stdout(name)) {
            Some(name) => (create(name, volume, unfinished)?, Target::Named(name.to_owned())),
            None => (stdout(force)?, Target::Stream),
        };
        let is_file = file.metadata().is_ok_and(|metadata| metadata.is_file());
        let target = if target == Target::Stream && is_file { Target::Redirected } else { target };
        let progress = Progress { written: Counter::default(), total, target, unfinished: Arc::clone(unfinished) };
        Ok(Self { file, progress: ClearingUp(Arc::new(progress)) })
    }

    /// How far the output is.
    pub(crate) fn progress(&self) -> &Arc<Progress> {
        &self.progress.0
    }

    /// Returns whether a bar can show the progress: the samples go to a file.
    pub(crate) fn is_file(&self) -> bool {
        self.progress.0.target != Target::Stream
    }

    /// Writes the next bytes. Returns `false` once the reader of the output is gone.
    pub(crate) fn write(&mut self, bytes: &[u8]) -> Result<bool, CliError> {
        for part in bytes.chunks(PART) {
            let written = self.progress.0.unfinished.write(|| output::write_to(&mut self.file, part));
            if !written.map_err(|error| self.named(error))? {
                return Ok(false);
            }
            self.progress.0.written.add(part.len() as u64);
        }
        Ok(true)
    }

    /// Gives a complete file its name.
    pub(crate) fn finish(self) -> Result<(), CliError> {
        let Target::Named(name) = &self.progress.0.target else { return Ok(()) };
        let failed = |error: io::Error| CliError::OutputFile(name.clone(), error);
        nix::unistd::close(self.file).map_err(|errno| failed(errno.into()))?;
        self.progress.0.unfinished.complete(|begun| match begun {
            None | Some(Begun::InPlace(_)) => Ok(()),
            Some(Begun::Apart(partial)) => {
                let goal = goal(name).map_err(failed)?;
                // what is no regular file is never replaced, not even if it was made since
                if goal.symlink_metadata().is_ok_and(|metadata| !metadata.is_file()) {
                    return Err(failed(Errno::EEXIST.into()));
                }
                partial.persist(goal).map_err(|error| failed(error.error))
            }
        })
    }

    /// Names the file in an error.
    fn named(&self, error: CliError) -> CliError {
        match (error, &self.progress.0.target) {
            (CliError::Output(error), Target::Named(name)) => CliError::OutputFile(name.clone(), error),
            (error, _) => error,
        }
    }
}

impl Progress {
    /// Clears up what is not complete before a signal ends the process, and returns what there is to say about it.
    pub(crate) fn interrupt(&self) -> Option<String> {
        let (written, total) = (Size::of(self.written.get()), Size::of(self.total));
        match &self.target {
            // without a file it is complete by now, or a device
            Target::Named(name) => self.unfinished.interrupt().map(|cleared| match cleared {
                Cleared::Removed => format!("interrupted: {} is not written", escape::path(name)),
                Cleared::Emptied => format!("interrupted: {} is not written and is empty now", escape::path(name)),
            }),
            Target::Redirected => Some(format!("interrupted: only {written} of {total} are written")),
            Target::Stream => None,
        }
    }
}

/// Creates the file of this name, under a temporary name beside it. What is no regular file is opened as it is, and a
/// file that cannot be replaced by one that is the same to others is emptied.
fn create(name: &Path, volume: &Path, unfinished: &Unfinished) -> Result<File, CliError> {
    let failed = |error: io::Error| CliError::OutputFile(name.to_owned(), error);
    let existing = match fs::metadata(name) {
        Ok(metadata) => Some(metadata),
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        Err(error) => return Err(failed(error)),
    };
    if let (Some(existing), Ok(volume)) = (&existing, fs::metadata(volume))
        && (existing.dev(), existing.ino()) == (volume.dev(), volume.ino())
    {
        return Err(CliError::Argument(format!(
            "--output {} is the volume itself; give another file",
            escape::path(name)
        )));
    }
    let goal = goal(name).map_err(failed)?;
    let mut in_place = None;
    if let Some(existing) = &existing {
        // a file that may not be written is not replaced either
        let file = File::options().write(true).open(name).map_err(failed)?;
        // the name of a descriptor, such as /dev/fd/3, may lead to a file without a name
        let is_named = fs::metadata(&goal).is_ok_and(|m| (m.dev(), m.ino()) == (existing.dev(), existing.ino()));
        if !existing.is_file() || !is_named {
            return Ok(file);
        }
        in_place = Some(file);
    }
    // the mode of a new file, from which the system takes the umask, or that of the file which it replaces
    let mode = existing.as_ref().map_or(0o666, |metadata| metadata.permissions().mode() & 0o7777);
    let folder = goal.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    // as the system says it, without the temporary name
    if !fs::metadata(folder).map_err(failed)?.is_dir() {
        return Err(failed(Errno::ENOTDIR.into()));
    }
    let mut builder = tempfile::Builder::new();
    let builder = builder.prefix(".volfs-").suffix(".part").permissions(Permissions::from_mode(mode));
    let begin = || {
        let (file, partial) = builder.tempfile_in(folder)?.into_parts();
        match in_place.zip(existing) {
            Some((old, existing)) if !is_like(&old, &existing, &file.metadata()?) => {
                old.set_len(0)?;
                Ok((old.try_clone()?, Begun::InPlace(old)))
            }
            _ => Ok((file, Begun::Apart(partial))),
        }
    };
    unfinished.begin(begin).map_err(failed)
}

/// Returns whether a new file can take the place of an old one: it has the same owner and group, and the old one has
/// neither other names nor an access control list.
fn is_like(old: &File, existing: &Metadata, new: &Metadata) -> bool {
    let acl = rustix::fs::fgetxattr(old, "system.posix_acl_access", &mut [0_u8; 256]);
    let has_acl = matches!(acl, Ok(_) | Err(rustix::io::Errno::RANGE));
    existing.nlink() == 1 && (existing.uid(), existing.gid()) == (new.uid(), new.gid()) && !has_acl
}

/// Returns where a link to a file leads, so that the file and not the link is replaced. The file need not be there.
fn goal(name: &Path) -> io::Result<PathBuf> {
    let mut goal = name.to_owned();
    for _ in 0..MAX_LINKS {
        let Ok(target) = fs::read_link(&goal) else { return Ok(goal) };
        goal.pop();
        goal.push(target);
    }
    Err(Errno::ELOOP.into())
}

/// Returns whether a name, such as `/dev/stdout`, is that of standard output. A file that is opened by such a name a
/// second time is written from its beginning, whatever `>>` has found in it.
fn is_stdout(name: &Path) -> bool {
    let of_stdout = rustix::fs::fstat(io::stdout()).map(|stat| (stat.st_dev, stat.st_ino));
    rustix::fs::stat(name).is_ok_and(|stat| of_stdout == Ok((stat.st_dev, stat.st_ino)))
}

/// Returns standard output as a file, without the line buffer of the standard library.
fn stdout(force: bool) -> Result<File, CliError> {
    let stdout = io::stdout();
    if stdout.is_terminal() && !force {
        return Err(CliError::Terminal);
    }
    let out = stdout.as_fd().try_clone_to_owned().map_err(CliError::Output)?;
    // fails if this is no pipe, or above the user's limit: then the size stays as it is
    let _ = fcntl(&out, FcntlArg::F_SETPIPE_SZ(PIPE_BYTES));
    Ok(out.into())
}

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::os::fd::AsRawFd;

    use super::*;

    fn open(name: &Path) -> Result<Destination, CliError> {
        Destination::open(Some(name), 4, Path::new("/dev/null"), false, &Arc::default())
    }

    fn names(folder: &Path) -> Vec<String> {
        let mut names: Vec<String> =
            fs::read_dir(folder).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    #[test]
    fn a_file_is_complete_or_not_there() {
        let folder = tempfile::tempdir().unwrap();
        let name = folder.path().join("a.raw");
        let open = || open(&name).unwrap();
        let mut out = open();
        assert!(out.write(b"12").unwrap());
        assert_eq!((names(folder.path()).len(), name.exists()), (1, false));
        drop(out);
        assert_eq!(names(folder.path()), [""; 0]);
        let mut out = open();
        assert!(out.write(b"1234").unwrap());
        out.finish().unwrap();
        assert_eq!((names(folder.path()), fs::read(&name).unwrap()), (vec!["a.raw".to_owned()], b"1234".to_vec()));
        // what was there stays until the new file is complete, and keeps its mode
        fs::set_permissions(&name, Permissions::from_mode(0o640)).unwrap();
        let mut out = open();
        assert!(out.write(b"x").unwrap());
        let words = out.progress().interrupt().unwrap();
        assert!(words.contains("a.raw is not written"), "{words}");
        assert_eq!((names(folder.path()), fs::read(&name).unwrap()), (vec!["a.raw".to_owned()], b"1234".to_vec()));
        let mut out = open();
        assert!(out.write(b"5678").unwrap());
        out.finish().unwrap();
        assert_eq!(fs::read(&name).unwrap(), b"5678");
        assert_eq!(fs::metadata(&name).unwrap().mode() & 0o777, 0o640);
    }

    #[test]
    fn a_file_with_other_names_is_written_in_place() {
        let folder = tempfile::tempdir().unwrap();
        let (name, other) = (folder.path().join("a.raw"), folder.path().join("b.raw"));
        fs::write(&name, "what was there").unwrap();
        fs::hard_link(&name, &other).unwrap();
        let mut out = open(&name).unwrap();
        assert!(out.write(b"1234").unwrap());
        out.finish().unwrap();
        assert_eq!(fs::read(&other).unwrap(), b"1234");
        // half of it is no file
        let mut out = open(&name).unwrap();
        assert!(out.write(b"12").unwrap());
        drop(out);
        assert_eq!(fs::read(&other).unwrap(), b"");
        let mut out = open(&name).unwrap();
        assert!(out.write(b"12").unwrap());
        let words = out.progress().interrupt().unwrap();
        assert!(words.ends_with("a.raw is not written and is empty now"), "{words}");
        assert_eq!((names(folder.path()).len(), fs::read(&other).unwrap()), (2, Vec::new()));
    }

    #[test]
    fn a_file_keeps_its_owner() {
        let folder = tempfile::tempdir().unwrap();
        let name = folder.path().join("a.raw");
        fs::write(&name, "").unwrap();
        if std::os::unix::fs::chown(&name, Some(65534), Some(65534)).is_err() {
            return; // only root can give a file away
        }
        let mut out = open(&name).unwrap();
        assert!(out.write(b"1234").unwrap());
        out.finish().unwrap();
        let metadata = fs::metadata(&name).unwrap();
        assert_eq!((metadata.uid(), metadata.gid(), fs::read(&name).unwrap()), (65534, 65534, b"1234".to_vec()));
    }

    #[test]
    fn the_volume_itself_is_no_output() {
        let folder = tempfile::tempdir().unwrap();
        let (volume, link) = (folder.path().join("a.zgy"), folder.path().join("link"));
        fs::write(&volume, "samples").unwrap();
        std::os::unix::fs::symlink("a.zgy", &link).unwrap();
        assert!(matches!(
            Destination::open(Some(&link), 1, &volume, false, &Arc::default()),
            Err(CliError::Argument(_))
        ));
        assert_eq!(fs::read(&volume).unwrap(), b"samples");
        // a link to another file stays a link
        let out = open(&link).unwrap();
        out.finish().unwrap();
        assert!(link.symlink_metadata().unwrap().is_symlink() && fs::read(&volume).unwrap().is_empty());
    }

    #[test]
    fn only_regular_files_are_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let (first, second) = (folder.path().join("first"), folder.path().join("second"));
        std::os::unix::fs::symlink("second", &first).unwrap();
        std::os::unix::fs::symlink("third", &second).unwrap();
        // links to a file that is not there lead to it afterwards
        let mut out = open(&first).unwrap();
        assert!(out.write(b"1").unwrap());
        out.finish().unwrap();
        assert!([&first, &second].iter().all(|link| link.symlink_metadata().unwrap().is_symlink()));
        assert_eq!(fs::read(folder.path().join("third")).unwrap(), b"1");
        // a pipe that was made meanwhile stays
        let pipe = folder.path().join("pipe");
        let out = open(&pipe).unwrap();
        nix::unistd::mkfifo(&pipe, nix::sys::stat::Mode::S_IRWXU).unwrap();
        assert!(out.finish().is_err() && !pipe.symlink_metadata().unwrap().is_file());
        // a descriptor whose file was removed is written to, and its name stays
        let mut removed = tempfile::tempfile().unwrap();
        let link = folder.path().join("link");
        std::os::unix::fs::symlink(format!("/proc/self/fd/{}", removed.as_raw_fd()), &link).unwrap();
        let mut out = open(&link).unwrap();
        assert!(out.write(b"2").unwrap());
        out.finish().unwrap();
        let mut text = String::new();
        removed.read_to_string(&mut text).unwrap();
        assert!(link.symlink_metadata().unwrap().is_symlink() && text == "2");
        let mut left = names(folder.path());
        left.retain(|name| name.ends_with(".part"));
        assert_eq!(left, [""; 0]);
    }
}
