//! Small inputs that would become large: what a dataset costs is bounded by what its headers declare, and that by fixed
//! limits. Memory is what this thread has allocated at a time; times are bounded by so much that only work out of all
//! proportion exceeds them.

use std::collections::BTreeMap;
use std::io::Write;
use std::time::{Duration, Instant};

use flate2::Compression;
use flate2::write::ZlibEncoder;
use serde_json::{Value, json};

use crate::codec::{inflate, lz4, zfp};
use crate::format::vds::Vds;
use crate::format::vds::chunk::decode_rle;
use crate::format::vds::wavelet::{self, Expected, Scratch};
use crate::format::wkw::Wkw;
use crate::format::zgy::Zgy;
use crate::format::{Dataset, FormatError};
use crate::fuzz::allocations::measure;
use crate::source::Blocking;
use crate::test_support::handmade::{Handmade, zfp_header};
use crate::test_support::memory_folder::{open_file, open_files};
use crate::test_support::vds_dataset::{Cloud, Container};
use crate::volume::Dtype;

/// The longest time that any bomb may take. Most take a few milliseconds.
const LONGEST: Duration = Duration::from_secs(20);

/// Runs `work`, and returns its result with the most bytes that it had allocated at a time.
fn measured<T>(work: impl FnOnce() -> T) -> (T, u64) {
    let begin = Instant::now();
    let (result, allocated) = measure(work);
    assert!(begin.elapsed() < LONGEST, "it took {:?}", begin.elapsed());
    (result, allocated.most)
}

/// Runs `work`, and checks that it had at most `most` bytes allocated at a time.
fn within<T>(most: u64, work: impl FnOnce() -> T) -> T {
    let (result, used) = measured(work);
    assert!(used <= most, "{used} bytes were allocated at a time, more than {most}");
    result
}

/// Memory that opening takes for any dataset: pages of tables, and a few lists.
const SMALL: u64 = 1 << 20;
/// Memory that a description may take while it is parsed, whatever it says.
const DESCRIPTION: u64 = 192 << 20;

/// Memory that a decoder may take besides its output: tables, and the text of an error.
const TABLES: u64 = 256 << 10;

#[test]
fn zlib_streams_of_zeros() {
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::best());
    let zeros = vec![0; 1 << 20];
    (0..64).for_each(|_| encoder.write_all(&zeros).unwrap());
    let stream = encoder.finish().unwrap();
    assert!(stream.len() < 80_000);
    for length in [0, 1, 4096, 65_535] {
        let mut out = vec![1; length];
        let error = within(TABLES, || inflate::decode(&stream, &mut out)).unwrap_err();
        assert!(error.ends_with(&format!("more than the expected {length} bytes")), "{error}");
    }
    // a stream that ends where it should, and one that never ends
    let endless = &stream[..stream.len() - 5];
    assert!(within(TABLES, || inflate::decode(endless, &mut [0; 4096])).is_err());
}

#[test]
fn lz4_blocks_of_one_match() {
    let block = lz4::zeros(64 << 20).unwrap();
    assert!(block.len() < 300_000);
    for length in [0, 1, 4096, 65_535] {
        let mut out = vec![1; length];
        assert!(within(TABLES, || lz4::decode(&block, &mut out)).is_err());
    }
    // lengths that add up beyond 64 bits cannot be written in so few bytes; one that is cut off is refused
    let (literals, matched) = (vec![0xff; 1 << 20], [&[0x1f, 0, 1, 0][..], &[0xff; 1 << 20]].concat());
    assert!(within(TABLES, || lz4::decode(&literals, &mut [0; 4096])).is_err());
    assert!(within(TABLES, || lz4::decode(&matched, &mut [0; 4096])).is_err());
}

#[test]
fn run_lengths_of_the_longest_runs() {
    // each run of ten bytes stands for 16,384 units of 8 bytes
    let runs = [191, 255, 1, 2, 3, 4, 5, 6, 7, 8].repeat(10_000);
    for said in [64, i32::MAX, -1, 16_384 * 8 * 10_000] {
        let head = [12 + runs.len() as i32, said, 8].map(i32::to_le_bytes).concat();
        let packed = [head, runs.clone()].concat();
        assert!(within(TABLES, || decode_rle(&packed, &mut [0; 64])).is_err(), "{said}");
    }
}

