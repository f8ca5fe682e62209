//! The samples of one brick, whichever kind it is, copied to where they belong.

use std::sync::Arc;

use super::access::Access;
use super::gather::Loops;
use super::plain::{PlainPieces, absent, read_piece};
use super::whole::{Way, in_order, wants_order};
use crate::cache::DecodedBrick;
use crate::format::{Array, FormatError};
use crate::source::Wait;
use crate::volume::{ArrayInfo, Coded, Dims, Element, Layout, Region, StoredLength};

/// Where the samples of a read go.
pub struct Target<'a> {
    /// The bytes of all samples of the read.
    pub bytes: &'a mut [u8],
    /// Where each of them stands.
    pub frame: Frame,
}

/// Where the samples of a read stand in its bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame {
    /// Bytes between neighbours along each axis.
    strides: Dims,
    /// Where the read's first sample would stand if the array's first stood at 0.
    origin: u64,
}

impl Frame {
    /// A range of a C-ordered array, from sample number `first` on.
    pub fn of_range(info: &ArrayInfo, first: u64) -> Self {
        let size = info.dtype.size() as u64;
        Self { strides: info.shape().strides(size), origin: first * size }
    }

    /// A box of an array, C-ordered in itself.
    pub fn of_box(info: &ArrayInfo, region: &Region) -> Self {
        let strides = region.shape.strides(info.dtype.size() as u64);
        Self { strides, origin: dot(&region.start, &strides) }
    }

    /// Byte offset of the sample at `index`, which the read has.
    fn offset_of(&self, index: &Dims) -> usize {
        (dot(index, &self.strides) - self.origin) as usize
    }
}

fn dot(index: &Dims, strides: &Dims) -> u64 {
    index.iter().zip(strides.iter()).map(|(at, stride)| at * stride).sum()
}

/// Part of a brick that a read asks for.
#[derive(Clone, Copy, Debug)]
pub struct Piece {
    /// The brick's place in the grid.
    pub brick: Dims,
    /// The samples, all owned by the brick.
    pub region: Region,
}

/// How a piece was had.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Had {
    /// It is a constant.
    Constant,
    /// From a decoded brick.
    Decoded,
    /// Straight from the source: valid only if the source is unchanged.
    Source,
    /// Not yet: it is in a plain brick, of which several are copied together.
    Later,
}

impl Piece {
    /// Byte strides of `target`, and the place of the piece in it.
    pub(super) fn place(&self, target: &Target<'_>) -> (Dims, usize) {
        (target.frame.strides, target.frame.offset_of(&self.region.start))
    }

    fn loops(&self, array: &dyn Array, layout: &Layout, to: &Dims) -> Result<Loops, FormatError> {
        if !layout.held.contains(&self.region) {
            return Err(FormatError::Damaged("the brick does not hold all of its samples".into()));
        }
        Ok(Loops::new(&self.region.shape, &layout.strides, to, array.info().dtype.size()))
    }

    /// Copies the piece to `target` if that takes no waiting; that of a plain brick is added to `plains` for now. `None`: it is in a
    /// brick that is had as a whole.
    ///
    /// # Errors
    /// [`SourceError::WouldBlock`](crate::source::SourceError::WouldBlock) if it does, and those of the format.
    pub fn try_copy(
        &self,
        access: &Access,
        target: &mut Target<'_>,
        plains: &mut PlainPieces,
    ) -> Result<Option<Had>, FormatError> {
        let array = &*access.array;
        match Way::of(array.brick(&self.brick, Wait::No)?, access) {
            Way::Whole(_) => Ok(None),
            Way::Constant(value) => self.fill(array, &value, target).map(Some),
            Way::Parts(plain) => {
                let (to, at) = self.place(target);
                plains.add(array, *self, plain, &to, at)?;
                Ok(Some(Had::Later))
            }
        }
    }

    /// All that takes time and needs no target: decodes a coded brick, reads the piece of a plain one.
    ///
    /// # Errors
    /// Those of the format and the source.
    pub fn load(&self, access: &Access) -> Result<Loaded, FormatError> {
        let array = &*access.array;
        let info = array.info();
        match Way::of(array.brick(&self.brick, Wait::Yes)?, access) {
            Way::Constant(value) => Ok(Loaded::Constant(value)),
            Way::Whole(whole) => Ok(Loaded::Brick(access.decoded(&self.brick, &whole, &self.region)?, Had::Decoded)),
            Way::Parts(plain) => {
                let strides = self.region.shape.strides(info.dtype.size() as u64);
                let layout = Layout { held: self.region, first: 0, strides };
                let mut bytes = access.reader.buffers().take(self.region.samples() as usize * info.dtype.size());
                read_piece(array, self, &plain, &layout.strides, &mut bytes)?;
                Ok(Loaded::Brick(Arc::new(DecodedBrick { bytes: bytes.into(), layout }), Had::Source))
            }
        }
    }

