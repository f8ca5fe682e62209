//! Faults for which the dataset is refused.

use crate::format::FormatError;
use serde_json::{Value, json};

use super::{RLE, changed, is_damaged, is_not_a_vds, refused};
use crate::test_support::vds_dataset::{Cloud, Container};

#[test]
fn without_magic_or_header() {
    is_not_a_vds(&changed(RLE, |c| c.put(0, b"hueDataStore")));
    for length in [0, 1, 11, 12, 31] {
        is_not_a_vds(&changed(RLE, |c| c.0.truncate(length)));
    }
}

#[test]
fn another_container_version() {
    for version in [0x0002_0000, 0, -1] {
        let error = refused(&changed(RLE, |c| c.put_i32(12, version)));
        assert!(matches!(&error, FormatError::Unsupported(why) if why.contains("container version")), "{error:?}");
    }
    assert!(changed(RLE, |c| c.put_i32(12, 0x0001_0007)).open().is_ok(), "a minor version is no reason");
}

#[test]
fn a_file_table_outside_of_the_file() {
    let length = Container::read(RLE).0.len() as i64;
    for table in [-1, i64::MIN, i64::MAX, length, length - 10] {
        is_damaged(&changed(RLE, |c| c.put_i64(16, table)), &["damaged header"]);
    }
    for (at, number) in [(24, -1), (24, i32::MAX), (24, 1 << 16), (28, -1), (28, -32), (28, i32::MAX)] {
        is_damaged(&changed(RLE, |c| c.put_i32(at, number)), &["damaged header"]);
    }
}

#[test]
fn without_a_description() {
    let renamed = |name: &[u8], kind: &[u8]| {
        changed(RLE, |c| {
            let entry = c.entry("VolumeDataLayout");
            c.put(entry + 32, name);
            c.put(entry + 20, kind);
        })
    };
    is_not_a_vds(&renamed(b"volumeDataLayout", b"JSON"));
    is_not_a_vds(&renamed(b"VolumeDataLayout", b"SHPE"));
    is_not_a_vds(&changed(RLE, |c| c.put_i32(24, 0)));
}

#[test]
fn a_description_that_cannot_be_read() {
    let layout = "VolumeDataLayout";
    let entry = |at: usize, number: i32| changed(RLE, |c| c.put_i32(c.entry(layout) + at, number));
    is_damaged(&entry(8, 0), &[layout]);
    is_damaged(&entry(8, -1), &[layout]);
    is_damaged(&entry(16, 0), &[layout]);
    is_damaged(&changed(RLE, |c| c.put_i64(c.index(layout, 0), 1 << 40)), &[layout]);
    is_damaged(&changed(RLE, |c| c.put_i32(c.index(layout, 0) + 8, i32::MAX)), &[layout]);
    is_damaged(&changed(RLE, |c| c.put_i32(c.index(layout, 0) + 8, 0)), &["layout"]);
    is_damaged(&changed(RLE, |c| c.put_i64(c.page(layout, 0), 0)), &["layout"]);
    for text in ["", "{", "[]", "null", "{}", "{\"layoutDescriptor\": 1}"] {
        is_damaged(&changed(RLE, |c| c.replace(layout, 0, text.as_bytes())), &["bad layout"]);
    }
}

/// Returns a dataset whose description has another value at a JSON pointer.
fn layout_with(pointer: &str, value: Value) -> Container {
    changed(RLE, |c| c.edit(|layout| *layout.pointer_mut(pointer).unwrap_or_else(|| panic!("{pointer}")) = value))
}

#[test]
fn wrong_types_and_unknown_words() {
    for (pointer, value, key) in [
        ("/layoutDescriptor/brickSize", json!("BrickSize_63"), "brickSize"),
        ("/layoutDescriptor/brickSize", json!(64), "brickSize"),
        ("/layoutDescriptor/brickSize", json!("64"), "brickSize"),
        ("/layoutDescriptor/lodLevels", json!("LODLevels_13"), "lodLevels"),
        ("/layoutDescriptor/lodLevels", json!("many"), "lodLevels"),
        ("/layoutDescriptor/negativeMargin", json!(-1), "negativeMargin"),
        ("/layoutDescriptor/create2DLODs", json!("yes"), "create2DLODs"),
        ("/axisDescriptors", json!({}), "axisDescriptors"),
        ("/axisDescriptors/1/numSamples", json!("50"), "axisDescriptors[1].numSamples"),
        ("/axisDescriptors/1/numSamples", json!(0.5), "axisDescriptors[1].numSamples"),
        ("/axisDescriptors/0/name", json!(7), "axisDescriptors[0].name"),
        ("/channelDescriptors/0/format", json!("Format_U9"), "channelDescriptors[0].format"),
        ("/channelDescriptors/0/format", json!(2), "channelDescriptors[0].format"),
        ("/channelDescriptors/0/components", json!("Components_3"), "channelDescriptors[0].components"),
        ("/channelDescriptors/0/channelMapping", json!("Sideways"), "channelDescriptors[0].channelMapping"),
        ("/channelDescriptors/0/valueRange", json!([1]), "channelDescriptors[0].valueRange"),
    ] {
        is_damaged(&layout_with(pointer, value), &["bad layout", key]);
    }
}

