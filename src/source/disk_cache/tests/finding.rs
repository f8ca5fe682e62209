//! What is found: ranges, parts of them, and several together; the least recently used are evicted.

use std::time::{Duration, SystemTime};

use super::*;

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
    let newer = ObjectVersion::new("s3://bucket", "survey", "a", "2");
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
            files(&dir).into_iter().find(|path| path.to_string_lossy().contains(&format!("{:016x}-", name.digest())));
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
