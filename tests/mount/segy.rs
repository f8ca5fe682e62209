//! Surveys as SEG-Y: `lod0.sgy`, which is made of the samples, and `original.sgy`, the file that a dataset comes from.

use std::fs::{self, File};
use std::path::Path;

use crate::support::{Mount, crc, damaged, is_eio, json, names, numbers, read_at, test_data};

/// Returns the big-endian number of 2 or 4 bytes at a byte that the standard numbers from 1.
fn field(of: &[u8], byte: usize, length: usize) -> i32 {
    match of[byte - 1..byte - 1 + length] {
        [high, low] => i16::from_be_bytes([high, low]).into(),
        [a, b, c, d] => i32::from_be_bytes([a, b, c, d]),
        _ => unreachable!(),
    }
}

/// Returns the bytes of the samples of a SEG-Y file of IEEE float, little-endian.
fn samples(file: &[u8], count: usize) -> Vec<u8> {
    let traces = file[3600..].chunks(240 + count * 4);
    traces.flat_map(|trace| trace[240..].chunks(4).flat_map(|sample| sample.iter().rev().copied())).collect()
}

/// Returns the bytes of the values in a NumPy file of version 1.
fn values(path: &Path) -> Vec<u8> {
    let bytes = fs::read(path).unwrap();
    let header = 10 + usize::from(u16::from_le_bytes([bytes[8], bytes[9]]));
    bytes[header..].to_vec()
}

#[test]
fn samples_are_the_values() {
    let Some(mount) = Mount::of(test_data("")) else { return };
    for (layer, of_values) in [
        ("demo/south.vds/Amplitude", "lod0.npy"),
        ("demo/cloud-survey/Amplitude", "lod0.npy"),
        ("zgy/v3_int8.zgy/data", "lod0.float32.npy"),
        ("zgy/v3_float32.zgy/data", "lod0.npy"),
        ("zgy/v3_size_5x1x17.zgy/data", "lod0.float32.npy"),
        ("vds/scaled.vds/words", "lod0.float32.npy"),
        ("segy/turned.vds/Amplitude", "lod0.float32.npy"),
    ] {
        let of = |name: &str| mount.path(layer).join(name);
        let file = fs::read(of("lod0.sgy")).unwrap();
        let level = json(of("lod0.json"));
        let shape = numbers(&level["shape"]);
        assert_eq!(file.len() as u64, 3600 + shape[0] * shape[1] * (240 + shape[2] * 4), "{layer}");
        assert!(samples(&file, shape[2] as usize) == values(&of(of_values)), "{layer}");
        assert!(level["files"].as_array().unwrap().contains(&"lod0.sgy".into()), "{layer}");
        for (number, trace) in file[3600..].chunks(240 + shape[2] as usize * 4).enumerate() {
            let lines = [0, 1].map(|axis| {
                let at = [number as u64 / shape[1], number as u64 % shape[1]][axis] as f64;
                let axis = &level["axes"][axis];
                (axis["first"].as_f64().unwrap() + axis["step"].as_f64().unwrap() * at) as i32
            });
            assert_eq!([189, 193].map(|byte| field(trace, byte, 4)), lines, "{layer} {number}");
        }
    }
}

#[test]
fn the_demo_survey_has_its_place() {
    let Some(mount) = Mount::of(test_data("demo")) else { return };
    let file = File::open(mount.data("north.zgy", "lod0.sgy")).unwrap();
    let headers = read_at(&file, 0, 3600).unwrap();
    assert_eq!(headers[..8], [0xc3, 0x40, 0xf1, 0x40, 0xe5, 0xd6, 0xd3, 0xc6]);
    assert_eq!([3217, 3221, 3225, 3501, 3503, 3505].map(|byte| field(&headers, byte, 2)), [4000, 192, 5, 256, 1, 0]);
    let corners = json(mount.path("north.zgy/dataset.json"))["geometry"]["corners"].clone();
    for corner in corners.as_array().unwrap() {
        let [i, j] = [0, 1].map(|axis| corner["index"][axis].as_u64().unwrap());
        let trace = read_at(&file, 3600 + (i * 96 + j) * 1008, 240).unwrap();
        let place = [0, 1].map(|axis| (corner["world"][axis].as_f64().unwrap() * 100.0).round() as i32);
        assert_eq!([181, 185].map(|byte| field(&trace, byte, 4)), place);
        assert_eq!([71, 109, 115, 117].map(|byte| field(&trace, byte, 2)), [-100, 1200, 192, 4000]);
    }
}

