//! Which bricks are had as a whole, and how they are had.

use super::access::Access;
use super::fetch::decode;
use super::gather::Loops;
use super::plain::{absent, bytes_read};
use super::scan::Keep;
use super::segments::part;
use crate::cache::DecodedBrick;
use crate::format::FormatError;
use crate::source::Wait;
use crate::volume::{Brick, Coded, Dims, Element, Layout, Plain, Region};

/// To read so many times the bytes that are wanted is a waste: who wants all planes of a plain brick then reads it as a whole.
pub const WASTE: usize = 4;
/// The kernel reads ahead of a reader by fewer bytes than this.
const AHEAD: u64 = 512 << 10;
/// No larger plain brick is read as a whole.
const LARGEST: u64 = 8 << 20;
/// Samples that lie together in fewer bytes than this are put in order once, and not looked for again for every plane.
const SHORT: u64 = 16;

/// How the samples of a brick are had.
pub enum Way {
    /// They all have this value.
    Constant(Element),
    /// Those that are asked for are read.
    Parts(Plain),
    /// All of them, for the cache or for what a scan keeps.
    Whole(Whole),
}

/// A brick that is had as a whole.
pub enum Whole {
    /// It has to be decoded.
    Coded(Coded),
    /// Its planes are so scattered that a scan would read it again for each of them.
    Plain(Plain),
}

impl Way {
    /// How a reader has a brick.
    pub fn of(brick: Brick, access: &Access) -> Self {
        match brick {
            Brick::Constant(value) => Self::Constant(value),
            Brick::Coded(coded) => Self::Whole(Whole::Coded(coded)),
            Brick::Plain(plain) if is_scattered(&plain, access) => Self::Whole(Whole::Plain(plain)),
            Brick::Plain(plain) => Self::Parts(plain),
        }
    }
}

impl Whole {
    /// Whether the brick holds `region`.
    pub fn holds(&self, region: &Region) -> bool {
        match self {
            Self::Coded(coded) => coded.layout.held.contains(region),
            Self::Plain(plain) => plain.layout.held.contains(region),
        }
    }

    /// Decodes or reads it. Where the reader goes through planes that are scattered in the brick, they come in order.
    ///
    /// # Errors
    /// Those of the format and the source.
    pub fn load(&self, access: &Access) -> Result<DecodedBrick, FormatError> {
        match self {
            Self::Coded(coded) => decode(access, coded),
            Self::Plain(plain) => read(access, plain),
        }
    }
}

/// Whether a scan had better have a plain brick as a whole.
fn is_scattered(plain: &Plain, access: &Access) -> bool {
    let (Some(_), Some(scan)) = (&access.turn, &access.scan) else { return false };
    let (layout, info) = (&plain.layout, access.array.info());
    let size = info.dtype.size();
    // who wants a single plane has it faster without; the kernel reads ahead of it into the next
    let of_plane = info.shape().strides(1)[0];
    let ahead = (AHEAD / size as u64).min(of_plane.saturating_mul(4));
    if scan.gone() < of_plane.saturating_mul(2).saturating_add(ahead) {
        return false;
    }
    let mut plane = layout.held.shape;
    plane[0] = plane[0].min(1);
    let small = layout.end(size).is_some_and(|end| end - layout.first <= LARGEST);
    let loops = Loops::new(&plane, &layout.strides, &plane.strides(size as u64), size);
    small && loops.useful() > 0 && bytes_read(&loops) >= WASTE * loops.useful()
}

fn read(access: &Access, plain: &Plain) -> Result<DecodedBrick, FormatError> {
    let (source, size) = (access.array.source(), access.array.info().dtype.size());
    let layout = Layout { first: 0, ..plain.layout };
    let span = layout.end(size).and_then(|end| usize::try_from(end).ok());
    let mut bytes = access.reader.buffers().take(span.ok_or_else(absent)?);
    if !source.read_at(&plain.object, plain.offset + plain.layout.first, &mut bytes, Wait::Yes)? {
        return Err(absent());
    }
    source.unchanged()?;
    let brick = DecodedBrick { bytes: bytes.into(), layout };
    let needed = 2 * brick.bytes.capacity();
    Ok(access.reader.gate().pass(needed, || in_order(&brick, size, access)))
}

/// Whether a brick is put in the order of its reader.
pub fn wants_order(access: &Access, layout: &Layout) -> bool {
    // what keeps planes copies them anyway
    let keeps_whole = access.scan.as_ref().is_some_and(|scan| !matches!(scan.keep(), Keep::Planes(_)));
    access.turn.is_some() && keeps_whole && run(layout, access.array.info().dtype.size() as u64) < SHORT
}

/// The brick with its samples in C order, as the reader counts axes.
pub fn in_order(brick: &DecodedBrick, size: usize, access: &Access) -> DecodedBrick {
    part(brick, brick.layout.held, size, access.reader.buffers())
}

/// Bytes of the samples that lie together in a brick, in the order of its reader.
fn run(layout: &Layout, size: u64) -> u64 {
    let shape: &Dims = &layout.held.shape;
    let together = |run: u64, axis: usize| (layout.strides[axis] == run).then(|| run.saturating_mul(shape[axis]));
    let axes = (0..shape.len()).rev().filter(|axis| shape[*axis] > 1);
    let mut run = size;
    for axis in axes {
        match together(run, axis) {
            Some(longer) => run = longer,
            None => break,
        }
    }
    run
}
