//! Opens arbitrary bytes as a WKW dataset with one layer and one cube, and decodes some of its bricks.
//!
//! An input consists of the length of the description (two bytes, little-endian), the description, the header of the
//! mag (16 bytes), and the cube. `cargo fuzz run wkw_open -- -max_len=65536`.
#![no_main]

#[path = "../../tests/support/memory_folder.rs"]
mod memory_folder;

use std::collections::BTreeMap;
use std::sync::Arc;

use libfuzzer_sys::fuzz_target;
use memory_folder::MemoryFolder;
use volfs::format::wkw::Wkw;
use volfs::format::{Array, Format, FormatError, OpenWith};
use volfs::source::{IndexCache, Wait};
use volfs::volume::{Brick, Dims};

/// Larger bricks are not decoded: they may be valid, and are slow.
const DECODED: usize = 1 << 20;
/// At most this many bricks of an array are read.
const BRICKS: u64 = 32;

fuzz_target!(|input: &[u8]| {
    let Some((length, rest)) = input.split_first_chunk() else { return };
    let (text, rest) = rest.split_at(usize::from(u16::from_le_bytes(*length)).min(rest.len()));
    let (header, cube) = rest.split_at(rest.len().min(16));
    let mut files = BTreeMap::from([("color/1/header.wkw".to_owned(), header.to_vec())]);
    files.insert("color/1/z0/y0/x0.wkw".to_owned(), cube.to_vec());
    if !text.is_empty() {
        files.insert("datasource-properties.json".to_owned(), text.to_vec());
    }
    let folder = MemoryFolder { files: Arc::new(files), below: String::new() };
    let Ok(dataset) = Wkw.open_folder(Arc::new(folder), &OpenWith::new(IndexCache::new(1 << 20))) else { return };
    for array in dataset.layers().iter().flat_map(|layer| &layer.levels) {
        let grid = &array.info().grid;
        let step = (grid.total() / BRICKS).max(1);
        for number in (0..BRICKS).map(|n| n * step).take_while(|number| *number < grid.total()) {
            if let Err(FormatError::Source(error)) = read_brick(&**array, &grid.count().index_of(number), cube) {
                panic!("brick {number}: {error}");
            }
        }
    }
});

fn read_brick(array: &dyn Array, at: &Dims, cube: &[u8]) -> Result<(), FormatError> {
    let size = array.info().dtype.size();
    match array.brick(at, Wait::Yes)? {
        Brick::Constant(_) => {}
        Brick::Plain(plain) => {
            let end = plain.layout.end(size).and_then(|end| end.checked_add(plain.offset));
            assert!(end.is_some_and(|end| end <= cube.len() as u64));
        }
        Brick::Coded(coded) => {
            assert!(coded.decoded as u64 <= 255 * coded.length.most());
            assert!(coded.layout.end(size).is_some_and(|end| end <= coded.decoded as u64));
            let from = coded.offset as usize;
            let stored = &cube[from..from + coded.length.most() as usize];
            if coded.decoded <= DECODED {
                array.decode(&coded, stored, &mut vec![0; coded.decoded])?;
            }
        }
    }
    Ok(())
}
