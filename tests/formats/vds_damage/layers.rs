//! Faults for which a layer is refused.

use serde_json::json;

use super::{BITS, PLAIN, U8, changed, cloud_layer_fails, layer_fails};
use crate::test_support::vds_dataset::{Cloud, Container};

#[test]
fn invalid_tables_of_a_layer() {
    let end = Container::read(PLAIN).0.len() as i64;
    for directory in [-1, i64::MIN, i64::MAX, end, end - 20] {
        layer_fails(PLAIN, U8, &["page directory"], |c| c.put_i64(c.entry(U8), directory));
    }
    for chunks in [-1, i32::MIN] {
        layer_fails(PLAIN, U8, &["number of chunks"], |c| c.put_i32(c.entry(U8) + 8, chunks));
    }
    for per_page in [0, -1, i32::MIN] {
        layer_fails(PLAIN, U8, &["index pages"], |c| c.put_i32(c.entry(U8) + 16, per_page));
    }
    for (at, length) in [(24, -1), (24, 1001), (24, i32::MIN), (28, -1), (28, 1001), (28, i32::MAX)] {
        layer_fails(PLAIN, U8, &["metadata"], |c| c.put_i32(c.entry(U8) + at, length));
    }
    layer_fails(PLAIN, U8, &["metadata", "method"], |c| c.put_i32(c.entry(U8) + 28, 0));
}

#[test]
fn another_number_of_chunks() {
    for chunks in [0, 3, 5, 1 << 20] {
        layer_fails(PLAIN, U8, &["4"], |c| c.put_i32(c.entry(U8) + 8, chunks));
    }
    cloud_layer_fails("pages", &["7 chunks", "6"], |layer| layer["chunkCount"] = json!(7));
    cloud_layer_fails("pages", &["chunkCount"], |layer| layer["chunkCount"] = json!(-6));
}

#[test]
fn metadata_of_another_length() {
    for length in [0, 4, 12, 16, 25, 1000] {
        layer_fails(PLAIN, U8, &["8 or 24"], |c| c.put_i32(c.entry(U8) + 24, length));
    }
    for bytes in [json!(0), json!(4), json!(24), json!(-8), json!(null), json!("8")] {
        cloud_layer_fails("pages", &["chunkMetadataByteSize"], |layer| layer["chunkMetadataByteSize"] = bytes);
    }
    for size in [json!(0), json!(-1), json!(1u64 << 40), json!(null)] {
        cloud_layer_fails("pages", &["chunkMetadataPageSize"], |layer| layer["chunkMetadataPageSize"] = size);
    }
}

#[test]
fn unknown_methods() {
    for method in [-1, 7, i32::MAX] {
        layer_fails(PLAIN, U8, &["compression method", &method.to_string()], |c| c.put_i32(c.metadata(U8), method));
    }
    cloud_layer_fails("pages", &["Brotli"], |layer| layer["compressionMethod"] = json!("Brotli"));
    cloud_layer_fails("pages", &["compressionMethod"], |layer| layer["compressionMethod"] = json!(3));
}

#[test]
fn methods_that_do_not_fit_the_format_of_the_channel() {
    for method in [1, 4, 5, 6] {
        layer_fails(PLAIN, BITS, &["1Bit", "cannot be coded"], |c| c.put_i32(c.metadata(BITS), method));
    }
    let pair = "Dimensions_012LOD0";
    layer_fails("components.vds", pair, &["several components"], |c| c.put_i32(c.metadata(pair), 5));
}

#[test]
fn a_page_directory_of_another_length() {
    for directory in [json!([0, 1]), json!([0, 1, 2, 3]), json!([]), json!({}), json!(3)] {
        cloud_layer_fails("pages", &["pageDirectory"], |layer| layer["pageDirectory"] = directory);
    }
    for page in [json!(-2), json!(0.5), json!("../../x"), json!(null)] {
        cloud_layer_fails("pages", &["pageDirectory", "no page"], |layer| layer["pageDirectory"][1] = page);
    }
}

#[test]
fn layer_names_without_a_channel_or_folder() {
    let renamed = changed(PLAIN, |c| c.put(c.entry(U8) + 32, b"of U9"));
    let dataset = renamed.open().unwrap();
    let hidden: Vec<_> = dataset.hidden().iter().map(|hidden| (hidden.name.as_str(), hidden.reason.as_str())).collect();
    assert!(
        hidden.iter().any(|(name, why)| *name == "of U9Dimensions_012LOD0" && why.contains("no channel")),
        "{hidden:?}"
    );
    let rest = dataset.hidden().iter().find(|hidden| hidden.name == "of U8").unwrap();
    assert!(rest.reason.contains("LOD 0"), "what is left of the channel: {}", rest.reason);
    for name in ["../x", "/tmp", "a//b", "."] {
        let mut cloud = Cloud::read("pages");
        cloud.edit(|layer| layer["layerName"] = json!(format!("{name}/Dimensions_012LOD0")));
        cloud.0.insert("VolumeDataLayout".into(), {
            let text = String::from_utf8(cloud.0["VolumeDataLayout"].clone()).unwrap();
            text.replace("\"Trace\"", &format!("\"{name}/\"")).into_bytes()
        });
        let dataset = cloud.open().unwrap();
        let reasons: Vec<_> = dataset.hidden().iter().map(|hidden| hidden.reason.as_str()).collect();
        assert!(reasons.iter().any(|why| why.contains("no name of a folder")), "{name}: {reasons:?}");
    }
}
