//! The data files of one mag ("cubes"), and where each block lies in them.
//!
//! A cube begins with a header. Raw blocks follow one another from its data offset on. Compressed blocks have a jump
//! table behind the header: the offset of the end of each block. The data offset itself stands right before the table,
//! so that the two together are the boundaries of all blocks. Only the header and the needed pages of the jump table
//! are read, into the index cache that all datasets share.

use super::header::{BlockType, Header};
use crate::codec::lz4;
use crate::format::FormatError;
use crate::memory::try_zeroed;
use crate::source::{Blocking, Folder, IndexCache, SourceError};
use crate::sync::OfProcess;
use crate::volume::ObjectName;
use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

/// Bytes of a page of the jump table.
const PAGE: u64 = 16 << 10;
/// Blocks of fewer bytes are compared with a compressed block of zeros; decoding a larger one is as cheap.
const MAX_ZEROS: u64 = 1 << 20;
// The verdicts on a block; 0 if there is none yet.
const IS_ZERO: u8 = 1;
const IS_NOT_ZERO: u8 = 2;

/// A cube of an array.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Cube {
    pub at: [u64; 3],
    /// The number of the array, from [`IndexCache::new_id`].
    pub table_id: u64,
    /// The number of the cube in the array.
    pub number: u64,
}

/// Returns the path of a cube's file in the mag's folder.
pub(super) fn cube_name([x, y, z]: [u64; 3]) -> String {
    format!("z{z}/y{y}/x{x}.wkw")
}

/// Where the voxels of a block are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BlockLocation {
    /// Nowhere: all of them are zero.
    Zero,
    /// Uncompressed, from this byte of the cube on.
    Raw(u64),
    /// Compressed: first byte, number of bytes.
    Lz4(u64, u64),
}

/// The files of a mag folder.
pub(super) struct Cubes {
    pub folder: Arc<dyn Folder>,
    /// The header in header.wkw.
    pub header: Header,
    cache: Arc<IndexCache>,
    /// A compressed block of zeros, if it is short enough to compare others with.
    zeros: Option<Vec<u8>>,
}

/// The raw cube that a thread used last. A request takes a hundred neighbouring blocks, and without this the threads
/// would contend for the reference count of the shared page.
struct LastRaw {
    table_id: u64,
    number: u64,
    data_offset: u64,
    size: u64,
    name: ObjectName,
}

thread_local! {
    static LAST_RAW: RefCell<OfProcess<Option<LastRaw>>> = const { RefCell::new(OfProcess::new(None)) };
}

impl LastRaw {
    fn of(cube: Cube, page: &Page) -> Self {
        let (Cube { table_id, number, .. }, name) = (cube, ObjectName::from(&*page.name));
        Self { table_id, number, data_offset: page.data_offset, size: page.size, name }
    }

    /// Returns where block `number` of `bytes` bytes is; `None` if it lies beyond the end of the cube.
    fn block(&self, number: u64, bytes: u64) -> Option<(BlockLocation, ObjectName)> {
        let begin = number.checked_mul(bytes)?.checked_add(self.data_offset)?;
        (begin.checked_add(bytes)? <= self.size).then(|| (BlockLocation::Raw(begin), self.name.clone()))
    }
}

/// The header of a cube and one page of its jump table.
struct Page {
    name: ObjectName,
    blocks: BlockType,
    data_offset: u64,
    size: u64,
    /// Boundaries of blocks: 8 bytes each.
    boundaries: Vec<u8>,
    /// For each boundary: whether the block behind it is all zeros, as far as it was compared with zeros.
    verdicts: Vec<AtomicU8>,
}

impl Cubes {
    pub(super) fn new(folder: Arc<dyn Folder>, header: Header, cache: Arc<IndexCache>) -> Self {
        let zeros = Some(header.block_bytes()).filter(|bytes| *bytes < MAX_ZEROS).and_then(lz4::zeros);
        Self { folder, header, cache, zeros }
    }

