//! The checks of a dataset's structure: each fault that reading bricks one by one does not notice is reported, and
//! nothing of the test data that can be read.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::json;

use crate::format::vds::Vds;
use crate::format::wkw::Wkw;
use crate::format::zgy::Zgy;
use crate::format::{Dataset, Format, OpenWith, Severity};
use crate::source::IndexCache;
use crate::test_support::handmade::{Handmade, zfp_header};
use crate::test_support::memory_folder::{MemoryFolder, files_below, open_file, open_files};
use crate::test_support::vds_dataset::{self as vds, Container};
use crate::test_support::{fixtures, test_data};
use crate::volume::BrickSet;

/// A dataset of one layer: zlib streams, 3 x 2 x 1 chunks.
const ZIP: &str = "margins-2-3.vds";
const LAYER: &str = "Dimensions_012LOD0";

const COMPRESSED: u64 = 0xc0 << 56;

/// Returns what is damaged, and what is noted: a line for each, with its place.
fn findings(dataset: &dyn Dataset) -> (Vec<String>, Vec<String>) {
    let (mut damage, mut notes) = (Vec::new(), Vec::new());
    let checked = dataset.check_structure(&mut |found| {
        let place = found.lod.iter().map(|lod| format!("lod {lod} ")).chain(found.brick.map(|b| format!("{b:?} ")));
        let line = place.collect::<String>() + &found.reason;
        if found.severity == Severity::Damage { damage.push(line) } else { notes.push(line) }
    });
    checked.unwrap();
    (damage, notes)
}

fn zgy(file: Vec<u8>) -> Box<dyn Dataset> {
    open_file(&Zgy, file).unwrap()
}

/// Builds a file of float32 in bricks of 8 x 8 x 8: three along the inlines, two of LOD 1, one of LOD 2.
pub(super) fn three_levels(version: u32, entries: impl Fn(u64) -> [u64; 6]) -> (Handmade, u64) {
    let mut file = Handmade::new(version, 6, [20, 8, 7], [8, 8, 8], &[0; 6]);
    let body = file.body_at();
    file.entries = entries(body).to_vec();
    file.body = vec![0; 4 * 2048];
    (file, body)
}

#[test]
fn bricks_are_visited_where_no_names_are_told() {
    for (format, name) in [(&Wkw as &dyn Format, "wkw/pyramid"), (&Vds, "vds/wavelet-no-pages")] {
        let visited = |tells_names: bool| {
            let folder = MemoryFolder { tells_names, ..MemoryFolder::new(files_below(&test_data(name))) };
            let dataset = format.open_folder(Arc::new(folder), &OpenWith::new(IndexCache::new(1 << 20))).unwrap();
            let mut bricks = BTreeMap::new();
            for layer in dataset.layers() {
                for (lod, level) in layer.levels.iter().enumerate() {
                    let mut count = 0;
                    let visit = &mut |set: BrickSet| {
                        count += set.len();
                        true
                    };
                    level.visit_stored(visit).unwrap();
                    bricks.insert((layer.name.clone(), lod), (count, level.info().grid.total()));
                }
            }
            bricks
        };
        assert!(visited(true).values().any(|(count, total)| count < total), "{name}: some bricks are not stored");
        let untold = visited(false);
        assert!(!untold.is_empty(), "{name}");
        for (level, (count, total)) in untold {
            assert_eq!(count, total, "{name}, {level:?}");
        }
    }
}

