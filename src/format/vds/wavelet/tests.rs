//! Whole chunks, written by the reference library (`scripts/make_vds_wavelet_fixtures.py`), and damaged ones.

use std::path::Path;

use proptest::prelude::*;
use serde_json::Value;

use super::adaptive_levels::ADAPTIVE_LEVELS;
use super::error::WaveletError;
use super::header::ChunkParts;
use super::*;

/// A chunk, and the CRCs of its samples as the reference library decodes them.
struct Case {
    name: String,
    chunk: Vec<u8>,
    expected: Expected,
    table: [u8; 16],
    best: u32,
    levels: Vec<(u8, u32)>,
}

fn cases() -> Vec<Case> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/wavelet");
    let known: Value = serde_json::from_slice(&std::fs::read(folder.join("expected.json")).unwrap()).unwrap();
    let cases = known.as_object().unwrap().iter().map(|(name, of)| {
        let number = |v: &Value| v.as_u64().unwrap();
        let float = |key: &str| of[key].as_f64().unwrap() as f32;
        let mut numbers = of["size"].as_array().unwrap().iter().map(|n| number(n) as usize);
        let mut table = of["table"].as_array().unwrap().iter().map(|n| number(n) as u8);
        Case {
            name: name.clone(),
            chunk: std::fs::read(folder.join(format!("{name}.chunk"))).unwrap(),
            expected: Expected {
                size: std::array::from_fn(|_| numbers.next().unwrap()),
                sample: match of["sample"].as_str() {
                    Some("F32") => Sample::F32,
                    Some("U8") => Sample::U8,
                    _ => Sample::U16,
                },
                no_value: of["no_value"].as_f64().map(|v| v as f32),
                scale: float("scale"),
                offset: float("offset"),
                normalized: of["normalized"].as_bool().unwrap(),
                lossless: of["lossless"].as_bool().unwrap(),
            },
            table: std::array::from_fn(|_| table.next().unwrap()),
            best: number(&of["best"]) as u32,
            levels: of["levels"]
                .as_object()
                .unwrap()
                .iter()
                .map(|(l, v)| (l.parse().unwrap(), number(v) as u32))
                .collect(),
        }
    });
    cases.collect()
}

fn decoded(
    chunk: &[u8],
    expected: &Expected,
    level: Option<u8>,
    scratch: &mut Scratch,
) -> Result<Vec<u8>, WaveletError> {
    // the buffer's old content must not matter
    let mut out = vec![0xa5; expected.size.iter().product::<usize>() * expected.sample.bytes()];
    decode(chunk, expected, level, scratch, &mut out).map(|()| out)
}

fn crc(bytes: &[u8]) -> u32 {
    let mut crc = flate2::Crc::new();
    crc.update(bytes);
    crc.sum()
}

#[test]
fn chunks_decode_as_by_the_reference_library() {
    let mut scratch = Scratch::default();
    for case in cases() {
        let out = decoded(&case.chunk, &case.expected, None, &mut scratch).unwrap();
        assert_eq!(crc(&out), case.best, "{}", case.name);
        for (level, known) in &case.levels {
            let out = decoded(&case.chunk, &case.expected, Some(*level), &mut scratch).unwrap();
            assert_eq!(crc(&out), *known, "{} at level {level}", case.name);
        }
    }
}

#[test]
fn a_prefix_decodes_like_the_whole_chunk() {
    let mut scratch = Scratch::default();
    for case in cases() {
        let whole = case.chunk.len() as u64;
        assert_eq!(bytes_needed(&case.table, whole, None), whole);
        for level in 0..ADAPTIVE_LEVELS {
            let part = bytes_needed(&case.table, whole, Some(level)) as usize;
            let found = decoded(&case.chunk[..part], &case.expected, Some(level), &mut scratch);
            let known = decoded(&case.chunk, &case.expected, Some(level), &mut scratch).unwrap();
            assert!(found.unwrap() == known, "{} at level {level}", case.name);
        }
    }
}

#[test]
fn a_truncated_chunk_is_an_error() {
    let mut scratch = Scratch::default();
    for case in cases() {
        for part in 0..case.chunk.len() {
            // the length in the header reveals the truncation, so it is adjusted in some of the cases
            let mut chunk = case.chunk[..part].to_vec();
            assert!(decoded(&chunk, &case.expected, None, &mut scratch).is_err(), "{} at {part}", case.name);
            if part > 24 && part % 7 == 0 && part + 4 < case.chunk.len() {
                chunk[4..8].copy_from_slice(&(part as i32).to_le_bytes());
                assert!(decoded(&chunk, &case.expected, None, &mut scratch).is_err(), "{} at {part}", case.name);
            }
        }
    }
}

#[test]
fn scratch_memory_stays_within_the_working_set() {
    for case in cases() {
        let mut scratch = Scratch::default();
        decoded(&case.chunk, &case.expected, None, &mut scratch).unwrap();
        let used = scratch.bytes();
        assert!(used <= working_set(case.expected.size), "{}: {used}", case.name);
    }
    for size in [[128; 3], [64; 3], [512, 512, 1], [512, 1, 1], [1, 1, 512], [512, 2, 2], [128, 128, 5], [2, 512, 512]]
    {
        let samples: usize = size.iter().product();
        assert!(working_set(size) <= 20 * samples + (512 << 10), "{size:?}");
    }
}

