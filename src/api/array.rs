//! One level of a layer, and the ways to read it.

use std::fmt;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use serde_json::Value;
use zerocopy::{FromBytes, IntoBytes};

use super::engine::Engine;
use super::region::resolve;
use super::{Dtype, IntoRegion, OpenError, Opened, ReadError, Shared};
use crate::array::{self as data_path, ReadRequest, Readers, Recorded, boxes};
use crate::format;
use crate::source::SourceError;
use crate::sync::enter;
use crate::view::{self, LayerRef, registry as views};
use crate::volume::{ArrayInfo, AxisPermutation, Dims, Region};

/// The source is looked at again if that was not done for so long.
const LOOK_AGAIN: Duration = Duration::from_secs(1);

/// Reads of more bytes are not taken for steps of somebody who reads in order.
const LARGE: u64 = 8 << 20;

/// The type of a sample in memory. Rust has none for float16 and complex samples: [`Array::read_bytes_into`].
pub trait Sample: FromBytes + IntoBytes + Copy + Send + Sync + private::Sealed + 'static {
    /// The stored type that it is.
    const DTYPE: Dtype;
}

mod private {
    pub trait Sealed {}
}

macro_rules! samples {
    ($($type:ty: $dtype:ident)+) => {$(
        impl private::Sealed for $type {}
        impl Sample for $type {
            const DTYPE: Dtype = Dtype::$dtype;
        }
    )+};
}

samples! { i8: Int8 u8: UInt8 i16: Int16 u16: UInt16 i32: Int32 u32: UInt32 i64: Int64 u64: UInt64 f32: Float32 f64: Float64 }

/// An axis of an array, and the coordinates of its positions.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Axis {
    /// The name: `inline`, `z`, ...
    pub name: String,
    /// The unit of `first` and `step`, if it is known.
    pub unit: Option<String>,
    /// The coordinate of position 0: a line number, a time, a distance.
    pub first: f64,
    /// The difference between neighbouring positions.
    pub step: f64,
    /// The number of positions.
    pub count: u64,
}

/// What is known of a level without the process that has it open.
#[derive(Debug, PartialEq)]
pub(super) struct Facts {
    dtype: Dtype,
    shape: Dims,
    brick_shape: Dims,
    axes: Vec<Axis>,
    no_value: Option<f64>,
    scale: Option<(f64, f64)>,
}

/// A level as one process has it open.
pub(super) struct LevelState {
    pub(super) facts: Arc<Facts>,
    /// Those that read planes along each axis in order: as the readers of a file with that axis first.
    readers: Vec<OnceLock<Readers>>,
}

impl LevelState {
    pub(super) fn new(array: &Arc<dyn format::Array>) -> Self {
        let info = array.info();
        let axis = |axis: &crate::volume::Axis| {
            let (name, unit) = (axis.name.clone(), axis.unit.clone());
            Axis { name, unit, first: axis.first, step: axis.step, count: axis.count }
        };
        let facts = Facts {
            dtype: info.dtype,
            shape: info.shape(),
            brick_shape: info.brick_shape,
            axes: info.axes.iter().map(axis).collect(),
            no_value: info.no_value,
            scale: info.scaling.map(|scaling| (scaling.scale, scaling.offset)),
        };
        let readers = info.shape().iter().map(|_| OnceLock::new()).collect();
        Self { facts: Arc::new(facts), readers }
    }

    /// Records a read of neighbouring planes, or of neighbouring samples of a plane, so that those who read in order are
    /// known.
    fn record(&self, info: &ArrayInfo, region: &Region) -> Option<Recorded> {
        let shape = info.shape();
        (0..shape.len()).find_map(|axis| {
            let order = AxisPermutation::to_front(axis);
            let (shape, start) = (order.permute_dims(&shape), order.permute_dims(&region.start));
            let first = shape.linear_of(&start);
            let samples = first..first + region.samples();
            let part = Region { start, shape: order.permute_dims(&region.shape) };
            // they follow one another in C order with this axis first
            let is_run = boxes(shape, samples.clone()).eq([part]);
            let readers = || self.readers[axis].get_or_init(|| Readers::new(info, order));
            is_run.then(|| readers().record(&samples, false, false))
        })
    }
}

/// Samples of an array with a step, and where they go in memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Selection {
    /// The first sample, for each axis of the array.
    pub start: Vec<u64>,
    /// The number of samples.
    pub shape: Vec<u64>,
    /// The distance between neighbouring samples in the array, 1 or more.
    pub step: Vec<u64>,
    /// Where the first sample goes: bytes from the beginning of the memory.
    pub offset: usize,
    /// Bytes between neighbouring samples in memory. Samples must not overlap.
    pub strides: Vec<u64>,
}

