//! Tests of the whole reader on files in memory.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::sync::Arc;

use super::Zgy;
use crate::format::{Array, Dataset, Format, FormatError, OpenWith};
use crate::source::{Blocking, IndexCache, Source, SourceError};
use crate::test_support::handmade::{Handmade, Noise, zfp_header};
use crate::volume::{Brick, BrickCounts, Coded, Dims, Dtype, Element, Scaling};

/// A file in memory that always blocks: reads that may not wait fail.
struct Memory(Vec<u8>);

impl Source for Memory {
    fn len(&self, _: &str) -> Result<Option<u64>, SourceError> {
        Ok(Some(self.0.len() as u64))
    }

    fn read_at(&self, _: &str, offset: u64, out: &mut [u8], blocking: Blocking) -> Result<bool, SourceError> {
        if blocking == Blocking::No {
            return Err(SourceError::WouldBlock);
        }
        let from = offset as usize;
        out.copy_from_slice(&self.0[from..from + out.len()]);
        Ok(true)
    }

    fn check_unchanged(&self) -> Result<(), SourceError> {
        Ok(())
    }
}

fn open(file: Vec<u8>) -> Result<Box<dyn Dataset>, FormatError> {
    Zgy.open(Arc::new(Memory(file)), &OpenWith::new(IndexCache::new(1 << 20)))
}

fn refusal(file: Vec<u8>) -> String {
    open(file).err().expect("this file must be refused").to_string()
}

fn lod(dataset: &dyn Dataset, lod: usize) -> &dyn Array {
    &*dataset.layers()[0].levels[lod]
}

fn brick(dataset: &dyn Dataset, at: [u64; 3]) -> Result<Brick, FormatError> {
    lod(dataset, 0).brick(&at.into(), Blocking::Yes)
}

fn why(dataset: &dyn Dataset, at: [u64; 3]) -> String {
    brick(dataset, at).unwrap_err().to_string()
}

fn coded(brick: Brick) -> Coded {
    match brick {
        Brick::Coded(coded) => coded,
        other => panic!("{other:?}"),
    }
}

const CONSTANT: u64 = 0x80 << 56;
const COMPRESSED: u64 = 0xc0 << 56;

/// Builds three bricks of int16 along the inlines, then two levels more: stored, constant, missing.
fn three_levels() -> Handmade {
    let mut file = Handmade::new(3, 2, [20, 8, 7], [8, 8, 8], &[1, 1, 1, 0, CONSTANT | 0xab_0000_fffe, 0]);
    file.entries[3] = file.body_at();
    file.body = Noise(1).bytes(1024);
    file
}

#[test]
fn a_file_of_version_3() {
    let file = three_levels();
    let dataset = open(file.build()).unwrap();
    let info = dataset.info();
    assert_eq!((&*info.version, &info.warnings), ("3", &vec![]));
    assert_eq!(info.native["units"]["vunitname"], "ms");
    assert_eq!(info.native["verid"], "13121110-1514-1716-1819-1a1b1c1d1e1f");
    assert_eq!(info.native["srcname"], "by hand");
    assert_eq!(info.statistics.unwrap().count, Some(7));
    let geometry = info.geometry.as_ref().unwrap();
    assert_eq!((geometry.vertical_kind, geometry.vertical_factor), ("two-way time", 0.001));
    assert_eq!(geometry.corners[3].world, Some([475.0, 87.5]));

    let layers = dataset.layers();
    assert_eq!((layers.len(), &*layers[0].name, layers[0].levels.len()), (1, "data", 3));
    let info = lod(&*dataset, 1).info();
    assert_eq!((info.shape(), info.dtype, info.lod), (Dims::from([10, 4, 4]), Dtype::Int16, 1));
    assert_eq!(
        info.axes.iter().map(|a| (&*a.name, a.first, a.step)).collect::<Vec<_>>(),
        [("inline", 10.0, 2.0), ("crossline", 20.0, 4.0), ("sample", 0.0, 8.0)]
    );
    assert_eq!(info.axes[2].unit.as_deref(), Some("ms"));
    assert_eq!(info.value_range, Some((-28.0, 227.0)));
    assert_eq!(info.scaling, Some(Scaling::of_codes(255.0 / 65535.0, -28.0 + 255.0 / 65535.0 * 32768.0)));
}

