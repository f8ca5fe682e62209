//! VDS datasets: their files, descriptions and damage, and changes while they are mounted.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::ops::Range;
use std::os::unix::fs::{MetadataExt, symlink};
use std::path::Path;

use rustix::fs::{XattrFlags, setxattr};
use serde_json::{Value, json};
use volfs::internals::{Level, levels as levels_of};

use crate::support::vds::{self, Container};
use crate::support::{
    Mount, SOON, comes_true, crc, floats, is_eio, json, names, numbers, process_lives, read_at, replace, skip,
    source_of, test_data,
};

fn layers() -> Vec<Value> {
    vds::expected()["layers"].as_array().unwrap().clone()
}

fn text<'a>(layer: &'a Value, key: &str) -> &'a str {
    layer[key].as_str().unwrap()
}

#[test]
fn folders_of_chunks_may_be_links() {
    let source = source_of("vds", &["json-names"]);
    let (dataset, aside) = (source.path().join("json-names"), source.path().join("aside"));
    fs::create_dir(&aside).unwrap();
    for name in names(&dataset).into_iter().filter(|name| dataset.join(name).is_dir()) {
        fs::rename(dataset.join(&name), aside.join(&name)).unwrap();
        symlink(Path::new("../aside").join(&name), dataset.join(name)).unwrap();
    }
    let Some(mount) = Mount::of(source.path()) else { return };
    let layer = layers().into_iter().find(|layer| text(layer, "dataset") == "json-names").unwrap();
    let file = mount.path("json-names").join(text(&layer, "folder")).join("lod0.raw");
    let Some(direct) = Mount::of(test_data("vds")) else { return };
    let same = direct.path("json-names").join(text(&layer, "folder")).join("lod0.raw");
    assert!(fs::read(file).unwrap() == fs::read(same).unwrap());
}

#[test]
fn every_layer_is_a_folder_of_files() {
    let Some(mount) = Mount::of(test_data("vds")) else { return };
    let mut folders: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for layer in layers() {
        folders.entry(text(&layer, "dataset").into()).or_default().insert(text(&layer, "folder").into());
    }
    let mut shown = names(mount.point());
    assert!(shown.remove(".volfs"));
    assert!(shown.iter().eq(folders.keys()), "{shown:?}");
    for (dataset, mut wanted) in folders {
        wanted.insert("dataset.json".into());
        let mut shown = names(mount.path(&dataset));
        shown.retain(|name| !name.ends_with(".zarr") && name != "outline.geojson");
        assert_eq!(shown, wanted, "{dataset}");
    }
}

#[test]
fn names_that_no_file_can_have_are_encoded() {
    let Some(mount) = Mount::of(vds::data().join("names.vds")) else { return };
    let shown = names(mount.path("names.vds"));
    for name in ["channel0", "channel0~2", "a%2Fb", "100%25", "dataset.json", "dataset.json~2", "%2E%2E", "tab%09here"]
    {
        assert!(shown.contains(name), "{name} is not in {shown:?}");
    }
    assert!(shown.contains("channel0@Dimensions_12") && shown.contains("LOD9Dimensions_01@Dimensions_12"));
    assert_eq!(json(mount.path("names.vds/%2E%2E/lod0.json"))["layer"], "..");
    assert_eq!(json(mount.path("names.vds/channel0/lod0.json"))["vds"]["channel"], "");
}

