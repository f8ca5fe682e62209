//! Datasets that are folders of files, as an input has them.
//!
//! An input has for each file the length of its name (a byte), the name, the length of its bytes (four bytes,
//! little-endian) and the bytes.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::format::{Format, FormatError, OpenWith};
use crate::source::IndexCache;

use super::bricks::{self, Kept};
use super::memory_folder::MemoryFolder;
use super::{bounded, views};

/// Bytes of input that count for chunks of coordinates, some of which are decoded when a dataset is opened.
const FOR_COORDINATES: usize = 32 << 10;

/// Splits an input into its files.
pub fn files(mut input: &[u8]) -> BTreeMap<String, Vec<u8>> {
    let mut files = BTreeMap::new();
    while let Some((name, rest)) = input.split_first().and_then(|(n, rest)| rest.split_at_checked(usize::from(*n))) {
        let Some((length, rest)) = rest.split_first_chunk() else { break };
        let length = (u32::from_le_bytes(*length) as usize).min(rest.len());
        files.insert(String::from_utf8_lossy(name).into_owned(), rest[..length].to_vec());
        input = &rest[length..];
    }
    files
}

/// Opens an input that begins with `magic` as a file, any other as a folder of files, makes the files of the mount and
/// reads some bricks. Returns how many could be read.
pub fn read(format: &dyn Format, magic: &[u8], input: &[u8]) -> u64 {
    let is_file = !magic.is_empty() && input.starts_with(magic);
    let files = if is_file { BTreeMap::from([(String::new(), input.to_vec())]) } else { files(input) };
    let length: usize = files.values().map(Vec::len).sum();
    let folder = Arc::new(MemoryFolder::new(files));
    let with = OpenWith::new(IndexCache::new(1 << 20));
    let opened = bounded::opening(length + FOR_COORDINATES, || {
        let dataset = if is_file { format.open(folder, &with) } else { format.open_folder(folder, &with) };
        match dataset {
            Err(FormatError::Source(error)) => panic!("the system is blamed: {error}"),
            dataset => Some(views::make_all(dataset.ok()?, format.name())),
        }
    });
    let opened = opened.map(|dataset| views::read_computed(dataset, format.name()));
    opened.map_or(0, |dataset| bricks::read_some(&*dataset, Kept::InObjects))
}
