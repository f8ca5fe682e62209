//! Compares every ZGY file of a folder with what another reader has found in it.
//!
//! Each `X.zgy` comes with `X.json`, which has the expected values, and `X.lodN.npy`, the samples of each level (or
//! their checksum in the JSON). The folder is tests/data/zgy; the environment variable VOLFS_ORACLE names another one.

use std::fs;
use std::path::{Path, PathBuf};

use super::file_system::FileSystem;
use crate::format::zgy::Zgy;
use crate::format::{Array, Dataset, Format, FormatError, OpenWith};
use crate::source::{Blocking, IndexCache, LocalTree};
use crate::volume::Dims;
use serde_json::{Value, json};

use crate::test_support::{Npy, crc, json, naive, test_data};

#[test]
fn every_file_reads_as_the_other_reader_has_found() {
    let folder = std::env::var_os("VOLFS_ORACLE").map_or_else(|| test_data("zgy"), PathBuf::from);
    let mut files: Vec<_> = fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.retain(|path| path.extension().is_some_and(|e| e == "zgy") && path.with_extension("json").exists());
    files.sort();
    let shown = FileSystem::over(&folder);
    let faults: Vec<_> = files.iter().flat_map(|path| Check::new(path).run(&shown)).collect();
    assert!(faults.is_empty(), "{} faults in {} files:\n{}", faults.len(), files.len(), faults.join("\n"));
    assert!(!files.is_empty(), "no files in {}", folder.display());
    println!("{} files of {} are as they should be", files.len(), folder.display());
}

fn open(path: &Path) -> Result<Box<dyn Dataset>, FormatError> {
    let source = LocalTree::file(path)?;
    Zgy.open(source, &OpenWith::new(IndexCache::new(64 << 20)))
}

/// A file, and the differences found so far.
struct Check {
    path: PathBuf,
    name: String,
    json: Value,
    faults: Vec<String>,
}

impl Check {
    fn new(path: &Path) -> Self {
        let json = json(path.with_extension("json"));
        let name = path.file_stem().unwrap().to_string_lossy().into_owned();
        Self { path: path.to_owned(), name, json, faults: Vec::new() }
    }

    fn fault(&mut self, what: impl std::fmt::Display) {
        self.faults.push(format!("{}: {what}", self.name));
    }

    fn run(mut self, shown: &FileSystem) -> Vec<String> {
        let valid = self.json["invalid"] != true;
        match open(&self.path) {
            Ok(dataset) if valid => self.check_dataset(shown, &*dataset),
            Ok(dataset) => self.unreadable(&*dataset),
            Err(FormatError::Source(error)) => self.fault(format!("the system is blamed: {error}")),
            Err(error) if valid || self.json["stage"] != "open" => self.fault(error),
            Err(error) => println!("{}: {error}", self.name),
        }
        self.faults
    }

    /// Checks that a damaged file that opens fails in exactly the bricks that its JSON names, if it names any.
    fn unreadable(&mut self, dataset: &dyn Dataset) {
        if self.json["stage"] == "open" {
            if self.json["may_accept"] != true {
                self.fault("was opened");
            }
            return;
        }
        let mut found = Vec::new();
        for (lod, array) in dataset.layers()[0].levels.iter().enumerate() {
            let (samples, damaged) = naive::read_what_can_be(&**array);
            if let Some(expected) = self.samples(lod)
                && self.json.get("damaged_bricks").is_some()
            {
                self.undamaged(&**array, &samples, &expected, &damaged);
            }
            for (at, error) in damaged {
                println!("{} lod {lod} brick {at:?}: {error}", self.name);
                if !matches!(error, FormatError::Damaged(_)) {
                    self.fault(format!("the file is not blamed: {error:?}"));
                }
                found.push(json!({"lod": lod, "brick": &at[..]}));
            }
        }
        if found.is_empty() {
            self.fault("was read");
        }
        self.same("damaged bricks", &["damaged_bricks"], &Value::from(found));
    }

