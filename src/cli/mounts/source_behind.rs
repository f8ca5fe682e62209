//! The source of a path inside a mount.

use std::fs;
use std::path::{Path, PathBuf};

use super::mountpoint::mounts;
use crate::catalog::Recogniser;
use crate::cli::error::CliError;
use crate::format::registry;
use crate::mount::mountinfo::{self, Mount};

/// Returns the folder or dataset of the source that a path inside a mount shows; `None` for any other path.
///
/// # Errors
/// [`CliError`]: the path is not there, or shows nothing of the source.
pub fn source_behind(typed: &Path) -> Result<Option<PathBuf>, CliError> {
    let failed = |error| CliError::Source { typed: typed.to_owned(), error };
    let path = fs::canonicalize(typed).map_err(failed)?;
    let mounts = mounts()?;
    let Some(mount) = around(&mounts, &path) else { return Ok(None) };
    let below = path.strip_prefix(&mount.mountpoint).unwrap_or(Path::new(""));
    let recogniser = Recogniser::new(registry());
    let is_dataset = |path: &Path| matches!(recogniser.format_of(path), Ok(Some(_)));
    let mut source = mountinfo::source_of(mount).to_owned();
    for name in below {
        // what lies deeper is made from the dataset
        if is_dataset(&source) {
            break;
        }
        source.push(name);
    }
    Ok(Some(source))
}

/// Returns the volfs mount that a path lies in: the innermost one, if no other mount lies between.
fn around<'a>(mounts: &'a [Mount], path: &Path) -> Option<&'a Mount> {
    let innermost = path.ancestors().find_map(|above| mountinfo::topmost(mounts, above));
    innermost.filter(|mount| mount.is_volfs())
}
