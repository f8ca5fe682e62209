//! The text with the references. It is computed when it is read: every reference has the same length, filled up with
//! spaces, so that the size of the file is known and any part of it can be computed alone.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::ops::Range;
use std::sync::Arc;

use serde_json::json;

use super::super::axis_names::axis_names;
use super::super::computed_file::{ComputedFile, ReadSteps, Step};
use super::chunks::Chunks;
use super::heading::{Heading, copy};
use crate::format::Array;
use crate::memory::{Buffer, BufferPool, OutOfMemory};

/// The name of the array of samples.
const SAMPLES: &str = "image";

/// More bytes of text take about a millisecond.
const LONG_READ: u64 = 64 << 10;

/// The references of one level.
pub(crate) struct ReferenceFile {
    array: Arc<dyn Array>,
    chunks: Chunks,
    /// The text before the references of chunks.
    heading: Heading,
    name: String,
    /// Bytes of the text of a reference.
    width: usize,
}

const END: &[u8] = b"\n}}\n";

impl ReferenceFile {
    /// Returns the references to the raw file of an array.
    pub(crate) fn new(array: Arc<dyn Array>, chunks: Chunks) -> Self {
        let info = array.info();
        let axes = axis_names(info);
        let mut name = SAMPLES.to_owned();
        while axes.contains(&name) {
            name.push('_');
        }
        let heading = Heading::new(info, &chunks, &axes, &name);
        let mut file = Self { array, chunks, heading, name, width: 0 };
        file.width = file.longest_reference();
        file
    }

    /// Returns the length of the longest reference: that of the last chunk, whose numbers have the most digits.
    fn longest_reference(&self) -> usize {
        self.reference(self.chunks.count() - 1).len()
    }

    /// Returns the text of a reference, without the spaces behind it.
    fn reference(&self, number: u64) -> String {
        let (key, bytes) = (self.chunks.key(number), self.chunks.bytes());
        format!(",\n{}:[\"{{{{raw}}}}\",{},{bytes}]", json!(format!("{}/{key}", self.name)), number * bytes)
    }

    /// Fills `out` with the bytes from `from` on.
    fn write(&self, from: u64, mut out: &mut [u8]) {
        let (start, references) = (self.heading.len(), self.chunks.count());
        let mut at = from;
        while !out.is_empty() {
            let count = if at < start {
                self.heading.write(self.array.info(), at, out)
            } else {
                let (number, within) = ((at - start) / self.width as u64, ((at - start) % self.width as u64) as usize);
                if number >= references {
                    copy(&END[(at - start - references * self.width as u64) as usize..], out)
                } else {
                    let mut text = self.reference(number).into_bytes();
                    text.resize(self.width, b' ');
                    copy(&text[within..], out)
                }
            };
            out = &mut out[count..];
            at += count as u64;
        }
    }
}

impl ComputedFile for ReferenceFile {
    fn len(&self) -> u64 {
        self.heading.len() + END.len() as u64 + self.chunks.count() * self.width as u64
    }

    fn array(&self) -> &Arc<dyn Array> {
        &self.array
    }

    fn fingerprint(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        (&self.heading, self.width).hash(&mut hasher);
        hasher.finish()
    }

    fn is_long(&self, bytes: &Range<u64>) -> bool {
        bytes.end - bytes.start > LONG_READ
    }

    fn read(self: Arc<Self>, bytes: Range<u64>) -> Box<dyn ReadSteps> {
        Box::new(Text { file: self, bytes })
    }
}

/// A read of the text.
struct Text {
    file: Arc<ReferenceFile>,
    bytes: Range<u64>,
}

impl ReadSteps for Text {
    fn step(&mut self, _: Option<Buffer>, buffers: &Arc<BufferPool>) -> Result<Step, OutOfMemory> {
        let mut out = buffers.take_reply((self.bytes.end - self.bytes.start) as usize)?;
        self.file.write(self.bytes.start, &mut out);
        Ok(Step::Done(out))
    }
}

#[cfg(test)]
mod tests {
    use base64::Engine;
    use base64::engine::general_purpose::STANDARD;
    use proptest::prelude::*;
    use serde_json::Value;

    use super::super::super::array_file::tests::zeros;
    use super::*;
    use crate::volume::Dtype;

    fn file(shape: &[u64]) -> ReferenceFile {
        let array = zeros(shape, Dtype::UInt16);
        let chunks = Chunks::of(array.info()).unwrap();
        ReferenceFile::new(array, chunks)
    }

