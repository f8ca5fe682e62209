//! Standard output. A closed pipe (`volfs info X | head -1`) is no error.

use std::io::{self, IsTerminal, Write};

use crate::cli::error::CliError;

/// Writes `text` and a line end.
pub(crate) fn line(text: &str) -> Result<(), CliError> {
    whole(&format!("{text}\n"))
}

/// Writes `text`.
pub(crate) fn whole(text: &str) -> Result<(), CliError> {
    part(text.as_bytes()).map(|_| ())
}

/// Writes a part of the output. Returns `false` once its reader is gone, so that the caller can stop.
pub(crate) fn part(bytes: &[u8]) -> Result<bool, CliError> {
    write_to(&mut io::stdout().lock(), bytes)
}

/// Writes a part of the output to `out`. Returns `false` once its reader is gone.
pub(crate) fn write_to(out: &mut impl Write, bytes: &[u8]) -> Result<bool, CliError> {
    match out.write_all(bytes).and_then(|()| out.flush()) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(false),
        Err(error) => Err(CliError::Output(error)),
    }
}

/// Prints a remark on standard error, apart from the output.
pub(crate) fn note(text: &str) {
    // an error of standard error cannot be reported anywhere
    drop(writeln!(io::stderr(), "volfs: {text}"));
}

/// Returns whether the output may have colours: it goes to a terminal, and neither NO_COLOR nor TERM=dumb is set.
pub(crate) fn coloured() -> bool {
    let unwanted = |name| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    io::stdout().is_terminal() && !unwanted("NO_COLOR") && std::env::var_os("TERM").is_none_or(|term| term != "dumb")
}
