//! `volfs mount --exec`: a mount that lasts while a command runs, on a temporary folder if no mount point is given.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs, io};

use nix::unistd::mkdtemp;

use super::{MountArgs, Plan};
use crate::cli::error::{Cause, CliError};
use crate::cli::output;
use crate::cli::source::resolved_source;
use crate::cli::text::escaped_path;
use crate::cli::umount::{self, UmountArgs};
use crate::mount::{CommandError, DaemonError, HeldSignals, place_of, run_command, volfs_at};

/// The environment variable that names the mount point.
const MOUNTPOINT: &str = "VOLFS_MNT";

/// Mounts, runs `command`, and unmounts.
pub(super) fn run(mut args: MountArgs, command: &[OsString]) -> Result<(), CliError> {
    // a signal must not come between a temporary folder and the daemon, which removes it if this process ends
    let mut held = Some(HeldSignals::hold().map_err(DaemonError::System)?);
    // it is removed when this function ends, in whichever process
    let folder = match args.mountpoint {
        Some(_) => None,
        None => Some(TemporaryFolder::outside(&resolved_source(&args.source)?, usual_places())?),
    };
    let mountpoint = args.mountpoint.take().or_else(|| folder.as_ref().map(|folder| folder.0.clone()));
    let mut plan = Plan::new(args, &mountpoint.unwrap_or_default())?;
    // standard output is the command's
    plan.is_silent = true;
    (plan.is_bound, plan.is_temporary) = (true, folder.is_some());
    let Some(started) = plan.start(&mut held)? else { return Ok(()) };
    let device = volfs_at(&plan.mountpoint).map(|mount| mount.device);
    let outcome = run_to_end(command, &plan.mountpoint);
    if let Some(place) = device.and_then(place_of) {
        take_away(&place);
    }
    started.release();
    outcome
}

fn run_to_end(command: &[OsString], mountpoint: &Path) -> Result<(), CliError> {
    let (program, arguments) = command.split_first().ok_or_else(|| CliError::argument("--exec needs a command"))?;
    match run_command(Command::new(program).args(arguments).env(MOUNTPOINT, mountpoint)) {
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
