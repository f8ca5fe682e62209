//! What a path on the command line means: SOURCE, a dataset, or a place inside a mount, whose source is meant then.
//!
//! Of a path inside a mount only the list of mounts and the source are looked at, never the mount itself: so this works
//! for a mount whose daemon died, and does not wait for one that hangs. The source is read with the rights of this user, so
//! only mounts of this user and of root count: others could have given their mount the name of any source.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::{fs, io};

use nix::unistd::getuid;

use super::error::CliError;
use super::mounts::{all_mounts, around, resolve};
use super::text::{escaped_path, similar};
use crate::catalog::{self, OpenDataset, OpenError, Recogniser};
use crate::format::{OpenWith, registry};
use crate::fs::{DOT_VOLFS, DOT_VOLFS_OF_SOURCE};
use crate::mount::Mount;
use crate::source::{Origin, StoreOption, StoreUrl, is_url, shown};
use crate::view::{find_layer, layer_folders};

/// The most names of a folder that are compared with a name that does not exist.
const MOST_NAMES: usize = 10_000;

/// Returns SOURCE as an absolute path without links, since a daemon has another working directory, or as a URL. Looks at
/// a local source; does not ask a store yet.
pub(super) fn resolved_source(typed: &Path) -> Result<PathBuf, CliError> {
    if is_url(typed) {
        return Ok(StoreUrl::parse(typed).map_err(|error| CliError::store(&shown(typed), error))?.path());
    }
    let failed = |error| cannot_find(typed, &error);
    let source = fs::canonicalize(typed).map_err(failed)?;
    let metadata = fs::metadata(&source).map_err(failed)?;
    if metadata.is_dir() {
        // a folder that this user may not read would be an empty mount
        fs::read_dir(&source).map_err(failed)?;
    } else if !metadata.is_file() {
        let what = format!("{} is neither a file nor a folder", escaped_path(&source));
        return Err(CliError::new(what, "give a folder of volumes or one volume"));
    } else if Recogniser::new(registry()).format_of(&source).map_err(failed)?.is_none() {
        return Err(not_a_volume(&source));
    }
    Ok(source)
}

/// Like [`resolved_source`], and asks the store whether there is a folder or a volume. May start threads.
pub(super) fn checked_source(typed: &Origin) -> Result<Origin, CliError> {
    let origin = Origin { path: resolved_source(&typed.path)?, ..typed.clone() };
    if !origin.is_url() {
        return Ok(origin);
    }
    let failed = |error: io::Error| match error.kind() {
        io::ErrorKind::NotFound => {
            let folder = escaped_path(origin.path.parent().unwrap_or(&origin.path));
            CliError::store(&origin.path, format!("{error}; to see what is there type: volfs ls {folder}"))
        }
        _ => CliError::store(&origin.path, error),
    };
    let tree = origin.tree(registry().folder_files(), false, Arc::default()).map_err(failed)?;
    let about = tree.about_base(tree.source()).map_err(failed)?;
    if about.is_file() && Recogniser::new(registry()).format_at(&*tree, tree.source()).map_err(failed)?.is_none() {
        return Err(not_a_volume(&origin.path));
    }
    Ok(origin)
}

fn cannot_find(typed: &Path, error: &io::Error) -> CliError {
    let what = format!("cannot find the source {}: {error}", escaped_path(typed));
    CliError::new(what, "give a folder of volumes or one volume (commands: volfs --help)")
}

fn not_a_volume(path: &Path) -> CliError {
    let what = format!("{} is not a volume of a format that this version reads", escaped_path(path));
    CliError::new(what, "give a folder of volumes or one volume")
}

/// What a path inside a mount shows: the folder or dataset of the source that the path is, or lies in; and the names below
/// that dataset: none for the dataset itself, then that of a layer's folder, and those of files.
type Shown = (PathBuf, Vec<OsString>);

/// Returns the folder or dataset of the source that a path inside a mount shows; `None` for any other path.
pub(super) fn source_behind(typed: &Path, store_options: &[StoreOption]) -> Result<Option<PathBuf>, CliError> {
    Ok(shown_at(typed, store_options)?.map(|(path, _)| path))
}

