//! Pictures: the slices of levels, and the previews of layers.

use std::collections::BTreeMap;
use std::fs::{self};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::support::png::{Decoded, decode};
use crate::support::{Mount, fixtures, floats, is_eio, json, names, numbers, source_with, test_data};

/// One level of a layer in a mount.
struct Level {
    folder: PathBuf,
    lod: usize,
    about: Value,
    samples: Vec<u8>,
}

impl Level {
    fn of(folder: &Path, lod: usize) -> Self {
        let about = json(folder.join(format!("lod{lod}.json")));
        let samples = fs::read(folder.join(format!("lod{lod}.raw"))).unwrap();
        Self { folder: folder.to_owned(), lod, about, samples }
    }

    fn shape(&self) -> Vec<usize> {
        numbers(&self.about["shape"]).into_iter().map(|n| n as usize).collect()
    }

    /// Returns the paths of the first, the middle and the last slice across an axis, with their indexes.
    fn slices(&self, axis: usize) -> BTreeMap<usize, PathBuf> {
        let count = self.shape()[axis];
        let folder = self.folder.join(format!("lod{}.slices", self.lod));
        let folder = folder.join(self.about["axes"][axis]["name"].as_str().unwrap());
        assert_eq!(names(&folder).len(), count);
        [0, count / 2, count - 1].map(|index| (index, folder.join(format!("{index}.png")))).into()
    }

    /// Returns the stored bytes of the pixels of a slice in the order of the array, and their number along both axes.
    fn slice(&self, axis: usize, index: usize, pixel: usize) -> (Vec<&[u8]>, [usize; 2]) {
        let shape = self.shape();
        let axes: Vec<usize> = (0..3).filter(|other| *other != axis).collect();
        let step = |axis: usize| shape[axis + 1..3].iter().product::<usize>();
        let mut pixels = Vec::new();
        for slow in 0..shape[axes[0]] {
            for fast in 0..shape[axes[1]] {
                let at = pixel * (index * step(axis) + slow * step(axes[0]) + fast * step(axes[1]));
                pixels.push(&self.samples[at..at + pixel]);
            }
        }
        (pixels, [shape[axes[0]], shape[axes[1]]])
    }
}