#[test]
fn datasets_are_described() {
    let Some(mount) = Mount::of(test_data("vds")) else { return };
    let dataset = json(mount.path("metadata.vds/dataset.json"));
    assert_eq!((&dataset["format"], &dataset["name"]), (&json!("vds"), &json!("metadata.vds")));
    assert_eq!((&dataset["statistics"], &dataset["histogram"]), (&Value::Null, &Value::Null));
    assert_eq!(dataset["source"]["path"], "metadata.vds");
    assert_eq!(dataset["warnings"], json!([]));
    let layer = &dataset["layers"][0];
    assert_eq!((&layer["name"], &layer["lods"], &layer["shape"]), (&json!("Amplitude"), &json!(1), &json!([7, 8, 9])));
    let entries = dataset["metadata"].as_array().unwrap();
    let entry = |category: &str, name: &str| {
        let found = entries.iter().find(|entry| entry["category"] == category && entry["name"] == name);
        found.unwrap_or_else(|| panic!("no {category} {name}"))
    };
    for (name, value) in [
        ("Int", json!(-7)),
        ("IntVector2", json!([-7, -14])),
        ("IntVector3", json!([-7, -14, -21])),
        ("IntVector4", json!([-7, -14, -21, -28])),
        ("Double", json!(0.1)),
        ("DoubleVector2", json!([0.1, 0.2])),
        ("DoubleVector4", json!([0.1, 0.2, 0.1 * 3.0, 0.4])),
        ("String", json!("Løkka \"east\"\n\t/ second line")),
    ] {
        assert_eq!((&entry("Types", name)["type"], &entry("Types", name)["value"]), (&json!(name), &value));
    }
    for (name, length) in [("Float", 1), ("FloatVector2", 2), ("FloatVector3", 3), ("FloatVector4", 4)] {
        let value = &entry("Types", name)["value"];
        let values = if length == 1 { vec![value.as_f64().unwrap()] } else { floats(value) };
        let wanted = (1..=length).map(|n| (0.1 * f64::from(n)) as f32);
        assert!(values.iter().map(|v| *v as f32).eq(wanted), "{value}");
    }
    let blob = entry("Types", "BLOB");
    assert_eq!((&blob["type"], &blob["length"]), (&json!("BLOB"), &json!(256)));
    assert!(blob["value"].as_str().unwrap().starts_with("AAECAwQFBgcICQoLDA0ODxAR"));
    assert_eq!(entry("", "no category")["value"], "");
    let segy = &dataset["vds"]["segy"];
    assert_eq!((&segy["textHeader"][0], &segy["textHeader"][39]), (&json!("C 1 VOLFS TEST SURVEY"), &json!("C40")));
    assert_eq!(segy["textHeaderEncoding"], "EBCDIC");
    assert_eq!(segy["binaryHeader"]["sample_interval"], 4000);
    assert_eq!(segy["binaryHeader"]["samples_per_trace"], 70);
    assert_eq!(segy["sampleFormat"]["code"], 5);
    assert_eq!(json(mount.path("two.vds/dataset.json"))["geometry"], Value::Null);
}

#[test]
fn surveys_have_world_coordinates() {
    let Some(mount) = Mount::of(vds::data().join("metadata.vds")) else { return };
    let geometry = json(mount.path("metadata.vds/dataset.json"))["geometry"].clone();
    let corners = geometry["corners"].as_array().unwrap();
    for (corner, [i, j]) in corners.iter().zip([[0, 0], [6, 0], [0, 7], [6, 7]]) {
        let (inline, crossline) = (210.0 + 4.0 * f64::from(i), 110.0 + 3.0 * f64::from(j));
        assert_eq!(
            (numbers(&corner["index"]), floats(&corner["annotation"])),
            (vec![i as u64, j as u64], vec![inline, crossline])
        );
        let world = [431_000.5 + 3.0 * inline - 12.25 * crossline, 6_348_000.25 + 12.25 * inline + 3.0 * crossline];
        let found = floats(&corner["world"]);
        assert!((0..2).all(|axis| (found[axis] - world[axis]).abs() < 1e-6), "{corner}: {world:?}");
    }
    assert_eq!(corners.len(), 4);
    assert_eq!(geometry["coordinate_system"], "PROJCS[\"ED50 / UTM zone 31N\"]");
    assert_eq!(geometry["units"]["horizontal"]["name"], "m");
    assert_eq!(geometry["units"]["vertical"]["name"], "ms");
}

#[test]
fn metadata_is_read_from_extended_attributes() {
    let source = source_of("vds", &["tagged"]);
    let tags = vds::expected()["tags"]["tagged"].clone();
    for (object, tag) in tags.as_object().unwrap() {
        let path = source.path().join("tagged").join(object);
        let name = "user.vdschunkmetadata";
        match setxattr(&path, name, tag.as_str().unwrap().as_bytes(), XattrFlags::empty()) {
            Err(rustix::io::Errno::NOTSUP) => {
                return skip(&format!("no extended attributes in {}", path.display()));
            }
            set => set.unwrap(),
        }
    }
    let Some(mount) = Mount::of(source.path()) else { return };
    for layer in layers().iter().filter(|layer| layer["dataset"] == "tagged") {
        let raw = fs::read(mount.path(format!("tagged/Amplitude/lod{}.raw", layer["lod"]))).unwrap();
        assert_eq!(crc(&raw), text(layer, "crc32"), "{layer}");
    }
}