/// One level of detail of a layer: an array in C order, that is read in parts.
#[derive(Clone)]
pub struct Array {
    pub(super) dataset: Arc<Shared>,
    pub(super) facts: Arc<Facts>,
    pub(super) layer: usize,
    pub(super) lod: usize,
}

impl Array {
    /// The number of samples along each axis, slowest axis first.
    #[must_use]
    pub fn shape(&self) -> &[u64] {
        &self.facts.shape
    }

    /// The type of the stored samples.
    #[must_use]
    pub fn dtype(&self) -> Dtype {
        self.facts.dtype
    }

    /// The axes, slowest first.
    #[must_use]
    pub fn axes(&self) -> &[Axis] {
        &self.facts.axes
    }

    /// The samples of a brick along each axis: reads of whole bricks cost least.
    #[must_use]
    pub fn brick_shape(&self) -> &[u64] {
        &self.facts.brick_shape
    }

    /// The bytes of all samples.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.facts.shape.iter().product::<u64>() * self.facts.dtype.size() as u64
    }

    /// The stored sample that means "no data".
    #[must_use]
    pub fn no_value(&self) -> Option<f64> {
        self.facts.no_value
    }

    /// The scale and the offset in value = stored * scale + offset; `None` if the samples are values already.
    #[must_use]
    pub fn scale_and_offset(&self) -> Option<(f64, f64)> {
        self.facts.scale
    }

    /// All that is known of the level: the content of `lodN.json` in a mount.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn metadata(&self) -> Result<Value, OpenError> {
        let opened = self.dataset.opened()?;
        let layer = LayerRef { open: &opened.dataset, layer: self.layer, views: views() };
        let metadata = view::json::level(layer, self.lod);
        metadata.map_err(|error| OpenError::new(&self.dataset.origin.path, error.into()))
    }

    /// Reads a region. The samples come in C order.
    ///
    /// # Errors
    /// If the samples are of another type, if the array does not have the region, or if it cannot be read.
    pub fn read<T: Sample>(&self, region: impl IntoRegion) -> Result<Vec<T>, ReadError> {
        let (region, _) = self.region(region)?;
        let mut samples = self.memory::<T>(region.samples())?;
        self.read_regions(&[region], samples.as_mut_bytes())?;
        Ok(samples)
    }

    /// Reads a region into `out`, which has as many samples, in C order.
    ///
    /// # Errors
    /// Those of [`Array::read`], and if `out` has another length.
    pub fn read_into<T: Sample>(&self, region: impl IntoRegion, out: &mut [T]) -> Result<(), ReadError> {
        self.check_dtype::<T>()?;
        let (region, _) = self.region(region)?;
        if out.len() as u64 != region.samples() {
            return Err(ReadError::Memory(format!("{} samples for {}", region.samples(), out.len())));
        }
        self.read_regions(&[region], out.as_mut_bytes())
    }

    /// Reads a region as the bytes of its samples, which come in C order and are little-endian: the way to read float16
    /// and complex samples, for which Rust has no type.
    ///
    /// # Errors
    /// If the array does not have the region, if it cannot be read, or if `out` has another length.
    pub fn read_bytes_into(&self, region: impl IntoRegion, out: &mut [u8]) -> Result<(), ReadError> {
        let (region, _) = self.region(region)?;
        let bytes = region.samples() * self.facts.dtype.size() as u64;
        if out.len() as u64 != bytes {
            return Err(ReadError::Memory(format!("{bytes} bytes for {}", out.len())));
        }
        self.read_regions(&[region], out)
    }

    /// Reads several regions at once: a brick that several of them touch is decoded once.
    ///
    /// # Errors
    /// Those of [`Array::read`].
    pub fn read_many<T: Sample, R: IntoRegion>(
        &self,
        regions: impl IntoIterator<Item = R>,
    ) -> Result<Vec<Vec<T>>, ReadError> {
        let regions = regions.into_iter().map(|region| Ok(self.region(region)?.0));
        let regions: Vec<Region> = regions.collect::<Result<_, ReadError>>()?;
        let all = regions.iter().map(Region::samples).fold(0_u64, u64::saturating_add);
        let mut samples = self.memory::<T>(all)?;
        self.read_regions(&regions, samples.as_mut_bytes())?;
        let mut rest = &samples[..];
        let parts = regions.iter().map(|region| {
            let (part, after) = rest.split_at(region.samples() as usize);
            rest = after;
            part.to_vec()
        });
        Ok(parts.collect())
    }

    /// Reads a region as an array of `ndarray`. A number in the region takes its axis away.
    ///
    /// # Errors
    /// Those of [`Array::read`].
    #[cfg(feature = "ndarray")]
    pub fn read_ndarray<T: Sample>(&self, region: impl IntoRegion) -> Result<ndarray::ArrayD<T>, ReadError> {
        let (region, kept) = self.region(region)?;
        let mut samples = self.memory::<T>(region.samples())?;
        self.read_regions(&[region], samples.as_mut_bytes())?;
        let shape: Vec<usize> =
            region.shape.iter().zip(kept).filter_map(|(n, kept)| kept.then_some(*n as usize)).collect();
        ndarray::ArrayD::from_shape_vec(shape, samples).map_err(|error| ReadError::Memory(error.to_string()))
    }

    /// Reads samples, with steps, to places in `memory`, little-endian. All selections are planned together: a brick that
    /// several of them touch is decoded once. `goes_on` is asked some times a second while the calling thread waits, and
    /// ends the read by `false`.
    ///
    /// # Errors
    /// If the array does not have the samples, if they do not fit the memory or overlap in it, if they cannot be read,
    /// or if the read was ended.
    pub fn read_selections(
        &self,
        selections: &[Selection],
        memory: &mut [u8],
        goes_on: Option<&mut dyn FnMut() -> bool>,
    ) -> Result<(), ReadError> {
        self.read_to(self.planned(selections, memory.len())?, memory, goes_on)
    }

    /// Reads as [`Array::read_selections`] does if all samples are in memory, and returns whether they are. Otherwise
    /// `memory` has arbitrary content. Never waits for the source.
    ///
    /// # Errors
    /// If the array does not have the samples, or if they do not fit the memory or overlap in it.
    pub fn read_cached(&self, selections: &[Selection], memory: &mut [u8]) -> Result<bool, ReadError> {
        enter();
        let selections = self.planned(selections, memory.len())?;
        // a child has nothing in memory, and what may have changed has to be looked at
        let Some(opened) = self.dataset.opened.get().filter(|opened| !opened.is_to_be_looked_at()) else {
            return Ok(false);
        };
        // the read that follows tells the error
        let is_there =
            Engine::get().reader.read_cached(self.request(opened, selections.clone()), memory).unwrap_or(false);
        if is_there {
            self.record(opened, &selections);
        }
        Ok(is_there)
    }

    /// Returns selections as the reader has them, if the array has the samples, and `length` bytes their places.
    fn planned(&self, selections: &[Selection], length: usize) -> Result<Vec<data_path::Selection>, ReadError> {
        let dims = |values: &[u64]| Dims::from_slice(values).filter(|dims| dims.len() == self.facts.shape.len());
        let selection = |from: &Selection| {
            let Selection { start, shape, step, offset, strides } = from;
            let dims = Some((dims(start)?, dims(shape)?, dims(step)?, dims(strides)?));
            let (start, shape, step, strides) = dims?;
            Some(data_path::Selection { start, shape, step, offset: *offset, strides })
        };
        let axes = || ReadError::Region(format!("selection of other than {} axes", self.facts.shape.len()));
        let selections: Option<Vec<_>> = selections.iter().map(selection).collect();
        let mut selections = selections.ok_or_else(axes)?;
        let (array_shape, size) = (self.facts.shape, self.facts.dtype.size());
        for selection in &selections {
            if !selection.fits(&array_shape, size, usize::MAX) {
                return Err(ReadError::Region(format!("such part of an array of {array_shape:?}: {selection:?}")));
            }
            if !selection.fits(&array_shape, size, length) {
                return Err(ReadError::Memory(format!("it has {length} bytes")));
            }
        }
        selections.retain(|selection| !selection.shape.contains(&0));
        if !data_path::are_disjoint(&selections, size) {
            return Err(ReadError::Memory("samples overlap".into()));
        }
        Ok(selections)
    }

    fn check_dtype<T: Sample>(&self) -> Result<(), ReadError> {
        let (stored, asked) = (self.facts.dtype, T::DTYPE);
        if stored == asked { Ok(()) } else { Err(ReadError::Dtype { stored, asked }) }
    }

    fn region(&self, region: impl IntoRegion) -> Result<(Region, Vec<bool>), ReadError> {
        resolve(&region.into_slices(), &self.facts.shape).map_err(ReadError::Region)
    }

    fn memory<T: Sample>(&self, samples: u64) -> Result<Vec<T>, ReadError> {
        self.check_dtype::<T>()?;
        let none = |_| ReadError::Memory(format!("there is no memory for {samples} of them"));
        let samples = usize::try_from(samples).map_err(|_| none(()))?;
        T::new_vec_zeroed(samples).map_err(|_| none(()))
    }

    /// Reads regions, one after the other in memory.
    fn read_regions(&self, regions: &[Region], memory: &mut [u8]) -> Result<(), ReadError> {
        let (mut offset, size) = (0, self.facts.dtype.size());
        let selection = |region: &Region| {
            let selection = data_path::Selection::new(region, offset, size);
            offset += region.samples() as usize * size;
            selection
        };
        self.read_to(regions.iter().map(selection).collect(), memory, None)
    }

    fn read_to(
        &self,
        selections: Vec<data_path::Selection>,
        memory: &mut [u8],
        goes_on: Option<&mut dyn FnMut() -> bool>,
    ) -> Result<(), ReadError> {
        let opened = self.dataset.opened().map_err(|error| ReadError::of_open(self.to_string(), error))?;
        let from_file = self.record(opened, &selections);
        let request = ReadRequest { from_file, ..self.request(opened, selections) };
        opened.read(self, request, memory, goes_on)
    }

    fn record(&self, opened: &Opened, selections: &[data_path::Selection]) -> Option<Recorded> {
        let (array, state) = (self.stored(opened), &opened.layers[self.layer][self.lod]);
        match selections {
            // what follows a large read is not worth keeping ready
            [one] if one.is_dense() && one.samples() < LARGE / array.info().dtype.size() as u64 => {
                state.record(array.info(), &Region { start: one.start, shape: one.shape })
            }
            _ => None,
        }
    }

    fn request(&self, opened: &Opened, selections: Vec<data_path::Selection>) -> ReadRequest {
        let (array, bulkhead) = (Arc::clone(self.stored(opened)), opened.bulkhead);
        ReadRequest { array, selections, bulkhead, counters: None, from_file: None, is_entire: true }
    }

    fn stored<'a>(&self, opened: &'a Opened) -> &'a Arc<dyn format::Array> {
        &opened.dataset.dataset.layers()[self.layer].levels[self.lod]
    }
}

