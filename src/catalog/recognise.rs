//! Decides what a path of SOURCE is: a folder, a dataset of some format, or nothing that is shown.
//!
//! A file is a dataset if a format knows its first bytes, or if it has the extension of a format. A folder is a dataset
//! if it has the description of one (the strong sign of a format), or by the folders in it (the weak sign). The catalog
//! asks this of every folder and often, so at most 16 bytes of a file are read, and a verdict by the weak sign, which
//! takes many system calls, is cached for a second.
//!
//! The weak sign: a folder with the data of one layer is a dataset. A folder of such folders is one dataset with these
//! layers, but only if nothing else in it is a dataset: no subfolder by a description or as a folder of layers itself,
//! and no file by its first bytes or its extension. Otherwise the folder is shown as a plain folder, and each dataset
//! in it by itself.

use std::ffi::OsString;
use std::io;
use std::num::NonZeroUsize;
use std::path::Path;
use std::time::{Duration, Instant, SystemTime};

use lru::LruCache;

use crate::format::{Format, Registry};
use crate::source::{
    About, EntryKind, FolderProbe, LocalTree, MOST_REMOTE, ObjectVersion, Permissions, Place, Tree, is_loop, not_found,
};
use crate::sync::Mutex;

/// Bytes of a file that may be read to find out its format.
const HEAD: u64 = 16;
/// Folders whose verdict by the weak sign is cached.
const REMEMBERED: NonZeroUsize = NonZeroUsize::new(1024).unwrap();
/// How long a cached verdict is used: a change deeper in a folder does not change the folder's own version.
const VERDICT_TTL: Duration = Duration::from_secs(1);
/// A folder with more subfolders is not a dataset by the weak sign.
const MAX_LAYERS: usize = 256;
/// The same for folders of a server, since each look into one is a request.
const MAX_REMOTE_LAYERS: usize = 16;
/// A folder with more entries is not a dataset by the weak sign, either.
const MAX_ENTRIES: usize = 4096;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NodeKind {
    /// A folder that is shown with the folders and datasets in it.
    Folder,
    /// A dataset, or a file with the extension of a format.
    Dataset,
}

#[derive(Clone, Copy)]
pub(super) struct Entry {
    pub(super) kind: NodeKind,
    pub(super) version: ObjectVersion,
    /// The time of the last change of content or attributes (ctime).
    pub(super) changed: SystemTime,
    /// Who may list and search the folder that shows it, if permissions are asked for.
    pub(super) permissions: Option<Permissions>,
    /// The device and inode number of the file or folder itself; the version may be that of a description.
    pub(super) inode: (u64, u64),
    /// Whether it is a dataset with files of its own, which have further permissions.
    pub(super) has_files: bool,
}

impl Entry {
    pub(super) fn new(kind: NodeKind, about: &About) -> Self {
        let has_files = about.is_folder();
        let permissions = about.permissions.map(|own| if has_files { own } else { own.as_folder() });
        let (version, changed) = (about.version, about.changed);
        Self { kind, version, changed, permissions, inode: version.inode, has_files }
    }

    /// Returns the dataset in a folder, in the version of the file that describes it, if there is one.
    fn of_folder(folder: &About, description: Option<&About>) -> Self {
        let folder = Self::new(NodeKind::Dataset, folder);
        let Some(description) = description else { return folder };
        let described = Self::new(NodeKind::Dataset, description);
        // a user who may not read the description may not know what the files are
        let both = folder.permissions.zip(described.permissions);
        let permissions = both.map(|(folder, description)| folder.restrict(description));
        Self { permissions, inode: folder.inode, has_files: true, ..described }
    }
}

/// The format of a dataset; `None` for what is not a dataset.
type Verdict = Option<&'static dyn Format>;

pub(crate) struct Recogniser {
    pub(super) formats: Registry,
    /// Verdicts by the weak sign, and when they were found.
    verdicts: Mutex<LruCache<ObjectVersion, (Verdict, Instant)>>,
}

impl Recogniser {
    pub(crate) fn new(formats: Registry) -> Self {
        Self { formats, verdicts: Mutex::new(LruCache::new(REMEMBERED)) }
    }