/// Returns every row of samples (along the fastest axis, within one chunk) of a layer: its bytes in the array, and
/// whether it belongs to chunk `chunk`.
pub fn rows(name: &str, stored: &str, chunk: u64) -> Vec<(Range<usize>, bool)> {
    let level = level_of(name, stored);
    let (array, size, mut rows) = (level.shape(), level.sample_size() as u64, Vec::new());
    for ((start, shape), number) in level.bricks().into_iter().zip(0..) {
        for row in 0..shape[0] * shape[1] {
            let (z, y) = (start[0] + row / shape[1], start[1] + row % shape[1]);
            let offset = (((z * array[1] + y) * array[2] + start[2]) * size) as usize;
            rows.push((offset..offset + (shape[2] * size) as usize, number == chunk));
        }
    }
    rows
}

/// The reads bypass the page cache, in which the kernel would merge reads of neighbouring rows.
#[test]
fn only_damaged_chunks_cannot_be_read() {
    let source = source_of("vds", &["pages"]);
    let layer = "Dimensions_012LOD0";
    for name in ["margins-4-4.vds", "margins-2-3.vds", "formats-none.vds"] {
        let mut container = Container::read(name);
        // the number of dimensions is first in each chunk
        container.put_i32(container.chunk(layer, 2).start, 9);
        fs::write(source.path().join(name), container.0).unwrap();
    }
    fs::remove_file(source.path().join("pages").join(layer).join("2")).unwrap();
    let Some(mount) = Mount::with(source.path(), &["--direct-io"]) else { return };
    for name in ["margins-4-4.vds", "margins-2-3.vds", "formats-none.vds", "pages"] {
        let folder = if name == "formats-none.vds" { "of R32" } else { "Amplitude" };
        let whole = naive_read(name, layer);
        let file = File::open(mount.path(name).join(folder).join("lod0.raw")).unwrap();
        for _ in 0..2 {
            for (row, bad) in rows(name, layer, 2) {
                match read_at(&file, row.start as u64, row.len()) {
                    Ok(found) => assert!(!bad && found == whole[row], "{name}"),
                    Err(error) => assert!(bad && is_eio(&error), "{name}: {error} at {}", row.start),
                }
            }
        }
    }
    let log = mount.log();
    for name in ["margins-4-4.vds", "margins-2-3.vds", "formats-none.vds", "pages"] {
        assert_eq!(log.lines().filter(|line| line.contains(name) && line.contains("rick")).count(), 1, "{name}: {log}");
    }
    assert!(mount.counter("errors") > 0);
}

/// Returns a stored layer of the test data.
fn level_of(name: &str, stored: &str) -> Level {
    let levels = levels_of(&vds::data().join(name)).unwrap();
    levels.into_iter().find(|level| level.stored.as_deref() == Some(stored)).unwrap()
}

/// Reads a layer of the test data by the naive model.
pub fn naive_read(name: &str, stored: &str) -> Vec<u8> {
    level_of(name, stored).read().unwrap()
}

#[test]
fn datasets_that_do_not_open_have_the_reason() {
    let source = source_of("vds", &["two.vds", "pages"]);
    let sound = Container::read("two.vds");
    let mut layout = sound.clone();
    layout.edit(|layout| layout["layoutDescriptor"]["brickSize"] = json!("BrickSize_33"));
    let files = [
        ("layout.vds", layout.0, "brickSize"),
        ("empty.vds", Vec::new(), ""),
        ("short.vds", sound.0[..20].to_vec(), "not a VDS"),
        ("cut.vds", sound.0[..200].to_vec(), "damaged header"),
        ("other.vds", b"this is something else entirely".to_vec(), ""),
    ];
    for (name, bytes, _) in &files {
        fs::write(source.path().join(name), bytes).unwrap();
    }
    fs::write(source.path().join("pages/LayerStatus"), "[{]").unwrap();
    let Some(mount) = Mount::of(source.path()) else { return };
    for (name, _, words) in &files {
        let error = fs::read_to_string(mount.path(name).join("error.txt")).unwrap_or_else(|e| panic!("{name}: {e}"));
        assert!(error.contains(words), "{name}: {error}");
    }
    let error = fs::read_to_string(mount.path("pages/error.txt")).unwrap();
    assert!(error.contains("LayerStatus"), "{error}");
    assert!(mount.path("two.vds/Amplitude/lod0.raw").exists());
    fs::copy(vds::data().join("pages/LayerStatus"), source.path().join("pages/LayerStatus")).unwrap();
    assert!(comes_true(SOON, || mount.path("pages/Amplitude/lod0.raw").exists()), "it opens now");
}

