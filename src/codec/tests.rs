//! What other programs have encoded (scripts/make_codec_fixtures.py), whole and damaged.

use std::fs;
use std::path::Path;

use serde_json::Value;

use super::*;

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

fn cases() -> Vec<Case> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/codecs");
    let bytes = fs::read(folder.join("bytes.bin")).unwrap();
    let lines = fs::read_to_string(folder.join("cases.jsonl")).unwrap();
    let case = |line: &str| {
        let line: Value = serde_json::from_str(line).unwrap();
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
    lines.lines().map(case).collect()
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
    }
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