    /// Returns the format of the local dataset at a path, which is a source by itself: by its content, or else by the
    /// extension of a file. Fails if nothing is there.
    pub(crate) fn format_of(&self, path: &Path) -> io::Result<Verdict> {
        self.format_at(&*LocalTree::below(path), path)
    }

    /// Returns the format of the dataset at a path of a tree, as [`Recogniser::format_of`] does.
    pub(crate) fn format_at(&self, tree: &dyn Tree, path: &Path) -> io::Result<Verdict> {
        let place = tree.look(path)?.ok_or_else(not_found)?;
        match place.about().is_folder() {
            true => self.format_of_folder(&FolderProbe::new(place)),
            false => self.format_of_file(path, &*place),
        }
    }

    /// Returns the format of a file that was found at `path` by its content, or else by the extension of its name.
    pub(super) fn format_of_file(&self, path: &Path, file: &dyn Place) -> io::Result<Verdict> {
        let head = file.read_head(HEAD)?;
        let known = self.format_of_head(&head).or_else(|| self.format_of_extension(path));
        Ok(known.or_else(|| self.formats.iter().find(|format| format.may_be_file(&head))))
    }

    fn format_of_head(&self, head: &[u8]) -> Verdict {
        self.formats.iter().find(|format| format.is_file(head))
    }

    fn format_of_extension(&self, name: &Path) -> Verdict {
        let name = name.file_name()?.to_str()?.to_ascii_lowercase();
        let has = |extension: &&str| name.strip_suffix(*extension).is_some_and(|stem| stem.ends_with('.'));
        self.formats.iter().find(|format| format.extensions().iter().any(has))
    }

    /// Returns whether a file has the extension of a format. Such a file is shown even if it is not a dataset: its
    /// error.txt gives the reason.
    pub(super) fn has_dataset_extension(&self, name: &Path) -> bool {
        self.format_of_extension(name).is_some()
    }

    /// Returns the version of the dataset at a path: of a folder that of the file which describes it, if there is one.
    /// Fails if nothing is there.
    pub(super) fn version_of(&self, path: &Path, tree: &dyn Tree) -> io::Result<ObjectVersion> {
        let place = tree.look(path)?.ok_or_else(not_found)?;
        let about = *place.about();
        Ok(if about.is_folder() { self.look_at_folder(place)?.version } else { about.version })
    }

    /// Returns what was `found` at `path`; `None` if it is not shown, or absent. Links that stay in the tree were
    /// followed, but one to a folder whose device and inode number `is_above` knows leads nowhere: the path came
    /// through it.
    pub(super) fn look(
        &self,
        path: &Path,
        found: io::Result<Option<Box<dyn Place>>>,
        is_above: impl Fn((u64, u64)) -> bool,
    ) -> io::Result<Option<Entry>> {
        let Some(place) = none_if_absent(found)?.flatten() else { return Ok(None) };
        let about = *place.about();
        if about.is_folder() {
            let is_circle = about.by_links && is_above(about.version.inode);
            return if is_circle { Ok(None) } else { self.look_at_folder(place).map(Some) };
        }
        let is_dataset = about.is_file()
            && (self.has_dataset_extension(path) || !place.is_in_crowd() && self.is_known_by_head(&*place)?);
        Ok(is_dataset.then(|| Entry::new(NodeKind::Dataset, &about)))
    }

    fn look_at_folder(&self, place: Box<dyn Place>) -> io::Result<Entry> {
        let folder = FolderProbe::new(place);
        let Some(format) = self.format_of_folder(&folder)? else {
            return Ok(Entry::new(NodeKind::Folder, folder.place.about()));
        };
        let description = format.folder_files().iter().find_map(|file| folder.find(file));
        match folder.failure() {
            Some(error) => Err(error),
            None => Ok(Entry::of_folder(folder.place.about(), description.as_ref().map(|file| file.about()))),
        }
    }

