//! One array: its bricks are the chunks, or slabs of what is stored in one piece.

use std::sync::Arc;

use super::chunks::Chunks;
use super::data_type::{How, Sample};
use super::file::File;
use super::filters::Filters;
use super::virtual_array::VirtualDataset;
use crate::codec::{DecodeError, Pipeline};
use crate::format::{Array, Census, FormatError, StoredBrick};
use crate::memory::try_zeroed;
use crate::source::{Blocking, Source};
use crate::volume::StoredLength;
use crate::volume::{ArrayInfo, Brick, BrickCounts, BrickSet, Coded, Dims, Element, Layout, NativeJson, Plain, Region};

/// Bricks are looked up for a description if the grid has at most this many.
const MAX_DESCRIBED: u64 = 1 << 19;

/// Where the samples are.
pub(super) enum Storage {
    /// At one place in the file; `None` if nothing was ever written.
    Whole(Option<u64>),
    Chunked(Box<Chunks>),
    /// In other datasets.
    Virtual(Box<VirtualDataset>),
}

pub(super) struct Hdf5Array {
    pub info: ArrayInfo,
    pub file: Arc<File>,
    pub storage: Storage,
    pub sample: Sample,
    pub filters: Filters,
    pub fill: Element,
    /// Undoes all filters; chunks that were stored without some of them have one of their own.
    pub pipeline: Pipeline,
    /// Whether chunks that stick out over the edge are stored without filters.
    pub whole_edges: bool,
}

impl Hdf5Array {
    fn decoded(&self) -> u64 {
        self.info.brick_shape.product().unwrap_or(u64::MAX).saturating_mul(self.info.dtype.size() as u64)
    }

    /// Returns a brick whose stored bytes have to be decoded.
    fn coded(&self, offset: u64, length: u64, mask: u32, layout: Layout) -> Result<Brick, FormatError> {
        let decoded = usize::try_from(self.decoded()).map_err(|_| "a chunk is too large")?;
        let converted = if self.sample.how == How::Converted { decoded } else { 0 };
        let scratch = self.pipeline.scratch().saturating_add(converted);
        let (object, length) = (self.file.object.clone(), StoredLength::Bytes(length));
        Ok(Brick::Coded(Coded { object, offset, length, decoded, scratch, layout, codec: mask.into() }))
    }

    fn slab(&self, start: Option<u64>, at: &Dims) -> Result<Brick, FormatError> {
        let Some(start) = start else { return Ok(Brick::Constant(self.fill)) };
        let (region, shape, size) = (self.info.grid.region(at), self.info.shape(), self.info.dtype.size() as u64);
        let before = shape.strides(1).iter().zip(region.start.iter()).map(|(stride, at)| stride * at).sum::<u64>();
        let offset = start + before * self.sample.stored as u64;
        if self.sample.how == How::Nothing {
            let layout = Layout { held: region, first: 0, strides: shape.strides(size) };
            return Ok(Brick::Plain(Plain { object: self.file.object.clone(), offset, layout }));
        }
        // the last ones are shorter than others
        let layout = Layout { held: region, first: 0, strides: region.shape.strides(size) };
        let bytes = region.samples() * self.sample.stored as u64;
        let Brick::Coded(mut coded) = self.coded(offset, bytes, 0, layout)? else { return Err("no brick".into()) };
        coded.decoded = (region.samples() * size) as usize;
        Ok(Brick::Coded(coded))
    }

    fn chunk(&self, chunks: &Chunks, at: &Dims, blocking: Blocking) -> Result<Brick, FormatError> {
        let rank = chunks.chunk.len();
        let found = chunks.find(&at[..rank], blocking).map_err(|error| error.of(&format!("chunk {at:?}")))?;
        let Some(chunk) = found else { return Ok(Brick::Constant(self.fill)) };
        let is_edge = || {
            (0..rank).any(|axis| {
                at[axis] + 1 == chunks.count[axis] && {
                    let extent = self.info.shape()[axis];
                    !extent.is_multiple_of(chunks.chunk[axis])
                }
            })
        };
        let mask = if self.whole_edges && is_edge() { u32::MAX } else { chunk.mask };
        let brick = self.info.brick_shape;
        let start = Dims::from_fn(at.len(), |axis| at[axis] * brick[axis]);
        let layout = Layout::c_order(start, brick, self.info.shape(), self.info.dtype.size());
        if let Some(why) = self.filters.unsupported(mask) {
            return Err(FormatError::Unsupported(why));
        }
        let damaged = |why: String| FormatError::Damaged(format!("chunk {at:?} at address {}: {why}", chunk.address));
        let is_raw = self.filters.are_left_out(mask);
        // what is read is not more than a chunk takes: others read no more, either
        let bytes = if is_raw { chunks.bytes } else { chunk.bytes };
        if is_raw && chunk.bytes < bytes || bytes == 0 || !is_raw && bytes > self.filters.longest() {
            return Err(damaged(format!("it has {} bytes, which is not what samples can take", chunk.bytes)));
        }
        let offset = self.file.place(chunk.address, bytes, "chunk")?;
        if is_raw && self.sample.how == How::Nothing {
            return Ok(Brick::Plain(Plain { object: self.file.object.clone(), offset, layout }));
        }
        self.coded(offset, bytes, mask, layout)
    }

    /// Returns the kind of bricks that have bytes.
    fn is_coded(&self) -> bool {
        if let Storage::Virtual(dataset) = &self.storage {
            return dataset.is_coded();
        }
        !self.pipeline.is_plain() || self.sample.how != How::Nothing
    }
}

