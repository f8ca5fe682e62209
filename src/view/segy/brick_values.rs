//! Reads bricks of bytes without a reader: those of the channels that say which traces a file has.

use crate::format::{Array, FormatError};
use crate::memory::{self, try_zeroed};
use crate::source::Blocking;
use crate::volume::{Brick, Coded, Dims, Layout, Region, StoredLength};

/// The most bytes that a brick may have.
const MAX_BRICK: u64 = 64 << 20;

/// The values of one brick.
pub(crate) struct BrickValues {
    /// The samples that the brick owns.
    pub owned: Region,
    bytes: Bytes,
}

enum Bytes {
    Constant(u8),
    Held(Vec<u8>, Box<Layout>),
}

impl BrickValues {
    /// Reads the brick at a grid position of an array of uint8. May wait.
    pub(crate) fn read(array: &dyn Array, at: &Dims) -> Result<Self, FormatError> {
        let owned = array.info().grid.region(at);
        let bytes = match array.brick(at, Blocking::Yes)? {
            Brick::Constant(value) => Bytes::Constant(value.bytes().first().copied().unwrap_or(0)),
            Brick::Plain(plain) => {
                let end = plain.layout.end(1).filter(|end| *end <= MAX_BRICK).ok_or_else(too_large)?;
                Bytes::Held(stored(array, (&plain.object, plain.offset), end)?, Box::new(plain.layout))
            }
            Brick::Coded(coded) => Bytes::Held(decoded(array, &coded)?, Box::new(coded.layout)),
        };
        if let Bytes::Held(held, layout) = &bytes {
            let is_whole = layout.end(1).is_some_and(|end| end <= held.len() as u64) && layout.held.contains(&owned);
            if !is_whole {
                return Err(FormatError::Damaged("the brick is smaller than its layout".into()));
            }
        }
        array.source().check_unchanged()?;
        Ok(Self { owned, bytes })
    }

    /// Returns the values of samples side by side along `axis`, from one that the brick owns.
    pub(crate) fn row(&self, start: &Dims, axis: usize) -> Row<'_> {
        match &self.bytes {
            Bytes::Constant(value) => Row { bytes: std::slice::from_ref(value), stride: 0 },
            Bytes::Held(held, layout) => {
                let bytes = held.get(layout.offset_of(start) as usize..).unwrap_or_default();
                Row { bytes, stride: layout.strides[axis] as usize }
            }
        }
    }

    /// Returns the value of all samples, if it is one.
    pub(crate) fn constant(&self) -> Option<u8> {
        match self.bytes {
            Bytes::Constant(value) => Some(value),
            Bytes::Held(..) => None,
        }
    }
}

/// Values side by side along an axis.
#[derive(Clone, Copy)]
pub(crate) struct Row<'a> {
    bytes: &'a [u8],
    stride: usize,
}

impl Row<'_> {
    /// Returns the value of all, if the brick has but one.
    pub(crate) fn constant(&self) -> Option<u8> {
        self.bytes.first().copied().filter(|_| self.stride == 0)
    }

    /// Returns the value that is `at` steps from the first.
    pub(crate) fn value(&self, at: u64) -> u8 {
        self.bytes.get(at as usize * self.stride).copied().unwrap_or(0)
    }
}

fn too_large() -> FormatError {
    FormatError::Unsupported(format!("its bricks of traces have more than {MAX_BRICK} bytes"))
}

fn decoded(array: &dyn Array, coded: &Coded) -> Result<Vec<u8>, FormatError> {
    let most = match coded.length {
        StoredLength::Bytes(length) => length,
        StoredLength::Rest { most } => {
            let object = array.source().len(&coded.object)?.unwrap_or(0);
            most.min(object.saturating_sub(coded.offset))
        }
    };
    let needed = most.saturating_add(coded.decoded as u64).saturating_add(coded.scratch as u64);
    if needed > MAX_BRICK {
        return Err(too_large());
    }
    let _claim = memory::claim(needed as usize)?;
    let stored = stored(array, (&coded.object, coded.offset), most)?;
    let mut out = try_zeroed(coded.decoded)?;
    array.decode(coded, &stored, &mut out)?;
    Ok(out)
}

/// Reads bytes of an object.
fn stored(array: &dyn Array, (object, at): (&str, u64), length: u64) -> Result<Vec<u8>, FormatError> {
    let mut bytes = try_zeroed(length as usize)?;
    if !array.source().read_at(object, at, &mut bytes, Blocking::Yes)? {
        return Err(FormatError::Damaged(format!("{object} is not there")));
    }
    Ok(bytes)
}
