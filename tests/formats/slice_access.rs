//! The `access` of lodN.json compared with what reading those slices really decodes.

use std::path::PathBuf;
use std::sync::Arc;

use crate::array::{ReadRequest, Reader, Selection};
use crate::catalog::open_dataset;
use crate::counters::Counters;
use crate::format::{Array, registry};
use crate::memory::BufferPool;
use crate::pool::{Bulkhead, Pool};
use crate::source::Blocking;
use crate::view::SliceCost;
use crate::volume::{Brick, Dims, Region};

use crate::test_support::test_data;

/// Returns every dataset of the test data that opens.
fn datasets() -> Vec<PathBuf> {
    let folders = ["demo", "zgy", "vds", "wkw"].map(test_data);
    let entries = folders.iter().flat_map(|folder| std::fs::read_dir(folder).unwrap());
    entries.map(|entry| entry.unwrap().path()).filter(|path| path.extension().is_none_or(|e| e != "json")).collect()
}

fn middle(array: &dyn Array, axis: usize) -> Region {
    let mut slice = Region::whole(array.info().shape());
    (slice.start[axis], slice.shape[axis]) = (slice.shape[axis] / 2, 1);
    slice
}

/// Reads boxes without a cache.
struct Slices {
    reader: Arc<Reader>,
    counters: Arc<Counters>,
}

impl Slices {
    fn new() -> Self {
        let counters = Arc::new(Counters::default());
        let reader = Reader::new(0, 2, BufferPool::for_bricks(1 << 20, 0), Pool::new(), Arc::clone(&counters));
        Self { reader, counters }
    }

    /// Reads a box, and returns the bytes that were decoded for it; `None` if it cannot be read.
    fn decoded_for(&self, array: &Arc<dyn Array>, region: Region) -> Option<u64> {
        let before = self.counters.bytes_decoded.get();
        let size = array.info().dtype.size();
        let (selections, bulkhead) = (vec![Selection::new(&region, 0, size)], Bulkhead::new(1));
        let request = ReadRequest {
            array: Arc::clone(array),
            selections,
            bulkhead,
            counters: None,
            from_file: None,
            is_entire: true,
        };
        let mut samples = vec![0; region.samples() as usize * size];
        let read = self.reader.read_into(request, &mut samples);
        read.is_ok().then(|| self.counters.bytes_decoded.get() - before)
    }
}

/// Returns the stored bytes of the coded bricks of a box; `None` if there are others, or lengths are unknown.
fn stored_of(array: &dyn Array, region: &Region) -> Option<u64> {
    let touched = array.info().grid.touched(region);
    let numbers = 0..touched.samples();
    let lengths = numbers.map(|number| {
        let within = touched.shape.index_of(number);
        let at = Dims::from_fn(within.len(), |axis| touched.start[axis] + within[axis]);
        match array.brick(&at, Blocking::Yes).unwrap() {
            Brick::Constant(_) => Some(0),
            Brick::Coded(coded) => Some(coded.length.most()),
            Brick::Plain(_) => None,
        }
    });
    lengths.sum()
}

#[test]
fn slices_decode_what_their_access_says() {
    let slices = Slices::new();
    let (mut exact, mut bounded, mut stored) = (0, 0, 0);
    for path in datasets() {
        let Ok(open) = open_dataset(registry(), &path, None) else { continue };
        for layer in open.dataset.layers() {
            for array in &layer.levels {
                for axis in 0..array.info().shape().len() {
                    let (access, slice) = (SliceCost::new(&**array, axis).unwrap(), middle(&**array, axis));
                    let place = format!("{} {} LOD {} axis {axis}", path.display(), layer.name, array.info().lod);
                    assert_eq!(access.bricks, array.info().grid.touched(&slice).samples(), "{place}");
                    let Some(decoded) = slices.decoded_for(array, slice) else { continue };
                    if access.stored_bytes.is_some() {
                        assert_eq!(access.decoded_bytes, decoded, "{place}");
                        exact += 1;
                    } else {
                        assert!(access.decoded_bytes >= decoded, "{place}: {access:?}, but {decoded} were decoded");
                        bounded += 1;
                    }
                    if let (Some(found), Some(expected)) = (access.stored_bytes, stored_of(&**array, &slice)) {
                        assert_eq!(found, expected, "{place}");
                        stored += usize::from(expected > 0);
                    }
                }
            }
        }
    }
    assert!(exact > 400 && bounded > 60 && stored > 100, "{exact}, {bounded}, {stored}");
}