#[test]
fn zfp_blocks_are_decoded_without_memory_of_their_own() {
    let seeds = concat!(env!("CARGO_MANIFEST_DIR"), "/fuzz/seeds/zfp");
    let mut decoded = 0;
    for seed in std::fs::read_dir(seeds).unwrap() {
        let seed = std::fs::read(seed.unwrap().path()).unwrap();
        // the extents of a valid header, less 1
        let Some(meta) = seed.get(6..14).map(|meta| u64::from_le_bytes(meta.try_into().unwrap())) else { continue };
        let (shape, stream) = ([36, 20, 4].map(|bit| (meta >> bit & 0xffff) + 1), &seed[2..]);
        let bytes = shape.iter().product::<u64>() * 4;
        let mut out = vec![0; usize::try_from(bytes).ok().filter(|bytes| *bytes < 1 << 24).unwrap_or(0)];
        for instructions in [zfp::Instructions::Portable, zfp::Instructions::best()] {
            let (result, allocated) = measure(|| zfp::decode_with(instructions, shape, stream, &mut out));
            assert!(result.is_err() || allocated.count == 0, "{} allocations", allocated.count);
            decoded += u32::from(result.is_ok());
        }
    }
    assert!(decoded > 10, "{decoded}");
}

#[test]
fn zfp_streams_of_another_shape() {
    for shape in [[4, 4, 4], [4096, 4096, 4096], [65_536, 65_536, 65_536], [1, 1, 1]] {
        for mode in [0, 2047, 2176, 4095] {
            let stream = [zfp_header(shape, mode), vec![0xff; 4000]].concat();
            let mut out = vec![0; 4 * 8 * 16 * 4];
            assert!(within(TABLES, || zfp::decode([4, 8, 16], &stream, &mut out)).is_err());
            assert!(within(TABLES, || zfp::decode([4, 4, 4], &stream, &mut out)).is_err());
        }
    }
    // a stream that is said to be long, and is not
    let stream = [zfp_header([64, 64, 64], 2047), vec![0; 100]].concat();
    let mut out = vec![0; 64 * 64 * 64 * 4];
    assert!(within(TABLES, || zfp::decode([64; 3], &stream, &mut out)).is_err());
}

/// Builds a wavelet chunk of 64 x 64 x 64 float32 that has these numbers after its header.
fn chunk(numbers: &[i32], rest: &[u8]) -> Vec<u8> {
    let length = (24 + 4 * numbers.len() + rest.len()) as i32;
    let head = [673, length, 64, 64, 64, 3];
    [head.map(i32::to_le_bytes).concat(), numbers.iter().flat_map(|n| n.to_le_bytes()).collect(), rest.to_vec()]
        .concat()
}

#[test]
fn wavelet_chunks_that_announce_much() {
    let size = [64; 3];
    let expected = Expected {
        size,
        dtype: Dtype::Float32,
        no_value: None,
        scale: 1.0,
        offset: 0.0,
        normalized: false,
        lossless: true,
    };
    let (fine, coarse) = (1f32.to_bits() as i32, 1e30f32.to_bits() as i32);
    let most = i32::MAX;
    // zero runs, NoValue, thresholds, stream, counts of entries
    let chunks: [&[i32]; 9] = [
        &[most],
        &[4, most],
        &[4, -1, fine, coarse, most],
        &[4, -1, 1, coarse, 400, most, most, most, most],
        &[4, -1, fine, coarse, 400, most, most, most, most, most, most],
        &[4, -1, fine, coarse, 400, 262_144, 262_144, 262_144, 262_144],
        &[4, -1, fine, fine, 8, 0, 0, most, most, most, most],
        &[4 + 8, most, 0, -1, fine, fine, 0],
        &[4, 8, 0, most, most, -1, fine, coarse, 100],
    ];
    for (number, numbers) in chunks.into_iter().enumerate() {
        for filler in [0, 0xff, 0xa5] {
            let chunk = chunk(numbers, &vec![filler; 600]);
            let mut out = vec![0; 64 * 64 * 64 * 4];
            let most = wavelet::working_set(size) as u64 + TABLES;
            // whether some of them decode or not: the memory is bounded
            let done = within(most, || wavelet::decode(&chunk, &expected, None, &mut Scratch::default(), &mut out));
            assert!(done.is_err(), "chunk {number} of {filler}");
        }
    }
    // a side that no chunk can have
    let wide = Expected { size: [1 << 20, 1, 1], ..expected };
    let done = within(TABLES, || wavelet::decode(&[0; 24], &wide, None, &mut Scratch::default(), &mut [0; 4]));
    assert!(done.is_err());
}

