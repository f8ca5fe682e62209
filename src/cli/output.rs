//! Standard output. That nobody reads on (`volfs info X | head -1`) is no error.

use std::io::{self, IsTerminal, Write};

use super::error::CliError;

/// Writes `text` and a line end.
///
/// # Errors
/// [`CliError::Output`]: a full disk, say.
pub fn line(text: &str) -> Result<(), CliError> {
    whole(&format!("{text}\n"))
}

/// Writes `text`.
///
/// # Errors
/// [`CliError::Output`]: a full disk, say.
pub fn whole(text: &str) -> Result<(), CliError> {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(CliError::Output(error)),
        _ => Ok(()),
    }
}

/// Whether the output may have colours: a terminal reads it, and its user did not say no.
#[must_use]
pub fn coloured() -> bool {
    let unwanted = |name| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    io::stdout().is_terminal() && !unwanted("NO_COLOR") && std::env::var_os("TERM").is_none_or(|term| term != "dumb")
}
