//! Arrays and surveys for tests, and reads of their files without a reader.

use std::ops::Range;
use std::sync::Arc;

use super::{headers, survey_file};
use crate::catalog::OpenDataset;
use crate::format::{Array, Census, FormatError, Layer};
use crate::source::{Blocking, Source, SourceError};
use crate::view::segments::Content;
pub(crate) use crate::view::tests::{Layers, dataset};
use crate::view::tree::{Item, Tree};
use crate::view::{LayerRef, View};
use crate::volume::{
    Affine, ArrayInfo, Axis, Brick, BrickGrid, Coded, DatasetInfo, Dims, Dtype, Element, Geometry, Layout, NativeJson,
    Plain, Region, Scaling, StoredLength,
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
        Self::of(info)
    }

    fn of(info: ArrayInfo) -> Self {
        let bytes = info.shape().product().unwrap() as usize * info.dtype.size();
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
        let sample = |number: u64| {
            let within = region.shape.index_of(number);
            self.sample(&Dims::from_fn(within.len(), |axis| region.start[axis] + within[axis]))
        };
        (0..region.samples()).flat_map(sample).copied().collect()
    }

    /// Returns the bytes of a sample.
    fn sample(&self, at: &Dims) -> &[u8] {
        let size = self.info.dtype.size();
        &self.samples[self.info.shape().linear_of(at) as usize * size..][..size]
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

/// Names, first positions, steps and counts of three axes.
pub(crate) type Axes = [(&'static str, f64, f64, u64); 3];

pub(crate) const AXES: Axes = [("inline", 100.0, -2.0, 5), ("crossline", 2000.0, 3.0, 7), ("sample", -12.0, 4.0, 11)];

/// Opens a survey with samples of [`Known::new`].
pub(crate) fn survey(axes: &Axes, dtype: Dtype, scaling: Option<Scaling>) -> OpenDataset {
    let mut array = Known::new(dtype, axes);
    array.info.scaling = scaling;
    open("zgy", Some(geometry()), array)
}

/// Returns a layer without views.
pub(crate) fn layer(open: &OpenDataset, layer: usize) -> LayerRef<'_> {
    LayerRef { open, layer, views: &[] }
}

/// Returns the names of the files in the folder of each layer. Each can be found, and no others of SEG-Y.
pub(crate) fn names(open: &OpenDataset, views: &'static [View]) -> Vec<Vec<String>> {
    let tree = Tree::new(open, views);
    let list = |folder| {
        let mut items = Vec::new();
        tree.list(open, folder, 0, &mut |item, _| {
            items.push(item);
            true
        });
        items
    };
    let folders = list(Item::DATASET).into_iter().filter(|item| tree.is_folder(*item));
    let names = |folder| {
        let names: Vec<String> = list(folder).into_iter().map(|item| tree.name(item)).collect();
        for name in ["lod0.sgy", "original.sgy"] {
            let found = tree.find(open, folder, name, Blocking::No).unwrap();
            assert_eq!(found.is_some(), names.iter().any(|listed| listed == name), "{name}");
        }
        names
    };
    folders.map(names).collect()
}

/// Reads bytes of a file that is made of some arrays. Returns them, and how many samples were read.
pub(crate) fn try_read(content: &Content, bytes: Range<u64>, arrays: &[&Known]) -> Result<(Vec<u8>, u64), FormatError> {
    let mut total = 0;
    let read = crate::view::tests::read(content, bytes, &mut |info, at| {
        total += 1;
        arrays.iter().find(|known| known.info.id == info.id).unwrap().sample(at).to_vec()
    });
    Ok((read?, total))
}

/// Like [`try_read`], of bytes that can be read.
pub(crate) fn read(content: &Content, bytes: Range<u64>, arrays: &[&Known]) -> (Vec<u8>, u64) {
    try_read(content, bytes, arrays).unwrap()
}

/// Like [`read`], of a file of an array with samples of [`Known::new`].
pub(crate) fn read_known(content: &Content, bytes: Range<u64>) -> (Vec<u8>, u64) {
    read(content, bytes, &[&Known::of(content.array().unwrap().info().clone())])
}

/// Returns `lod0.sgy`.
pub(crate) fn whole(open: &OpenDataset) -> Vec<u8> {
    let content = survey_file::content(layer(open, 0)).unwrap();
    read_known(&content, 0..content.len()).0
}

/// Returns the textual header of `lod0.sgy`, decoded.
pub(crate) fn text_of(open: &OpenDataset) -> String {
    let of = |byte: &u8| (' '..='~').find(|character| headers::byte(*character) == Some(*byte));
    whole(open)[..3200].iter().map(|byte| of(byte).unwrap()).collect()
}

/// The big-endian number of `length` bytes at a byte that the standard numbers from 1.
pub(crate) fn field(of: &[u8], byte: usize, length: usize) -> i64 {
    let number = of[byte - 1..byte - 1 + length].iter().fold(0i64, |number, byte| number << 8 | i64::from(*byte));
    let bits = 64 - 8 * length as u32;
    number << bits >> bits
}
