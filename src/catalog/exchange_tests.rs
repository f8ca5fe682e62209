//! A dataset that is exchanged with a link to a file outside, without pause: what is opened is judged, not its name.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::os::unix::fs::symlink;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::*;
use crate::format::{OpenWith, registry};
use crate::source::{Blocking, IndexCache, LocalTree};
use crate::test_support::exchange::Exchange;

const TIME: Duration = Duration::from_millis(800);

fn data() -> Vec<u8> {
    fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/zgy/v3_int16.zgy")).unwrap()
}

/// Reads the last bytes of a dataset.
fn last_bytes(open: &OpenDataset) -> Option<[u8; 16]> {
    let source = open.dataset.layers()[0].levels[0].source();
    let mut out = [0; 16];
    let size = source.len("").ok()??;
    source.read_at("", size - 16, &mut out, Blocking::Yes).ok()?.then_some(out)
}

/// Exchanges two names while the dataset `x/x.zgy` is looked up, opened and read; fails if it is ever the one outside.
fn exchange(catalog: &Catalog, folder: &Path, (one, other): (&str, &str), expected: [u8; 16]) {
    let _exchange = Exchange::begin(File::open(folder).unwrap(), one, other);
    let (mut inside, began) = (0, Instant::now());
    while began.elapsed() < TIME {
        let root = catalog.node(ROOT).unwrap();
        let folder = catalog.find(&root, OsStr::new("x")).ok().flatten();
        let node = folder.and_then(|folder| catalog.find(&folder, OsStr::new("x.zgy")).ok().flatten());
        let open = node.and_then(|node| catalog.open(&node).ok());
        let found = open.and_then(|open| last_bytes(&open));
        assert!(found.is_none_or(|found| found == expected), "read a file outside");
        inside += usize::from(found.is_some());
    }
    assert!(inside > 10, "opened {inside} times");
}

fn check(catalog: impl Fn(&Path) -> Catalog) {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().canonicalize().unwrap().join(name);
    for name in ["source/x", "outside"] {
        fs::create_dir_all(at(name)).unwrap();
    }
    let mut bytes = data();
    fs::write(at("source/x/x.zgy"), &bytes).unwrap();
    let end = bytes.len() - 16;
    let expected: [u8; 16] = bytes[end..].try_into().unwrap();
    bytes[end..].iter_mut().for_each(|byte| *byte ^= 0xFF);
    fs::write(at("outside/x.zgy"), &bytes).unwrap();
    symlink(at("outside/x.zgy"), at("source/x/other")).unwrap();
    symlink(at("outside"), at("source/y")).unwrap();
    let catalog = catalog(&at("source"));
    exchange(&catalog, &at("source/x"), ("x.zgy", "other"), expected);
    exchange(&catalog, &at("source"), ("x", "y"), expected);
}

fn with() -> OpenWith {
    OpenWith::new(IndexCache::new(1 << 20))
}

#[test]
fn a_dataset_that_is_exchanged_with_a_link_never_shows_a_file_outside() {
    check(|source| {
        let tree = LocalTree::below(source, false, Arc::default());
        Catalog::new(registry(), tree, with(), Arc::default()).unwrap()
    });
}

#[test]
fn nor_on_a_kernel_without_openat2() {
    use crate::source::SourceRoot;
    check(|source| {
        let root = SourceRoot::without_openat2(source, false);
        let tree = LocalTree::with_root(source, root, Arc::default());
        Catalog::new(registry(), tree, with(), Arc::default()).unwrap()
    });
}
