use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use serde_json::{Value, json};

use super::*;
use crate::source::{Blocking, FolderProbe, LocalTree, Tree};
use crate::volume::{Brick, Element};

const HEADER: [u8; 16] = [b'W', b'K', b'W', 1, 0x13, 2, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0];

/// Creates a mag with blocks of 8 x 8 x 8 bytes, 2 x 2 x 2 of them in a cube.
fn mag(root: &Path, path: &str) {
    fs::create_dir_all(root.join(path)).unwrap();
    fs::write(root.join(path).join("header.wkw"), HEADER).unwrap();
}

/// Creates a cube of a mag with these blocks, all LZ4.
fn cube(root: &Path, mag: &str, at: [u64; 3], blocks: &[Vec<u8>; 8]) {
    let mut head = HEADER.to_vec();
    let mut end = 16 + 8 * 8u64;
    head[8..].copy_from_slice(&end.to_le_bytes());
    for block in blocks {
        end += block.len() as u64;
        head.extend(end.to_le_bytes());
    }
    let folder = root.join(mag).join(format!("z{}/y{}", at[2], at[1]));
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join(format!("x{}.wkw", at[0])), [head, blocks.concat()].concat()).unwrap();
}

/// Returns a block of one value.
fn block(value: u8) -> Vec<u8> {
    let mut block = crate::codec::lz4::zeros(512).unwrap();
    block[1] = value;
    let tail = block.len() - 5;
    block[tail..].fill(value);
    block
}

fn blocks(first: u8) -> [Vec<u8>; 8] {
    [0, 1, 2, 3, 4, 5, 6, 7].map(|n| block(first + n))
}

fn layer(name: &str, mags: Value) -> Value {
    json!({"name": name, "dataFormat": "wkw", "elementClass": "uint8", "category": "color", "mags": mags,
        "boundingBox": {"topLeft": [0, 0, 0], "width": 16, "height": 16, "depth": 16}})
}

fn describe(root: &Path, layers: Value) {
    fs::create_dir_all(root).unwrap();
    let text = json!({"scale": [1, 1, 1], "dataLayers": layers}).to_string();
    fs::write(root.join("datasource-properties.json"), text).unwrap();
}

fn probe(folder: &Path) -> Option<FolderProbe> {
    LocalTree::below(folder).look(folder).ok().flatten().map(FolderProbe::new)
}

fn described(folder: &Path) -> Option<bool> {
    Wkw.described_folder(&probe(folder)?)
}

fn open_below(source: &Path, path: &Path) -> Result<Volume, FormatError> {
    Volume::open(LocalTree::folder(source, path), IndexCache::new(1 << 20))
}

fn open(root: &Path) -> Volume {
    open_below(root, root).unwrap()
}

fn first_brick(volume: &Volume, layer: usize) -> Result<Brick, FormatError> {
    volume.layers[layer].levels[0].brick(&[0, 0, 0].into(), Blocking::Yes)
}

fn names(volume: &Volume) -> Vec<&str> {
    volume.layers.iter().map(|layer| &*layer.name).collect()
}

#[test]
fn a_description_with_a_layer_makes_a_dataset() {
    let root = tempfile::tempdir().unwrap();
    let of = |name: &str, layers: Value| {
        describe(&root.path().join(name), layers);
        described(&root.path().join(name))
    };
    assert_eq!(of("wkw", json!([layer("a", json!([]))])), Some(true));
    assert_eq!(of("unsaid", json!([{"name": "a"}])), Some(true));
    let two = json!([{"name": "a", "dataFormat": "zarr"}, {"name": "b", "dataFormat": "wkw"}]);
    assert_eq!(of("beside", two), Some(true));
    assert_eq!(of("none", json!([])), Some(true));
    assert_eq!(of("other", json!([{"name": "a", "dataFormat": "tiff"}])), Some(false));
    assert_eq!(of("zarr", json!([{"name": "a", "dataFormat": "zarr3"}])), Some(true));
    fs::create_dir(root.path().join("broken")).unwrap();
    fs::write(root.path().join("broken/datasource-properties.json"), "{").unwrap();
    assert_eq!(described(&root.path().join("broken")), Some(true));
    fs::create_dir_all(root.path().join("odd/datasource-properties.json")).unwrap();
    assert_eq!(described(&root.path().join("odd")), None);
    assert_eq!(described(&root.path().join("nothing")), None);
}

#[test]
fn a_folder_of_mags_with_headers_is_a_layer() {
    let root = tempfile::tempdir().unwrap();
    for path in ["one/1", "two/4-4-1", "three/7x", "three/01"] {
        mag(root.path(), path);
    }
    fs::create_dir_all(root.path().join("four/1")).unwrap();
    let is_layer = ["one", "two", "three", "four", "five"]
        .map(|name| probe(&root.path().join(name)).is_some_and(|folder| Wkw.is_layer_folder(&folder)));
    assert_eq!(is_layer, [true, true, false, false, false]);
}

