//! Bricks that cannot be decoded, and sources that change under the mount: an error or the truth, never a crash.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod support;

use std::fs::{self, File};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use nix::errno::Errno;
use support::{
    Fixture, Mount, comes_true, damaged, fixture, json, numbers, process_lives, read_at, source_with, test_data,
};

/// A second, and a lot for a busy machine.
const SOON: Duration = Duration::from_secs(10);

fn is_eio(error: &std::io::Error) -> bool {
    error.raw_os_error() == Some(Errno::EIO as i32)
}

/// Every row of samples (along the fastest axis, within one brick): its offset in bytes, its length, its brick.
fn rows(fixture: &Fixture) -> Vec<(u64, usize, [u64; 3])> {
    let shape = fixture.shape();
    let brick = numbers(&fixture.expected["bricksize"]);
    let bytes = fixture.sample_bytes();
    let mut rows = Vec::new();
    for i in 0..shape[0] {
        for j in 0..shape[1] {
            for k in (0..shape[2]).step_by(brick[2] as usize) {
                let samples = brick[2].min(shape[2] - k);
                let offset = ((i * shape[1] + j) * shape[2] + k) * bytes;
                rows.push((offset, (samples * bytes) as usize, [i / brick[0], j / brick[1], k / brick[2]]));
            }
        }
    }
    rows
}

/// The folder is read without the page cache, in which the kernel would join neighbouring rows.
#[test]
fn only_damaged_bricks_cannot_be_read() {
    let Some(mount) = Mount::with(test_data("zgy"), &["--direct-io"]) else { return };
    for fixture in damaged("read") {
        let bad: Vec<_> = fixture.expected["damaged_bricks"].as_array().unwrap().iter().collect();
        let is_bad = |brick: [u64; 3]| bad.iter().any(|b| numbers(&b["brick"]) == brick);
        let samples = fixture.samples(0).unwrap();
        let file = File::open(mount.data(&fixture.name, "lod0.raw")).unwrap();
        for (offset, length, brick) in rows(&fixture) {
            let found = read_at(&file, offset, length);
            let place = format!("{} brick {brick:?}, {length} bytes at {offset}", fixture.name);
            if is_bad(brick) {
                let error = found.expect_err(&place);
                assert!(is_eio(&error), "{place}: {error}");
            } else {
                let found = found.unwrap_or_else(|error| panic!("{place}: {error}"));
                assert!(found == samples[offset as usize..offset as usize + length], "{place}");
            }
        }
    }
}

#[test]
fn damaged_bricks_do_not_spoil_the_page_cache() {
    let Some(mount) = Mount::of(test_data("zgy")) else { return };
    for fixture in damaged("read") {
        let path = mount.data(&fixture.name, "lod0.raw");
        assert!(is_eio(&fs::read(&path).unwrap_err()), "{}", fixture.name);
        assert!(is_eio(&fs::read(&path).unwrap_err()), "{}, the second time", fixture.name);
    }
    let good = fixture("v3_int8.zgy");
    assert!(fs::read(mount.data(&good.name, "lod0.raw")).unwrap() == good.samples(0).unwrap());
}

#[test]
fn a_damaged_brick_is_logged_and_counted() {
    let source = source_with(&["bad_zfp_cut.zgy"]);
    let Some(mount) = Mount::of(source.path()) else { return };
    assert_eq!(mount.counter("errors"), 0);
    fs::read(mount.data("bad_zfp_cut.zgy", "lod0.raw")).unwrap_err();
    assert!(mount.counter("errors") >= 1);
    let log = mount.log();
    let line = log.lines().find(|line| line.contains("bad_zfp_cut.zgy")).unwrap_or_else(|| panic!("{log}"));
    assert!(line.contains("data") && line.contains("[1, 0, 0]"), "no layer or brick in: {line}");
}

#[test]
fn damaged_bricks_are_part_of_the_description() {
    let Some(mount) = Mount::of(test_data("zgy")) else { return };
    for name in ["bad_entry_past_end.zgy", "bad_entry_top_byte.zgy", "bad_cut_in_brick.zgy"] {
        let described = json(mount.data(name, "lod0.json"));
        assert_eq!(described["bricks"]["total"], 3, "{name}");
        assert_eq!(described["zgy"]["damaged"], 1, "{name}: {described}");
    }
}

#[test]
fn a_truncated_source_gives_errors_and_no_crash() {
    for name in ["v3_int8.zgy", "v3_float32.zgy", "v4_mixed.zgy"] {
        let source = source_with(&[name, "v3_int16.zgy"]);
        let Some(mount) = Mount::with(source.path(), &["--direct-io"]) else { return };
        let samples = fixture(name).samples(0).unwrap();
        let file = File::open(mount.data(name, "lod0.raw")).unwrap();
        assert!(read_at(&file, 0, 1000).unwrap() == samples[..1000]);
        File::options().write(true).open(source.path().join(name)).unwrap().set_len(4096).unwrap();
        for offset in (0..samples.len() - 1000).step_by(997) {
            match read_at(&file, offset as u64, 1000) {
                Ok(found) => assert!(found == samples[offset..offset + 1000], "{name}: wrong samples at {offset}"),
                Err(error) => assert!(is_eio(&error), "{name}: {error}"),
            }
        }
        assert!(process_lives(mount.pid()));
        let good = fixture("v3_int16.zgy");
        assert!(fs::read(mount.data(&good.name, "lod0.raw")).unwrap() == good.samples(0).unwrap());
    }
}

