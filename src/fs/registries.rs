//! The formats and views that a file system uses.

use super::options::Options;
use crate::format::{self, Registry};
use crate::view::{self, View};

/// The formats and views that a file system uses. The default is all built-in ones. Others can be passed to
/// [`Volfs::with_registries`](super::Volfs::with_registries), to test a format or a view without a mount.
#[derive(Clone, Copy)]
pub(crate) struct Registries {
    /// The formats, in the order in which they are asked whether a file is theirs.
    pub formats: Registry,
    /// The views, in the order of their nodes.
    pub views: &'static [&'static dyn View],
}

impl Registries {
    /// Returns the built-in ones that a mount with these options uses.
    pub(crate) fn of(options: &Options) -> Self {
        let formats = format::registry();
        match &options.views {
            // a process has one mount
            Some(names) => Self { formats, views: view::views_of(names).leak() },
            None => Self { formats, views: view::registry() },
        }
    }
}

impl Default for Registries {
    fn default() -> Self {
        Self { formats: format::registry(), views: view::registry() }
    }
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;
    use std::sync::{Arc, mpsc};
    use std::time::Duration;

    use super::super::error::FsError;
    use super::super::ino::Ino;
    use super::super::read::ReadRequest;
    use super::super::volfs::Volfs;
    use super::*;
    use crate::format::FormatError;
    use crate::source::Blocking;
    use crate::view::{Content, Entry, LayerRef};

    /// A view with one file for each layer, which holds the layer's name.
    struct LayerName;

    impl View for LayerName {
        fn nodes(&self, _: LayerRef<'_>) -> u64 {
            1
        }

        fn list(&self, _: LayerRef<'_>, folder: Option<u64>, add: &mut dyn FnMut(Entry)) {
            if folder.is_none() {
                add(Entry { node: 0, name: "name.txt".to_owned(), folder: false });
            }
        }

        fn content(&self, layer: LayerRef<'_>, _: u64) -> Result<Content, FormatError> {
            Ok(layer.name().to_owned().into())
        }
    }

    #[test]
    fn a_mount_shows_the_views_that_are_chosen() {
        let names_in = |views: Option<Vec<&'static str>>| {
            let fs = Arc::new(Volfs::new(Options { views, ..Options::demo() }, Arc::default()).unwrap());
            let find = |parent, name: &str| fs.lookup(parent, OsStr::new(name), Blocking::Yes).map(|found| found.ino);
            let layer = find(find(Ino::ROOT, "cells").unwrap(), "color").unwrap();
            let read = fs.opendir(layer, Blocking::Yes).unwrap().handle;
            let mut names = Vec::new();
            fs.readdir(read, 2, Blocking::Yes, |entry, _| {
                names.extend(entry.name.to_str().filter(|name| !name.starts_with("lod1.")).map(str::to_owned));
                true
            })
            .unwrap();
            (names.into_iter().filter(|name| !name.starts_with("lod2.")).collect::<Vec<_>>(), find(layer, "lod1.npy"))
        };
        let (some, npy) = names_in(Some(vec!["raw", "tiff"]));
        assert_eq!(some, ["lod0.raw", "lod0.json", "tiff"]);
        assert_eq!(npy, Err(FsError::NotFound));
        let (all, npy) = names_in(None);
        assert!(all.len() > 5 && npy.is_ok());
    }

    #[test]
    fn a_view_that_is_passed_in_replaces_the_built_in_ones() {
        let options = Options::demo();
        let registries = Registries { views: &[&LayerName], ..Registries::default() };
        let fs = Arc::new(Volfs::with_registries(options, Arc::default(), registries).unwrap());
        let find = |parent, name: &str| fs.lookup(parent, OsStr::new(name), Blocking::Yes).map(|found| found.ino);
        let layer = find(find(Ino::ROOT, "north.zgy").unwrap(), "data").unwrap();

        let mut names = Vec::new();
        let folder = fs.opendir(layer, Blocking::Yes).unwrap().handle;
        fs.readdir(folder, 2, Blocking::Yes, |entry, _| {
            names.push(entry.name.clone());
            true
        })
        .unwrap();
        assert_eq!(names, ["name.txt"]);
        assert_eq!(find(layer, "lod0.raw").unwrap_err(), FsError::NotFound);

        let handle = fs.open(find(layer, "name.txt").unwrap(), Blocking::Yes).unwrap().handle;
        let (done, answer) = mpsc::channel();
        fs.read(ReadRequest { handle, offset: 0, size: 100, cached: true }, move |bytes| {
            done.send(bytes.unwrap().to_vec()).unwrap();
        });
        assert_eq!(answer.recv_timeout(Duration::from_secs(60)).unwrap(), b"data");
    }
}
