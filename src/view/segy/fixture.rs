//! Arrays and surveys for tests, and reads of files of traces without a reader.

use std::ops::Range;
use std::sync::Arc;

use crate::catalog::OpenDataset;
use crate::format::{Array, Census, FormatError, Layer};
use crate::source::{Blocking, Source, SourceError};
use crate::view::file::{ComputedFile, Samples};
use crate::view::fixture;
pub(crate) use crate::view::fixture::{Layers, dataset};
use crate::volume::{
    Affine, ArrayInfo, Axis, Brick, BrickGrid, Coded, DatasetInfo, Dims, Dtype, Element, Geometry, Layout, NativeJson,
    Plain, Region, StoredLength,
};

/// An array whose samples are in memory. Bricks are constants where they can be, else plain and coded by turns.
pub(crate) struct Known {
    pub info: ArrayInfo,
    pub samples: Vec<u8>,
}

impl Source for Known {
    fn len(&self, _: &str) -> Result<Option<u64>, SourceError> {
        Ok(Some(self.samples.len() as u64))
    }
    fn read_at(&self, _: &str, offset: u64, out: &mut [u8], _: Blocking) -> Result<bool, SourceError> {
        out.copy_from_slice(&self.samples[offset as usize..][..out.len()]);
        Ok(true)
    }
    fn check_unchanged(&self) -> Result<(), SourceError> {
        Ok(())
    }
}

impl Array for Known {
    fn info(&self) -> &ArrayInfo {
        &self.info
    }
    fn source(&self) -> &dyn Source {
        self
    }
    fn brick(&self, at: &Dims, _: Blocking) -> Result<Brick, FormatError> {
        let (grid, size) = (&self.info.grid, self.info.dtype.size());
        let (held, codec) = (grid.region(at), grid.count().linear_of(at));
        let samples = self.samples_in(&held);
        if samples.chunks(size).all(|sample| *sample == samples[..size]) {
            return Ok(Brick::Constant(Element::new(&samples[..size])));
        }
        if codec % 2 == 0 {
            let strides = grid.shape().strides(size as u64);
            let first = grid.shape().linear_of(&held.start) * size as u64;
            return Ok(Brick::Plain(Plain { object: "".into(), offset: 0, layout: Layout { held, first, strides } }));
        }
        let layout = Layout { held, first: 0, strides: held.shape.strides(size as u64) };
        let (length, decoded) = (StoredLength::Bytes(0), samples.len());
        Ok(Brick::Coded(Coded { object: "".into(), offset: 0, length, decoded, scratch: 0, layout, codec }))
    }
    fn decode(&self, coded: &Coded, stored: &[u8], out: &mut [u8]) -> Result<(), FormatError> {
        assert!(stored.is_empty());
        let at = self.info.grid.count().index_of(coded.codec);
        out.copy_from_slice(&self.samples_in(&self.info.grid.region(&at)));
        Ok(())
    }
    fn census(&self) -> Result<Option<Census>, FormatError> {
        Ok(None)
    }
}

impl Known {
    /// Creates an array; an axis is its name, first position, step and count. Samples are bytes that look random.
    pub(crate) fn new(dtype: Dtype, axes: &[(&str, f64, f64, u64)]) -> Self {
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

    /// Returns the array with bricks of a shape.
    pub(crate) fn in_bricks(mut self, step: Dims) -> Self {
        (self.info.grid, self.info.brick_shape) = (BrickGrid::aligned(self.info.shape(), step), step);
        self
    }

    /// Returns the samples of a region in C order.
    pub(crate) fn samples_in(&self, region: &Region) -> Vec<u8> {
        let (shape, size) = (self.info.shape(), self.info.dtype.size());
        let sample = |number: u64| {
            let within = region.shape.index_of(number);
            let index = Dims::from_fn(within.len(), |axis| region.start[axis] + within[axis]);
            let at = shape.linear_of(&index) as usize * size;
            self.samples[at..at + size].iter().copied()
        };
        (0..region.samples()).flat_map(sample).collect()
    }
}

/// A geometry with world coordinates and a time axis in milliseconds.
pub(crate) fn geometry() -> Geometry {
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
pub(crate) fn open(format: &'static str, geometry: Option<Geometry>, array: Known) -> OpenDataset {
    let layer = Layer { name: "amplitude".into(), levels: vec![Arc::new(array)], native: NativeJson::new() };
    let info = DatasetInfo { geometry, ..DatasetInfo::default() };
    dataset(format, Layers(info, vec![layer], None))
}

/// Reads bytes of a file; `samples_of` has all samples of an array. Returns the bytes, and how many samples were read.
pub(crate) fn try_read(
    file: Arc<dyn ComputedFile>,
    bytes: Range<u64>,
    samples_of: &dyn Fn(&dyn Array) -> Vec<u8>,
) -> Result<(Vec<u8>, u64), FormatError> {
    let mut total = 0;
    let read = fixture::read(file, bytes, &mut |request| {
        let (info, all) = (request.array.info(), samples_of(&*request.array));
        let size = info.dtype.size();
        let numbers: Vec<u64> = match &request.samples {
            Samples::Range(range) => range.clone().collect(),
            Samples::Box(region) => {
                let index = |within: Dims| Dims::from_fn(within.len(), |axis| region.start[axis] + within[axis]);
                (0..region.samples()).map(|n| info.shape().linear_of(&index(region.shape.index_of(n)))).collect()
            }
        };
        assert!(!numbers.is_empty(), "no samples are requested");
        total += numbers.len() as u64;
        numbers.iter().flat_map(|number| &all[*number as usize * size..][..size]).copied().collect()
    });
    Ok((read?, total))
}

/// Like [`try_read`], of bytes that can be read.
pub(crate) fn read(
    file: Arc<dyn ComputedFile>,
    bytes: Range<u64>,
    samples_of: &dyn Fn(&dyn Array) -> Vec<u8>,
) -> (Vec<u8>, u64) {
    try_read(file, bytes, samples_of).unwrap()
}
