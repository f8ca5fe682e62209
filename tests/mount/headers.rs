//! Files for other programs: headers of NRRD, MetaImage and ENVI, TIFF stacks, SEG-Y.

use std::fs::{self, File};
use std::path::Path;

use crate::support::{Mount, crc, damaged, is_eio, json, names, numbers, read_at, set, test_data};

/// Returns the value of `key` in a text header.
fn field<'a>(header: &'a str, key: &str, separator: &str) -> &'a str {
    let found = header.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(separator));
    found.unwrap_or_else(|| panic!("no {key} in:\n{header}")).trim()
}

#[test]
fn nrrd_headers_describe_the_samples() {
    let Some(mount) = Mount::of(test_data("zgy")) else { return };
    let header = fs::read_to_string(mount.data("v3_int16.zgy", "lod1.nhdr")).unwrap();
    let expected = [
        "NRRD0005",
        "# made by volfs",
        "type: int16",
        "dimension: 3",
        "sizes: 18 9 10",
        "space dimension: 3",
        "space units: \"m\" \"m\" \"ms\"",
        "space directions: (0,0,-4) (0,25,0) (50,0,0)",
        "space origin: (431955.25,7348400.5,-100)",
        "kinds: domain domain domain",
        "endian: little",
        "encoding: raw",
        "data file: lod1.raw",
        "dataset:=v3_int16.zgy",
        "layer:=data",
        "lod:=1",
        "",
    ];
    assert_eq!(header, expected.map(|line| format!("{line}\n")).concat());
    let of_bytes = fs::read_to_string(mount.data("v3_int8.zgy", "lod0.nhdr")).unwrap();
    assert_eq!(field(&of_bytes, "type", ": "), "int8");
    assert!(!of_bytes.contains("endian"), "{of_bytes}");
    let of_floats = fs::read_to_string(mount.data("v3_float32.zgy", "lod0.nhdr")).unwrap();
    assert_eq!(field(&of_floats, "type", ": "), "float");
}

#[test]
fn netcdf_files_end_in_the_samples() {
    let Some(mount) = Mount::of(test_data("zgy")) else { return };
    for name in ["v3_int8.zgy", "v3_int16.zgy", "v3_float32.zgy"] {
        for lod in 0..3 {
            let file = |suffix: &str| fs::read(mount.data(name, &format!("lod{lod}.{suffix}"))).unwrap();
            let (netcdf, raw) = (file("nc"), file("raw"));
            let samples = netcdf.len() - raw.len();
            assert!(netcdf.starts_with(b"\x89HDF\r\n\x1a\n\x02") && netcdf[samples..] == raw[..], "{name} {lod}");
            assert_eq!((samples % 4096, &netcdf[28..36]), (0, &(netcdf.len() as u64).to_le_bytes()[..]));
            let positions = mount.data(name, &format!("lod{lod}.json"));
            let first = json(positions)["axes"][0]["first"].as_f64().unwrap().to_le_bytes();
            assert!(netcdf[..samples].as_chunks::<8>().0.contains(&first), "{name} {lod}");
        }
    }
}

#[test]
fn envi_headers_describe_the_samples() {
    let Some(mount) = Mount::of(test_data("zgy")) else { return };
    let header = fs::read_to_string(mount.data("v3_int16.zgy", "lod1.hdr")).unwrap();
    let expected = [
        "ENVI",
        "description = {v3_int16.zgy, layer data, LOD 1}",
        "samples = 18",
        "lines = 9",
        "bands = 10",
        "header offset = 0",
        "file type = ENVI Standard",
        "data type = 2",
        "interleave = bsq",
        "byte order = 0",
    ];
    assert_eq!(header, expected.map(|line| format!("{line}\n")).concat());
    assert!(!mount.data("v3_int8.zgy", "lod0.hdr").exists());
}

#[test]
fn metaimage_headers_describe_the_samples() {
    let Some(mount) = Mount::of(test_data("zgy")) else { return };
    let header = fs::read_to_string(mount.data("v3_int16.zgy", "lod1.mhd")).unwrap();
    let expected = [
        "ObjectType = Image",
        "NDims = 3",
        "BinaryData = True",
        "BinaryDataByteOrderMSB = False",
        "CompressedData = False",
        "TransformMatrix = 0 0 -1 0 1 0 1 0 0",
        "Offset = 431955.25 7348400.5 -100",
        "CenterOfRotation = 0 0 0",
        "ElementSpacing = 4 25 50",
        "DimSize = 18 9 10",
        "ElementType = MET_SHORT",
        "ElementDataFile = lod1.raw",
    ];
    assert_eq!(header, expected.map(|line| format!("{line}\n")).concat());
    for (name, expected) in [
        ("v3_int8", "MET_CHAR"),
        ("v3_type_uint8", "MET_UCHAR"),
        ("v3_type_uint16", "MET_USHORT"),
        ("v3_type_int32", "MET_INT"),
        ("v3_type_uint32", "MET_UINT"),
        ("v3_float32", "MET_FLOAT"),
    ] {
        let header = fs::read_to_string(mount.data(&format!("{name}.zgy"), "lod0.mhd")).unwrap();
        assert_eq!(field(&header, "ElementType", " = "), expected, "{name}");
    }
}

