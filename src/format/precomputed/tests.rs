//! Volumes by hand: chunks that are missing, compressed once more, or damaged, and shards that lie.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::sync::Arc;

use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::{Value, json};

use super::*;
use crate::catalog::Recogniser;
use crate::format::registry;
use crate::source::{Blocking, IndexCache, LocalTree, SourceError};
use crate::test_support::memory_folder::{files_below, open_files};
use crate::test_support::{naive, test_data};
use crate::volume::{Brick, Dims};

type Files = BTreeMap<String, Vec<u8>>;

/// Describes a volume of 6 x 2 x 1 voxels in two chunks.
fn info(change: Value) -> Value {
    let mut scale = json!({
        "key": "s", "size": [6, 2, 1], "chunk_sizes": [[4, 2, 1]], "resolution": [1, 1, 1], "encoding": "raw",
    });
    for (key, value) in native(change) {
        scale[&key] = value;
    }
    json!({"type": "image", "data_type": "uint8", "num_channels": 1, "scales": [scale]})
}

fn files(info: &Value, chunks: &[(&str, &[u8])]) -> Files {
    let chunks = chunks.iter().map(|(name, bytes)| ((*name).to_owned(), bytes.to_vec()));
    chunks.chain([(FILE.to_owned(), info.to_string().into_bytes())]).collect()
}