type Opened = Result<Box<dyn Dataset>, FormatError>;

/// Opens a WKW dataset of a mag `color/1` with this description.
fn wkw(text: Vec<u8>) -> Opened {
    let header = [b'W', b'K', b'W', 1, 0x03, 1, 1, 1, 16, 0, 0, 0, 0, 0, 0, 0];
    let files = BTreeMap::from([
        ("datasource-properties.json".to_owned(), text),
        ("color/1/header.wkw".to_owned(), header.to_vec()),
        ("color/1/z0/y0/x0.wkw".to_owned(), [header.to_vec(), vec![7; 512]].concat()),
    ]);
    open_files(&Wkw, files)
}

/// Returns the description of one layer; `change` changes it.
fn description(change: impl FnOnce(&mut Value)) -> Vec<u8> {
    let mut json = json!({"scale": {"factor": [1, 1, 1], "unit": "nanometer"}, "dataLayers": [{
        "name": "color", "dataFormat": "wkw", "elementClass": "uint8", "category": "color",
        "mags": [{"mag": 1, "path": "color/1"}],
        "boundingBox": {"topLeft": [0, 0, 0], "width": 8, "height": 8, "depth": 8},
    }]});
    change(&mut json);
    json.to_string().into_bytes()
}

/// Returns mags that all have their data in one folder.
fn mags(count: u64) -> Value {
    (1..=count).map(|mag| json!({"mag": [mag, 1, 1], "path": "color/1"})).collect()
}

/// Checks that a WKW dataset opens by its description, or else by the names of its folders, in bounded memory.
fn check_wkw(text: Vec<u8>, by_description: bool) {
    let opened = within(DESCRIPTION, || wkw(text)).unwrap();
    let warnings = opened.info().warnings.join("; ");
    assert_eq!(!warnings.contains("what is shown is what the folders have"), by_description, "{warnings}");
    assert!(!opened.layers().is_empty());
}

#[test]
fn wkw_descriptions_of_many_values() {
    check_wkw(description(|_| {}), true);
    for unit in ["{}", "{\"\":0}"] {
        let count = (8 << 20) / (unit.len() + 1) - 100;
        let list = vec![unit; count].join(",");
        check_wkw(format!("{{\"dataLayers\":[],\"more\":[{list}]}}").into_bytes(), false);
    }
    check_wkw([b"[".repeat(1 << 16), b"]".repeat(1 << 16)].concat(), false);
    check_wkw(b"{\"dataLayers\":".repeat(100_000), false);
}

#[test]
fn wkw_texts_that_every_level_repeats() {
    let long = Value::from("m".repeat(2 << 20));
    for key in ["elementClass", "category", "name", "dataFormat"] {
        check_wkw(
            description(|json| {
                json["dataLayers"][0]["mags"] = mags(200);
                json["dataLayers"][0][key] = long.clone();
            }),
            false,
        );
    }
    check_wkw(
        description(|json| {
            json["dataLayers"][0]["mags"] = mags(200);
            json["scale"]["unit"] = long.clone();
        }),
        false,
    );
    // an id is a number: anything else is left out
    check_wkw(
        description(|json| {
            json["dataLayers"][0]["mags"] = mags(200);
            json["dataLayers"][0]["largestSegmentId"] = vec![long.clone(); 2].into();
        }),
        true,
    );
    // names of folders that the layer's name would make
    check_wkw(
        description(|json| {
            json["dataLayers"][0]["name"] = long.clone();
            json["dataLayers"][0]["mags"] = (1..3000).map(|mag| json!({"mag": mag})).collect();
        }),
        false,
    );
}

#[test]
fn wkw_layers_and_mags_without_number() {
    check_wkw(description(|json| json["dataLayers"][0]["mags"] = mags(30)), true);
    check_wkw(description(|json| json["dataLayers"][0]["mags"] = mags(40_000)), false);
    check_wkw(description(|json| json["dataLayers"] = vec![json!({}); 60_000].into()), false);
    let layer = json!({"name": "color", "mags": mags(100)});
    check_wkw(description(|json| json["dataLayers"] = vec![layer.clone(); 300].into()), false);
}

