//! Damage to VDS datasets, one fault at a time: a dataset or a layer is refused with a reason, and a fault in one chunk
//! fails that chunk alone.

use std::io::Write;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use flate2::Compression;
use flate2::write::ZlibEncoder;
use serde_json::{Value, json};

use crate::format::{Array, Dataset, FormatError};
use crate::source::Blocking;
use crate::test_support::naive;
use crate::test_support::vds_dataset::{Cloud, Container, find};
use crate::volume::Brick;

/// A dataset of one layer: run lengths, 3 x 3 x 1 chunks of U8.
const RLE: &str = "margins-4-4.vds";

/// A dataset of one layer: zlib streams, 3 x 2 x 1 chunks of U16.
const ZIP: &str = "margins-2-3.vds";

/// A dataset with a layer of each sample format: 2 x 2 x 1 chunks, not compressed.
const PLAIN: &str = "formats-none.vds";

const LAYER: &str = "Dimensions_012LOD0";

const U8: &str = "of U8Dimensions_012LOD0";

const BITS: &str = "of 1BitDimensions_012LOD0";

fn changed(name: &str, change: impl FnOnce(&mut Container)) -> Container {
    let mut container = Container::read(name);
    change(&mut container);
    container
}

fn refused(container: &Container) -> FormatError {
    container.open().err().expect("it is refused")
}

fn is_not_a_vds(container: &Container) {
    let error = refused(container);
    assert!(matches!(&error, FormatError::NotThisFormat(why) if why.contains("not a VDS")), "{error:?}");
}

fn is_damaged(container: &Container, words: &[&str]) {
    let error = refused(container);
    assert!(matches!(&error, FormatError::Damaged(_)), "{error:?}");
    assert!(words.iter().all(|word| error.to_string().contains(word)), "{error} has not all of {words:?}");
}

/// Checks that one layer cannot be read, for a reason that contains `words`, and that all others read as before.
fn layer_fails(name: &str, layer: &str, words: &[&str], change: impl FnOnce(&mut Container)) {
    let sound = Container::read(name).open().unwrap();
    let dataset = changed(name, change).open().unwrap_or_else(|e| panic!("the dataset opens: {e}"));
    one_layer_fails(&*sound, &*dataset, layer, words);
}

fn cloud_layer_fails(name: &str, words: &[&str], change: impl FnOnce(&mut Value)) {
    let mut cloud = Cloud::read(name);
    let sound = cloud.open().unwrap();
    cloud.edit(change);
    one_layer_fails(&*sound, &*cloud.open().unwrap(), LAYER, words);
}

fn one_layer_fails(sound: &dyn Dataset, dataset: &dyn Dataset, layer: &str, words: &[&str]) {
    let has_all =
        |text: &str| assert!(words.iter().all(|word| text.contains(word)), "{text:?} has not all of {words:?}");
    let mut others = 0;
    for stored in sound.layers().iter().flat_map(|layer| layer.native["stored"].as_array().unwrap()) {
        let stored = stored.as_str().unwrap();
        if stored != layer {
            let samples = |dataset: &dyn Dataset| naive::read_all(&*find(dataset, stored)).unwrap();
            assert!(samples(dataset) == samples(sound), "{stored} is not what it was");
            others += 1;
        }
    }
    assert!(others > 0);
    let of = |hidden: &Value| hidden.as_array().unwrap().iter().any(|stored| stored == layer);
    if let Some(hidden) = dataset.hidden().iter().find(|hidden| of(&hidden.native["stored"])) {
        return has_all(&hidden.reason);
    }
    // the layer is shown because its other LODs can be read
    let array = find(dataset, layer);
    assert!(dataset.info().warnings.iter().any(|warning| words.iter().all(|word| warning.contains(word))));
    has_all(&array.info().warnings.join("; "));
    let (_, damaged) = naive::read_what_can_be(&*array);
    assert_eq!(damaged.len() as u64, array.info().grid.total());
    damaged.iter().for_each(|(_, error)| has_all(&error.to_string()));
}

/// Checks that one chunk of a layer cannot be read, for a reason that contains `words`, and that all others read as
/// before.
fn chunk_fails(name: &str, layer: &str, chunk: u64, words: &[&str], change: impl FnOnce(&mut Container)) {
    let sound = find(&*Container::read(name).open().unwrap(), layer);
    let dataset = changed(name, change).open().unwrap_or_else(|e| panic!("the dataset opens: {e}"));
    one_chunk_fails(&*sound, &*find(&*dataset, layer), chunk, words);
}

/// Checks the same of a dataset in a folder.
fn cloud_chunk_fails(name: &str, chunk: u64, words: &[&str], change: impl FnOnce(&mut Cloud)) {
    let mut cloud = Cloud::read(name);
    let sound = find(&*cloud.open().unwrap(), LAYER);
    change(&mut cloud);
    one_chunk_fails(&*sound, &*find(&*cloud.open().unwrap(), LAYER), chunk, words);
}

