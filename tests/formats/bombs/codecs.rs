//! Streams that expand to far more than their bricks hold, and streams that say so.

use std::io::Write;

use crate::codec::inflate::{self, ZlibError};
use crate::codec::{lz4, zfp};
use crate::format::vds::fuzz_entry;
use crate::format::vds::wavelet::{self, Expected, Sample, Scratch};
use flate2::Compression;
use flate2::write::ZlibEncoder;

use super::within;
use crate::fuzz::allocations::measure;
use crate::test_support::handmade::zfp_header;

/// Memory that a decoder may take besides its output: tables, and the text of an error.
const TABLES: u64 = 256 << 10;

#[test]
fn zlib_streams_of_zeros() {
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::best());
    let zeros = vec![0; 1 << 20];
    (0..64).for_each(|_| encoder.write_all(&zeros).unwrap());
    let stream = encoder.finish().unwrap();
    assert!(stream.len() < 80_000);
    for length in [0, 1, 4096, 65_535] {
        let mut out = vec![1; length];
        let error = within(TABLES, || inflate::decode(&stream, &mut out)).unwrap_err();
        assert_eq!(error, ZlibError::TooMany(length));
    }
    // a stream that ends where it should, and one that never ends
    let endless = &stream[..stream.len() - 5];
    assert!(within(TABLES, || inflate::decode(endless, &mut [0; 4096])).is_err());
}

#[test]
fn lz4_blocks_of_one_match() {
    let block = lz4::zeros(64 << 20).unwrap();
    assert!(block.len() < 300_000);
    for length in [0, 1, 4096, 65_535] {
        let mut out = vec![1; length];
        assert!(within(TABLES, || lz4::decode(&block, &mut out)).is_err());
    }
    // lengths that add up beyond 64 bits cannot be written in so few bytes; one that is cut off is refused
    let (literals, matched) = (vec![0xff; 1 << 20], [&[0x1f, 0, 1, 0][..], &[0xff; 1 << 20]].concat());
    assert!(within(TABLES, || lz4::decode(&literals, &mut [0; 4096])).is_err());
    assert!(within(TABLES, || lz4::decode(&matched, &mut [0; 4096])).is_err());
}

#[test]
fn run_lengths_of_the_longest_runs() {
    // each run of ten bytes stands for 16,384 units of 8 bytes
    let runs = [191, 255, 1, 2, 3, 4, 5, 6, 7, 8].repeat(10_000);
    for said in [64, i32::MAX, -1, 16_384 * 8 * 10_000] {
        let head = [12 + runs.len() as i32, said, 8].map(i32::to_le_bytes).concat();
        let packed = [head, runs.clone()].concat();
        assert!(within(TABLES, || fuzz_entry::rle(&packed, &mut [0; 64])).is_err(), "{said}");
    }
}

#[test]
fn zfp_blocks_are_decoded_without_memory_of_their_own() {
    let seeds = concat!(env!("CARGO_MANIFEST_DIR"), "/fuzz/seeds/zfp");
    let mut decoded = 0;
    for seed in std::fs::read_dir(seeds).unwrap() {
        let seed = std::fs::read(seed.unwrap().path()).unwrap();
        // the extents of a valid header, less 1
        let Some(meta) = seed.get(6..14).map(|meta| u64::from_le_bytes(meta.try_into().unwrap())) else { continue };
        let (shape, stream) = ([36, 20, 4].map(|bit| (meta >> bit & 0xffff) + 1), &seed[2..]);
        let bytes = shape.iter().product::<u64>() * 4;
        let mut out = vec![0; usize::try_from(bytes).ok().filter(|bytes| *bytes < 1 << 24).unwrap_or(0)];
        for instructions in [zfp::Instructions::Portable, zfp::Instructions::best()] {
            let (result, allocated) = measure(|| zfp::decode_with(instructions, shape, stream, &mut out));
            assert!(result.is_err() || allocated.count == 0, "{} allocations", allocated.count);
            decoded += u32::from(result.is_ok());
        }
    }
    assert!(decoded > 10, "{decoded}");
}

#[test]
fn zfp_streams_of_another_shape() {
    for shape in [[4, 4, 4], [4096, 4096, 4096], [65_536, 65_536, 65_536], [1, 1, 1]] {
        for mode in [0, 2047, 2176, 4095] {
            let stream = [zfp_header(shape, mode), vec![0xff; 4000]].concat();
            let mut out = vec![0; 4 * 8 * 16 * 4];
            assert!(within(TABLES, || zfp::decode([4, 8, 16], &stream, &mut out)).is_err());
            assert!(within(TABLES, || zfp::decode([4, 4, 4], &stream, &mut out)).is_err());
        }
    }
    // a stream that is said to be long, and is not
    let stream = [zfp_header([64, 64, 64], 2047), vec![0; 100]].concat();
    let mut out = vec![0; 64 * 64 * 64 * 4];
    assert!(within(TABLES, || zfp::decode([64; 3], &stream, &mut out)).is_err());
}

/// Builds a wavelet chunk of 64 x 64 x 64 float32 that has these numbers after its header.
fn chunk(numbers: &[i32], rest: &[u8]) -> Vec<u8> {
    let length = (24 + 4 * numbers.len() + rest.len()) as i32;
    let head = [673, length, 64, 64, 64, 3];
    [head.map(i32::to_le_bytes).concat(), numbers.iter().flat_map(|n| n.to_le_bytes()).collect(), rest.to_vec()]
        .concat()
}

#[test]
fn wavelet_chunks_that_announce_much() {
    let size = [64; 3];
    let expected = Expected {
        size,
        sample: Sample::F32,
        no_value: None,
        scale: 1.0,
        offset: 0.0,
        normalized: false,
        lossless: true,
    };
    let (fine, coarse) = (1f32.to_bits() as i32, 1e30f32.to_bits() as i32);
    let most = i32::MAX;
    // zero runs, NoValue, thresholds, stream, counts of entries
    let chunks: [&[i32]; 9] = [
        &[most],
        &[4, most],
        &[4, -1, fine, coarse, most],
        &[4, -1, 1, coarse, 400, most, most, most, most],
        &[4, -1, fine, coarse, 400, most, most, most, most, most, most],
        &[4, -1, fine, coarse, 400, 262_144, 262_144, 262_144, 262_144],
        &[4, -1, fine, fine, 8, 0, 0, most, most, most, most],
        &[4 + 8, most, 0, -1, fine, fine, 0],
        &[4, 8, 0, most, most, -1, fine, coarse, 100],
    ];
    for (number, numbers) in chunks.into_iter().enumerate() {
        for filler in [0, 0xff, 0xa5] {
            let chunk = chunk(numbers, &vec![filler; 600]);
            let mut out = vec![0; 64 * 64 * 64 * 4];
            let most = wavelet::working_set(size) as u64 + TABLES;
            // whether some of them decode or not: the memory is bounded
            let done = within(most, || wavelet::decode(&chunk, &expected, None, &mut Scratch::default(), &mut out));
            assert!(done.is_err(), "chunk {number} of {filler}");
        }
    }
    // a side that no chunk can have
    let wide = Expected { size: [1 << 20, 1, 1], ..expected };
    let done = within(TABLES, || wavelet::decode(&[0; 24], &wide, None, &mut Scratch::default(), &mut [0; 4]));
    assert!(done.is_err());
}
