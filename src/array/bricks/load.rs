//! Loads a whole brick from its source: decodes a coded brick, reads a plain one. Runs on workers, and may wait.

use super::access::BrickAccess;
use super::plain_read::missing_object;
use super::read_strategy::{WholeBrick, is_transposed_on_load};
use crate::array::copy::extract;
use crate::cache::DecodedBrick;
use crate::format::{Array, FormatError};
use crate::memory::{self, OutOfMemory};
use crate::source::Blocking;
use crate::volume::{Coded, Layout, Plain, StoredLength};

/// Loads a brick. For a scan whose planes are scattered in the brick, the samples are transposed to the scan's order.
pub(crate) fn load(access: &BrickAccess, brick: &WholeBrick) -> Result<DecodedBrick, FormatError> {
    match brick {
        WholeBrick::Coded(coded) => decode(access, coded),
        WholeBrick::Scattered(plain) => read(access, plain, true),
        WholeBrick::Fetched(plain) => read(access, plain, is_transposed_on_load(access, &plain.layout)),
    }
}

/// Reads a plain brick, and transposes it if asked to.
fn read(access: &BrickAccess, plain: &Plain, transpose: bool) -> Result<DecodedBrick, FormatError> {
    let (source, size) = (access.array().source(), access.sample_size());
    let layout = Layout { first: 0, ..plain.layout };
    let span = layout.end(size).and_then(|end| usize::try_from(end).ok());
    let mut bytes = access.resources.buffers.take_brick(span.ok_or_else(missing_object)?)?;
    let offset = plain.offset.checked_add(plain.layout.first).ok_or_else(missing_object)?;
    if !source.read_at(&plain.object, offset, &mut bytes, Blocking::Yes)? {
        return Err(missing_object());
    }
    access.count_source_bytes(bytes.len());
    source.check_unchanged()?;
    let brick = DecodedBrick { bytes: bytes.into(), layout };
    if !transpose {
        return Ok(brick);
    }
    let needed = 2 * brick.bytes.capacity();
    Ok(access.resources.gate.admit(needed, || transposed(&brick, size, access))?)
}

/// Reads the stored bytes of a coded brick and decodes them.
fn decode(access: &BrickAccess, coded: &Coded) -> Result<DecodedBrick, FormatError> {
    let (resources, array) = (&*access.resources, access.array());
    let length = stored_length(array, coded)?;
    let mut stored = resources.buffers.take_scratch(length)?;
    if !array.source().read_at(&coded.object, coded.offset, &mut stored, Blocking::Yes)? {
        return Err(missing_object());
    }
    access.count_source_bytes(length);
    array.source().check_unchanged()?;
    let needed = stored.capacity().saturating_add(coded.decoded).saturating_add(coded.scratch);
    let (layout, size) = (coded.layout, array.info().dtype.size());
    let transpose = is_transposed_on_load(access, &layout);
    let transpose_bytes = if transpose { coded.decoded } else { 0 };
    let brick =
        resources.gate.admit(needed.saturating_add(transpose_bytes), || -> Result<DecodedBrick, FormatError> {
            let mut bytes = resources.buffers.take_brick(coded.decoded)?;
            // decoders allocate without asking
            let _claim = if coded.scratch > 0 { Some(memory::claim(coded.scratch)?) } else { None };
            array.decode(coded, &stored, &mut bytes)?;
            if layout.end(size).is_none_or(|end| end > bytes.len() as u64) {
                return Err(FormatError::Damaged("the brick is smaller than its layout".into()));
            }
            let brick = DecodedBrick { bytes: bytes.into(), layout };
            Ok(if transpose { transposed(&brick, size, access)? } else { brick })
        })?;
    access.count(|counters| &counters.bricks_decoded, 1);
    access.count(|counters| &counters.bytes_decoded, coded.decoded as u64);
    Ok(brick)
}

/// Returns the brick with its samples in C order of the reader's axes.
fn transposed(brick: &DecodedBrick, size: usize, access: &BrickAccess) -> Result<DecodedBrick, OutOfMemory> {
    extract(brick, brick.layout.held, size, &access.resources.buffers)
}

/// Returns the number of stored bytes of a coded brick.
fn stored_length(array: &dyn Array, coded: &Coded) -> Result<usize, FormatError> {
    let claimed = |length: u64| FormatError::Damaged(format!("the brick claims {length} bytes"));
    let length = match coded.length {
        StoredLength::Bytes(length) => length,
        StoredLength::Rest { most } => {
            let object = array.source().len(&coded.object)?.ok_or_else(missing_object)?;
            let length = object.saturating_sub(coded.offset);
            if length > most {
                return Err(claimed(length));
            }
            length
        }
    };
    usize::try_from(length).map_err(|_| claimed(length))
}
