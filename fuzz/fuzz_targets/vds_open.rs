//! Opens arbitrary bytes as a VDS, a single file or a folder of objects, and decodes some of its bricks.
//!
//! An input that begins with `HueDataStore` is a file. Any other input is a folder: for each object the length of its
//! name (a byte), the name, the length of its bytes (four bytes, little-endian) and the bytes; the name of an object's
//! metadata is the object's name, a zero byte and `vdschunkmetadata`.
//!
//! `ASAN_OPTIONS=detect_odr_violation=0 cargo fuzz run vds_open -- -max_len=65536` (libdeflate defines some of its
//! constants twice).
#![no_main]

#[path = "../../tests/support/memory_folder.rs"]
mod memory_folder;

use std::collections::BTreeMap;
use std::sync::Arc;

use libfuzzer_sys::fuzz_target;
use memory_folder::MemoryFolder;
use volfs::format::vds::Vds;
use volfs::format::{Array, Format, FormatError, OpenWith};
use volfs::source::{IndexCache, Wait};
use volfs::volume::{Brick, Dims, StoredLength};

/// Larger bricks are not decoded: they may be valid, and are slow.
const DECODED: usize = 1 << 20;
/// At most this many bricks of an array are read.
const BRICKS: u64 = 16;
/// Larger arrays do not have their chunks counted.
const COUNTED: u64 = 1 << 12;

fuzz_target!(|input: &[u8]| {
    let single = input.starts_with(b"HueDataStore");
    let files = if single { BTreeMap::from([(String::new(), input.to_vec())]) } else { objects(input) };
    let folder = Arc::new(MemoryFolder { files: Arc::new(files), below: String::new() });
    let with = OpenWith::new(IndexCache::new(1 << 20));
    let opened = if single { Vds.open(folder.clone(), &with) } else { Vds.open_folder(folder.clone(), &with) };
    let dataset = match opened {
        Ok(dataset) => dataset,
        Err(FormatError::Source(error)) => panic!("{error}"),
        Err(_) => return,
    };
    for array in dataset.layers().iter().flat_map(|layer| &layer.levels) {
        let grid = &array.info().grid;
        if grid.total() <= COUNTED {
            array.census().expect("the chunks can be counted");
        }
        let step = (grid.total() / BRICKS).max(1);
        for number in (0..BRICKS).map(|n| n * step).take_while(|number| *number < grid.total()) {
            if let Err(FormatError::Source(error)) = read_brick(&**array, &grid.count().index_of(number), single) {
                panic!("brick {number}: {error}");
            }
        }
    }
});

/// Splits an input into its objects.
fn objects(mut input: &[u8]) -> BTreeMap<String, Vec<u8>> {
    let mut files = BTreeMap::new();
    while let Some((name, rest)) = input.split_first().and_then(|(n, rest)| rest.split_at_checked(usize::from(*n))) {
        let Some((length, rest)) = rest.split_first_chunk() else { break };
        let length = (u32::from_le_bytes(*length) as usize).min(rest.len());
        files.insert(String::from_utf8_lossy(name).into_owned(), rest[..length].to_vec());
        input = &rest[length..];
    }
    files
}

fn read_brick(array: &dyn Array, at: &Dims, single: bool) -> Result<(), FormatError> {
    let size = array.info().dtype.size();
    let whole = |object: &str| array.source().len(object).unwrap_or(None);
    match array.brick(at, Wait::Yes)? {
        Brick::Constant(_) => {}
        Brick::Plain(plain) => {
            let end = plain.layout.end(size).and_then(|end| end.checked_add(plain.offset));
            assert!(end.is_some_and(|end| whole(&plain.object).is_some_and(|length| end <= length)));
        }
        Brick::Coded(coded) => {
            assert!(coded.layout.end(size).is_some_and(|end| end <= coded.decoded as u64));
            let Some(whole) = whole(&coded.object) else { return Ok(()) };
            let length = match coded.length {
                StoredLength::Bytes(length) => {
                    assert!(!single || coded.offset.checked_add(length).is_some_and(|end| end <= whole));
                    length.min(whole)
                }
                StoredLength::Rest { most } => whole.min(most),
            };
            if coded.decoded <= DECODED {
                let mut stored = vec![0; length as usize];
                array.source().read_at(&coded.object, coded.offset, &mut stored, Wait::Yes)?;
                stored.resize(length as usize + coded.padding, 0);
                array.decode(&coded, &stored, &mut vec![0; coded.decoded])?;
            }
        }
    }
    Ok(())
}
