//! Thousands of random mutations of ZGY files: reading ends in samples or in an error, and takes bounded memory,
//! whatever a file contains. Our decoder of ZFP returns the same as libzfp (with that feature).
//!
//! The mutations are the same in each run; VOLFS_MUTATIONS sets their number for each file.

use std::fs;
use std::sync::Arc;

#[cfg(feature = "libzfp")]
use crate::codec::zfp::libzfp;
use crate::format::zgy::Zgy;
use crate::format::{Array, Format, FormatError, OpenWith};
use crate::source::{Blocking, IndexCache};
use crate::volume::{Brick, Dims};

use super::{in_bounded_memory, mutations};
use crate::test_support::handmade::{Handmade, zfp_header};
use crate::test_support::memory_folder::MemoryFolder;
use crate::test_support::{Noise, test_data};

/// The largest brick that is decoded, in bytes. Larger ones may be valid, but are slow.
const MAX_DECODED: usize = 4 << 20;

/// The most bricks of an array that are read.
const MAX_BRICKS: u64 = 40;

/// Calls every method of a dataset, and returns whether it opened and how many bricks were read.
fn read(file: Vec<u8>, cache: &Arc<IndexCache>) -> (bool, u64) {
    let length = file.len() as u64;
    let with = OpenWith::new(Arc::clone(cache));
    let dataset = match Zgy.open(Arc::new(MemoryFolder::of_one_file(file)), &with) {
        Ok(dataset) => dataset,
        Err(FormatError::Source(error)) => panic!("a header is read beyond the file: {error}"),
        Err(_) => return (false, 0),
    };
    serde_json::to_string(&dataset.info().native).unwrap();
    let mut bricks = 0;
    for array in &dataset.layers()[0].levels {
        assert!(array.info().grid.total() <= length / 8, "more bricks than the table has room for");
        array.census().unwrap();
        bricks += read_bricks(&**array, length);
    }
    (true, bricks)
}

fn read_bricks(array: &dyn Array, file: u64) -> u64 {
    let grid = &array.info().grid;
    let step = (grid.total() / MAX_BRICKS).max(1);
    let numbers = (0..grid.total()).step_by(step as usize);
    numbers.filter(|number| read_brick(array, &grid.count().index_of(*number), file).is_ok()).count() as u64
}

fn read_brick(array: &dyn Array, at: &Dims, file: u64) -> Result<(), FormatError> {
    match array.brick(at, Blocking::Yes)? {
        Brick::Constant(value) => assert_eq!(value.bytes().len(), array.info().dtype.size()),
        Brick::Plain(plain) => {
            let end = plain.offset + plain.layout.end(array.info().dtype.size()).unwrap();
            assert!(end <= file, "a plain brick beyond the end");
        }
        Brick::Coded(coded) => {
            assert!(coded.offset + coded.length.most() <= file, "a coded brick beyond the end");
            assert!(coded.decoded as u64 <= 2048 * coded.length.most(), "the decoded size is out of proportion");
            assert!(coded.length.most() as usize <= coded.decoded + coded.decoded / 16 + 64);
            if coded.decoded <= MAX_DECODED {
                let mut stored = vec![0; coded.length.most() as usize];
                array.source().read_at("", coded.offset, &mut stored, Blocking::Yes)?;
                let mut out = vec![0; coded.decoded];
                let decoded = array.decode(&coded, &stored, &mut out);
                #[cfg(feature = "libzfp")]
                if stored.starts_with(b"zfp") {
                    let [z, y, x] = array.info().brick_shape[..] else { panic!("a brick has three axes") };
                    let mut theirs = vec![0.0; coded.decoded / 4];
                    let used = libzfp::Stream::new(&stored, [z, y, x]).decode([z, y, x], &mut theirs);
                    let is_same = || theirs.iter().flat_map(|sample| sample.to_ne_bytes()).eq(out.iter().copied());
                    assert!(
                        decoded.is_ok() == used.is_some() && (decoded.is_err() || is_same()),
                        "the decoders differ"
                    );
                }
                decoded?;
            }
        }
    }
    Ok(())
}

