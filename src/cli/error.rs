//! The error that a command ends with: one line that names the failure, the place and the remedy.

use std::fmt::Display;
use std::io::{self, Write};
use std::path::Path;

use thiserror::Error;

use super::text::{escaped, escaped_path};
use crate::catalog::CatalogError;
use crate::logging::LoggingError;
use crate::mount::DaemonError;
use crate::source::disk_cache::DiskCacheError;

/// Why a command failed, and the exit status of the process.
#[derive(Debug, Error)]
#[error("{what}{}{remedy}", if .remedy.is_empty() { "" } else { "; " })]
pub(crate) struct CliError {
    pub(super) what: String,
    /// What the user can do about it; may be empty.
    pub(super) remedy: String,
    pub(super) cause: Cause,
    status: u8,
}

#[derive(Debug)]
pub(super) enum Cause {
    Other,
    /// Wrong usage, or help that was asked for: clap prints both.
    Usage(clap::Error),
    /// The command of `mount --exec` failed, and has printed why.
    Command,
    Timeout,
    Busy(Vec<String>),
    Unresponsive,
    NotMounted,
    /// A mount of the source to mount is at the mount point already.
    MountedAlready,
}

impl CliError {
    /// A failure, with exit status 1. `what` and `remedy` may contain names from data.
    pub(super) fn new(what: impl AsRef<str>, remedy: impl AsRef<str>) -> Self {
        let [what, remedy] = [what.as_ref(), remedy.as_ref()].map(|text| escaped(text).into_owned());
        Self { what, remedy, status: 1, cause: Cause::Other }
    }

    /// An argument that is wrong, with exit status 2.
    pub(super) fn argument(text: impl AsRef<str>) -> Self {
        Self::new(text, "").with_status(2)
    }

    pub(super) fn with_status(self, status: u8) -> Self {
        Self { status, ..self }
    }

    pub(super) fn with_cause(self, cause: Cause) -> Self {
        Self { cause, ..self }
    }

    /// SOURCE is a URL that cannot be used.
    pub(super) fn store(url: &Path, reason: impl Display) -> Self {
        Self::new(format!("cannot use {}: {reason}", escaped_path(url)), "")
    }

    /// SOURCE, or a path below it, cannot be listed.
    pub(super) fn cannot_list(source: &Path, error: &CatalogError) -> Self {
        Self::new(format!("cannot list {}: {error}", escaped_path(source)), "")
    }

    pub(crate) fn exit_status(&self) -> u8 {
        self.status
    }

    /// Prints the error on standard error; help that was asked for goes to standard output.
    pub(crate) fn print(&self) {
        // an error of standard error cannot be reported anywhere
        match &self.cause {
            Cause::Usage(error) => drop(error.print()),
            Cause::Command => {}
            _ => drop(writeln!(io::stderr(), "volfs: {self}")),
        }
    }
}

impl From<clap::Error> for CliError {
    fn from(error: clap::Error) -> Self {
        let status = u8::try_from(error.exit_code()).unwrap_or(2);
        Self::new(error.to_string(), "").with_status(status).with_cause(Cause::Usage(error))
    }
}

/// The messages of these errors are complete.
macro_rules! from_complete {
    ($($error:ty),*) => {
        $(impl From<$error> for CliError {
            fn from(error: $error) -> Self {
                Self::new(error.to_string(), "")
            }
        })*
    };
}

from_complete!(DaemonError, LoggingError, DiskCacheError);
#[cfg(feature = "serve")]
from_complete!(crate::serve::ServeError);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_is_one_line_without_escapes() {
        let odd = Path::new("/a\nb\x1b[2J");
        let errors = [
            CliError::new("a\nb", "type: \x1b[2J"),
            CliError::argument("tmp\nfs"),
            CliError::store(odd, "no\nbucket"),
            DiskCacheError::NoCache(odd.to_owned()).into(),
        ];
        for error in &errors {
            let text = error.to_string();
            assert!(!text.contains(['\n', '\x1b']), "{text:?}");
        }
        assert_eq!(errors[0].to_string(), "a\\nb; type: \\u{1b}[2J");
        assert_eq!(errors.map(|error| error.exit_status()), [1, 2, 1, 1]);
    }
}
