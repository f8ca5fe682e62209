//! How many bricks are decoded for what a client reads first, by counters and without clocks: no more than the pages
//! that it asks for lie in, except for what the kernel reads around and ahead of them.

use std::fs::{self, File};
use std::ops::Range;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::Path;
use std::time::{Duration, SystemTime};

use memmap2::Mmap;
use tempfile::TempDir;

use crate::support::{Mount, settled};

/// Samples along each axis of the volume and of a brick, and bytes of a sample.
const EXTENT: usize = 256;
const EDGE: usize = 32;
const SAMPLE: usize = 4;

const ROW: usize = EXTENT * SAMPLE;
const PLANE: usize = EXTENT * ROW;
const BRICK: usize = EDGE * EDGE * EDGE * SAMPLE;
/// Bricks along an axis.
const BRICKS: usize = EXTENT / EDGE;
/// Bricks in a layer, which a plane touches all.
const LAYER: usize = BRICKS * BRICKS;

/// Returns a source with a WKW dataset of one cube, whose blocks are LZ4-coded.
fn source() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let mag = folder.path().join("volume/data/1");
    let blocks = BRICKS * BRICKS * BRICKS;
    let data_at = 16 + 8 * blocks as u64;
    // 8 blocks of 32 samples along each axis, LZ4, uint32
    let header = |data_at: u64| [b"WKW\x01\x35\x02\x03\x04".as_slice(), &data_at.to_le_bytes()].concat();
    let (mut table, mut data) = (header(data_at), Vec::new());
    for block in 0..blocks {
        let samples: Vec<u8> = (0..BRICK as u32 / 4).flat_map(|n| (n / 7 + block as u32).to_le_bytes()).collect();
        data.extend(lz4_flex::block::compress(&samples));
        table.extend((data_at + data.len() as u64).to_le_bytes());
    }
    fs::create_dir_all(mag.join("z0/y0")).unwrap();
    fs::write(mag.join("header.wkw"), header(0)).unwrap();
    let cube = mag.join("z0/y0/x0.wkw");
    fs::write(&cube, [table, data].concat()).unwrap();
    // what was written a moment ago is read a second time
    let long_ago = SystemTime::now() - Duration::from_secs(3600);
    File::options().write(true).open(cube).unwrap().set_modified(long_ago).unwrap();
    let whole = serde_json::json!({"topLeft": [0, 0, 0], "width": EXTENT, "height": EXTENT, "depth": EXTENT});
    let layer = serde_json::json!({
        "name": "data", "category": "color", "elementClass": "uint32", "dataFormat": "wkw",
        "boundingBox": whole, "wkwResolutions": [{"resolution": 1, "cubeLength": EXTENT}],
    });
    let properties =
        serde_json::json!({ "id": {"name": "volume", "team": ""}, "dataLayers": [layer], "scale": [1, 1, 1] });
    fs::write(folder.path().join("volume/datasource-properties.json"), properties.to_string()).unwrap();
    folder
}

/// Reads one byte of each page of a range, as a client does that copies from a memory map.
fn touch(map: &Mmap, bytes: Range<usize>) -> usize {
    let pages = bytes.clone().step_by(4096).chain([bytes.end - 1]);
    pages.map(|at| usize::from(map[at])).sum()
}

/// Mounts the volume anew, lets a client read a file of it, and returns how many bricks were decoded.
fn decoded(source: &Path, client: impl FnOnce(&Path)) -> Option<usize> {
    let mount = Mount::of(source)?;
    assert!(mount.kernel_read_ahead().is_none_or(|kib| kib == 32));
    let folder = mount.path("volume/data");
    client(&folder);
    // what is read ahead of the client comes later
    let bytes = settled(Duration::from_millis(150), || mount.counter("bytes_decoded")) as usize;
    assert!(bytes.is_multiple_of(BRICK), "{bytes}");
    Some(bytes / BRICK)
}