/// Changes some of a file's bytes, most of them near the offsets `starts`.
fn mutate(noise: &mut Noise, file: &mut Vec<u8>, starts: &[usize]) {
    for _ in 0..=noise.below(3) {
        let near = starts[noise.below(starts.len())] + noise.below(64);
        let at = if noise.below(4) == 0 { noise.below(file.len()) } else { near };
        let file_length = file.len() as u64;
        let odd = [0, 1, 2, 3, u64::MAX, 1 << 31, (1 << 31) - 1, 1 << 63, 0xc0 << 56, file_length, file_length - 1];
        let bytes = match noise.below(4) {
            0 => odd[noise.below(odd.len())].to_le_bytes()[..1 << noise.below(4)].to_vec(),
            1 => {
                let some = 1 + noise.below(8);
                noise.bytes(some)
            }
            2 => (0xc0 << 56 | noise.below(file.len()) as u64).to_le_bytes().to_vec(),
            _ => vec![file.get(at).map_or(0, |byte| byte ^ 1 << noise.below(8))],
        };
        if let Some(to) = file.get_mut(at..at + bytes.len()) {
            to.copy_from_slice(&bytes);
        }
    }
    if noise.below(8) == 0 {
        file.truncate(noise.below(file.len()));
    }
}

/// Mutates `file` many times. `starts` are the offsets of its parts.
fn check_mutations(name: &str, file: &[u8], starts: &[usize]) {
    let times = mutations(400);
    let mut noise = Noise(0x9e37_79b9_7f4a_7c15 ^ file.len() as u64);
    let cache = IndexCache::new(1 << 20);
    let mut opened = 0;
    in_bounded_memory(name, || {
        for _ in 0..times {
            let mut bad = file.to_vec();
            mutate(&mut noise, &mut bad, starts);
            opened += u64::from(read(bad, &cache).0);
        }
    });
    println!("{name}: {opened} of {times} mutations were opened");
}

/// Returns a file of compressed bricks. Their bodies are random: nearly any bytes are a valid stream.
fn streams(mode: u16) -> Handmade {
    const SHAPE: [i32; 3] = [4, 8, 16];
    let mut file = Handmade::new(4, 6, [20, 8, 16], SHAPE, &[1, 1, 1, 0, 0, 0, 0, 0, 1, 1, 1]);
    file.alpha = 11;
    let mut noise = Noise(7 + u64::from(mode));
    for entry in 3..8 {
        file.entries[entry] = 0xc0 << 56 | (file.body_at() + file.body.len() as u64);
        file.body.extend(zfp_header(SHAPE, mode));
        file.body.extend(noise.bytes(2100));
    }
    file
}

#[test]
fn files_by_hand() {
    let mut plain = Handmade::new(3, 2, [20, 8, 7], [8, 8, 8], &[1, 1, 1, 0, 5, 0x80 << 56 | 7]);
    plain.entries[3] = plain.body_at();
    plain.body = vec![3; 3000];
    let mut old = Handmade::new(1, 6, [60, 64, 64], [64; 3], &[0]);
    old.entries[0] = 0xc0 << 56 | old.body_at();
    old.body = [zfp_header([64; 3], 2176), vec![0; 5000]].concat();
    for (name, file) in [("version 3", plain), ("version 1", old)] {
        let table = file.body_at() as usize - 8 * file.entries.len();
        check_mutations(name, &file.build(), &[0, 9, 9 + 94, 9 + 310, table, table, file.body_at() as usize]);
    }
}

#[test]
fn compressed_streams() {
    for mode in [0, 7, 300, 2047, 2048, 2060, 2100, 2176, 2177, 3000, 4094, 4095] {
        let file = streams(mode);
        let bricks: Vec<_> =
            file.entries.iter().filter(|e| **e >> 56 == 0xc0).map(|e| *e as usize & 0xff_ffff).collect();
        let bytes = file.build();
        let (opened, read) = read(bytes.clone(), &IndexCache::new(1 << 20));
        assert!(opened && read >= 6, "mode {mode}: {read} bricks");
        check_mutations(&format!("mode {mode}"), &bytes, &bricks);
    }
}

#[test]
fn small_fixtures() {
    let mut files: Vec<_> = fs::read_dir(test_data("zgy")).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.retain(|path| path.extension().is_some_and(|e| e == "zgy"));
    files.sort();
    for path in files {
        let file = fs::read(&path).unwrap();
        if (1..64 << 10).contains(&file.len()) {
            let header = 346 + 2064;
            check_mutations(
                &path.display().to_string(),
                &file,
                &[0, 9, 40, 9 + 94, 9 + 310, header, header + 64, header + 128],
            );
        }
    }
}
