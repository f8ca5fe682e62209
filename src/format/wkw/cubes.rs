//! The data files of one array ("cubes"): where each block lies in them (sections 3 to 5).
//!
//! Of a file only the header and those pages of the jump table are read that are needed; they are kept with the tables of all
//! other datasets, within one bound.

use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::header::{BYTES, BlockType, Header};
use crate::codec::lz4;
use crate::format::FormatError;
use crate::source::{Folder, IndexCache, SourceError, Wait};
use crate::volume::ObjectName;

/// Bytes of the jump table that are read at once.
const PAGE: u64 = 16 << 10;
/// Longer compressed zero blocks are not looked for: to compare them is no cheaper than to decode them.
const ZEROS: u64 = 4 << 10;

/// A cube of the array.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Cube {
    /// x, y, z of the cube.
    pub at: [u64; 3],
    /// A number of the array, from [`IndexCache::id`]: several boxes of the same files number them differently.
    pub array: u64,
    /// A number that no other cube of the array has.
    pub number: u64,
}

impl Cube {
    /// The name of its file below the mag's folder.
    pub(super) fn object(&self) -> String {
        let [x, y, z] = self.at;
        format!("z{z}/y{y}/x{x}.wkw")
    }
}

/// Where a block's voxels are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Block {
    /// All of them are zero.
    Zero,
    /// They begin at this byte of the cube.
    Raw(u64),
    /// They are compressed: first byte, number of bytes.
    Lz4(u64, u64),
}

/// The files of a mag folder.
pub(super) struct Cubes {
    pub folder: Arc<dyn Folder>,
    /// What header.wkw says.
    pub header: Header,
    cache: Arc<IndexCache>,
    /// A compressed block of zeros, if it is short enough to be looked for.
    zeros: Option<Vec<u8>>,
}

/// The raw cube that a thread has just read from, with all that is needed of it. A request takes a hundred neighbouring blocks, and several
/// threads counting the users of one name wait for each other.
struct LastRaw {
    array: u64,
    number: u64,
    data_offset: u64,
    size: u64,
    name: ObjectName,
}

thread_local! {
    static LAST_RAW: RefCell<Option<LastRaw>> = const { RefCell::new(None) };
}

impl LastRaw {
    fn of(cube: Cube, page: &Page) -> Self {
        let (Cube { array, number, .. }, name) = (cube, ObjectName::from(&*page.name));
        Self { array, number, data_offset: page.data_offset, size: page.size, name }
    }

    /// Where block `number` of `bytes` bytes is, if it is within the cube.
    fn block(&self, number: u64, bytes: u64) -> Option<(Block, ObjectName)> {
        let begin = number.checked_mul(bytes)?.checked_add(self.data_offset)?;
        (begin.checked_add(bytes)? <= self.size).then(|| (Block::Raw(begin), self.name.clone()))
    }
}

/// What was read of one cube: its header, and a page of its jump table.
struct Page {
    /// The cube's name.
    name: ObjectName,
    blocks: BlockType,
    data_offset: u64,
    /// Bytes of the cube.
    size: u64,
    /// Boundaries of blocks: 8 bytes each.
    boundaries: Vec<u8>,
    /// For each boundary two bits: whether the block behind it was compared with zeros, and whether it is all zeros.
    verdicts: Vec<AtomicU64>,
}

impl Cubes {
    pub(super) fn new(folder: Arc<dyn Folder>, header: Header, cache: Arc<IndexCache>) -> Self {
        let zeros = lz4::zeros(header.block_bytes()).filter(|block| block.len() as u64 <= ZEROS);
        Self { folder, header, cache, zeros }
    }

