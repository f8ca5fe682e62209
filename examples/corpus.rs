//! Reads every array that an index lists, and prints what it read: `scripts/corpus INDEX FOLDER [--mount MOUNTPOINT]`.
//!
//! A line of the index is a JSON object with `source`, a path below FOLDER; `array`, the path of an array in it; and perhaps
//! `region`, a list of `[start, stop]` for each axis. A line of the output has the same keys, and `sha256` of the samples in
//! C order, `shape` and `dtype`; or `error`. N5 and precomputed list axes in reverse: so does the region. With a mountpoint
//! of FOLDER the files of the mount are read, else the library reads in process.

use std::collections::HashMap;
use std::env;
use std::error::Error;
use std::fs;
use std::io::{BufRead, BufReader, Write, stdout};
use std::path::{Path, PathBuf};

use ring::digest::{Context, SHA256};
use serde_json::{Value, json};
use volfs::{Array, Dataset, Selection};

type Result<T> = std::result::Result<T, Box<dyn Error>>;

/// Bytes that are hashed at a time.
const PIECE: usize = 32 << 20;

fn main() -> Result<()> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let (index, folder, mount) = match &arguments[..] {
        [index, folder] => (index, folder, None),
        [index, folder, option, mount] if option == "--mount" => (index, folder, Some(PathBuf::from(mount))),
        _ => return Err("corpus INDEX FOLDER [--mount MOUNTPOINT]".into()),
    };
    let mut opened: HashMap<String, std::result::Result<Source, String>> = HashMap::new();
    for line in BufReader::new(fs::File::open(index)?).lines() {
        let wanted: Value = serde_json::from_str(&line?)?;
        if wanted.get("link").is_some() && wanted.get("sha256").is_none() {
            continue;
        }
        let text = |key: &str| wanted.get(key).and_then(Value::as_str).unwrap_or_default();
        let (source, array) = (text("source"), text("array"));
        let found = opened
            .entry(source.to_owned())
            .or_insert_with(|| Source::open(&Path::new(folder).join(source)).map_err(|e| e.to_string()));
        let read = match found {
            Err(why) => Err(why.clone().into()),
            Ok(found) => {
                found.hash(array.trim_matches('/'), wanted.get("region"), mount.as_deref().map(|m| m.join(source)))
            }
        };
        let mut result = read.unwrap_or_else(|why| json!({"error": why.to_string()}));
        for key in ["source", "array", "region"] {
            if let Some(value) = wanted.get(key) {
                result[key] = value.clone();
            }
        }
        writeln!(stdout(), "{result}")?;
        if opened.len() > 64 {
            opened.clear();
        }
    }
    Ok(())
}

/// A dataset, and where its arrays are.
struct Source {
    dataset: Dataset,
    /// The layer and the level of each array by its path in the source.
    arrays: HashMap<String, (String, usize)>,
    /// Why arrays are not shown.
    reasons: HashMap<String, String>,
}

/// Returns the path that a format's own keys give an array.
fn path_of(keys: &Value) -> Option<String> {
    Some(keys.get("path")?.as_str()?.trim_matches('/').to_owned())
}

impl Source {
    fn open(path: &Path) -> Result<Self> {
        let dataset = volfs::open(path)?;
        let (mut arrays, mut reasons) = (HashMap::new(), HashMap::new());
        for layer in dataset.layers() {
            for lod in 0..layer.levels() {
                let metadata = layer.level(lod).ok_or("no such level")?.metadata()?;
                let keys = &metadata[dataset.format()];
                let path = path_of(keys).unwrap_or_else(|| layer.name().to_owned());
                let aliases = keys["aliases"].as_array().into_iter().flatten().filter_map(Value::as_str);
                for path in aliases.map(|path| path.trim_matches('/').to_owned()).chain([path]) {
                    arrays.entry(path).or_insert((layer.name().to_owned(), lod));
                }
            }
        }
        let metadata = dataset.metadata()?;
        for layer in metadata["layers"].as_array().into_iter().flatten() {
            let mut note = |keys: &Value, reason: &Value| {
                let path = path_of(keys).or_else(|| layer["name"].as_str().map(str::to_owned)).unwrap_or_default();
                reasons.insert(path, reason.as_str().unwrap_or("it is not shown").to_owned());
            };
            if let Some(reason) = layer.get("reason") {
                note(layer, reason);
            }
            for level in layer["missing"].as_array().into_iter().flatten() {
                note(level, &level["reason"]);
            }
        }
        Ok(Self { dataset, arrays, reasons })
    }

