//! The formats and views that a file system uses.

use crate::format::{self, Registry};
use crate::view::{self, View};

/// The formats and views that a file system uses. The default is all built-in ones. Others can be passed to
/// [`Volfs::with_registries`](super::Volfs::with_registries), to test a format or a view without a mount.
#[derive(Clone, Copy)]
pub struct Registries {
    /// The formats, in the order in which they are asked whether a file is theirs.
    pub formats: Registry,
    /// The views, in the order of their nodes.
    pub views: &'static [&'static dyn View],
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
    use super::super::options::Options;
    use super::super::read::ReadRequest;
    use super::super::volfs::Volfs;
    use super::*;
    use crate::format::FormatError;
    use crate::source::Wait;
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
    fn a_view_that_is_passed_in_replaces_the_built_in_ones() {
        let options = Options::demo();
        let registries = Registries { views: &[&LayerName], ..Registries::default() };
        let fs = Arc::new(Volfs::with_registries(options, Arc::default(), registries).unwrap());
        let find = |parent, name: &str| fs.lookup(parent, OsStr::new(name), Wait::Yes).map(|found| found.ino);
        let layer = find(find(Ino::ROOT, "north.zgy").unwrap(), "data").unwrap();

        let mut names = Vec::new();
        let folder = fs.opendir(layer, Wait::Yes).unwrap().handle;
        fs.readdir(folder, 2, Wait::Yes, |entry, _| {
            names.push(entry.name.clone());
            true
        })
        .unwrap();
        assert_eq!(names, ["name.txt"]);
        assert_eq!(find(layer, "lod0.raw").unwrap_err(), FsError::NotFound);

        let handle = fs.open(find(layer, "name.txt").unwrap(), Wait::Yes).unwrap().handle;
        let (done, answer) = mpsc::channel();
        fs.read(ReadRequest { handle, offset: 0, size: 100, cached: true }, move |bytes| {
            done.send(bytes.unwrap().to_vec()).unwrap();
        });
        assert_eq!(answer.recv_timeout(Duration::from_secs(60)).unwrap(), b"data");
    }
}