#[test]
fn truncating_under_load_does_no_harm() {
    let source = source_with(&["v3_float32.zgy", "v3_int16.zgy"]);
    let Some(mount) = Mount::with(source.path(), &["--direct-io", "--cache-size", "16KiB"]) else { return };
    let samples = fixture("v3_float32.zgy").samples(0).unwrap();
    let whole = fs::read(source.path().join("v3_float32.zgy")).unwrap();
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                while !stop.load(Ordering::Relaxed) {
                    match fs::read(mount.data("v3_float32.zgy", "lod0.raw")) {
                        Ok(found) => assert!(found.len() != samples.len() || found == samples, "wrong samples"),
                        // a source that changes twice while its path is walked ends in ESTALE: the kernel looks again once
                        Err(error) => assert!(
                            [Errno::EIO, Errno::ENOENT, Errno::ESTALE]
                                .map(|e| Some(e as i32))
                                .contains(&error.raw_os_error()),
                            "{error}"
                        ),
                    }
                }
            });
        }
        let path = source.path().join("v3_float32.zgy");
        for round in 0..30_u64 {
            File::options().write(true).open(&path).unwrap().set_len(1000 + round * 7000).unwrap();
            std::thread::sleep(Duration::from_millis(5));
            fs::write(source.path().join("new"), &whole).unwrap();
            fs::rename(source.path().join("new"), &path).unwrap();
            std::thread::sleep(Duration::from_millis(5));
        }
        stop.store(true, Ordering::Relaxed);
    });
    assert!(process_lives(mount.pid()));
    let read = || fs::read(mount.data("v3_float32.zgy", "lod0.raw"));
    assert!(comes_true(SOON, || read().is_ok_and(|found| found == samples)));
}

/// What is read again and again, and is in memory, the mount copies from where the kernel holds it. A file that is cut short just
/// then is the end of a process that does not expect it.
#[test]
fn a_source_that_is_cut_short_under_a_map_gives_errors_and_no_crash() {
    for name in ["v3_float32.zgy", "v3_int8.zgy"] {
        let source = source_with(&[name, "v3_int16.zgy"]);
        let path = source.path().join(name);
        let Some(mount) = Mount::with(source.path(), &["--direct-io"]) else { return };
        let samples = fixture(name).samples(0).unwrap();
        let file = File::open(mount.data(name, "lod0.raw")).unwrap();
        let maps = || fs::read_to_string(format!("/proc/{}/maps", mount.pid())).unwrap();
        for _ in 0..20 {
            assert!(read_at(&file, 0, samples.len()).unwrap() == samples);
        }
        // a file system that is not known to be local is never mapped: then there is nothing to be tested here
        let is_mapped = maps().contains(path.to_str().unwrap());
        let cut = AtomicBool::new(false);
        std::thread::scope(|scope| {
            for part in 0..4 {
                let (file, samples, cut) = (&file, &samples, &cut);
                scope.spawn(move || {
                    let mut failures = 0;
                    while failures < 50 {
                        let was_cut = cut.load(Ordering::SeqCst);
                        let (offset, length) = (part * samples.len() / 4, samples.len() / 4);
                        match read_at(file, offset as u64, length) {
                            Ok(found) => {
                                assert!(found == samples[offset..offset + length], "wrong samples");
                                assert!(!was_cut, "samples of a file that is not what it was");
                            }
                            Err(error) => {
                                assert!(is_eio(&error), "{name}: {error}");
                                failures += 1;
                            }
                        }
                    }
                });
            }
            std::thread::sleep(Duration::from_millis(50));
            File::options().write(true).open(&path).unwrap().set_len(4096).unwrap();
            cut.store(true, Ordering::SeqCst);
        });
        assert!(process_lives(mount.pid()), "{name}, mapped: {is_mapped}");
        let good = fixture("v3_int16.zgy");
        assert!(fs::read(mount.data(&good.name, "lod0.raw")).unwrap() == good.samples(0).unwrap());
        drop(file);
        fs::remove_file(&path).unwrap();
        let is_gone = || File::open(mount.data(name, "lod0.raw")).is_err() && !maps().contains(path.to_str().unwrap());
        assert!(comes_true(SOON, is_gone), "{name}: a file that is gone is still mapped");
    }
}