    /// Checks all bricks but the damaged ones.
    fn undamaged(&mut self, array: &dyn Array, found: &[u8], expected: &[u8], damaged: &[(Dims, FormatError)]) {
        let info = array.info();
        let size = info.dtype.size();
        for number in 0..info.shape().product().unwrap() {
            let sample = info.shape().index_of(number);
            let at = Dims::from_fn(sample.len(), |axis| info.grid.brick_of(axis, sample[axis]));
            let bytes = number as usize * size..(number as usize + 1) * size;
            if damaged.iter().all(|(brick, _)| *brick != at) && found[bytes.clone()] != expected[bytes] {
                return self.fault(format!("sample {sample:?} of a brick that is not damaged"));
            }
        }
    }

    /// Returns the expected samples of a level, if the folder has them.
    fn samples(&self, lod: usize) -> Option<Vec<u8>> {
        let name = format!("{}.lod{lod}.npy", self.name);
        Some(Npy::parse(&fs::read(self.path.with_file_name(name)).ok()?).samples)
    }

    /// Checks the samples, and the descriptions as a mount shows them.
    fn check_dataset(&mut self, shown: &FileSystem, dataset: &dyn Dataset) {
        let document =
            |name: String| serde_json::from_slice(&shown.read(&format!("{}.zgy/{name}", self.name))).unwrap();
        let levels = &dataset.layers()[0].levels;
        let described: Value = document("dataset.json".to_owned());
        let of_levels: Vec<Value> = (0..levels.len()).map(|lod| document(format!("data/lod{lod}.json"))).collect();
        self.same("number of levels", &["nlods_usable"], &json!(levels.len()));
        for (lod, (array, described)) in levels.iter().zip(of_levels).enumerate() {
            self.level(lod, &**array, &described);
        }
        self.same("range", &["codingrange"], &described["zgy"]["codingrange"]);
        self.native(&described);
        self.geometry(&described["geometry"]);
        self.figures(&described);
        assert_eq!(described["source"]["size"], self.path.metadata().unwrap().len());
        assert_eq!(described["metadata"], Value::Null);
    }

    fn level(&mut self, lod: usize, array: &dyn Array, described: &Value) {
        let entry = |key: &'static str| ["lods".to_owned(), lod.to_string(), key.to_owned()];
        let path = |key| entry(key).map(|s| &*s.leak());
        self.same("shape", &path("shape"), &described["shape"]);
        self.same("bricks", &path("bricks"), &described["brick_grid"]);
        self.same("brick size", &["bricksize"], &described["brick_shape"]);
        self.same("sample type", &["datatype", "name"], &described["dtype"]);
        let axes = &described["axes"];
        let step = |axis: usize| json!(axes[axis]["step"].as_f64().unwrap() / f64::from(1 << lod));
        for (axis, at) in ["0", "1"].into_iter().enumerate() {
            self.same("first", &["annot", "start", at], &axes[axis]["first"]);
            self.same("step", &["annot", "inc", at], &step(axis));
        }
        self.same("first", &["vertical", "start"], &axes[2]["first"]);
        self.same("step", &["vertical", "inc"], &step(2));
        assert!(["inline", "crossline", "sample"].iter().zip(axes.as_array().unwrap()).all(|(a, b)| b["name"] == *a));
        self.same("slope", &["storage_to_float", "slope"], &described["scale"]);
        self.same("intercept", &["storage_to_float", "intercept"], &described["offset"]);
        assert_eq!(self.json.get("storage_to_float").is_none(), described["scale"].is_null());
        match naive::read_all(array) {
            Ok(samples) => self.compare(lod, array, &samples),
            Err(error) => self.fault(format!("lod {lod}: {error}")),
        }
        self.kinds(array, &path("brick_kinds"), described);
        self.without_waiting(array);
    }

