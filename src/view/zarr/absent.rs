//! Chunks that are not there: all of their samples have the value that a Zarr array has where there is no chunk.

use crate::format::{Array, FormatError};
use crate::source::Wait;
use crate::volume::{Brick, Element, Region};

/// Returns whether all bricks of a region are known to have `fill` for all samples. A brick that cannot be found is
/// not: its chunk is there, and reading it says what is wrong.
///
/// # Errors
/// [`SourceError::WouldBlock`](crate::source::SourceError::WouldBlock) if that cannot be known without waiting and
/// `wait` is [`Wait::No`].
pub fn is_absent(array: &dyn Array, region: &Region, fill: &Element, wait: Wait) -> Result<bool, FormatError> {
    let touched = array.info().grid.touched(region);
    for number in 0..touched.shape.product().unwrap_or(0) {
        let mut at = touched.shape.index_of(number);
        at.iter_mut().zip(touched.start.iter()).for_each(|(at, start)| *at += start);
        // where tables tell that there are bytes, the bytes need not be looked at
        if wait == Wait::Yes
            && let Ok(Some(stored)) = array.stored_brick(&at)
            && stored.bytes != Some(0)
        {
            return Ok(false);
        }
        match array.brick(&at, wait) {
            Ok(Brick::Constant(value)) if value == *fill => {}
            Err(error) if error.would_block() => return Err(error),
            _ => return Ok(false),
        }
    }
    Ok(true)
}