#[test]
fn a_layout_out_of_bounds() {
    for (pointer, value, key) in [
        ("/layoutDescriptor/brickSize", json!("BrickSize_16"), "brickSize"),
        ("/layoutDescriptor/brickSize", json!("BrickSize_8192"), "brickSize"),
        ("/layoutDescriptor/negativeMargin", json!(16), "negativeMargin"),
        ("/layoutDescriptor/positiveMargin", json!(u64::MAX), "positiveMargin"),
        ("/layoutDescriptor/brickSize2DMultiplier", json!(0), "brickSize2DMultiplier"),
        ("/layoutDescriptor/brickSize2DMultiplier", json!(129), "brickSize2DMultiplier"),
        ("/axisDescriptors/0/numSamples", json!(0), "axisDescriptors[0].numSamples"),
        ("/axisDescriptors/0/numSamples", json!(-5), "axisDescriptors[0].numSamples"),
        ("/axisDescriptors/2/numSamples", json!(1u64 << 31), "axisDescriptors[2].numSamples"),
        ("/axisDescriptors", json!([]), "axisDescriptors"),
        ("/channelDescriptors", json!([]), "channelDescriptors"),
    ] {
        is_damaged(&layout_with(pointer, value), &["bad layout", key]);
    }
    let one_axis = changed(RLE, |c| c.edit(|layout| layout["axisDescriptors"].as_array_mut().unwrap().truncate(1)));
    is_damaged(&one_axis, &["bad layout", "axisDescriptors", "2 to 6"]);
    let seven = changed(RLE, |c| {
        c.edit(|layout| {
            let axes = layout["axisDescriptors"].as_array_mut().unwrap();
            axes.resize(7, axes[0].clone());
        });
    });
    is_damaged(&seven, &["bad layout", "axisDescriptors", "2 to 6"]);
}

#[test]
fn invalid_cloud_folders() {
    let refused = |name: &str, text: &str| {
        let mut cloud = Cloud::read("pages");
        *cloud.object(name) = text.as_bytes().to_vec();
        cloud.open().err().expect("it is refused").to_string()
    };
    for text in ["", "{", "{}", "[1]", "null"] {
        let error = refused("LayerStatus", text);
        assert!(error.contains("LayerStatus"), "{error}");
    }
    let error = refused("VolumeDataLayout", "[}");
    assert!(error.contains("bad layout"), "{error}");
    for name in ["VolumeDataLayout", "LayerStatus"] {
        let mut cloud = Cloud::read("pages");
        cloud.0.remove(name);
        let error = cloud.open().err().unwrap();
        assert!(matches!(&error, FormatError::NotThisFormat(why) if why.contains(name)), "{error:?}");
    }
}

/// These descriptions would take gigabytes of memory, or minutes, if they were read to the end.
#[test]
fn descriptions_with_too_much_in_them() {
    let many = format!("[0{}]", ",0".repeat(2 << 20));
    let layout = changed(RLE, |c| {
        let text = String::from_utf8(c.0[c.chunk("VolumeDataLayout", 0)].to_vec()).unwrap();
        c.replace("VolumeDataLayout", 0, text.replacen('{', &format!("{{\"more\": {many},"), 1).as_bytes());
    });
    is_damaged(&layout, &["bad layout", "values"]);
    let mut cloud = Cloud::read("pages");
    cloud.edit(|layer| layer["more"] = serde_json::from_str(&many).unwrap());
    let error = cloud.open().err().unwrap().to_string();
    assert!(error.contains("LayerStatus") && error.contains("values"), "{error}");
    let channels = changed(RLE, |c| {
        c.edit(|layout| {
            let channels = layout["channelDescriptors"].as_array_mut().unwrap();
            channels[0] = json!({"format": "Format_U8", "components": "Components_1"});
            channels.resize(10_000, channels[0].clone());
        });
    });
    is_damaged(&channels, &["bad layout", "channelDescriptors", "10000"]);
    let mut cloud = Cloud::read("pages");
    let records: Vec<_> = (0..10_000).map(|n| json!({"layerName": format!("Dimensions_012LOD{n}")})).collect();
    *cloud.object("LayerStatus") = json!(records).to_string().into_bytes();
    let error = cloud.open().err().unwrap().to_string();
    assert!(error.contains("more than") && error.contains("layers"), "{error}");
}
