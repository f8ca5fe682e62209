//! Opens any bytes as a BRK file and asks for every brick: the body of the fuzz target, and of the mutation test.

use std::sync::Arc;

use crate::format::{Format, OpenWith};
use crate::source::{Blocking, IndexCache};
use crate::volume::Brick;

use super::brk::Brk;
use crate::test_support::memory_folder::MemoryFolder;

/// Returns whether the bytes open as a dataset.
///
/// # Panics
/// If a brick lies outside of the file.
pub fn exercise(file: &[u8]) -> bool {
    let source = Arc::new(MemoryFolder::of_one_file(file.to_vec()));
    let Ok(dataset) = Brk.open(source, &OpenWith::new(IndexCache::new(1 << 20))) else { return false };
    let array = &dataset.layers()[0].levels[0];
    assert!(array.census().is_ok());
    for number in 0..array.info().grid.total() {
        if let Ok(Brick::Plain(plain)) = array.brick(&array.info().grid.count().index_of(number), Blocking::Yes) {
            let end = plain.layout.end(array.info().dtype.size()).and_then(|end| end.checked_add(plain.offset));
            assert!(end.is_some_and(|end| end <= file.len() as u64));
        }
    }
    true
}