fn one_chunk_fails(sound: &dyn Array, array: &dyn Array, chunk: u64, words: &[&str]) {
    let grid = &array.info().grid;
    let (samples, damaged) = naive::read_what_can_be(array);
    let failed: Vec<_> = damaged.iter().map(|(at, _)| grid.count().linear_of(at)).collect();
    assert_eq!(failed, [chunk], "{damaged:?}");
    let error = &damaged[0].1;
    assert!(matches!(error, FormatError::Damaged(_) | FormatError::DamagedObject(_)), "{error:?}");
    let text = error.to_string();
    assert!(words.iter().all(|word| text.contains(word)), "{text} has not all of {words:?}");
    let named = text.contains(&format!("chunk {chunk}")) || text.contains(&format!("Dimensions_012LOD0/{chunk}"));
    assert!(named && text.contains("Dimensions_012LOD0"), "{text}");
    let mut wanted = naive::read_all(sound).unwrap();
    let (owned, shape) = (grid.region(&damaged[0].0), array.info().shape());
    let size = array.info().dtype.size();
    for n in 0..shape.product().unwrap() {
        let index = shape.index_of(n);
        if (0..index.len()).all(|a| (owned.start[a]..owned.start[a] + owned.shape[a]).contains(&index[a])) {
            wanted[n as usize * size..(n as usize + 1) * size].fill(0);
        }
    }
    assert!(samples == wanted, "a neighbour of chunk {chunk} is not what it was");
}

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

#[test]
fn chunks_outside_of_the_file() {
    let end = Container::read(RLE).0.len() as i64;
    for offset in [-1, i64::MIN, i64::MAX, end, end - 1, 1 << 62] {
        chunk_fails(RLE, LAYER, 4, &[], |c| c.put_i64(c.index(LAYER, 4), offset));
        chunk_fails(PLAIN, U8, 3, &[], |c| c.put_i64(c.index(U8, 3), offset));
    }
    for length in [-1, i32::MIN, i32::MAX] {
        chunk_fails(RLE, LAYER, 4, &[], |c| c.put_i32(c.index(LAYER, 4) + 8, length));
        chunk_fails(PLAIN, U8, 0, &[], |c| c.put_i32(c.index(U8, 0) + 8, length));
    }
}

/// Each page has four entries here; the chunks of the other pages can still be read.
#[test]
fn index_pages_outside_of_the_file() {
    let c = Container::read(RLE);
    let (entry, total) = (c.entry(LAYER), 6);
    assert_eq!((c.i32(entry + 16), c.i32(entry + 8)), (4, total));
    for offset in [-1, i64::MIN, i64::MAX, c.0.len() as i64, c.0.len() as i64 - 1] {
        let dataset = changed(RLE, |c| c.put_i64(c.page(LAYER, 4), offset)).open().unwrap();
        let (_, damaged) = naive::read_what_can_be(&*find(&*dataset, LAYER));
        assert_eq!(damaged.len(), 2, "{offset}: {damaged:?}");
        assert!(damaged.iter().all(|(_, error)| error.to_string().contains("index page")), "{damaged:?}");
    }
}

#[test]
fn an_index_page_that_was_never_written() {
    let dataset = changed(RLE, |c| c.put_i64(c.page(LAYER, 4), 0)).open().unwrap();
    let array = find(&*dataset, LAYER);
    naive::read_all(&*array).unwrap();
    assert_eq!(array.census().unwrap().unwrap().counts.missing, 2);
}

#[test]
fn data_chunks_of_no_bytes() {
    for (name, layer) in [(RLE, LAYER), (ZIP, LAYER), (PLAIN, U8), (PLAIN, BITS)] {
        chunk_fails(name, layer, 1, &["no bytes"], |c| c.put_i32(c.index(layer, 1) + 8, 0));
    }
}

#[test]
fn chunk_headers_that_contradict_the_layer() {
    for (name, layer) in [(RLE, LAYER), (ZIP, LAYER), (PLAIN, U8), (PLAIN, BITS)] {
        for (field, number, word) in [
            (0, 0, "dimensions"),
            (0, 4, "dimensions"),
            (0, -1, "dimensions"),
            (0, 2, "samples"),
            (1, 31, "samples"),
            (2, i32::MAX, "samples"),
            (3, 0, "samples"),
            (3, -1, "samples"),
            (4, 3, "format"),
            (4, -1, "format"),
            (5, 2, "components"),
            (5, 0, "components"),
        ] {
            chunk_fails(name, layer, 2, &["header", word], |c| c.put_i32(c.chunk(layer, 2).start + 4 * field, number));
        }
    }
}

