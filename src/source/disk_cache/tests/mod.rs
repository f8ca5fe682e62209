//! Tests of the cache as a whole: what it finds, what damage does, who may use a folder, and a model.

mod damage;
mod finding;
mod folders;
mod model;
mod processes;
mod sharing;

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use tempfile::TempDir;

use super::{DiskCache, ObjectVersion};

const BUDGET: u64 = 64 << 20;

/// A folder for a cache, which does not exist yet.
fn place() -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("cache");
    (folder, path)
}

fn open(dir: &Path) -> DiskCache {
    DiskCache::open(dir, BUDGET).unwrap()
}

fn object(name: &str) -> ObjectVersion {
    ObjectVersion::new("s3://bucket", "survey", name, "1")
}

/// The bytes of an object at these places: different for each object and place.
fn content(seed: u64, offset: u64, length: usize) -> Vec<u8> {
    let byte = |at: u64| ((at + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15 ^ (seed << 17)) >> 40) as u8;
    (offset..offset + length as u64).map(byte).collect()
}

fn put(cache: &DiskCache, name: &str, offset: u64, bytes: &[u8]) {
    cache.put(&object(name), offset, bytes.to_vec());
    assert!(cache.wait_until_written(Duration::from_secs(30)));
}

fn get(cache: &DiskCache, name: &str, offset: u64, length: usize) -> Option<Vec<u8>> {
    let mut out = vec![0; length];
    cache.get(&object(name), offset, &mut out).then_some(out)
}

/// Waits until a cache knows what there was when it was opened.
fn wait_until_scanned(cache: &DiskCache) {
    let began = Instant::now();
    while !cache.is_scanned() {
        assert!(began.elapsed() < Duration::from_secs(30), "the scan does not end");
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Returns the files of ranges in the folder of a cache.
fn files(dir: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for folder in fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path()) {
        if folder.is_dir() && !folder.ends_with("writers") {
            found.extend(fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()));
        }
    }
    found.sort();
    found
}

/// Returns the only file of a cache.
fn only_file(dir: &Path) -> PathBuf {
    let files = files(dir);
    assert_eq!(files.len(), 1, "{files:?}");
    files[0].clone()
}
