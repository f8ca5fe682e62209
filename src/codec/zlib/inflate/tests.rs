use std::io::Write;

use flate2::Compression;
use flate2::write::ZlibEncoder;
use libdeflater::Decompressor;
use proptest::prelude::*;

use super::*;

/// A sequence of numbers that look random.
fn numbers(seed: u64) -> impl Iterator<Item = u64> {
    let mut state = seed;
    std::iter::repeat_with(move || {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (state ^ state >> 31).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 20
    })
}

/// What bytes are like.
#[derive(Clone, Copy, Debug)]
enum Kind {
    /// Numbers of 4 bytes, each within a factor of 16 of the others.
    Floats,
    /// A byte is half as likely as the one before: codes of all lengths.
    Skewed,
    /// All bytes are as likely.
    Even(u8),
}

/// Bytes of a kind, in which a run of earlier ones is repeated `repeats` times.
fn bytes(kind: Kind, length: usize, repeats: usize, seed: u64) -> Vec<u8> {
    let mut numbers = numbers(seed);
    let mut next = || numbers.next().unwrap();
    let mut bytes = Vec::with_capacity(length + 4);
    while bytes.len() < length {
        match kind {
            Kind::Floats => {
                let sample = next() as u32 as f32 / u32::MAX as f32 * 15.0 + 1.0;
                bytes.extend(sample.to_le_bytes());
            }
            Kind::Skewed => bytes.push((next().trailing_zeros() as u8).wrapping_mul(37)),
            Kind::Even(most) => bytes.push((next() % (u64::from(most) + 1)) as u8),
        }
    }
    bytes.truncate(length);
    for _ in 0..repeats {
        let run = 3 + next() as usize % 300;
        let from = next() as usize % length.saturating_sub(2 * run).max(1);
        let to = from + run + next() as usize % length.saturating_sub(from + 2 * run).max(1);
        if to + run <= length {
            bytes.copy_within(from..from + run, to);
        }
    }
    bytes
}

fn compressed(bytes: &[u8], level: u32) -> Vec<u8> {
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::new(level));
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

/// Decodes deflate data without a checksum, whatever they are: the number of their bytes.
fn ours(stored: &[u8], out: &mut [u8]) -> Option<usize> {
    let mut output = Output::new(out);
    let mut decoder = Decoder { lanes: Lanes::new(), codes: Box::new(Codes::new()) };
    deflate(stored, 0, &mut output, &mut decoder)?;
    Some(output.filled())
}

fn kinds() -> impl Strategy<Value = Kind> {
    prop_oneof![Just(Kind::Floats), Just(Kind::Skewed), any::<u8>().prop_map(Kind::Even)]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn streams_are_decoded_as_by_libdeflate(
        kind in kinds(), length in 0usize..200_000, repeats in 0usize..100, seed: u64, level in 0u32..10,
    ) {
        let bytes = bytes(kind, length, repeats, seed);
        let stream = compressed(&bytes, level);
        let mut out = vec![1; length];
        if decode(&stream, &mut out) {
            prop_assert_eq!(&out, &bytes);
        }
        prop_assert!(!decode(&stream, &mut vec![1; length + 1]));
        if length > 0 {
            prop_assert!(!decode(&stream, &mut vec![1; length - 1]));
        }
    }

    #[test]
    fn damaged_data_are_decoded_as_by_libdeflate_or_not_at_all(
        kind in kinds(), length in 3000usize..60_000, repeats in 0usize..20, seed: u64, level in 1u32..10,
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..3),
        cut in prop::option::of(any::<prop::sample::Index>()),
    ) {
        let stream = compressed(&bytes(kind, length, repeats, seed), level);
        let mut data = stream[2..stream.len() - 4].to_vec();
        for (at, value) in changes {
            let at = at.index(data.len());
            data[at] = value;
        }
        if let Some(cut) = cut {
            data.truncate(cut.index(data.len() + 1));
        }
        // changes may make it longer
        let room = 2 * length;
        let (mut out, mut expected) = (vec![1; room], vec![2; room]);
        let wanted = Decompressor::new().deflate_decompress(&data, &mut expected).ok();
        if let Some(filled) = ours(&data, &mut out) {
            prop_assert_eq!(Some(filled), wanted);
            prop_assert_eq!(&out[..filled], &expected[..filled]);
        }
    }
}

#[test]
fn samples_are_decoded_here_and_text_is_not() {
    for level in [1, 6, 9] {
        for length in [4000, 40_000, 1 << 20] {
            for kind in [Kind::Floats, Kind::Even(200), Kind::Even(255)] {
                let samples = bytes(kind, length, 20, 3);
                let mut out = vec![0; length];
                assert!(decode(&compressed(&samples, level), &mut out) && out == samples, "{kind:?} {level} {length}");
            }
        }
        let words = ["seismic ", "volume ", "brick ", "layer ", "sample "];
        let text: Vec<u8> = numbers(5).take(40_000).flat_map(|n| words[n as usize % words.len()].bytes()).collect();
        assert!(!decode(&compressed(&text, level), &mut vec![0; text.len()]));
    }
}

#[test]
fn a_checksum_or_header_that_is_wrong_is_found() {
    let samples = bytes(Kind::Floats, 30_000, 0, 9);
    let stream = compressed(&samples, 6);
    let mut out = vec![0; samples.len()];
    assert!(decode(&stream, &mut out));
    // bytes behind the stream belong to others
    assert!(decode(&[&stream[..], &[1, 2, 3]].concat(), &mut out));
    for (at, bits) in [(0, 1), (0, 0x80), (1, 0x20), (1, 1), (stream.len() - 1, 1), (stream.len() - 4, 0x80)] {
        let mut changed = stream.clone();
        changed[at] ^= bits;
        assert!(!decode(&changed, &mut out), "{at}");
    }
    for cut in 1..9 {
        assert!(!decode(&stream[..stream.len() - cut], &mut out));
    }
}

#[test]
fn streams_of_short_blocks_are_left_to_others() {
    // blocks of 10 bits: their kind, and their end
    let mut data = vec![0; 5000];
    for block in 0..data.len() * 8 / 10 {
        data[(10 * block + 1) / 8] |= 1 << ((10 * block + 1) % 8);
    }
    let last = data.len() * 8 / 10 - 1;
    data[10 * last / 8] |= 1 << (10 * last % 8);
    assert_eq!(Decompressor::new().deflate_decompress(&data, &mut [0; 10]), Ok(0));
    assert_eq!(ours(&data, &mut []), None);
    // as many as are few
    data.drain(..5 * (last / 4));
    assert_eq!(ours(&data, &mut []), Some(0));
}
