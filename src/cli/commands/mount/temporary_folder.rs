//! The temporary folder on which `volfs mount --exec` mounts if it is given no mount point.

use std::env;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use nix::unistd::mkdtemp;

use crate::cli::error::CliError;

/// A folder that is removed when this value is dropped, if it is empty by then.
#[derive(Debug)]
pub(crate) struct TemporaryFolder(PathBuf);

impl TemporaryFolder {
    /// Makes a folder outside of `source`, which is absolute and without symbolic links.
    pub(crate) fn outside(source: &Path) -> Result<Self, CliError> {
        let of_user = env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from);
        let usual = ["/var/tmp", "/dev/shm", "/run"].map(PathBuf::from);
        let places = [env::temp_dir()].into_iter().chain(of_user).chain(usual);
        Self::outside_of_places(source, places)
    }

    fn outside_of_places(source: &Path, places: impl Iterator<Item = PathBuf>) -> Result<Self, CliError> {
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
        Err(CliError::TemporaryFolder(failure))
    }

    /// The path of the folder.
    pub(crate) fn path(&self) -> &Path {
        &self.0
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
        let folder = TemporaryFolder::outside_of_places(&top.join("source"), places()).unwrap();
        let path = folder.path().to_owned();
        assert!(path.starts_with(top.join("other")) && path.is_dir());
        drop(folder);
        assert!(!path.exists());
        let error = TemporaryFolder::outside_of_places(&top, places()).unwrap_err().to_string();
        assert!(error.contains("give a mount point"), "{error}");
    }
}
