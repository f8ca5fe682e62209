//! Thousands of random mutations of WKW datasets: opening and reading end in samples or in an error, and take bounded
//! memory, whatever a description, a header or a cube contains.
//!
//! The mutations are the same in each run; VOLFS_MUTATIONS sets their number for each dataset.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::format::wkw::Wkw;
use crate::format::{Array, Format, FormatError, OpenWith};
use crate::source::{Blocking, IndexCache};
use crate::volume::{Brick, Dims};

use super::{in_bounded_memory, mutations};
use crate::test_support::memory_folder::{MemoryFolder, files_below};
use crate::test_support::{Noise, test_data};

/// The largest brick that is decoded, in bytes. Larger ones may be valid, but are slow.
const MAX_DECODED: usize = 4 << 20;

/// The most bricks of an array that are read.
const MAX_BRICKS: u64 = 64;

type Files = BTreeMap<String, Vec<u8>>;

/// Calls every method of a dataset, and returns how many bricks were read; `None` if it does not open.
fn read(files: Files, cache: &Arc<IndexCache>) -> Option<u64> {
    let folder = Arc::new(MemoryFolder::new(files));
    let dataset = match Wkw.open_folder(folder, &OpenWith::new(Arc::clone(cache))) {
        Ok(dataset) => dataset,
        Err(FormatError::Source(error)) => panic!("the system is blamed: {error}"),
        Err(_) => return None,
    };
    serde_json::to_string(&dataset.info().native).unwrap();
    assert!(dataset.hidden().iter().all(|layer| !layer.reason.is_empty()));
    let mut bricks = 0;
    for array in dataset.layers().iter().flat_map(|layer| &layer.levels) {
        assert!(array.info().bytes() > 0 && array.info().bytes() < u64::MAX / 2);
        serde_json::to_string(&array.info().native).unwrap();
        let grid = &array.info().grid;
        let step = (grid.total() / MAX_BRICKS).max(1);
        for number in (0..MAX_BRICKS).map(|n| n * step).take_while(|number| *number < grid.total()) {
            bricks += u64::from(read_brick(&**array, &grid.count().index_of(number)).is_ok());
        }
    }
    Some(bricks)
}

fn read_brick(array: &dyn Array, at: &Dims) -> Result<(), FormatError> {
    let size = array.info().dtype.size();
    let object = |name: &str| array.source().len(name).unwrap().expect("bricks are in files that exist");
    match array.brick(at, Blocking::Yes)? {
        Brick::Constant(value) => assert_eq!(value.bytes(), vec![0; size]),
        Brick::Plain(plain) => {
            let end = plain.offset + plain.layout.end(size).unwrap();
            assert!(end <= object(&plain.object), "a plain brick beyond the end");
            assert!(plain.layout.held.contains(&array.info().grid.region(at)));
        }
        Brick::Coded(coded) => {
            assert!(coded.offset + coded.length.most() <= object(&coded.object), "a coded brick beyond the end");
            assert!(coded.decoded as u64 <= 255 * coded.length.most(), "the decoded size is out of proportion");
            assert!(coded.layout.end(size).unwrap() <= coded.decoded as u64, "a layout beyond the block");
            assert!(coded.layout.held.contains(&array.info().grid.region(at)));
            if coded.decoded <= MAX_DECODED {
                let mut stored = vec![0; coded.length.most() as usize];
                array.source().read_at(&coded.object, coded.offset, &mut stored, Blocking::Yes)?;
                array.decode(&coded, &stored, &mut vec![0; coded.decoded])?;
            }
        }
    }
    Ok(())
}

/// Changes some bytes of some files: numbers in headers and tables, and the text of a description.
fn mutate(noise: &mut Noise, files: &mut Files) {
    for _ in 0..=noise.below(3) {
        let all: Vec<&String> = files.keys().collect();
        // half of the time the description, and headers more often than their share of the files
        let of: Vec<&String> = match noise.below(4) {
            0 | 1 => all.iter().copied().filter(|name| name.ends_with(".json")).collect(),
            2 => all.iter().copied().filter(|name| name.ends_with("header.wkw")).collect(),
            _ => all.clone(),
        };
        let Some(name) = of.get(noise.below(of.len())).map(|name| (*name).clone()) else { continue };
        let Some(file) = files.get_mut(&name) else { continue };
        if file.is_empty() {
            continue;
        }
        let text = name.ends_with(".json");
        let at = if text || noise.below(2) == 0 { noise.below(file.len()) } else { noise.below(file.len().min(96)) };
        let length = file.len() as u64;
        let numbers = [0, 1, 2, 15, 16, 17, u64::MAX, 1 << 31, 1 << 63, length, length - 1, length + 1];
        let texts: [&[u8]; 8] =
            [b"9", b"-", b"null", b"18446744073709551615", b"[]", b"1e300", b"../", b"9007199254740993"];
        let bytes = match noise.below(4) {
            0 if text => texts[noise.below(texts.len())].to_vec(),
            0 | 1 => numbers[noise.below(numbers.len())].to_le_bytes()[..1 << noise.below(4)].to_vec(),
            2 => vec![file[at] ^ 1 << noise.below(8)],
            _ if text => vec![b'0' + noise.below(10) as u8],
            _ => vec![noise.below(256) as u8],
        };
        if text && noise.below(2) == 0 {
            file.splice(at..at + noise.below(4).min(length as usize - at), bytes);
        } else if let Some(to) = file.get_mut(at..at + bytes.len()) {
            to.copy_from_slice(&bytes);
        }
        match noise.below(24) {
            0 => file.truncate(at),
            1 => drop(files.remove(&name)),
            _ => {}
        }
    }
}

/// Mutates a dataset many times.
fn check_mutations(name: &str) {
    let times = mutations(400);
    let files = files_below(&test_data("wkw").join(name));
    let cache = IndexCache::new(1 << 20);
    let whole = read(files.clone(), &cache).expect("it opens as it is");
    let mut noise = Noise(0x9e37_79b9_7f4a_7c15 ^ files.len() as u64);
    let (mut opened, mut bricks) = (0u64, 0u64);
    in_bounded_memory(name, || {
        for _ in 0..times {
            let mut bad = files.clone();
            mutate(&mut noise, &mut bad);
            if let Some(read) = read(bad, &cache) {
                opened += 1;
                bricks += read;
            }
        }
    });
    println!("{name}: {opened} of {times} mutations were opened, {bricks} bricks read, of {whole} each");
    assert!(opened > times / 4);
}

#[test]
fn described_datasets() {
    for name in ["types", "pyramid", "old"] {
        check_mutations(name);
    }
}

#[test]
fn datasets_without_a_description() {
    for name in ["bare", "annotation"] {
        check_mutations(name);
    }
}

#[test]
fn datasets_that_are_damaged_already() {
    check_mutations("damaged");
}
