//! Thousands of random mutations of datasets: opening, reading and checking them ends in samples, findings or an error,
//! and takes bounded memory, whatever headers, tables, descriptions and bricks contain. What is checked of a brick is
//! what the fuzz targets check.
//!
//! The mutations are the same in each run; VOLFS_MUTATIONS sets their number for each dataset.

use std::collections::BTreeMap;
use std::fs;
use std::sync::Arc;

use super::mutations;
use crate::format::hdf5::Hdf5;
use crate::format::n5::N5;
use crate::format::netcdf3::NetCdf3;
use crate::format::precomputed::Precomputed;
use crate::format::wkw::Wkw;
use crate::format::zarr::Zarr;
use crate::format::zgy::Zgy;
use crate::format::{Dataset, Format, FormatError, OpenWith};
use crate::fuzz::allocations::measure;
use crate::fuzz::bricks::{self, Kept};
use crate::source::Blocking;
use crate::test_support::handmade::{Handmade, zfp_header};
use crate::test_support::memory_folder::{MemoryFolder, files_below, files_beside, open_file, open_files};
use crate::test_support::vds_dataset::{Cloud, Container};
use crate::test_support::{Noise, stress, test_data};
use crate::volume::Brick;

/// The memory in bytes that a series of mutations may take at a time.
const MAX_MEMORY: u64 = 1 << 30;

/// The most bricks of an array that are looked up.
const MAX_BRICKS: u64 = 64;

const COMPRESSED: u64 = 0xc0 << 56;

type Files = BTreeMap<String, Vec<u8>>;
type Opened = Result<Box<dyn Dataset>, FormatError>;

/// Calls every method of a dataset, and returns how many bricks were read; `None` if it does not open. No brick may
/// decode to more than `expansion` times what is stored.
fn read(opened: Opened, kept: Kept, expansion: u64) -> Option<u64> {
    let dataset = match opened {
        Ok(dataset) => dataset,
        Err(FormatError::Source(error)) => panic!("the system is blamed: {error}"),
        Err(_) => return None,
    };
    let info = dataset.info();
    serde_json::to_string(&(&info.native, &dataset.metadata().unwrap(), &info.warnings)).unwrap();
    assert!(dataset.hidden().iter().all(|layer| !layer.reason.is_empty()));
    for array in dataset.layers().iter().flat_map(|layer| &layer.levels) {
        serde_json::to_string(&array.info().native).unwrap();
        array.census().unwrap_or_else(|e| panic!("the bricks cannot be counted: {e}"));
        let grid = &array.info().grid;
        let step = (grid.total() / MAX_BRICKS).max(1);
        for number in (0..MAX_BRICKS).map(|n| n * step).take_while(|number| *number < grid.total()) {
            match array.brick(&grid.count().index_of(number), Blocking::Yes) {
                Ok(Brick::Coded(coded)) => {
                    let most = coded.length.most().saturating_mul(expansion);
                    let is_unbounded = expansion == u64::MAX;
                    assert!(is_unbounded || coded.decoded as u64 <= most, "the decoded size is out of proportion");
                }
                Err(FormatError::Source(error)) => panic!("brick {number}: the system is blamed: {error}"),
                Ok(_) | Err(_) => {}
            }
        }
        let mut stored = 0;
        let visited = array.visit_stored(&mut |set| {
            stored += set.len();
            true
        });
        assert!(visited.is_err() || stored <= grid.total());
    }
    Some(bricks::read_some(&*dataset, kept))
}

/// Reads mutants of a dataset, of which a quarter has to open if it `opens` itself.
fn check_mutations(name: &str, opens: bool, times: u64, mut read_mutant: impl FnMut(&mut Noise) -> Option<u64>) {
    let times = mutations(times);
    let seed = name.bytes().fold(0x9e37_79b9_7f4a_7c15, |seed: u64, byte| seed.rotate_left(7) ^ u64::from(byte));
    // the seed of all tests makes other changes, too
    let mut noise = Noise(seed.wrapping_mul(2 * stress::seed() - 1));
    let (mut opened, mut bricks) = (0u64, 0u64);
    let ((), allocated) = measure(|| {
        for _ in 0..times {
            if let Some(read) = read_mutant(&mut noise) {
                opened += 1;
                bricks += read;
            }
        }
    });
    println!("{name}: {opened} of {times} mutations were opened, {bricks} bricks read");
    assert!(!opens || opened > times / 4, "{name}: {opened}");
    assert!(allocated.most < MAX_MEMORY, "{name}: {} bytes of memory", allocated.most);
}