    fn compare(&mut self, lod: usize, array: &dyn Array, samples: &[u8]) {
        let sum = self.json["lods"][lod]["crc32"].as_str().map(str::to_owned);
        let expected = self.samples(lod);
        match &expected {
            Some(expected) if expected != samples => self.fault(format!("samples of lod {lod}")),
            None if sum.is_none() => self.fault(format!("nothing is known of the samples of lod {lod}")),
            _ => {}
        }
        if sum.is_some_and(|sum| sum != crc(samples)) {
            self.fault(format!("checksum of lod {lod}"));
        }
        let values = self.json["float32_lod0_crc32"].as_str().map(str::to_owned);
        if let (0, Some(scaling), Some(sum)) = (lod, array.info().scaling, values) {
            let value = |stored: i64| ((stored as f64 * scaling.scale + scaling.offset) as f32).to_le_bytes();
            let values: Vec<u8> = numbers(array, samples).into_iter().flat_map(value).collect();
            if crc(&values) != sum {
                self.fault("values");
            }
        }
    }

    fn kinds(&mut self, array: &dyn Array, path: &[&str], described: &Value) {
        let census = array.census().unwrap().expect("these tables are small");
        let counts = census.counts;
        let compressed = census.native["compressed"].as_u64().unwrap();
        let kinds = [
            ("compressed", compressed),
            ("constant", counts.constant),
            ("missing", counts.missing),
            ("stored", counts.stored - compressed),
        ];
        if let Some(expected) = get(&self.json, path).cloned() {
            for (kind, found) in kinds {
                if expected[kind].as_u64().unwrap_or(0) != found {
                    self.fault(format!("{found} bricks are {kind}, expected {expected}"));
                }
            }
        }
        if kinds.iter().map(|(_, n)| n).sum::<u64>() != counts.total || census.native["damaged"] != 0 {
            self.fault("some bricks are damaged");
        }
        let codec = if compressed == 0 {
            "raw"
        } else if compressed == counts.stored {
            "zfp"
        } else {
            "mixed"
        };
        assert_eq!((census.codec, &described["codec"]), (codec, &json!(codec)));
        for (key, number) in [
            ("total", counts.total),
            ("stored", counts.stored),
            ("constant", counts.constant),
            ("missing", counts.missing),
        ] {
            assert_eq!(described["bricks"][key], number, "{}: {key}", self.name);
        }
    }

    /// Checks that each brick, once known, is known without waiting.
    fn without_waiting(&mut self, array: &dyn Array) {
        for number in 0..array.info().grid.total() {
            let at = array.info().grid.count().index_of(number);
            if array.brick(&at, Blocking::No) != array.brick(&at, Blocking::Yes) {
                self.fault(format!("brick {at:?} is not known without waiting"));
            }
        }
    }

    fn native(&mut self, described: &Value) {
        let own = &described["zgy"];
        for path in [
            &["version"][..],
            &["size"],
            &["bricksize"],
            &["datatype", "code"],
            &["datatype", "name"],
            &["nlods_header"],
            &["nlods_usable"],
            &["default_storage"],
            &["units", "hdim"],
            &["units", "hunitname"],
            &["units", "vdim"],
            &["units", "vunitname"],
        ] {
            if let Some(found) = get(own, path) {
                self.same(&path.join("."), path, found);
            }
        }
        for path in [
            &["storage_to_float"][..],
            &["control_points"],
            &["annot"],
            &["vertical"],
            &["units", "hunitfactor"],
            &["units", "vunitfactor"],
        ] {
            self.same(&path.join("."), path, get(own, path).unwrap_or(&Value::Null));
        }
        // the JSON has the range that the writer was given; the file has it as float32
        let single = |a, b| a as f32 == b as f32;
        self.agree("codingrange_file", &["codingrange_file"], &own["codingrange_file"], single);
        for id in ["dataid", "verid", "previd"] {
            self.same(id, &["uuid", id], &own[id]);
        }
        for key in ["srcname", "srcdesc", "hprjsys"] {
            // the other reader treats strings as ASCII
            let ascii = own[key].as_str().is_some_and(str::is_ascii);
            if ascii {
                self.same(key, &["strings", key], &own[key]);
            }
        }
        assert_eq!(described["version"], own["version"].to_string());
    }

