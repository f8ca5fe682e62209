//! TIFF stacks of the levels of a layer.

use std::fs;
use std::os::unix::fs::FileExt;

use crate::support::{Mount, json, names, set, test_data};

/// Returns an unsigned little-endian number.
fn number(bytes: &[u8]) -> u64 {
    bytes.iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte))
}

#[test]
fn stacks_are_the_raw_samples_between_directories() {
    let Some(mount) = Mount::of(test_data("zgy")) else { return };
    // ImageJ has no int8
    for (dataset, lods, magic, directory) in [("v3_int16.zgy", 3, 42, 138), ("v3_int8.zgy", 3, 43, 236)] {
        let expected: Vec<String> = (0..lods).map(|lod| format!("lod{lod}.tif")).collect();
        assert_eq!(names(mount.data(dataset, "tiff")), set(&expected));
        for lod in 0..lods {
            let stack = fs::read(mount.data(dataset, &format!("tiff/lod{lod}.tif"))).unwrap();
            let raw = fs::read(mount.data(dataset, &format!("lod{lod}.raw"))).unwrap();
            let about = json(mount.data(dataset, &format!("lod{lod}.json")));
            let planes = about["shape"][0].as_u64().unwrap() as usize;
            assert_eq!(stack[..4], [b'I', b'I', magic, 0]);
            assert_eq!(stack[4096..4096 + raw.len()], raw);
            let behind = (4096 + raw.len()).next_multiple_of(4096);
            assert_eq!(stack.len(), behind + (planes - 1) * directory, "{dataset} {lod}");
            assert_eq!(number(&stack[stack.len() - 4..]), 0);
            let files = about["files"].as_array().unwrap();
            assert!(files.iter().any(|file| file == &format!("tiff/lod{lod}.tif")), "{about}");
        }
    }
}

#[test]
fn parts_of_a_stack_are_those_of_the_whole() {
    // past the page cache, so that the mount gets the reads as they are
    let Some(mount) = Mount::with(test_data("zgy"), &["--direct-io"]) else { return };
    let path = mount.data("v3_int16.zgy", "tiff/lod0.tif");
    let whole = fs::read(&path).unwrap();
    assert_eq!(fs::metadata(&path).unwrap().len(), whole.len() as u64);
    let samples = fs::metadata(mount.data("v3_int16.zgy", "lod0.raw")).unwrap().len() as usize;
    let tail = 4096 + samples;
    // across both edges of the samples, and in the middle of a directory
    for start in [0, 1, 4093, 4096, tail - 3, tail, tail + 1, whole.len() - 200, whole.len() - 1] {
        for count in [1, 7, 300, 70_000] {
            let mut part = vec![0; count];
            let read = fs::File::open(&path).unwrap().read_at(&mut part, start as u64).unwrap();
            assert_eq!(read, count.min(whole.len() - start), "{start} {count}");
            assert_eq!(part[..read], whole[start..start + read], "{start} {count}");
        }
    }
}