/// The trace headers that the surveys were imported with say of lines, positions and times what volfs computes from their
/// geometry. Two corners of the surveys have no traces.
#[test]
fn the_demo_datasets_are_surveys() {
    let Some(mount) = Mount::of(test_data("demo")) else { return };
    for (name, shape) in [("south.vds", [64, 80, 120]), ("cloud-survey", [20, 40, 120])] {
        let described = json(mount.path(name).join("Amplitude/lod0.json"));
        assert_eq!(numbers(&described["shape"]), shape, "{name}");
        let lods = json(mount.path(name).join("dataset.json"))["layers"].as_array().unwrap().clone();
        let found: Vec<_> = lods.iter().map(|layer| (text(layer, "name"), layer["lods"].as_u64().unwrap())).collect();
        assert_eq!(found, [("Amplitude", 3), ("Trace", 3), ("SEGYTraceHeader", 1)], "{name}");
        let [live, heads, computed, imported] =
            ["Trace/lod0.raw", "SEGYTraceHeader/lod0.raw", "Amplitude/lod0.sgy", "Amplitude/original.sgy"]
                .map(|file| fs::read(mount.path(name).join(file)).unwrap());
        assert!(imported[3200..3600] == computed[3200..3600], "{name}: the binary headers differ");
        let mut imported = imported[3600..].as_chunks::<720>().0.iter();
        for (trace, computed) in computed[3600..].as_chunks::<720>().0.iter().enumerate() {
            let (inline, crossline) = (trace / shape[1] as usize, trace % shape[1] as usize);
            let is_live = inline + crossline > 6 && crossline < inline + 70;
            assert_eq!(live[trace], u8::from(is_live), "{name}: {inline}, {crossline}");
            let head = &heads[240 * trace..240 * (trace + 1)];
            if is_live {
                let imported = imported.next().unwrap();
                assert!(imported[..240] == *head, "{name}: {inline}, {crossline}");
                // but for the numbers of traces, in the file and in their ensemble
                let same = |bytes: Range<usize>| imported[bytes.clone()] == computed[bytes];
                assert!(same(8..24) && same(28..720), "{name}: {inline}, {crossline}");
            } else {
                assert_eq!(computed[28..30], [0, 2], "{name}: {inline}, {crossline}");
                let mut bytes = head.iter().chain(&computed[240..]);
                assert!(bytes.all(|byte| *byte == 0), "{name}: {inline}, {crossline}");
            }
        }
        assert_eq!(imported.count(), 0, "{name}");
    }
}

/// Reads a chunk that is not compressed, and makes all its samples the same.
fn flat(chunk: &Path) -> Vec<u8> {
    let mut bytes = fs::read(chunk).unwrap();
    bytes[24..].fill(0x11);
    bytes
}

#[test]
fn a_replaced_chunk_shows_its_new_content() {
    let source = source_of("vds", &["no-directory"]);
    let chunk = source.path().join("no-directory/Dimensions_012LOD0/0");
    let Some(mount) = Mount::of(source.path()) else { return };
    let raw = mount.path("no-directory/Amplitude/lod0.raw");
    let (before, file) = (fs::read(&raw).unwrap(), File::open(&raw).unwrap());
    let old_inode = file.metadata().unwrap().ino();
    let new = flat(&chunk);
    replace(&chunk, &new);
    let now = || fs::read(&raw).unwrap_or_default();
    assert!(comes_true(SOON, || now().len() == before.len() && now() != before), "the new content is not shown");
    let after = now();
    for (row, new) in rows("no-directory", "Dimensions_012LOD0", 0) {
        assert!(if new { after[row].iter().all(|b| *b == 0x11) } else { after[row.clone()] == before[row] });
    }
    assert_ne!(fs::metadata(&raw).unwrap().ino(), old_inode);
    let mut parts = (0..before.len() as u64 / 64).map(|n| (n, read_at(&file, 64 * n, 64)));
    let is_old = |n: u64, part: Vec<u8>| before[64 * n as usize..][..64] == part;
    assert!(
        parts.all(|(n, part)| part.map_or_else(|error| is_eio(&error), |part| is_old(n, part))),
        "old and new are mixed"
    );
}