    /// Returns where block `number` of a cube is, and the cube's name.
    pub(super) fn block(
        &self,
        cube: Cube,
        number: u64,
        blocking: Blocking,
    ) -> Result<(BlockLocation, ObjectName), FormatError> {
        let bytes = self.header.block_bytes();
        let damaged = |why: &str| FormatError::Damaged(format!("block {number} of {}: {why}", cube_name(cube.at)));
        let beyond = || damaged("it lies beyond the end of the file");
        let is_last = |last: &&LastRaw| (last.table_id, last.number) == (cube.table_id, cube.number);
        let known =
            LAST_RAW.with_borrow_mut(|last| last.get().as_ref().filter(is_last).map(|last| last.block(number, bytes)));
        if let Some(block) = known {
            return block.ok_or_else(beyond);
        }
        let (at, within) = (number / (PAGE / 8), number % (PAGE / 8));
        let Some(page) = self.page(cube, at, blocking)? else {
            return Ok((BlockLocation::Zero, ObjectName::default()));
        };
        if page.blocks == BlockType::Raw {
            let last = LastRaw::of(cube, &page);
            let block = last.block(number, bytes);
            LAST_RAW.with_borrow_mut(|kept| *kept.get() = Some(last));
            return block.ok_or_else(beyond);
        }
        let begin = page.boundary(within);
        let end = match page.boundary(within + 1) {
            None => self.page(cube, at + 1, blocking)?.and_then(|next| next.boundary(0)),
            end => end,
        };
        let (Some(begin), Some(end)) = (begin, end) else { return Err(damaged("it is not in the jump table")) };
        if begin < page.data_offset || end <= begin || end > page.size {
            let size = page.size;
            return Err(damaged(&format!("the jump table has it at bytes {begin} to {end} of {size}")));
        }
        let length = end - begin;
        if length > lz4::longest(bytes) || bytes > lz4::most(length) {
            return Err(damaged(&format!("{bytes} bytes cannot be compressed to {length}")));
        }
        if self.is_zero(cube, &page, within, (begin, length), blocking)? {
            return Ok((BlockLocation::Zero, ObjectName::default()));
        }
        Ok((BlockLocation::Lz4(begin, length), page.name.clone()))
    }

    /// Returns whether a block is the compressed block of zeros that LZ4 writes. Most blocks of a sparse cube are.
    fn is_zero(
        &self,
        cube: Cube,
        page: &Page,
        within: u64,
        (begin, length): (u64, u64),
        blocking: Blocking,
    ) -> Result<bool, FormatError> {
        let Some(zeros) = self.zeros.as_ref().filter(|zeros| zeros.len() as u64 == length) else { return Ok(false) };
        let Some(verdict) = page.verdicts.get(within as usize) else { return Ok(false) };
        match verdict.load(Ordering::Relaxed) {
            IS_ZERO => return Ok(true),
            IS_NOT_ZERO => return Ok(false),
            _ => {}
        }
        let mut stored = try_zeroed(zeros.len())?;
        if !self.folder.read_at(&cube_name(cube.at), begin, &mut stored, blocking)? {
            return Err(SourceError::Changed.into());
        }
        let is_zero = stored == *zeros;
        verdict.store(if is_zero { IS_ZERO } else { IS_NOT_ZERO }, Ordering::Relaxed);
        Ok(is_zero)
    }

    /// Returns a page of a cube's jump table; `None` if there is no such cube.
    fn page(&self, cube: Cube, number: u64, blocking: Blocking) -> Result<Option<Arc<Page>>, FormatError> {
        let key = |number| (cube.table_id, cube.number, number);
        // the first page of a cube has all that is needed if its blocks are raw
        let first = self.cache.get::<Page>(key(0)).filter(|first| number == 0 || first.blocks == BlockType::Raw);
        if let Some(known) = first.or_else(|| self.cache.get(key(number))) {
            return Ok(Some(known));
        }
        let Some(page) = self.read(cube, number, blocking)? else { return Ok(None) };
        let (key, page) = (key(if page.blocks == BlockType::Raw { 0 } else { number }), Arc::new(page));
        self.cache.insert(key, &page, size_of::<Page>() + page.boundaries.len() + page.verdicts.len());
        Ok(Some(page))
    }