    /// Copies what [`Piece::load`] gave to `target`.
    ///
    /// # Errors
    /// [`FormatError::Damaged`] if the brick does not hold the samples.
    pub fn copy(&self, array: &dyn Array, loaded: &Loaded, target: &mut Target<'_>) -> Result<Had, FormatError> {
        match loaded {
            Loaded::Constant(value) => self.fill(array, value, target),
            Loaded::Brick(brick, had) => self.copy_decoded(array, brick, target).map(|_| *had),
        }
    }

    fn fill(&self, array: &dyn Array, value: &Element, target: &mut Target<'_>) -> Result<Had, FormatError> {
        let (to, at) = self.place(target);
        let loops = Loops::new(&self.region.shape, &to, &to, array.info().dtype.size());
        loops.fill(value, &mut target.bytes[at..]);
        Ok(Had::Constant)
    }

    fn copy_decoded(
        &self,
        array: &dyn Array,
        brick: &DecodedBrick,
        target: &mut Target<'_>,
    ) -> Result<Had, FormatError> {
        let (to, at) = self.place(target);
        let loops = self.loops(array, &brick.layout, &to)?;
        let from = brick.layout.offset_of(&self.region.start) as usize;
        loops.copy(&brick.bytes[from..], &mut target.bytes[at..]);
        Ok(Had::Decoded)
    }
}

/// What [`Piece::load`] gives.
pub enum Loaded {
    /// Every sample has this value.
    Constant(Element),
    /// A brick in memory, or as much of it as is asked for, and how it was had.
    Brick(Arc<DecodedBrick>, Had),
}

/// Reads the stored bytes of a coded brick and decodes them.
///
/// # Errors
/// Those of the format and the source.
pub fn decode(access: &Access, coded: &Coded) -> Result<DecodedBrick, FormatError> {
    let (reader, array) = (&*access.reader, &*access.array);
    let length = stored_length(array, coded)?;
    let mut stored = reader.buffers().take_scratch(length);
    if !array.source().read_at(&coded.object, coded.offset, &mut stored, Wait::Yes)? {
        return Err(absent());
    }
    array.source().unchanged()?;
    let padded = if coded.padding > 0 { length.saturating_add(coded.padding) } else { 0 };
    let needed = stored.capacity().saturating_add(padded).saturating_add(coded.decoded).saturating_add(coded.scratch);
    let (layout, size) = (coded.layout, array.info().dtype.size());
    let order = wants_order(access, &layout);
    let brick = reader.gate().pass(needed.saturating_add(if order { coded.decoded } else { 0 }), || {
        let mut bytes = reader.buffers().take(coded.decoded);
        if padded == 0 {
            array.decode(coded, &stored, &mut bytes)?;
        } else {
            // padded only now: what waits at the gate takes no more memory than what it has read
            let mut with_padding = reader.buffers().take_scratch(padded);
            with_padding[..length].copy_from_slice(&stored);
            with_padding[length..].fill(0);
            array.decode(coded, &with_padding, &mut bytes)?;
        }
        if layout.end(size).is_none_or(|end| end > bytes.len() as u64) {
            return Err(FormatError::Damaged("the brick is smaller than its layout".into()));
        }
        let brick = DecodedBrick { bytes: bytes.into(), layout };
        Ok(if order { in_order(&brick, size, access) } else { brick })
    })?;
    reader.counters().bricks_decoded.add(1);
    reader.counters().bytes_decoded.add(coded.decoded as u64);
    Ok(brick)
}

/// How many bytes of a coded brick there are to read.
fn stored_length(array: &dyn Array, coded: &Coded) -> Result<usize, FormatError> {
    let claimed = |length: u64| FormatError::Damaged(format!("the brick claims {length} bytes"));
    let length = match coded.length {
        StoredLength::Bytes(length) => length,
        StoredLength::Rest { most } => {
            let length = array.source().len(&coded.object)?.ok_or_else(absent)?.saturating_sub(coded.offset);
            if length > most {
                return Err(claimed(length));
            }
            length
        }
    };
    usize::try_from(length).map_err(|_| claimed(length))
}
