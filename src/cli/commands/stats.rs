//! `volfs stats`: prints the counters of one mount or of all, once or at intervals.

mod all;
mod datasets;
mod one;
mod rates;
mod watch;

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::Value;

use crate::cli::args::StatsArgs;
use crate::cli::error::CliError;
use crate::cli::mounts::mountpoint;
use crate::cli::mounts::processes::Daemon;
use crate::cli::mounts::source_behind::mountpoint_of;
use crate::cli::mounts::status::{Answer, Asker};
use crate::cli::output;
use crate::cli::text::escape;

/// How long a mount may take to answer.
const TIMEOUT: Duration = Duration::from_secs(5);

/// Prints what mounts have done so far, or, at intervals, what they do.
pub(crate) fn run(args: &StatsArgs) -> Result<(), CliError> {
    let place = args.mountpoint.as_deref().map(mount_around).transpose()?;
    match (place, args.watch) {
        (place, Some(interval)) => watch::run(place, interval, args.json),
        (None, None) => all::print(args.json),
        (Some(place), None) => {
            let answer = Asker::default().ask(std::slice::from_ref(&place), TIMEOUT).pop();
            let text = answer.unwrap_or(Err(Answer::Silent)).map_err(|answer| failure(&place, answer))?;
            let status = parse(&place, &text)?;
            if args.json { output::part(&text).map(drop) } else { output::whole(&one::text(&place, &status)) }
        }
    }
}

/// Returns the mount point of the mount that a path is or lies in.
fn mount_around(typed: &Path) -> Result<PathBuf, CliError> {
    let around = mountpoint_of(typed)?;
    let (place, _) = mountpoint::find_volfs_mount(around.as_deref().unwrap_or(typed), CliError::NotVolfs)?;
    Ok(place)
}

/// Parses the text of a status.json.
fn parse(place: &Path, text: &[u8]) -> Result<Value, CliError> {
    serde_json::from_slice(text).map_err(|error| CliError::BadStatus(place.to_owned(), error.to_string()))
}

/// Returns the error for a mount that does not give its status.
fn failure(place: &Path, answer: Answer) -> CliError {
    let place: PathBuf = place.to_owned();
    match answer {
        Answer::Alive(_) => CliError::OtherUsersMount(place),
        Answer::Dead => CliError::DeadMount(place),
        Answer::Silent => {
            let remedy = Daemon::remedy(Daemon::at(&place), &escape::path(&place).to_string());
            CliError::StatusTimeout(place, TIMEOUT, remedy)
        }
        Answer::Error(error) => CliError::BadStatus(place, error),
    }
}
