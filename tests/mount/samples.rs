//! The samples: a mount gives the same ones as the reference library, in every order of axes, and EIO for those that
//! cannot be decoded, and for no others.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::support::{
    Fixture, Mount, Noise, Npy, crc, damaged, fixture, fixtures, is_eio, json, numbers, python_with_numpy, read_at,
    source_with, test_data, text, wkw_expected,
};

#[test]
fn every_level_has_the_samples_that_the_reference_reads() {
    let Some(mount) = Mount::of(test_data("zgy")) else { return };
    for fixture in fixtures() {
        let file = |name: String| mount.data(&fixture.name, &name);
        for (lod, level) in fixture.levels().iter().enumerate() {
            let place = format!("{} LOD {lod}", fixture.name);
            let samples = fs::read(file(format!("lod{lod}.raw"))).unwrap_or_else(|error| panic!("{place}: {error}"));
            let shape = numbers(&level["shape"]);
            assert_eq!(samples.len() as u64, shape.iter().product::<u64>() * fixture.sample_bytes(), "{place}");
            if let Some(expected) = fixture.samples(lod) {
                let differ = samples.iter().zip(&expected).position(|(a, b)| a != b);
                assert_eq!(differ, None, "{place}: first byte that differs");
            }
            assert_eq!(crc(&samples), level["crc32"], "{place}");
            let npy = Npy::parse(&fs::read(file(format!("lod{lod}.npy"))).unwrap());
            let expected = Npy { descr: fixture.descr(), fortran_order: false, shape, samples };
            assert!(npy == expected, "{place}: {} {:?}", npy.descr, npy.shape);
        }
        // levels without data are not shown
        let levels = fixture.expected["nlods_usable"].as_u64().unwrap();
        let is_shown = |lod: u64| file(format!("lod{lod}.raw")).exists();
        assert!(is_shown(levels - 1) && !is_shown(levels), "{}", fixture.name);
    }
}

#[test]
fn float32_npy_has_the_scaled_values() {
    let Some(mount) = Mount::of(test_data("zgy")) else { return };
    for fixture in fixtures() {
        let path = mount.data(&fixture.name, "lod0.float32.npy");
        let Some(expected) = fixture.expected["float32_lod0_crc32"].as_str() else {
            assert_eq!(fixture.dtype(), "float32");
            assert!(!path.exists(), "{}: its samples are values already", fixture.name);
            continue;
        };
        let npy = Npy::parse(&fs::read(path).unwrap());
        assert_eq!((npy.descr.as_str(), npy.shape), ("<f4", fixture.shape()), "{}", fixture.name);
        assert_eq!(crc(&npy.samples), expected, "{}", fixture.name);
    }
    let fixture = fixture("v3_int16.zgy");
    let scaling = &fixture.expected["storage_to_float"];
    let (slope, intercept) = (scaling["slope"].as_f64().unwrap(), scaling["intercept"].as_f64().unwrap());
    for lod in 0..fixture.levels().len() {
        let npy = Npy::parse(&fs::read(mount.data(&fixture.name, &format!("lod{lod}.float32.npy"))).unwrap());
        let stored = fixture.samples(lod).unwrap();
        let values = stored.as_chunks().0.iter().map(|b| f64::from(i16::from_le_bytes(*b)) * slope + intercept);
        assert!(npy.samples == values.flat_map(|v| (v as f32).to_le_bytes()).collect::<Vec<_>>(), "LOD {lod}");
    }
}

#[test]
fn sizes_are_exact() {
    let Some(mount) = Mount::of(test_data("zgy")) else { return };
    for name in ["v3_int16.zgy", "v4_mixed.zgy", "v3_size_1x1x1.zgy", "v1_int8.zgy"] {
        for entry in fs::read_dir(mount.path(name).join("data")).unwrap() {
            let path = entry.unwrap().path();
            let attributes = fs::metadata(&path).unwrap();
            if attributes.is_dir() {
                continue;
            }
            let read = fs::read(&path).unwrap().len() as u64;
            assert_eq!(attributes.size(), read, "{}", path.display());
            assert_eq!(attributes.blksize(), 4096, "{}", path.display());
            assert_eq!(attributes.blocks(), read.div_ceil(512), "{}", path.display());
        }
        let described = json(mount.data(name, "lod0.json"));
        assert_eq!(described["size"], mount.data(name, "lod0.raw").metadata().unwrap().len());
    }
}

