//! An array whose samples are a hash of their index; the bytes of its bricks are computed when they are read.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use crate::format::{Array, Census, FormatError};
use crate::source::{Blocking, Source, SourceError};
use crate::volume::{
    ArrayInfo, Brick, BrickGrid, Coded, Dims, Dtype, Element, Layout, MAX_AXES, Plain, Region, StoredLength,
};

use super::super::bytes::Bytes;

/// Types of samples, by their size.
const DTYPES: [Dtype; 4] = [Dtype::UInt8, Dtype::Int16, Dtype::Float32, Dtype::UInt64];

/// An array that exists only as arithmetic.
pub struct Imagined {
    info: ArrayInfo,
    /// The origin of the brick grid.
    origin: [i64; MAX_AXES],
    /// What the kind of each brick is computed from.
    kinds: u8,
    /// Samples that a brick holds beyond those that it owns, on each side.
    margin: u64,
    /// The axes in a brick's memory are in reverse order.
    reversed: bool,
    /// Bytes between rows in a brick's memory.
    gap: u64,
    /// Every second 256 bytes cannot be read without waiting.
    slow: bool,
    huge: bool,
    /// The bytes of the bricks that were read: many reads are of a few samples.
    computed: Mutex<HashMap<u64, Arc<[u8]>>>,
}

impl Imagined {
    /// Creates an array of up to five axes, each of up to 13 samples.
    pub fn small(input: &mut Bytes<'_>) -> Option<Self> {
        let axes = 1 + input.below(5);
        let shape = Dims::from_fn(axes, |_| 1 + input.below(13) as u64);
        let step = Dims::from_fn(axes, |_| 1 + input.below(7) as u64);
        let origin = std::array::from_fn(|axis| if axis < axes { input.below(11) as i64 - 5 } else { 0 });
        let flags = input.u8();
        Some(Self {
            info: ArrayInfo::new(DTYPES[usize::from(flags & 3)], BrickGrid::new(shape, origin, step), step),
            origin,
            kinds: input.u8(),
            margin: u64::from(flags >> 2 & 1),
            reversed: flags & 8 != 0,
            gap: u64::from(flags >> 4 & 3),
            slow: flags & 64 != 0,
            huge: false,
            computed: Mutex::default(),
        })
    }

    /// Creates an array of any shape, whose bricks are constants; `None` if it has too many bytes.
    pub fn huge(input: &mut Bytes<'_>) -> Option<Self> {
        let axes = 1 + input.below(MAX_AXES);
        // any number of bits, so that several long axes fit
        let mut long = || (input.u64() >> (1 + input.below(63))).max(1);
        let shape = Dims::from_fn(axes, |_| long());
        let step = Dims::from_fn(axes, |_| long());
        let dtype = DTYPES[input.below(4)];
        let bytes = shape.product()?.checked_mul(dtype.size() as u64)?;
        if bytes > i64::MAX as u64 {
            return None;
        }
        // the first brick begins before the array, or after it by as much as a margin
        let mut origin = [0; MAX_AXES];
        for axis in 0..axes {
            let at = input.u64() as i64;
            let (low, high) = (-(step[axis].min(i64::MAX as u64) as i64) + 1, (shape[axis] / 2) as i64);
            origin[axis] = at.clamp(low, high.max(low));
        }
        let info = ArrayInfo::new(dtype, BrickGrid::new(shape, origin, step), step);
        info.grid.count().product()?;
        let computed = Mutex::default();
        Some(Self { info, origin, kinds: 0, margin: 0, reversed: false, gap: 0, slow: false, huge: true, computed })
    }

    /// Returns the array's shape.
    pub fn shape(&self) -> Dims {
        self.info.shape()
    }

    /// Returns the bytes of the sample at an index.
    pub fn sample(&self, at: &Dims) -> Vec<u8> {
        let brick = Dims::from_fn(at.len(), |axis| self.owner(axis, at[axis]));
        let number = self.info.grid.count().linear_of(&brick);
        let value = if self.huge || self.kind(number) == 0 {
            number.wrapping_mul(0x9e37_79b9_7f4a_7c15)
        } else {
            (self.shape().linear_of(at) + 1).wrapping_mul(0xd6e8_feb8_6659_fd93)
        };
        value.to_be_bytes()[..self.info.dtype.size()].to_vec()
    }

    /// Returns the brick that owns a sample, by the definition of the grid.
    fn owner(&self, axis: usize, x: u64) -> u64 {
        let (step, count) = (self.info.grid.step()[axis], self.info.grid.count()[axis]);
        let brick = (i128::from(x) - i128::from(self.origin[axis])).div_euclid(step.into());
        brick.clamp(0, i128::from(count) - 1) as u64
    }

