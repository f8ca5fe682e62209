//! `LAYER.ome.zarr` and `LAYER.zarr`: chunk files, read by hand, against `lodN.raw`. tests/clients/test_zarr.py reads them with real clients.

use std::fs::{self, File};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::support::{Mount, copy_all, is_eio, json, names, numbers, read_at, set, source_with, test_data};

fn product(shape: &[u64]) -> u64 {
    shape.iter().product()
}

/// The index of a sample or chunk by its number in C order.
fn index_of(shape: &[u64], number: u64) -> Vec<u64> {
    let below = |axis: usize| product(&shape[axis + 1..]);
    (0..shape.len()).map(|axis| number / below(axis) % shape[axis]).collect()
}

/// The number in C order of a sample or chunk.
fn linear_of(shape: &[u64], at: &[u64]) -> u64 {
    shape.iter().zip(at).fold(0, |number, (extent, at)| number * extent + at)
}

/// A Zarr array in a mount, as its zarr.json describes it.
struct ZarrArray {
    folder: PathBuf,
    metadata: Value,
    shape: Vec<u64>,
    chunk: Vec<u64>,
    /// The axis of the Zarr array at each position of the order of lodN.raw: channels are first here, and last there.
    of_raw: Vec<usize>,
    size: usize,
}

impl ZarrArray {
    fn open(folder: PathBuf) -> Self {
        let metadata = json(folder.join("zarr.json"));
        let (shape, codecs) = (numbers(&metadata["shape"]), metadata["codecs"].as_array().unwrap());
        assert_eq!((codecs.len(), &codecs[0]["name"]), (1, &"bytes".into()), "viewers in browsers know no transpose");
        let chunk = numbers(&metadata["chunk_grid"]["configuration"]["chunk_shape"]);
        let mut of_raw: Vec<usize> = (0..shape.len()).collect();
        of_raw.rotate_left(usize::from(metadata["dimension_names"][0] == "c"));
        let bits = metadata["data_type"].as_str().unwrap().trim_start_matches(|c: char| c.is_alphabetic());
        let size = bits.parse::<usize>().unwrap() / 8;
        Self { folder, metadata, shape, chunk, of_raw, size }
    }

    /// Numbers for the array's axes, in the order of lodN.raw.
    fn in_order_of_raw(&self, dims: &[u64]) -> Vec<u64> {
        self.of_raw.iter().map(|axis| dims[*axis]).collect()
    }

    /// The sample that stands where there is no chunk.
    fn fill(&self) -> Vec<u8> {
        let (value, size) = (&self.metadata["fill_value"], self.size);
        if !self.metadata["data_type"].as_str().unwrap().starts_with("float") {
            let bytes = value.as_i64().map_or_else(|| value.as_u64().unwrap().to_le_bytes(), i64::to_le_bytes);
            return bytes[..size].to_vec();
        }
        let value = value.as_f64().unwrap();
        if size == 4 { (value as f32).to_le_bytes().to_vec() } else { value.to_le_bytes().to_vec() }
    }

    fn count(&self) -> Vec<u64> {
        self.shape.iter().zip(&self.chunk).map(|(extent, chunk)| extent.div_ceil(*chunk)).collect()
    }

    fn path(&self, at: &[u64]) -> PathBuf {
        at.iter().fold(self.folder.join("c"), |path, n| path.join(n.to_string()))
    }

    /// What `raw` has of each sample of a chunk in C order; `None` beyond the array.
    fn samples<'a>(&self, at: &[u64], raw: &'a [u8]) -> impl Iterator<Item = Option<&'a [u8]>> {
        let of_raw = self.in_order_of_raw(&self.shape);
        (0..product(&self.chunk)).map(move |n| {
            let within = index_of(&self.chunk, n);
            let sample = (0..at.len()).map(|a| at[a] * self.chunk[a] + within[a]).collect::<Vec<_>>();
            let is_there = (0..at.len()).all(|a| sample[a] < self.shape[a]);
            let from = linear_of(&of_raw, &self.in_order_of_raw(&sample)) as usize * self.size;
            is_there.then(|| &raw[from..from + self.size])
        })
    }

    /// The bytes of a chunk, with zeros beyond the array.
    fn expected(&self, at: &[u64], raw: &[u8]) -> Vec<u8> {
        self.samples(at, raw).flat_map(|sample| sample.map_or_else(|| vec![0; self.size], <[u8]>::to_vec)).collect()
    }

    /// Whether all samples of the array in a chunk are the fill value.
    fn is_filled(&self, at: &[u64], raw: &[u8]) -> bool {
        let fill = self.fill();
        self.samples(at, raw).flatten().all(|sample| sample == fill)
    }
}