#[test]
fn bricks_of_every_kind() {
    let file = three_levels();
    let dataset = open(file.build()).unwrap();
    let Ok(Brick::Plain(plain)) = brick(&*dataset, [0; 3]) else { panic!() };
    assert_eq!((plain.offset, plain.layout.strides), (file.body_at(), Dims::from([128, 16, 2])));
    assert_eq!(brick(&*dataset, [1, 0, 0]), Ok(Brick::Constant(Element::new(&[0xfe, 0xff]))));
    // the value nearest to zero is (0 + 28) / 255 of the way from -32768 to 32767
    let nearest = (28.0 / 255.0 * 65535.0 - 32768.0f64).round() as i16;
    assert_eq!(brick(&*dataset, [2, 0, 0]), Ok(Brick::Constant(Element::new(&nearest.to_le_bytes()))));
    assert_eq!(lod(&*dataset, 2).brick(&[0, 0, 0].into(), Blocking::No), Ok(Brick::Constant(Element::zero(2))));
    assert!(matches!(brick(&*dataset, [3, 0, 0]), Err(FormatError::Damaged(_))));
    assert!(matches!(lod(&*dataset, 0).brick(&[0].into(), Blocking::Yes), Err(FormatError::Damaged(_))));

    let census = lod(&*dataset, 0).census().unwrap().unwrap();
    assert_eq!(census.counts, BrickCounts { total: 3, stored: 1, constant: 1, missing: 1 });
    assert_eq!((census.codec, &census.native["damaged"]), ("raw", &0.into()));
}

#[test]
fn damaged_entries_are_errors_of_their_bricks_alone() {
    let mut file = three_levels();
    let end = file.build().len() as u64;
    file.entries[3..].copy_from_slice(&[0x9000_0000_0000_1000, end - 1023, COMPRESSED | 5]);
    let dataset = open(file.build()).unwrap();
    assert_eq!(why(&*dataset, [0; 3]), "brick entry 0x9000000000001000 has an unknown kind");
    let text = format!("brick at byte {} ends beyond the end of the file ({end} bytes)", end - 1023);
    assert_eq!(why(&*dataset, [1, 0, 0]), text);
    assert_eq!(why(&*dataset, [2, 0, 0]), "brick entry 0xc000000000000005 is compressed, in a file of int16");
    let census = lod(&*dataset, 0).census().unwrap().unwrap();
    assert_eq!(census.counts, BrickCounts { total: 3, ..BrickCounts::default() });
    assert_eq!(census.native["damaged"], 3);
    file.entries[3..].copy_from_slice(&[end, u64::MAX >> 1, 2]);
    let dataset = open(file.build()).unwrap();
    let text = format!("brick at byte {end} begins beyond the end of the file ({end} bytes)");
    assert_eq!(why(&*dataset, [0; 3]), text);
    assert!(brick(&*dataset, [1, 0, 0]).is_err());
    assert!(matches!(brick(&*dataset, [2, 0, 0]), Ok(Brick::Plain(_))));
}

#[test]
fn levels_that_were_never_written_are_not_shown() {
    let levels = |entries: [u64; 6]| {
        let mut file = three_levels();
        file.entries = entries.to_vec();
        let dataset = open(file.build()).unwrap();
        (dataset.layers()[0].levels.len(), dataset.info().warnings.len())
    };
    assert_eq!(levels([0, 1, 1, 0, 0, 1]), (1, 1));
    assert_eq!(levels([0, 1, 1, 0, 0, 0]), (3, 0));
    assert_eq!(levels([1, 0, 0, 1, 1, 1]), (3, 0));
}

#[test]
fn version_1_has_swapped_numbers_and_tiles() {
    let mut file = Handmade::new(1, 0, [60, 64, 130], [64; 3], &[1, CONSTANT | 3, 0, 1, 0, 0]);
    (file.alpha, file.body) = (3, Noise(5).bytes(64 * 64 * 64 + 1));
    file.entries[4] = file.body_at() + 1;
    let dataset = open(file.build()).unwrap();
    assert_eq!(brick(&*dataset, [0, 0, 0]), Ok(Brick::Constant(Element::zero(1))));
    assert_eq!(brick(&*dataset, [0, 0, 2]), Ok(Brick::Constant(Element::new(&[(-100i8) as u8]))));
    let coded = coded(brick(&*dataset, [0, 0, 1]).unwrap());
    assert_eq!((coded.offset, coded.length.most()), (file.body_at() + 1, 64 * 64 * 64));
    let mut out = vec![0; coded.decoded];
    lod(&*dataset, 0).decode(&coded, &file.body[1..], &mut out).unwrap();
    // (i, j, k) = (9, 18, 27)
    assert_eq!(out[(9 * 64 + 18) * 64 + 27], file.body[1 + (((8 + 2) * 8 + 1) * 8 + 2) * 64 + 27]);
    assert!(lod(&*dataset, 0).decode(&coded, &file.body, &mut out).is_err());

    let info = dataset.info();
    assert_eq!(info.statistics.unwrap().count, None);
    assert_eq!(info.histogram.as_ref().unwrap().count, 256);
    assert_eq!(info.native["units"]["hunitname"], "ft");
    assert_eq!(info.native["codingrange_file"], serde_json::json!([-28.0, 227.0]));
}

