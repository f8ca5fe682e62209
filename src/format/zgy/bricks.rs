//! One level as an array: finds its bricks, counts and decodes them.

use std::sync::{Arc, OnceLock};

use serde_json::json;

use super::describe::element;
use super::table::{Entry, Level, Table};
use crate::codec::zfp;
use crate::format::{Array, Census, FormatError, MAX_COUNTED_BYTES, MAX_DESCRIBED_BYTES, StoredBrick, native};
use crate::source::{Blocking, Source, SourceError, WHOLE};
use crate::volume::{
    ArrayInfo, Brick, BrickCounts, BrickSet, Coded, Dims, Dtype, Element, Layout, Plain, StoredLength,
};

/// The codecs, as [`Coded::codec`] holds them.
const ZFP: u64 = 1;
const SUBTILED: u64 = 2;

/// Levels with more bricks are visited in the order of their table, without those in the holes of the file, which were
/// never written. So are levels with more than the lesser number if the file has holes there.
const MAX_IN_ORDER: u64 = 8 << 20;
const MAX_NOT_LOOKED_AT: u64 = 32 << 10;

/// The data that all levels of a file share.
pub(super) struct Bricks {
    pub source: Arc<dyn Source>,
    pub table: Table,
    /// Samples of a brick along each axis.
    pub shape: [u64; 3],
    /// Bytes of the samples of a brick.
    pub bytes: usize,
    pub dtype: Dtype,
    /// The storage value of bricks that were never written.
    pub default: i64,
    /// Whether stored bricks have the sample order of version 1.
    pub subtiled: bool,
}

impl Bricks {
    /// Returns the fault of an entry, if it shows without reading the brick.
    pub(super) fn fault(&self, entry: u64) -> Option<String> {
        let file = self.table.file_bytes;
        match Entry::of(entry) {
            Entry::Unknown => Some(format!("brick entry {entry:#x} has an unknown kind")),
            Entry::Compressed(_) if self.dtype != Dtype::Float32 => {
                Some(format!("brick entry {entry:#x} is compressed, in a file of {}", self.dtype))
            }
            Entry::Stored(at) | Entry::Compressed(at) if at >= file => {
                Some(format!("brick at byte {at} begins beyond the end of the file ({file} bytes)"))
            }
            Entry::Stored(at) if at.checked_add(self.bytes as u64).is_none_or(|end| end > file) => {
                Some(format!("brick at byte {at} ends beyond the end of the file ({file} bytes)"))
            }
            _ => None,
        }
    }
}

pub(super) struct ZgyArray {
    pub info: ArrayInfo,
    pub level: Level,
    pub bricks: Arc<Bricks>,
    pub census: OnceLock<Option<Census>>,
}

impl ZgyArray {
    fn layout(&self, at: [u64; 3]) -> Layout {
        let start = Dims::from_fn(3, |axis| at[axis] * self.bricks.shape[axis]);
        Layout::c_order(start, self.bricks.shape.into(), self.info.shape(), self.info.dtype.size())
    }

    /// Returns whether the bricks are visited in the order of the grid, all of them.
    fn is_visited_in_order(&self) -> Result<bool, SourceError> {
        let count = self.level.count;
        if count <= MAX_NOT_LOOKED_AT || count > MAX_IN_ORDER {
            return Ok(count <= MAX_NOT_LOOKED_AT);
        }
        let mut stored = 0;
        self.bricks.table.visit_stored(&self.level, |numbers| {
            stored += numbers.end - numbers.start;
            true
        })?;
        Ok(stored == count)
    }

    fn count(&self) -> Result<Option<Census>, SourceError> {
        if self.level.count > MAX_COUNTED_BYTES / 8 {
            return Ok(None);
        }
        let mut counts = BrickCounts { total: self.level.count, ..BrickCounts::default() };
        let (mut compressed, mut damaged) = (0u64, 0u64);
        self.bricks.table.scan_stored(self.level.start, self.level.count, |_, entry| {
            match Entry::of(entry) {
                _ if self.bricks.fault(entry).is_some() => damaged += 1,
                Entry::Missing => {}
                Entry::Constant(_) => counts.constant += 1,
                Entry::Compressed(_) => (counts.stored, compressed) = (counts.stored + 1, compressed + 1),
                Entry::Stored(_) | Entry::Unknown => counts.stored += 1,
            }
            true
        })?;
        counts.missing = counts.total - counts.constant - counts.stored - damaged;
        let codec = match compressed {
            0 => "raw",
            all if all == counts.stored => "zfp",
            _ => "mixed",
        };
        Ok(Some(Census { counts, codec, native: native(json!({"compressed": compressed, "damaged": damaged})) }))
    }
}

impl Array for ZgyArray {
    fn info(&self) -> &ArrayInfo {
        &self.info
    }

    fn source(&self) -> &dyn Source {
        &*self.bricks.source
    }

