//! Headers for other programs: NRRD, MetaImage and ENVI.

use std::fs;

use crate::support::{Mount, test_data};

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