/// Reads parts of the files in random order, and compares them with the whole.
fn check_parts(mount: &Mount, seed: u64) {
    let mut noise = Noise::seeded(seed);
    for name in OF_EACH_KIND {
        let fixture = fixture(name);
        let (samples, shape, size) = (fixture.samples(0).unwrap(), fixture.shape(), fixture.sample_bytes() as usize);
        let [by_crossline, by_sample] = [1, 2].map(|axis| moved(&samples, &shape, axis, size));
        for (file, whole) in [
            ("lod0.raw", &samples),
            ("lod0.npy", &samples),
            ("lod0.by-crossline.npy", &by_crossline),
            ("lod0.by-sample.npy", &by_sample),
        ] {
            let open = File::open(mount.data(name, file)).unwrap();
            let header = open.metadata().unwrap().len() - whole.len() as u64;
            for _ in 0..40 {
                let from = noise.below(whole.len());
                let longest = [whole.len(), 5000, 300, 300][noise.below(4)];
                let length = 1 + noise.below((whole.len() - from).min(longest));
                let found = read_at(&open, header + from as u64, length).unwrap();
                assert!(found == whole[from..from + length], "{name} {file}: {length} bytes at {from}");
            }
        }
    }
}

const OF_EACH_KIND: [&str; 7] = [
    "v2_int16.zgy",
    "v3_brick_4x8x16.zgy",
    "v3_entries_float32.zgy",
    "v3_float32.zgy",
    "v3_int8.zgy",
    "v4_mixed.zgy",
    "v4_zfp_snr30.zgy",
];

#[test]
fn unaligned_reads_are_slices_of_the_whole() {
    let caches: [&[&str]; 3] = [&[], &["--direct-io"], &["--direct-io", "--cache-size", "4KiB"]];
    for (seed, arguments) in (1..).zip(caches) {
        let Some(mount) = Mount::with(test_data("zgy"), arguments) else { return };
        check_parts(&mount, seed);
    }
}

#[test]
fn many_threads_read_at_once() {
    let Some(mount) = Mount::with(test_data("zgy"), &["--direct-io", "--cache-size", "64KiB"]) else { return };
    std::thread::scope(|scope| {
        for seed in 10..18 {
            let mount = &mount;
            scope.spawn(move || check_parts(mount, seed));
        }
    });
}

/// Files that are made of samples in other ways, read past the page cache.
#[test]
fn parts_of_every_kind_of_file_are_those_of_the_whole() {
    let Some(mount) = Mount::with(test_data("demo"), &["--direct-io", "--cache-size", "64KiB"]) else { return };
    let mut noise = Noise::seeded(5);
    for name in [
        "data/tiff/lod1.tif",
        "data/lod0.sgy",
        "data/preview.png",
        "data/lod0.slices/inline/127.png",
        "data/lod0.slices/crossline/0.png",
        "data/lod0.slices/sample/77.png",
        "data.ome.zarr/0/c/1/1/2",
        "data.zarr/lod1/image/c/0/0/0",
    ] {
        let path = mount.path("north.zgy").join(name);
        // parts are read first, so that the file is not read from its front
        let file = File::open(&path).unwrap();
        let size = file.metadata().unwrap().len() as usize;
        let mut part = || {
            let from = noise.below(size);
            let longest = [9000, 200_000][noise.below(2)];
            from..(from + 1 + noise.below(longest)).min(size)
        };
        let edges = [0, 1, 4093, 4096, size - 20].map(|from| from..(from + 300).min(size));
        let ranges: Vec<_> = (0..20).map(|_| part()).collect::<Vec<_>>().into_iter().chain(edges).collect();
        let parts: Vec<_> = ranges.iter().rev().map(|r| read_at(&file, r.start as u64, r.len()).unwrap()).collect();
        let whole = fs::read(&path).unwrap();
        assert_eq!(whole.len(), size, "{name}");
        assert_eq!(FileExt::read_at(&file, &mut [0; 100], size as u64 - 7).unwrap(), 7, "{name}: past the end");
        for (range, part) in ranges.into_iter().rev().zip(parts) {
            assert!(part == whole[range.clone()], "{name} {range:?}");
        }
    }
}

#[test]
fn reads_at_and_past_the_end_are_short() {
    let Some(mount) = Mount::of(test_data("zgy")) else { return };
    let samples = fixture("v3_int8.zgy").samples(0).unwrap();
    let file = File::open(mount.data("v3_int8.zgy", "lod0.raw")).unwrap();
    let mut buffer = [0; 100];
    let end = samples.len() as u64;
    assert_eq!(FileExt::read_at(&file, &mut buffer, end - 7).unwrap(), 7);
    assert_eq!(buffer[..7], samples[samples.len() - 7..]);
    assert_eq!(FileExt::read_at(&file, &mut buffer, end).unwrap(), 0);
    assert_eq!(FileExt::read_at(&file, &mut buffer, end + 1000).unwrap(), 0);
}