    /// Returns the kind of a brick: constant, plain, or coded in two ways.
    fn kind(&self, number: u64) -> u64 {
        match self.kinds {
            all @ 0..4 => all.into(),
            seed => (number + u64::from(seed)).wrapping_mul(0x9e37_79b9) >> 16 & 3,
        }
    }

    /// Returns the layout of a brick, and the bytes that it takes.
    fn layout(&self, at: &Dims) -> (Layout, u64) {
        let (owned, shape) = (self.info.grid.region(at), self.shape());
        let start = Dims::from_fn(shape.len(), |axis| owned.start[axis].saturating_sub(self.margin));
        let extent = Dims::from_fn(shape.len(), |axis| (owned.end(axis) + self.margin).min(shape[axis]) - start[axis]);
        let size = self.info.dtype.size() as u64;
        let mut strides = Dims::filled(shape.len(), 0);
        let mut stride = size;
        let order: Vec<usize> =
            if self.reversed { (0..shape.len()).collect() } else { (0..shape.len()).rev().collect() };
        for (n, axis) in order.into_iter().enumerate() {
            strides[axis] = stride;
            stride = stride * extent[axis] + if n == 0 { self.gap * size } else { 0 };
        }
        let first = self.gap * 4;
        (Layout { held: Region { start, shape: extent }, first, strides }, first + stride)
    }

    /// Returns the bytes of a brick.
    fn bytes(&self, number: u64) -> Vec<u8> {
        let (layout, length) = self.layout(&self.info.grid.count().index_of(number));
        let mut bytes = vec![0xee; length as usize];
        for n in 0..layout.held.samples() {
            let within = layout.held.shape.index_of(n);
            let at = Dims::from_fn(within.len(), |axis| layout.held.start[axis] + within[axis]);
            let to = layout.offset_of(&at) as usize;
            // what lies in the margin belongs to another brick, and may be of another kind there
            let value = (self.shape().linear_of(&at) + 1).wrapping_mul(0xd6e8_feb8_6659_fd93);
            let size = self.info.dtype.size();
            bytes[to..to + size].copy_from_slice(&value.to_be_bytes()[..size]);
        }
        bytes
    }
}

impl Array for Imagined {
    fn info(&self) -> &ArrayInfo {
        &self.info
    }

    fn source(&self) -> &dyn Source {
        self
    }

    fn brick(&self, at: &Dims, _: Blocking) -> Result<Brick, FormatError> {
        let count = self.info.grid.count();
        assert!(at.len() == count.len() && at.iter().zip(count.iter()).all(|(at, count)| at < count), "no such brick");
        let number = count.linear_of(at);
        let kind = if self.huge { 0 } else { self.kind(number) };
        if kind == 0 {
            let value = number.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes();
            return Ok(Brick::Constant(Element::new(&value[..self.info.dtype.size()])));
        }
        let (layout, length) = self.layout(at);
        let object = number.to_string().into();
        Ok(match kind {
            1 => Brick::Plain(Plain { object, offset: 0, layout }),
            kind => Brick::Coded(Coded {
                object,
                offset: 0,
                length: if kind == 2 { StoredLength::Bytes(length) } else { StoredLength::Rest { most: length } },
                decoded: length as usize,
                scratch: 0,
                layout,
                codec: number,
            }),
        })
    }

    fn decode(&self, coded: &Coded, stored: &[u8], out: &mut [u8]) -> Result<(), FormatError> {
        assert_eq!(stored.len(), coded.decoded);
        out.copy_from_slice(stored);
        Ok(())
    }

    fn census(&self) -> Result<Option<Census>, FormatError> {
        Ok(None)
    }
}

impl Source for Imagined {
    fn len(&self, object: &str) -> Result<Option<u64>, SourceError> {
        let number = object.parse().expect("the name of a brick");
        Ok(Some(self.layout(&self.info.grid.count().index_of(number)).1))
    }

    fn read_at(&self, object: &str, offset: u64, out: &mut [u8], blocking: Blocking) -> Result<bool, SourceError> {
        if blocking == Blocking::No && self.slow && (offset / 256) % 2 == 1 {
            return Err(SourceError::WouldBlock);
        }
        let number = object.parse().expect("the name of a brick");
        let computed = self.computed.lock().expect("nobody panics").get(&number).cloned();
        let bytes = computed.unwrap_or_else(|| {
            let bytes: Arc<[u8]> = self.bytes(number).into();
            self.computed.lock().expect("nobody panics").insert(number, Arc::clone(&bytes));
            bytes
        });
        out.copy_from_slice(&bytes[offset as usize..offset as usize + out.len()]);
        Ok(true)
    }

    fn check_unchanged(&self) -> Result<(), SourceError> {
        Ok(())
    }
}