/// Compares every chunk of every level of a layer with lodN.raw; returns how many chunks there are, and how many of them
/// are absent.
fn check_layer(folder: &Path) -> (u64, u64) {
    let zarr = PathBuf::from(format!("{}.ome.zarr", folder.display()));
    let (mut chunks, mut absent) = (0, 0);
    for lod in (0..).take_while(|lod| zarr.join(lod.to_string()).exists()) {
        let array = ZarrArray::open(zarr.join(lod.to_string()));
        assert_eq!(array.chunk, ZarrArray::open(zarr.join("0")).chunk, "all levels have chunks of one shape");
        let raw = fs::read(folder.join(format!("lod{lod}.raw"))).unwrap();
        let (count, axes) = (array.count(), array.shape.len());
        for number in 0..product(&count) {
            let at = index_of(&count, number);
            let path = array.path(&at);
            let listed = names(path.parent().unwrap()).contains(&at[axes - 1].to_string());
            assert_eq!(path.exists(), listed, "{}", path.display());
            chunks += 1;
            if !listed {
                absent += 1;
                assert_eq!(fs::read(&path).unwrap_err().kind(), ErrorKind::NotFound);
                assert!(array.is_filled(&at, &raw), "{} is absent", path.display());
                continue;
            }
            let expected = array.expected(&at, &raw);
            assert!(fs::read(&path).unwrap() == expected, "{}", path.display());
            assert_eq!(path.metadata().unwrap().len(), expected.len() as u64, "{}", path.display());
        }
    }
    assert!(chunks > 0, "{}", zarr.display());
    (chunks, absent)
}

#[test]
fn chunks_of_all_formats_have_the_samples_of_raw() {
    let layers = [
        ("zgy", &["v3_int16.zgy/data", "v3_brick_4x8x16.zgy/data", "v3_entries_float32.zgy/data"][..]),
        ("vds", &["margins-2-3.vds/Amplitude", "four.vds/Amplitude", "two.vds/Amplitude", "components.vds/four"]),
        ("wkw", &["pyramid/color", "pyramid/rgb", "pyramid/flow", "types/uint64", "types/block1", "bare/color"]),
    ];
    for (format, layers) in layers {
        let Some(mount) = Mount::of(test_data(format)) else { return };
        for layer in layers {
            check_layer(&mount.path(layer));
        }
    }
}

#[test]
fn chunks_of_the_fill_value_are_absent() {
    let source = source_with(&["v3_never_written.zgy"]);
    let annotation = source.path().join("annotation");
    copy_all(&test_data("wkw/annotation"), &annotation);
    let layer = json!({"name": "data", "dataFormat": "wkw", "mags": [{"mag": 1, "path": "1"}],
        "boundingBox": {"topLeft": [0, 8, 0], "width": 200, "height": 150, "depth": 100}});
    let text = json!({"scale": [1, 1, 1], "dataLayers": [layer]}).to_string();
    fs::write(annotation.join("datasource-properties.json"), text).unwrap();
    let Some(mount) = Mount::of(source.path()) else { return };
    let (chunks, absent) = check_layer(&mount.path("annotation/data"));
    assert!(absent > chunks / 2 && absent < chunks, "{absent} of {chunks}");
    // what was never written is not zero there
    let (chunks, absent) = check_layer(&mount.path("v3_never_written.zgy/data"));
    assert_eq!((chunks, absent), (3, 3));
    assert_eq!(json(mount.path("v3_never_written.zgy/data.ome.zarr/0/zarr.json"))["fill_value"], -32);
}

#[test]
fn a_chunk_decodes_its_own_bricks() {
    let Some(mount) = Mount::of(test_data("demo")) else { return };
    let array = ZarrArray::open(mount.path("north.zgy/data.ome.zarr/0"));
    let described = json(mount.data("north.zgy", "lod0.json"));
    assert_eq!((&array.chunk, &described["codec"]), (&vec![64, 64, 64], &Value::from("zfp")));
    fs::read(array.path(&[0, 0, 1])).unwrap();
    assert_eq!(mount.counter("bricks_decoded"), 1);
}

