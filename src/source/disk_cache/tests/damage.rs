//! Files that are not as they should be are misses, and are removed.

use std::os::unix::fs::symlink;

use super::super::stored_range::{BLOCK, StoredRange};
use super::*;

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
    let range = StoredRange { object: object("b").digest(), offset: 0, length: 1000 };
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
