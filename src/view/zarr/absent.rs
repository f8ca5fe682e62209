//! Chunks that are not there: all of their samples have the value that a Zarr array has where there is no chunk.

use crate::format::{Array, FormatError};
use crate::source::Blocking;
use crate::volume::{ArrayInfo, Brick, Element, Region};

/// Bricks are looked up for all chunks of a folder when it is listed, which must end soon.
const MOST_IN_FOLDER: u64 = 1 << 20;

/// Returns whether chunks may be absent from the folders of an array: each has `chunks` of them, of a size such as
/// `region`. Otherwise all chunks are there.
pub(crate) fn is_looked_up(info: &ArrayInfo, region: &Region, chunks: u64) -> bool {
    let bricks = info.grid.touched(region).shape.product().unwrap_or(u64::MAX);
    bricks.saturating_mul(chunks) <= MOST_IN_FOLDER
}

/// Returns whether all bricks of a region are known to have `fill` for all samples. A brick that cannot be found is
/// not: its chunk is there, and reading it says what is wrong. Fails with
/// [`SourceError::WouldBlock`](crate::source::SourceError::WouldBlock) if that cannot be known without waiting and
/// `blocking` is [`Blocking::No`].
pub(crate) fn is_absent(
    array: &dyn Array,
    region: &Region,
    fill: &Element,
    blocking: Blocking,
) -> Result<bool, FormatError> {
    let touched = array.info().grid.touched(region);
    for number in 0..touched.shape.product().unwrap_or(0) {
        let mut at = touched.shape.index_of(number);
        at.iter_mut().zip(touched.start.iter()).for_each(|(at, start)| *at += start);
        // where tables tell that there are bytes, the bytes need not be looked at
        if blocking == Blocking::Yes
            && let Ok(Some(stored)) = array.stored_brick(&at)
            && stored.bytes != Some(0)
        {
            return Ok(false);
        }
        match array.brick(&at, blocking) {
            Ok(Brick::Constant(value)) if value == *fill => {}
            Err(error) if error.would_block() => return Err(error),
            _ => return Ok(false),
        }
    }
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::view::array_file::tests::zeros;
    use crate::volume::Dtype;

    #[test]
    fn long_folders_have_all_their_chunks() {
        let array = zeros(&[64, 64, 1 << 40], Dtype::UInt8);
        let region = |length| Region { start: [0, 0, 0].into(), shape: [64, 64, length].into() };
        assert!(is_looked_up(array.info(), &region(64), 1 << 20));
        assert!(!is_looked_up(array.info(), &region(64), (1 << 20) + 1));
        assert!(!is_looked_up(array.info(), &region(128), 1 << 20));
        let absent = |fill: &[u8]| is_absent(&*array, &region(128), &Element::new(fill), Blocking::No);
        assert_eq!((absent(&[0]), absent(&[7])), (Ok(true), Ok(false)));
    }
}