/// Two files of one size and shape, but of other samples.
fn two_of_one_size() -> (Vec<u8>, Vec<u8>, Vec<u8>, Vec<u8>) {
    let file = fs::read(test_data("zgy/v3_int16.zgy")).unwrap();
    let samples = fixture("v3_int16.zgy").samples(0).unwrap();
    let table_end = 16 * 16 * 16 * 2; // the first brick begins at a multiple of its size
    let mut other = file.clone();
    other[table_end..].iter_mut().for_each(|byte| *byte ^= 0xFF);
    let inverted = samples.iter().map(|byte| byte ^ 0xFF).collect();
    (file, samples, other, inverted)
}

#[test]
fn a_replaced_source_shows_its_new_content() {
    let source = source_with(&["v3_int16.zgy"]);
    let Some(mount) = Mount::of(source.path()) else { return };
    let (_, old_samples, new_file, new_samples) = two_of_one_size();
    let path = mount.data("v3_int16.zgy", "lod0.raw");
    let old = File::open(&path).unwrap();
    let old_inode = old.metadata().unwrap().ino();
    assert!(fs::read(&path).unwrap() == old_samples);

    fs::write(source.path().join("new"), new_file).unwrap();
    fs::rename(source.path().join("new"), source.path().join("v3_int16.zgy")).unwrap();
    assert!(
        comes_true(SOON, || fs::read(&path).is_ok_and(|found| found == new_samples)),
        "the new content is not shown"
    );
    assert_ne!(fs::metadata(&path).unwrap().ino(), old_inode);

    let mut found = vec![0; old_samples.len()];
    match old.read_exact_at(&mut found, 0) {
        Ok(()) => assert!(found == old_samples, "the old handle mixes old and new"),
        Err(error) => assert!(is_eio(&error), "{error}"),
    }
}

#[test]
fn a_source_overwritten_in_place_shows_its_new_content() {
    let source = source_with(&["v3_int16.zgy"]);
    let Some(mount) = Mount::of(source.path()) else { return };
    let (_, old_samples, new_file, new_samples) = two_of_one_size();
    let path = mount.data("v3_int16.zgy", "lod0.raw");
    assert!(fs::read(&path).unwrap() == old_samples);
    fs::write(source.path().join("v3_int16.zgy"), new_file).unwrap();
    assert!(
        comes_true(SOON, || fs::read(&path).is_ok_and(|found| found == new_samples)),
        "the new content is not shown"
    );
}

#[test]
fn a_replacement_of_another_shape_has_another_size() {
    let source = source_with(&["v3_int16.zgy"]);
    let Some(mount) = Mount::of(source.path()) else { return };
    assert!(mount.data("v3_int16.zgy", "lod0.float32.npy").exists());
    fs::copy(test_data("zgy/v4_mixed.zgy"), source.path().join("new")).unwrap();
    fs::rename(source.path().join("new"), source.path().join("v3_int16.zgy")).unwrap();
    let expected = fixture("v4_mixed.zgy").samples(0).unwrap();
    let path = mount.data("v3_int16.zgy", "lod0.raw");
    assert!(comes_true(SOON, || fs::read(&path).is_ok_and(|found| found == expected)));
    assert_eq!(fs::metadata(&path).unwrap().len(), expected.len() as u64);
    assert_eq!(json(mount.data("v3_int16.zgy", "lod0.json"))["dtype"], "float32");
    assert!(comes_true(SOON, || !mount.data("v3_int16.zgy", "lod0.float32.npy").exists()));
}

#[test]
fn a_file_that_is_mended_opens() {
    let source = source_with(&[]);
    let path = source.path().join("late.zgy");
    let whole = fs::read(test_data("zgy/v3_int16.zgy")).unwrap();
    fs::write(&path, &whole[..500]).unwrap();
    let Some(mount) = Mount::of(source.path()) else { return };
    assert!(fs::read_to_string(mount.path("late.zgy/error.txt")).unwrap().contains("truncated"));
    fs::write(&path, &whole).unwrap();
    let expected = fixture("v3_int16.zgy").samples(0).unwrap();
    assert!(comes_true(SOON, || fs::read(mount.data("late.zgy", "lod0.raw")).is_ok_and(|found| found == expected)));
    assert!(comes_true(SOON, || !mount.path("late.zgy/error.txt").exists()));
}

#[test]
fn a_source_that_is_gone_gives_errors_only_for_itself() {
    let source = source_with(&["v3_int8.zgy", "v3_int16.zgy"]);
    let Some(mount) = Mount::of(source.path()) else { return };
    let file = File::open(mount.data("v3_int8.zgy", "lod0.raw")).unwrap();
    fs::remove_file(source.path().join("v3_int8.zgy")).unwrap();
    assert!(comes_true(SOON, || File::open(mount.data("v3_int8.zgy", "lod0.raw")).is_err()));
    if let Err(error) = read_at(&file, 0, 10) {
        assert!(is_eio(&error), "{error}");
    }
    let good = fixture("v3_int16.zgy");
    assert!(fs::read(mount.data(&good.name, "lod0.raw")).unwrap() == good.samples(0).unwrap());
}