#[test]
fn chunks_shorter_than_their_header() {
    for (name, layer) in [(RLE, LAYER), (ZIP, LAYER), (PLAIN, U8), (PLAIN, BITS)] {
        for length in [1, 23] {
            chunk_fails(name, layer, 0, &[], |c| c.put_i32(c.index(layer, 0) + 8, length));
        }
    }
}

#[test]
fn too_few_or_too_many_samples() {
    for by in [-1, 1, 100] {
        for layer in [U8, BITS, LAYER] {
            chunk_fails(PLAIN, layer, 1, &["bytes"], |c| {
                let length = c.chunk(layer, 1).len() as i32;
                c.put_i32(c.index(layer, 1) + 8, length + by);
            });
        }
    }
}

#[test]
fn damaged_zlib_streams() {
    let stored = |c: &Container| c.0[c.chunk(LAYER, 2)].to_vec();
    let with = |words: &[&str], change: &dyn Fn(&mut Vec<u8>)| {
        chunk_fails(ZIP, LAYER, 2, words, |c| {
            let mut chunk = stored(c);
            change(&mut chunk);
            c.replace(LAYER, 2, &chunk);
        });
    };
    with(&["zlib"], &|chunk| chunk[24] ^= 0xff);
    with(&["zlib"], &|chunk| chunk[40..60].fill(0xff));
    with(&["zlib"], &|chunk| *chunk.last_mut().unwrap() ^= 1);
    with(&["zlib", "cut off"], &|chunk| chunk.truncate(chunk.len() - 1));
    with(&["zlib", "cut off"], &|chunk| chunk.truncate(24));
    let packed = |samples: usize| {
        let mut encoder = ZlibEncoder::new(Vec::new(), Compression::fast());
        encoder.write_all(&vec![7; samples]).unwrap();
        encoder.finish().unwrap()
    };
    let dataset = Container::read(ZIP).open().unwrap();
    let array = find(&*dataset, LAYER);
    let at = array.info().grid.count().index_of(2);
    let Brick::Coded(coded) = array.brick(&at, Blocking::Yes).unwrap() else { panic!() };
    let refit = |samples: usize| move |chunk: &mut Vec<u8>| drop(chunk.splice(24.., packed(samples)));
    with(&["zlib", "holds"], &refit(coded.decoded - 1));
    with(&["zlib", "holds more"], &refit(coded.decoded + 1));
    with(&["zlib", "holds more"], &refit(1 << 20));
    // a chunk longer than any compression of these samples is not even read
    with(&["bytes"], &|chunk| chunk.resize(1 << 20, 0));
}

/// Changes one word of a wavelet chunk: version, size, thresholds (which follow the zero runs and NoValue), counts.
#[test]
fn damaged_wavelet_chunks() {
    const NAME: &str = "wavelet-lossless.vds";
    let sound = Container::read(NAME);
    let layer = sound.files().into_iter().find(|name| name.ends_with(LAYER)).unwrap();
    let chunk = sound.chunk(&layer, 1);
    let word = |at: usize| sound.i32(chunk.start + at);
    // the zero runs begin with their length; a single word follows where there is no NoValue
    let thresholds = 24 + (word(24) as usize).next_multiple_of(4) + 4;
    assert_eq!(word(thresholds - 4), -1);
    let cases: [(&[&str], usize, i32); 7] = [
        (&["version"], 0, 674),
        (&["bytes"], 4, 20),
        (&["samples"], 8, 512),
        (&["threshold"], thresholds, f32::NAN.to_bits() as i32),
        (&["threshold"], thresholds, 0),
        (&["bit-plane stream"], thresholds + 8, i32::MAX),
        (&["count"], thresholds + 12, word(thresholds + 12) + 1),
    ];
    for (words, at, number) in cases {
        chunk_fails(NAME, &layer, 1, words, |c| c.put_i32(c.chunk(&layer, 1).start + at, number));
    }
    chunk_fails(NAME, &layer, 1, &[], |c| {
        let bytes = c.chunk(&layer, 1);
        let half = c.0[bytes.clone()][..bytes.len() / 2].to_vec();
        c.replace(&layer, 1, &half);
    });
}

#[test]
fn run_lengths_that_do_not_fit_the_chunk() {
    let with = |words: &[&str], change: &dyn Fn(&mut Vec<u8>)| {
        chunk_fails(RLE, LAYER, 2, words, |c| {
            let mut chunk = c.0[c.chunk(LAYER, 2)].to_vec();
            change(&mut chunk);
            c.replace(LAYER, 2, &chunk);
        });
    };
    let put =
        |at: usize, number: i32| move |chunk: &mut Vec<u8>| chunk[at..at + 4].copy_from_slice(&number.to_le_bytes());
    for size in [-1, 0, 11, i32::MAX] {
        with(&["run lengths"], &put(24, size));
    }
    for unpacked in [-1, 0, 7, i32::MAX] {
        with(&["run lengths"], &put(28, unpacked));
    }
    for unit in [-1, 0, 3, 16, 256] {
        with(&["run lengths", "units"], &put(32, unit));
    }
    // runs that end before or after the chunk does
    with(&["run lengths"], &|chunk| chunk.truncate(36));
    with(&["run lengths"], &|chunk| {
        let less = chunk.len() as i32 - 24 - 1;
        put(24, less)(chunk);
    });
    with(&["run lengths"], &|chunk| chunk[36..].fill(0xff));
    with(&["run lengths"], &|chunk| chunk[36..].fill(0));
    with(&["run lengths"], &|chunk| chunk[36..].fill(0xbf));
}