#[test]
fn blocks_of_zeros_are_known_without_decoding() {
    let root = tempfile::tempdir().unwrap();
    mag(root.path(), "color/1");
    // the same length, and another value
    cube(root.path(), "color/1", [0, 0, 0], &blocks(0));
    let volume = open(root.path());
    let array = &volume.layers[0].levels[0];
    assert_eq!(&array.info().shape()[..], [16, 16, 16]);
    for wait in [Blocking::Yes, Blocking::No] {
        assert_eq!(array.brick(&[0, 0, 0].into(), wait), Ok(Brick::Constant(Element::zero(1))));
        let Ok(Brick::Coded(coded)) = array.brick(&[1, 1, 0].into(), wait) else { panic!("not coded") };
        assert_eq!((coded.decoded, &*coded.object), (512, "z0/y0/x0.wkw"));
    }
    assert!(
        array.brick(&[2, 0, 0].into(), Blocking::Yes).is_err() && array.brick(&[0, 0].into(), Blocking::Yes).is_err()
    );
}

#[test]
fn layers_may_share_their_files() {
    let root = tempfile::tempdir().unwrap();
    mag(root.path(), "a/1");
    cube(root.path(), "a/1", [0, 0, 0], &blocks(1));
    symlink("a", root.path().join("b")).unwrap();
    cube(root.path(), "a/1", [1, 0, 0], &blocks(11));
    let mut smaller = layer("smaller", json!([{"mag": 1, "path": "./a/1/"}]));
    smaller["boundingBox"] = json!({"topLeft": [17, 0, 0], "width": 9, "height": 16, "depth": 16});
    let one = json!([{"mag": [1, 1, 1]}]);
    describe(root.path(), json!([layer("a", one.clone()), layer("b", one), smaller]));
    let volume = open(root.path());
    assert_eq!(names(&volume), ["a", "b", "smaller"]);
    let id = |layer: usize| volume.layers[layer].levels[0].info().id;
    assert!(id(0) == id(1) && id(0) != id(2));
    for (layer, object) in [(0, "z0/y0/x0.wkw"), (2, "z0/y0/x1.wkw"), (1, "z0/y0/x0.wkw")] {
        let Ok(Brick::Coded(coded)) = first_brick(&volume, layer) else { panic!("not coded") };
        let mut samples = vec![0; 512];
        let mut stored = vec![0; coded.length.most() as usize];
        let array = &volume.layers[layer].levels[0];
        assert_eq!(array.source().read_at(object, coded.offset, &mut stored, Blocking::Yes), Ok(true));
        assert_eq!((array.decode(&coded, &stored, &mut samples), &*coded.object), (Ok(()), object));
        assert_eq!(samples[0], if layer == 2 { 11 } else { 1 });
    }
    assert!(volume.info.warnings.is_empty(), "{:?}", volume.info.warnings);
}

#[test]
fn paths_outside_of_the_source_are_not_shown() {
    let root = tempfile::tempdir().unwrap();
    mag(root.path(), "other/color/1");
    let absolute = root.path().join("other/color/1");
    let dataset = root.path().join("dataset");
    let with = |path: &str| layer("a", json!([{"mag": 1, "path": path}]));
    describe(&dataset, json!([with("../other/color/1"), with(absolute.to_str().unwrap())]));
    symlink("../other/color", dataset.join("linked")).unwrap();
    assert_eq!(open_below(root.path(), &dataset).unwrap().layers.len(), 2);
    let volume = open(&dataset);
    assert!(volume.layers.is_empty());
    assert!(volume.hidden.iter().all(|layer| layer.reason.contains("outside of the source")));
    // nothing tells what there is outside
    symlink(root.path().join("other/color"), dataset.join("there")).unwrap();
    symlink(root.path().join("other/nothing"), dataset.join("not there")).unwrap();
    let paths =
        ["../other/color/1", "../other/color/9", "../other/color/1/header.wkw", "there/1", "there/9", "not there/1"];
    describe(&dataset, paths.iter().map(|path| with(path)).collect());
    let volume = open(&dataset);
    let reasons: Vec<_> =
        volume.hidden.iter().zip(paths).map(|(layer, path)| layer.reason.replace(path, "PATH")).collect();
    assert!(reasons.len() == paths.len() && reasons.iter().all(|reason| *reason == reasons[0]), "{reasons:#?}");
}

