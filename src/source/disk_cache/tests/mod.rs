//! The cache as a whole: what it finds, what damage does, who may use a folder, several processes in one, and a model.

mod power_cuts;
mod processes;

use std::fs;
use std::ops::Range;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use proptest::prelude::*;
use rustix::fs::{FlockOperation, flock};
use tempfile::TempDir;

use super::format::{BLOCK, StoredRange};
use super::{CacheKey, Cleared, DiskCache, DiskCacheError, clear, inspect};

const BUDGET: u64 = 64 << 20;

impl DiskCache {
    /// Waits until all that was put is written or dropped; `false` if that takes longer than `limit`.
    fn wait_until_written(&self, limit: Duration) -> bool {
        self.queue.wait_until_empty(limit)
    }
}

/// A folder for a cache, which does not exist yet.
fn place() -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("cache");
    (folder, path)
}

fn open(dir: &Path) -> DiskCache {
    DiskCache::open(dir, BUDGET).unwrap()
}

fn object(name: &str) -> CacheKey {
    CacheKey::new("s3://bucket", "survey", name, "1")
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
    while cache.files.may_have_unknown_files() {
        assert!(began.elapsed() < Duration::from_secs(30), "the scan does not end");
        thread::sleep(Duration::from_millis(1));
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

#[test]
fn ranges_and_parts_of_them_are_read() {
    let (_folder, dir) = place();
    let cache = open(&dir);
    let bytes = content(1, 0, 300_000);
    assert_eq!(get(&cache, "a", 0, 10), None);
    put(&cache, "a", 1000, &bytes[1000..201_000]);
    put(&cache, "a", 201_000, &bytes[201_000..]);
    for (offset, length) in [
        (1000, 200_000),
        (1000, 1),
        (1001, 3),
        (66_000, 70_000),
        (1000 + 65_536, 65_536),
        (200_999, 1),
        (1000, 299_000),
    ] {
        let expected = Some(bytes[offset..offset + length].to_vec());
        assert!(get(&cache, "a", offset as u64, length) == expected, "{length} bytes at {offset}");
    }
    for (offset, length) in [(999, 10), (299_999, 2), (0, 300_000)] {
        assert_eq!(get(&cache, "a", offset, length), None);
    }
    assert_eq!(get(&cache, "b", 1000, 10), None);
    let mut out = [0; 10];
    let newer = CacheKey::new("s3://bucket", "survey", "a", "2");
    assert!(!cache.get(&newer, 1000, &mut out), "of another version");
    let statistics = cache.statistics();
    assert_eq!((statistics.hits, statistics.misses, statistics.files), (7, 6, 2));
    assert_eq!((statistics.written_bytes, statistics.dropped, statistics.bad), (299_000, 0, 0));
}

#[test]
fn what_is_there_is_not_written_again() {
    let (_folder, dir) = place();
    let cache = open(&dir);
    put(&cache, "a", 0, &[1; 1000]);
    put(&cache, "a", 0, &[1; 1000]);
    put(&cache, "a", 10, &[1; 100]);
    assert_eq!(cache.statistics().written_bytes, 1000);
    assert_eq!(files(&dir).len(), 1);
}

#[test]
fn what_was_written_is_found_at_once_by_the_next_process() {
    let (_folder, dir) = place();
    let cache = open(&dir);
    for n in 0..50 {
        put(&cache, &n.to_string(), 5, &content(n, 5, 2000));
    }
    drop(cache);
    assert_eq!(fs::read_dir(dir.join("writers")).unwrap().count(), 0, "nothing temporary is left");
    let cache = open(&dir);
    for n in 0..50 {
        assert_eq!(get(&cache, &n.to_string(), 5, 2000), Some(content(n, 5, 2000)));
        assert_eq!(get(&cache, &n.to_string(), 100, 20), Some(content(n, 100, 20)));
    }
    wait_until_scanned(&cache);
    assert_eq!(cache.statistics().files, 50);
    assert_eq!(get(&cache, "7", 100, 20), Some(content(7, 100, 20)));
}

#[test]
fn the_least_recently_used_files_are_evicted() {
    let (_folder, dir) = place();
    let budget = 4 << 20;
    let cache = DiskCache::open(&dir, budget).unwrap();
    for n in 0..30 {
        put(&cache, &n.to_string(), 0, &content(n, 0, 100_000));
    }
    drop(cache);
    // long ago, the first ones first; but the first three were used again
    for (n, name) in (0..30).map(|n| (n, object(&n.to_string()))) {
        let path =
            files(&dir).into_iter().find(|path| path.to_string_lossy().contains(&format!("{:016x}-", name.digest)));
        let time = SystemTime::now() - Duration::from_secs(100_000 - 1000 * n);
        fs::File::options().write(true).open(path.unwrap()).unwrap().set_modified(time).unwrap();
    }
    let cache = DiskCache::open(&dir, budget).unwrap();
    wait_until_scanned(&cache);
    for n in 0..3 {
        assert!(get(&cache, &n.to_string(), 0, 100).is_some());
    }
    drop(cache);
    let cache = DiskCache::open(&dir, budget).unwrap();
    wait_until_scanned(&cache);
    for n in 30..40 {
        put(&cache, &n.to_string(), 0, &content(n, 0, 100_000));
    }
    let is_there = |n: u64| get(&cache, &n.to_string(), 0, 100_000) == Some(content(n, 0, 100_000));
    let evicted: Vec<u64> = (0..40).filter(|n| !is_there(*n)).collect();
    let expected: Vec<u64> = (3..3 + evicted.len() as u64).collect();
    assert_eq!(evicted, expected);
    assert!((5..10).contains(&evicted.len()), "{evicted:?}");
    assert_eq!(cache.statistics().evicted, evicted.len() as u64);
}

#[test]
fn the_budget_holds() {
    let (_folder, dir) = place();
    let budget = 2 << 20;
    let cache = DiskCache::open(&dir, budget).unwrap();
    for n in 0..200 {
        cache.put(&object(&n.to_string()), 0, content(n, 0, 5000 + 300 * n as usize));
        if n % 10 == 0 {
            assert!(cache.wait_until_written(Duration::from_secs(30)));
            let sum: u64 = files(&dir).iter().map(|file| fs::metadata(file).unwrap().len()).sum();
            assert!(sum <= budget && cache.statistics().bytes <= budget && sum <= cache.statistics().bytes);
        }
    }
    put(&cache, "large", 0, &[7; 200_000]);
    let statistics = cache.statistics();
    assert_eq!(get(&cache, "large", 0, 1), None, "more than a sixteenth of the budget");
    assert!(statistics.dropped >= 1 && statistics.evicted > 100 && statistics.files > 10, "{statistics:?}");
    drop(cache);
    // a smaller budget makes room at once
    let cache = DiskCache::open(&dir, budget / 4).unwrap();
    wait_until_scanned(&cache);
    put(&cache, "more", 0, &[7; 1000]);
    let sum: u64 = files(&dir).iter().map(|file| fs::metadata(file).unwrap().len()).sum();
    assert!(sum <= budget / 4);
}

// --- damage ---

const LENGTH: usize = 150_000;

fn check(what: &str, damage: impl FnOnce(&Path)) {
    let (_folder, dir) = place();
    let cache = open(&dir);
    let bytes = content(3, 0, LENGTH);
    put(&cache, "a", 64, &bytes);
    let file = only_file(&dir);
    damage(&file);
    for (offset, length) in [(64, LENGTH), (100, 10), (64 + LENGTH as u64 - 5, 5)] {
        let read = get(&cache, "a", offset, length);
        let expected = &bytes[offset as usize - 64..][..length];
        assert!(read.is_none_or(|read| read == expected), "{what}: {length} bytes at {offset}");
    }
    assert!(get(&cache, "a", 64, LENGTH).is_none(), "{what}");
    assert!(cache.statistics().bad <= 1, "{what}");
    if cache.statistics().bad == 1 {
        assert!(fs::symlink_metadata(&file).is_err(), "{what}: removed");
        assert_eq!(cache.statistics().files, 0, "{what}");
    }
    // and what is fetched again is kept again
    if fs::symlink_metadata(&file).is_err() {
        put(&cache, "a", 64, &bytes);
        assert!(get(&cache, "a", 64, LENGTH) == Some(bytes), "{what}");
    }
}

#[test]
fn a_file_that_was_cut_short_is_a_miss() {
    for length in [0, 1, 11, 12, 31, 32, 100, 200, 65_536, LENGTH as u64, LENGTH as u64 + 60] {
        check(&format!("cut to {length}"), |file| {
            fs::File::options().write(true).open(file).unwrap().set_len(length).unwrap();
        });
    }
}

#[test]
fn a_file_with_a_changed_byte_is_a_miss() {
    let (_folder, dir) = place();
    let cache = open(&dir);
    put(&cache, "a", 64, &content(3, 0, LENGTH));
    let size = fs::metadata(only_file(&dir)).unwrap().len() as usize;
    for at in [0, 8, 12, 16, 24, 32, 50, size - LENGTH - 1, size - LENGTH, size - LENGTH + 70_000, size - 1] {
        check(&format!("byte {at}"), |file| {
            let mut bytes = fs::read(file).unwrap();
            bytes[at] ^= 0x10;
            fs::write(file, bytes).unwrap();
        });
    }
}

#[test]
fn a_part_of_a_file_is_good_whose_other_parts_are_bad() {
    let (_folder, dir) = place();
    let cache = open(&dir);
    let bytes = content(3, 0, LENGTH);
    put(&cache, "a", 0, &bytes);
    let file = only_file(&dir);
    let mut damaged = fs::read(&file).unwrap();
    *damaged.last_mut().unwrap() ^= 1;
    fs::write(&file, damaged).unwrap();
    assert_eq!(get(&cache, "a", 10, 1000).unwrap(), bytes[10..1010]);
    assert_eq!(get(&cache, "a", 140_000, 100), None);
    assert_eq!(get(&cache, "a", 10, 1000), None, "the file was removed");
}

#[test]
fn parts_are_read_wherever_they_begin_and_end_and_only_their_own_blocks_count() {
    let length = 9 * BLOCK + 1000;
    let bytes = content(5, 0, length);
    let edges =
        [0, 1, 24, BLOCK - 1, BLOCK, BLOCK + 1, 2 * BLOCK, 5 * BLOCK, 6 * BLOCK + 7, 9 * BLOCK, length - 1, length];
    let parts =
        || edges.iter().flat_map(|from| edges.iter().map(move |end| (*from, *end))).filter(|(from, end)| from < end);
    let (_folder, dir) = place();
    let cache = open(&dir);
    put(&cache, "a", 0, &bytes);
    for (from, end) in parts() {
        assert!(get(&cache, "a", from as u64, end - from).unwrap() == bytes[from..end], "{from}..{end}");
    }
    let whole = fs::read(only_file(&dir)).unwrap();
    for block in [0, 1, 4, 8, 9] {
        for (from, end) in parts() {
            put(&cache, "a", 0, &bytes);
            let mut damaged = whole.clone();
            damaged[whole.len() - length + block * BLOCK + 500] ^= 1;
            fs::write(only_file(&dir), damaged).unwrap();
            let has_it = from < (block + 1) * BLOCK && end > block * BLOCK;
            let expected = (!has_it).then(|| bytes[from..end].to_vec());
            assert!(get(&cache, "a", from as u64, end - from) == expected, "block {block}, {from}..{end}");
        }
    }
}

#[test]
fn other_things_in_place_of_a_file_are_misses() {
    check("a file of zeros", |file| fs::write(file, vec![0; 151_000]).unwrap());
    check("nothing", |file| fs::remove_file(file).unwrap());
    check("a folder", |file| {
        fs::remove_file(file).unwrap();
        fs::create_dir(file).unwrap();
    });
    check("a pipe", |file| {
        fs::remove_file(file).unwrap();
        nix::unistd::mkfifo(file, nix::sys::stat::Mode::S_IRWXU).unwrap();
    });
    check("a link", |file| {
        let elsewhere = file.with_extension("elsewhere");
        fs::rename(file, &elsewhere).unwrap();
        symlink(elsewhere, file).unwrap();
    });
}

#[test]
fn the_file_of_another_object_is_a_miss() {
    let (_folder, dir) = place();
    let cache = open(&dir);
    put(&cache, "a", 64, &content(3, 0, LENGTH));
    let file = only_file(&dir);
    put(&cache, "b", 64, &content(4, 0, LENGTH));
    let other = files(&dir).into_iter().find(|other| *other != file).unwrap();
    fs::copy(&other, &file).unwrap();
    assert!(get(&cache, "a", 64, LENGTH).is_none());
    assert_eq!(get(&cache, "a", 70, 10), None);
    assert!(get(&cache, "b", 64, LENGTH) == Some(content(4, 0, LENGTH)));
}

#[test]
fn after_a_failure_nothing_is_written_for_a_while_and_reading_goes_on() {
    let (_folder, dir) = place();
    let cache = open(&dir);
    put(&cache, "a", 0, &content(1, 0, 1000));
    // a file where the folder should be
    let range = StoredRange { object: object("b").digest, offset: 0, length: 1000 };
    let in_the_way = dir.join(range.path()).parent().unwrap().to_owned();
    fs::write(&in_the_way, "").unwrap();
    put(&cache, "b", 0, &content(2, 0, 1000));
    assert_eq!((cache.statistics().dropped, cache.statistics().files), (1, 1));
    fs::remove_file(&in_the_way).unwrap();
    for n in 0..10 {
        put(&cache, "b", n * 1000, &content(2, n * 1000, 1000));
    }
    assert_eq!((cache.statistics().dropped, cache.statistics().files), (11, 1));
    assert_eq!(get(&cache, "a", 0, 1000), Some(content(1, 0, 1000)));
    assert_eq!(get(&cache, "b", 0, 1000), None);
    let own = fs::read_dir(dir.join("writers")).unwrap().next().unwrap().unwrap().path();
    assert_eq!(fs::read_dir(own).unwrap().count(), 0, "what could not be placed is gone");
}

// --- folders ---

#[test]
fn a_folder_with_other_files_is_refused() {
    let (_folder, dir) = place();
    fs::create_dir(&dir).unwrap();
    fs::write(dir.join("thesis.txt"), "years").unwrap();
    let refused = DiskCache::open(&dir, BUDGET);
    assert!(matches!(refused, Err(DiskCacheError::ForeignFiles { ref name, .. }) if name == "thesis.txt"));
    assert!(refused.err().unwrap().to_string().contains("give an empty folder"));
    assert_eq!(fs::read_dir(&dir).unwrap().count(), 1, "nothing was made in it");
    assert!(matches!(clear(&dir), Err(DiskCacheError::NoCache(_))));
    assert!(matches!(inspect(&dir, false, |_| true), Err(DiskCacheError::NoCache(_))));
    // the cache of another program
    fs::remove_file(dir.join("thesis.txt")).unwrap();
    fs::write(dir.join("CACHEDIR.TAG"), "Signature: 8a477f597d28d172789f06886806bc55\n").unwrap();
    assert!(matches!(DiskCache::open(&dir, BUDGET), Err(DiskCacheError::ForeignFiles { .. })));
    assert!(matches!(clear(&dir), Err(DiskCacheError::NoCache(_))));
    // an empty one, as that of a disk of its own
    fs::remove_file(dir.join("CACHEDIR.TAG")).unwrap();
    fs::create_dir(dir.join("lost+found")).unwrap();
    drop(open(&dir));
    // and once it is a cache, other files may come: they stay
    fs::write(dir.join("thesis.txt"), "years").unwrap();
    drop(open(&dir));
    assert_eq!(clear(&dir).unwrap(), Cleared::default());
    assert!(dir.join("thesis.txt").exists());
}

#[test]
fn the_cache_of_another_version_is_one_of_ours() {
    let (_folder, dir) = place();
    let cache = open(&dir);
    put(&cache, "a", 0, &[1; 100]);
    drop(cache);
    let tag = "Signature: 8a477f597d28d172789f06886806bc55\n# A disk cache of volfs; `volfs cache DIR` tells more\n";
    fs::write(dir.join("CACHEDIR.TAG"), tag).unwrap();
    let reopened = open(&dir);
    wait_until_scanned(&reopened);
    assert_eq!(get(&reopened, "a", 0, 100), Some(vec![1; 100]));
    assert_eq!(fs::read_to_string(dir.join("CACHEDIR.TAG")).unwrap(), tag);
    assert!(clear(&dir).is_ok());
}

#[test]
fn others_may_not_read_it_nor_write_to_it() {
    let (_folder, dir) = place();
    let cache = open(&dir);
    put(&cache, "a", 0, &[1; 100]);
    let mode = |path: &Path| fs::metadata(path).unwrap().mode() & 0o777;
    let file = only_file(&dir);
    let own = fs::read_dir(dir.join("writers")).unwrap().next().unwrap().unwrap().path();
    let modes = [&dir, file.parent().unwrap(), &file, &dir.join("writers"), &own].map(mode);
    assert_eq!(modes, [0o700, 0o700, 0o600, 0o700, 0o700]);
    drop(cache);
    fs::set_permissions(&dir, fs::Permissions::from_mode(0o770)).unwrap();
    assert!(matches!(DiskCache::open(&dir, BUDGET), Err(DiskCacheError::WritableByOthers(_))));
}

#[test]
fn what_killed_processes_left_is_removed_and_what_others_write_is_not() {
    let (_folder, dir) = place();
    drop(open(&dir));
    let (dead, alive) = (dir.join("writers/1-dead"), dir.join("writers/1-alive"));
    for folder in [&dead, &alive] {
        fs::create_dir(folder).unwrap();
        fs::write(folder.join("0"), "half a file").unwrap();
    }
    let lock = fs::File::open(&alive).unwrap();
    flock(&lock, FlockOperation::LockExclusive).unwrap();
    let cache = open(&dir);
    assert_eq!((dead.exists(), alive.join("0").exists()), (false, true));
    drop(cache);
    drop(lock);
    assert_eq!(clear(&dir).unwrap().files, 0);
    assert!(!alive.exists());
}

#[test]
fn a_survey_tells_what_is_of_which_dataset() {
    let (_folder, dir) = place();
    let cache = open(&dir);
    put(&cache, "a", 0, &[1; 100]);
    put(&cache, "b", 0, &[1; 100_000]);
    cache.put(&CacheKey::new("s3://other", "south.vds", "", "7"), 0, vec![1; 5000]);
    drop(cache);
    let survey = inspect(&dir, true, |_| true).unwrap();
    let found: Vec<(&str, &str, u64)> =
        survey.datasets.iter().map(|((store, name), kept)| (store.as_str(), name.as_str(), kept.files)).collect();
    assert_eq!(found, [("s3://bucket", "survey", 2), ("s3://other", "south.vds", 1)]);
    let total = survey.total();
    let sizes: u64 = files(&dir).iter().map(|file| fs::metadata(file).unwrap().len()).sum();
    assert_eq!((total.files, total.bytes, survey.bad.files, survey.foreign), (3, sizes, 0, 0));
    assert!(total.oldest.unwrap() <= total.newest.unwrap());
    // damage that only checksums show, and damage that the size shows
    let [first, second] = [0, 1].map(|n| files(&dir)[n].clone());
    let mut bytes = fs::read(&first).unwrap();
    *bytes.last_mut().unwrap() ^= 1;
    fs::write(&first, bytes).unwrap();
    fs::write(&second, "short").unwrap();
    let notes = first.parent().unwrap().join("notes.txt");
    fs::write(&notes, "not ours").unwrap();
    symlink(&notes, dir.join("fff")).unwrap();
    let bad = |check| inspect(&dir, check, |_| true).map(|survey| (survey.bad.files, survey.foreign)).unwrap();
    assert_eq!((bad(false), bad(true)), ((1, 1), (2, 1)));
    let cleared = clear(&dir).unwrap();
    assert_eq!((cleared.files, cleared.foreign), (3, 1));
    assert!(notes.exists());
    assert_eq!(inspect(&dir, false, |_| true).unwrap().total().files, 0);
    drop(open(&dir));
}

// --- several processes ---

#[test]
fn what_one_writes_the_other_reads() {
    let (_folder, dir) = place();
    let (one, other) = (open(&dir), open(&dir));
    thread::sleep(Duration::from_millis(20));
    for n in 0..20 {
        let offset = n * 100_000;
        put(&one, "a", offset, &content(1, offset, 100_000));
        assert!(get(&other, "a", offset + 70_000, 10) == Some(content(1, offset + 70_000, 10)), "a part, {n}");
        put(&other, "b", offset, &content(2, offset, 1000));
        assert!(get(&one, "b", offset, 1000) == Some(content(2, offset, 1000)), "all, {n}");
    }
    assert!(get(&other, "a", 0, 2_000_000) == Some(content(1, 0, 2_000_000)));
    // and one may be emptied under the hands of the others
    assert_eq!(clear(&dir).unwrap().files, 40);
    for (cache, offset) in [(&one, 0), (&other, 100_000)] {
        assert!(get(cache, "a", offset, 100_000).is_none());
        put(cache, "a", offset, &content(1, offset, 100_000));
        assert!(get(cache, "a", offset, 100_000) == Some(content(1, offset, 100_000)));
    }
}

#[test]
fn the_budget_holds_for_all_together() {
    let (_folder, dir) = place();
    let budget = 4 << 20;
    let caches: Vec<_> = (0..3).map(|_| Arc::new(DiskCache::open(&dir, budget).unwrap())).collect();
    let writers: Vec<_> = caches
        .iter()
        .zip(0_u64..)
        .map(|(cache, number)| {
            let cache = Arc::clone(cache);
            thread::spawn(move || {
                for n in 0..100 {
                    put(&cache, &format!("{number}/{n}"), 0, &content(number, n, 20_000));
                }
            })
        })
        .collect();
    let mut most = 0;
    while writers.iter().any(|writer| !writer.is_finished()) {
        // files that go while they are counted are of the past
        let sizes = files_that_are_there(&dir);
        most = most.max(sizes);
    }
    writers.into_iter().for_each(|writer| writer.join().unwrap());
    assert!(most <= budget && most > budget / 2, "{most} of {budget}");
    assert!(caches.iter().all(|cache| cache.statistics().dropped == 0));
}

fn files_that_are_there(dir: &Path) -> u64 {
    let folders =
        fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path()).filter(|path| !path.ends_with("writers"));
    let files = folders.filter_map(|folder| fs::read_dir(folder).ok()).flatten().flatten();
    files.filter_map(|file| Some(file.metadata().ok()?.len())).sum()
}

// --- a model ---

#[derive(Clone, Debug)]
enum Step {
    Put {
        object: u64,
        at: Range<u64>,
    },
    Get {
        object: u64,
        at: Range<u64>,
    },
    /// Damages a file: which one, and at which byte.
    Damage {
        file: usize,
        byte: usize,
    },
    Reopen,
}

const OBJECTS: u64 = 3;

fn range() -> impl Strategy<Value = Range<u64>> {
    // near the edge of a region of 64 MiB, in pieces of very different sizes
    let start = (1_u64 << 26) - 150_000;
    (0_u64..300_000, prop_oneof![1_u64..100, 1_u64..140_000]).prop_map(move |(at, size)| start + at..start + at + size)
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => (0..OBJECTS, range()).prop_map(|(object, at)| Step::Put { object, at }),
        12 => (0..OBJECTS, range()).prop_map(|(object, at)| Step::Get { object, at }),
        1 => (any::<usize>(), any::<usize>()).prop_map(|(file, byte)| Step::Damage { file, byte }),
        1 => Just(Step::Reopen),
    ]
}

