//! ZGY bricks that cannot be decoded: EIO for reads that touch them, and for no others.

use std::fs::{self, File};

use crate::support::{Fixture, Mount, damaged, fixture, is_eio, json, numbers, read_at, source_with, test_data};

/// Returns every row of samples (along the fastest axis, within one brick): its offset and length in bytes, its brick.
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

/// The reads bypass the page cache, in which the kernel would merge reads of neighbouring rows.
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
fn damaged_bricks_are_counted_in_the_description() {
    let Some(mount) = Mount::of(test_data("zgy")) else { return };
    for name in ["bad_entry_past_end.zgy", "bad_entry_top_byte.zgy", "bad_cut_in_brick.zgy"] {
        let described = json(mount.data(name, "lod0.json"));
        assert_eq!(described["bricks"]["total"], 3, "{name}");
        assert_eq!(described["zgy"]["damaged"], 1, "{name}: {described}");
    }
}
