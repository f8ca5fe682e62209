//! `volfs mount --exec`: a mount that lasts while a command runs.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::temporary_folder::TemporaryFolder;
use super::{Lifetime, Plan};
use crate::cli::args::{MountArgs, UmountArgs};
use crate::cli::chosen_source::resolved_source;
use crate::cli::commands::umount;
use crate::cli::error::CliError;
use crate::cli::output;
use crate::cli::text::escape;
use crate::mount::command::{self, CommandError, HeldSignals};
use crate::mount::daemon::DaemonError;
use crate::mount::mountinfo;

/// The environment variable in which the command finds the mount point.
const MOUNTPOINT: &str = "VOLFS_MNT";

/// Mounts, runs `command`, and unmounts.
pub(crate) fn run(mut args: MountArgs, command: &[OsString]) -> Result<(), CliError> {
    if args.foreground {
        return Err(CliError::Argument("-o foreground does not go with --exec".to_owned()));
    }
    // a signal must not come between a temporary folder and the daemon, which removes it if this process ends
    let mut held = Some(HeldSignals::hold().map_err(DaemonError::System)?);
    // it is removed when this function ends, in whichever process
    let folder = match args.mountpoint {
        Some(_) => None,
        None => Some(TemporaryFolder::outside(&resolved_source(&args.source)?)?),
    };
    let mountpoint = args.mountpoint.take().or_else(|| folder.as_ref().map(|folder| folder.path().to_owned()));
    let mut plan = Plan::make(args, &mountpoint.unwrap_or_default())?;
    // standard output is the command's
    plan.silent = true;
    plan.lifetime = Lifetime::OfStarter { temporary: folder.is_some() };
    let Some(started) = plan.start(&mut held)? else { return Ok(()) };
    let device = mountinfo::volfs_at(&plan.mountpoint);
    let outcome = run_command(command, &plan.mountpoint);
    if let Some(place) = device.and_then(mountinfo::place_of) {
        take_away(&place);
    }
    started.release();
    outcome
}

fn run_command(command: &[OsString], mountpoint: &Path) -> Result<(), CliError> {
    let (program, arguments) =
        command.split_first().ok_or_else(|| CliError::Argument("--exec needs a command".into()))?;
    let ended = command::run(Command::new(program).args(arguments).env(MOUNTPOINT, mountpoint));
    match ended {
        Ok(0) => Ok(()),
        Ok(status) => Err(CliError::CommandEnded(status)),
        Err(CommandError::NotStarted(error)) => Err(CliError::CannotRun { program: PathBuf::from(program), error }),
        Err(CommandError::System(error)) => Err(CliError::Machine(error.to_string())),
    }
}

/// Unmounts, also if something that the command has left behind uses the mount: those who have files open can go on
/// reading, and the daemon ends with the last of them.
fn take_away(place: &Path) {
    let umount = |lazy| umount::run(&UmountArgs { mountpoint: place.to_owned(), lazy });
    let outcome = match umount(false) {
        Err(CliError::Busy(_, users)) => {
            let users = if users.is_empty() { "something".to_owned() } else { users.join(", ") };
            let place = escape::path(place);
            output::note(&format!("the command has ended, but {users} uses {place}: it is taken away all the same"));
            umount(true)
        }
        Err(CliError::Unresponsive(..)) => umount(true),
        outcome => outcome,
    };
    match outcome {
        // the command has unmounted it itself
        Ok(()) | Err(CliError::NotMounted(..)) => {}
        Err(error) => output::note(&error.to_string()),
    }
}