/// Returns what a path inside a mount shows; `None` for any other path. `store_options` are used to ask an object store
/// that the mount shows.
fn shown_at(typed: &Path, store_options: &[StoreOption]) -> Result<Option<Shown>, CliError> {
    if is_url(typed) {
        return Ok(None);
    }
    let mounts = all_mounts()?;
    let place = resolve(typed, &mounts).map_err(|error| cannot_find(typed, &error))?;
    let Some(mount) = around(&mounts, &place) else { return Ok(None) };
    let source = mount.source();
    let (at, source_shown) = (escaped_path(&mount.mountpoint), escaped_path(source));
    if !is_believed(mount) {
        let owner = mount.owner().map_or_else(|| "unknown".to_owned(), |id| format!("id {id}"));
        let what = format!("the mount at {at} belongs to another user ({owner}), who may claim any source for it");
        return Err(CliError::new(what, format!("if you trust that it is {source_shown}, give that path")));
    }
    let origin = Origin { path: source.to_owned(), store_options: store_options.to_owned(), ..Origin::default() };
    let tree = origin
        .tree(registry().folder_files(), false, Arc::default())
        .map_err(|error| CliError::store(&shown(source), error))?;
    let is_there = |path: &Path| match origin.is_url() {
        true => tree.look(path).map(drop),
        false => fs::symlink_metadata(path).map(drop),
    };
    is_there(source).map_err(|error| {
        let what = format!("the mount at {at} shows {source_shown}, which cannot be found: {error}");
        CliError::new(what, format!("if it was moved, type: volfs umount {at}, and mount it from its new place"))
    })?;
    // of a mount within the mount (mount --bind) a folder is the root
    let below = mount.root.strip_prefix("/").unwrap_or(&mount.root);
    let below = below.join(place.strip_prefix(&mount.mountpoint).unwrap_or(Path::new("")));
    let recogniser = Recogniser::new(registry());
    let is_dataset = |path: &Path| {
        let format = if origin.is_url() { recogniser.format_at(&*tree, path) } else { recogniser.format_of(path) };
        matches!(format, Ok(Some(_)))
    };
    let place = escaped_path(&place);
    match follow(source, &below, is_dataset) {
        Some(shown) if is_there(&shown.0).is_ok() => Ok(Some(shown)),
        Some((path, _)) => {
            let what = format!("{place} does not exist: it would show {}", escaped_path(&path));
            let folder = escaped_path(path.parent().unwrap_or(&path));
            Err(CliError::new(what, format!("to see what is there type: volfs ls {folder}")))
        }
        None => {
            Err(CliError::new(format!("{place} is about the mount, not a volume"), format!("see: volfs stats {at}")))
        }
    }
}

/// Returns the URL of the object store that the mount shows in which a path lies; `None` for any other path.
pub(super) fn store_behind(typed: &Path) -> Option<PathBuf> {
    let mounts = all_mounts().ok()?;
    let mount = around(&mounts, &resolve(typed, &mounts).ok()?)?;
    Some(mount.source().to_owned()).filter(|source| is_believed(mount) && is_url(source))
}

/// Returns the mount point of the volfs mount that a path is or lies in; `None` for any other path.
pub(super) fn mountpoint_of(typed: &Path) -> Result<Option<PathBuf>, CliError> {
    let mounts = all_mounts()?;
    let Ok(place) = resolve(typed, &mounts) else { return Ok(None) };
    let mount = around(&mounts, &place);
    // a folder of a mount that is mounted elsewhere (mount --bind) has no status
    let whole = |mount: &Mount| mounts.iter().find(|m| m.device == mount.device && m.root == Path::new("/"));
    Ok(mount.map(|mount| whole(mount).unwrap_or(mount).mountpoint.clone()))
}

/// Goes down from the source along the names below a mount point; `None` below `.volfs`.
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
    Some((path, names.map(OsStr::to_owned).collect()))
}

/// Returns whether the source that a mount names is the one that it shows: this user or root has mounted it.
fn is_believed(mount: &Mount) -> bool {
    mount.owner().is_some_and(|user| user == 0 || user == getuid().as_raw())
}

/// An open dataset, and the place inside it that a path names.
pub(super) struct DatasetAt {
    /// Where the dataset is: the path that was typed, or its source.
    pub(super) path: PathBuf,
    pub(super) open: OpenDataset,
    /// The layer in whose folder of the mount the path lies, by number.
    pub(super) layer: Option<usize>,
    /// The level whose file the path is.
    pub(super) lod: Option<usize>,
    pub(super) file: Option<String>,
}

impl DatasetAt {
    /// Opens the dataset at `typed`, which may be a URL, read with `store_options`; `quality` is that of
    /// [`catalog::open_source`].
    pub(super) fn open(typed: &Path, store_options: &[StoreOption], quality: Option<u8>) -> Result<Self, CliError> {
        let (path, inside) = shown_at(typed, store_options)?.unwrap_or_else(|| (typed.to_owned(), Vec::new()));
        let path = if is_url(&path) { resolved_source(&path)? } else { path };
        let origin = Origin { path: path.clone(), store_options: store_options.to_owned(), ..Origin::default() };
        let tree = origin
            .tree(registry().folder_files(), true, Arc::default())
            .map_err(|error| CliError::store(&path, error))?;
        let open = catalog::open_source(registry(), tree, OpenWith::for_one(quality))
            .map_err(|error| cannot_open(&path, &error))?;
        let mut found = Self { path, open, layer: None, lod: None, file: None };
        found.go_inside(&inside).ok_or_else(|| {
            let (shown, dataset) = (escaped_path(typed), escaped_path(&found.path));
            let folders = layer_folders(&found.open).join(", ");
            CliError::new(
                format!("{shown} is not in the volume {dataset}"),
                format!("the folders of its layers are {folders}"),
            )
        })?;
        Ok(found)
    }

