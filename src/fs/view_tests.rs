//! Tests of a view with very many files, which are computed from samples.

use std::ffi::OsStr;
use std::ops::Range;
use std::sync::{Arc, mpsc};
use std::time::Duration;

use super::{FsError, Ino, Options, ReadRequest, Registries, Volfs};
use crate::counters::Counters;
use crate::format::Array;
use crate::source::Blocking;
use crate::view::{ComputedFile, Content, Convert, Entry, LayerRef, NextSegment, Samples, Segment, View};
use crate::volume::Region;

/// A folder `LAYER.rows` with a file `N` for each row of LOD 0: the samples of the row, each with its bytes
/// reversed.
const VIEW: View = View { beside_layer: Some(".rows"), ..View::new(None, row_files) };

const ROWS: u64 = 50_000;

fn row_files(_: LayerRef<'_>) -> Vec<Entry> {
    let row = |layer: LayerRef<'_>, at: &crate::volume::Dims| {
        Ok(Content::Computed(Arc::new(Row { array: Arc::clone(&layer.levels()[0]), row: at[0] })))
    };
    vec![Entry::grid("all", [ROWS].into(), "", row)]
}

struct Row {
    array: Arc<dyn Array>,
    row: u64,
}

impl ComputedFile for Row {
    fn len(&self) -> u64 {
        let info = self.array.info();
        info.shape()[2] * info.dtype.size() as u64
    }
    fn array(&self) -> &Arc<dyn Array> {
        &self.array
    }
    fn fingerprint(&self) -> u64 {
        self.row
    }
    fn is_long(&self, bytes: &Range<u64>) -> bool {
        bytes.start > 100
    }
    /// The first three samples are a segment, and each of the others is one.
    fn segments(self: Arc<Self>) -> NextSegment {
        Box::new(move |bytes| {
            let info = self.array.info();
            let (size, length, lines) = (info.dtype.size(), info.shape()[2], info.shape()[1]);
            let first = bytes.start / size as u64;
            let numbers = if first < 3 { 0..3 } else { first..first + 1 };
            let (line, column) = (self.row / lines, self.row % lines);
            let samples = match first % 2 {
                _ if first < 3 => Samples::range(&self.array, self.row * length..self.row * length + 3),
                0 => Samples::range(&self.array, self.row * length + first..self.row * length + first + 1),
                _ => {
                    let region = Region { start: [line, column, first].into(), shape: [1, 1, 1].into() };
                    Samples::region(&self.array, region)
                }
            };
            let reverse: Convert = Box::new(move |stored, out| {
                out.copy_from_slice(stored);
                out.chunks_mut(size).for_each(<[u8]>::reverse);
                Ok(())
            });
            let bytes = numbers.start * size as u64..numbers.end * size as u64;
            Segment::Samples(bytes, samples, Some(reverse))
        })
    }
}

fn rows() -> Arc<Volfs> {
    let registries = Registries { views: &[VIEW], ..Registries::default() };
    Arc::new(Volfs::with_registries(Options::demo(), Arc::default(), registries).unwrap())
}

fn find(fs: &Volfs, path: &str) -> Ino {
    let step = |parent, name| fs.lookup(parent, OsStr::new(name), Blocking::Yes).unwrap().ino;
    path.split('/').fold(Ino::ROOT, step)
}

#[test]
fn steps_are_run_until_there_are_bytes() {
    let fs = rows();
    let ino = find(&fs, "north.zgy/data.rows/all/123");
    let handle = fs.open(ino, Blocking::Yes).unwrap().handle;
    let size = fs.getattr(ino, Some(handle), Blocking::Yes).unwrap().size;
    let read = |offset, size| {
        let (done, answer) = mpsc::channel();
        let read = ReadRequest { handle, offset, size, cached: true };
        fs.read(read, move |bytes| done.send(bytes.unwrap().to_vec()).unwrap());
        answer.recv_timeout(Duration::from_secs(60)).unwrap()
    };
    let whole = read(0, 1 << 20);
    assert_eq!(whole.len() as u64, size);
    assert_eq!(read(7, 30), whole[7..37]);
    assert_eq!(read(101, 1 << 20), whole[101..]);
    assert_eq!((read(size, 1).len(), read(u64::MAX, 9).len()), (0, 0));
    let counted = fs.datasets.list().0.remove(0);
    let work = |counters: &Counters| counters.list().into_iter().filter(|(name, _)| *name != "source_bytes");
    assert!(work(&counted.counters).eq(work(&fs.counters)), "all that was read is of {}", counted.path);
    assert!(counted.counters.bricks_decoded.get() + counted.counters.source_bytes.get() > 0);

    let registries = Registries::default();
    let plain = Arc::new(Volfs::with_registries(Options::demo(), Arc::default(), registries).unwrap());
    let handle = plain.open(find(&plain, "north.zgy/data/lod0.raw"), Blocking::Yes).unwrap().handle;
    let (done, answer) = mpsc::channel();
    let row = ReadRequest { handle, offset: 123 * size, size: size as u32, cached: false };
    plain.read(row, move |bytes| done.send(bytes.unwrap().to_vec()).unwrap());
    let mut stored = answer.recv_timeout(Duration::from_secs(60)).unwrap();
    let sample = plain.getxattr(find(&plain, "north.zgy/data/lod0.raw"), OsStr::new("user.volfs.dtype"), Blocking::Yes);
    let size = if sample.unwrap() == b"int8" { 1 } else { 4 };
    stored.chunks_mut(size).for_each(<[u8]>::reverse);
    assert_eq!(whole, stored);
}

#[test]
fn a_folder_beside_the_layer_is_listed_in_parts() {
    let fs = rows();
    let names = |ino: Ino, from: u64, most: usize| {
        let handle = fs.opendir(ino, Blocking::Yes).unwrap().handle;
        let (mut names, mut at) = (Vec::new(), from);
        fs.readdir(handle, from, Blocking::Yes, |entry, position| {
            if names.len() < most {
                names.push((entry.name.to_str().unwrap().to_owned(), entry.ino, entry.folder));
                at = position;
                return true;
            }
            false
        })
        .unwrap();
        (names, at)
    };
    let dataset = find(&fs, "north.zgy");
    let listed: Vec<String> = names(dataset, 2, 9).0.into_iter().map(|(name, ..)| name).collect();
    assert_eq!(listed, ["dataset.json", "outline.geojson", "data", "data.rows"]);
    assert_eq!(names(find(&fs, "north.zgy/data"), 2, 9).0, []);
    let beside = find(&fs, "north.zgy/data.rows");
    let folder = find(&fs, "north.zgy/data.rows/all");
    assert!(fs.getattr(folder, None, Blocking::Yes).unwrap().folder);
    let (first, at) = names(folder, 0, 4);
    let row = |n: &str| (n.to_owned(), find(&fs, &format!("north.zgy/data.rows/all/{n}")), false);
    assert_eq!(first, [(".".into(), folder, true), ("..".into(), beside, true), row("0"), row("1")]);
    assert_eq!(names(folder, at, 2).0, [row("2"), row("3")]);
    assert_eq!(names(folder, ROWS + 1, 9), (vec![row("49999")], ROWS + 2));
    assert_eq!(names(folder, u64::MAX, 9).0, []);
    assert_eq!(fs.lookup(folder, OsStr::new("50000"), Blocking::Yes), Err(FsError::NotFound));
}
