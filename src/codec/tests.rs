//! What other programs have encoded (scripts/make_codec_fixtures.py), whole and damaged.

use std::fs;
use std::path::Path;

use serde_json::Value;

use super::*;
use crate::fuzz;

struct Case {
    name: String,
    configuration: Configuration,
    stored: Vec<u8>,
    decoded: Vec<u8>,
}

impl Case {
    fn codec(&self) -> Box<dyn Codec> {
        codec(&self.name, &self.configuration).unwrap_or_else(|e| panic!("{self}: {e}"))
    }
}

impl std::fmt::Display for Case {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {}", self.name, Value::Object(self.configuration.clone()))
    }
}

/// Returns the cases that this build decodes.
fn cases() -> Vec<Case> {
    cases_that(|needs| needs.is_none() || cfg!(feature = "libzfp"))
}

/// Returns the cases whose needed feature is accepted.
fn cases_that(accepts: impl Fn(Option<&str>) -> bool) -> Vec<Case> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/codecs");
    let bytes = fs::read(folder.join("bytes.bin")).unwrap();
    let lines = fs::read_to_string(folder.join("cases.jsonl")).unwrap();
    let case = |line: Value| {
        let part = |name: &str| {
            let [first, length] = [0, 1].map(|n| line[name][n].as_u64().unwrap() as usize);
            bytes[first..first + length].to_vec()
        };
        Case {
            name: line["codec"].as_str().unwrap().to_owned(),
            configuration: line["configuration"].as_object().unwrap().clone(),
            stored: part("stored"),
            decoded: part("decoded"),
        }
    };
    let lines = lines.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    lines.filter(|line| accepts(line["needs"].as_str())).map(case).collect()
}

#[test]
#[cfg(not(feature = "libzfp"))]
fn what_a_build_does_not_decode_names_the_feature() {
    let others = cases_that(|needs| needs.is_some());
    assert!(others.len() > 10);
    for case in others {
        let error = case.codec().decode(&case.stored, &mut vec![0; case.decoded.len()]).unwrap_err();
        assert!(error.contains(" dimensions is decoded only if volfs is built with the feature libzfp"), "{error}");
    }
}

#[test]
fn what_others_have_encoded_is_decoded() {
    for case in cases() {
        let (codec, length) = (case.codec(), case.decoded.len());
        let mut out = vec![0xaa; length];
        codec.decode(&case.stored, &mut out).unwrap_or_else(|e| panic!("{case}: {e}"));
        assert!(out == case.decoded, "{case} gives other bytes");
        for most in [length, length + 100] {
            let out = codec.decode_unsized(&case.stored, most).unwrap_or_else(|e| panic!("{case}: {e}"));
            assert!(out == case.decoded, "{case} gives other bytes if their number is unknown");
        }
        if let Some(stated) = codec.decoded_len(case.stored.len() as u64) {
            assert_eq!(stated, length as u64, "{case}");
        }
        assert!(codec.longest(length as u64) >= case.stored.len() as u64, "{case} is longer than expected");
        assert!(!codec.name().is_empty(), "{case}");
    }
}

#[test]
fn numbers_of_pcodec_are_decoded_in_parts() {
    let numbers: Vec<u32> = (0..9_999).map(|n| n * n % 1_000_003).collect();
    let stored = pco::standalone::simple_compress(&numbers, &pco::ChunkConfig::default()).unwrap();
    let mut out = vec![0; 4 * numbers.len()];
    codec("pcodec", &Configuration::new()).unwrap().decode(&stored, &mut out).unwrap();
    assert!(out.chunks(4).zip(&numbers).all(|(bytes, number)| bytes == number.to_le_bytes()));
}

#[test]
fn other_lengths_are_refused() {
    for case in cases() {
        let (codec, length) = (case.codec(), case.decoded.len());
        for other in [length + 1, length * 2 + 7] {
            assert!(codec.decode(&case.stored, &mut vec![0; other]).is_err(), "{case} fills {other} bytes");
        }
        if let Some(less) = length.checked_sub(1) {
            assert!(codec.decode(&case.stored, &mut vec![0; less]).is_err(), "{case} fits {less} bytes");
            assert!(codec.decode_unsized(&case.stored, less).is_err(), "{case} fits {less} bytes");
        }
    }
}

/// Random numbers, the same in each run (splitmix64).
struct Random(u64);

impl Random {
    fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((mixed ^ mixed >> 31) % n.max(1) as u64) as usize
    }
}

/// Changes a few bytes, mostly near the beginning, or removes some.
fn damage(stored: &mut Vec<u8>, random: &mut Random) {
    for _ in 0..=random.below(3) {
        let near = if random.below(2) == 0 { 40 } else { usize::MAX };
        let at = random.below(stored.len().min(near));
        let Some(byte) = stored.get_mut(at) else { return };
        match random.below(8) {
            0..3 => *byte ^= 1 << random.below(8),
            3 | 4 => *byte = random.below(256) as u8,
            5 => *byte = [0, 1, 0x7f, 0x80, 0xfe, 0xff][random.below(6)],
            6 => stored.truncate(at),
            _ => drop(stored.drain(at..(at + 1 + random.below(9)).min(stored.len()))),
        }
    }
}

/// VOLFS_MUTATIONS sets the number of times that each is damaged, VOLFS_STRESS_SEED how.
#[test]
fn what_is_damaged_is_an_error_or_bytes_within_bounds() {
    let number = |name| std::env::var(name).ok().and_then(|text| text.parse().ok());
    let mutations = number("VOLFS_MUTATIONS").unwrap_or(60);
    let mut random = Random(number("VOLFS_STRESS_SEED").unwrap_or(1));
    let mut decoded = 0;
    for case in cases() {
        let codec = case.codec();
        assert_eq!(fuzz::codecs::decode(&*codec, &case.stored, case.decoded.len()), 1, "{case}");
        for _ in 0..mutations {
            let mut stored = case.stored.clone();
            damage(&mut stored, &mut random);
            let most = [case.decoded.len(), 2 * case.decoded.len(), 100, 0][random.below(4)];
            decoded += fuzz::codecs::decode(&*codec, &stored, most);
        }
    }
    assert!(decoded > 0);
}

#[test]
fn delta_is_between_real_or_complex_numbers_alone() {
    let made = |from: &str, to: &str| {
        let configuration = serde_json::json!({"dtype": to, "astype": from});
        codec("delta", configuration.as_object().unwrap()).is_ok()
    };
    assert!(made("<c8", ">c16") && made("<f2", "<f8") && made("<i2", "<f4"));
    // half of what they decode to would be what the buffer held
    assert!(!made("<f2", ">c16") && !made("<c8", "<f8") && !made("<m8[s]", "<f8"));
}
