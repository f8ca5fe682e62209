//! Thousands of random mutations of VDS datasets: opening and reading end in samples or in an error, and take bounded
//! memory, whatever tables, descriptions and chunks contain.
//!
//! The mutations are the same in each run; VOLFS_MUTATIONS sets their number for each dataset.

use crate::format::{Array, Dataset, FormatError};
use crate::source::Blocking;
use crate::volume::{Brick, Dims, StoredLength};

use super::{in_bounded_memory, mutations};
use crate::test_support::Noise;
use crate::test_support::vds_dataset::{Cloud, Container};

/// The largest brick that is decoded, in bytes. Larger ones may be valid, but are slow.
const MAX_DECODED: usize = 4 << 20;

/// The most bricks of an array that are read.
const MAX_BRICKS: u64 = 48;

/// Calls every method of a dataset, and returns how many bricks were read; `None` if it does not open.
fn read(opened: Result<Box<dyn Dataset>, FormatError>) -> Option<u64> {
    let dataset = match opened {
        Ok(dataset) => dataset,
        Err(FormatError::Source(error)) => panic!("the system is blamed: {error}"),
        Err(_) => return None,
    };
    let info = dataset.info();
    serde_json::to_string(&(&info.native, &dataset.metadata().unwrap(), &info.warnings)).unwrap();
    assert!(dataset.hidden().iter().all(|layer| !layer.reason.is_empty()));
    let mut bricks = 0;
    for array in dataset.layers().iter().flat_map(|layer| &layer.levels) {
        assert!(array.info().bytes() > 0 && array.info().bytes() < u64::MAX / 2);
        serde_json::to_string(&array.info().native).unwrap();
        array.census().unwrap_or_else(|e| panic!("the chunks cannot be counted: {e}"));
        let grid = &array.info().grid;
        let step = (grid.total() / MAX_BRICKS).max(1);
        for number in (0..MAX_BRICKS).map(|n| n * step).take_while(|number| *number < grid.total()) {
            match read_brick(&**array, &grid.count().index_of(number)) {
                Ok(()) => bricks += 1,
                Err(FormatError::Source(error)) => panic!("brick {number}: the system is blamed: {error}"),
                Err(_) => {}
            }
        }
    }
    Some(bricks)
}

fn read_brick(array: &dyn Array, at: &Dims) -> Result<(), FormatError> {
    let size = array.info().dtype.size();
    let object = |name: &str| array.source().len(name).unwrap();
    match array.brick(at, Blocking::Yes)? {
        Brick::Constant(value) => assert_eq!(value.bytes().len(), size),
        Brick::Plain(plain) => {
            let end = plain.offset + plain.layout.end(size).unwrap();
            assert!(object(&plain.object).is_some_and(|length| end <= length), "a plain brick beyond the end");
            assert!(plain.layout.held.contains(&array.info().grid.region(at)));
        }
        Brick::Coded(coded) => {
            assert!(coded.layout.end(size).unwrap() <= coded.decoded as u64, "a layout beyond the chunk");
            assert!(coded.layout.held.contains(&array.info().grid.region(at)));
            let Some(whole) = object(&coded.object) else { return Ok(()) };
            let length = match coded.length {
                StoredLength::Bytes(length) if array.source().len("").unwrap().is_some() => {
                    assert!(coded.offset + length <= whole, "a coded brick beyond the end");
                    length
                }
                // a page may give a wrong length of an object
                StoredLength::Bytes(length) => length.min(whole),
                StoredLength::Rest { most } => whole.min(most),
            };
            if coded.decoded <= MAX_DECODED {
                let mut stored = vec![0; length as usize];
                array.source().read_at(&coded.object, coded.offset, &mut stored, Blocking::Yes).unwrap();
                array.decode(&coded, &stored, &mut vec![0; coded.decoded])?;
            }
        }
    }
    Ok(())
}

/// Returns an edge case among numbers, also relative to `length`, the number of bytes.
fn number(noise: &mut Noise, length: usize) -> u64 {
    let length = length as u64;
    let numbers = [
        0,
        1,
        2,
        7,
        8,
        24,
        31,
        32,
        255,
        1 << 16,
        u64::MAX,
        1 << 31,
        u64::from(u32::MAX),
        1 << 63,
        length,
        length.wrapping_sub(1),
        length + 1,
        0x0101_0101_0000_0000,
    ];
    numbers[noise.below(numbers.len())]
}

