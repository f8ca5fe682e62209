//! Checks the folder that a mount is to have as its disk cache.

use std::fs;
use std::path::{Path, PathBuf};

use super::error::CliError;
use super::mounts::source_behind::mountpoint_of;
use super::text::size::Size;
use crate::source::disk_cache::{DiskCache, DiskCacheOptions};
use crate::source::is_url;

/// What a disk cache may take if nobody says.
const DEFAULT_SIZE: u64 = 10 << 30;

/// Returns the disk cache that was chosen for `source`, which is to be mounted at `mountpoint` if it is, and makes its
/// folder.
pub(crate) fn chosen(
    dir: Option<&Path>,
    size: Option<Size>,
    source: &Path,
    mountpoint: Option<&Path>,
) -> Result<Option<DiskCacheOptions>, CliError> {
    let Some(dir) = dir else {
        return match size {
            Some(_) => Err(CliError::Argument("--disk-cache-size needs --disk-cache DIR".to_owned())),
            None => Ok(None),
        };
    };
    if !is_url(source) {
        let text = "--disk-cache is for object stores: a SOURCE on this machine is read where it is";
        return Err(CliError::Argument(text.to_owned()));
    }
    let dir = std::path::absolute(dir).map_err(|error| CliError::DiskCacheFolder(dir.to_owned(), error))?;
    check_outside(&dir, mountpoint)?;
    DiskCache::check(&dir)?;
    Ok(Some(DiskCacheOptions { dir, budget: size.map_or(DEFAULT_SIZE, Size::bytes) }))
}

/// Refuses a folder in a mount: it could not be written to, and reading it would wait for itself.
fn check_outside(dir: &Path, mountpoint: Option<&Path>) -> Result<(), CliError> {
    // it may not exist yet
    let exists = |path: &&Path| path.symlink_metadata().is_ok();
    let above = dir.ancestors().find(exists).unwrap_or(dir);
    let inside = |mount: PathBuf| CliError::DiskCacheInside { dir: dir.to_owned(), mountpoint: mount };
    if let Some(mount) = mountpoint_of(above)? {
        return Err(inside(mount));
    }
    let place = fs::canonicalize(above).map_err(|error| CliError::DiskCacheFolder(dir.to_owned(), error))?;
    if let Some(mountpoint) = mountpoint.filter(|at| place.starts_with(at) || dir.starts_with(at)) {
        return Err(inside(mountpoint.to_owned()));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cache_is_for_urls_and_outside_of_the_mount() {
        let folder = tempfile::tempdir().unwrap();
        let top = folder.path().canonicalize().unwrap();
        let mountpoint = top.join("mount");
        fs::create_dir(&mountpoint).unwrap();
        std::os::unix::fs::symlink(&mountpoint, top.join("link")).unwrap();
        let url = Path::new("s3://bucket");
        let chosen = |dir: &str, source| chosen(Some(&top.join(dir)), None, source, Some(&mountpoint));
        let good = chosen("a/b", url).unwrap().unwrap();
        assert_eq!((good.dir, good.budget), (top.join("a/b"), DEFAULT_SIZE));
        assert!(top.join("a/b/CACHEDIR.TAG").exists());
        for inside in ["mount", "mount/x/y", "link/x"] {
            assert!(matches!(chosen(inside, url), Err(CliError::DiskCacheInside { .. })), "{inside}");
        }
        assert_eq!(fs::read_dir(&mountpoint).unwrap().count(), 0);
        assert!(matches!(chosen("a/b", &top), Err(CliError::Argument(_))));
        fs::write(top.join("a/other"), "").unwrap();
        assert!(matches!(chosen("a", url), Err(CliError::DiskCache(_))));
        let size = Some(Size::of(1 << 30));
        assert!(matches!(super::chosen(None, size, url, Some(&mountpoint)), Err(CliError::Argument(_))));
        assert_eq!(super::chosen(None, None, url, None).unwrap(), None);
    }
}