/// The files of a VDS whose description `change` changes.
fn vds(change: impl FnOnce(&mut Value)) -> Vec<u8> {
    let mut container = Container::read("two.vds");
    container.edit(change);
    container.0
}

#[test]
fn vds_texts_that_every_level_repeats() {
    assert!(open_file(&Vds, vds(|_| {})).is_ok());
    let long = Value::from("m".repeat(2 << 20));
    let changes: [fn(&mut Value, Value); 4] = [
        |layout, text| layout["axisDescriptors"][0]["unit"] = text,
        |layout, text| layout["axisDescriptors"][1]["name"] = text,
        |layout, text| layout["channelDescriptors"][0]["unit"] = text,
        |layout, text| layout["channelDescriptors"][0]["name"] = text,
    ];
    for change in changes {
        let file = vds(|layout| change(layout, long.clone()));
        let why = within(DESCRIPTION, || open_file(&Vds, file)).err().unwrap().to_string();
        assert!(why.len() < 2000 && why.contains("bytes"), "{why:.200}");
    }
}

#[test]
fn vds_descriptions_of_many_values() {
    for unit in ["0", "{\"\":0}"] {
        let list = vec![unit; (30 << 20) / (unit.len() + 1)].join(",");
        let mut container = Container::read("two.vds");
        container.replace("VolumeDataLayout", 0, format!("{{\"later\":[{list}]}}").as_bytes());
        assert!(within(DESCRIPTION, || container.open()).is_err(), "{unit}");
    }
    // as many metadata as there may be, each as small as it can be
    let mut container = Container::read("two.vds");
    container.edit(|layout| layout["metadata"] = vec![json!({"value": {}}); 40_000].into());
    within(DESCRIPTION, || drop(container.open()));
    let nested = [b"{\"a\":".repeat(1 << 16), b"[".repeat(1 << 16)].concat();
    container.replace("VolumeDataLayout", 0, &nested);
    assert!(within(DESCRIPTION, || container.open()).is_err());
}

#[test]
fn vds_lists_of_layers_without_number() {
    let cloud = |status: String| {
        let mut cloud = Cloud::read("pages");
        *cloud.object("LayerStatus") = status.into_bytes();
        cloud
    };
    for unit in ["{}", "{\"layerName\":\"Dimensions_012LOD0\"}"] {
        let list = vec![unit; (16 << 20) / (unit.len() + 1)].join(",");
        assert!(within(DESCRIPTION, || cloud(format!("[{list}]")).open()).is_err(), "{unit}");
    }
}

fn zgy(file: Vec<u8>) -> Opened {
    open_file(&Zgy, file)
}

/// Overwrites bytes, and returns the file.
fn put(mut file: Vec<u8>, at: usize, bytes: &[u8]) -> Vec<u8> {
    file[at..at + bytes.len()].copy_from_slice(bytes);
    file
}

#[test]
fn zgy_sizes_and_tables() {
    let file = Handmade::new(3, 0, [8, 8, 8], [8, 8, 8], &[1]).build();
    assert!(zgy(file.clone()).is_ok());
    let huge = i32::MAX.to_le_bytes();
    // brick size; size of the survey; length of the strings
    for (at, bytes) in [
        (9, &huge[..]),
        (9, &(1i32 << 30).to_le_bytes()),
        (9 + 94, &huge),
        (9 + 94, &huge.repeat(3)),
        (9 + 94, &(1i32 << 20).to_le_bytes().repeat(3)),
        (9 + 333, &[255; 4]),
    ] {
        assert!(within(SMALL, || zgy(put(file.clone(), at, bytes))).is_err(), "byte {at}");
    }
    // a table in the middle of nowhere
    let old = Handmade::new(1, 0, [60, 64, 64], [64; 3], &[0]).build();
    for part in 0..4 {
        let far = put(old.clone(), 8 + 8 * part, &(1u64 << 62).to_le_bytes());
        assert!(within(SMALL, || zgy(far)).is_err(), "part {part}");
    }
}

#[test]
fn the_largest_zgy_brick_is_one_entry_of_a_table() {
    // a GiB in a constant brick costs nothing
    let file = Handmade::new(3, 0, [1024, 1024, 1024], [1024, 1024, 1024], &[0x80 << 56 | 3]).build();
    within(SMALL, || {
        let dataset = zgy(file).unwrap();
        let array = &dataset.layers()[0].levels[0];
        array.brick(&[0, 0, 0].into(), Blocking::Yes).unwrap();
        array.census().unwrap();
    });
}

