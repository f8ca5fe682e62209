//! Headers that promise sizes that no file has.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::format::vds::Vds;
use crate::format::wkw::Wkw;
use crate::format::zgy::Zgy;
use crate::format::{Dataset, Format, FormatError, OpenWith};
use crate::source::{Blocking, IndexCache};

use super::{SMALL, within};
use crate::test_support::handmade::Handmade;
use crate::test_support::memory_folder::MemoryFolder;
use crate::test_support::vds_dataset::{Cloud, Container};

type Opened = Result<Box<dyn Dataset>, FormatError>;

fn with() -> OpenWith {
    OpenWith::new(IndexCache::new(1 << 20))
}

fn zgy(file: Vec<u8>) -> Opened {
    Zgy.open(Arc::new(MemoryFolder::of_one_file(file)), &with())
}

/// Overwrites bytes, and returns the file.
fn put(mut file: Vec<u8>, at: usize, bytes: &[u8]) -> Vec<u8> {
    file[at..at + bytes.len()].copy_from_slice(bytes);
    file
}

#[test]
fn zgy_sizes_and_tables() {
    let file = Handmade::new(3, 0, [8, 8, 8], [8, 8, 8], &[1]).build();
    assert!(zgy(file.clone()).is_ok());
    let huge = i32::MAX.to_le_bytes();
    // brick size; size of the survey; length of the strings
    for (at, bytes) in [
        (9, &huge[..]),
        (9, &(1i32 << 30).to_le_bytes()),
        (9 + 94, &huge),
        (9 + 94, &huge.repeat(3)),
        (9 + 94, &(1i32 << 20).to_le_bytes().repeat(3)),
        (9 + 333, &[255; 4]),
    ] {
        assert!(within(SMALL, || zgy(put(file.clone(), at, bytes))).is_err(), "byte {at}");
    }
    // a table in the middle of nowhere
    let old = Handmade::new(1, 0, [60, 64, 64], [64; 3], &[0]).build();
    for part in 0..4 {
        let far = put(old.clone(), 8 + 8 * part, &(1u64 << 62).to_le_bytes());
        assert!(within(SMALL, || zgy(far)).is_err(), "part {part}");
    }
}

#[test]
fn the_largest_zgy_brick_is_one_entry_of_a_table() {
    // a GiB in a constant brick costs nothing
    let file = Handmade::new(3, 0, [1024, 1024, 1024], [1024, 1024, 1024], &[0x80 << 56 | 3]).build();
    within(SMALL, || {
        let dataset = zgy(file).unwrap();
        let array = &dataset.layers()[0].levels[0];
        array.brick(&[0, 0, 0].into(), Blocking::Yes).unwrap();
        array.census().unwrap();
    });
}

#[test]
fn vds_tables() {
    let whole = Container::read("two.vds");
    let names = whole.files();
    let name = names.iter().find(|name| name.starts_with("Dimensions_")).unwrap();
    let entry = whole.entry(name);
    // offset, count and length of names in the header; then directory, chunks, entries of a page, lengths of metadata
    let numbers: [(usize, &[u8]); 8] = [
        (16, &i64::MAX.to_le_bytes()),
        (24, &i32::MAX.to_le_bytes()),
        (28, &i32::MAX.to_le_bytes()),
        (entry, &i64::MAX.to_le_bytes()),
        (entry + 8, &i32::MAX.to_le_bytes()),
        (entry + 16, &i32::MAX.to_le_bytes()),
        (entry + 24, &i32::MAX.to_le_bytes()),
        (entry + 28, &i32::MAX.to_le_bytes()),
    ];
    for (at, bytes) in numbers {
        let mut damaged = whole.clone();
        damaged.put(at, bytes);
        within(2 * SMALL, || {
            let Ok(dataset) = damaged.open() else { return };
            for array in dataset.layers().iter().flat_map(|layer| &layer.levels) {
                drop(array.brick(&array.info().grid.count().index_of(0), Blocking::Yes));
                drop(array.census());
            }
        });
    }
    // a chunk that says it has 2 GiB
    let mut damaged = whole.clone();
    let index = damaged.index(name, 0);
    damaged.put_i32(index + 8, i32::MAX);
    within(2 * SMALL, || drop(damaged.open()));
    // a description as long as the file could never be
    let mut damaged = whole;
    let index = damaged.index("VolumeDataLayout", 0);
    damaged.put_i32(index + 8, i32::MAX);
    assert!(within(SMALL, || damaged.open()).is_err());
}

#[test]
fn vds_axes_of_two_billion_samples() {
    let mut container = Container::read("two.vds");
    container.edit(|layout| {
        for axis in 0..2 {
            layout["axisDescriptors"][axis]["numSamples"] = i32::MAX.into();
        }
    });
    within(2 * SMALL, || {
        let Ok(dataset) = container.open() else { return };
        assert!(dataset.layers().iter().flat_map(|layer| &layer.levels).all(|array| array.census().is_ok()));
    });
}

#[test]
fn vds_pages_and_counts() {
    for (key, number) in [
        ("chunkCount", u64::MAX),
        ("chunkMetadataPageSize", 1 << 31),
        ("chunkMetadataPageSize", u64::MAX),
        ("chunkMetadataByteSize", u64::MAX),
        ("lod", u64::MAX),
    ] {
        let mut cloud = Cloud::read("pages");
        cloud.edit(|layer| layer[key] = number.into());
        within(2 * SMALL, || {
            let Ok(dataset) = Vds.open_folder(Arc::new(MemoryFolder::new(cloud.0)), &with()) else { return };
            for array in dataset.layers().iter().flat_map(|layer| &layer.levels) {
                drop(array.brick(&array.info().grid.count().index_of(0), Blocking::Yes));
            }
        });
    }
}

#[test]
fn wkw_cubes() {
    // sides of blocks and cubes of 2^15, voxels of 255 bytes, and a jump table of 2^45 entries
    for (logs, blocks, voxel) in [(0xff, 2, 255), (0xf0, 2, 1), (0x0f, 2, 1), (0xf5, 3, 8), (0x0a, 1, 1), (0x0a, 2, 1)]
    {
        let header = [b'W', b'K', b'W', 1, logs, blocks, 1, voxel, 16, 0, 0, 0, 0, 0, 0, 0];
        let files = BTreeMap::from([
            ("color/1/header.wkw".to_owned(), header.to_vec()),
            ("color/1/z0/y0/x0.wkw".to_owned(), [header.to_vec(), vec![255; 5000]].concat()),
        ]);
        within(SMALL, || {
            let opened = Wkw.open_folder(Arc::new(MemoryFolder::new(files)), &with());
            let Ok(dataset) = opened else { return };
            for array in dataset.layers().iter().flat_map(|layer| &layer.levels) {
                let grid = &array.info().grid;
                for number in [0, grid.total() / 2, grid.total() - 1] {
                    drop(array.brick(&grid.count().index_of(number), Blocking::Yes));
                }
            }
        });
    }
}