    /// Follows the names below the dataset's folder; `None` if there can be no such file or folder.
    fn go_inside(&mut self, names: &[OsString]) -> Option<()> {
        let names = names.iter().map(|name| name.to_str()).collect::<Option<Vec<&str>>>()?;
        let Some((first, rest)) = names.split_first() else { return Some(()) };
        self.layer = find_layer(&self.open, first);
        if self.layer.is_none() {
            // a file about the dataset, such as dataset.json, or a folder with all levels of a layer
            self.file = Some((*first).to_owned());
            return (rest.is_empty() && first.contains('.')).then_some(());
        }
        self.lod = rest.last().and_then(|file| lod_of(file));
        self.file = rest.last().map(|file| (*file).to_owned());
        Some(())
    }
}

pub(super) fn cannot_open(dataset: &Path, error: &OpenError) -> CliError {
    let remedy = match error {
        OpenError::Unknown(_) if dataset.is_dir() => {
            format!("to see the volumes in it type: volfs ls {}", escaped_path(dataset))
        }
        OpenError::Io { kind: io::ErrorKind::NotFound, .. } => {
            let folder = dataset.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
            match similar_name(folder, dataset) {
                Some(name) => format!("did you mean {}?", escaped_path(&folder.join(name))),
                None => format!("to see what is there type: volfs ls {}", escaped_path(folder)),
            }
        }
        OpenError::Io { kind: io::ErrorKind::PermissionDenied, .. } => {
            "ask its owner for the right to read it".to_owned()
        }
        _ => String::new(),
    };
    CliError::new(format!("cannot open {}: {error}", escaped_path(dataset)), remedy)
}

/// Returns the name in a folder that is most similar to that of a path which does not exist.
fn similar_name(folder: &Path, wanted: &Path) -> Option<String> {
    let entries = fs::read_dir(folder).ok()?.take(MOST_NAMES).flatten();
    let names: Vec<String> = entries.filter_map(|entry| entry.file_name().into_string().ok()).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    similar(&names, wanted.file_name()?.to_str()?).map(str::to_owned)
}

/// Returns the level that a file such as `lod2.by-sample.npy` shows.
fn lod_of(file: &str) -> Option<usize> {
    let (number, _) = file.strip_prefix("lod")?.split_once('.')?;
    number.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_source_becomes_absolute() {
        let folder = tempfile::tempdir().unwrap();
        let top = folder.path().canonicalize().unwrap();
        assert_eq!(resolved_source(&top.join(".")).unwrap(), top);
        let error = |path: &Path| resolved_source(path).unwrap_err().to_string();
        assert!(error(&top.join("none")).starts_with("cannot find the source"));
        fs::write(top.join("notes.txt"), "not a volume").unwrap();
        assert!(error(&top.join("notes.txt")).contains("notes.txt is not a volume"));
        fs::write(top.join("broken.ZGY"), "not a volume").unwrap();
        assert!(resolved_source(&top.join("broken.ZGY")).is_ok());
        assert!(error(Path::new("/dev/null")).contains("is neither a file nor a folder"));
    }

    #[test]
    fn a_url_is_not_looked_at_and_never_repeated_with_a_secret() {
        assert_eq!(resolved_source(Path::new("azure://c/k/")).unwrap(), Path::new("az://c/k"));
        for typed in ["https://me:hunter2@host/x", "https://host/x?sig=hunter2", "ftp://hunter2@host"] {
            let error = resolved_source(Path::new(typed)).unwrap_err().to_string();
            assert!(!error.contains("hunter2") && !error.contains('\n'), "{error}");
        }
    }

    fn shown(path: &str, inside: &[&str]) -> Option<Shown> {
        Some((path.into(), inside.iter().map(Into::into).collect()))
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
    fn the_level_is_in_the_name() {
        for (file, lod) in [
            ("lod0.raw", Some(0)),
            ("lod12.by-sample.npy", Some(12)),
            ("lod1.float32.npy", Some(1)),
            ("lod0", None),
            ("lodx.raw", None),
            ("preview.png", None),
        ] {
            assert_eq!(lod_of(file), lod, "{file}");
        }
    }
}
