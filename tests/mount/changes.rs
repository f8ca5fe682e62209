//! ZGY files that change while they are mounted: reads give right samples or an error, never a mixture, and never a
//! crash.

use std::fs::{self, File};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use nix::errno::Errno;

use crate::support::{
    Mount, SOON, comes_true, fixture, is_eio, json, process_lives, read_at, replace, source_with, test_data,
};

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
fn truncating_under_load_gives_errors_and_no_crash() {
    let source = source_with(&["v3_float32.zgy", "v3_int16.zgy"]);
    let Some(mount) = Mount::with(source.path(), &["--direct-io", "--cache-size", "16KiB"]) else { return };
    let samples = fixture("v3_float32.zgy").samples(0).unwrap();
    let whole = fs::read(source.path().join("v3_float32.zgy")).unwrap();
    let (stop, reads) = (AtomicBool::new(false), AtomicUsize::new(0));
    let is_read_again = || {
        let before = reads.load(Ordering::Relaxed);
        comes_true(SOON, || reads.load(Ordering::Relaxed) >= before + 4)
    };
    let mut rounds = 0;
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                while !stop.load(Ordering::Relaxed) {
                    match fs::read(mount.data("v3_float32.zgy", "lod0.raw")) {
                        Ok(found) => assert!(found.len() != samples.len() || found == samples, "wrong samples"),
                        // a source that changes twice during one path lookup gives ESTALE: the kernel retries only once
                        Err(error) => assert!(
                            [Errno::EIO, Errno::ENOENT, Errno::ESTALE]
                                .map(|e| Some(e as i32))
                                .contains(&error.raw_os_error()),
                            "{error}"
                        ),
                    }
                    reads.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        let path = source.path().join("v3_float32.zgy");
        let mut goes_on = true;
        while goes_on && rounds < 30 {
            File::options().write(true).open(&path).unwrap().set_len(1000 + rounds * 7000).unwrap();
            goes_on = is_read_again();
            replace(&path, &whole);
            goes_on &= is_read_again();
            rounds += 1;
        }
        // nothing above may panic: the readers would run for ever
        stop.store(true, Ordering::Relaxed);
        assert!(goes_on, "nothing is read any more");
    });
    assert!(process_lives(mount.pid()));
    let read = || fs::read(mount.data("v3_float32.zgy", "lod0.raw"));
    assert!(comes_true(SOON, || read().is_ok_and(|found| found == samples)));
}

/// The daemon copies data that is read often, and is in the page cache, from a memory map. If the file is truncated
/// during the copy, the kernel sends SIGBUS, which ends a process that does not handle it.
#[test]
fn a_mapped_source_that_is_truncated_gives_errors_and_no_crash() {
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
        // a file is mapped only if its file system is known to be local; otherwise only the errors are tested
        let is_mapped = maps().contains(path.to_str().unwrap());
        let (cut, reads) = (AtomicBool::new(false), AtomicUsize::new(0));
        std::thread::scope(|scope| {
            for part in 0..4 {
                let (file, samples, cut, reads) = (&file, &samples, &cut, &reads);
                scope.spawn(move || {
                    let mut failures = 0;
                    while failures < 50 {
                        let was_cut = cut.load(Ordering::SeqCst);
                        let (offset, length) = (part * samples.len() / 4, samples.len() / 4);
                        match read_at(file, offset as u64, length) {
                            Ok(found) => {
                                assert!(found == samples[offset..offset + length], "wrong samples");
                                assert!(!was_cut, "samples of a file that has changed");
                                reads.fetch_add(1, Ordering::Relaxed);
                            }
                            Err(error) => {
                                assert!(is_eio(&error), "{name}: {error}");
                                failures += 1;
                            }
                        }
                    }
                });
            }
            // nothing may panic before the truncation: the readers would run for ever
            let are_reading = comes_true(SOON, || reads.load(Ordering::Relaxed) >= 100);
            File::options().write(true).open(&path).unwrap().set_len(4096).unwrap();
            cut.store(true, Ordering::SeqCst);
            assert!(are_reading, "nothing is read");
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

/// Returns two files of one size and shape but with different samples, each followed by its samples.
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

    replace(&source.path().join("v3_int16.zgy"), new_file);
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
    replace(&source.path().join("v3_int16.zgy"), fs::read(test_data("zgy/v4_mixed.zgy")).unwrap());
    let expected = fixture("v4_mixed.zgy").samples(0).unwrap();
    let path = mount.data("v3_int16.zgy", "lod0.raw");
    assert!(comes_true(SOON, || fs::read(&path).is_ok_and(|found| found == expected)));
    assert_eq!(fs::metadata(&path).unwrap().len(), expected.len() as u64);
    assert_eq!(json(mount.data("v3_int16.zgy", "lod0.json"))["dtype"], "float32");
    assert!(comes_true(SOON, || !mount.data("v3_int16.zgy", "lod0.float32.npy").exists()));
}

#[test]
fn a_repaired_file_opens() {
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
fn a_removed_source_gives_errors_only_for_itself() {
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
