//! What a path inside a mount shows: its source.
//!
//! Only the list of mounts and the source are looked at, never the mount itself: so this works for a mount whose daemon
//! died, and does not wait for one that hangs. The source is read with the rights of the one who asks, so that the user
//! who mounted must be the same one or root: others could have given their mount the name of any source.

use std::collections::VecDeque;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use nix::unistd::getuid;

use super::mountpoint::mounts;
use crate::catalog::Recogniser;
use crate::cli::error::CliError;
use crate::format::registry;
use crate::fs::{DOT_VOLFS, DOT_VOLFS_OF_SOURCE};
use crate::mount::mountinfo::{self, Mount};
use crate::source::{Origin, StoreOption, is_url, shown};

/// The most symbolic links on the way to a path, as many as the kernel allows.
const MAX_LINKS: usize = 40;

/// What a path inside a mount shows.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Shown {
    /// The folder or dataset of the source that the path is, or lies in.
    pub path: PathBuf,
    /// The names below that dataset: none for the dataset itself, then that of a layer's folder, and those of files.
    pub inside: Vec<OsString>,
}

/// Returns the folder or dataset of the source that a path inside a mount shows; `None` for any other path.
pub(crate) fn source_behind(typed: &Path, store_options: &[StoreOption]) -> Result<Option<PathBuf>, CliError> {
    Ok(shown_at(typed, store_options)?.map(|shown| shown.path))
}

/// Returns what a path inside a mount shows; `None` for any other path. `store_options` are used to ask an object store
/// that the mount shows.
pub(crate) fn shown_at(typed: &Path, store_options: &[StoreOption]) -> Result<Option<Shown>, CliError> {
    if is_url(typed) {
        return Ok(None);
    }
    let mounts = mounts()?;
    let failed = |error| CliError::Source { typed: typed.to_owned(), error };
    let place = resolve(typed, &mounts).map_err(failed)?;
    let Some(mount) = around(&mounts, &place) else { return Ok(None) };
    let source = mountinfo::source_of(mount);
    if !is_believed(mount) {
        let (mountpoint, source_path) = (mount.mountpoint.clone(), source.to_owned());
        return Err(CliError::OthersSource { mountpoint, source_path, owner: mount.owner() });
    }
    let origin = Origin { path: source.to_owned(), store_options: store_options.to_owned(), ..Origin::default() };
    let tree = origin.tree(false, Arc::default()).map_err(|error| CliError::Store(shown(source), error.to_string()))?;
    let is_there = |path: &Path| match origin.is_url() {
        true => tree.look(path).map(drop),
        false => fs::symlink_metadata(path).map(drop),
    };
    if let Err(error) = is_there(source) {
        let (mountpoint, source_path) = (mount.mountpoint.clone(), source.to_owned());
        return Err(CliError::SourceGone { mountpoint, source_path, error });
    }
    // of a mount within the mount (mount --bind) a folder is the root
    let below = mount.root.strip_prefix("/").unwrap_or(&mount.root);
    let below = below.join(place.strip_prefix(&mount.mountpoint).unwrap_or(Path::new("")));
    let recogniser = Recogniser::new(registry());
    let is_dataset = |path: &Path| {
        let format = if origin.is_url() { recogniser.format_at(&*tree, path) } else { recogniser.format_of(path) };
        matches!(format, Ok(Some(_)))
    };
    match follow(source, &below, is_dataset) {
        Some(shown) if is_there(&shown.path).is_ok() => Ok(Some(shown)),
        Some(shown) => Err(CliError::NotInSource { shown: place, wanted: shown.path }),
        None => Err(CliError::AboutMount { shown: place, mountpoint: mount.mountpoint.clone() }),
    }
}

/// Returns the URL of the object store that the mount shows in which a path lies; `None` for any other path.
pub(crate) fn store_behind(typed: &Path) -> Option<PathBuf> {
    let mounts = mounts().ok()?;
    let mount = around(&mounts, &resolve(typed, &mounts).ok()?)?;
    Some(mountinfo::source_of(mount).to_owned()).filter(|source| is_believed(mount) && is_url(source))
}

/// Returns the mount point of the volfs mount that a path is or lies in; `None` for any other path.
pub(crate) fn mountpoint_of(typed: &Path) -> Result<Option<PathBuf>, CliError> {
    let mounts = mounts()?;
    let Ok(place) = resolve(typed, &mounts) else { return Ok(None) };
    let mount = around(&mounts, &place);
    // a folder of a mount that is mounted elsewhere (mount --bind) has no status of its own
    let whole = |mount: &Mount| mounts.iter().find(|m| m.device == mount.device && m.root == Path::new("/"));
    Ok(mount.map(|mount| whole(mount).unwrap_or(mount).mountpoint.clone()))
}

