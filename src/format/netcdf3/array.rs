//! One variable: its bricks are pieces of it, or of its records.

use std::sync::Arc;

use crate::codec::swap;
use crate::format::{Array, Census, FormatError, StoredBrick};
use crate::source::{Blocking, Source, WHOLE};
use crate::volume::{ArrayInfo, Brick, BrickCounts, Coded, Dims, Layout, NativeJson, Plain, StoredLength};

/// Records up to this size are read several at a time, with what lies between the samples of one variable.
const SMALL_RECORD: u64 = 64 << 10;
/// Bytes of a brick of several records, in the file.
const SEVERAL_RECORDS: u64 = 1 << 20;

pub(super) struct VariableArray {
    pub info: ArrayInfo,
    pub source: Arc<dyn Source>,
    pub begin: u64,
    /// Bytes from one position along the first axis to the next.
    pub row: u64,
    /// The bytes of the file.
    pub end: u64,
}

/// Returns the shape of the bricks of a variable with records of `record_size` bytes, of which a whole one is `piece`.
pub(super) fn record_brick(piece: &Dims, records: u64, record_size: u64) -> Dims {
    let mut brick = *piece;
    brick[0] =
        if record_size <= SMALL_RECORD { (SEVERAL_RECORDS / record_size.max(1)).clamp(1, records.max(1)) } else { 1 };
    brick
}

impl VariableArray {
    /// Returns whether bricks of this shape are in the file as they are in memory: bytes with nothing between the rows.
    fn is_plain(&self, held: &Dims) -> bool {
        self.info.dtype.size() == 1 && (held[0] == 1 || held[1..].iter().product::<u64>() == self.row)
    }
}

impl Array for VariableArray {
    fn info(&self) -> &ArrayInfo {
        &self.info
    }

    fn source(&self) -> &dyn Source {
        &*self.source
    }

    fn brick(&self, at: &Dims, _blocking: Blocking) -> Result<Brick, FormatError> {
        let (count, size) = (self.info.grid.count(), self.info.dtype.size() as u64);
        if at.len() != count.len() || at.iter().zip(count.iter()).any(|(at, count)| at >= count) {
            return Err(FormatError::Damaged(format!("there is no piece {at:?}")));
        }
        let (region, strides) = (self.info.grid.region(at), self.info.shape().strides(size));
        let within = (1..at.len()).map(|axis| region.start[axis] * strides[axis]).sum::<u64>();
        let decoded = region.samples() * size;
        if decoded == 0 {
            return Ok(Brick::Constant(self.unwritten()));
        }
        let rows = region.shape[0];
        let length = (rows - 1) * self.row + decoded / rows;
        let offset = self.begin.saturating_add(region.start[0] * self.row + within);
        if offset.checked_add(length).is_none_or(|end| end > self.end) {
            return Err(FormatError::Damaged(format!(
                "piece {at:?}: {length} bytes from byte {offset} on are not in the file, which has {}",
                self.end
            )));
        }
        let layout = Layout { held: region, first: 0, strides: region.shape.strides(size) };
        let object = WHOLE.into();
        Ok(if self.is_plain(&region.shape) {
            Brick::Plain(Plain { object, offset, layout })
        } else {
            let (length, decoded) = (StoredLength::Bytes(length), decoded as usize);
            Brick::Coded(Coded { object, offset, length, decoded, scratch: 0, layout, codec: 0 })
        })
    }

    fn decode(&self, coded: &Coded, stored: &[u8], out: &mut [u8]) -> Result<(), FormatError> {
        let rows = coded.layout.held.shape[0] as usize;
        let bytes = out.len() / rows;
        for (row, out) in out.chunks_exact_mut(bytes).enumerate() {
            let from = stored.get(row * self.row as usize..).and_then(|stored| stored.get(..bytes));
            out.copy_from_slice(from.ok_or("it is too short")?);
        }
        swap(out, self.info.dtype.size());
        Ok(())
    }

    fn decoded_shape(&self, at: &Dims) -> Option<Dims> {
        (!self.is_plain(&self.info.brick_shape)).then(|| self.info.grid.region(at).shape)
    }

    fn stored_brick(&self, at: &Dims) -> Result<Option<StoredBrick>, FormatError> {
        Ok(Some(match self.brick(at, Blocking::Yes) {
            Ok(Brick::Coded(coded)) => StoredBrick { bytes: Some(coded.length.most()), is_coded: true },
            Ok(_) => StoredBrick { bytes: Some(self.info.grid.region(at).samples()), is_coded: false },
            Err(_) => StoredBrick::EMPTY,
        }))
    }

    fn census(&self) -> Result<Option<Census>, FormatError> {
        let total = self.info.grid.total();
        let counts = BrickCounts { total, stored: total, ..BrickCounts::default() };
        Ok(Some(Census { counts, codec: "raw", native: NativeJson::new() }))
    }
}