#[test]
fn what_is_no_survey_has_no_segy() {
    let Some(mount) = Mount::of(test_data("")) else { return };
    for (layer, reason) in [
        ("vds/traces.vds/Trace", Some("no 3D survey")),
        ("vds/four.vds/Amplitude", Some("no 3D survey")),
        ("segy/gathers.vds/Amplitude", Some("no 3D survey")),
        ("wkw/pyramid/color", None),
    ] {
        let (dataset, layer) = layer.rsplit_once('/').unwrap();
        let folder = mount.path(dataset).join(layer);
        assert!(!names(&folder).contains("lod0.sgy"), "{dataset}");
        assert_eq!(fs::metadata(folder.join("lod0.sgy")).unwrap_err().kind(), std::io::ErrorKind::NotFound);
        let described = json(mount.path(dataset).join("dataset.json"));
        let layers = described["layers"].as_array().unwrap();
        let hidden = &layers.iter().find(|found| found["name"] == layer).unwrap()["hidden_files"];
        let found = hidden.as_array().unwrap().iter().find(|file| file["name"] == "lod0.sgy");
        assert_eq!(found.is_some(), reason.is_some(), "{dataset} {layer}");
        if let (Some(found), Some(reason)) = (found, reason) {
            assert!(found["reason"].as_str().unwrap().contains(reason), "{found}");
        }
    }
}

#[test]
fn a_damaged_brick_fails_the_traces_in_it() {
    let Some(mount) = Mount::with(test_data("zgy"), &["--direct-io"]) else { return };
    let fixture = &damaged("read")[0];
    let (shape, brick) = (fixture.shape(), numbers(&fixture.expected["bricksize"]));
    let bad: Vec<_> =
        fixture.expected["damaged_bricks"].as_array().unwrap().iter().map(|b| numbers(&b["brick"])).collect();
    let file = File::open(mount.data(&fixture.name, "lod0.sgy")).unwrap();
    let trace_bytes = 240 + shape[2] * 4;
    let mut failed = 0;
    for trace in 0..shape[0] * shape[1] {
        let of_trace = [trace / shape[1] / brick[0], trace % shape[1] / brick[1]];
        let is_bad = bad.iter().any(|bad| bad[..2] == of_trace);
        let at = 3600 + trace * trace_bytes;
        let samples = read_at(&file, at + 240, shape[2] as usize * 4);
        assert_eq!(samples.as_ref().err().is_some_and(is_eio), is_bad, "trace {trace}: {samples:?}");
        assert_eq!(read_at(&file, at, 240).map(|header| field(&header, 1, 4)).unwrap(), trace as i32 + 1);
        failed += usize::from(is_bad);
    }
    assert!(failed > 0 && failed < (shape[0] * shape[1]) as usize);
}

/// Compares with the checksums of the files that were imported: 3D gathers of IBM float with holes, and a little-endian
/// file of int16 that is sorted by descending crosslines.
#[test]
fn the_original_file_comes_out_again() {
    let Some(mount) = Mount::of(test_data("segy")) else { return };
    let expected = json(test_data("segy/expected.json"));
    for imported in expected.as_array().unwrap() {
        let name = imported["name"].as_str().unwrap();
        let path = mount.path(name).join("Amplitude/original.sgy");
        assert_eq!(fs::metadata(&path).unwrap().len(), imported["bytes"].as_u64().unwrap(), "{name}");
        let whole = fs::read(&path).unwrap();
        assert_eq!(imported["crc32"], crc(&whole), "{name}");
        let file = File::open(&path).unwrap();
        for (offset, length) in [(3599, 2), (3600 + 239, 3), (7001, 4999), (whole.len() as u64 - 1, 1)] {
            let part = &whole[offset as usize..offset as usize + length];
            assert!(read_at(&file, offset, length).unwrap() == part, "{name} at {offset}");
        }
        assert!(!names(mount.path(name).join("Trace")).contains("original.sgy"));
    }
    assert_eq!(mount.counter("errors"), 0, "{}", mount.log());
}