/// Builds two compressed bricks of float32, the second before the first, with `gap` bytes between them.
fn compressed(gap: usize) -> Handmade {
    const SHAPE: [i32; 3] = [4, 8, 16];
    let mut file = Handmade::new(4, 6, [8, 8, 16], SHAPE, &[1, 0, 0]);
    let first = [zfp_header(SHAPE, 2176), vec![0; 4]].concat();
    let second = [zfp_header(SHAPE, 2048 + 11), Noise(3).bytes(3000)].concat();
    file.entries[2] = COMPRESSED | file.body_at();
    file.entries[1] = COMPRESSED | (file.body_at() + (first.len() + gap) as u64);
    file.body = [first, vec![7; gap], second].concat();
    file
}

#[test]
fn compressed_bricks_end_where_the_next_one_begins() {
    let file = compressed(3);
    let dataset = open(file.build()).unwrap();
    let array = lod(&*dataset, 0);
    let blocks = |at: [u64; 3]| array.brick(&at.into(), Blocking::No).err().is_some_and(|e| e.would_block());
    assert!(blocks([0; 3])); // the order of offsets is not known yet
    let before = coded(brick(&*dataset, [1, 0, 0]).unwrap());
    let last = coded(brick(&*dataset, [0, 0, 0]).unwrap());
    assert!(!blocks([0; 3]));
    assert_eq!((before.offset, before.length.most()), (file.body_at(), 16 + 3));
    // the last one may have as many bytes as its samples
    assert_eq!((last.offset, last.length.most(), last.decoded), (file.body_at() + 16 + 3, 4 * 8 * 16 * 4, 2048));
    for coded in [&before, &last] {
        let mut out = vec![1; coded.decoded];
        let mut stored = vec![0; coded.length.most() as usize];
        array.source().read_at("", coded.offset, &mut stored, Blocking::Yes).unwrap();
        array.decode(coded, &stored, &mut out).unwrap();
        assert_eq!(out.iter().all(|byte| *byte == 0), coded == &before);
    }
    assert_eq!(array.census().unwrap().unwrap().codec, "zfp");
}

#[test]
fn compressed_bricks_without_room_are_damaged() {
    let mut file = compressed(0);
    file.entries[1] = COMPRESSED | (file.body_at() + 12);
    let dataset = open(file.build()).unwrap();
    let text = format!("compressed brick at byte {} has only 12 bytes", file.body_at());
    assert_eq!(why(&*dataset, [1, 0, 0]), text);
    let coded = coded(brick(&*dataset, [0, 0, 0]).unwrap());
    let stored = vec![0; coded.length.most() as usize];
    let error = lod(&*dataset, 0).decode(&coded, &stored, &mut vec![0; coded.decoded]).unwrap_err();
    assert_eq!(error.to_string(), format!("brick at byte {}: it does not begin with \"zfp\"", coded.offset));
}

#[test]
fn errors_name_the_damaged_part_of_a_header() {
    let good = three_levels().build();
    let with = |at: usize, bytes: &[u8]| {
        let mut bad = good.clone();
        bad[at..at + bytes.len()].copy_from_slice(bytes);
        refusal(bad)
    };
    assert_eq!(with(0, b"VCS\0"), "old compressed ZGY is not supported");
    assert_eq!(with(0, b"SEGY"), "not a ZGY file");
    assert_eq!(with(4, &[5]), "unsupported ZGY version 5");
    assert_eq!(with(9 + 12, &[7]), "unsupported sample type 7 (IBM float)");
    assert_eq!(with(9, &[60]), "damaged: brick size 60 x 8 x 8");
    assert_eq!(with(9 + 94, &[0]), "damaged: survey size 0 x 8 x 7");
    assert_eq!(with(9 + 333, &[255; 4]), "truncated in the string list");
    assert_eq!(with(9 + 94, &[255, 255, 255, 127]), "truncated in the alpha table");
    assert_eq!(with(9 + 102, &[0, 255, 255, 1]), "truncated in the brick table");
    let truncated = |length: usize| refusal(good[..length].to_vec());
    assert_eq!(truncated(7), "not a ZGY file (too short)");
    assert_eq!(truncated(300), "truncated in the info header");
    assert_eq!(truncated(350), "truncated in the string list");
    assert_eq!(truncated(500), "truncated in the histogram");
    assert!(Zgy.is_file(b"VBS\0\x03\0\0\0") && Zgy.is_file(b"VCS\0") && !Zgy.is_file(b"VBS"));
}

#[test]
fn offsets_of_version_1_are_checked() {
    let good = Handmade::new(1, 0, [8, 8, 8], [64; 3], &[0]).build();
    assert!(open(good.clone()).is_ok());
    for (at, part) in [(8, "info header"), (16, "alpha table"), (24, "brick table"), (32, "histogram")] {
        let mut bad = good.clone();
        bad[at..at + 8].fill(0xff);
        assert_eq!(refusal(bad), format!("damaged: offset of the {part} outside the file"));
    }
}
