//! Opens arbitrary bytes as a ZGY file, counts its bricks and decodes some of them.
//!
//! `cargo fuzz run zgy_open -- -max_len=65536`; tests/data/zgy is a good initial corpus.
#![no_main]

#[path = "../../tests/support/memory_folder.rs"]
mod memory_folder;

use std::sync::Arc;

use libfuzzer_sys::fuzz_target;
use memory_folder::MemoryFolder;
use volfs::format::zgy::Zgy;
use volfs::format::{Array, Format, FormatError, OpenWith};
use volfs::source::{IndexCache, Wait};
use volfs::volume::{Brick, Dims};

/// Larger bricks are not decoded: they may be valid, and are slow.
const DECODED: usize = 1 << 20;
/// At most this many bricks of an array are read.
const BRICKS: u64 = 32;

fuzz_target!(|file: &[u8]| {
    let source = Arc::new(MemoryFolder::of_one_file(file.to_vec()));
    let Ok(dataset) = Zgy.open(source, &OpenWith::new(IndexCache::new(1 << 20))) else { return };
    for array in &dataset.layers()[0].levels {
        assert!(array.census().is_ok());
        let grid = &array.info().grid;
        for number in (0..grid.total()).step_by((grid.total() / BRICKS).max(1) as usize) {
            let at = grid.count().index_of(number);
            if let Err(FormatError::Source(error)) = read_brick(&**array, &at, file) {
                panic!("brick {at:?}: {error}");
            }
        }
    }
});

fn read_brick(array: &dyn Array, at: &Dims, file: &[u8]) -> Result<(), FormatError> {
    match array.brick(at, Wait::Yes)? {
        Brick::Constant(_) => {}
        Brick::Plain(plain) => {
            let end = plain.layout.end(array.info().dtype.size()).and_then(|end| end.checked_add(plain.offset));
            assert!(end.is_some_and(|end| end <= file.len() as u64));
        }
        Brick::Coded(coded) if coded.decoded <= DECODED => {
            let from = coded.offset as usize;
            let mut stored = file[from..from + coded.length.most() as usize].to_vec();
            stored.resize(stored.len() + coded.padding, 0);
            array.decode(&coded, &stored, &mut vec![0; coded.decoded])?;
        }
        Brick::Coded(_) => {}
    }
    Ok(())
}
