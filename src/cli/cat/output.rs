//! The output of `volfs cat`: standard output, or a file that is complete or does not appear at all.

use std::fs::{self, File, Metadata, Permissions};
use std::io::{self, IsTerminal};
use std::mem;
use std::os::fd::AsFd;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use nix::errno::Errno;
use nix::fcntl::{FcntlArg, fcntl};
use tempfile::TempPath;

use crate::cli::error::CliError;
use crate::cli::interrupt::wait_for_end;
use crate::cli::output::write_to;
use crate::cli::text::{Size, escaped_path};
use crate::counters::Counter;
use crate::sync::{Mutex, MutexGuard};

/// The capacity wanted for an output pipe: a large one saves context switches between writer and reader.
const PIPE_BYTES: i32 = 1 << 20;

/// Bytes that are written at once, after which the progress is known.
const PART: usize = 4 << 20;

/// The most symbolic links on the way to a file, as many as the kernel allows.
const MAX_LINKS: usize = 40;

pub(super) struct Destination {
    file: File,
    progress: ClearingUp,
}

struct ClearingUp(Arc<Progress>);

impl Drop for ClearingUp {
    fn drop(&mut self) {
        let mut file = self.0.file.lock();
        if !matches!(*file, Unfinished::Interrupted) {
            mem::take(&mut *file).clear_up();
        }
    }
}

/// How far the output is. The thread of the signals knows it from the first moment on.
#[derive(Default)]
pub(super) struct Progress {
    pub(super) written: Counter,
    target: OnceLock<Target>,
    file: Mutex<Unfinished>,
}

enum Target {
    /// A file of this name.
    Named(PathBuf),
    /// Standard output, which is a file that will have so many bytes.
    Redirected(u64),
    /// Standard output, which is a pipe, a terminal or a device.
    Stream,
}

/// The file that is being written.
#[derive(Default)]
enum Unfinished {
    #[default]
    Nothing,
    /// Under a temporary name, and removed if it is not completed.
    Apart(TempPath),
    /// Under its own name, and emptied if it is not completed: half of it could be taken for the whole.
    InPlace(File),
    /// A signal has arrived, and is about to end the process.
    Interrupted,
}

impl Unfinished {
    /// Removes or empties the file. Returns what became of it.
    fn clear_up(self) -> Option<&'static str> {
        match self {
            Self::Apart(partial) => {
                drop(partial);
                Some("is not written")
            }
            Self::InPlace(file) => {
                // there is nothing left to do if the system refuses
                let _ = file.set_len(0);
                Some("is not written and is empty now")
            }
            Self::Nothing | Self::Interrupted => None,
        }
    }
}

impl Destination {
    /// Opens the output for `total` bytes: standard output, or the file of this name, which is unfinished until
    /// [`Self::finish`]. `volume` is what is read. A terminal is refused unless `force` is given.
    pub(super) fn open(
        name: Option<&Path>,
        total: u64,
        volume: &Path,
        force: bool,
        progress: &Arc<Progress>,
    ) -> Result<Self, CliError> {
        let name = name.filter(|name| *name != Path::new("-") && !is_stdout(name));
        let file = name.map_or_else(|| stdout(force), |name| create(name, volume, progress))?;
        let target = match name {
            Some(name) => Target::Named(name.to_owned()),
            None if file.metadata().is_ok_and(|metadata| metadata.is_file()) => Target::Redirected(total),
            None => Target::Stream,
        };
        let _ = progress.target.set(target);
        Ok(Self { file, progress: ClearingUp(Arc::clone(progress)) })
    }

    /// The name of the file; `None` for standard output.
    fn name(&self) -> Option<&Path> {
        match self.progress.0.target.get() {
            Some(Target::Named(name)) => Some(name),
            _ => None,
        }
    }

    /// Returns whether a bar can show the progress: the samples go to a file.
    pub(super) fn is_file(&self) -> bool {
        !matches!(self.progress.0.target.get(), Some(Target::Stream))
    }

