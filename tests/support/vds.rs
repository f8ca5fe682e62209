//! VDS datasets of the test data: the expected results, and taking apart and damaging files.

use std::fs;
use std::ops::Range;
use std::path::PathBuf;

use serde_json::Value;

use super::{json, test_data};

/// Returns the folder of the datasets.
pub fn data() -> PathBuf {
    test_data("vds")
}

/// Returns the expected results, which scripts/make_vds_fixtures.py has written.
pub fn expected() -> Value {
    json(data().join("expected.json"))
}

/// A dataset in a single file, with access to all parts of its tables, so that tests can damage them.
#[derive(Clone)]
pub struct Container(pub Vec<u8>);

impl Container {
    /// Reads a file of the test data.
    pub fn read(name: &str) -> Self {
        Self(fs::read(data().join(name)).unwrap())
    }

    /// Returns the number at an offset.
    pub fn i32(&self, at: usize) -> i32 {
        i32::from_le_bytes(*self.0[at..].first_chunk().unwrap())
    }

    /// Returns the number at an offset.
    pub fn i64(&self, at: usize) -> i64 {
        i64::from_le_bytes(*self.0[at..].first_chunk().unwrap())
    }

    /// Overwrites bytes.
    pub fn put(&mut self, at: usize, bytes: impl AsRef<[u8]>) {
        let bytes = bytes.as_ref();
        self.0[at..at + bytes.len()].copy_from_slice(bytes);
    }

    /// Overwrites a number.
    pub fn put_i32(&mut self, at: usize, number: i32) {
        self.put(at, number.to_le_bytes());
    }

    /// Overwrites a number.
    pub fn put_i64(&mut self, at: usize, number: i64) {
        self.put(at, number.to_le_bytes());
    }

    /// Returns the offset of a file's entry in the file table.
    pub fn entry(&self, name: &str) -> usize {
        let (table, count, length) = (self.i64(16) as usize, self.i32(24) as usize, self.i32(28) as usize);
        let mut entries = (0..count).map(|n| table + n * (32 + length));
        let named = |at: &usize| {
            let stored = &self.0[at + 32..at + 32 + length];
            stored.split(|byte| *byte == 0).next() == Some(name.as_bytes())
        };
        entries.find(named).unwrap_or_else(|| panic!("no file {name}"))
    }

    /// Returns the names of all files.
    pub fn files(&self) -> Vec<String> {
        let (table, count, length) = (self.i64(16) as usize, self.i32(24) as usize, self.i32(28) as usize);
        let name = |n: usize| {
            let at = table + n * (32 + length) + 32;
            String::from_utf8_lossy(&self.0[at..at + length]).trim_end_matches('\0').to_owned()
        };
        (0..count).map(name).collect()
    }

    /// Returns the offset of a file's newest page directory.
    pub fn directory(&self, name: &str) -> usize {
        self.i64(self.entry(name)) as usize
    }

    /// Returns the offset of a file's metadata.
    pub fn metadata(&self, name: &str) -> usize {
        self.directory(name) + 16
    }

    /// Returns the offset of the directory entry of the index page that has a chunk.
    pub fn page(&self, name: &str, chunk: usize) -> usize {
        let entry = self.entry(name);
        let (per_page, metadata) = (self.i32(entry + 16) as usize, self.i32(entry + 28) as usize);
        self.metadata(name) + metadata + 8 * (chunk / per_page)
    }

    /// Returns the offset of the index entry of a chunk: offset, length, reserved, metadata.
    pub fn index(&self, name: &str, chunk: usize) -> usize {
        let entry = self.entry(name);
        let (per_page, metadata) = (self.i32(entry + 16) as usize, self.i32(entry + 24) as usize);
        self.i64(self.page(name, chunk)) as usize + chunk % per_page * (16 + metadata)
    }

    /// Returns the range of the bytes of a chunk.
    pub fn chunk(&self, name: &str, chunk: usize) -> Range<usize> {
        let index = self.index(name, chunk);
        let offset = self.i64(index) as usize;
        offset..offset + self.i32(index + 8) as usize
    }

    /// Gives a chunk other bytes, which are appended to the file.
    pub fn replace(&mut self, name: &str, chunk: usize, bytes: &[u8]) {
        let (index, end) = (self.index(name, chunk), self.0.len());
        self.put_i64(index, end as i64);
        self.put_i32(index + 8, bytes.len() as i32);
        self.0.extend(bytes);
    }

    /// Changes the description (VolumeDataLayout).
    pub fn edit(&mut self, change: impl FnOnce(&mut Value)) {
        let mut layout: Value = serde_json::from_slice(&self.0[self.chunk("VolumeDataLayout", 0)]).unwrap();
        change(&mut layout);
        self.replace("VolumeDataLayout", 0, layout.to_string().as_bytes());
    }
}