#[test]
fn a_replaced_compressed_chunk_is_not_mixed_with_the_old_one() {
    let source = source_of("vds", &["json-names"]);
    let layer = source.path().join("json-names/Dimensions_012LOD0");
    let Some(mount) = Mount::of(source.path()) else { return };
    let raw = mount.path("json-names/Amplitude/lod0.raw");
    let before = fs::read(&raw).unwrap();
    // the first two chunks have the same shape
    let chunk = fs::read(layer.join("1")).unwrap();
    replace(&layer.join("0"), &chunk);
    let now = || fs::read(&raw).unwrap_or_default();
    assert!(comes_true(SOON, || now().len() == before.len() && now() != before), "the new content is not shown");
    let after = now();
    let [zero, one] = [0, 1].map(|chunk| {
        let rows = rows("json-names", "Dimensions_012LOD0", chunk);
        rows.into_iter().filter(|(_, of_chunk)| *of_chunk).map(|(row, _)| row).collect::<Vec<_>>()
    });
    assert!(
        zero.into_iter()
            .zip(one)
            .all(|(zero, one)| after[zero] == before[one.clone()] && after[one.clone()] == before[one])
    );
}

#[test]
fn a_removed_chunk_is_an_error_or_counts_as_never_written() {
    let source = source_of("vds", &["pages", "no-pages", "tagged"]);
    for object in ["Dimensions_012LOD0/0", "Dimensions_012LOD1/0"] {
        // without the constant chunks the rest can be read without attributes
        let _ = fs::remove_file(source.path().join("tagged").join(object));
    }
    let Some(mount) = Mount::of(source.path()) else { return };
    let raw = |name: &str| mount.path(name).join("Amplitude/lod0.raw");
    let before: BTreeMap<&str, Vec<u8>> =
        ["pages", "no-pages", "tagged"].into_iter().map(|name| (name, fs::read(raw(name)).unwrap())).collect();
    for name in before.keys() {
        fs::remove_file(source.path().join(name).join("Dimensions_012LOD0/3")).unwrap();
    }
    for name in ["pages", "no-pages"] {
        assert!(comes_true(SOON, || fs::read(raw(name)).is_err_and(|e| is_eio(&e))), "{name}");
        let file = File::open(raw(name)).unwrap();
        assert!(read_at(&file, 0, 16).is_ok_and(|found| found == before[name][..16]), "{name}: another chunk");
    }
    // nothing in this dataset shows that the chunk existed
    assert!(comes_true(SOON, || fs::read(raw("tagged")).is_ok_and(|now| now != before["tagged"])));
    let now = fs::read(raw("tagged")).unwrap();
    for (row, gone) in rows("tagged", "Dimensions_012LOD0", 3) {
        assert!(if gone { now[row].iter().all(|b| *b == 0) } else { now[row.clone()] == before["tagged"][row] });
    }
}

#[test]
fn a_new_description_is_a_new_dataset() {
    let source = source_of("vds", &["pages"]);
    let Some(mount) = Mount::of(source.path()) else { return };
    assert!(mount.path("pages/Trace/lod0.raw").exists());
    let status = source.path().join("pages/LayerStatus");
    let layers = json(&status);
    let of = |layer: &&Value| layer["channelName"] != "Trace";
    let fewer: Vec<_> = layers.as_array().unwrap().iter().filter(of).cloned().collect();
    replace(&status, json!(fewer).to_string().as_bytes());
    assert!(comes_true(SOON, || !mount.path("pages/Trace").exists() && mount.path("pages/Amplitude").exists()));
    replace(&status, layers.to_string().as_bytes());
    assert!(comes_true(SOON, || mount.path("pages/Trace/lod1.raw").exists()));
}