#[test]
fn a_damaged_brick_is_an_error_of_the_reads_that_touch_it() {
    let Some(mount) = Mount::with(test_data("zgy"), &["--direct-io"]) else { return };
    let array = ZarrArray::open(mount.path("bad_entry_past_end.zgy/data.zarr/lod0/image"));
    assert_eq!(array.chunk, array.shape, "the chunk has the bytes of lod0.raw");
    let path = array.path(&[0, 0, 0]);
    assert!(is_eio(&fs::read(&path).unwrap_err()));
    let row = array.shape[2] as usize * array.size;
    let [chunk, raw] = [path, mount.data("bad_entry_past_end.zgy", "lod0.raw")].map(|path| File::open(path).unwrap());
    let (mut good, mut bad) = (0, 0);
    for at in (0..raw.metadata().unwrap().len()).step_by(row) {
        match (read_at(&chunk, at, row), read_at(&raw, at, row)) {
            (Ok(got), Ok(expected)) if got == expected => good += 1,
            (Err(got), Err(expected)) if is_eio(&got) && is_eio(&expected) => bad += 1,
            (got, expected) => panic!("{got:?} and {expected:?} at {at}"),
        }
    }
    assert!(good > 0 && bad > 0, "{good} {bad}");
}

/// States the names literally.
#[test]
fn groups_have_their_arrays_and_nothing_else() {
    let source = source_with(&["v3_int16.zgy"]);
    let Some(mount) = Mount::of(source.path()) else { return };
    let image = mount.path("v3_int16.zgy/data.ome.zarr");
    assert_eq!(names(&image), set(["zarr.json", "0", "1", "2"]));
    assert_eq!(names(image.join("1")), set(["zarr.json", "c"]));
    for name in
        ["3", "00", "+1", ".zgroup", ".zattrs", "labels", "lod3", "0/x", "0/c/01", "0/0", "0/c/9", "0/c/0/0/0/0"]
    {
        assert!(fs::symlink_metadata(image.join(name)).is_err(), "{name}");
    }
    // the levels with their positions are found here too, and not listed: a copy of the image does without them
    let root = mount.path("v3_int16.zgy/data.zarr");
    for name in ["lod1/zarr.json", "lod1/image/zarr.json", "lod1/image/c/0/0/0", "lod1/sample/c/0"] {
        assert!(fs::read(image.join(name)).unwrap() == fs::read(root.join(name)).unwrap(), "{name}");
    }
    assert!(fs::read(image.join("1/c/0/0/0")).unwrap() == fs::read(root.join("lod1/image/c/0/0/0")).unwrap());
    assert_eq!(names(&root), set(["zarr.json", "lod0", "lod1", "lod2"]));
    assert_eq!(names(root.join("lod1")), set(["zarr.json", "image", "inline", "crossline", "sample"]));
    assert_eq!(names(root.join("lod1/image")), set(["zarr.json", "c"]));
    assert_eq!(names(root.join("lod1/sample")), set(["zarr.json", "c"]));
    assert_eq!(names(root.join("lod1/sample/c")), set(["0"]));
    let unknown =
        ["0", "lod3", "lod00", "lod+1", ".zgroup", ".zattrs", "labels", "lod0/x", "lod0/image/c/01", "lod0/image/0"];
    for name in unknown.iter().chain(&["lod0/image/c/9", "lod0/image/c/-1", "lod0/image/c/0/0/0/0", "lod0/sample/c/1"])
    {
        assert!(fs::symlink_metadata(root.join(name)).is_err(), "{name}");
    }
}

#[test]
fn a_segmentation_is_a_label_of_itself() {
    let Some(mount) = Mount::of(test_data("demo")) else { return };
    assert!(!mount.path("cells/color.ome.zarr/labels").exists());
    let image = mount.path("cells/segmentation.ome.zarr");
    let label = image.join("labels/segmentation");
    assert_eq!(names(image.join("labels")), set(["zarr.json", "segmentation"]));
    let labels = json(image.join("labels/zarr.json"));
    assert_eq!(labels["attributes"]["ome"]["labels"], json!(["segmentation"]));
    let [of_image, of_label] =
        [&image, &label].map(|folder| json(folder.join("zarr.json"))["attributes"]["ome"].clone());
    assert_eq!(of_label["multiscales"], of_image["multiscales"]);
    assert_eq!(of_label["image-label"]["source"]["image"], "../../");
    // as in the pictures: id 0 has no colour, and the others have theirs
    let colours = of_label["image-label"]["colors"].as_array().unwrap();
    assert_eq!((colours.len(), &colours[0]), (1101, &json!({"label-value": 0, "rgba": [0, 0, 0, 0]})));
    let mut entries = names(&image);
    assert!(entries.remove("labels"));
    assert_eq!(names(&label), entries);
    let chunk = "0/c/0/0/0";
    assert!(fs::read(image.join(chunk)).unwrap() == fs::read(label.join(chunk)).unwrap());
}