#[test]
fn vds_tables() {
    let whole = Container::read("two.vds");
    let names = whole.files();
    let name = names.iter().find(|name| name.starts_with("Dimensions_")).unwrap();
    let entry = whole.entry(name);
    // offset, count and length of names in the header; then directory, chunks, entries of a page, lengths of metadata
    let numbers: [(usize, &[u8]); 8] = [
        (16, &i64::MAX.to_le_bytes()),
        (24, &i32::MAX.to_le_bytes()),
        (28, &i32::MAX.to_le_bytes()),
        (entry, &i64::MAX.to_le_bytes()),
        (entry + 8, &i32::MAX.to_le_bytes()),
        (entry + 16, &i32::MAX.to_le_bytes()),
        (entry + 24, &i32::MAX.to_le_bytes()),
        (entry + 28, &i32::MAX.to_le_bytes()),
    ];
    for (at, bytes) in numbers {
        let mut damaged = whole.clone();
        damaged.put(at, bytes);
        within(2 * SMALL, || {
            let Ok(dataset) = damaged.open() else { return };
            for array in dataset.layers().iter().flat_map(|layer| &layer.levels) {
                drop(array.brick(&array.info().grid.count().index_of(0), Blocking::Yes));
                drop(array.census());
            }
        });
    }
    // a chunk that says it has 2 GiB
    let mut damaged = whole.clone();
    let index = damaged.index(name, 0);
    damaged.put_i32(index + 8, i32::MAX);
    within(2 * SMALL, || drop(damaged.open()));
    // a description as long as the file could never be
    let mut damaged = whole;
    let index = damaged.index("VolumeDataLayout", 0);
    damaged.put_i32(index + 8, i32::MAX);
    assert!(within(SMALL, || damaged.open()).is_err());
}

#[test]
fn vds_axes_of_two_billion_samples() {
    let mut container = Container::read("two.vds");
    container.edit(|layout| {
        for axis in 0..2 {
            layout["axisDescriptors"][axis]["numSamples"] = i32::MAX.into();
        }
    });
    within(2 * SMALL, || {
        let Ok(dataset) = container.open() else { return };
        assert!(dataset.layers().iter().flat_map(|layer| &layer.levels).all(|array| array.census().is_ok()));
    });
}

#[test]
fn vds_pages_and_counts() {
    for (key, number) in [
        ("chunkCount", u64::MAX),
        ("chunkMetadataPageSize", 1 << 31),
        ("chunkMetadataPageSize", u64::MAX),
        ("chunkMetadataByteSize", u64::MAX),
        ("lod", u64::MAX),
    ] {
        let mut cloud = Cloud::read("pages");
        cloud.edit(|layer| layer[key] = number.into());
        within(2 * SMALL, || {
            let Ok(dataset) = cloud.open() else { return };
            for array in dataset.layers().iter().flat_map(|layer| &layer.levels) {
                drop(array.brick(&array.info().grid.count().index_of(0), Blocking::Yes));
            }
        });
    }
}

#[test]
fn wkw_cubes() {
    // sides of blocks and cubes of 2^15, voxels of 255 bytes, and a jump table of 2^45 entries
    for (logs, blocks, voxel) in [(0xff, 2, 255), (0xf0, 2, 1), (0x0f, 2, 1), (0xf5, 3, 8), (0x0a, 1, 1), (0x0a, 2, 1)]
    {
        let header = [b'W', b'K', b'W', 1, logs, blocks, 1, voxel, 16, 0, 0, 0, 0, 0, 0, 0];
        let files = BTreeMap::from([
            ("color/1/header.wkw".to_owned(), header.to_vec()),
            ("color/1/z0/y0/x0.wkw".to_owned(), [header.to_vec(), vec![255; 5000]].concat()),
        ]);
        within(SMALL, || {
            let Ok(dataset) = open_files(&Wkw, files) else { return };
            for array in dataset.layers().iter().flat_map(|layer| &layer.levels) {
                let grid = &array.info().grid;
                for number in [0, grid.total() / 2, grid.total() - 1] {
                    drop(array.brick(&grid.count().index_of(number), Blocking::Yes));
                }
            }
        });
    }
}