    /// Returns whether a format knows the first bytes of a file; `false` if it is gone or may not be read.
    fn is_known_by_head(&self, place: &dyn Place) -> io::Result<bool> {
        let head = match none_if_absent(place.read_head(HEAD)) {
            Err(e) if e.kind() == io::ErrorKind::PermissionDenied => return Ok(false),
            head => head?,
        };
        Ok(head.is_some_and(|head| self.format_of_head(&head).is_some()))
    }

    pub(super) fn format_of_folder(&self, folder: &FolderProbe) -> io::Result<Verdict> {
        let described = self.formats.iter().find(|format| format.described_folder(folder) == Some(true));
        let format = described.or_else(|| self.format_by_layers(folder));
        folder.failure().map_or(Ok(format), Err)
    }

    /// Returns the format of the dataset that a folder is by the weak sign, which may be cached.
    fn format_by_layers(&self, folder: &FolderProbe) -> Verdict {
        let version = folder.place.about().version;
        if let Some((format, at)) = self.verdicts.lock().get(&version)
            && at.elapsed() < VERDICT_TTL
        {
            return *format;
        }
        let format = self.find_layers(folder);
        if !folder.has_failed() {
            self.verdicts.lock().put(version, (format, Instant::now()));
        }
        format
    }

    fn find_layers(&self, folder: &FolderProbe) -> Verdict {
        // `Some(false)`: the folder has a description, and it is one of other data
        let undescribed = || self.formats.iter().filter(|format| format.described_folder(folder).is_none());
        if let Some(format) = undescribed().find(|format| format.is_layer_folder(folder)) {
            return Some(format);
        }
        let (folders, files) = self.entries_of_layers(folder)?;
        let any = |is: &dyn Fn(&FolderProbe) -> bool| folders.iter().any(|name| folder.subfolder_is(name, is));
        let format = undescribed().find(|format| any(&|sub| format.is_layer_folder(sub)))?;
        let is_dataset =
            |name: &OsString| folder.head_beside(name, HEAD).is_some_and(|head| self.format_of_head(&head).is_some());
        let has_others = any(&|sub| self.is_other_dataset(format, sub)) || files.iter().any(is_dataset);
        (!has_others).then_some(format)
    }

    /// Returns the names of the subfolders and of all other entries of a folder; `None` if there are too many of them,
    /// or one has the extension of a format.
    fn entries_of_layers(&self, folder: &FolderProbe) -> Option<(Vec<OsString>, Vec<OsString>)> {
        let (max_folders, max_entries) =
            if folder.place.is_remote() { (MAX_REMOTE_LAYERS, MOST_REMOTE) } else { (MAX_LAYERS, MAX_ENTRIES) };
        let (mut folders, mut files) = (Vec::new(), Vec::new());
        let mut has_extension = false;
        folder.visit(max_entries, |name, kind| {
            has_extension = self.has_dataset_extension(Path::new(name));
            let names = if kind == EntryKind::Folder { &mut folders } else { &mut files };
            names.push(name.to_owned());
            !has_extension && folders.len() <= max_folders
        });
        let is_too_much = folders.len() > max_folders || folders.len() + files.len() >= max_entries;
        (!has_extension && !is_too_much).then_some((folders, files))
    }

    /// Returns whether a subfolder is a dataset, and not a layer of the dataset of `format` around it.
    fn is_other_dataset(&self, format: &dyn Format, folder: &FolderProbe) -> bool {
        let is_another = |other: &dyn Format| {
            other.described_folder(folder) == Some(true)
                || other.name() != format.name() && other.is_layer_folder(folder)
        };
        self.formats.iter().any(is_another) || self.has_layer_folder(folder)
    }

    /// Returns whether one of a folder's subfolders, as far as they are looked at, has the data of a layer.
    fn has_layer_folder(&self, folder: &FolderProbe) -> bool {
        let mut names = Vec::new();
        folder.visit(MAX_ENTRIES, |name, kind| {
            if kind == EntryKind::Folder {
                names.push(name.to_owned());
            }
            names.len() <= MAX_LAYERS
        });
        let is_layer = |sub: &FolderProbe| self.formats.iter().any(|format| format.is_layer_folder(sub));
        names.iter().any(|name| folder.subfolder_is(name, &is_layer))
    }
}