#[test]
fn headers_that_do_not_fit_are_refused() {
    let case = cases().into_iter().find(|case| case.name == "u8-lossless").unwrap();
    let error = |at: usize, byte: u8| {
        let mut chunk = case.chunk.clone();
        chunk[at] = byte;
        decoded(&chunk, &case.expected, None, &mut Scratch::default()).unwrap_err()
    };
    assert_eq!(error(0, 0xa2), WaveletError::Version(674));
    assert_eq!(error(0, 0x9e), WaveletError::Version(670));
    assert!(matches!(error(4, case.chunk[4] ^ 1), WaveletError::Total { .. }));
    assert_eq!(error(8, 21), WaveletError::Size { announced: [21, 18, 17], wanted: [20, 18, 17] });
    assert!(matches!(error(20, 2), WaveletError::Size { .. }));
    assert!([0, 4].iter().all(|dims| matches!(error(20, *dims), WaveletError::Flags(_))));
    assert!([11, 19].iter().all(|flags| matches!(error(21, *flags), WaveletError::Flags(_))));
    let other = Expected { sample: Sample::F32, ..case.expected };
    assert!(matches!(decoded(&case.chunk, &other, None, &mut Scratch::default()), Err(WaveletError::Flags(_))));
    let mut out = vec![0; 20 * 18 * 17 + 1];
    let request = decode(&case.chunk, &case.expected, None, &mut Scratch::default(), &mut out);
    assert_eq!(request, Err(WaveletError::Request([20, 18, 17], out.len())));
    let long = Expected { size: [513, 1, 1], ..case.expected };
    assert!(matches!(decoded(&case.chunk, &long, None, &mut Scratch::default()), Err(WaveletError::Request(..))));
}

#[test]
fn a_chunk_of_its_header_alone_is_zero() {
    let case = cases().into_iter().find(|case| case.name == "u8-normalized").unwrap();
    let mut chunk = case.chunk[..24].to_vec();
    chunk[4..8].copy_from_slice(&24i32.to_le_bytes());
    let expected = Expected { scale: 0.0125, offset: -1.0, ..case.expected };
    let out = decoded(&chunk, &expected, None, &mut Scratch::default()).unwrap();
    assert!(out.iter().all(|code| *code == 80));
}

#[test]
fn errors_name_the_damaged_part() {
    let case = cases().into_iter().find(|case| case.name == "plain").unwrap();
    let stream = ChunkParts::read(&case.chunk, &case.expected, false).unwrap().stream.as_ptr().addr()
        - case.chunk.as_ptr().addr();
    let with = |at: usize, bytes: &[u8]| {
        let mut chunk = case.chunk.clone();
        chunk[at..at + bytes.len()].copy_from_slice(bytes);
        decoded(&chunk, &case.expected, None, &mut Scratch::default()).unwrap_err().to_string()
    };
    assert_eq!(with(24, &[0; 4]), "0 is no length for the zero runs");
    assert_eq!(with(24, &i32::MAX.to_le_bytes()), "the data ends within the zero runs");
    assert!(with(stream - 12, &0f32.to_le_bytes()).starts_with("thresholds 0 and "));
    assert!(with(stream - 12, &f32::NAN.to_le_bytes()).starts_with("thresholds NaN and "));
    assert!(with(stream - 8, &f32::INFINITY.to_le_bytes()).ends_with(" and inf make no sense"));
    assert!(with(stream - 12, &f32::from_bits(1).to_le_bytes()).contains(" of level "));
    assert_eq!(with(stream - 4, &2150i32.to_le_bytes()), "the data ends within the tree of level 17");
    // the counts of level 0
    assert!(with(stream, &4096i32.to_le_bytes()).ends_with(" blocks, the counts say 4096"));
    assert!(with(stream, &1000i32.to_le_bytes()).ends_with(" has more entries than the counts say"));
    assert_eq!(with(stream, &100_000i32.to_le_bytes()), "the counts announce 800000 entries of 32768 samples");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn damage_never_panics(
        which in 0usize..29,
        places in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
        level in 0u8..20,
    ) {
        let cases = cases();
        let case = &cases[which % cases.len()];
        let mut chunk = case.chunk.clone();
        for (place, byte) in places {
            // the header's own fields are refused at once
            let at = 24 + place.index(chunk.len() - 24);
            chunk[at] = byte;
        }
        let mut scratch = Scratch::default();
        let level = Some(level).filter(|l| *l < 16);
        let first = decoded(&chunk, &case.expected, level, &mut scratch);
        // the outcome does not depend on what was decoded before
        prop_assert!(decoded(&chunk, &case.expected, level, &mut scratch) == first);
        prop_assert!(scratch.bytes() <= working_set(case.expected.size));
    }
}