impl Array for Hdf5Array {
    fn info(&self) -> &ArrayInfo {
        &self.info
    }

    fn source(&self) -> &dyn Source {
        match &self.storage {
            Storage::Virtual(dataset) => &*dataset.source,
            _ => &*self.file.source,
        }
    }

    fn brick(&self, at: &Dims, blocking: Blocking) -> Result<Brick, FormatError> {
        let count = self.info.grid.count();
        if at.len() != count.len() || at.iter().zip(count.iter()).any(|(at, count)| at >= count) {
            return Err(FormatError::Damaged(format!("there is no chunk {at:?}")));
        }
        match &self.storage {
            Storage::Whole(start) => self.slab(*start, at),
            Storage::Chunked(chunks) => self.chunk(chunks, at, blocking),
            Storage::Virtual(dataset) => {
                let found = dataset.brick(&self.info.grid.region(at), blocking)?;
                Ok(found.unwrap_or(Brick::Constant(self.fill)))
            }
        }
    }

    fn unwritten(&self) -> Element {
        self.fill
    }

    fn decodes_fast(&self) -> bool {
        self.pipeline.is_fast()
    }

    fn decode(&self, coded: &Coded, stored: &[u8], out: &mut [u8]) -> Result<(), FormatError> {
        if let Storage::Virtual(dataset) = &self.storage {
            return dataset.decode(coded, stored, out);
        }
        let faulty = |error: DecodeError| match error {
            DecodeError::OutOfMemory(error) => error.into(),
            DecodeError::Damaged(why) => {
                let start = coded.layout.held.start;
                FormatError::Damaged(format!("chunk of sample {start:?} at byte {}: {why}", coded.offset))
            }
        };
        let mask = coded.codec as u32;
        let own = match (&self.storage, mask) {
            (Storage::Whole(_), _) => Some(Filters::default().pipeline(0, stored.len() as u64, self.sample.how)),
            (_, 0) => None,
            _ => {
                let bytes = self.decoded() / self.info.dtype.size() as u64 * self.sample.stored as u64;
                Some(self.filters.pipeline(mask, bytes, self.sample.how))
            }
        };
        let own = own.transpose().map_err(FormatError::Unsupported)?;
        let pipeline = own.as_ref().unwrap_or(&self.pipeline);
        if self.sample.how != How::Converted {
            return pipeline.decode(stored, out).map_err(faulty);
        }
        let mut elements = try_zeroed(out.len() / self.info.dtype.size() * self.sample.stored)?;
        pipeline.decode(stored, &mut elements).map_err(faulty)?;
        self.sample.convert(&elements, out);
        Ok(())
    }

    fn decoded_shape(&self, _at: &Dims) -> Option<Dims> {
        self.is_coded().then_some(self.info.brick_shape)
    }

    fn stored_brick(&self, at: &Dims) -> Result<Option<StoredBrick>, FormatError> {
        if !matches!(self.storage, Storage::Whole(_)) && self.info.grid.total() > MAX_DESCRIBED {
            return Ok(None);
        }
        let samples = self.info.grid.region(at).samples();
        Ok(Some(match self.brick(at, Blocking::Yes) {
            Ok(Brick::Plain(_)) => {
                StoredBrick { bytes: Some(samples * self.info.dtype.size() as u64), is_coded: false }
            }
            Ok(Brick::Coded(coded)) => StoredBrick { bytes: Some(coded.length.most()), is_coded: true },
            Ok(Brick::Constant(_)) | Err(FormatError::Damaged(_)) => StoredBrick::EMPTY,
            Err(error) => return Err(error),
        }))
    }

    fn visit_stored(&self, visit: &mut dyn FnMut(BrickSet) -> bool) -> Result<(), FormatError> {
        let (total, count) = (self.info.grid.total(), self.info.grid.count());
        let chunks = match &self.storage {
            Storage::Whole(None) => return Ok(()),
            Storage::Whole(Some(_)) => {
                visit(BrickSet::Run(0..total));
                return Ok(());
            }
            Storage::Virtual(dataset) => {
                dataset.visit(&self.info.grid, visit);
                return Ok(());
            }
            Storage::Chunked(chunks) => chunks,
        };
        let visited = chunks.visit(&mut |at| {
            // chunks outside of the array stay when it shrinks
            let is_inside = at.iter().zip(count.iter()).all(|(at, count)| at < count);
            let start = Dims::from_fn(count.len(), |axis| at.get(axis).copied().unwrap_or(0));
            !is_inside || visit(BrickSet::Box(Region { start, shape: Dims::filled(count.len(), 1) }))
        })?;
        if visited.is_none() {
            visit(BrickSet::Run(0..total));
        }
        Ok(())
    }

    fn census(&self) -> Result<Option<Census>, FormatError> {
        let total = self.info.grid.total();
        let is_written = match &self.storage {
            Storage::Whole(start) => start.is_some(),
            Storage::Chunked(chunks) if chunks.address.is_none() => false,
            Storage::Chunked(_) | Storage::Virtual(_) => return Ok(None),
        };
        let counts = if is_written { (total, 0) } else { (0, total) };
        let counts = BrickCounts { total, stored: counts.0, missing: counts.1, ..BrickCounts::default() };
        Ok(Some(Census { counts, codec: self.info.codec.unwrap_or("raw"), native: NativeJson::new() }))
    }
}