fn version(number: u64) -> CacheKey {
    // the same object in versions that differ
    CacheKey::new("s3://bucket", "survey", "object", &number.to_string())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn a_hit_is_always_right(steps in proptest::collection::vec(step(), 1..60), small in any::<bool>()) {
        let (_folder, dir) = place();
        let budget = if small { 3 << 20 } else { BUDGET };
        let mut cache = DiskCache::open(&dir, budget).unwrap();
        let mut puts: Vec<(u64, Range<u64>)> = Vec::new();
        let mut may_lack = small;
        for step in steps {
            match step {
                Step::Put { object, at } => {
                    cache.put(&version(object), at.start, content(object, at.start, (at.end - at.start) as usize));
                    assert!(cache.wait_until_written(Duration::from_secs(30)));
                    puts.push((object, at));
                }
                Step::Get { object, at } => {
                    let mut out = vec![0; (at.end - at.start) as usize];
                    let hit = cache.get(&version(object), at.start, &mut out);
                    prop_assert!(!hit || out == content(object, at.start, out.len()), "wrong bytes");
                    let has = |byte: u64| puts.iter().any(|(of, range)| *of == object && range.contains(&byte));
                    let all = at.clone().all(has);
                    prop_assert!(!hit || all, "bytes that were never put");
                    // a range within a single one is always found
                    let one = puts.iter().any(|(of, range)| *of == object && range.start <= at.start && at.end <= range.end);
                    prop_assert!(hit || !one || may_lack, "{at:?} is there, and is not found");
                }
                Step::Damage { file, byte } => {
                    let files = files(&dir);
                    if !files.is_empty() {
                        let path = &files[file % files.len()];
                        let mut bytes = fs::read(path).unwrap();
                        let at = byte % bytes.len();
                        bytes[at] ^= 1;
                        fs::write(path, bytes).unwrap();
                        may_lack = true;
                    }
                }
                Step::Reopen => {
                    drop(cache);
                    cache = DiskCache::open(&dir, budget).unwrap();
                }
            }
        }
        prop_assert!(cache.statistics().bytes <= budget);
    }
}