    /// Writes the next bytes. Returns `false` once the reader of the output is gone.
    pub(super) fn write(&mut self, bytes: &[u8]) -> Result<bool, CliError> {
        for part in bytes.chunks(PART) {
            let file = self.progress.0.lock();
            // no byte may be written in place after a signal has emptied the file; a write elsewhere, for instance to a
            // pipe, must not hold up a signal
            let _held = matches!(*file, Unfinished::InPlace(_)).then_some(file);
            let written = write_to(&mut self.file, part);
            if !written.map_err(|error| cannot_write(self.name(), &error))? {
                return Ok(false);
            }
            self.progress.0.written.add(part.len() as u64);
        }
        Ok(true)
    }

    /// Gives a complete file its name.
    pub(super) fn finish(self) -> Result<(), CliError> {
        let Some(name) = self.name().map(Path::to_owned) else { return Ok(()) };
        let failed = |error: io::Error| cannot_write(Some(&name), &error);
        // its server may report only now that the disk is full
        nix::unistd::close(self.file).map_err(|errno| failed(errno.into()))?;
        let mut file = self.progress.0.lock();
        let Unfinished::Apart(partial) = mem::take(&mut *file) else { return Ok(()) };
        let goal = goal(&name).map_err(failed)?;
        // only a regular file is ever replaced, even if something else was made there since
        if goal.symlink_metadata().is_ok_and(|metadata| !metadata.is_file()) {
            return Err(failed(Errno::EEXIST.into()));
        }
        partial.persist(goal).map_err(|error| failed(error.error))
    }
}

/// Returns the error of an output: of the file of this name, or standard output.
fn cannot_write(name: Option<&Path>, error: &io::Error) -> CliError {
    let (what, remedy) = match name {
        Some(name) => (escaped_path(name), "give another file with --output"),
        None => ("the output".to_owned(), ""),
    };
    CliError::new(format!("cannot write {what}: {error}"), remedy)
}

impl Progress {
    /// Locks the file: a signal waits as long. Does not return once a signal has arrived, which ends the process.
    fn lock(&self) -> MutexGuard<'_, Unfinished> {
        let file = self.file.lock();
        if matches!(*file, Unfinished::Interrupted) {
            drop(file);
            wait_for_end();
        }
        file
    }

    /// Clears up before a signal ends the process: nothing is begun, written or completed from now on. Returns the message
    /// about the output.
    pub(super) fn interrupt(&self) -> Option<String> {
        let cleared = mem::replace(&mut *self.file.lock(), Unfinished::Interrupted).clear_up();
        match self.target.get()? {
            // without a file it is complete by now, or a device
            Target::Named(name) => cleared.map(|how| format!("interrupted: {} {how}", escaped_path(name))),
            Target::Redirected(total) => {
                let (written, total) = (Size(self.written.get()), Size(*total));
                Some(format!("interrupted: only {written} of {total} are written"))
            }
            Target::Stream => None,
        }
    }
}