    /// Where block `number` of a cube is.
    pub(super) fn block(&self, cube: Cube, number: u64, wait: Wait) -> Result<(Block, ObjectName), FormatError> {
        let (bytes, damaged) = (self.header.block_bytes(), |why: &str| damaged(cube, number, why));
        let beyond = || damaged("it lies beyond the end of the file");
        let is_last = |last: &&LastRaw| (last.array, last.number) == (cube.array, cube.number);
        let known = LAST_RAW.with_borrow(|last| last.as_ref().filter(is_last).map(|last| last.block(number, bytes)));
        if let Some(block) = known {
            return block.ok_or_else(beyond);
        }
        let place = |page: u64| (number / (PAGE / 8) + page, number % (PAGE / 8));
        let (at, within) = place(0);
        let Some(page) = self.page(cube, at, wait)? else { return Ok((Block::Zero, ObjectName::default())) };
        if page.blocks == BlockType::Raw {
            let last = LastRaw::of(cube, &page);
            let block = last.block(number, bytes);
            LAST_RAW.set(Some(last));
            return block.ok_or_else(beyond);
        }
        let begin = page.boundary(within);
        let end = match page.boundary(within + 1) {
            None => self.page(cube, at + 1, wait)?.and_then(|next| next.boundary(0)),
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
        if self.is_zero(cube, &page, within, (begin, length), wait)? {
            return Ok((Block::Zero, ObjectName::default()));
        }
        Ok((Block::Lz4(begin, length), page.name.clone()))
    }

    /// Whether a block is the usual compressed block of zeros (section 4): most blocks of a cube with little in it are.
    fn is_zero(
        &self,
        cube: Cube,
        page: &Page,
        within: u64,
        (begin, length): (u64, u64),
        wait: Wait,
    ) -> Result<bool, FormatError> {
        let Some(zeros) = self.zeros.as_ref().filter(|zeros| zeros.len() as u64 == length) else { return Ok(false) };
        if let Some(known) = page.verdict(within) {
            return Ok(known);
        }
        let mut stored = vec![0; zeros.len()];
        if !self.folder.read_at(&cube.object(), begin, &mut stored, wait)? {
            return Err(SourceError::Changed.into());
        }
        let verdict = stored == *zeros;
        page.decide(within, verdict);
        Ok(verdict)
    }

    /// A page of a cube's jump table; `None` if there is no such cube.
    fn page(&self, cube: Cube, number: u64, wait: Wait) -> Result<Option<Arc<Page>>, FormatError> {
        // all that is needed of a cube without a jump table stands in its first page
        let first = self.cache.part::<Page>((cube.array, cube.number, 0));
        if let Some(first) = first.filter(|first| number == 0 || first.blocks == BlockType::Raw) {
            return Ok(Some(first));
        }
        if number > 0
            && let Some(page) = self.cache.part((cube.array, cube.number, number))
        {
            return Ok(Some(page));
        }
        let Some(page) = self.read(cube, number, wait)? else { return Ok(None) };
        let raw = page.blocks == BlockType::Raw;
        let (key, page) = ((cube.array, cube.number, if raw { 0 } else { number }), Arc::new(page));
        self.cache.keep(key, &page, size_of::<Page>() + page.boundaries.len() + 8 * page.verdicts.len());
        Ok(Some(page))
    }

    fn read(&self, cube: Cube, number: u64, wait: Wait) -> Result<Option<Page>, FormatError> {
        let object = cube.object();
        let fault = |why: String| FormatError::DamagedObject(format!("{object}: {why}"));
        let mut head = [0; BYTES];
        match self.folder.read_at(&object, 0, &mut head, wait) {
            Ok(true) => {}
            Ok(false) => return Ok(None),
            Err(SourceError::TooShort { size, .. }) => return Err(fault(format!("it has only {size} bytes"))),
            Err(e) => return Err(e.into()),
        }
        let size = self.folder.len(&object)?.ok_or(SourceError::Changed)?;
        let header = Header::parse(&head).map_err(|e| fault(e.to_string()))?;
        if !header.agrees_with(&self.header) {
            return Err(fault("it is of other voxels, blocks or files than header.wkw says".into()));
        }
        let (blocks, data_offset) = (header.blocks, header.data_offset);
        let before = if blocks == BlockType::Raw { BYTES as u64 } else { header.table_end() };
        if data_offset < before {
            return Err(fault(format!("its data begin at byte {data_offset}, within the first {before}")));
        }
        if size < before {
            return Err(fault(format!("its jump table is cut: it has {size} bytes")));
        }
        let mut boundaries = Vec::new();
        if blocks != BlockType::Raw {
            // the offset of the data stands right before the table and is the first boundary (section 4)
            let begin = 8 + number.saturating_mul(PAGE);
            boundaries.resize(before.saturating_sub(begin).min(PAGE) as usize, 0);
            if !self.folder.read_at(&object, begin, &mut boundaries, wait)? {
                return Err(SourceError::Changed.into());
            }
        }
        let verdicts = (0..boundaries.len().div_ceil(8 * 32)).map(|_| AtomicU64::new(0)).collect();
        Ok(Some(Page { name: object.into(), blocks, data_offset, size, boundaries, verdicts }))
    }
}

impl Page {
    fn boundary(&self, n: u64) -> Option<u64> {
        let (boundaries, _) = self.boundaries.as_chunks::<8>();
        boundaries.get(usize::try_from(n).ok()?).copied().map(u64::from_le_bytes)
    }

    /// The word of a verdict and its place in it.
    fn word(&self, n: u64) -> Option<(&AtomicU64, u64)> {
        Some((self.verdicts.get(usize::try_from(n / 32).ok()?)?, n % 32 * 2))
    }

    fn verdict(&self, n: u64) -> Option<bool> {
        let (word, shift) = self.word(n)?;
        let bits = word.load(Ordering::Relaxed) >> shift;
        (bits & 1 == 1).then_some(bits & 2 == 2)
    }

    fn decide(&self, n: u64, zero: bool) {
        if let Some((word, shift)) = self.word(n) {
            word.fetch_or((1 | u64::from(zero) << 1) << shift, Ordering::Relaxed);
        }
    }
}

fn damaged(cube: Cube, number: u64, why: &str) -> FormatError {
    FormatError::Damaged(format!("block {number} of {}: {why}", cube.object()))
}