#[allow(unsafe_code)]
fn map(file: &Path) -> Mmap {
    // SAFETY: the test's own source does not change
    unsafe { Mmap::map(&File::open(file).unwrap()).unwrap() }
}

#[test]
fn little_more_is_decoded_than_a_client_reads() {
    let source = source();
    let mapped = |ranges: Vec<Range<usize>>| {
        decoded(source.path(), move |folder| {
            let map = map(&folder.join("lod0.raw"));
            assert_eq!(map.len(), EXTENT * PLANE);
            ranges.into_iter().for_each(|range| {
                touch(&map, range);
            });
        })
    };
    let plane = |at: usize| at * PLANE..(at + 1) * PLANE;
    let Some(slice) = mapped(vec![plane(100)]) else { return };
    assert_eq!(slice, LAYER, "a slice");
    let several = mapped([37, 201, 70, 150, 5].map(plane).to_vec());
    assert_eq!(several, Some(5 * LAYER), "five slices, each in a layer of its own");
    // the kernel reads up to two windows ahead, into the next layer
    let last = mapped(vec![plane(4 * EDGE - 1)]).unwrap();
    assert!((LAYER..=LAYER + 2 * BRICKS).contains(&last), "the last slice of a layer: {last} bricks");
    let read = decoded(source.path(), |folder| {
        let mut slice = vec![0; PLANE];
        File::open(folder.join("lod0.raw")).unwrap().read_exact_at(&mut slice, 100 * PLANE as u64).unwrap();
    });
    assert_eq!(read, Some(LAYER), "a slice by a read");
    let turned = decoded(source.path(), |folder| {
        let is_turned = |name: &str| name.starts_with("lod0.by-") && name.ends_with(".npy");
        let names = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let mut turned: Vec<String> = names.filter(|name| is_turned(name)).collect();
        turned.sort();
        let map = map(&folder.join(&turned[0]));
        let header = map.len() - EXTENT * PLANE;
        touch(&map, header + 100 * PLANE..header + 101 * PLANE);
    });
    assert_eq!(turned, Some(LAYER), "a slice of a transposed view");
    // 3 x 3 x 8 bricks have pages of it
    let rows = (100..164).flat_map(|z| (100..164).map(move |y| z * PLANE + y * ROW + 100 * SAMPLE));
    let of_box = mapped(rows.map(|at| at..at + 64 * SAMPLE).collect()).unwrap();
    assert!((72..=2 * 72).contains(&of_box), "a box: {of_box} bricks");
    let read_all = |ranges: Vec<Range<usize>>| {
        decoded(source.path(), move |folder| {
            let file = File::open(folder.join("lod0.raw")).unwrap();
            for range in ranges {
                file.read_exact_at(&mut vec![0; range.len()], range.start as u64).unwrap();
            }
        })
    };
    let thinned = read_all((0..EXTENT).step_by(EDGE / 2).map(plane).collect());
    assert_eq!(thinned, Some(BRICKS * LAYER), "every 16th slice: of each layer two");
    // who has gone from slice to slice is likely to go on: a part of the next layer is decoded ahead
    let beginning = read_all((0..4).map(plane).collect()).unwrap();
    assert!((LAYER..=LAYER * 4 / 3).contains(&beginning), "the first MiB, which is four slices: {beginning} bricks");
    // np.load with mmap_mode="r": Python reads as many bytes as the file prefers
    let header = decoded(source.path(), |folder| {
        let file = File::open(folder.join("lod0.npy")).unwrap();
        let preferred = file.metadata().unwrap().blksize() as usize;
        file.read_at(&mut vec![0; preferred], 0).unwrap();
    });
    assert_eq!(header, Some(BRICKS), "a header, with rows of a row of bricks behind it");
    let row = |z: usize, y: usize| z * PLANE + y * ROW..z * PLANE + (y + 1) * ROW;
    let trace = mapped(vec![row(200, 50)]).unwrap();
    assert!((BRICKS..=2 * BRICKS).contains(&trace), "a trace: {trace} bricks");
}