#[test]
fn zgy_bricks_that_overlap_are_damaged() {
    let (file, body) = three_levels(3, |body| [1, 1, 1, body, body + 2048, body + 4000]);
    let expected = format!(
        "lod 0 [2, 0, 0] brick at byte {} overlaps brick [1, 0, 0] of lod 0 at byte {}",
        body + 4000,
        body + 2048
    );
    assert_eq!(findings(&*zgy(file.build())), (vec![expected], vec![]));
    // of other levels as well, and at one place
    let (file, body) = three_levels(3, |body| [body, 1, 1, body, 1, 1]);
    let expected = format!("lod 2 [0, 0, 0] brick at byte {body} has the place of brick [0, 0, 0] of lod 0");
    assert_eq!(findings(&*zgy(file.build())), (vec![expected], vec![]));
    // a compressed brick has no length, but a least one
    let (mut file, body) = three_levels(4, |body| [1, 1, 1, COMPRESSED | body, COMPRESSED | (body + 8), 1]);
    file.body[..12].copy_from_slice(&zfp_header([8; 3], 2176));
    let expected =
        format!("lod 0 [1, 0, 0] brick at byte {} overlaps brick [0, 0, 0] of lod 0 at byte {body}", body + 8);
    assert_eq!(findings(&*zgy(file.build())), (vec![expected], vec![]));
}

#[test]
fn zgy_bricks_in_the_header_are_damaged() {
    let (file, _) = three_levels(3, |_| [1, 1, 1, 2, 1, 1]);
    let (damage, notes) = findings(&*zgy(file.build()));
    assert_eq!((damage, notes), (vec!["lod 0 [0, 0, 0] brick at byte 2 overlaps the header at byte 0".into()], vec![]));
}

#[test]
fn zgy_levels_with_holes_and_odd_alpha_tiles_are_noted() {
    let (file, _) = three_levels(3, |body| [1, 0, 1, body, 0, 1]);
    let note = "lod 1 1 bricks were never written, although the finer level has data there";
    assert_eq!(findings(&*zgy(file.build())), (vec![], vec![note.to_owned()]));
    let (mut file, body) = three_levels(3, |body| [1, 1, 1, body, 1, 1]);
    // the alpha table stands right before the brick table
    let alpha = body as usize - 8 * (file.alpha + file.entries.len());
    let mut bytes = file.build();
    bytes[alpha..alpha + 8].copy_from_slice(&(1u64 << 40).to_le_bytes());
    let (damage, notes) = findings(&*zgy(bytes));
    assert_eq!((damage.len(), notes.len()), (0, 1));
    assert!(notes[0].contains("1 alpha tiles lie beyond the end"), "{notes:?}");
    // entries of levels that are not usable may be anything
    file.entries = vec![0, 2, 2, body, 1, 1];
    assert_eq!(findings(&*zgy(file.build())), (vec![], vec![]));
}

#[test]
fn vds_chunks_that_overlap_are_damaged() {
    let mut container = Container::read(ZIP);
    let (first, second) = (container.index(LAYER, 0), container.index(LAYER, 1));
    let offset = container.i64(first) + 1;
    container.put_i64(second, offset);
    let (damage, _) = findings(&*container.open().unwrap());
    assert!(
        damage[0].starts_with(&format!("lod 0 [0, 0, 1] chunk at byte {offset} overlaps chunk 0 of {LAYER}")),
        "{damage:?}"
    );
    assert_eq!(damage.len(), 1);

    // at the place of another one: equal data may be stored once
    let (mut container, offset) = (Container::read(ZIP), offset - 1);
    let length = container.i32(first + 8);
    container.put_i64(second, offset);
    container.put_i32(second + 8, length);
    let (damage, notes) = findings(&*container.open().unwrap());
    assert_eq!((damage, notes), (vec![], vec!["1 chunks are stored at the place of another one".to_owned()]));

    // on the header, and on the index page itself
    for (offset, words) in
        [(4, "overlaps the header"), (container.page(LAYER, 0) as i64, "overlaps the page directory")]
    {
        container.put_i64(second, offset);
        let (damage, _) = findings(&*container.open().unwrap());
        assert!(damage[0].contains(words), "{damage:?}");
    }
    let page = container.i64(container.page(LAYER, 0));
    container.put_i64(second, page);
    let (damage, _) = findings(&*container.open().unwrap());
    assert!(damage[0].contains(&format!("index page 0 of {LAYER}")), "{damage:?}");
}

#[test]
fn vds_levels_that_are_missing_are_damaged() {
    let mut container = Container::read(ZIP);
    let entry = container.entry("Dimensions_012LOD1");
    container.put(entry + 20, b"OLD ");
    let (damage, _) = findings(&*container.open().unwrap());
    assert_eq!(damage.len(), 1);
    assert!(damage[0].contains("LOD 1 is not stored, so that LOD 2, 3 is not shown"), "{damage:?}");
}

