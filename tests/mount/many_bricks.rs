//! Layers of millions of bricks.

use std::fs::{self, File};
use std::io::{Read, Seek, SeekFrom};

use crate::support::{Mount, SOON, test_data, within};

/// The extent of a plane along each axis, and the length of a brick's edge.
const PLANE: u64 = 120_000;
const BRICK: u64 = 4;

#[test]
fn a_scan_that_enters_another_plane_holds_nobody_up() {
    let source = tempfile::tempdir().unwrap();
    // one layer of bricks has 900 million, of which none is stored
    let mag = source.path().join("huge/data/1");
    fs::create_dir_all(&mag).unwrap();
    // cubes of 32 bricks of 4 samples along each axis, plain, uint8
    fs::write(mag.join("header.wkw"), [b'W', b'K', b'W', 1, 0x52, 1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0]).unwrap();
    let box_of_all = serde_json::json!({"topLeft": [0, 0, 0], "width": PLANE, "height": PLANE, "depth": 3});
    let layer = serde_json::json!({
        "name": "data", "category": "color", "elementClass": "uint8", "dataFormat": "wkw",
        "boundingBox": box_of_all, "wkwResolutions": [{"resolution": 1, "cubeLength": 1024}],
    });
    let properties = serde_json::json!({
        "id": {"name": "huge", "team": ""}, "dataLayers": [layer], "scale": [1, 1, 1],
    });
    fs::write(source.path().join("huge/datasource-properties.json"), properties.to_string()).unwrap();
    fs::copy(test_data("demo/north.zgy"), source.path().join("north.zgy")).unwrap();
    let Some(mount) = Mount::with(source.path(), &["--cache-size", "64MiB"]) else { return };
    let mut file = File::open(mount.path("huge/data/lod0.raw")).unwrap();
    assert_eq!(file.metadata().unwrap().len(), 3 * PLANE * PLANE);
    let near_its_end = PLANE * PLANE - (2 << 20);
    file.seek(SeekFrom::Start(near_its_end / (PLANE * BRICK) * PLANE * BRICK)).unwrap();
    for piece in 0..4 {
        let mut bytes = vec![1; 1 << 20];
        let read = within(SOON, {
            let mut file = file.try_clone().unwrap();
            move || file.read_exact(&mut bytes).map(|()| bytes)
        });
        assert!(read.unwrap_or_else(|| panic!("MiB {piece} is waited for")).unwrap().iter().all(|b| *b == 0));
        let (other, name) = (mount.path("north.zgy/data/lod0.raw"), format!("lod{}.none", piece));
        let looked = within(SOON, move || (fs::metadata(&other).is_ok(), other.with_file_name(name).exists()));
        assert_eq!(looked, Some((true, false)), "after MiB {piece}");
    }
}