/// Returns `None` for the errors that mean that nothing is there or that links lead in a circle.
fn none_if_absent<T>(result: io::Result<T>) -> io::Result<Option<T>> {
    match result {
        Err(e) if matches!(e.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => Ok(None),
        Err(e) if is_loop(&e) => Ok(None),
        result => result.map(Some),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;
    use std::path::Path;
    use std::sync::Arc;

    use serde_json::json;

    use super::*;
    use crate::catalog::{Catalog, ROOT};
    use crate::format::vds::Vds;
    use crate::format::wkw::Wkw;
    use crate::format::zgy::Zgy;
    use crate::format::{OpenWith, registry};
    use crate::source::{IndexCache, LocalTree};

    /// A format for tests that is not in the registry.
    struct Brk;

    impl Format for Brk {
        fn name(&self) -> &'static str {
            "brk"
        }

        fn extensions(&self) -> &'static [&'static str] {
            &["brk"]
        }

        fn is_file(&self, head: &[u8]) -> bool {
            head.starts_with(b"BRK!")
        }

        fn described_folder(&self, folder: &FolderProbe) -> Option<bool> {
            folder.is_file("bricks.txt").then_some(true)
        }
    }

    fn with_brk() -> Registry {
        static FORMATS: [&dyn Format; 4] = [&Zgy, &Wkw, &Vds, &Brk];
        Registry::new(&FORMATS)
    }

    /// Creates a mag with a header.
    fn mag(root: &Path, path: &str) {
        fs::create_dir_all(root.join(path)).unwrap();
        fs::write(root.join(path).join("header.wkw"), b"WKW\x01\x13\x02\x01\x01\0\0\0\0\0\0\0\0").unwrap();
    }

    fn describe(folder: &Path) {
        fs::create_dir_all(folder).unwrap();
        let layer = json!({"name": "a", "dataFormat": "wkw", "mags": []});
        let text = json!({"scale": [1, 1, 1], "dataLayers": [layer]}).to_string();
        fs::write(folder.join("datasource-properties.json"), text).unwrap();
    }

    fn format_of(formats: Registry, path: &Path) -> Option<&'static str> {
        Recogniser::new(formats).format_of(path).unwrap().map(Format::name)
    }

    /// Returns the names and kinds that a catalog shows at its top.
    fn shown(formats: Registry, source: &Path) -> Vec<(String, NodeKind)> {
        let with = OpenWith::new(IndexCache::new(1 << 20));
        let tree = LocalTree::below(source);
        let catalog = Catalog::new(formats, tree, with, Arc::default()).unwrap();
        let nodes = catalog.list(&catalog.node(ROOT).unwrap(), &mut |name, _| panic!("{name:?}")).unwrap();
        nodes.iter().map(|node| (node.name.to_str().unwrap().to_owned(), node.kind)).collect()
    }

    #[test]
    fn a_file_of_any_other_format_beside_layers_is_shown_and_they_are_datasets_of_their_own() {
        let files: [(&str, &[u8]); 9] = [
            ("north.brk", b"BRK! and more"),
            ("promised.BRK", b""),
            ("by content", b"BRK!"),
            ("north.ZGY", b""),
            ("south.VDS", b""),
            ("north", b"VBS\0\x03\0\0\0"),
            ("old.bin", b"VCS\0"),
            ("south", b"HueDataStore\0\0\0\0"),
            ("Åsgård 3D.zgy", b""),
        ];
        for (name, content) in files {
            let root = tempfile::tempdir().unwrap();
            mag(root.path(), "in/color/1");
            let folder = root.path().join("in");
            assert_eq!(format_of(with_brk(), &folder), Some("wkw"));
            fs::write(folder.join(name), content).unwrap();
            assert_eq!(format_of(with_brk(), &folder), None, "{name}");
            assert_eq!(shown(with_brk(), root.path()), [("in".to_owned(), NodeKind::Folder)], "{name}");
            let mut both = [("color".to_owned(), NodeKind::Dataset), (name.to_owned(), NodeKind::Dataset)];
            both.sort_by(|a, b| a.0.cmp(&b.0));
            assert_eq!(shown(with_brk(), &folder), both, "{name}");
        }
    }

    #[test]
    fn files_of_no_format_beside_layers_are_part_of_the_dataset() {
        let root = tempfile::tempdir().unwrap();
        mag(root.path(), "color/1");
        fs::write(root.path().join("notes.txt"), b"by hand").unwrap();
        fs::write(root.path().join("north.brk"), b"BRK!").unwrap();
        symlink("nowhere", root.path().join("dangling")).unwrap();
        let made = std::process::Command::new("mkfifo").arg(root.path().join("pipe")).status();
        assert!(made.is_ok());
        assert_eq!(format_of(registry(), root.path()), Some("wkw"), "without the format of the file");
        assert_eq!(format_of(with_brk(), root.path()), None);
        fs::rename(root.path().join("north.brk"), root.path().join("color/north")).unwrap();
        assert_eq!(format_of(with_brk(), root.path()), Some("wkw"));
        symlink("color/north", root.path().join("link")).unwrap();
        assert_eq!(format_of(with_brk(), root.path()), None, "a link is followed");
    }

    #[test]
    fn folders_of_mags_and_of_layers_are_datasets() {
        let root = tempfile::tempdir().unwrap();
        let at = |name: &str| root.path().join(name);
        for path in ["annotation/1", "annotation/2-2-1", "bare/color/1", "bare/seg/4-4-1", "odd/one/01", "odd/two/1-1"]
        {
            mag(root.path(), path);
        }
        fs::create_dir_all(at("bare/logs")).unwrap();
        fs::create_dir_all(at("empty/1")).unwrap();
        let is_dataset = |name: &str| format_of(registry(), &at(name)) == Some("wkw");
        assert!(is_dataset("annotation") && is_dataset("bare"));
        // a layer is a folder of mags, too; a mag, and a folder above a dataset, are not datasets
        assert!(is_dataset("bare/color"));
        for name in ["bare/color/1", "odd", "odd/one", "empty", ""] {
            assert!(!is_dataset(name), "{name}");
        }
    }

    #[test]
    fn a_folder_with_other_datasets_is_not_one_itself() {
        let others: [fn(&Path); 7] = [
            |root| describe(&root.join("other")),
            |root| mag(root, "other/color/1"),
            |root| fs::write(root.join("north.ZGY"), b"").unwrap(),
            |root| fs::write(root.join("south.vds"), b"").unwrap(),
            |root| (0..300).for_each(|n| fs::create_dir(root.join(n.to_string() + "x")).unwrap()),
            |root| {
                fs::create_dir(root.join("bricks")).unwrap();
                fs::write(root.join("bricks/bricks.txt"), b"").unwrap();
            },
            |root| {
                fs::create_dir(root.join("cloud")).unwrap();
                fs::write(root.join("cloud/VolumeDataLayout"), b"").unwrap();
                fs::write(root.join("cloud/LayerStatus"), b"").unwrap();
            },
        ];
        for (n, add) in others.into_iter().enumerate() {
            let root = tempfile::tempdir().unwrap();
            mag(root.path(), "color/1");
            add(root.path());
            assert_eq!(format_of(with_brk(), root.path()), None, "{n}");
        }
    }

    #[test]
    fn a_description_outweighs_the_folders() {
        let root = tempfile::tempdir().unwrap();
        mag(root.path(), "color/1");
        mag(root.path(), "other/color/1");
        assert_eq!(format_of(registry(), root.path()), None);
        describe(root.path());
        assert_eq!(format_of(registry(), root.path()), Some("wkw"));
        let zarr = json!({"dataLayers": [{"name": "a", "dataFormat": "tiff"}]}).to_string();
        fs::write(root.path().join("datasource-properties.json"), zarr).unwrap();
        fs::remove_dir_all(root.path().join("other")).unwrap();
        assert_eq!(format_of(registry(), root.path()), None, "a description of other data");
        fs::write(root.path().join("bricks.txt"), b"").unwrap();
        assert_eq!(format_of(with_brk(), root.path()), Some("brk"));
    }
}
