//! The text before the references of chunks: the metadata of the group and of its arrays, and the vectors of coordinates.
//!
//! Coordinates are computed when they are read, since those of long axes take a megabyte of text, and many files may be
//! open.

use std::hash::{Hash, Hasher};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::json;

use super::super::axis_positions::{first_and_step, positions};
use super::super::npy;
use super::chunks::Chunks;
use crate::volume::ArrayInfo;

/// Longer axes have no vector of coordinates.
const MAX_COORDINATES: u64 = 1 << 16;

/// Bytes of coordinates that are written at a time: whole groups of base64, which are three bytes.
const PIECE: u64 = 3 << 10;

/// The text before the references of chunks.
#[derive(Hash)]
pub(super) struct Heading {
    parts: Vec<Part>,
}

/// A part of the text.
#[derive(Hash)]
enum Part {
    Text(String),
    Coordinates(Coordinates),
}

/// The coordinates along an axis: float64, little-endian, in base64.
struct Coordinates {
    axis: usize,
    count: u64,
    first_and_step: (f64, f64),
}

impl Hash for Coordinates {
    fn hash<H: Hasher>(&self, state: &mut H) {
        let (first, step) = self.first_and_step;
        (self.axis, self.count, first.to_bits(), step.to_bits()).hash(state);
    }
}

impl Coordinates {
    /// Bytes of the coordinates themselves.
    fn bytes(&self) -> u64 {
        8 * self.count
    }

    /// Writes the text from byte `at` on; returns how many bytes of it.
    fn write(&self, info: &ArrayInfo, at: u64, out: &mut [u8]) -> usize {
        let from = at / 4 * 3;
        let to = (from + PIECE).min(self.bytes());
        let bytes = positions(info, self.axis, from / 8..to.div_ceil(8));
        let text = STANDARD.encode(&bytes[(from % 8) as usize..][..(to - from) as usize]);
        copy(&text.as_bytes()[(at % 4) as usize..], out)
    }
}

impl Part {
    fn len(&self) -> u64 {
        match self {
            Self::Text(text) => text.len() as u64,
            Self::Coordinates(coordinates) => 4 * coordinates.bytes().div_ceil(3),
        }
    }
}

impl Heading {
    /// Returns the text for an array whose samples are the Zarr array `name`.
    pub(crate) fn new(info: &ArrayInfo, chunks: &Chunks, axes: &[String], name: &str) -> Self {
        let array = |shape: &[u64], chunks: &[u64], dtype: &str| {
            // xarray takes another fill value for "no data", and makes floats of integers
            let metadata = json!({"zarr_format": 2, "shape": shape, "chunks": chunks, "dtype": dtype,
                "compressor": null, "fill_value": null, "order": "C", "filters": null, "dimension_separator": "."});
            metadata.to_string()
        };
        let shape: Vec<u64> = info.shape().iter().copied().collect();
        let reference = |key: String, value: String| format!("{}:{}", json!(key), json!(value));
        let refs = [
            reference(".zgroup".to_owned(), json!({"zarr_format": 2}).to_string()),
            reference(format!("{name}/.zarray"), array(&shape, &chunks.shape(), npy::descr(info.dtype))),
            reference(format!("{name}/.zattrs"), json!({"_ARRAY_DIMENSIONS": axes}).to_string()),
        ];
        let templates = json!({"raw": format!("lod{}.raw", info.lod)});
        let mut text = format!("{{\"version\":1,\n\"templates\":{templates},\n\"refs\":{{\n{}", refs.join(",\n"));
        let mut parts = Vec::new();
        for (axis, name) in axes.iter().enumerate() {
            let Some(count) = shape.get(axis).copied().filter(|count| *count <= MAX_COORDINATES) else { continue };
            let about = info.axes.get(axis);
            // not `units`: xarray makes time differences of milliseconds
            let unit = about.and_then(|axis| axis.unit.as_ref()).map(|unit| ("unit".to_owned(), json!(unit)));
            let dimensions = ("_ARRAY_DIMENSIONS".to_owned(), json!([name]));
            let attributes: serde_json::Map<_, _> = [dimensions].into_iter().chain(unit).collect();
            let refs = [
                reference(format!("{name}/.zarray"), array(&[count], &[count], "<f8")),
                reference(format!("{name}/.zattrs"), json!(attributes).to_string()),
            ];
            text = format!("{text},\n{},\n{}:\"base64:", refs.join(",\n"), json!(format!("{name}/0")));
            parts.push(Part::Text(text));
            parts.push(Part::Coordinates(Coordinates { axis, count, first_and_step: first_and_step(about) }));
            text = "\"".to_owned();
        }
        parts.push(Part::Text(text));
        Self { parts }
    }

    /// Returns the bytes of the text.
    pub(crate) fn len(&self) -> u64 {
        self.parts.iter().map(Part::len).sum()
    }

    /// Returns the bytes of the text that are in memory.
    #[cfg(test)]
    pub(crate) fn held(&self) -> usize {
        let held = |part: &Part| if let Part::Text(text) = part { text.len() } else { 0 };
        self.parts.iter().map(held).sum()
    }

    /// Writes the text from byte `at` on, to the end of `out` or less; returns how many bytes, of which there are some
    /// if `at` is within the text. `info` describes the array for which it was made.
    pub(crate) fn write(&self, info: &ArrayInfo, at: u64, out: &mut [u8]) -> usize {
        let mut start = 0;
        for part in &self.parts {
            if at < start + part.len() {
                let within = at - start;
                return match part {
                    Part::Text(text) => copy(&text.as_bytes()[within as usize..], out),
                    Part::Coordinates(coordinates) => coordinates.write(info, within, out),
                };
            }
            start += part.len();
        }
        0
    }
}

/// Copies as much as there is, or as fits; returns how many bytes.
pub(super) fn copy(from: &[u8], to: &mut [u8]) -> usize {
    let count = from.len().min(to.len());
    to[..count].copy_from_slice(&from[..count]);
    count
}