    fn geometry(&mut self, shown: &Value) {
        let of = |key: &str| -> Value { (0..4).map(|corner| shown["corners"][corner][key].clone()).collect() };
        self.same("corners", &["corners", "index"], &of("index"));
        self.near("corners", &["corners", "annot"], &of("annotation"));
        let world = of("world");
        let unknown = world.as_array().unwrap().iter().all(Value::is_null);
        self.near("corners", &["corners", "world"], if unknown { &Value::Null } else { &world });
        for map in ["index_to_world", "annotation_to_world"] {
            assert_eq!(shown["affine"][map].is_null(), world[0].is_null(), "{}: {map}", self.name);
        }
    }

    fn figures(&mut self, described: &Value) {
        let found = &described["statistics"];
        if self.json["statistics"].is_object() {
            for (key, theirs) in
                [("count", "cnt"), ("sum", "sum"), ("sum_of_squares", "ssq"), ("min", "min"), ("max", "max")]
            {
                self.same("statistics", &["statistics", theirs], &found[key]);
            }
        } else if self.json.get("statistics").is_some() && !found["count"].is_null() {
            self.fault("statistics out of nothing");
        }
        for (key, theirs) in [("count", "cnt"), ("bins", "bins"), ("min", "min"), ("max", "max")] {
            self.same("histogram", &["histogram", theirs], &described["histogram"][key]);
        }
    }

    /// Checks equality up to the last bit of a number, which reading from JSON may change.
    fn same(&mut self, what: &str, path: &[&str], found: &Value) {
        self.agree(what, path, found, |a, b| (a - b).abs() <= 3e-16 * a.abs());
    }

    /// Checks coordinates, in which readers differ in the last bits.
    fn near(&mut self, what: &str, path: &[&str], found: &Value) {
        self.agree(what, path, found, |a, b| (a - b).abs() <= 1e-9 * a.abs().max(1.0));
    }

    /// Compares a value with the JSON, if that has it.
    fn agree(&mut self, what: &str, path: &[&str], found: &Value, equal: fn(f64, f64) -> bool) {
        if let Some(expected) = get(&self.json, path).cloned()
            && !alike(&expected, found, equal)
        {
            self.fault(format!("{what}: {found}, expected {expected}"));
        }
    }
}

fn get<'a>(json: &'a Value, path: &[&str]) -> Option<&'a Value> {
    path.iter().try_fold(json, |at, key| match at {
        Value::Array(list) => list.get(key.parse::<usize>().ok()?),
        other => other.get(key),
    })
}

/// Compares numbers by value; the JSON has those that are not finite as strings, volfs as null.
fn alike(expected: &Value, found: &Value, equal: fn(f64, f64) -> bool) -> bool {
    match (expected, found) {
        (Value::Array(a), Value::Array(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| alike(a, b, equal)),
        (Value::Object(a), Value::Object(b)) => a.iter().all(|(key, a)| b.get(key).is_some_and(|b| alike(a, b, equal))),
        (Value::Number(a), Value::Number(b)) => equal(a.as_f64().unwrap(), b.as_f64().unwrap()),
        (Value::String(text), Value::Null) => ["NaN", "Infinity", "-Infinity"].contains(&&**text),
        _ => expected == found,
    }
}

/// Returns stored integers as numbers.
fn numbers(array: &dyn Array, samples: &[u8]) -> Vec<i64> {
    let info = array.info();
    let signed = info.dtype.name().starts_with('i');
    let number = |bytes: &[u8]| {
        let negative = signed && bytes.last().is_some_and(|top| top & 0x80 != 0);
        let mut wide = [if negative { 0xff } else { 0 }; 8];
        wide[..bytes.len()].copy_from_slice(bytes);
        i64::from_le_bytes(wide)
    };
    samples.chunks_exact(info.dtype.size()).map(number).collect()
}
