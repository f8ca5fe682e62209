//! The samples: a mount gives the same ones as the reference library.

use std::fs::{self, File};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::process::Command;

use crate::support::{
    Fixture, Mount, Noise, Npy, crc, fixture, fixtures, json, numbers, python_with_numpy, read_at, test_data, text,
};

/// Reads the samples of a level through the mount, from beginning to end.
fn raw(mount: &Mount, fixture: &Fixture, lod: usize) -> Vec<u8> {
    let path = mount.data(&fixture.name, &format!("lod{lod}.raw"));
    fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

#[test]
fn every_level_has_the_samples_that_the_reference_reads() {
    let Some(mount) = Mount::of(test_data("zgy")) else { return };
    for fixture in fixtures() {
        for (lod, level) in fixture.levels().iter().enumerate() {
            let found = raw(&mount, &fixture, lod);
            let expected = numbers(&level["shape"]).iter().product::<u64>() * fixture.sample_bytes();
            assert_eq!(found.len() as u64, expected, "{} LOD {lod}", fixture.name);
            if let Some(samples) = fixture.samples(lod) {
                let differ = found.iter().zip(&samples).position(|(a, b)| a != b);
                assert_eq!(differ, None, "{} LOD {lod}: first byte that differs", fixture.name);
            }
            assert_eq!(crc(&found), level["crc32"], "{} LOD {lod}", fixture.name);
        }
    }
}

#[test]
fn levels_without_data_are_not_shown() {
    let Some(mount) = Mount::of(test_data("zgy")) else { return };
    for fixture in fixtures() {
        let levels = fixture.expected["nlods_usable"].as_u64().unwrap();
        assert!(mount.data(&fixture.name, &format!("lod{}.raw", levels - 1)).exists(), "{}", fixture.name);
        assert!(!mount.data(&fixture.name, &format!("lod{levels}.raw")).exists(), "{}", fixture.name);
    }
}

#[test]
fn npy_is_a_header_and_the_same_samples() {
    let Some(mount) = Mount::of(test_data("zgy")) else { return };
    for fixture in fixtures() {
        for (lod, level) in fixture.levels().iter().enumerate() {
            let npy = Npy::parse(&fs::read(mount.data(&fixture.name, &format!("lod{lod}.npy"))).unwrap());
            let expected = Npy {
                descr: fixture.descr(),
                fortran_order: false,
                shape: numbers(&level["shape"]),
                samples: raw(&mount, &fixture, lod),
            };
            assert!(npy == expected, "{} LOD {lod}: {} {:?}", fixture.name, npy.descr, npy.shape);
        }
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
}

#[test]
fn every_level_has_a_float32_npy() {
    let Some(mount) = Mount::of(test_data("zgy")) else { return };
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
fn check_parts(mount: &Mount, names: &[&str], seed: u64) {
    let mut noise = Noise::seeded(seed);
    for name in names {
        let samples = fixture(name).samples(0).unwrap();
        let raw = File::open(mount.data(name, "lod0.raw")).unwrap();
        let npy = File::open(mount.data(name, "lod0.npy")).unwrap();
        let header = npy.metadata().unwrap().len() - samples.len() as u64;
        for _ in 0..60 {
            let from = noise.below(samples.len());
            let longest = if noise.below(4) == 0 { samples.len() } else { 300 };
            let length = 1 + noise.below((samples.len() - from).min(longest));
            let expected = &samples[from..from + length];
            assert!(read_at(&raw, from as u64, length).unwrap() == expected, "{name}: {length} bytes at {from}");
            let behind_header = read_at(&npy, header + from as u64, length).unwrap();
            assert!(behind_header == expected, "{name}.npy: {length} bytes at {from}");
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
    let Some(mount) = Mount::of(test_data("zgy")) else { return };
    check_parts(&mount, &OF_EACH_KIND, 1);
}

#[test]
fn unaligned_reads_with_direct_io_are_slices_of_the_whole() {
    let Some(mount) = Mount::with(test_data("zgy"), &["--direct-io"]) else { return };
    check_parts(&mount, &OF_EACH_KIND, 2);
}

#[test]
fn unaligned_reads_are_slices_of_the_whole_when_nothing_fits_the_cache() {
    let Some(mount) = Mount::with(test_data("zgy"), &["--direct-io", "--cache-size", "4KiB"]) else { return };
    check_parts(&mount, &OF_EACH_KIND, 3);
}

#[test]
fn many_threads_read_at_once() {
    let Some(mount) = Mount::with(test_data("zgy"), &["--direct-io", "--cache-size", "64KiB"]) else { return };
    std::thread::scope(|scope| {
        for seed in 10..18 {
            let mount = &mount;
            scope.spawn(move || check_parts(mount, &OF_EACH_KIND, seed));
        }
    });
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
fn reading_everything_once_decodes_each_brick_once() {
    let Some(mount) = Mount::of(test_data("demo")) else { return };
    let described = json(mount.data("north.zgy", "lod0.json"));
    assert_eq!(described["codec"], "zfp");
    fs::read(mount.data("north.zgy", "lod0.raw")).unwrap();
    assert_eq!(mount.counter("bricks_decoded"), described["bricks"]["stored"].as_u64().unwrap());
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