/// Goes down from the source along the names below a mount point; `None` for what is about the mount itself.
fn follow(source: &Path, below: &Path, is_dataset: impl Fn(&Path) -> bool) -> Option<Shown> {
    let mut path = source.to_owned();
    let mut names = below.iter().peekable();
    match names.peek() {
        Some(name) if *name == DOT_VOLFS => return None,
        // a source that is one dataset is shown with its name
        Some(name) if is_dataset(source) && Some(*name) == source.file_name() => drop(names.next()),
        Some(name) if *name == DOT_VOLFS_OF_SOURCE => {
            names.next();
            path.push(DOT_VOLFS);
        }
        _ => {}
    }
    while !is_dataset(&path) {
        let Some(name) = names.next() else { break };
        path.push(name);
    }
    Some(Shown { path, inside: names.map(OsStr::to_owned).collect() })
}

/// Returns the volfs mount that a path lies in: the innermost one, if no other mount lies between.
fn around<'a>(mounts: &'a [Mount], path: &Path) -> Option<&'a Mount> {
    let innermost = path.ancestors().find_map(|above| mountinfo::topmost(mounts, above));
    innermost.filter(|mount| mount.is_volfs())
}

/// Returns whether the source that a mount names is the one that it shows: this user or root has mounted it.
fn is_believed(mount: &Mount) -> bool {
    mount.owner().is_some_and(|user| user == 0 || user == getuid().as_raw())
}

/// Returns the path with the links followed that lie outside of volfs mounts; there are none inside. Names that are not
/// there stay as they are.
fn resolve(typed: &Path, mounts: &[Mount]) -> io::Result<PathBuf> {
    let mut rest = names(&std::path::absolute(typed)?);
    let mut place = PathBuf::from("/");
    let mut links = 0;
    while let Some(name) = rest.pop_front() {
        if name == ".." {
            place.pop();
            continue;
        }
        place.push(name);
        if around(mounts, &place).is_some() {
            continue;
        }
        let Ok(target) = fs::read_link(&place) else { continue };
        links += 1;
        if links > MAX_LINKS {
            return Err(io::Error::from_raw_os_error(nix::errno::Errno::ELOOP as i32));
        }
        place.pop();
        if target.is_absolute() {
            place = PathBuf::from("/");
        }
        let mut target = names(&target);
        target.append(&mut rest);
        rest = target;
    }
    Ok(place)
}

fn names(path: &Path) -> VecDeque<OsString> {
    let name = |part: Component<'_>| match part {
        Component::Normal(name) => Some(name.to_owned()),
        Component::ParentDir => Some("..".into()),
        Component::RootDir | Component::CurDir | Component::Prefix(_) => None,
    };
    path.components().filter_map(name).collect()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    fn shown(path: &str, inside: &[&str]) -> Option<Shown> {
        Some(Shown { path: path.into(), inside: inside.iter().map(Into::into).collect() })
    }

    #[test]
    fn names_below_a_mount_lead_to_the_source() {
        let is_dataset = |path: &Path| path.extension().is_some_and(|e| e == "zgy");
        let follow = |below: &str| follow(Path::new("/data"), Path::new(below), is_dataset);
        assert_eq!(follow(""), shown("/data", &[]));
        assert_eq!(follow("a/b"), shown("/data/a/b", &[]));
        assert_eq!(follow("a/x.zgy"), shown("/data/a/x.zgy", &[]));
        assert_eq!(follow("a/x.zgy/data/lod0.raw"), shown("/data/a/x.zgy", &["data", "lod0.raw"]));
        assert_eq!(follow(".volfs~2/a"), shown("/data/.volfs/a", &[]));
        assert_eq!(follow("a/.volfs~2"), shown("/data/a/.volfs~2", &[]));
        assert_eq!(follow(".volfs/status.json"), None);
    }

    #[test]
    fn a_source_that_is_one_dataset_is_shown_with_its_name() {
        let follow = |below: &str| follow(Path::new("/data/x.zgy"), Path::new(below), |path| path.ends_with("x.zgy"));
        assert_eq!(follow(""), shown("/data/x.zgy", &[]));
        assert_eq!(follow("x.zgy"), shown("/data/x.zgy", &[]));
        assert_eq!(follow("x.zgy/data"), shown("/data/x.zgy", &["data"]));
    }

    #[test]
    fn links_are_followed() {
        let folder = tempfile::tempdir().unwrap();
        let top = folder.path().canonicalize().unwrap();
        fs::create_dir_all(top.join("a/b")).unwrap();
        symlink("a/b", top.join("one")).unwrap();
        symlink(top.join("one"), top.join("two")).unwrap();
        symlink("circle", top.join("circle")).unwrap();
        let resolve = |name: &str| resolve(&top.join(name), &[]);
        assert_eq!(resolve("two/c").unwrap(), top.join("a/b/c"));
        assert_eq!(resolve("two/../c/.").unwrap(), top.join("a/c"));
        assert_eq!(resolve("none/../c").unwrap(), top.join("c"));
        assert!(resolve("circle").is_err());
    }
}
