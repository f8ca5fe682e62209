//! The samples of one brick, whichever kind it is, copied to where they belong.

use std::cell::RefCell;
use std::sync::Arc;

use super::access::Access;
use super::gather::Loops;
use super::whole::{WASTE, Way, in_order, wants_order};
use crate::cache::DecodedBrick;
use crate::format::{Array, FormatError};
use crate::source::{SourceError, Wait};
use crate::volume::{ArrayInfo, Coded, Dims, Element, Layout, Plain, Region, StoredLength};

/// A gap between two pieces of a plain brick is read along with them if it is no longer than this: a second call costs more.
const GAP: usize = 4 << 10;
/// At most so many bytes of a plain brick are read at once.
const AT_ONCE: usize = 256 << 10;

thread_local! {
    static SCRATCH: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

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
}

impl Piece {
    /// Byte strides of `target`, and the place of the piece in it.
    fn place(&self, target: &Target<'_>) -> (Dims, usize) {
        (target.frame.strides, target.frame.offset_of(&self.region.start))
    }

    fn loops(&self, array: &dyn Array, layout: &Layout, to: &Dims) -> Result<Loops, FormatError> {
        if !layout.held.contains(&self.region) {
            return Err(FormatError::Damaged("the brick does not hold all of its samples".into()));
        }
        Ok(Loops::new(&self.region.shape, &layout.strides, to, array.info().dtype.size()))
    }

    /// Copies the piece to `target` if that takes no waiting.
    ///
    /// # Errors
    /// [`SourceError::WouldBlock`] if it does, and those of the format.
    pub fn try_copy(&self, access: &Access, target: &mut Target<'_>) -> Result<Had, FormatError> {
        let array = &*access.array;
        match Way::of(array.brick(&self.brick, Wait::No)?, access) {
            Way::Whole(_) => match access.held(&self.brick, &self.region) {
                Some(brick) => self.copy_decoded(array, &brick, target),
                None => Err(SourceError::WouldBlock.into()),
            },
            Way::Constant(value) => self.fill(array, &value, target),
            Way::Parts(plain) => {
                let (to, at) = self.place(target);
                self.read_plain(array, &plain, &to, &mut target.bytes[at..], Wait::No)?;
                Ok(Had::Source)
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
                self.read_plain(array, &plain, &layout.strides, &mut bytes, Wait::Yes)?;
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

    /// Reads only what is asked for, in as few calls as make sense, straight to `out` where the bytes are contiguous. `out`
    /// begins at the piece's first sample and has neighbours `to` bytes apart.
    fn read_plain(
        &self,
        array: &dyn Array,
        plain: &Plain,
        to: &Dims,
        out: &mut [u8],
        wait: Wait,
    ) -> Result<(), FormatError> {
        let loops = self.loops(array, &plain.layout, to)?;
        let from = plain.offset + plain.layout.offset_of(&self.region.start);
        let outer = outer_loops(&loops);
        let inner = loops.inner(outer);
        let contiguous = inner.steps().iter().all(|s| s.from == s.to) && inner.span() == inner.useful();
        let span = inner.span();
        // much reading for little is nothing for the threads that talk to the kernel
        if wait == Wait::No && bytes_read(&loops) > AT_ONCE.max(WASTE * loops.useful()) {
            return Err(SourceError::WouldBlock.into());
        }
        let source = array.source();
        SCRATCH.with_borrow_mut(|scratch| {
            if !contiguous && scratch.len() < span {
                scratch.resize(span, 0);
            }
            loops.each(outer, |piece_from, piece_to| {
                let out = &mut out[piece_to..];
                let bytes = if contiguous { &mut out[..span] } else { &mut scratch[..span] };
                if !source.read_at(&plain.object, from + piece_from as u64, bytes, wait)? {
                    return Err(absent());
                }
                if !contiguous {
                    inner.copy(&scratch[..span], out);
                }
                Ok(())
            })
        })
    }
}

/// What [`Piece::load`] gives.
pub enum Loaded {
    /// Every sample has this value.
    Constant(Element),
    /// A brick in memory, or as much of it as is asked for, and how it was had.
    Brick(Arc<DecodedBrick>, Had),
}

/// The object of a brick is gone.
pub fn absent() -> FormatError {
    FormatError::Damaged("the object that holds the brick is not there".into())
}

/// How many of the outer loops of a plain brick get a read call for each of their positions; the rest is read at once.
fn outer_loops(loops: &Loops) -> usize {
    let steps = loops.steps();
    let mut outer = steps.len();
    while let Some(next) = outer.checked_sub(1) {
        let within = loops.inner(outer).span();
        let gap = steps[next].from.saturating_sub(within);
        if gap > GAP || loops.inner(next).span() > AT_ONCE {
            break;
        }
        outer = next;
    }
    outer
}

/// Bytes that are read of a plain brick for a box of it.
pub fn bytes_read(loops: &Loops) -> usize {
    let outer = outer_loops(loops);
    loops.steps()[..outer].iter().map(|step| step.count).product::<usize>() * loops.inner(outer).span()
}

/// Reads the stored bytes of a coded brick and decodes them.
///
/// # Errors
/// Those of the format and the source.
pub fn decode(access: &Access, coded: &Coded) -> Result<DecodedBrick, FormatError> {
    let (reader, array) = (&*access.reader, &*access.array);
    let length = stored_length(array, coded)?;
    let mut stored = reader.buffers().take(length);
    if !array.source().read_at(&coded.object, coded.offset, &mut stored, Wait::Yes)? {
        return Err(absent());
    }
    array.source().unchanged()?;
    let padded = if coded.padding > 0 { length.saturating_add(coded.padding) } else { 0 };
    let needed = stored.weight().saturating_add(padded).saturating_add(coded.decoded).saturating_add(coded.scratch);
    let (layout, size) = (coded.layout, array.info().dtype.size());
    let order = wants_order(access, &layout);
    let brick = reader.gate().pass(needed.saturating_add(if order { coded.decoded } else { 0 }), || {
        let mut bytes = reader.buffers().take(coded.decoded);
        if padded == 0 {
            array.decode(coded, &stored, &mut bytes)?;
        } else {
            // padded only now: what waits at the gate takes no more memory than what it has read
            let mut with_padding = reader.buffers().take(padded);
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_gaps_are_read_along_and_large_ones_are_not() {
        // one inline of a 64x64x64 float32 brick: one call for 16 KiB
        let brick = Dims::from([64, 64, 64]).strides(4);
        let array = Dims::from([512, 512, 512]).strides(4);
        assert_eq!(outer_loops(&Loops::new(&[1, 64, 64].into(), &brick, &array, 4)), 0);
        // one crossline: a call for each inline, since 16 KiB lie between
        assert_eq!(outer_loops(&Loops::new(&[64, 1, 64].into(), &brick, &array, 4)), 1);
        // a whole brick: four calls of 256 KiB would do, so the inlines are walked
        assert_eq!(outer_loops(&Loops::new(&[64, 64, 64].into(), &brick, &array, 4)), 1);
        // a depth slice: 256 bytes between samples are read along
        assert_eq!(outer_loops(&Loops::new(&[1, 64, 1].into(), &brick, &array, 4)), 0);
        // a whole depth slice, in an array that is as large as the brick: an inline at a time
        let slice = Loops::new(&[64, 64, 1].into(), &brick, &[256, 4, 4].into(), 4);
        assert_eq!((outer_loops(&slice), bytes_read(&slice)), (1, 64 * (63 * 256 + 4)));
    }
}
