//! VDS datasets that change while they are mounted: reads give right samples or an error, never a mixture, and never a
//! crash.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use serde_json::{Value, json};

use super::vds::{naive_read, rows};
use crate::support::{Mount, SOON, comes_true, is_eio, json, process_lives, read_at, replace, source_of};

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