#[test]
fn dd_reads_an_inline() {
    let Some(mount) = Mount::of(test_data("zgy")) else { return };
    let fixture = fixture("v4_mixed.zgy");
    let described = json(mount.data(&fixture.name, "lod0.json"));
    let inline = numbers(&described["strides"])[0] as usize;
    let output = Command::new("dd")
        .arg(format!("if={}", mount.data(&fixture.name, "lod0.raw").display()))
        .args([&format!("bs={inline}"), "skip=17", "count=1", "status=none"])
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert!(output.stdout == fixture.samples(0).unwrap()[17 * inline..18 * inline]);
}

#[test]
fn a_second_read_is_answered_by_the_page_cache() {
    let Some(mount) = Mount::of(test_data("zgy")) else { return };
    let path = mount.data("v4_mixed.zgy", "lod0.raw");
    let first = fs::read(&path).unwrap();
    let reads = mount.counter("bytes_read");
    assert!(fs::read(&path).unwrap() == first);
    let small = 64 << 10; // status.json itself was read
    assert!(mount.counter("bytes_read") - reads < small, "the pages of an unchanged file are kept across opens");
}

const NUMPY_TEST: &str = r#"
import sys
import numpy as np

mount, data, *names = sys.argv[1:]
for name in names:
    got = np.load(f"{mount}/{name}.zgy/data/lod0.npy", mmap_mode="r")
    want = np.load(f"{data}/{name}.lod0.npy")
    assert got.dtype == want.dtype and got.shape == want.shape, name
    i, j, k = (n // 2 for n in got.shape)
    for at in (np.s_[i], np.s_[:, j], np.s_[:, :, k], np.s_[i, j], np.s_[1:i, ::2, -3:], np.s_[...]):
        assert np.array_equal(got[at], want[at], equal_nan=want.dtype.kind == "f"), (name, at)
    for axis, by in ((1, "crossline"), (2, "sample")):
        moved = np.load(f"{mount}/{name}.zgy/data/lod0.by-{by}.npy", mmap_mode="r")
        assert moved.shape == np.moveaxis(want, axis, 0).shape and moved.dtype == want.dtype, (name, by)
        middle = moved.shape[0] // 2
        assert moved[middle].tobytes() == np.take(want, middle, axis).tobytes(), (name, by)
        assert np.moveaxis(moved, 0, axis).tobytes() == want.tobytes(), (name, by)
    raw = np.fromfile(f"{mount}/{name}.zgy/data/lod0.raw", dtype=want.dtype).reshape(want.shape)
    assert raw.tobytes() == want.tobytes(), name
print("equal")
"#;

#[test]
fn numpy_maps_an_array_and_slices_it() {
    let Some(mount) = Mount::of(test_data("zgy")) else { return };
    let names = OF_EACH_KIND.map(|name| name.trim_end_matches(".zgy").into());
    let arguments = [mount.point().into(), test_data("zgy")].into_iter().chain(names);
    let Some(output) = python_with_numpy(NUMPY_TEST, arguments) else { return };
    assert_eq!(text(&output.stdout), "equal\n", "{}", text(&output.stderr));
}

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

/// Moves `axis` to the front of an array of samples of `size` bytes in C order, sample by sample.
fn moved(samples: &[u8], shape: &[u64], axis: usize, size: usize) -> Vec<u8> {
    let order: Vec<usize> = std::iter::once(axis).chain((0..shape.len()).filter(|a| *a != axis)).collect();
    let stride = |axis: usize| shape[axis + 1..].iter().product::<u64>();
    let mut out = Vec::with_capacity(samples.len());
    let mut index = vec![0; shape.len()];
    for _ in 0..shape.iter().product() {
        let at = order.iter().zip(&index).map(|(axis, at)| at * stride(*axis)).sum::<u64>() as usize * size;
        out.extend_from_slice(&samples[at..at + size]);
        for (place, axis) in order.iter().enumerate().rev() {
            index[place] += 1;
            if index[place] < shape[*axis] {
                break;
            }
            index[place] = 0;
        }
    }
    out
}

fn moved_shape(shape: &[u64], axis: usize) -> Vec<u64> {
    let mut shape = shape.to_vec();
    let first = shape.remove(axis);
    shape.insert(0, first);
    shape
}

/// Returns the permuted files of a level with the number of the axis that comes first, by the names of the axes.
fn permuted_files(folder: &Path, lod: usize) -> Vec<(usize, PathBuf)> {
    let described = json(folder.join(format!("lod{lod}.json")));
    let axes = described["axes"].as_array().unwrap().iter().enumerate().skip(1);
    axes.map(|(n, axis)| (n, folder.join(format!("lod{lod}.by-{}.npy", axis["name"].as_str().unwrap())))).collect()
}

fn sample_bytes(npy: &Npy) -> usize {
    npy.descr[2..].parse().unwrap()
}

/// Compares all permuted files of a level with the stored array, and returns their number.
fn check_level(folder: &Path, lod: usize) -> usize {
    let straight = Npy::parse(&fs::read(folder.join(format!("lod{lod}.npy"))).unwrap());
    let files = permuted_files(folder, lod);
    for (axis, path) in &files {
        let bytes = fs::read(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        assert_eq!(fs::metadata(path).unwrap().size(), bytes.len() as u64, "{}", path.display());
        let expected = Npy {
            descr: straight.descr.clone(),
            fortran_order: false,
            shape: moved_shape(&straight.shape, *axis),
            samples: moved(&straight.samples, &straight.shape, *axis, sample_bytes(&straight)),
        };
        let found = Npy::parse(&bytes);
        assert!(found == expected, "{}: {} {:?}", path.display(), found.descr, found.shape);
    }
    files.len()
}

#[test]
fn every_permuted_file_is_the_array_with_its_axes_moved() {
    let Some(mount) = Mount::of(test_data("")) else { return };
    for fixture in fixtures() {
        for lod in 0..fixture.levels().len() {
            assert_eq!(check_level(&mount.path("zgy").join(&fixture.name).join("data"), lod), 2, "{}", fixture.name);
        }
    }
    let mut counts = BTreeSet::new();
    for array in wkw_expected("arrays") {
        let text = |key: &str| array[key].as_str().unwrap();
        let folder = mount.path("wkw").join(text("dataset")).join(text("layer"));
        counts.insert(check_level(&folder, array["lod"].as_u64().unwrap() as usize));
    }
    assert_eq!(counts, BTreeSet::from([2, 3]), "the channels are an axis too");
    assert!(mount.path("wkw/pyramid/rgb/lod0.by-channel.npy").exists());
}

#[test]
fn every_axis_but_the_first_has_a_permuted_file() {
    let Some(mount) = Mount::of(test_data("zgy")) else { return };
    // axes of length 1 are axes like any other
    for name in ["v3_size_1x1x1.zgy", "v3_int16.zgy"] {
        for (file, there) in [("crossline", true), ("sample", true), ("inline", false), ("axis1", false), ("", false)] {
            assert_eq!(mount.data(name, &format!("lod0.by-{file}.npy")).exists(), there, "{name} {file}");
        }
        assert!(!mount.data(name, "lod9.by-sample.npy").exists());
        assert!(!mount.data(name, "lod0.by-sample.raw").exists());
    }
    let file = mount.data("v3_int16.zgy", "lod1.by-sample.npy");
    let shape = numbers(&json(mount.data("v3_int16.zgy", "lod1.json"))["shape"]);
    let mut value = vec![0; 100];
    let length = rustix::fs::getxattr(&file, "user.volfs.shape", &mut value).unwrap();
    let expected = moved_shape(&shape, 2).iter().map(u64::to_string).collect::<Vec<_>>().join(",");
    assert_eq!(text(&value[..length]), expected);
}

#[test]
fn all_directions_decode_each_brick_once() {
    let Some(mount) = Mount::of(test_data("demo")) else { return };
    let described = json(mount.data("north.zgy", "lod0.json"));
    assert_eq!(described["codec"], "zfp");
    for file in ["lod0.raw", "lod0.by-sample.npy", "lod0.npy", "lod0.by-crossline.npy"] {
        fs::read(mount.data("north.zgy", file)).unwrap();
        assert_eq!(mount.counter("bricks_decoded"), described["bricks"]["stored"].as_u64().unwrap(), "{file}");
    }
}

#[test]
fn a_damaged_brick_fails_the_slices_that_touch_it_and_is_logged_once() {
    let source = source_with(&["bad_zfp_cut.zgy"]);
    let Some(mount) = Mount::with(source.path(), &["--direct-io"]) else { return };
    let shape = numbers(&json(mount.data("bad_zfp_cut.zgy", "lod0.json"))["shape"]);
    for (axis, by) in [(1, "crossline"), (2, "sample")] {
        let file = File::open(mount.data("bad_zfp_cut.zgy", &format!("lod0.by-{by}.npy"))).unwrap();
        let slice = (file.metadata().unwrap().len() - 128) / shape[axis];
        for at in 0..shape[axis] {
            // brick [1, 0, 0] is damaged
            let read = read_at(&file, 128 + at * slice, slice as usize);
            assert_eq!(read.is_err(), at < 64, "slice {at} by {by}");
        }
    }
    let log = mount.log();
    let lines: Vec<_> = log.lines().filter(|line| line.contains("bad_zfp_cut.zgy")).collect();
    assert!(lines.len() == 1 && lines[0].contains("[1, 0, 0]"), "{log}");
}
