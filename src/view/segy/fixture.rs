//! Layers for tests, and reads of computed files without a reader.

use std::ops::Range;
use std::sync::Arc;

use crate::catalog::OpenDataset;
use crate::format::{Array, Census, Dataset, FormatError, Layer};
use crate::memory::BufferPool;
use crate::source::{FileStamp, Source, Wait};
use crate::view::computed_file::{ComputedFile, Samples, Step};
use crate::volume::{Affine, ArrayInfo, Axis, Brick, BrickGrid, DatasetInfo, Dims, Dtype, Geometry, NativeJson};

/// An array of which only the metadata and the samples as a whole are known.
pub struct Known {
    pub info: ArrayInfo,
    pub samples: Vec<u8>,
}

impl Array for Known {
    fn info(&self) -> &ArrayInfo {
        &self.info
    }
    fn source(&self) -> &dyn Source {
        unreachable!()
    }
    fn brick(&self, _: &Dims, _: Wait) -> Result<Brick, FormatError> {
        unreachable!()
    }
    fn census(&self) -> Result<Option<Census>, FormatError> {
        Ok(None)
    }
}

impl Known {
    /// Creates an array; an axis is its name, first position, step and count. Samples are bytes that look random.
    pub fn new(dtype: Dtype, axes: &[(&str, f64, f64, u64)]) -> Self {
        let shape = Dims::from_slice(&axes.iter().map(|axis| axis.3).collect::<Vec<_>>()).unwrap();
        let axis = |&(name, first, step, count): &(&str, f64, f64, u64)| Axis {
            name: name.into(),
            unit: None,
            first,
            step,
            count,
            spatial: true,
        };
        let info = ArrayInfo {
            axes: axes.iter().map(axis).collect(),
            ..ArrayInfo::new(dtype, BrickGrid::aligned(shape, shape), shape)
        };
        let bytes = shape.product().unwrap() as usize * dtype.size();
        let samples = (0..bytes as u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 24) as u8);
        Self { info, samples: samples.collect() }
    }
}

/// A dataset with these layers.
struct Layers(DatasetInfo, Vec<Layer>);

impl Dataset for Layers {
    fn info(&self) -> &DatasetInfo {
        &self.0
    }
    fn layers(&self) -> &[Layer] {
        &self.1
    }
}

/// A geometry with world coordinates and a time axis in milliseconds.
pub fn geometry() -> Geometry {
    let map = Affine { origin: [431_964.75, 6_348_565.25], steps: [[3.5, 12.125], [-12.25, 3.0]] };
    Geometry {
        index_to_world: Some(map),
        horizontal_unit: Some("m".into()),
        horizontal_factor: 1.0,
        horizontal_kind: "length",
        vertical_factor: 1e-3,
        vertical_kind: "time",
        ..Geometry::default()
    }
}

/// Creates an open dataset with one layer.
pub fn open(format: &'static str, geometry: Option<Geometry>, array: Known) -> OpenDataset {
    let layer = Layer { name: "amplitude".into(), levels: vec![Arc::new(array)], native: NativeJson::new() };
    let info = DatasetInfo { geometry, ..DatasetInfo::default() };
    OpenDataset {
        name: "north.zgy".into(),
        path: "north.zgy".into(),
        stamp: FileStamp { size: 0, mtime: (0, 0), inode: (0, 0) },
        size: None,
        format,
        dataset: Box::new(Layers(info, vec![layer])),
    }
}

/// Reads bytes of a file; `samples_of` has all samples of an array. Returns the bytes, and how many samples were read.
pub fn read(
    file: Arc<dyn ComputedFile>,
    bytes: Range<u64>,
    samples_of: &dyn Fn(&dyn Array) -> Vec<u8>,
) -> (Vec<u8>, u64) {
    let buffers = BufferPool::new(1 << 20);
    let mut steps = file.read(bytes);
    let (mut given, mut total) = (None, 0);
    loop {
        match steps.step(given.take(), &buffers).unwrap() {
            Step::Done(out) => return (out.to_vec(), total),
            Step::Read(request) => {
                let (info, all) = (request.array.info(), samples_of(&*request.array));
                let size = info.dtype.size();
                let numbers: Vec<u64> = match request.samples {
                    Samples::Range(range) => range.collect(),
                    Samples::Box(region) => {
                        let index = |within: Dims| Dims::from_fn(within.len(), |axis| region.start[axis] + within[axis]);
                        (0..region.samples()).map(|n| info.shape().linear_of(&index(region.shape.index_of(n)))).collect()
                    }
                };
                assert!(!numbers.is_empty(), "no samples are requested");
                total += numbers.len() as u64;
                let mut samples = buffers.take(numbers.len() * size);
                for (to, number) in samples.chunks_mut(size).zip(numbers) {
                    to.copy_from_slice(&all[number as usize * size..][..size]);
                }
                given = Some(samples);
            }
        }
    }
}