fn overwrite(bytes: &mut [u8], at: usize, new: &[u8]) {
    if let Some(to) = bytes.get_mut(at..at + new.len()) {
        to.copy_from_slice(new);
    }
}

/// Changes a few bytes from `at` on, also to edge cases among numbers.
fn spoil(noise: &mut Noise, bytes: &mut [u8], at: usize) {
    let length = bytes.len() as u64;
    #[rustfmt::skip]
    let numbers = [
        0, 1, 2, 3, 7, 8, 15, 16, 17, 24, 31, 32, 255, 1 << 16, 1 << 31, (1 << 31) - 1, u64::from(u32::MAX), 1 << 63,
        u64::MAX, COMPRESSED, length, length.wrapping_sub(1), length + 1, 0x0101_0101_0000_0000,
    ];
    let new = match noise.below(5) {
        0 | 1 => numbers[noise.below(numbers.len())].to_le_bytes()[..1 << noise.below(4)].to_vec(),
        2 => vec![bytes[at] ^ 1 << noise.below(8)],
        3 => vec![noise.below(256) as u8],
        _ => {
            let some = 1 + noise.below(8);
            noise.bytes(some)
        }
    };
    overwrite(bytes, at, &new);
}

/// Changes a value or the punctuation of a JSON text.
fn spoil_text(noise: &mut Noise, text: &mut Vec<u8>) {
    #[rustfmt::skip]
    const TEXTS: [&str; 18] = [
        "9", "-", "null", "18446744073709551615", "[]", "1e300", "../", "9007199254740993", "2147483647", "-1", "true",
        "12", "4096", "Wavelet", "U8", "R64", "1Bit", "PerTrace",
    ];
    let digits: Vec<usize> = (0..text.len()).filter(|at| text[*at].is_ascii_digit()).collect();
    let at = match noise.below(3) {
        0 => noise.below(text.len()),
        _ => digits.get(noise.below(digits.len())).copied().unwrap_or(0),
    };
    match noise.below(3) {
        0 => {
            let to = (at + noise.below(8)).min(text.len());
            text.splice(at..to, TEXTS[noise.below(TEXTS.len())].bytes());
        }
        1 => text[at] = b'0' + noise.below(10) as u8,
        _ => text[at] ^= 1 << noise.below(7),
    }
}

/// Changes a container: its header, tables, chunk headers, description, or any byte.
fn mutate_container(noise: &mut Noise, sound: &Container, names: &[String]) -> Container {
    let mut bad = sound.clone();
    for _ in 0..=noise.below(3) {
        let name = &names[noise.below(names.len())];
        let chunks = sound.i32(sound.entry(name) + 8) as usize;
        let chunk = noise.below(chunks);
        let index = || sound.index(name, chunk);
        let at = match noise.below(12) {
            0 => noise.below(32),
            1 | 2 => sound.entry(name) + noise.below(64),
            3 => sound.directory(name) + noise.below(64),
            4 => sound.page(name, chunk) + noise.below(8),
            5 | 6 if sound.i64(sound.page(name, chunk)) > 0 => index() + noise.below(24),
            7 | 8 if sound.i64(sound.page(name, chunk)) > 0 => {
                let bytes = sound.chunk(name, chunk);
                let long = noise.below(2) == 0;
                bytes.start + noise.below(if long { bytes.len() } else { 100 })
            }
            9 | 10 => {
                let mut text = sound.0[sound.chunk("VolumeDataLayout", 0)].to_vec();
                spoil_text(noise, &mut text);
                let end = bad.0.len();
                let index = sound.index("VolumeDataLayout", 0);
                if let Some(to) = bad.0.get_mut(index..index + 12) {
                    to[..8].copy_from_slice(&(end as u64).to_le_bytes());
                    to[8..].copy_from_slice(&(text.len() as u32).to_le_bytes());
                    bad.0.extend(text);
                }
                continue;
            }
            _ => noise.below(bad.0.len()),
        };
        if at < bad.0.len() {
            spoil(noise, &mut bad.0, at);
        }
        if noise.below(40) == 0 {
            bad.0.truncate(at);
        }
    }
    bad
}

