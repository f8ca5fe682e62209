//! Several caches in one folder, as of several processes.

use std::sync::Arc;
use std::thread;

use super::super::Cleared;
use super::*;

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
    assert_eq!(Cleared::of(&dir).unwrap().files, 40);
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
