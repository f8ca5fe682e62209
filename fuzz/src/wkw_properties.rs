//! Opens WKW datasets of several layers and mags with any text as `datasource-properties.json`.

use std::collections::BTreeMap;

use super::wkw_open;

/// The folders of mags.
const MAGS: [&str; 5] = ["color/1", "color/2-2-1", "color/4-4-2", "segmentation/1", "segmentation/2"];
/// A header of blocks of 8 x 8 x 8 bytes, uncompressed, one in a cube.
const HEADER: [u8; 16] = [b'W', b'K', b'W', 1, 0x03, 1, 1, 1, 16, 0, 0, 0, 0, 0, 0, 0];

/// Reads one input: a text. Returns the number of bricks.
#[must_use]
pub fn run(text: &[u8]) -> u64 {
    let mut files = BTreeMap::from([("datasource-properties.json".to_owned(), text.to_vec())]);
    for mag in MAGS {
        files.insert(format!("{mag}/header.wkw"), HEADER.to_vec());
        files.insert(format!("{mag}/z0/y0/x0.wkw"), [HEADER.to_vec(), vec![7; 512]].concat());
    }
    wkw_open::read(files)
}