/// Changes some objects of a folder.
fn mutate_cloud(noise: &mut Noise, sound: &Cloud) -> Cloud {
    let mut bad = sound.clone();
    for _ in 0..=noise.below(3) {
        let texts = |name: &&String| !name.contains('/');
        let of: Vec<String> = match noise.below(3) {
            0 => bad.0.keys().filter(texts).cloned().collect(),
            1 => bad.0.keys().filter(|name| name.contains("/ChunkMetadata/") || name.contains('\0')).cloned().collect(),
            _ => bad.0.keys().cloned().collect(),
        };
        let Some(name) = of.get(noise.below(of.len())) else { continue };
        let object = bad.object(name);
        if object.is_empty() {
            continue;
        }
        let at = if noise.below(2) == 0 { noise.below(object.len()) } else { noise.below(object.len().min(40)) };
        if texts(&name) {
            spoil_text(noise, object)
        } else {
            spoil(noise, object, at)
        }
        match noise.below(24) {
            0 => object.truncate(at),
            1 => drop(bad.0.remove(name)),
            2 => object.extend([0; 64]),
            _ => {}
        }
    }
    bad
}

/// Changes some bytes of some files: numbers in headers and tables, and the text of a description.
fn mutate_folder(noise: &mut Noise, files: &mut Files) {
    for _ in 0..=noise.below(3) {
        // half of the time the description, and headers more often than their share of the files
        let wanted = ["", ".json", ".json", "header.wkw", ".zarray"][noise.below(5)];
        let of: Vec<String> = files.keys().filter(|name| name.ends_with(wanted)).cloned().collect();
        let Some(name) = of.get(noise.below(of.len())) else { continue };
        let Some(file) = files.get_mut(name).filter(|file| !file.is_empty()) else { continue };
        let at = if noise.below(2) == 0 { noise.below(file.len()) } else { noise.below(file.len().min(96)) };
        if name.ends_with(".json") || name.contains(".z") {
            spoil_text(noise, file)
        } else {
            spoil(noise, file, at)
        }
        match noise.below(24) {
            0 => file.truncate(at),
            1 => drop(files.remove(name)),
            _ => {}
        }
    }
}

/// Changes some of a file's bytes, most of them near the offsets `starts`.
fn mutate_file(noise: &mut Noise, file: &mut Vec<u8>, starts: &[usize]) {
    for _ in 0..=noise.below(3) {
        let near = starts[noise.below(starts.len())] + noise.below(64);
        let at = if noise.below(4) == 0 { noise.below(file.len()) } else { near };
        // now and then the place of a compressed brick
        if noise.below(4) == 0 {
            let place = (COMPRESSED | noise.below(file.len()) as u64).to_le_bytes();
            overwrite(file, at, &place);
        } else if at < file.len() {
            spoil(noise, file, at);
        }
    }
    if noise.below(8) == 0 {
        file.truncate(noise.below(file.len()));
    }
}

/// Run lengths and wavelets expand to anything.
fn read_vds(opened: Opened, kept: Kept) -> Option<u64> {
    read(opened, kept, u64::MAX)
}

fn check_container(name: &str) {
    let sound = Container::read(name);
    read_vds(sound.open(), Kept::InOneFile).expect("it opens as it is");
    let names = sound.files();
    check_mutations(name, true, 1000, |noise| {
        read_vds(mutate_container(noise, &sound, &names).open(), Kept::InOneFile)
    });
}

fn check_cloud(name: &str) {
    let sound = Cloud::read(name);
    read_vds(sound.open(), Kept::InObjects).expect("it opens as it is");
    check_mutations(name, true, 1000, |noise| read_vds(mutate_cloud(noise, &sound).open(), Kept::InObjects));
}

#[test]
fn vds_containers_of_every_format_and_method() {
    for name in ["formats-none.vds", "formats-rle.vds", "formats-zip.vds", "components.vds", "components-packed.vds"] {
        check_container(name);
    }
}

#[test]
fn vds_containers_of_every_layout() {
    for name in ["margins-2-3.vds", "two.vds", "tiles.vds", "four.vds", "six.vds", "full-resolution.vds", "traces.vds"]
    {
        check_container(name);
    }
}

#[test]
fn vds_containers_of_constants_names_and_metadata() {
    for name in ["no-value.vds", "constants.vds", "scaled.vds", "names.vds", "metadata.vds"] {
        check_container(name);
    }
}

#[test]
fn vds_containers_of_wavelets() {
    for name in ["wavelet.vds", "wavelet-lossless.vds", "wavelet-normalized-lossless.vds"] {
        check_container(name);
    }
}

#[test]
fn vds_folders_with_pages() {
    for name in ["pages", "absent-pages", "no-directory", "json-names", "lossless"] {
        check_cloud(name);
    }
}

#[test]
fn vds_folders_without_pages() {
    for name in ["no-pages", "tagged", "wavelet-no-pages"] {
        check_cloud(name);
    }
}

