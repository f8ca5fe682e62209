//! Files with permuted axes: the array with one axis moved to the front.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use crate::support::{
    Mount, Noise, Npy, crc, fixture, fixtures, json, numbers, python_with_numpy, read_at, source_with, test_data, text,
    wkw,
};

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
    let Some(mount) = Mount::of(test_data("zgy")) else { return };
    for fixture in fixtures() {
        for (lod, level) in fixture.levels().iter().enumerate() {
            let folder = mount.path(&fixture.name).join("data");
            assert_eq!(check_level(&folder, lod), 2, "{}", fixture.name);
            let straight = Npy::parse(&fs::read(folder.join(format!("lod{lod}.npy"))).unwrap());
            assert_eq!(crc(&straight.samples), level["crc32"], "the stored array is right");
        }
    }
}

#[test]
fn every_permuted_file_of_wkw_is_the_array_with_its_axes_moved() {
    let Some(mount) = Mount::of(test_data("wkw")) else { return };
    let mut counts = BTreeSet::new();
    for array in wkw::expected("arrays") {
        let text = |key: &str| array[key].as_str().unwrap();
        let folder = mount.path(text("dataset")).join(text("layer"));
        counts.insert(check_level(&folder, array["lod"].as_u64().unwrap() as usize));
    }
    assert_eq!(counts, BTreeSet::from([2, 3]), "the channels are an axis too");
    assert!(mount.path("pyramid/rgb/lod0.by-channel.npy").exists());
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

/// Reads parts of permuted files in random order, and compares them with the whole.
fn check_parts(mount: &Mount, seed: u64) {
    let mut noise = Noise::seeded(seed);
    for name in ["v3_float32.zgy", "v3_int8.zgy", "v4_mixed.zgy", "v4_zfp_snr30.zgy", "v3_brick_4x8x16.zgy"] {
        let fixture = fixture(name);
        let (samples, shape) = (fixture.samples(0).unwrap(), fixture.shape());
        for (axis, by) in [(1, "crossline"), (2, "sample")] {
            let whole = moved(&samples, &shape, axis, fixture.sample_bytes() as usize);
            let file = File::open(mount.data(name, &format!("lod0.by-{by}.npy"))).unwrap();
            let header = file.metadata().unwrap().len() - whole.len() as u64;
            for _ in 0..30 {
                let from = noise.below(whole.len());
                let longest = if noise.below(4) == 0 { whole.len() } else { 5000 };
                let length = 1 + noise.below((whole.len() - from).min(longest));
                let expected = &whole[from..from + length];
                let found = read_at(&file, header + from as u64, length).unwrap();
                assert!(found == expected, "{name} by {by}: {length} bytes at {from}");
            }
        }
    }
}

#[test]
fn parts_of_permuted_files_are_slices_of_the_whole() {
    let Some(mount) = Mount::with(test_data("zgy"), &["--direct-io"]) else { return };
    check_parts(&mount, 1);
}

#[test]
fn many_threads_read_permuted_files_when_nothing_fits_the_cache() {
    let Some(mount) = Mount::with(test_data("zgy"), &["--direct-io", "--cache-size", "64KiB"]) else { return };
    std::thread::scope(|scope| {
        for seed in 20..26 {
            let mount = &mount;
            scope.spawn(move || check_parts(mount, seed));
        }
    });
}

#[test]
fn all_directions_decode_each_brick_once() {
    let Some(mount) = Mount::of(test_data("demo")) else { return };
    let described = json(mount.data("north.zgy", "lod0.json"));
    for file in ["lod0.by-sample.npy", "lod0.npy", "lod0.by-crossline.npy"] {
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

const NUMPY_TEST: &str = r#"
import sys
import numpy as np

mount, data, *names = sys.argv[1:]
for name in names:
    want = np.load(f"{data}/{name}.lod0.npy")
    for axis, by in ((1, "crossline"), (2, "sample")):
        got = np.load(f"{mount}/{name}.zgy/data/lod0.by-{by}.npy", mmap_mode="r")
        assert got.shape == np.moveaxis(want, axis, 0).shape and got.dtype == want.dtype, (name, by)
        middle = got.shape[0] // 2
        assert got[middle].tobytes() == np.take(want, middle, axis).tobytes(), (name, by)
        assert np.moveaxis(got, 0, axis).tobytes() == want.tobytes(), (name, by)
print("equal")
"#;

#[test]
fn numpy_moves_the_axes_back() {
    let Some(mount) = Mount::of(test_data("zgy")) else { return };
    let names = ["v3_float32", "v3_int8", "v4_mixed", "v4_zfp_snr30"].map(PathBuf::from);
    let arguments = [mount.point().into(), test_data("zgy")].into_iter().chain(names);
    let Some(output) = python_with_numpy(NUMPY_TEST, arguments) else { return };
    assert_eq!(text(&output.stdout), "equal\n", "{}", text(&output.stderr));
}