/// Reads a picture, and checks that its size was known.
fn read(path: &Path) -> Decoded {
    let size = fs::metadata(path).unwrap().len();
    let file = fs::read(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    assert_eq!(file.len() as u64, size, "{}", path.display());
    decode(&file)
}

/// Checks all levels of a layer: `pixel` makes the bytes of a picture's pixel of those of the array.
fn check(mount: &Mount, layer: &str, bytes: usize, codes: [u8; 2], pixel: &dyn Fn(&[u8], &Level) -> Vec<u8>) {
    let folder = mount.path(layer);
    let lods = names(&folder).iter().filter(|name| name.ends_with(".raw")).count();
    for lod in 0..lods {
        let level = Level::of(&folder, lod);
        for axis in 0..3 {
            for (index, path) in level.slices(axis) {
                let picture = read(&path);
                let (stored, [slow, fast]) = level.slice(axis, index, bytes);
                // the sample axis of seismic points down
                let is_turned = level.about["format"] != "wkw" && axis < 2;
                let (width, height) = if is_turned { (slow, fast) } else { (fast, slow) };
                assert_eq!(
                    (picture.width, picture.height, picture.codes),
                    (width, height, codes),
                    "{}",
                    path.display()
                );
                let expected: Vec<u8> = (0..width * height)
                    .map(|n| if is_turned { n % width * fast + n / width } else { n })
                    .flat_map(|n| pixel(stored[n], &level))
                    .collect();
                assert!(picture.pixels == expected, "{}", path.display());
            }
        }
    }
}

#[test]
fn unsigned_bytes_and_words_are_as_they_are() {
    let Some(mount) = Mount::of(test_data("")) else { return };
    let as_is = |stored: &[u8], _: &Level| stored.to_vec();
    let big_endian = |stored: &[u8], _: &Level| stored.iter().rev().copied().collect();
    for layer in ["wkw/types/uint8", "wkw/pyramid/color", "zgy/v3_type_uint8.zgy/data"] {
        check(&mount, layer, 1, [8, 0], &as_is);
    }
    check(&mount, "wkw/pyramid/rgb", 3, [8, 2], &as_is);
    for layer in ["wkw/types/uint16", "zgy/v3_type_uint16.zgy/data", "vds/scaled.vds/words"] {
        check(&mount, layer, 2, [16, 0], &big_endian);
    }
}

#[test]
fn other_samples_are_greys_of_the_value_range() {
    let Some(mount) = Mount::of(test_data("")) else { return };
    // a grey is `stored * scale + offset` on a line through the ends of the range, rounded
    let grey = |stored: f64, scale: f64, offset: f64, level: &Level| {
        let range = floats(&level.about["value_range"]);
        let factor = 255.0 / (range[1] - range[0]);
        vec![(stored * (scale * factor) + (offset - range[0]) * factor + 0.5).clamp(0.0, 255.0) as u8]
    };
    check(&mount, "zgy/v3_float32.zgy/data", 4, [8, 0], &|stored, level| {
        grey(f32::from_le_bytes(stored.try_into().unwrap()).into(), 1.0, 0.0, level)
    });
    check(&mount, "zgy/v3_int16.zgy/data", 2, [8, 0], &|stored, level| {
        let [scale, offset] = ["scale", "offset"].map(|key| level.about[key].as_f64().unwrap());
        grey(i16::from_le_bytes(stored.try_into().unwrap()).into(), scale, offset, level)
    });
}

#[test]
fn every_segment_has_one_colour() {
    let Some(mount) = Mount::of(test_data("wkw")) else { return };
    let level = Level::of(&mount.path("pyramid/segmentation"), 0);
    let mut colours: BTreeMap<&[u8], u8> = BTreeMap::new();
    for axis in 0..3 {
        for (index, path) in level.slices(axis) {
            let picture = read(&path);
            assert_eq!((picture.codes, &picture.palette[..3]), ([8, 3], &[0, 0, 0][..]));
            for (id, number) in level.slice(axis, index, 8).0.into_iter().zip(&picture.pixels) {
                assert_eq!(colours.insert(id, *number).unwrap_or(*number), *number, "{id:?}");
                assert_eq!(*id == [0; 8], *number == 0, "{id:?}");
            }
        }
    }
    assert!(colours.len() > 20);
}

#[test]
fn a_bad_brick_fails_its_own_slices_alone() {
    let source = source_with(&["bad_zfp_cut.zgy"]);
    let Some(mount) = Mount::of(source.path()) else { return };
    let slices = mount.data("bad_zfp_cut.zgy", "lod0.slices");
    for inline in [0, 7] {
        assert_eq!(read(&slices.join(format!("inline/{inline}.png"))).pixels.len(), 64);
    }
    for name in ["inline/8.png", "inline/15.png", "crossline/0.png", "sample/7.png", "../preview.png"] {
        assert!(is_eio(&fs::read(slices.join(name)).unwrap_err()), "{name}");
    }
}

#[test]
fn folders_of_many_pictures_are_listed_and_searched() {
    const DEPTH: usize = 100_000;
    let source = tempfile::tempdir().unwrap();
    fs::create_dir_all(source.path().join("deep/color/1")).unwrap();
    let header = [b'W', b'K', b'W', 1, 0x56, 1, 1, 1, 16, 0, 0, 0, 0, 0, 0, 0];
    fs::write(source.path().join("deep/color/1/header.wkw"), header).unwrap();
    let extent = json!({"topLeft": [0, 0, 0], "width": 30, "height": 20, "depth": DEPTH});
    let layer = json!({"name": "color", "dataFormat": "wkw", "category": "color", "elementClass": "uint8",
        "boundingBox": extent, "wkwResolutions": [{"resolution": 1, "cubeLength": 2048}]});
    let dataset = json!({"id": {"name": "deep", "team": ""}, "scale": [1, 1, 1], "dataLayers": [layer]});
    fs::write(source.path().join("deep/datasource-properties.json"), dataset.to_string()).unwrap();
    let Some(mount) = Mount::of(source.path()) else { return };
    let slices = mount.path("deep/color/lod0.slices/z");
    assert_eq!(fs::read_dir(&slices).unwrap().count(), DEPTH);
    assert_eq!(read(&slices.join("99999.png")).pixels, [0; 600]);
    for name in ["100000.png", "007.png", "z.png", "7.jpg", "7"] {
        let missing = fs::metadata(slices.join(name)).unwrap_err();
        assert_eq!(missing.kind(), ErrorKind::NotFound, "{name}");
    }
    assert_eq!(read(&mount.path("deep/color/preview.png")).height, 981);
}

#[test]
fn every_layer_has_a_preview() {
    let Some(mount) = Mount::of(test_data("")) else { return };
    let (north, cells) = (mount.path("demo/north.zgy/data"), mount.path("demo/cells"));
    let preview = read(&north.join("preview.png"));
    // inline 64, crossline 48 and sample 96 beside each other: 96 x 192, 128 x 192, 96 x 128 samples
    let is_scaled = |zoom: usize| (preview.width, preview.height) == (zoom * 320 + 16, zoom * 192);
    assert!(is_scaled(2), "{} x {}", preview.width, preview.height);
    let colour = |x: usize, y: usize| &preview.palette[3 * usize::from(preview.pixels[y * preview.width + x])..][..3];
    let values: Vec<f32> =
        fs::read(north.join("lod0.raw")).unwrap().as_chunks().0.iter().map(|b| f32::from_le_bytes(*b)).collect();
    for (x, y) in [(0, 60), (50, 100), (95, 150), (20, 191)] {
        let value = values[(64 * 96 + x) * 192 + y];
        let [red, _, blue] = colour(2 * x, 2 * y).try_into().unwrap();
        assert!((value > 300.0) <= (red > blue) && (value < -300.0) <= (red < blue), "{x} {y}: {value} {red} {blue}");
    }
    let colours = read(&cells.join("segmentation/preview.png"));
    assert_eq!((&colours.palette[..3], colours.codes), (&[0, 0, 0][..], [8, 3]));
    assert_eq!(read(&mount.path("wkw/pyramid/rgb/preview.png")).codes, [8, 2]);
    for fixture in fixtures() {
        assert!(!read(&mount.path("zgy").join(&fixture.name).join("data/preview.png")).pixels.is_empty());
    }
    assert!(!mount.path("vds/four.vds/Amplitude/preview.png").exists(), "four axes make no picture");
}