#[test]
fn a_file_that_is_truncated_gives_errors_for_the_missing_part() {
    for name in ["margins-2-3.vds", "formats-none.vds"] {
        let source = source_of("vds", &[name]);
        let path = source.path().join(name);
        let whole = fs::read(&path).unwrap();
        let Some(mount) = Mount::with(source.path(), &["--direct-io"]) else { return };
        let folder = mount.path(name).join(if name == "formats-none.vds" { "of U16" } else { "Amplitude" });
        let stored = if name == "formats-none.vds" { "of U16Dimensions_012LOD0" } else { "Dimensions_012LOD0" };
        let before = naive_read(name, stored);
        let file = File::open(folder.join("lod0.raw")).unwrap();
        assert_eq!(read_at(&file, 0, 64).unwrap(), before[..64]);
        File::options().write(true).open(&path).unwrap().set_len(whole.len() as u64 / 3).unwrap();
        let mut errors = 0;
        for n in 0..before.len() as u64 / 64 {
            match read_at(&file, 64 * n, 64) {
                Ok(found) => assert_eq!(found, before[64 * n as usize..][..64], "{name}: at {n}"),
                Err(error) => {
                    assert!(is_eio(&error), "{name}: {error}");
                    errors += 1;
                }
            }
        }
        assert!(errors > 0, "{name}: all can be read of a third of a file");
        // the rest of the file may still open
        let fails = || {
            mount.path(name).join("error.txt").exists() || fs::read(folder.join("lod0.raw")).is_err_and(|e| is_eio(&e))
        };
        assert!(comes_true(SOON, fails), "{name}");
        assert!(process_lives(mount.pid()));
        replace(&path, &whole);
        assert!(comes_true(SOON, || fs::read(folder.join("lod0.raw")).is_ok_and(|now| now == before)), "{name}");
    }
}

#[test]
fn a_chunk_that_is_written_later_is_noticed() {
    let source = source_of("vds", &["no-pages"]);
    let chunk = source.path().join("no-pages/Dimensions_012LOD0/4");
    assert!(!chunk.exists());
    let Some(mount) = Mount::of(source.path()) else { return };
    let raw = mount.path("no-pages/Amplitude/lod0.raw");
    let before = fs::read(&raw).unwrap();
    let rows = rows("no-pages", "Dimensions_012LOD0", 4);
    let nothing: Vec<u8> = (-999.25f32).to_le_bytes().repeat(rows[0].0.len() / 4);
    let mut of_chunk = rows.iter().filter(|(_, of_chunk)| *of_chunk);
    assert!(of_chunk.all(|(row, _)| before[row.clone()] == nothing[..row.len()]), "it was never written");
    // another chunk of the same shape
    fs::copy(chunk.with_file_name("3"), &chunk).unwrap();
    let now = || fs::read(&raw).unwrap_or_default();
    assert!(comes_true(SOON, || now().len() == before.len() && now() != before));
    let after = now();
    assert!(rows.iter().all(|(row, of_chunk)| *of_chunk != (after[row.clone()] == before[row.clone()])));
}

#[test]
fn descriptions_that_change_in_place_are_noticed() {
    let source = source_of("vds", &["json-names", "pages"]);
    let Some(mount) = Mount::of(source.path()) else { return };
    let codec = || {
        fs::read(mount.path("json-names/Amplitude/lod0.json"))
            .map(|text| serde_json::from_slice::<Value>(&text).unwrap()["codec"].clone())
    };
    assert_eq!(codec().unwrap(), "rle");
    let status = source.path().join("json-names/LayerStatus.json");
    let text = fs::read_to_string(&status).unwrap().replace("\"RLE\"", "\"Zip\"");
    fs::write(&status, text).unwrap();
    assert!(comes_true(SOON, || codec().is_ok_and(|codec| codec == "zip")), "the list of layers");
    let unit = || {
        fs::read(mount.path("pages/dataset.json"))
            .map(|text| serde_json::from_slice::<Value>(&text).unwrap()["vds"]["axes"][0]["unit"].clone())
    };
    assert_eq!(unit().unwrap(), "ms");
    let layout = source.path().join("pages/VolumeDataLayout");
    let text = fs::read_to_string(&layout).unwrap().replace("\"ms\"", "\"ft\"");
    fs::write(&layout, text).unwrap();
    assert!(comes_true(SOON, || unit().is_ok_and(|unit| unit == "ft")), "the description");
}