/// Returns an unsigned little-endian number.
fn number(bytes: &[u8]) -> u64 {
    bytes.iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte))
}

#[test]
fn stacks_are_the_raw_samples_between_directories() {
    let Some(mount) = Mount::of(test_data("zgy")) else { return };
    // ImageJ has no int8
    for (dataset, lods, magic, directory) in [("v3_int16.zgy", 3, 42, 138), ("v3_int8.zgy", 3, 43, 236)] {
        let expected: Vec<String> = (0..lods).map(|lod| format!("lod{lod}.tif")).collect();
        assert_eq!(names(mount.data(dataset, "tiff")), set(&expected));
        for lod in 0..lods {
            let stack = fs::read(mount.data(dataset, &format!("tiff/lod{lod}.tif"))).unwrap();
            let raw = fs::read(mount.data(dataset, &format!("lod{lod}.raw"))).unwrap();
            let about = json(mount.data(dataset, &format!("lod{lod}.json")));
            let planes = about["shape"][0].as_u64().unwrap() as usize;
            assert_eq!(stack[..4], [b'I', b'I', magic, 0]);
            assert_eq!(stack[4096..4096 + raw.len()], raw);
            let behind = (4096 + raw.len()).next_multiple_of(4096);
            assert_eq!(stack.len(), behind + (planes - 1) * directory, "{dataset} {lod}");
            assert_eq!(number(&stack[stack.len() - 4..]), 0);
            let files = about["files"].as_array().unwrap();
            assert!(files.iter().any(|file| file == &format!("tiff/lod{lod}.tif")), "{about}");
        }
    }
}

/// Returns the big-endian number of 2 or 4 bytes at a byte that the standard numbers from 1.
fn be_number(of: &[u8], byte: usize, length: usize) -> i32 {
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
            assert_eq!([189, 193].map(|byte| be_number(trace, byte, 4)), lines, "{layer} {number}");
        }
    }
}

#[test]
fn the_demo_survey_has_its_place() {
    let Some(mount) = Mount::of(test_data("demo")) else { return };
    let file = File::open(mount.data("north.zgy", "lod0.sgy")).unwrap();
    let headers = read_at(&file, 0, 3600).unwrap();
    assert_eq!(headers[..8], [0xc3, 0x40, 0xf1, 0x40, 0xe5, 0xd6, 0xd3, 0xc6]);
    assert_eq!(
        [3217, 3221, 3225, 3501, 3503, 3505].map(|byte| be_number(&headers, byte, 2)),
        [4000, 192, 5, 256, 1, 0]
    );
    let corners = json(mount.path("north.zgy/dataset.json"))["geometry"]["corners"].clone();
    for corner in corners.as_array().unwrap() {
        let [i, j] = [0, 1].map(|axis| corner["index"][axis].as_u64().unwrap());
        let trace = read_at(&file, 3600 + (i * 96 + j) * 1008, 240).unwrap();
        let place = [0, 1].map(|axis| (corner["world"][axis].as_f64().unwrap() * 100.0).round() as i32);
        assert_eq!([181, 185].map(|byte| be_number(&trace, byte, 4)), place);
        assert_eq!([71, 109, 115, 117].map(|byte| be_number(&trace, byte, 2)), [-100, 1200, 192, 4000]);
    }
}

#[test]
fn what_is_no_survey_has_no_segy() {
    let Some(mount) = Mount::of(test_data("")) else { return };
    for (layer, reason) in [
        ("vds/traces.vds/Trace", Some("no 3D survey")),
        ("vds/six.vds/Amplitude", Some("no 3D survey")),
        ("segy/gathers.vds/SEGYTraceHeader", Some("no 3D survey")),
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

/// Three offsets, and a hole where `(5 * inline + 3 * crossline) % 11` is 0.
#[test]
fn gathers_have_offsets_and_holes() {
    let Some(mount) = Mount::of(test_data("segy")) else { return };
    let file = File::open(mount.path("gathers.vds/Amplitude/lod0.sgy")).unwrap();
    assert_eq!(file.metadata().unwrap().len(), 3600 + 6 * 7 * 3 * (240 + 25 * 4));
    for (inline, crossline, offset) in (0..6).flat_map(|i| (0..7).flat_map(move |x| (0..3).map(move |o| (i, x, o)))) {
        let trace = (inline * 7 + crossline) * 3 + offset;
        let header = read_at(&file, 3600 + trace * 340, 240).unwrap();
        let is_hole = (inline * 5 + crossline * 3) % 11 == 0;
        assert_eq!(be_number(&header, 29, 2), if is_hole { 2 } else { 1 }, "{inline} {crossline}");
        assert_eq!(
            [25, 189, 193].map(|byte| be_number(&header, byte, 4)),
            [offset + 1, 1001 + inline, 300 + crossline].map(|n| n as i32)
        );
        assert_eq!(be_number(&header, 37, 4), 100 + 50 * offset as i32);
    }
    assert_eq!(mount.counter("errors"), 0, "{}", mount.log());
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
        assert_eq!(read_at(&file, at, 240).map(|header| be_number(&header, 1, 4)).unwrap(), trace as i32 + 1);
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
