//! The code of docs/adding-a-format.md and docs/adding-a-view.md: compiled, run through the file system without a
//! mount, and compared with the code blocks of the documents.

mod brk;
mod exercise;
mod shape;

use std::fs;
use std::path::Path;

use serde_json::Value;

use super::file_system::FileSystem;
use crate::format::Format;
use crate::test_support::{Noise, copy_all, test_data};

/// Extents that are no multiples of the brick's edge, so that bricks extend beyond all three edges.
const SHAPE: [u16; 3] = [5, 9, 6];
const EDGE: u16 = 4;

/// Returns the sample at z, y, x. All samples differ.
fn sample(at: [u16; 3]) -> u16 {
    (at[0] * SHAPE[1] + at[1]) * SHAPE[2] + at[2] + 1000
}

/// Returns all indexes of a box, in C order.
fn indexes(extent: [u16; 3]) -> impl Iterator<Item = [u16; 3]> {
    let [z, y, x] = extent;
    (0..z).flat_map(move |z| (0..y).flat_map(move |y| (0..x).map(move |x| [z, y, x])))
}

/// Returns a file of the format.
fn brk_file() -> Vec<u8> {
    let numbers = [SHAPE[0], SHAPE[1], SHAPE[2], EDGE, 2, 0];
    let mut file = b"BRK1".to_vec();
    file.extend(numbers.iter().flat_map(|n| n.to_le_bytes()));
    for brick in indexes(SHAPE.map(|n| n.div_ceil(EDGE))) {
        for within in indexes([EDGE; 3]) {
            let at = [0, 1, 2].map(|a| brick[a] * EDGE + within[a]);
            let is_inside = (0..3).all(|a| at[a] < SHAPE[a]);
            file.extend(if is_inside { sample(at) } else { u16::MAX }.to_le_bytes());
        }
    }
    file
}

/// The file system of a folder, with the format and the view of the documents besides the built-in ones.
fn extended(source: &Path) -> FileSystem {
    let formats = [&brk::Brk as &dyn Format];
    FileSystem::with(source, &formats, &[shape::SHAPE])
}

fn bytes_of(samples: impl Iterator<Item = [u16; 3]>) -> Vec<u8> {
    samples.flat_map(|at| sample(at).to_le_bytes()).collect()
}

#[test]
fn the_format_of_the_document_has_every_view() {
    let source = tempfile::tempdir().unwrap();
    fs::write(source.path().join("cube.brk"), brk_file()).unwrap();
    fs::write(source.path().join("damaged.brk"), &brk_file()[..100]).unwrap();
    let fs = extended(source.path());
    assert_eq!(fs.names("cube.brk"), ["dataset.json", "data", "data.ome.zarr", "data.zarr"]);
    assert_eq!(fs.read("cube.brk/data/lod0.raw"), bytes_of(indexes(SHAPE)));
    let by_x = (0..SHAPE[2]).flat_map(|x| indexes([SHAPE[0], SHAPE[1], 1]).map(move |[z, y, _]| [z, y, x]));
    assert!(fs.read("cube.brk/data/lod0.by-x.npy").ends_with(&bytes_of(by_x)));
    let about: Value = serde_json::from_slice(&fs.read("cube.brk/data/lod0.json")).unwrap();
    assert_eq!(
        (&about["format"], &about["codec"], &about["bricks"]["total"]),
        (&"brk".into(), &"raw".into(), &12.into())
    );
    assert_eq!(about["shape"], serde_json::json!([5, 9, 6]));
    assert_eq!(about["access"][0]["decoded_bytes"], 0, "plain bricks are not decoded: {about}");
    assert_eq!(fs.read("damaged.brk/error.txt"), b"damaged.brk: the file is shorter than its bricks\n");
}

#[test]
fn the_view_of_the_document_shows_every_format() {
    let fs = extended(&test_data("demo"));
    assert_eq!(fs.read("north.zgy/data/lod0.shape"), b"128 96 192\n");
    for layer in ["north.zgy/data", "cells/color", "south.vds/Amplitude"] {
        assert!(fs.names(layer).contains(&"lod0.shape".to_owned()), "{layer}");
    }
}

/// Bare layers make a folder a dataset only if nothing else in it is one. The recogniser asks every format of the
/// registry.
#[test]
fn bare_layers_and_a_file_of_a_new_format_are_both_shown() {
    let source = tempfile::tempdir().unwrap();
    copy_all(&test_data("demo").join("cells/color"), &source.path().join("mixed/color"));
    let fs = extended(source.path());
    assert_eq!(fs.names("mixed"), ["dataset.json", "color", "color.ome.zarr", "color.zarr"]);
    std::fs::write(source.path().join("mixed/cube.brk"), brk_file()).unwrap();
    let fs = extended(source.path());
    assert_eq!(fs.names("mixed"), ["color", "cube.brk"]);
    assert_eq!(fs.read("mixed/cube.brk/data/lod0.raw"), bytes_of(indexes(SHAPE)));
}

#[test]
fn mutated_files_end_in_bricks_within_the_file_or_in_an_error() {
    let sound = brk_file();
    assert!(exercise::exercise(&sound));
    let mut noise = Noise::seeded(1);
    let mut opened = 0;
    for _ in 0..5000 {
        let mut file = sound.clone();
        for _ in 0..=noise.below(3) {
            file[noise.below(16)] = noise.below(256) as u8;
        }
        file.truncate(noise.below(2 * file.len()));
        opened += u32::from(exercise::exercise(&file));
    }
    assert!(opened > 100, "some mutations are still files of the format: {opened}");
}

/// Checks that the code blocks of the documents equal the code here.
#[test]
fn the_documents_quote_this_code() {
    for (document, code) in [
        ("adding-a-format.md", include_str!("brk.rs")),
        ("adding-a-format.md", include_str!("exercise.rs")),
        ("adding-a-view.md", include_str!("shape.rs")),
    ] {
        let text = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("docs").join(document)).unwrap();
        assert!(text.contains(&format!("```rust\n{code}```\n")), "{document} quotes other code than the tests run");
    }
}
