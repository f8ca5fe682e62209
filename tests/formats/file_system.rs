//! The file system of a folder, without a mount.

use std::ffi::OsStr;
use std::path::Path;
use std::sync::{Arc, mpsc};

use crate::format::{self, Format, Registry};
use crate::fs::{FolderEntry, Ino, Options, Ownership, ReadRequest, Registries, Volfs};
use crate::source::Blocking;
use crate::test_support::SOON;
use crate::view::{self, View};

/// A file system whose files are found by their paths.
pub struct FileSystem(Arc<Volfs>);

impl FileSystem {
    /// The file system of a folder.
    pub fn over(source: &Path) -> Self {
        Self::with(source, &[], &[])
    }

    /// The file system of a folder, with formats and views besides the built-in ones.
    pub fn with(source: &Path, formats: &[&'static dyn Format], views: &[View]) -> Self {
        let formats: Vec<&'static dyn Format> = format::registry().iter().chain(formats.iter().copied()).collect();
        let views: Vec<View> = view::registry().iter().chain(views).copied().collect();
        let registries = Registries { formats: Registry::new(formats.leak()), views: views.leak() };
        let options = Options {
            source: source.to_owned(),
            cache_size: 1 << 20,
            threads: 2,
            direct_io: false,
            follow_links: false,
            store_options: Vec::new(),
            disk_cache: None,
            quality: None,
            views: None,
            allow_other: false,
            ownership: Ownership::default(),
            shown: serde_json::Map::new(),
        };
        Self(Arc::new(Volfs::with_registries(options, Arc::default(), registries).unwrap()))
    }

    fn find(&self, path: &str) -> Ino {
        let down = |parent, name: &str| self.0.lookup(parent, OsStr::new(name), Blocking::Yes).unwrap().ino;
        path.split('/').filter(|name| !name.is_empty()).fold(Ino::ROOT, down)
    }

    fn entries(&self, path: &str) -> Vec<(String, bool)> {
        let handle = self.0.opendir(self.find(path), Blocking::Yes).unwrap().handle;
        let mut entries = Vec::new();
        // the first two are . and ..
        let add = |entry: &FolderEntry, _| {
            entries.push((entry.name.to_str().unwrap().to_owned(), entry.folder));
            true
        };
        self.0.readdir(handle, 2, Blocking::Yes, add).unwrap();
        entries
    }

    /// The names in a folder.
    pub fn names(&self, path: &str) -> Vec<String> {
        self.entries(path).into_iter().map(|(name, _)| name).collect()
    }

    /// The paths of all files below a folder.
    pub fn files_below(&self, path: &str) -> Vec<String> {
        let below = |(name, folder): (String, bool)| match folder {
            true => self.files_below(&format!("{path}/{name}")).iter().map(|file| format!("{name}/{file}")).collect(),
            false => vec![name],
        };
        self.entries(path).into_iter().flat_map(below).collect()
    }

    /// The bytes of a file.
    pub fn read(&self, path: &str) -> Vec<u8> {
        let handle = self.0.open(self.find(path), Blocking::Yes).unwrap().handle;
        let (done, answer) = mpsc::channel();
        let request = ReadRequest { handle, offset: 0, size: 1 << 20, cached: false };
        self.0.read(request, move |bytes| done.send(bytes.unwrap().to_vec()).unwrap());
        answer.recv_timeout(SOON).unwrap()
    }
}
