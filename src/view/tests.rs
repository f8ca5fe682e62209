//! Datasets for the tests of views, and reads of files without a reader.

use std::ops::Range;
use std::sync::Arc;

use super::segments::{Content, SampleRequest, Step};
use crate::array::Selection;
use crate::catalog::OpenDataset;
use crate::format::{Array, Census, Dataset, FormatError, Layer, SegyImport};
use crate::memory::BufferPool;
use crate::source::{Blocking, ObjectVersion, Source};
use crate::volume::{ArrayInfo, Axis, Brick, BrickGrid, DatasetInfo, Dims, Dtype, Element, Region};

/// An array of zeros without a source.
pub(crate) struct Zeros(pub ArrayInfo);

impl Array for Zeros {
    fn info(&self) -> &ArrayInfo {
        &self.0
    }
    fn source(&self) -> &dyn Source {
        unreachable!()
    }
    fn brick(&self, _: &Dims, _: Blocking) -> Result<Brick, FormatError> {
        Ok(Brick::Constant(Element::zero(self.0.dtype.size())))
    }
    fn census(&self) -> Result<Option<Census>, FormatError> {
        Ok(None)
    }
}

/// Creates an array of this shape whose axes begin at 10 and have the steps 2, 3, 4, ...
pub(crate) fn zeros(shape: &[u64], dtype: Dtype) -> Arc<dyn Array> {
    let shape = Dims::from_slice(shape).unwrap();
    let axes = (0..shape.len()).map(|a| Axis {
        name: ["inline", "crossline", "sample"].get(a).unwrap_or(&"more").to_string(),
        unit: None,
        first: 10.0,
        step: 2.0 + a as f64,
        count: shape[a],
        spatial: true,
    });
    Arc::new(Zeros(ArrayInfo {
        axes: axes.collect(),
        ..ArrayInfo::new(dtype, BrickGrid::aligned(shape, Dims::filled(shape.len(), 64)), Dims::filled(shape.len(), 64))
    }))
}

/// A dataset with these layers, which may come from a SEG-Y file.
pub(crate) struct Layers(pub DatasetInfo, pub Vec<Layer>, pub Option<Result<SegyImport, String>>);

impl Dataset for Layers {
    fn info(&self) -> &DatasetInfo {
        &self.0
    }
    fn layers(&self) -> &[Layer] {
        &self.1
    }
    fn segy_import(&self) -> Option<Result<&SegyImport, &str>> {
        self.2.as_ref().map(|import| import.as_ref().map_err(String::as_str))
    }
}

/// Opens a dataset.
pub(crate) fn dataset(format: &'static str, layers: Layers) -> OpenDataset {
    OpenDataset {
        name: "north.zgy".into(),
        path: "north.zgy".into(),
        version: ObjectVersion { size: 0, mtime: (0, 0), inode: (0, 0), etag: None },
        size: None,
        format,
        dataset: Box::new(layers),
        file: None,
    }
}

/// Opens a dataset with one layer.
pub(crate) fn one_layer(format: &'static str, layer: Layer) -> OpenDataset {
    dataset(format, Layers(DatasetInfo::default(), vec![layer], None))
}

/// Reads bytes of a file. `sample` has the bytes of the sample at an index of an array.
pub(crate) fn read(
    content: &Content,
    bytes: Range<u64>,
    sample: &mut dyn FnMut(&ArrayInfo, &Dims) -> Vec<u8>,
) -> Result<Vec<u8>, FormatError> {
    let buffers = BufferPool::new(1 << 20);
    let (mut read, mut memory) = (content.read(bytes, &buffers)?, None);
    loop {
        let SampleRequest { array, selections, memory: mut requested, .. } = match read.step(memory.take(), &buffers)? {
            Step::Done(out) => return Ok(out.to_vec()),
            Step::Read { samples, is_last: false } => samples,
            Step::Read { samples, is_last: true } => {
                return Ok(fill(samples.memory.to_vec(), &samples.selections, samples.array.info(), sample));
            }
        };
        let filled = fill(requested.to_vec(), &selections, array.info(), sample);
        requested.copy_from_slice(&filled);
        memory = Some(requested);
    }
}

fn fill(
    mut memory: Vec<u8>,
    selections: &[Selection],
    info: &ArrayInfo,
    sample: &mut dyn FnMut(&ArrayInfo, &Dims) -> Vec<u8>,
) -> Vec<u8> {
    let whole = Region::whole(info.shape());
    for selection in selections {
        for number in 0..selection.samples() {
            let within = selection.shape.index_of(number);
            let of = |axis: usize| selection.start[axis] + within[axis] * selection.step[axis];
            let at = Dims::from_fn(within.len(), of);
            assert!(
                whole.contains(&Region { start: at, shape: Dims::filled(at.len(), 1) }),
                "{at:?} is beyond the array"
            );
            let to = within.iter().zip(selection.strides.iter()).map(|(at, stride)| at * stride).sum::<u64>() as usize;
            let bytes = sample(info, &at);
            assert_eq!(bytes.len(), info.dtype.size());
            memory[selection.offset + to..][..bytes.len()].copy_from_slice(&bytes);
        }
    }
    memory
}