    fn hash(&self, array: &str, region: Option<&Value>, mounted: Option<PathBuf>) -> Result<Value> {
        let Some((layer, lod)) = self.arrays.get(array) else {
            let reason =
                self.reasons.get(array).or_else(|| self.reasons.values().next().filter(|_| self.arrays.is_empty()));
            return Err(reason.map_or("there is no such array", String::as_str).into());
        };
        let level = self.dataset.layer(layer)?.and_then(|layer| layer.level(*lod)).ok_or("no such level")?;
        let (sum, shape) = match (mounted, region) {
            (Some(dataset), None) if !dataset.exists() => {
                return Err("the mount of its folder does not show it: it is opened by its own name alone".into());
            }
            (Some(dataset), None) => {
                (hash_file(&dataset.join(layer).join(format!("lod{lod}.raw")))?, level.shape().to_vec())
            }
            (_, region) => hash_array(&level, &self.region(region, level.shape())?)?,
        };
        let hexadecimal: String = sum.iter().map(|byte| format!("{byte:02x}")).collect();
        Ok(json!({"sha256": hexadecimal, "shape": shape, "dtype": level.dtype().name()}))
    }

    /// Returns the first sample and the number of samples along each axis; `None` is all of it.
    fn region(&self, region: Option<&Value>, shape: &[u64]) -> Result<Vec<(u64, u64)>> {
        let Some(region) = region.and_then(Value::as_array) else { return Ok(shape.iter().map(|n| (0, *n)).collect()) };
        let bounds = |value: &Value| Some((value.get(0)?.as_u64()?, value.get(1)?.as_u64()?));
        let bounds: Option<Vec<_>> = region.iter().map(bounds).collect();
        let mut region: Vec<_> =
            bounds.ok_or("a region without bounds")?.into_iter().map(|(a, b)| (a, b - a)).collect();
        if ["n5", "precomputed"].contains(&self.dataset.format()) {
            region.reverse();
        }
        Ok(region)
    }
}

fn hash_file(path: &Path) -> Result<Vec<u8>> {
    let mut sum = Context::new(&SHA256);
    let mut file = BufReader::with_capacity(1 << 20, fs::File::open(path)?);
    loop {
        let piece = file.fill_buf()?;
        if piece.is_empty() {
            return Ok(sum.finish().as_ref().to_vec());
        }
        sum.update(piece);
        let length = piece.len();
        file.consume(length);
    }
}

/// Hashes a region in pieces of some planes.
fn hash_array(array: &Array, region: &[(u64, u64)]) -> Result<(Vec<u8>, Vec<u64>)> {
    let shape: Vec<u64> = region.iter().map(|(_, n)| *n).collect();
    let mut strides = vec![array.dtype().size() as u64; shape.len()];
    for axis in (0..shape.len().saturating_sub(1)).rev() {
        strides[axis] = strides[axis + 1] * shape[axis + 1];
    }
    let mut sum = Context::new(&SHA256);
    let planes = (PIECE as u64 / strides[0].max(1)).max(1);
    let mut first = 0;
    while first < shape[0] {
        let mut part = shape.clone();
        part[0] = planes.min(shape[0] - first);
        let mut start: Vec<u64> = region.iter().map(|(start, _)| *start).collect();
        start[0] += first;
        let mut memory = vec![0; (part[0] * strides[0]) as usize];
        let selection =
            Selection { start, step: vec![1; part.len()], offset: 0, strides: strides.clone(), shape: part };
        first += selection.shape[0];
        array.read_selections(&[selection], &mut memory, None)?;
        sum.update(&memory);
    }
    Ok((sum.finish().as_ref().to_vec(), shape))
}