#[test]
fn a_layer_without_a_mag_that_can_be_read_is_damaged_only_if_one_of_them_is() {
    let root = tempfile::tempdir().unwrap();
    mag(root.path(), "a/1");
    fs::write(root.path().join("a/1/header.wkw"), b"").unwrap();
    for (mags, damaged) in [(json!([{"mag": 1}]), true), (json!([{"mag": "x"}]), false), (json!([]), false)] {
        describe(root.path(), json!([layer("a", mags.clone())]));
        let volume = open(root.path());
        assert_eq!((volume.layers.len(), volume.hidden[0].damaged), (0, damaged), "{mags}");
    }
}

#[test]
fn blocks_beyond_the_file_are_told_in_the_box_by_their_readers_and_outside_of_it_by_the_check() {
    let root = tempfile::tempdir().unwrap();
    mag(root.path(), "a/1");
    cube(root.path(), "a/1", [0, 0, 0], &blocks(1));
    let file = fs::File::options().write(true).open(root.path().join("a/1/z0/y0/x0.wkw")).unwrap();
    // the last block, whose x, y and z are 1
    file.set_len(file.metadata().unwrap().len() - 1).unwrap();
    for (low, outside) in [(8, false), (0, true)] {
        let mut half = layer("a", json!([{"mag": 1}]));
        half["boundingBox"] = json!({"topLeft": [low, 0, 0], "width": 8, "height": 16, "depth": 16});
        describe(root.path(), json!([half]));
        let mut found = Vec::new();
        open(root.path()).check_structure(&mut |finding| found.push(finding.reason)).unwrap();
        assert_eq!(found.iter().any(|reason| reason.contains("outside of the box")), outside, "{found:?}");
    }
}

#[test]
fn long_tables_are_checked_to_the_end() {
    let root = tempfile::tempdir().unwrap();
    mag(root.path(), "a/1");
    // 64 x 64 x 64 blocks in a cube, each of one byte
    let (blocks, mut header) = (1u64 << 18, HEADER);
    header[4] = 0x63;
    fs::write(root.path().join("a/1/header.wkw"), header).unwrap();
    let begin = 16 + 8 * blocks;
    header[8..].copy_from_slice(&begin.to_le_bytes());
    let ends = (1..=blocks).flat_map(|number| (begin + number).to_le_bytes());
    let mut cube: Vec<u8> = header.into_iter().chain(ends).collect();
    cube.resize((begin + blocks) as usize - 1, 0);
    fs::create_dir_all(root.path().join("a/1/z0/y0")).unwrap();
    fs::write(root.path().join("a/1/z0/y0/x0.wkw"), cube).unwrap();
    describe(root.path(), json!([layer("a", json!([{"mag": 1}]))]));
    let mut found = Vec::new();
    open(root.path()).check_structure(&mut |finding| found.push(finding.reason)).unwrap();
    assert!(matches!(&found[..], [one] if one.contains(" 1 of its blocks") && one.contains("262143")), "{found:?}");
}

#[test]
fn the_category_is_guessed_by_name_and_type() {
    let root = tempfile::tempdir().unwrap();
    let mut ids = HEADER;
    ids[6..8].copy_from_slice(&[3, 4]);
    for (name, header) in [("gray", HEADER), ("ids", ids), ("my_color", ids), ("segmentation_3", HEADER)] {
        mag(root.path(), &format!("{name}/1"));
        fs::write(root.path().join(name).join("1/header.wkw"), header).unwrap();
        cube(root.path(), &format!("{name}/1"), [0, 0, 0], &blocks(1));
    }
    let folder = LocalTree::folder(root.path(), root.path());
    let found = files::layers(&*folder).unwrap();
    let found: Vec<_> = found.iter().map(|layer| (&*layer.name, layer.category.as_deref().unwrap())).collect();
    let expected =
        [("gray", "color"), ("ids", "segmentation"), ("my_color", "color"), ("segmentation_3", "segmentation")];
    assert_eq!(found, expected);
}

#[test]
fn equal_names_are_kept_with_a_warning() {
    let root = tempfile::tempdir().unwrap();
    mag(root.path(), "a/1");
    mag(root.path(), "a/8");
    let a = layer("a", json!([{"mag": 1}]));
    describe(root.path(), json!([a.clone(), a]));
    let volume = open(root.path());
    assert_eq!(names(&volume), ["a", "a"]);
    let text = volume.info.warnings.join("\n");
    assert!(text.contains("two layers called a") && text.contains("mags 8 are there but not listed"), "{text}");
}

