//! Descriptions in JSON or as `VDSObject` that repeat, nest or multiply.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::format::vds::Vds;
use crate::format::wkw::Wkw;
use crate::format::{Dataset, Format, FormatError, OpenWith};
use crate::source::IndexCache;
use serde_json::{Value, json};

use super::{DESCRIPTION, within};
use crate::test_support::memory_folder::MemoryFolder;
use crate::test_support::vds_dataset::{Cloud, Container};

type Opened = Result<Box<dyn Dataset>, FormatError>;

/// Opens a WKW dataset of a mag `color/1` with this description.
fn wkw(text: Vec<u8>) -> Opened {
    let header = [b'W', b'K', b'W', 1, 0x03, 1, 1, 1, 16, 0, 0, 0, 0, 0, 0, 0];
    let files = BTreeMap::from([
        ("datasource-properties.json".to_owned(), text),
        ("color/1/header.wkw".to_owned(), header.to_vec()),
        ("color/1/z0/y0/x0.wkw".to_owned(), [header.to_vec(), vec![7; 512]].concat()),
    ]);
    Wkw.open_folder(Arc::new(MemoryFolder::new(files)), &OpenWith::new(IndexCache::new(1 << 20)))
}

/// Returns the description of one layer; `change` changes it.
fn description(change: impl FnOnce(&mut Value)) -> Vec<u8> {
    let mut json = json!({"scale": {"factor": [1, 1, 1], "unit": "nanometer"}, "dataLayers": [{
        "name": "color", "dataFormat": "wkw", "elementClass": "uint8", "category": "color",
        "mags": [{"mag": 1, "path": "color/1"}],
        "boundingBox": {"topLeft": [0, 0, 0], "width": 8, "height": 8, "depth": 8},
    }]});
    change(&mut json);
    json.to_string().into_bytes()
}

/// Returns mags that all have their data in one folder.
fn mags(count: u64) -> Value {
    (1..=count).map(|mag| json!({"mag": [mag, 1, 1], "path": "color/1"})).collect()
}

/// Checks that a WKW dataset opens by its description, or else by the names of its folders, in bounded memory.
fn check_wkw(text: Vec<u8>, by_description: bool) {
    let opened = within(DESCRIPTION, || wkw(text)).unwrap();
    let warnings = opened.info().warnings.join("; ");
    assert_eq!(!warnings.contains("what is shown is what the folders have"), by_description, "{warnings}");
    assert!(!opened.layers().is_empty());
}

#[test]
fn wkw_descriptions_of_many_values() {
    check_wkw(description(|_| {}), true);
    for unit in ["{}", "{\"\":0}"] {
        let count = (8 << 20) / (unit.len() + 1) - 100;
        let list = vec![unit; count].join(",");
        check_wkw(format!("{{\"dataLayers\":[],\"more\":[{list}]}}").into_bytes(), false);
    }
    check_wkw([b"[".repeat(1 << 16), b"]".repeat(1 << 16)].concat(), false);
    check_wkw(b"{\"dataLayers\":".repeat(100_000), false);
}

#[test]
fn wkw_texts_that_every_level_repeats() {
    let long = Value::from("m".repeat(2 << 20));
    for key in ["elementClass", "category", "name", "dataFormat"] {
        check_wkw(
            description(|json| {
                json["dataLayers"][0]["mags"] = mags(200);
                json["dataLayers"][0][key] = long.clone();
            }),
            false,
        );
    }
    check_wkw(
        description(|json| {
            json["dataLayers"][0]["mags"] = mags(200);
            json["scale"]["unit"] = long.clone();
        }),
        false,
    );
    // an id is a number: anything else is left out
    check_wkw(
        description(|json| {
            json["dataLayers"][0]["mags"] = mags(200);
            json["dataLayers"][0]["largestSegmentId"] = vec![long.clone(); 2].into();
        }),
        true,
    );
    // names of folders that the layer's name would make
    check_wkw(
        description(|json| {
            json["dataLayers"][0]["name"] = long.clone();
            json["dataLayers"][0]["mags"] = (1..3000).map(|mag| json!({"mag": mag})).collect();
        }),
        false,
    );
}

#[test]
fn wkw_layers_and_mags_without_number() {
    check_wkw(description(|json| json["dataLayers"][0]["mags"] = mags(30)), true);
    check_wkw(description(|json| json["dataLayers"][0]["mags"] = mags(40_000)), false);
    check_wkw(description(|json| json["dataLayers"] = vec![json!({}); 60_000].into()), false);
    let layer = json!({"name": "color", "mags": mags(100)});
    check_wkw(description(|json| json["dataLayers"] = vec![layer.clone(); 300].into()), false);
}

/// The files of a VDS whose description `change` changes.
fn vds(change: impl FnOnce(&mut Value)) -> Vec<u8> {
    let mut container = Container::read("two.vds");
    container.edit(change);
    container.0
}

fn open_vds(file: Vec<u8>) -> Opened {
    Vds.open(Arc::new(MemoryFolder::of_one_file(file)), &OpenWith::new(IndexCache::new(1 << 20)))
}

#[test]
fn vds_texts_that_every_level_repeats() {
    assert!(open_vds(vds(|_| {})).is_ok());
    let long = Value::from("m".repeat(2 << 20));
    let changes: [fn(&mut Value, Value); 4] = [
        |layout, text| layout["axisDescriptors"][0]["unit"] = text,
        |layout, text| layout["axisDescriptors"][1]["name"] = text,
        |layout, text| layout["channelDescriptors"][0]["unit"] = text,
        |layout, text| layout["channelDescriptors"][0]["name"] = text,
    ];
    for change in changes {
        let file = vds(|layout| change(layout, long.clone()));
        let why = within(DESCRIPTION, || open_vds(file)).err().unwrap().to_string();
        assert!(why.len() < 2000 && why.contains("bytes"), "{why:.200}");
    }
}

#[test]
fn vds_descriptions_of_many_values() {
    for unit in ["0", "{\"\":0}"] {
        let list = vec![unit; (30 << 20) / (unit.len() + 1)].join(",");
        let mut container = Container::read("two.vds");
        container.replace("VolumeDataLayout", 0, format!("{{\"later\":[{list}]}}").as_bytes());
        assert!(within(DESCRIPTION, || container.open()).is_err(), "{unit}");
    }
    // as many metadata as there may be, each as small as it can be
    let mut container = Container::read("two.vds");
    container.edit(|layout| layout["metadata"] = vec![json!({"value": {}}); 40_000].into());
    within(DESCRIPTION, || drop(container.open()));
    let nested = [b"{\"a\":".repeat(1 << 16), b"[".repeat(1 << 16)].concat();
    container.replace("VolumeDataLayout", 0, &nested);
    assert!(within(DESCRIPTION, || container.open()).is_err());
}

#[test]
fn vds_lists_of_layers_without_number() {
    let cloud = |status: String| {
        let mut cloud = Cloud::read("pages");
        *cloud.object("LayerStatus") = status.into_bytes();
        cloud
    };
    for unit in ["{}", "{\"layerName\":\"Dimensions_012LOD0\"}"] {
        let list = vec![unit; (16 << 20) / (unit.len() + 1)].join(",");
        assert!(within(DESCRIPTION, || cloud(format!("[{list}]")).open()).is_err(), "{unit}");
    }
}