#[test]
fn a_wrong_number_of_written_vds_chunks_is_noted() {
    let mut container = Container::read(ZIP);
    let at = container.metadata(LAYER) + 8;
    assert_eq!(container.i32(at), 6);
    container.put_i32(at, 5);
    let (damage, notes) = findings(&*container.open().unwrap());
    assert_eq!((damage, notes), (vec![], vec!["lod 0 6 chunks are written, but its table says 5".to_owned()]));
}

/// Returns a dataset of one raw layer: cubes of 2 x 2 x 2 blocks of 2 x 2 x 2 bytes, of which the box has some.
fn wkw(side: u64, cubes: &[(&str, usize)]) -> Box<dyn Dataset> {
    let header = [b'W', b'K', b'W', 1, 0x11, 1, 1, 1, 16, 0, 0, 0, 0, 0, 0, 0];
    let layer = json!({"name": "a", "dataFormat": "wkw", "elementClass": "uint8", "category": "color",
        "mags": [{"mag": [1, 1, 1]}],
        "boundingBox": {"topLeft": [0, 0, 0], "width": side, "height": side, "depth": side}});
    let text = json!({"scale": [1, 1, 1], "dataLayers": [layer]}).to_string();
    let mut files = BTreeMap::from([("datasource-properties.json".to_owned(), text.into_bytes())]);
    files.insert("a/1/header.wkw".into(), header.to_vec());
    for (name, bytes) in cubes {
        files.insert(format!("a/1/{name}"), [&header[..], &vec![7; *bytes]].concat());
    }
    open_files(&Wkw, files).unwrap()
}

#[test]
fn wkw_files_are_checked_beyond_the_box() {
    assert_eq!(findings(&*wkw(2, &[("z0/y0/x0.wkw", 64)])), (vec![], vec![]));
    let (damage, notes) = findings(&*wkw(2, &[("z0/y0/x0.wkw", 50), ("z0/y0/x1.wkw", 64)]));
    let words = "z0/y0/x0.wkw: 2 of its blocks outside of the box are not within the file (the first: 6)";
    assert_eq!(damage, [format!("lod 0 {words}")]);
    assert_eq!(notes, ["lod 0 1 data files lie outside of the layer's box and are not checked"]);
    let (damage, notes) = findings(&*wkw(4, &[("z0/y0/x0.wkw", 70)]));
    assert_eq!((damage, notes), (vec![], vec!["lod 0 z0/y0/x0.wkw: 6 bytes follow its last block".to_owned()]));
}

#[test]
fn wkw_cubes_that_do_not_exist_are_passed_over() {
    let side = 1 << 20;
    let dataset = wkw(side, &[("z0/y0/x0.wkw", 64), ("z9/y300/x7.wkw", 64)]);
    let array = &dataset.layers()[0].levels[0];
    assert!(array.info().grid.total() > 1 << 50);
    let mut visited = Vec::new();
    array
        .visit_stored(&mut |set| {
            visited.push((set.len(), set.nth(set.len() - 1, &array.info().grid.count())));
            true
        })
        .unwrap();
    assert_eq!(visited, [(8, [1, 1, 1].into()), (8, [19, 601, 15].into())]);
}

#[test]
fn nothing_is_damaged_in_test_data_that_can_be_read() {
    for fixture in fixtures() {
        let file = std::fs::read(test_data("zgy").join(&fixture.name)).unwrap();
        assert_eq!(findings(&*zgy(file)).0, [""; 0], "{}", fixture.name);
    }
    let layers = vds::expected()["layers"].as_array().unwrap().clone();
    let names: BTreeSet<&str> = layers.iter().map(|layer| layer["dataset"].as_str().unwrap()).collect();
    assert!(names.len() > 30);
    for name in names {
        assert_eq!(findings(&*vds::open_tagged(name)).0, [""; 0], "{name}");
    }
}
