//! Reads part of a plain brick from its source in few calls, along with small gaps.

use std::cell::RefCell;

use crate::array::copy::Loops;
use crate::array::request::Piece;
use crate::format::{Array, FormatError};
use crate::source::Blocking;
use crate::volume::{Dims, Plain};

/// Gaps up to this many bytes are read along with the rows around them: a second call costs more.
const MAX_GAP: usize = 4 << 10;
/// The greatest number of bytes that one call reads of a plain brick, unless one contiguous run is longer.
pub(crate) const MAX_READ: usize = 256 << 10;
/// The read amplification (bytes read for each byte wanted) from which on parts of a plain brick are not worth reading.
pub(crate) const MAX_AMPLIFICATION: usize = 4;

thread_local! {
    static SCRATCH: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// Returns the offset of a piece's first byte in the object that holds the brick.
pub(crate) fn first_byte(piece: &Piece, plain: &Plain) -> Result<u64, FormatError> {
    if !plain.layout.held.contains(&piece.region) {
        return Err(FormatError::Damaged("the brick does not hold all of its samples".into()));
    }
    Ok(plain.offset + plain.layout.offset_of(&piece.region.start))
}

/// Reads a piece, and returns the bytes that were read for it; waits if necessary. `out` begins at the first sample of
/// the piece; neighbours are `to` bytes apart in it.
pub(crate) fn read_piece(
    array: &dyn Array,
    piece: &Piece,
    plain: &Plain,
    to: &Dims,
    out: &mut [u8],
) -> Result<usize, FormatError> {
    let from = first_byte(piece, plain)?;
    let loops = Loops::new(&piece.region.shape, &plain.layout.strides, to, array.info().dtype.size());
    read_loops(&loops, from, out, |at, bytes| {
        match array.source().read_at(&plain.object, at, bytes, Blocking::Yes)? {
            true => Ok(()),
            false => Err(missing_object()),
        }
    })?;
    Ok(bytes_read(&loops))
}

/// Reads the bytes of `loops` with few calls of `read`, along with small gaps, and straight into `out` where they are
/// contiguous. `from` is the offset of the first byte in the object.
pub(crate) fn read_loops(
    loops: &Loops,
    from: u64,
    out: &mut [u8],
    mut read: impl FnMut(u64, &mut [u8]) -> Result<(), FormatError>,
) -> Result<(), FormatError> {
    let outer = outer_loops(loops);
    let inner = loops.inner(outer);
    let contiguous = inner.steps().iter().all(|s| s.from == s.to) && inner.span() == inner.useful();
    let span = inner.span();
    SCRATCH.with_borrow_mut(|scratch| {
        if !contiguous && scratch.len() < span {
            scratch.resize(span, 0);
        }
        loops.try_for_each(outer, |piece_from, piece_to| {
            let out = &mut out[piece_to..];
            let bytes = if contiguous { &mut out[..span] } else { &mut scratch[..span] };
            read(from + piece_from as u64, bytes)?;
            if !contiguous {
                inner.copy(&scratch[..span], out);
            }
            Ok(())
        })
    })
}

/// The error for an object that the format's tables name and that does not exist.
pub(crate) fn missing_object() -> FormatError {
    FormatError::Damaged("the object that holds the brick is not there".into())
}

/// Returns how many of the outer loops issue one read call for each of their positions; one call reads all that is
/// inside.
fn outer_loops(loops: &Loops) -> usize {
    let steps = loops.steps();
    let mut outer = steps.len();
    while let Some(next) = outer.checked_sub(1) {
        let within = loops.inner(outer).span();
        let gap = steps[next].from.saturating_sub(within);
        if gap > MAX_GAP || loops.inner(next).span() > MAX_READ {
            break;
        }
        outer = next;
    }
    outer
}

/// Returns the bytes that [`read_loops`] reads from the source.
pub(crate) fn bytes_read(loops: &Loops) -> usize {
    let outer = outer_loops(loops);
    loops.steps()[..outer].iter().map(|step| step.count).product::<usize>() * loops.inner(outer).span()
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
        // a whole brick: one call would exceed the limit, so each inline is read by itself
        assert_eq!(outer_loops(&Loops::new(&[64, 64, 64].into(), &brick, &array, 4)), 1);
        // a depth slice: 256 bytes between samples are read along
        assert_eq!(outer_loops(&Loops::new(&[1, 64, 1].into(), &brick, &array, 4)), 0);
        // a whole depth slice, in an array that is as large as the brick: an inline at a time
        let slice = Loops::new(&[64, 64, 1].into(), &brick, &[256, 4, 4].into(), 4);
        assert_eq!((outer_loops(&slice), bytes_read(&slice)), (1, 64 * (63 * 256 + 4)));
    }
}