#[test]
fn without_a_bounding_box_the_cubes_give_the_extent() {
    let root = tempfile::tempdir().unwrap();
    mag(root.path(), "ds/a/1");
    mag(root.path(), "ds/a/2");
    mag(root.path(), "ds/b/1");
    for at in [[1, 0, 2], [3, 5, 2]] {
        cube(root.path(), "ds/a/2", at, &blocks(1));
    }
    for stray in ["ds/a/2/z0", "ds/a/2/z07/y0", "ds/a/2/z9/y01"] {
        fs::create_dir_all(root.path().join(stray)).unwrap();
    }
    fs::write(root.path().join("ds/a/2/z2/y0/x99.wkw_tmp"), b"").unwrap();
    let volume = open(&root.path().join("ds"));
    // mag 1 has no cubes, so that those of mag 2 count
    let level = |lod: usize| volume.layers[0].levels[lod].info();
    assert_eq!((level(0).native["offset"].clone(), &level(0).shape()[..]), (json!([32, 0, 64]), &[32, 192, 96][..]));
    assert_eq!((level(1).native["offset"].clone(), &level(1).shape()[..]), (json!([16, 0, 32]), &[16, 96, 48][..]));
    assert_eq!((volume.hidden[0].name.as_str(), volume.hidden[0].reason.as_str()), ("b", "it has no data files"));
    assert_eq!(level(0).axes[0].unit, None);
}

#[test]
fn implausible_numbers_are_refused_before_anything_is_allocated() {
    let root = tempfile::tempdir().unwrap();
    mag(root.path(), "a/1");
    let mut huge = layer("a", json!([{"mag": 1}]));
    for (corner, size) in [(0, u64::MAX), (u64::MAX, 5), (1 << 62, 1 << 62), (0, 1 << 40)] {
        huge["boundingBox"] = json!({"topLeft": [corner, 0, 0], "width": size, "height": size, "depth": size});
        describe(root.path(), json!([huge]));
        let volume = open(root.path());
        assert!(volume.layers.is_empty() && volume.hidden.len() == 1, "{corner} {size}");
    }
    huge["boundingBox"] = json!({"topLeft": [(1u64 << 62) - 1, 3, 5], "width": 1u64 << 61, "height": 1, "depth": 1});
    describe(root.path(), json!([huge]));
    let volume = open(root.path());
    assert_eq!(first_brick(&volume, 0), Ok(Brick::Constant(Element::zero(1))));
    let last = volume.layers[0].levels[0].info().grid.count()[2] - 1;
    assert!(volume.layers[0].levels[0].brick(&[0, 0, last].into(), Blocking::Yes).is_ok());
}

#[test]
fn a_change_of_any_file_is_noticed() {
    let changes: [fn(&Path); 4] = [
        |root| cube(root, "a/1", [0, 0, 0], &blocks(9)),
        |root| cube(root, "a/1", [1, 0, 0], &blocks(9)),
        |root| fs::write(root.join("a/1/header.wkw"), [&HEADER[..], b"more"].concat()).unwrap(),
        |root| mag(root, "a/2"),
    ];
    for (n, change) in changes.into_iter().enumerate() {
        let root = tempfile::tempdir().unwrap();
        mag(root.path(), "a/1");
        cube(root.path(), "a/1", [0, 0, 0], &blocks(1));
        let mut a = layer("a", json!([{"mag": 1}, {"mag": 2}]));
        a["boundingBox"]["width"] = json!(32);
        describe(root.path(), json!([a]));
        let volume = open(root.path());
        let brick = |x: u64| volume.layers[0].levels[0].brick(&[0, 0, x].into(), Blocking::Yes);
        assert!(matches!(brick(0), Ok(Brick::Coded(_))) && matches!(brick(2), Ok(Brick::Constant(_))));
        assert!(!volume.is_changed(), "{n}");
        change(root.path());
        assert!(volume.is_changed(), "{n}");
    }
}

#[test]
fn a_broken_description_is_reported_and_replaced() {
    let root = tempfile::tempdir().unwrap();
    let broken = |text: &str| fs::write(root.path().join("datasource-properties.json"), text).unwrap();
    broken("{\"dataLayers\": [");
    let Err(error) = open_below(root.path(), root.path()) else { panic!("opened") };
    assert!(matches!(&error, FormatError::Damaged(why) if why.contains("cannot be read")), "{error}");
    mag(root.path(), "a/1");
    cube(root.path(), "a/1", [0, 0, 0], &blocks(1));
    let volume = open(root.path());
    assert_eq!(names(&volume), ["a"]);
    assert!(volume.info.warnings[0].contains("cannot be read"));
    assert!(volume.info.native.is_empty());
    let mut found = Vec::new();
    volume.check_structure(&mut |finding| found.push(finding.reason)).unwrap();
    assert!(matches!(&found[..], [one] if one.contains("cannot be read")), "{found:?}");
}
