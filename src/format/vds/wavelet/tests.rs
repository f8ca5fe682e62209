//! Whole chunks, written by the reference library (`scripts/make_vds_wavelet_fixtures.py`), and damaged ones.

use std::path::Path;

use proptest::prelude::*;
use serde_json::Value;

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
                dtype: match of["sample"].as_str() {
                    Some("F32") => Dtype::Float32,
                    Some("U8") => Dtype::UInt8,
                    _ => Dtype::UInt16,
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

fn decoded(chunk: &[u8], expected: &Expected, level: Option<u8>, scratch: &mut Scratch) -> Result<Vec<u8>, String> {
    // the buffer's old content must not matter
    let mut out = vec![0xa5; expected.size.iter().product::<usize>() * expected.dtype.size()];
    decode(chunk, expected, level, scratch, &mut out).map(|()| out)
}

fn crc(bytes: &[u8]) -> u32 {
    libdeflater::crc32(bytes)
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
    assert_eq!(error(0, 0xa2), "wavelet version 674 is not known (671 to 673 are)");
    assert_eq!(error(0, 0x9e), "wavelet version 670 is not known (671 to 673 are)");
    let length = case.chunk.len();
    let total = format!("the header says {} bytes, there are {length}", length ^ 1);
    assert_eq!(error(4, case.chunk[4] ^ 1), total);
    assert_eq!(error(8, 21), "the header says [21, 18, 17] samples, not [20, 18, 17]");
    assert_eq!(error(20, 2), "the header says [20, 18, 17] samples, not [20, 18, 17]");
    let is_of_flags =
        |error: String| error.starts_with("the flags 0x") && error.ends_with(" do not fit the sample format");
    assert!([0, 4].iter().all(|dims| is_of_flags(error(20, *dims))));
    assert!([11, 19].iter().all(|flags| is_of_flags(error(21, *flags))));
    let other = Expected { dtype: Dtype::Float32, ..case.expected };
    assert!(decoded(&case.chunk, &other, None, &mut Scratch::default()).is_err_and(is_of_flags));
    let mut out = vec![0; 20 * 18 * 17 + 1];
    let request = decode(&case.chunk, &case.expected, None, &mut Scratch::default(), &mut out);
    assert_eq!(request, Err("a chunk of [20, 18, 17] samples cannot be decoded into 6121 bytes".into()));
    let long = Expected { size: [513, 1, 1], ..case.expected };
    let refused = decoded(&case.chunk, &long, None, &mut Scratch::default()).unwrap_err();
    assert_eq!(refused, "a chunk of [513, 1, 1] samples cannot be decoded into 513 bytes");
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
    let all = cases();
    let mut used = Scratch::default();
    for other in &all {
        decoded(&other.chunk, &other.expected, None, &mut used).unwrap();
    }
    let case = all.iter().find(|case| case.name == "plain").unwrap();
    let stream = ChunkParts::read(&case.chunk, &case.expected, false).unwrap().stream.as_ptr().addr()
        - case.chunk.as_ptr().addr();
    let mut with = |at: usize, bytes: &[u8]| {
        let mut chunk = case.chunk.clone();
        chunk[at..at + bytes.len()].copy_from_slice(bytes);
        let error = decoded(&chunk, &case.expected, None, &mut Scratch::default()).unwrap_err();
        let later = decoded(&chunk, &case.expected, None, &mut used).unwrap_err();
        assert_eq!(later, error, "after chunks that need more memory");
        error
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
        before in 0usize..29,
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
        prop_assert!(scratch.bytes() <= working_set(case.expected.size));
        // the outcome does not depend on what was decoded before
        let other = &cases[before % cases.len()];
        prop_assert!(decoded(&other.chunk, &other.expected, None, &mut scratch).is_ok());
        prop_assert!(decoded(&chunk, &case.expected, level, &mut scratch) == first);
    }
}

#[test]
fn levels_are_parts_of_the_one_below() {
    let mut table = [0; 16];
    table[..3].copy_from_slice(&[255, 128, 100]);
    assert_eq!(
        [None, Some(0), Some(1), Some(2), Some(3)].map(|l| bytes_needed(&table, 1000, l)),
        [1000, 1000, 501, 196, 196]
    );
    assert_eq!(bytes_needed(&[255; 16], u64::MAX, Some(255)), u64::MAX);
    assert_eq!(bytes_needed(&[1; 16], 1 << 20, Some(15)), 0);
}

#[test]
fn large_memory_is_freed_when_no_decoder_runs() {
    let grown = |scratch: &mut Scratch| grow_to(&mut scratch.coefficients, MAX_IDLE_BYTES / 4).unwrap();
    with_scratch(|one| {
        with_scratch(|other| (grown(one), grown(other)));
        assert!(POOL.lock().0 >= 1);
    });
    let pool = POOL.lock();
    assert!(pool.0 > 0 || pool.1.iter().map(Scratch::bytes).sum::<usize>() <= MAX_IDLE_BYTES);
}

/// The test chunks of OpenVDS, which may not be redistributed: `VOLFS_VDS_REFERENCE` names the folder that has them
/// (`tests/VDS` of the OpenVDS source tree). `VOLFS_VDS_REFERENCE=... cargo test --lib wavelet -- --ignored`
mod reference {
    use std::path::PathBuf;

    use super::*;

    fn folder() -> PathBuf {
        PathBuf::from(
            std::env::var_os("VOLFS_VDS_REFERENCE").expect("VOLFS_VDS_REFERENCE names the folder of chunk.* files"),
        )
    }

    fn expected(dtype: Dtype, lossless: bool) -> Expected {
        let span = 2.0 * 0.078_838_12f32;
        let scale = match dtype {
            Dtype::Float32 => 1.0,
            Dtype::UInt8 => span / 255.0,
            _ => span / 65_535.0,
        };
        Expected { size: [100; 3], dtype, no_value: None, scale, offset: -span / 2.0, normalized: false, lossless }
    }

    /// Returns the CRCs of the reconstructed floats, and of the samples.
    fn crcs(chunk: &[u8], expected: &Expected, level: Option<u8>) -> [u32; 2] {
        let mut scratch = Scratch::default();
        let parts = ChunkParts::read(chunk, expected, level.is_some()).unwrap();
        let mut floats = Vec::new();
        reconstruct(&parts, expected, level, &mut scratch, |row| {
            floats.extend(row.iter().flat_map(|v| v.to_le_bytes()))
        })
        .unwrap();
        let mut out = vec![0; expected.size.iter().product::<usize>() * expected.dtype.size()];
        decode(chunk, expected, level, &mut scratch, &mut out).unwrap();
        [crc(&floats), crc(&out)]
    }

    #[test]
    #[ignore = "needs the reference library's test chunks"]
    fn the_best_quality_equals_the_uncompressed_chunk() {
        let f32_ = expected(Dtype::Float32, true);
        let no_value = Expected { size: [28, 32, 32], no_value: Some(44.5), ..f32_ };
        let cases = [
            ("CompressionMethod_WaveletLossless", "CompressionMethod_None", f32_),
            ("CompressionMethod_WaveletLossless_1_6", "CompressionMethod_None", f32_),
            ("U8.CompressionMethod_WaveletLossless", "U8.CompressionMethod_None", expected(Dtype::UInt8, true)),
            ("U8.CompressionMethod_WaveletLossless_1_6", "U8.CompressionMethod_None", expected(Dtype::UInt8, true)),
            ("U16.CompressionMethod_WaveletLossless", "U16.CompressionMethod_None", expected(Dtype::UInt16, true)),
            ("U16.CompressionMethod_WaveletLossless_1_6", "U16.CompressionMethod_None", expected(Dtype::UInt16, true)),
            (
                "1082.CompressionMethod_WaveletLossless",
                "1082.CompressionMethod_None",
                Expected { size: [64, 64, 1], ..f32_ },
            ),
            (
                "1255.CompressionMethod_WaveletLossless",
                "1255.CompressionMethod_None",
                Expected { size: [64, 29, 1], ..f32_ },
            ),
            (
                "Dimensions_012LOD0_19_CompressionMethod_WaveletLossless_no_value",
                "Dimensions_012LOD0_19_CompressionMethod_None_no_value",
                no_value,
            ),
        ];
        let mut scratch = Scratch::default();
        for (coded, plain, expected) in cases {
            let [coded, plain] =
                [coded, plain].map(|name| std::fs::read(folder().join(format!("chunk.{name}"))).unwrap());
            let mut out = vec![0; plain.len() - 24];
            decode(&coded, &expected, None, &mut scratch, &mut out).unwrap();
            assert!(out == plain[24..]);
        }
    }

    #[test]
    #[ignore = "needs the reference library's test chunks"]
    fn lower_levels_have_known_crcs() {
        let chunk = |name: &str| std::fs::read(folder().join(format!("chunk.{name}"))).unwrap();
        let f32_ = expected(Dtype::Float32, true);
        for suffix in ["", "_1_6"] {
            let lossy = chunk(&format!("CompressionMethod_Wavelet{suffix}"));
            for (level, crc) in [(0, 0x5b14_d56b), (1, 0xed1f_40d5), (3, 0x76b7_c723)] {
                assert_eq!(crcs(&lossy, &expected(Dtype::Float32, false), Some(level)), [crc; 2], "{level}");
            }
            let lossless = chunk(&format!("CompressionMethod_WaveletLossless{suffix}"));
            for (level, crc) in [(0, 0x7eb1_5489), (3, 0xebbc_0d87)] {
                assert_eq!(crcs(&lossless, &f32_, Some(level)), [crc; 2], "{level}");
            }
            let u16_ = chunk(&format!("U16.CompressionMethod_Wavelet{suffix}"));
            assert_eq!(crcs(&u16_, &expected(Dtype::UInt16, false), None), [0x6fde_b410, 0xcf14_8b14]);
            let u16_ = chunk(&format!("U16.CompressionMethod_WaveletLossless{suffix}"));
            assert_eq!(crcs(&u16_, &expected(Dtype::UInt16, true), Some(0)), [0x05d3_f686, 0x690d_1083]);
            assert_eq!(crcs(&u16_, &expected(Dtype::UInt16, true), Some(3)), [0xb587_7fbd, 0xd316_1301]);
            let u8_ = chunk(&format!("U8.CompressionMethod_Wavelet{suffix}"));
            assert_eq!(crcs(&u8_, &expected(Dtype::UInt8, false), Some(0)), [0x53e0_e571, 0xbc9b_e60d]);
            let u8_ = chunk(&format!("U8.CompressionMethod_WaveletLossless{suffix}"));
            assert_eq!(crcs(&u8_, &expected(Dtype::UInt8, true), Some(0)), [0x3de4_e9da, 0x3a82_2412]);
            assert_eq!(crcs(&u8_, &expected(Dtype::UInt8, true), Some(3)), [0x3eb9_e278, 0x00fd_b92a]);
        }
        let small = [
            ("1082.CompressionMethod_WaveletLossless", [64, 64, 1], None, 0x8747_c23f),
            ("1255.CompressionMethod_WaveletLossless", [64, 29, 1], None, 0xf3b3_9592),
            ("Dimensions_012LOD0_19_CompressionMethod_WaveletLossless_no_value", [28, 32, 32], Some(44.5), 0x06ce_03f9),
        ];
        for (name, size, no_value, crc) in small {
            assert_eq!(crcs(&chunk(name), &Expected { size, no_value, ..f32_ }, Some(0)), [crc; 2], "{name}");
        }
    }

    #[test]
    #[ignore = "needs the reference library's test chunks"]
    fn a_prefix_is_enough_below_the_best_quality() {
        let f32_ = expected(Dtype::Float32, true);
        let chunk = std::fs::read(folder().join("chunk.CompressionMethod_WaveletLossless_1_6")).unwrap();
        let parts = ChunkParts::read(&chunk, &f32_, true).unwrap();
        let end = parts.stream.as_ptr_range().end.addr() - chunk.as_ptr().addr();
        assert_eq!(crcs(&chunk[..end], &f32_, Some(0)), [0x7eb1_5489; 2]);
        let error = |level| decode(&chunk[..end - 1], &f32_, level, &mut Scratch::default(), &mut vec![0; 4_000_000]);
        assert_eq!(error(Some(0)), Err("the data ends within the values of level 0".into()));
        assert_eq!(error(Some(1)), Ok(()));
        let total = format!("the header says {} bytes, there are {}", chunk.len(), end - 1);
        assert_eq!(error(None), Err(total));
    }
}