/// Creates the file of this name, under a temporary name beside it. Opens anything but a regular file as it is, and empties
/// a file that a new one cannot replace unnoticed.
fn create(name: &Path, volume: &Path, progress: &Progress) -> Result<File, CliError> {
    let failed = |error: io::Error| cannot_write(Some(name), &error);
    let existing = match fs::metadata(name) {
        Ok(metadata) => Some(metadata),
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        Err(error) => return Err(failed(error)),
    };
    if let (Some(existing), Ok(volume)) = (&existing, fs::metadata(volume))
        && (existing.dev(), existing.ino()) == (volume.dev(), volume.ino())
    {
        let text = format!("--output {} is the volume itself; give another file", escaped_path(name));
        return Err(CliError::argument(text));
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
    let mut unfinished = progress.lock();
    let (file, partial) = builder.tempfile_in(folder).map_err(failed)?.into_parts();
    if let Some((old, existing)) = in_place.zip(existing)
        && !is_like(&old, &existing, &file.metadata().map_err(failed)?)
    {
        old.set_len(0).map_err(failed)?;
        let file = old.try_clone().map_err(failed)?;
        *unfinished = Unfinished::InPlace(old);
        return Ok(file);
    }
    *unfinished = Unfinished::Apart(partial);
    Ok(file)
}

/// Returns whether a new file can replace an old one: it has the same owner and group, and the old one has neither other
/// names nor an access control list.
fn is_like(old: &File, existing: &Metadata, new: &Metadata) -> bool {
    let acl = rustix::fs::fgetxattr(old, "system.posix_acl_access", &mut [0_u8; 256]);
    let has_acl = matches!(acl, Ok(_) | Err(rustix::io::Errno::RANGE));
    existing.nlink() == 1 && (existing.uid(), existing.gid()) == (new.uid(), new.gid()) && !has_acl
}

/// Returns where a link to a file leads, so that the file and not the link is replaced. The file need not exist.
fn goal(name: &Path) -> io::Result<PathBuf> {
    let mut goal = name.to_owned();
    for _ in 0..MAX_LINKS {
        let Ok(target) = fs::read_link(&goal) else { return Ok(goal) };
        goal.pop();
        goal.push(target);
    }
    Err(Errno::ELOOP.into())
}

/// Returns whether a name, such as `/dev/stdout`, is that of standard output. Opening it a second time would write from the
/// beginning of a file that `>>` appends to.
fn is_stdout(name: &Path) -> bool {
    let of_stdout = rustix::fs::fstat(io::stdout()).map(|stat| (stat.st_dev, stat.st_ino));
    rustix::fs::stat(name).is_ok_and(|stat| of_stdout == Ok((stat.st_dev, stat.st_ino)))
}

/// Returns standard output as a file, without the line buffer of the standard library.
fn stdout(force: bool) -> Result<File, CliError> {
    let stdout = io::stdout();
    if stdout.is_terminal() && !force {
        let remedy = "write them to a file (-o FILE), send them to a program (... | PROGRAM), or insist with --force";
        return Err(CliError::new("samples are not for a terminal", remedy).with_status(2));
    }
    let out = stdout.as_fd().try_clone_to_owned().map_err(|error| cannot_write(None, &error))?;
    // fails if this is no pipe, or above the user's limit: then the size stays as it is
    let _ = fcntl(&out, FcntlArg::F_SETPIPE_SZ(PIPE_BYTES));
    Ok(out.into())
}

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::os::fd::AsRawFd;
    use std::sync::{Arc, mpsc};
    use std::thread;

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
        let words = out.progress.0.interrupt().unwrap();
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
        let words = out.progress.0.interrupt().unwrap();
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
        let refused = Destination::open(Some(&link), 1, &volume, false, &Arc::default()).map(drop).unwrap_err();
        assert!(refused.to_string().contains("is the volume itself"), "{refused}");
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

    #[test]
    fn a_signal_finds_a_file_that_is_just_being_created() {
        let folder = tempfile::tempdir().unwrap();
        let unfinished = Arc::new(Progress::default());
        let (created, is_created) = mpsc::channel();
        let (go_on, may_go_on) = mpsc::channel();
        let writer = {
            let (unfinished, folder) = (Arc::clone(&unfinished), folder.path().to_owned());
            thread::spawn(move || {
                let mut unfinished = unfinished.lock();
                let (_, partial) = tempfile::NamedTempFile::new_in(folder).unwrap().into_parts();
                created.send(()).unwrap();
                may_go_on.recv().unwrap();
                *unfinished = Unfinished::Apart(partial);
            })
        };
        is_created.recv().unwrap();
        let signal = thread::spawn(move || unfinished.interrupt());
        go_on.send(()).unwrap();
        writer.join().unwrap();
        // where the output goes is not known yet
        assert_eq!(signal.join().unwrap(), None);
        assert_eq!(folder.path().read_dir().unwrap().count(), 0);
    }

    #[test]
    fn a_file_that_is_written_in_place_is_emptied() {
        let begun = |file: &File| {
            file.set_len(5).unwrap();
            let progress = Arc::new(Progress::default());
            *progress.lock() = Unfinished::InPlace(file.try_clone().unwrap());
            progress
        };
        let file = tempfile::tempfile().unwrap();
        drop(ClearingUp(begun(&file)));
        assert_eq!(file.metadata().unwrap().len(), 0);
        begun(&file).interrupt();
        assert_eq!(file.metadata().unwrap().len(), 0);
        let complete = begun(&file);
        let _ = complete.target.set(Target::Named("x".into()));
        let progress = ClearingUp(Arc::clone(&complete));
        Destination { file: file.try_clone().unwrap(), progress }.finish().unwrap();
        assert_eq!(complete.interrupt(), None);
        assert_eq!(file.metadata().unwrap().len(), 5);
    }
}
