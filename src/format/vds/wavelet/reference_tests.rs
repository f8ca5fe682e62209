//! The test chunks of OpenVDS, which may not be redistributed: `VOLFS_VDS_REFERENCE` names the folder that has them
//! (`tests/VDS` of the OpenVDS source tree). `VOLFS_VDS_REFERENCE=... cargo test --lib wavelet -- --ignored`

use std::path::PathBuf;

use super::decode::reconstruct;
use super::error::{ChunkPart, WaveletError};
use super::header::ChunkParts;
use super::*;

fn folder() -> PathBuf {
    PathBuf::from(
        std::env::var_os("VOLFS_VDS_REFERENCE").expect("VOLFS_VDS_REFERENCE names the folder of chunk.* files"),
    )
}

fn expected(sample: Sample, lossless: bool) -> Expected {
    let span = 2.0 * 0.078_838_12f32;
    let scale = match sample {
        Sample::F32 => 1.0,
        Sample::U8 => span / 255.0,
        Sample::U16 => span / 65_535.0,
    };
    Expected { size: [100; 3], sample, no_value: None, scale, offset: -span / 2.0, normalized: false, lossless }
}

fn crc(bytes: &[u8]) -> u32 {
    let mut crc = flate2::Crc::new();
    crc.update(bytes);
    crc.sum()
}

/// Returns the CRCs of the reconstructed floats, and of the samples.
fn crcs(chunk: &[u8], expected: &Expected, level: Option<u8>) -> [u32; 2] {
    let mut scratch = Scratch::default();
    let parts = ChunkParts::read(chunk, expected, level.is_some()).unwrap();
    let mut floats = Vec::new();
    reconstruct(&parts, expected, level, &mut scratch, |row| floats.extend(row.iter().flat_map(|v| v.to_le_bytes())))
        .unwrap();
    let mut out = vec![0; expected.size.iter().product::<usize>() * expected.sample.bytes()];
    decode(chunk, expected, level, &mut scratch, &mut out).unwrap();
    [crc(&floats), crc(&out)]
}

#[test]
#[ignore = "needs the reference library's test chunks"]
fn the_best_quality_equals_the_uncompressed_chunk() {
    let f32_ = expected(Sample::F32, true);
    let no_value = Expected { size: [28, 32, 32], no_value: Some(44.5), ..f32_ };
    let cases = [
        ("CompressionMethod_WaveletLossless", "CompressionMethod_None", f32_),
        ("CompressionMethod_WaveletLossless_1_6", "CompressionMethod_None", f32_),
        ("U8.CompressionMethod_WaveletLossless", "U8.CompressionMethod_None", expected(Sample::U8, true)),
        ("U8.CompressionMethod_WaveletLossless_1_6", "U8.CompressionMethod_None", expected(Sample::U8, true)),
        ("U16.CompressionMethod_WaveletLossless", "U16.CompressionMethod_None", expected(Sample::U16, true)),
        ("U16.CompressionMethod_WaveletLossless_1_6", "U16.CompressionMethod_None", expected(Sample::U16, true)),
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
        let [coded, plain] = [coded, plain].map(|name| std::fs::read(folder().join(format!("chunk.{name}"))).unwrap());
        let mut out = vec![0; plain.len() - 24];
        decode(&coded, &expected, None, &mut scratch, &mut out).unwrap();
        assert!(out == plain[24..]);
    }
}

#[test]
#[ignore = "needs the reference library's test chunks"]
fn lower_levels_have_known_crcs() {
    let chunk = |name: &str| std::fs::read(folder().join(format!("chunk.{name}"))).unwrap();
    let f32_ = expected(Sample::F32, true);
    for suffix in ["", "_1_6"] {
        let lossy = chunk(&format!("CompressionMethod_Wavelet{suffix}"));
        for (level, crc) in [(0, 0x5b14_d56b), (1, 0xed1f_40d5), (3, 0x76b7_c723)] {
            assert_eq!(crcs(&lossy, &expected(Sample::F32, false), Some(level)), [crc; 2], "{level}");
        }
        let lossless = chunk(&format!("CompressionMethod_WaveletLossless{suffix}"));
        for (level, crc) in [(0, 0x7eb1_5489), (3, 0xebbc_0d87)] {
            assert_eq!(crcs(&lossless, &f32_, Some(level)), [crc; 2], "{level}");
        }
        let u16_ = chunk(&format!("U16.CompressionMethod_Wavelet{suffix}"));
        assert_eq!(crcs(&u16_, &expected(Sample::U16, false), None), [0x6fde_b410, 0xcf14_8b14]);
        let u16_ = chunk(&format!("U16.CompressionMethod_WaveletLossless{suffix}"));
        assert_eq!(crcs(&u16_, &expected(Sample::U16, true), Some(0)), [0x05d3_f686, 0x690d_1083]);
        assert_eq!(crcs(&u16_, &expected(Sample::U16, true), Some(3)), [0xb587_7fbd, 0xd316_1301]);
        let u8_ = chunk(&format!("U8.CompressionMethod_Wavelet{suffix}"));
        assert_eq!(crcs(&u8_, &expected(Sample::U8, false), Some(0)), [0x53e0_e571, 0xbc9b_e60d]);
        let u8_ = chunk(&format!("U8.CompressionMethod_WaveletLossless{suffix}"));
        assert_eq!(crcs(&u8_, &expected(Sample::U8, true), Some(0)), [0x3de4_e9da, 0x3a82_2412]);
        assert_eq!(crcs(&u8_, &expected(Sample::U8, true), Some(3)), [0x3eb9_e278, 0x00fd_b92a]);
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
    let f32_ = expected(Sample::F32, true);
    let chunk = std::fs::read(folder().join("chunk.CompressionMethod_WaveletLossless_1_6")).unwrap();
    let parts = ChunkParts::read(&chunk, &f32_, true).unwrap();
    let end = parts.stream.as_ptr_range().end.addr() - chunk.as_ptr().addr();
    assert_eq!(crcs(&chunk[..end], &f32_, Some(0)), [0x7eb1_5489; 2]);
    let error = |level| decode(&chunk[..end - 1], &f32_, level, &mut Scratch::default(), &mut vec![0; 4_000_000]);
    assert_eq!(error(Some(0)), Err(WaveletError::PastEnd(ChunkPart::Values(0))));
    assert_eq!(error(Some(1)), Ok(()));
    assert_eq!(error(None), Err(WaveletError::Total { announced: chunk.len() as i32, found: end - 1 }));
}