    /// Reads and checks the header of a cube. Returns it, and the bytes of the cube; `None` if there is no such cube.
    pub(super) fn header_of(&self, object: &str, blocking: Blocking) -> Result<Option<(Header, u64)>, FormatError> {
        let fault = |why: String| FormatError::DamagedObject(format!("{object}: {why}"));
        let Some(header) = Header::read(&*self.folder, object, blocking)? else { return Ok(None) };
        let size = self.folder.len(object)?.ok_or(SourceError::Changed)?;
        // only the block type and the offset may differ
        let of = |header: &Header| (header.block_log, header.file_log, header.dtype, header.voxel);
        if of(&header) != of(&self.header) {
            return Err(fault("it is of other voxels, blocks or files than header.wkw says".into()));
        }
        let (before, begin) = (header.end(), header.data_offset);
        if begin < before {
            return Err(fault(format!("its data begin at byte {begin}, within the first {before}")));
        }
        if size < before {
            return Err(fault(format!("its jump table is cut: it has {size} bytes")));
        }
        Ok(Some((header, size)))
    }

    fn read(&self, cube: Cube, number: u64, blocking: Blocking) -> Result<Option<Page>, FormatError> {
        let object = cube_name(cube.at);
        let Some((header, size)) = self.header_of(&object, blocking)? else { return Ok(None) };
        let Header { blocks, data_offset, .. } = header;
        let mut boundaries = Vec::new();
        if blocks != BlockType::Raw {
            // the data offset, which stands right before the table, is the first boundary
            let begin = 8 + number.saturating_mul(PAGE);
            boundaries.resize(header.end().saturating_sub(begin).min(PAGE) as usize, 0);
            if !self.folder.read_at(&object, begin, &mut boundaries, blocking)? {
                return Err(SourceError::Changed.into());
            }
        }
        let verdicts = (0..boundaries.len() / 8).map(|_| AtomicU8::new(0)).collect();
        Ok(Some(Page { name: object.into(), blocks, data_offset, size, boundaries, verdicts }))
    }
}

impl Page {
    /// Returns boundary `n` of the page.
    fn boundary(&self, n: u64) -> Option<u64> {
        let (boundaries, _) = self.boundaries.as_chunks::<8>();
        boundaries.get(usize::try_from(n).ok()?).copied().map(u64::from_le_bytes)
    }
}

/// Returns the number of the block at (x, y, z), each below 256: bit `i` of x, y and z is bit `3 i`, `3 i + 1` and `3 i
/// + 2` of it.
pub(super) fn morton(at: [u64; 3]) -> u64 {
    let [x, y, z] = at.map(spread);
    x | y << 1 | z << 2
}

/// Returns x, y and z of the block with a number below 2^24: the inverse of [`morton`].
pub(super) fn position(number: u64) -> [u64; 3] {
    [0, 1, 2].map(|axis| (0..8).fold(0, |n, bit| n | (number >> (3 * bit + axis) & 1) << bit))
}

/// Inserts two zeros between each of eight bits and the next.
fn spread(n: u64) -> u64 {
    let n = (n | n << 8) & 0x00_f00f;
    let n = (n | n << 4) & 0x0c_30c3;
    (n | n << 2) & 0x24_9249
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_of_the_three_coordinates_are_interleaved() {
        let known = [([0; 3], 0), ([1, 0, 0], 1), ([0, 1, 0], 2), ([0, 0, 1], 4), ([1, 1, 1], 7), ([2, 0, 0], 8)];
        for (at, number) in known.into_iter().chain([([29, 20, 3], 13_029), ([255; 3], 0xff_ffff)]) {
            assert_eq!(morton(at), number);
            assert_eq!(position(number), at);
        }
        for n in 0..256 {
            let slowly = (0..8).fold(0, |out, bit| out | (n >> bit & 1) << (3 * bit));
            assert_eq!(spread(n), slowly);
        }
    }
}