    fn part(file: &ReferenceFile, bytes: Range<u64>) -> Vec<u8> {
        let mut out = vec![1; (bytes.end - bytes.start) as usize];
        file.write(bytes.start, &mut out);
        out
    }

    fn whole(file: &ReferenceFile) -> Value {
        serde_json::from_slice(&part(file, 0..file.len())).unwrap()
    }

    #[test]
    fn every_plane_has_a_reference() {
        let text = whole(&file(&[12, 5, 7]));
        assert_eq!((&text["version"], &text["templates"]), (&json!(1), &json!({"raw": "lod0.raw"})));
        let refs = text["refs"].as_object().unwrap();
        for plane in 0..12 {
            assert_eq!(refs[&format!("image/{plane}.0.0")], json!(["{{raw}}", 70 * plane, 70]));
        }
        let metadata = |key: &str| serde_json::from_str::<Value>(refs[key].as_str().unwrap()).unwrap();
        assert_eq!(metadata(".zgroup"), json!({"zarr_format": 2}));
        assert_eq!(metadata("image/.zattrs"), json!({"_ARRAY_DIMENSIONS": ["inline", "crossline", "sample"]}));
        let array = metadata("image/.zarray");
        assert_eq!((&array["shape"], &array["chunks"]), (&json!([12, 5, 7]), &json!([1, 5, 7])));
        assert_eq!((&array["dtype"], &array["fill_value"]), (&json!("<u2"), &Value::Null));
        let vector = refs["crossline/0"].as_str().unwrap().strip_prefix("base64:").unwrap();
        let vector: Vec<f64> =
            STANDARD.decode(vector).unwrap().as_chunks().0.iter().map(|bytes| f64::from_le_bytes(*bytes)).collect();
        assert_eq!(vector, [10.0, 13.0, 16.0, 19.0, 22.0]);
        assert_eq!(refs.len(), 12 + 3 + 9);
    }

    #[test]
    fn coordinates_of_long_axes_are_in_the_text_and_not_in_memory() {
        let file = file(&[65_536, 2, 777]);
        assert!(file.heading.held() < 2048 && file.len() > 700_000, "{} {}", file.heading.held(), file.len());
        let text = whole(&file);
        for (axis, count, first, step) in [("inline", 65_536, 10.0, 2.0), ("sample", 777, 10.0, 4.0)] {
            let vector = text["refs"][format!("{axis}/0")].as_str().unwrap().strip_prefix("base64:").unwrap();
            let bytes = STANDARD.decode(vector).unwrap();
            let all: Vec<f64> = bytes.as_chunks().0.iter().map(|bytes| f64::from_le_bytes(*bytes)).collect();
            assert!(all.iter().copied().eq((0..count).map(|n| first + step * f64::from(n))), "{axis}");
        }
    }

    #[test]
    fn names_of_axes_are_distinct_from_each_other_and_from_the_samples() {
        let mut info = zeros(&[2, 3, 4], Dtype::UInt8).info().clone();
        for (axis, name) in info.axes.iter_mut().zip(["", "image", "a/b"]) {
            axis.name = name.to_owned();
        }
        let chunks = Chunks::of(&info).unwrap();
        let text = whole(&ReferenceFile::new(Arc::new(super::super::super::array_file::tests::Zeros(info)), chunks));
        let attributes = text["refs"]["image_/.zattrs"].as_str().unwrap();
        assert_eq!(attributes, "{\"_ARRAY_DIMENSIONS\":[\"axis0\",\"image\",\"a%2Fb\"]}");
        assert!(text["refs"]["a%2Fb/0"].is_string());
    }

    #[test]
    fn long_axes_have_no_coordinates_and_many_planes_cost_no_memory() {
        let file = file(&[100_000, 3, 2]);
        assert!(file.len() > 3_000_000 && file.heading.len() < 2000, "{} {}", file.len(), file.heading.len());
        let text = whole(&file);
        assert_eq!(text["refs"]["image/99999.0.0"], json!(["{{raw}}", 1_199_988, 12]));
        assert_eq!(text["refs"]["inline/0"], Value::Null);
    }

    proptest! {
        #[test]
        fn every_part_of_the_text_equals_that_of_the_whole(
            planes in 1u64..200, rows in 1u64..900, from in 0u64..19_000, count in 0u64..9000,
        ) {
            let file = file(&[planes, rows, 3]);
            let all = part(&file, 0..file.len());
            let start = from.min(file.len());
            let end = (start + count).min(file.len());
            prop_assert_eq!(&part(&file, start..end)[..], &all[start as usize..end as usize]);
            prop_assert!(serde_json::from_slice::<Value>(&all).is_ok());
        }
    }
}
