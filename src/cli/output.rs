//! Standard output. That nobody reads on (`volfs info X | head -1`) is no error.

use std::io::{self, IsTerminal, Write};

use crate::cli::error::CliError;

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
    part(text.as_bytes()).map(|_| ())
}

/// Writes a part of what will be more; `false` if nobody reads on, so that the rest can be saved.
///
/// # Errors
/// [`CliError::Output`]: a full disk, say.
pub fn part(bytes: &[u8]) -> Result<bool, CliError> {
    let mut out = io::stdout().lock();
    match out.write_all(bytes).and_then(|()| out.flush()) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(false),
        Err(error) => Err(CliError::Output(error)),
    }
}

/// Says something beside the output, where nobody takes it for a part of that.
pub fn note(text: &str) {
    // where to complain if this fails?
    drop(writeln!(io::stderr(), "volfs: {text}"));
}

/// Whether the output may have colours: a terminal reads it, and its user did not say no.
#[must_use]
pub fn coloured() -> bool {
    let unwanted = |name| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    io::stdout().is_terminal() && !unwanted("NO_COLOR") && std::env::var_os("TERM").is_none_or(|term| term != "dumb")
}