fn array(files: Files) -> Arc<dyn Array> {
    Arc::clone(&open_files(&Precomputed, files).unwrap().layers()[0].levels[0])
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

const LEFT: &str = "s/0-4_0-2_0-1";
const RIGHT: &str = "s/4-6_0-2_0-1";

#[test]
fn chunks_are_cut_off_at_the_end_and_zeros_where_there_are_none() {
    let read = |chunks: &[(&str, &[u8])]| naive::read_all(&*array(files(&info(json!({})), chunks))).unwrap();
    assert_eq!(
        read(&[(LEFT, &[1, 2, 3, 4, 5, 6, 7, 8]), (RIGHT, &[9, 10, 11, 12])]),
        [1, 2, 3, 4, 9, 10, 5, 6, 7, 8, 11, 12]
    );
    assert_eq!(read(&[(RIGHT, &[9, 10, 11, 12])]), [0, 0, 0, 0, 9, 10, 0, 0, 0, 0, 11, 12]);
    assert_eq!(read(&[]), [0; 12]);
}

#[test]
fn chunks_may_be_members_of_gzip_under_a_name_of_their_own_or_their_own_name() {
    let (left, right) = (gzip(&[1, 2, 3, 4, 5, 6, 7, 8]), gzip(&[9, 10, 11, 12]));
    let named = format!("{LEFT}.gz");
    let array = array(files(&info(json!({})), &[(named.as_str(), &left), (RIGHT, &right)]));
    assert_eq!(naive::read_all(&*array).unwrap(), [1, 2, 3, 4, 9, 10, 5, 6, 7, 8, 11, 12]);
    assert!(array.decoded_shape(&[0, 0, 0].into()).is_none());
    naive::check_lookups(&*array);
}

#[test]
fn a_bare_chunk_comes_before_one_that_is_compressed_and_other_compressions_are_refused_by_name() {
    let (bare, other) = ([1, 2, 3, 4, 5, 6, 7, 8], format!("{LEFT}.gz"));
    let both = array(files(&info(json!({})), &[(LEFT, &bare), (other.as_str(), b"x")]));
    assert!(matches!(both.brick(&[0, 0, 0].into(), Blocking::Yes), Ok(Brick::Plain(_))));
    for suffix in [".br", ".zstd", ".xz", ".bz2"] {
        let named = format!("{RIGHT}{suffix}");
        let array = array(files(&info(json!({})), &[(LEFT, &bare), (named.as_str(), b"x")]));
        let (_, damaged) = naive::read_what_can_be(&*array);
        assert_eq!(damaged.len(), 1);
        assert!(damaged[0].1.to_string().contains(suffix), "{}", damaged[0].1);
    }
}

#[test]
fn only_damaged_chunks_fail() {
    let bare = [1, 2, 3, 4, 5, 6, 7, 8];
    for (right, why) in [
        (&b"abc"[..], "3 bytes, not 4"),
        (b"abcde", "5 bytes, not 4"),
        (&[0; 20_000], "more than its samples can take"),
        (&gzip(b"abc"), "not 4"),
        (&gzip(b"abcd")[..15], "damaged"),
    ] {
        let array = array(files(&info(json!({})), &[(LEFT, &bare), (RIGHT, right)]));
        let (samples, damaged) = naive::read_what_can_be(&*array);
        assert_eq!(samples[..4], [1, 2, 3, 4]);
        assert_eq!(damaged.len(), 1);
        let (at, error) = &damaged[0];
        assert_eq!(*at, Dims::from([0, 0, 1]));
        assert!(matches!(error, FormatError::Damaged(_)) && error.to_string().contains(why), "{error}");
    }
}

/// Describes shards of one byte a voxel whose two chunks are in one minishard of two.
fn sharded(index: &str, data: &str) -> Value {
    let sharding = json!({
        "@type": "neuroglancer_uint64_sharded_v1", "preshift_bits": 1, "hash": "identity", "minishard_bits": 1,
        "shard_bits": 0, "minishard_index_encoding": index, "data_encoding": data,
    });
    info(json!({"sharding": sharding}))
}

/// Makes a shard of chunks, then the index of minishard 0.
fn shard(chunks: &[u8], index: &[u64], place: Option<[u64; 2]>) -> Vec<u8> {
    let index: Vec<u8> = index.iter().flat_map(|n| n.to_le_bytes()).collect();
    let end = chunks.len() as u64;
    let [start, end] = place.unwrap_or([end, end + index.len() as u64]);
    let places: Vec<u8> = [start, end, 0, 0].iter().flat_map(|n| n.to_le_bytes()).collect();
    [&places[..], chunks, &index].concat()
}

#[test]
fn chunks_of_shards() {
    let shard = |index: &[u64]| shard(b"12345678abcd", index, None);
    let read = |index: &[u64]| naive::read_all(&*array(files(&sharded("raw", "raw"), &[("s/0.shard", &shard(index))])));
    assert_eq!(read(&[0, 1, 0, 0, 8, 4]).unwrap(), *b"1234ab5678cd");
    assert_eq!(read(&[1, 8, 4]).unwrap(), *b"\0\0\0\0ab\0\0\0\0cd");
    assert_eq!(read(&[]).unwrap(), [0; 12]);
    let absent = array(files(&sharded("raw", "raw"), &[]));
    assert_eq!(naive::read_all(&*absent).unwrap(), [0; 12]);
    assert_eq!(absent.stored_brick(&[0, 0, 0].into()).unwrap().unwrap().bytes, Some(0));
    let whole = array(files(&sharded("raw", "raw"), &[("s/0.shard", &shard(&[0, 1, 0, 0, 8, 4]))]));
    assert!(matches!(whole.brick(&[0, 0, 1].into(), Blocking::No), Err(FormatError::Source(SourceError::WouldBlock))));
    assert_eq!(whole.stored_brick(&[0, 0, 1].into()).unwrap().unwrap().bytes, Some(4));
    naive::check_lookups(&*whole);
    // an index in gzip, and chunks of which each is a member
    let chunks = [gzip(b"12345678"), gzip(b"abcd")];
    let lengths = [0, 1].map(|n: usize| chunks[n].len() as u64);
    let index: Vec<u8> = [0, 1, 0, 0, lengths[0], lengths[1]].iter().flat_map(|n: &u64| n.to_le_bytes()).collect();
    let (chunks, index) = (chunks.concat(), gzip(&index));
    let end = chunks.len() as u64;
    let packed = [&self::shard(&chunks, &[], Some([end, end + index.len() as u64])), &index[..]].concat();
    let packed = array(files(&sharded("gzip", "gzip"), &[("s/0.shard", &packed)]));
    assert_eq!(naive::read_all(&*packed).unwrap(), *b"1234ab5678cd");
}

#[test]
fn the_indexes_of_a_shard_are_named_until_they_are_known() {
    let shard = shard(b"12345678abcd", &[0, 1, 0, 0, 8, 4], None);
    let array = array(files(&sharded("raw", "raw"), &[("s/0.shard", &shard)]));
    let tables = || {
        let range = |depth| array.table_range(&[0, 0, 1].into(), depth);
        [0, 1, 2].map(|depth| range(depth).map(|(object, range)| (object.to_string(), range)))
    };
    let (first, second) = (Some(("s/0.shard".to_owned(), 0..32)), Some(("s/0.shard".to_owned(), 44..92)));
    // the second says where it is when the first is known
    assert_eq!(tables(), [first, second.clone(), None]);
    assert_eq!(tables(), [None, second, None]);
    assert!(array.brick(&[0, 0, 0].into(), Blocking::Yes).is_ok());
    assert_eq!(tables(), [const { None }; 3]);
    assert_eq!(self::array(files(&info(json!({})), &[])).table_range(&[0, 0, 1].into(), 0), None);
}

#[test]
fn shards_that_lie() {
    let good = [0, 1, 0, 0, 8, 4];
    let fails = |description: &Value, name: &str, shard: &[u8], count: usize, why: &str| {
        let (_, damaged) = naive::read_what_can_be(&*array(files(description, &[(name, shard)])));
        assert_eq!(damaged.len(), count, "{why}: {damaged:?}");
        assert!(damaged[0].1.to_string().contains(why), "{why}: {}", damaged[0].1);
    };
    let raw = sharded("raw", "raw");
    fails(&raw, "s/0.shard", &[0; 31], 2, "fewer than its index");
    fails(&raw, "s/0.index", &[0; 32], 2, "two files");
    for place in [[12, 61], [13, 12], [u64::MAX - 7, u64::MAX], [0, u64::MAX]] {
        fails(&raw, "s/0.shard", &shard(b"12345678abcd", &good, Some(place)), 2, "minishard 0");
    }
    fails(&raw, "s/0.shard", &shard(b"12345678abcd", &good, Some([12, 59])), 2, "minishard 0");
    for (index, count) in [
        ([0, 1, 0, 0, 8, 90], 1),
        ([0, 1, u64::MAX - 3, 0, 8, 4], 1),
        ([0, 1, 0, 100, 8, 4], 1),
        ([0, 1, 0, 0, 8, u64::MAX], 1),
    ] {
        fails(&raw, "s/0.shard", &shard(b"12345678abcd", &index, None), count, "beyond its end");
    }
    fails(&raw, "s/0.shard", &shard(b"12345678abcd", &[0, 1, 0, 0, 7, 4], None), 1, "7 bytes, not 8");
    fails(&sharded("gzip", "raw"), "s/0.shard", &shard(b"12345678abcd", &good, None), 2, "minishard 0 is damaged");
    fails(&sharded("raw", "gzip"), "s/0.shard", &shard(b"12345678abcd", &good, None), 2, "gzip");
    // more chunks than the volume has
    let bomb = gzip(&[0; 24 << 10]);
    let place = [12, 12 + bomb.len() as u64];
    let bomb = [&shard(b"12345678abcd", &[], Some(place))[..], &bomb].concat();
    fails(&sharded("gzip", "raw"), "s/0.shard", &bomb, 2, "minishard 0 is damaged");
}

#[test]
fn scales_that_cannot_be_read_are_named() {
    let mut keys = info(json!({}));
    let scales = keys["scales"].as_array_mut().unwrap();
    let with = |change: Value| info(change)["scales"][0].clone();
    scales.push(with(json!({"key": "t", "encoding": "compresso", "resolution": [2, 2, 2]})));
    scales.push(with(json!({"key": "u", "size": [0, -1, 2], "resolution": [4, 4, 4]})));
    scales.push(with(json!({"key": "gs://bucket/v", "resolution": [8, 8, 8]})));
    scales.push(with(json!({"key": "w", "resolution": [16, 16, 16]})));
    let dataset = open_files(&Precomputed, files(&keys, &[])).unwrap();
    let layer = &dataset.layers()[0];
    let paths: Vec<_> = layer.levels.iter().map(|level| level.info().native["path"].clone()).collect();
    assert_eq!(paths, ["s", "w"]);
    assert_eq!(layer.levels[1].info().lod, 1);
    let missing: Vec<_> = layer.native["missing"].as_array().unwrap().iter().map(|entry| &entry["path"]).collect();
    assert_eq!(missing, ["t", "u", "gs://bucket/v"]);
    assert_eq!(dataset.info().warnings.len(), 3);
    let mut found = Vec::new();
    dataset.check_structure(&mut |finding| found.push(finding.reason)).unwrap();
    assert_eq!(found, ["scale u: its size makes no sense"]);
    assert_eq!(Value::from(dataset.info().native.clone()), keys);
}

#[test]
fn a_dataset_of_which_nothing_can_be_read_says_why() {
    let why = |text: &str| {
        let files = Files::from([(FILE.to_owned(), text.as_bytes().to_vec())]);
        open_files(&Precomputed, files).err().unwrap().to_string()
    };
    assert!(why(&info(json!({"encoding": "crackle"})).to_string()).contains("crackle"));
    assert!(why(r#"{"scales": [], "data_type": "uint8"}"#).contains("no scales"));
    assert!(why(r#"{"scales": ["#).contains("info: "));
    assert!(why(r#"{"scales": [], "data_type": "string"}"#).contains("\"string\""));
    assert!(why("{}").contains("does not describe a volume"));
    assert!(open_files(&Precomputed, Files::new()).is_err());
}

#[test]
fn keys_lead_to_folders_below_the_source_and_no_further() {
    let root = tempfile::tempdir().unwrap();
    let at = |path: &str| root.path().join(path);
    for folder in ["source/volume", "source/other/s", "outside/s"] {
        fs::create_dir_all(at(folder)).unwrap();
    }
    for folder in ["source/other/s", "outside/s"] {
        fs::write(at(folder).join("0-4_0-2_0-1"), b"12345678").unwrap();
    }
    let open = |key: &str| {
        fs::write(at("source/volume/info"), info(json!({"key": key})).to_string()).unwrap();
        let folder = LocalTree::folder(&at("source"), &at("source/volume"));
        Precomputed.open_folder(folder, &OpenWith::new(IndexCache::new(1 << 20)))
    };
    let first = |key: &str| naive::read_all(&*open(key).unwrap().layers()[0].levels[0]).unwrap()[0];
    assert_eq!(["../other/s", "../other/./s/", "x//y", ""].map(first), [b'1', b'1', 0, 0]);
    for (key, why) in
        [("../../outside/s", "outside of the source"), ("/etc", "outside of the source"), ("../none", "no such folder")]
    {
        let error = open(key).err().unwrap().to_string();
        assert!(error.contains(why), "{key}: {error}");
    }
}

#[test]
fn folders_are_recognised_by_their_description_alone() {
    let root = tempfile::tempdir().unwrap();
    let format = |text: &[u8]| {
        // another file each time, since verdicts are remembered
        let folder = tempfile::tempdir_in(root.path()).unwrap();
        fs::write(folder.path().join(FILE), text).unwrap();
        Recogniser::new(registry()).format_of(folder.path()).unwrap().map(Format::name)
    };
    assert_eq!(format(info(json!({})).to_string().as_bytes()), Some("precomputed"));
    assert_eq!(format(b"{\"scales\": [{\"key\": "), Some("precomputed"));
    assert_eq!(format(b"Scales of fish"), None);
    assert_eq!(format(b"{\"@type\": \"neuroglancer_skeletons\"}"), None);
    let long = format!("{{\"scales\": [], \"text\": \"{}\"}}", "x".repeat(1 << 20));
    assert_eq!(format(long.as_bytes()), Some("precomputed"));
}

#[test]
fn other_lengths_of_what_others_have_written_are_errors() {
    for (name, chunk) in
        [("jpeg", "21-37_-3-13_100-108"), ("png", "5-21_-3-13_100-108"), ("segments", "5-21_-3-13_100-113")]
    {
        let mut files = files_below(&test_data("precomputed").join(name));
        let path = files.keys().find(|path| path.ends_with(chunk)).unwrap().clone();
        files.get_mut(&path).unwrap().truncate(40);
        let (_, damaged) = naive::read_what_can_be(&*array(files));
        assert_eq!(damaged.len(), 1, "{name}");
        assert!(damaged[0].1.to_string().contains(chunk), "{}", damaged[0].1);
    }
}