/// Changes a few bytes from `at` on.
fn spoil(noise: &mut Noise, bytes: &mut [u8], at: usize) {
    let length = bytes.len();
    let new = match noise.below(4) {
        0 | 1 => number(noise, length).to_le_bytes()[..1 << noise.below(4)].to_vec(),
        2 => vec![bytes[at] ^ 1 << noise.below(8)],
        _ => vec![noise.below(256) as u8],
    };
    if let Some(to) = bytes.get_mut(at..at + new.len()) {
        to.copy_from_slice(&new);
    }
}

/// Changes a value or the punctuation of a JSON text.
fn spoil_text(noise: &mut Noise, text: &mut Vec<u8>) {
    const TEXTS: [&[u8]; 18] = [
        b"9",
        b"-",
        b"null",
        b"18446744073709551615",
        b"[]",
        b"1e300",
        b"../",
        b"9007199254740993",
        b"2147483647",
        b"-1",
        b"true",
        b"12",
        b"4096",
        b"Wavelet",
        b"U8",
        b"R64",
        b"1Bit",
        b"PerTrace",
    ];
    let digits: Vec<usize> = (0..text.len()).filter(|at| text[*at].is_ascii_digit()).collect();
    let at = match noise.below(3) {
        0 => noise.below(text.len()),
        _ => digits.get(noise.below(digits.len())).copied().unwrap_or(0),
    };
    match noise.below(3) {
        0 => {
            let to = (at + noise.below(8)).min(text.len());
            text.splice(at..to, TEXTS[noise.below(TEXTS.len())].iter().copied());
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

/// Mutates a dataset many times.
fn check_mutations(
    name: &str,
    whole: u64,
    mut mutant: impl FnMut(&mut Noise) -> Result<Box<dyn Dataset>, FormatError>,
) {
    let times = mutations(1000);
    let seed = name.bytes().fold(0x9e37_79b9_7f4a_7c15, |seed: u64, byte| seed.rotate_left(7) ^ u64::from(byte));
    let mut noise = Noise(seed);
    let (mut opened, mut bricks) = (0u64, 0u64);
    in_bounded_memory(name, || {
        for _ in 0..times {
            if let Some(read) = read(mutant(&mut noise)) {
                opened += 1;
                bricks += read;
            }
        }
    });
    println!("{name}: {opened} of {times} mutations were opened, {bricks} bricks read, of {whole} each");
    assert!(opened > times / 4, "{name}: {opened}");
}

fn check_container(name: &str) {
    let sound = Container::read(name);
    let whole = read(sound.open()).expect("it opens as it is");
    let names = sound.files();
    check_mutations(name, whole, |noise| mutate_container(noise, &sound, &names).open());
}

fn check_cloud(name: &str) {
    let sound = Cloud::read(name);
    let whole = read(sound.open()).expect("it opens as it is");
    check_mutations(name, whole, |noise| mutate_cloud(noise, &sound).open());
}

#[test]
fn containers_of_every_format_and_method() {
    for name in ["formats-none.vds", "formats-rle.vds", "formats-zip.vds", "components.vds", "components-packed.vds"] {
        check_container(name);
    }
}

#[test]
fn containers_of_every_layout() {
    for name in ["margins-2-3.vds", "two.vds", "tiles.vds", "four.vds", "six.vds", "full-resolution.vds", "traces.vds"]
    {
        check_container(name);
    }
}

#[test]
fn containers_of_constants_names_and_metadata() {
    for name in ["no-value.vds", "constants.vds", "scaled.vds", "names.vds", "metadata.vds"] {
        check_container(name);
    }
}

#[test]
fn containers_of_wavelets() {
    for name in ["wavelet.vds", "wavelet-lossless.vds", "wavelet-normalized-lossless.vds"] {
        check_container(name);
    }
}

#[test]
fn folders_with_pages() {
    for name in ["pages", "absent-pages", "no-directory", "json-names", "lossless"] {
        check_cloud(name);
    }
}

#[test]
fn folders_without_pages() {
    for name in ["no-pages", "tagged", "wavelet-no-pages"] {
        check_cloud(name);
    }
}