#[test]
fn wkw_datasets() {
    // with a description, without one, and damaged already
    for name in ["types", "pyramid", "old", "bare", "annotation", "damaged"] {
        let files = files_below(&test_data("wkw").join(name));
        let read_all = |files| read(open_files(&Wkw, files), Kept::InOneFile, 255);
        read_all(files.clone()).expect("it opens as it is");
        check_mutations(name, true, 400, |noise| {
            let mut bad = files.clone();
            mutate_folder(noise, &mut bad);
            read_all(bad)
        });
    }
}

/// Zarr and N5: a chunk decodes to what the description says, however short it is.
fn check_hierarchy(format: &dyn Format, name: &str, opens: bool, times: u64) {
    let files = files_below(&test_data("zarr").join(name));
    let read_all = |files| read(open_files(format, files), Kept::InOneFile, u64::MAX);
    read_all(files.clone()).expect("it opens as it is");
    check_mutations(name, opens, times, |noise| {
        let mut bad = files.clone();
        (0..4).for_each(|_| mutate_folder(noise, &mut bad));
        read_all(bad)
    });
}

#[test]
fn zarr_hierarchies() {
    for name in ["v2.zarr", "v3.zarr", "one.zarr", "image-0.4.zarr", "image-0.5.zarr"] {
        check_hierarchy(&Zarr, name, name != "one.zarr", 300);
    }
}

#[test]
fn n5_containers() {
    check_hierarchy(&N5, "volume.n5", true, 400);
}

#[test]
fn webknossos_datasets_with_layers_of_other_formats() {
    check_hierarchy(&Wkw, "webknossos", false, 300);
}

#[test]
fn precomputed_volumes() {
    for name in ["raw", "segments-32", "png-4", "jpeg-rgb", "gzip", "sharded", "sharded-hashed", "sharded-plain"] {
        let files = files_below(&test_data("precomputed").join(name));
        // a block of one id, and deflate, expand to anything
        let read_all = |files| read(open_files(&Precomputed, files), Kept::InOneFile, u64::MAX);
        read_all(files.clone()).expect("it opens as it is");
        check_mutations(name, true, 400, |noise| {
            let mut bad = files.clone();
            for _ in 0..=noise.below(3) {
                let wanted = ["info", "info", "", "shard"][noise.below(4)];
                let of: Vec<String> = bad.keys().filter(|name| name.ends_with(wanted)).cloned().collect();
                let Some(name) = of.get(noise.below(of.len().max(1))) else { continue };
                let Some(file) = bad.get_mut(name).filter(|file| !file.is_empty()) else { continue };
                let at = if noise.below(2) == 0 { noise.below(file.len()) } else { noise.below(file.len().min(96)) };
                if name == "info" {
                    spoil_text(noise, file)
                } else {
                    spoil(noise, file, at)
                }
                match noise.below(24) {
                    0 => file.truncate(at),
                    1 => drop(bad.remove(name)),
                    2 => file.extend([0; 64]),
                    _ => {}
                }
            }
            read_all(bad)
        });
    }
}

/// HDF5: most of these files have no checksums. Filters expand to anything.
#[test]
fn hdf5_files() {
    for (name, opens) in [
        ("layouts-earliest.h5", true),
        ("types.h5", true),
        ("links-earliest.h5", true),
        ("rain.nc", false),
        ("filters.h5", false),
        ("layouts-latest.h5", false),
        ("virtual-earliest.h5", false),
    ] {
        let file = fs::read(test_data("hdf5").join(name)).unwrap();
        let with = OpenWith { beside: Some(files_beside(test_data("hdf5").join(name))), ..OpenWith::for_one(None) };
        let open = |file| Hdf5.open(Arc::new(MemoryFolder::of_one_file(file)), &with);
        let read_all = |file| read(open(file), Kept::InOneFile, u64::MAX);
        read_all(file.clone()).expect("it opens as it is");
        // headers and nodes of trees begin with these
        let starts: Vec<usize> = (0..file.len() - 8)
            .filter(|at| {
                [&b"TREE"[..], b"SNOD", b"HEAP", b"GCOL"].contains(&&file[*at..*at + 4])
                    || file[*at..].starts_with(b"\x01\0")
            })
            .collect();
        check_mutations(name, opens, 200, |noise| {
            let mut bad = file.clone();
            mutate_file(noise, &mut bad, &starts);
            read_all(bad)
        });
    }
}

