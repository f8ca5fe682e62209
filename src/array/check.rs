//! Reads one brick as a whole to see whether it can be read, and keeps nothing of it.

use std::sync::Arc;

use super::brick::{Access, stored_length};
use super::plain::missing_object;
use super::read::Reader;
use crate::format::{Array, FormatError};
use crate::pool::Bulkhead;
use crate::source::Blocking;
use crate::volume::{Brick, Dims, Plain};

/// Bytes of a plain brick that are read at a time.
const PART: usize = 1 << 20;

/// A brick that is as it should be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CheckedBrick {
    /// Whether all of its samples have one value, so that it has no bytes.
    pub(crate) constant: bool,
    /// The bytes that it has in the source.
    pub(crate) stored: u64,
}

impl Reader {
    /// Finds a brick in the tables and checks that its bytes are within their object, without reading them.
    pub(crate) fn locate_brick(&self, array: &dyn Array, at: &Dims) -> Result<CheckedBrick, FormatError> {
        located(array, &array.brick(at, Blocking::Yes)?)
    }

    /// Like [`Reader::locate_brick`], and reads and decodes the brick as well, within the budget of all decoders.
    /// Neither the cache nor the pool is used. May wait.
    pub(crate) fn check_brick(&self, array: &Arc<dyn Array>, at: &Dims) -> Result<CheckedBrick, FormatError> {
        let brick = array.brick(at, Blocking::Yes)?;
        let checked = located(&**array, &brick)?;
        match &brick {
            Brick::Constant(_) => {}
            Brick::Plain(plain) => self.read_all(&**array, plain)?,
            Brick::Coded(_) => {
                let access = Access::new(self.resources(), Arc::clone(array), Bulkhead::new(0));
                drop(access.load(&brick)?);
            }
        }
        Ok(checked)
    }

    /// Reads every byte of a plain brick, so that the disk's errors show: also those of its padding.
    fn read_all(&self, array: &dyn Array, plain: &Plain) -> Result<(), FormatError> {
        let source = array.source();
        let (mut at, end) = span(array, plain)?;
        let mut buffer = self.buffers().try_take(PART.min(usize::try_from(end - at).unwrap_or(PART)))?;
        while at < end {
            let length = buffer.len().min(usize::try_from(end - at).unwrap_or(PART));
            if !source.read_at(&plain.object, at, &mut buffer[..length], Blocking::Yes)? {
                return Err(missing_object());
            }
            at += length as u64;
        }
        Ok(source.check_unchanged()?)
    }
}

/// Checks that the bytes of a brick are within their object.
fn located(array: &dyn Array, brick: &Brick) -> Result<CheckedBrick, FormatError> {
    let coded = match brick {
        Brick::Constant(_) => return Ok(CheckedBrick { constant: true, stored: 0 }),
        Brick::Plain(plain) => {
            let (begin, end) = span(array, plain)?;
            return Ok(CheckedBrick { constant: false, stored: end - begin });
        }
        Brick::Coded(coded) => coded,
    };
    let (stored, offset) = (stored_length(array, coded)? as u64, coded.offset);
    let object = array.source().len(&coded.object)?.ok_or_else(missing_object)?;
    if offset.checked_add(stored).is_none_or(|end| end > object) {
        let text = format!("its {stored} bytes at {offset} end beyond the end of the file ({object} bytes)");
        return Err(FormatError::Damaged(text));
    }
    Ok(CheckedBrick { constant: false, stored })
}

/// Returns the range of the bytes of a plain brick in its object. Bricks at the edge of an array are usually stored
/// whole: their padding counts where the object has it.
fn span(array: &dyn Array, plain: &Plain) -> Result<(u64, u64), FormatError> {
    let info = array.info();
    let size = info.dtype.size() as u64;
    let object = array.source().len(&plain.object)?.ok_or_else(missing_object)?;
    let held = plain.layout.end(info.dtype.size()).and_then(|end| plain.offset.checked_add(end));
    let Some(held) = held.filter(|end| *end <= object) else {
        let text = format!("the brick at byte {} ends beyond the end of the file ({object} bytes)", plain.offset);
        return Err(FormatError::Damaged(text));
    };
    let whole = info.brick_shape.product().and_then(|samples| samples.checked_mul(size)).unwrap_or(0);
    Ok((plain.offset, plain.offset.saturating_add(whole).clamp(held, object.max(held))))
}