impl Opened {
    /// Reads samples of an array of the dataset. Errors call it by `name`.
    pub(super) fn read(
        &self,
        name: &dyn fmt::Display,
        request: ReadRequest,
        memory: &mut [u8],
        goes_on: Option<&mut dyn FnMut() -> bool>,
    ) -> Result<(), ReadError> {
        let array = Arc::clone(&request.array);
        let failed = |error| {
            let held = |brick: &Dims| {
                let count = array.info().grid.count();
                let is_brick = brick.len() == count.len() && brick.iter().zip(count.iter()).all(|(at, n)| at < n);
                is_brick.then(|| array.info().grid.region(brick))
            };
            // what a file has after a change says nothing about what was opened
            if array.source().check_unchanged() == Err(SourceError::Changed) {
                return ReadError::Changed(name.to_string());
            }
            let data_path::ReadError { brick, .. } = error;
            ReadError::new(name.to_string(), error, || held(&brick))
        };
        self.look(name, &array)?;
        let reader = &Engine::get().reader;
        let mut ended = false;
        let read = match goes_on {
            None => reader.read_into(request, memory),
            Some(goes_on) => reader.read_into_while(request, memory, &mut || {
                ended |= !goes_on();
                !ended
            }),
        };
        if ended { Err(ReadError::Interrupted) } else { read.map_err(failed) }
    }