#[test]
fn missing_objects() {
    for (name, chunk) in [("pages", 0), ("no-directory", 2), ("no-pages", 3), ("tagged", 2)] {
        cloud_chunk_fails(name, chunk, &[], |cloud| drop(cloud.0.remove(&format!("{LAYER}/{chunk}"))));
    }
}

#[test]
fn objects_of_a_wrong_length() {
    for (name, chunk) in [("pages", 0), ("no-directory", 2), ("no-pages", 3), ("tagged", 2)] {
        let object = format!("{LAYER}/{chunk}");
        cloud_chunk_fails(name, chunk, &[], |cloud| cloud.object(&object).truncate(100));
        cloud_chunk_fails(name, chunk, &[], |cloud| cloud.object(&object).clear());
        cloud_chunk_fails(name, chunk, &[], |cloud| cloud.object(&object).truncate(10));
        cloud_chunk_fails(name, chunk, &[], |cloud| cloud.object(&object).resize(1 << 20, 0));
    }
    cloud_chunk_fails("no-directory", 2, &["bytes"], |cloud| cloud.object(&format!("{LAYER}/2")).push(0));
}

/// Each page has the metadata of two chunks.
#[test]
fn missing_and_truncated_pages() {
    let page = format!("{LAYER}/ChunkMetadata/0");
    let failing = |change: &dyn Fn(&mut Cloud)| {
        let mut cloud = Cloud::read("pages");
        change(&mut cloud);
        let array = find(&*cloud.open().unwrap(), LAYER);
        let (_, damaged) = naive::read_what_can_be(&*array);
        assert!(damaged.iter().all(|(_, error)| error.to_string().contains(&page)), "{damaged:?}");
        damaged.iter().map(|(at, _)| array.info().grid.count().linear_of(at)).collect::<Vec<_>>()
    };
    assert_eq!(failing(&|cloud| drop(cloud.0.remove(&page))), [0, 1]);
    assert_eq!(failing(&|cloud| cloud.object(&page).clear()), [0, 1]);
    assert_eq!(failing(&|cloud| cloud.object(&page).truncate(15)), [1]);
    assert_eq!(failing(&|cloud| cloud.object(&page).extend([0xff; 100])), [0; 0]);
}

#[test]
fn metadata_that_differs_between_page_and_object() {
    let object = format!("{LAYER}/0");
    let hash = Cloud::read("pages").0[&format!("{LAYER}/ChunkMetadata/0")][..8].to_vec();
    // as raw bytes, and in base64, as an object store keeps it
    for tag in [hash.clone(), STANDARD.encode(&hash).into_bytes()] {
        let mut cloud = Cloud::read("pages");
        cloud.tag(&object, &tag);
        naive::read_all(&*find(&*cloud.open().unwrap(), LAYER)).unwrap();
    }
    let mut other = hash;
    other[3] ^= 1;
    cloud_chunk_fails("pages", 0, &["not the same"], |cloud| cloud.tag(&object, &other));
    cloud_chunk_fails("pages", 0, &["no metadata"], |cloud| cloud.tag(&object, b"not base64!"));
}

#[test]
fn invalid_metadata_of_objects() {
    let whole = |text: &str| {
        let mut cloud = Cloud::read("no-pages");
        cloud.0.insert("ObjectMetadata.json".into(), text.into());
        let array = find(&*cloud.open().unwrap(), LAYER);
        let (_, damaged) = naive::read_what_can_be(&*array);
        assert!(damaged.iter().all(|(_, error)| matches!(error, FormatError::Damaged(_))), "{damaged:?}");
        damaged.len()
    };
    assert_eq!(whole("{"), 6);
    assert_eq!(whole("[]"), 6);
    assert_eq!(whole(r#"{"Dimensions_012LOD0/1": {"vdschunkmetadata": "AA"}}"#), 6);
    // constants and NoValue are lost
    assert_eq!(whole("{}"), 2);
    assert_eq!(whole(r#"{"Dimensions_012LOD0/1": {"x-amz-meta-VDS-Chunk-Metadata": "AAAAAAAAAAA="}}"#), 1);
}