#[test]
fn netcdf3_files() {
    for (name, opens) in [("classic.nc", true), ("cdf5.nc", false)] {
        let file = fs::read(test_data("netcdf3").join(name)).unwrap();
        let read_all = |file| read(open_file(&NetCdf3, file), Kept::InOneFile, 1);
        read_all(file.clone()).expect("it opens as it is");
        check_mutations(name, opens, 500, |noise| {
            let mut bad = file.clone();
            mutate_file(noise, &mut bad, &(0..2500).step_by(4).collect::<Vec<_>>());
            read_all(bad)
        });
    }
}

fn read_zgy(file: Vec<u8>) -> Option<u64> {
    let length = file.len() as u64;
    let opened = open_file(&Zgy, file);
    if let Ok(dataset) = &opened {
        let bricks = dataset.layers()[0].levels.iter().map(|array| array.info().grid.total());
        assert!(bricks.max() <= Some(length / 8), "more bricks than the table has room for");
    }
    read(opened, Kept::InOneFile, 2048)
}

/// Mutates a file many times. `starts` are the offsets of its parts.
fn check_file(name: &str, file: &[u8], starts: &[usize]) {
    check_mutations(name, read_zgy(file.to_vec()).is_some(), 400, |noise| {
        let mut bad = file.to_vec();
        mutate_file(noise, &mut bad, starts);
        read_zgy(bad)
    });
}

/// Returns a file of compressed bricks. Their bodies are random: nearly any bytes are a valid stream.
fn streams(mode: u16) -> Handmade {
    const SHAPE: [i32; 3] = [4, 8, 16];
    let mut file = Handmade::new(4, 6, [20, 8, 16], SHAPE, &[1, 1, 1, 0, 0, 0, 0, 0, 1, 1, 1]);
    file.alpha = 11;
    let mut noise = Noise(7 + u64::from(mode));
    for entry in 3..8 {
        file.entries[entry] = COMPRESSED | (file.body_at() + file.body.len() as u64);
        file.body.extend(zfp_header(SHAPE, mode));
        file.body.extend(noise.bytes(2100));
    }
    file
}

#[test]
fn zgy_files_by_hand() {
    let mut plain = Handmade::new(3, 2, [20, 8, 7], [8, 8, 8], &[1, 1, 1, 0, 5, 0x80 << 56 | 7]);
    plain.entries[3] = plain.body_at();
    plain.body = vec![3; 3000];
    let mut old = Handmade::new(1, 6, [60, 64, 64], [64; 3], &[0]);
    old.entries[0] = COMPRESSED | old.body_at();
    old.body = [zfp_header([64; 3], 2176), vec![0; 5000]].concat();
    for (name, file) in [("version 3", plain), ("version 1", old)] {
        let table = file.body_at() as usize - 8 * file.entries.len();
        check_file(name, &file.build(), &[0, 9, 9 + 94, 9 + 310, table, table, file.body_at() as usize]);
    }
}

#[test]
fn zgy_compressed_streams() {
    for mode in [0, 7, 300, 2047, 2048, 2060, 2100, 2176, 2177, 3000, 4094, 4095] {
        let file = streams(mode);
        let bricks: Vec<_> =
            file.entries.iter().filter(|e| **e >> 56 == 0xc0).map(|e| *e as usize & 0xff_ffff).collect();
        let bytes = file.build();
        let read = read_zgy(bytes.clone()).unwrap();
        assert!(read >= 6, "mode {mode}: {read} bricks");
        check_file(&format!("mode {mode}"), &bytes, &bricks);
    }
}

#[test]
fn small_zgy_fixtures() {
    let mut files: Vec<_> = fs::read_dir(test_data("zgy")).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.retain(|path| path.extension().is_some_and(|e| e == "zgy"));
    files.sort();
    for path in files {
        let file = fs::read(&path).unwrap();
        if (1..64 << 10).contains(&file.len()) {
            let header = 346 + 2064;
            check_file(
                &path.display().to_string(),
                &file,
                &[0, 9, 40, 9 + 94, 9 + 310, header, header + 64, header + 128],
            );
        }
    }
}

/// Mutates the tables that the checks of a dataset's structure read.
#[test]
fn tables() {
    let plain = super::structure::three_levels(3, |body| [body, body + 2048, 1, body + 4096, 1, 0]);
    check_file("zgy", &plain.0.build(), &[plain.1 as usize - 48]);
    let sound = Container::read("margins-2-3.vds");
    let index = sound.index("Dimensions_012LOD0", 0);
    check_mutations("vds", true, 1000, |noise| {
        let mut bad = sound.clone();
        mutate_file(noise, &mut bad.0, &[index]);
        read_vds(bad.open(), Kept::InOneFile)
    });
}