    fn brick(&self, at: &Dims, blocking: Blocking) -> Result<Brick, FormatError> {
        let found = <[u64; 3]>::try_from(&at[..]).ok().and_then(|at| Some((at, self.level.entry(at)?)));
        let (at, number) = found.ok_or_else(|| format!("there is no brick {at:?}"))?;
        let bricks = &*self.bricks;
        let entry = bricks.table.entry(number, blocking)?;
        if let Some(fault) = bricks.fault(entry) {
            return Err(FormatError::Damaged(fault));
        }
        let (offset, length, codec) = match Entry::of(entry) {
            // higher bytes are ignored
            Entry::Constant(value) => return Ok(Brick::Constant(element(bricks.dtype, value.cast_signed()))),
            Entry::Missing | Entry::Unknown => return Ok(Brick::Constant(self.unwritten())),
            Entry::Stored(offset) if !bricks.subtiled => {
                return Ok(Brick::Plain(Plain { object: WHOLE.into(), offset, layout: self.layout(at) }));
            }
            Entry::Stored(offset) => (offset, bricks.bytes as u64, SUBTILED),
            Entry::Compressed(offset) => {
                let length = bricks.table.limit(offset, bricks.bytes as u64, blocking)?.saturating_sub(offset);
                // a ZFP stream has a minimum length; a shorter brick is refused before memory for its samples is
                // allocated
                if length < zfp::shortest(bricks.shape) {
                    return Err(format!("compressed brick at byte {offset} has only {length} bytes").into());
                }
                (offset, length, ZFP)
            }
        };
        let (length, layout) = (StoredLength::Bytes(length), self.layout(at));
        Ok(Brick::Coded(Coded {
            object: WHOLE.into(),
            offset,
            length,
            decoded: bricks.bytes,
            scratch: 0,
            layout,
            codec,
        }))
    }

    fn unwritten(&self) -> Element {
        element(self.bricks.dtype, self.bricks.default)
    }

    fn decode(&self, coded: &Coded, stored: &[u8], out: &mut [u8]) -> Result<(), FormatError> {
        let done = match coded.codec {
            ZFP => zfp::decode(self.bricks.shape, stored, out),
            _ if untile(stored, out, self.info.dtype.size()) => Ok(()),
            _ => Err("it is not whole".into()),
        };
        done.map_err(|why| format!("brick at byte {}: {why}", coded.offset).into())
    }

    fn decoded_shape(&self, _at: &Dims) -> Option<Dims> {
        let bricks = &*self.bricks;
        (bricks.subtiled || bricks.dtype == Dtype::Float32).then(|| bricks.shape.into())
    }

    fn stored_brick(&self, at: &Dims) -> Result<Option<StoredBrick>, FormatError> {
        if self.bricks.table.length() > MAX_DESCRIBED_BYTES {
            return Ok(None);
        }
        let (bytes, is_coded) = match self.brick(at, Blocking::Yes) {
            Ok(Brick::Plain(_)) => (self.bricks.bytes as u64, false),
            Ok(Brick::Coded(coded)) => (coded.length.most(), true),
            Ok(Brick::Constant(_)) | Err(FormatError::Damaged(_)) => return Ok(Some(StoredBrick::EMPTY)),
            Err(error) => return Err(error),
        };
        Ok(Some(StoredBrick { bytes: Some(bytes), is_coded }))
    }

    fn visit_stored(&self, visit: &mut dyn FnMut(BrickSet) -> bool) -> Result<(), FormatError> {
        if self.is_visited_in_order()? {
            visit(BrickSet::Run(0..self.level.count));
            return Ok(());
        }
        let visited = self
            .bricks
            .table
            .visit_stored(&self.level, |numbers| self.level.boxes(numbers).all(|region| visit(BrickSet::Box(region))));
        Ok(visited?)
    }

    fn census(&self) -> Result<Option<Census>, FormatError> {
        if let Some(known) = self.census.get() {
            return Ok(known.clone());
        }
        let counted = self.count()?;
        Ok(self.census.get_or_init(|| counted).clone())
    }
}

/// Traces along either horizontal axis of a brick, and of a tile.
const SIDE: usize = 64;
const TILE: usize = 8;
/// Samples of a trace.
const TRACE: usize = 64;
/// Samples of a brick.
const BRICK: usize = SIDE * SIDE * TRACE;

/// Copies a tiled brick into C order; a sample has `size` bytes. Returns `false` if a slice has the wrong length for a
/// brick.
pub(super) fn untile(stored: &[u8], out: &mut [u8], size: usize) -> bool {
    let run = TILE * TRACE * size;
    if stored.len() != BRICK * size || out.len() != stored.len() || run == 0 {
        return false;
    }
    // eight neighbouring traces stay contiguous: for inline 8 I + p, the run of tile (I, J) is at (I, J, p) in the file
    // and goes to (I, p, J)
    let per = SIDE / TILE;
    for (number, to) in out.chunks_exact_mut(run).enumerate() {
        let (tiles, p, j) = (number / (per * TILE), number / per % TILE, number % per);
        let from = (tiles * per + j) * TILE + p;
        if let Some(run) = stored.chunks_exact(run).nth(from) {
            to.copy_from_slice(run);
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_move_to_their_positions_in_c_order() {
        let stored: Vec<u8> = (0..BRICK as u32 * 2).map(|n| (n ^ n >> 7 ^ n >> 13) as u8).collect();
        let mut out = vec![0; stored.len()];
        assert!(untile(&stored, &mut out, 2));
        for (i, j, k) in [(0, 0, 0), (0, 0, 63), (0, 8, 2), (1, 0, 5), (17, 42, 3), (63, 63, 63), (8, 7, 0)] {
            let from = (((i / 8 * 8 + j / 8) * 8 + i % 8) * 8 + j % 8) * 64 + k;
            let to = (i * 64 + j) * 64 + k;
            assert_eq!(out[2 * to..2 * to + 2], stored[2 * from..2 * from + 2], "{i} {j} {k}");
        }
        let mut again = vec![0; stored.len()];
        assert!(untile(&out, &mut again, 2));
        assert!(again == stored);
    }

    #[test]
    fn other_lengths_are_refused() {
        assert!(!untile(&[0; 64], &mut [0; 64], 1));
        assert!(!untile(&[], &mut [], 0));
    }
}
