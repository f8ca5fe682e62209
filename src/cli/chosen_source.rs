//! Checks SOURCE as it was typed.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::catalog::Recogniser;
use crate::cli::error::CliError;
use crate::format::registry;
use crate::source::{Origin, StoreUrl, is_url, shown};

/// Returns SOURCE as an absolute path without links, since a daemon has another working directory, or as a URL. A local
/// one is looked at; of a URL nothing is asked yet.
pub(crate) fn resolved_source(typed: &Path) -> Result<PathBuf, CliError> {
    if is_url(typed) {
        let url = StoreUrl::parse(typed).map_err(|error| CliError::Store(shown(typed), error.to_string()))?;
        return Ok(url.path());
    }
    let failed = |error| CliError::Source { typed: typed.to_owned(), error };
    let source = fs::canonicalize(typed).map_err(failed)?;
    let metadata = fs::metadata(&source).map_err(failed)?;
    if !metadata.is_dir() && !metadata.is_file() {
        return Err(CliError::SpecialFile(source));
    }
    if metadata.is_dir() {
        // a folder that this user may not read would be an empty mount
        fs::read_dir(&source).map_err(failed)?;
    } else if Recogniser::new(registry()).format_of(&source).map_err(failed)?.is_none() {
        return Err(CliError::NotAVolume(source));
    }
    Ok(source)
}

/// Like [`resolved_source`], and asks the store whether there is a folder or a volume. May start threads.
pub(crate) fn checked_source(typed: &Origin) -> Result<Origin, CliError> {
    let origin = Origin { path: resolved_source(&typed.path)?, ..typed.clone() };
    if origin.is_url() {
        check_store(&origin)?;
    }
    Ok(origin)
}

/// Asks a store whether there is a folder or a volume at a URL.
fn check_store(origin: &Origin) -> Result<(), CliError> {
    let failed = |error: io::Error| {
        let text = match error.kind() {
            io::ErrorKind::NotFound => {
                format!(
                    "{error}; to see what is there type: volfs ls {}",
                    origin.path.parent().unwrap_or(&origin.path).display()
                )
            }
            _ => error.to_string(),
        };
        CliError::Store(origin.path.clone(), text)
    };
    let tree = origin.tree(false, Arc::default()).map_err(failed)?;
    let about = tree.about_base(tree.source()).map_err(failed)?;
    if about.is_file() && Recogniser::new(registry()).format_at(&*tree, tree.source()).map_err(failed)?.is_none() {
        return Err(CliError::NotAVolume(origin.path.clone()));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_source_becomes_absolute() {
        let folder = tempfile::tempdir().unwrap();
        let top = folder.path().canonicalize().unwrap();
        assert_eq!(resolved_source(&top.join(".")).unwrap(), top);
        assert!(matches!(resolved_source(&top.join("none")), Err(CliError::Source { .. })));
        fs::write(top.join("notes.txt"), "not a volume").unwrap();
        assert!(matches!(resolved_source(&top.join("notes.txt")), Err(CliError::NotAVolume(_))));
        fs::write(top.join("broken.ZGY"), "not a volume").unwrap();
        assert!(resolved_source(&top.join("broken.ZGY")).is_ok());
        assert!(matches!(resolved_source(Path::new("/dev/null")), Err(CliError::SpecialFile(_))));
    }

    #[test]
    fn a_url_is_not_looked_at_and_never_repeated_with_a_secret() {
        assert_eq!(resolved_source(Path::new("azure://c/k/")).unwrap(), Path::new("az://c/k"));
        for typed in ["https://me:hunter2@host/x", "https://host/x?sig=hunter2", "ftp://hunter2@host"] {
            let error = resolved_source(Path::new(typed)).unwrap_err().to_string();
            assert!(!error.contains("hunter2") && !error.contains('\n'), "{error}");
        }
    }
}