    fn is_to_be_looked_at(&self) -> bool {
        self.looked.lock().is_none_or(|looked| looked.elapsed() >= LOOK_AGAIN)
    }

    /// Looks from time to time whether the source is still what was opened: samples in the cache do not tell.
    fn look(&self, name: &dyn fmt::Display, array: &Arc<dyn format::Array>) -> Result<(), ReadError> {
        let mut looked = self.looked.lock();
        if looked.is_some_and(|looked| looked.elapsed() < LOOK_AGAIN) {
            return Ok(());
        }
        // other readers go on meanwhile
        *looked = Some(Instant::now());
        drop(looked);
        let outcome = self.look_now(name, array);
        if outcome.is_err() {
            *self.looked.lock() = None;
        }
        outcome
    }

    fn look_now(&self, name: &dyn fmt::Display, array: &Arc<dyn format::Array>) -> Result<(), ReadError> {
        match array.source().check_unchanged() {
            Ok(()) if !self.dataset.is_changed() => Ok(()),
            Err(SourceError::Io { message, kind, .. }) => Err(ReadError::Io { array: name.to_string(), message, kind }),
            _ => Err(ReadError::Changed(name.to_string())),
        }
    }
}

/// Dataset, layer and level.
impl fmt::Display for Array {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Shared { name, folders, .. } = &*self.dataset;
        write!(f, "{name}, layer {}, lod {}", folders[self.layer], self.lod)
    }
}

impl fmt::Debug for Array {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Array({self}, {:?}, {})", self.facts.shape, self.facts.dtype)
    }
}
