//! Finds chunks: each kind of index is asked for one chunk, and reads only the nodes on the way to it.

use std::cmp::Ordering;
use std::sync::{Arc, OnceLock};

use super::file::{File, address, check_sum, check_sum_at_end, uint};
use super::heap::BTree2;
use super::message::IndexKind;
use crate::format::FormatError;
use crate::source::{Blocking, SourceError};
use crate::volume::Dims;

/// Levels of a B-tree of version 1.
const MAX_LEVELS: u8 = 40;
/// Entries that there is room for in a node of version 1, unless the file says otherwise.
const USUAL_ENTRIES: u64 = 64;

/// Where a chunk is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Chunk {
    pub address: u64,
    pub bytes: u64,
    /// A bit for each filter that this chunk was stored without.
    pub mask: u32,
}

/// The chunks of a dataset.
pub(super) struct Chunks {
    pub file: Arc<File>,
    pub kind: IndexKind,
    /// `None` if no chunk was ever written.
    pub address: Option<u64>,
    /// Samples of a chunk along each axis of the dataspace.
    pub chunk: Dims,
    /// Chunks along each axis, now and at most. The latter is 0 for unlimited axes.
    pub count: Dims,
    pub most: Dims,
    /// Bytes of a chunk without filters.
    pub bytes: u64,
    pub has_filters: bool,
    pub header: OnceLock<Header>,
}

/// What the header of an index says.
pub(super) enum Header {
    Fixed(Elements),
    Extensible(Extensible),
    BTree2(BTree2),
}

/// Elements of a fixed or an extensible array: addresses of chunks, with filters their bytes and masks, too.
#[derive(Clone, Copy)]
pub(super) struct Elements {
    /// Bytes of an element.
    width: usize,
    page_bits: u32,
    count: u64,
    /// The block that the header leads to.
    block: Option<u64>,
}

pub(super) struct Extensible {
    elements: Elements,
    max_bits: u64,
    /// Elements in the block that the header leads to.
    in_first: u64,
    /// The fewest elements of a block, and the fewest blocks that another block leads to.
    least: u64,
    pointers: u64,
}

/// The name of the parts of an extensible array, for errors.
const ARRAY_BLOCK: &str = "block of an extensible array";

/// How the blocks of an extensible array lie: groups of blocks, two of each size, of which those of the first groups stand
/// in the first block themselves.
struct Shape {
    groups: u64,
    direct_groups: u64,
    /// Blocks of the first groups.
    direct: u64,
    /// Where the elements in the first block end, and the block itself.
    elements_end: u64,
    length: u64,
}

impl Extensible {
    fn shape(&self, offset: u64) -> Shape {
        let groups = 1 + self.max_bits - u64::from(self.least.ilog2());
        let direct_groups = (2 * u64::from(self.pointers.ilog2())).min(groups);
        let direct = 2 * (self.pointers - 1);
        let elements_end = 6 + offset + self.in_first * self.elements.width as u64;
        let length = elements_end + (direct + groups - direct_groups) * offset + 4;
        Shape { groups, direct_groups, direct, elements_end, length }
    }

    /// The blocks of a group, and the elements of each.
    fn size(&self, group: u64) -> (u64, u64) {
        (1u64 << (group / 2), self.least.saturating_mul(1 << group.div_ceil(2)))
    }

    /// The pages of a block of so many elements; 0 if it is read as a whole.
    fn pages(&self, elements: u64) -> u64 {
        let page = 1u64 << self.elements.page_bits;
        if elements > page { elements / page } else { 0 }
    }
}

impl Chunks {
    /// Finds the chunk at a position in the grid of chunks; `None` if it was never written.
    pub(super) fn find(&self, at: &[u64], blocking: Blocking) -> Result<Option<Chunk>, FormatError> {
        let Some(root) = self.address else { return Ok(None) };
        match self.kind {
            IndexKind::BTree1 => self.in_btree1(root, at, blocking),
            IndexKind::Single(None) => Ok(Some(Chunk { address: root, bytes: self.bytes, mask: 0 })),
            IndexKind::Single(Some((bytes, mask))) => Ok(Some(Chunk { address: root, bytes, mask })),
            IndexKind::Implicit => {
                let offset = self.number(at, None).and_then(|n| n.checked_mul(self.bytes)?.checked_add(root));
                let address = offset.ok_or("the number of a chunk exceeds 64 bits")?;
                Ok(Some(Chunk { address, bytes: self.bytes, mask: 0 }))
            }
            IndexKind::FixedArray | IndexKind::ExtensibleArray | IndexKind::BTree2 => {
                match self.header(root, blocking)? {
                    Header::Fixed(elements) => {
                        let number = self.number(at, None).ok_or("the number of a chunk exceeds 64 bits")?;
                        self.in_fixed(elements, number, blocking)
                    }
                    Header::Extensible(array) => {
                        let number =
                            self.number(at, self.unlimited()).ok_or("the number of a chunk exceeds 64 bits")?;
                        self.in_extensible(array, number, blocking)
                    }
                    Header::BTree2(tree) => self.in_btree2(tree, at, blocking),
                }
            }
        }
    }

    /// The axis without a limit.
    fn unlimited(&self) -> Option<usize> {
        self.most.iter().position(|most| *most == 0)
    }

    /// Returns the number of a chunk among all that there may ever be, in C order with axis `first` before the others.
    fn number(&self, at: &[u64], first: Option<usize>) -> Option<u64> {
        let axes = first.into_iter().chain((0..self.most.len()).filter(|axis| Some(*axis) != first));
        axes.enumerate().try_fold(0u64, |number, (place, axis)| {
            let most = if place == 0 { 0 } else { self.most[axis] };
            number.checked_mul(most)?.checked_add(at[axis])
        })
    }

    fn header(&self, root: u64, blocking: Blocking) -> Result<&Header, FormatError> {
        if let Some(header) = self.header.get() {
            return Ok(header);
        }
        if blocking == Blocking::No {
            return Err(SourceError::WouldBlock.into());
        }
        let header = match self.kind {
            IndexKind::FixedArray => self.fixed_header(root)?,
            IndexKind::ExtensibleArray => self.extensible_header(root)?,
            _ => {
                let tree = BTree2::open(&self.file, root)?;
                let least = self.file.widths.offset + 8 * self.most.len() + if self.has_filters { 5 } else { 0 };
                let most = if self.has_filters { least + 7 } else { least };
                if tree.kind != 10 + u8::from(self.has_filters) || !(least..=most).contains(&tree.record) {
                    return Err("damaged B-tree: its records are none of chunks".into());
                }
                Header::BTree2(tree)
            }
        };
        Ok(self.header.get_or_init(|| header))
    }

    /// Returns the chunk that an element of an array, or what is before the position in a record, describes.
    fn element(&self, bytes: &[u8]) -> Option<Chunk> {
        let (at, rest) = bytes.split_at_checked(self.file.widths.offset)?;
        let address = address(at)?;
        if !self.has_filters {
            return Some(Chunk { address, bytes: self.bytes, mask: 0 });
        }
        let (bytes, mask) = rest.split_at_checked(rest.len().checked_sub(4)?)?;
        Some(Chunk { address, bytes: uint(bytes), mask: uint(mask) as u32 })
    }

    fn width_is_right(&self, width: usize) -> bool {
        let offset = self.file.widths.offset;
        if self.has_filters { (offset + 5..=offset + 12).contains(&width) } else { width == offset }
    }

    // B-trees of version 1

    /// Bytes of a key: those of the chunk, the filter mask, and the position of its first sample.
    fn key(&self) -> usize {
        8 + 8 * (self.most.len() + 1)
    }

    pub(super) fn in_btree1(&self, root: u64, at: &[u64], blocking: Blocking) -> Result<Option<Chunk>, FormatError> {
        let mut position = [0; crate::volume::MAX_AXES];
        for (axis, to) in position.iter_mut().enumerate().take(at.len()) {
            *to = at[axis].checked_mul(self.chunk[axis]).ok_or("the position of a chunk exceeds 64 bits")?;
        }
        let position = &position[..at.len()];
        let (mut address, mut level) = (root, None);
        loop {
            let node = self.btree1_node(address, level, blocking)?;
            // the last entry whose key is not beyond
            let (mut low, mut high) = (0, self.count1(&node));
            while low < high {
                let middle = low.midpoint(high);
                let is_beyond = self.compare1(self.entry1(&node, middle), position) == Ordering::Greater;
                (low, high) = if is_beyond { (low, middle) } else { (middle + 1, high) };
            }
            let Some(last) = low.checked_sub(1) else { return Ok(None) };
            let entry = self.entry1(&node, last);
            if node[5] == 0 {
                let is_found = self.compare1(entry, position) == Ordering::Equal;
                return Ok(is_found.then(|| self.chunk1(entry)).flatten());
            }
            let Some(child) = self.child1(entry) else { return Ok(None) };
            (address, level) = (child, Some(node[5] - 1));
        }
    }

    /// Reads a node, which must be of this level unless it is the root. Its first eight bytes are there.
    fn btree1_node(&self, at: u64, level: Option<u8>, blocking: Blocking) -> Result<Arc<Vec<u8>>, FormatError> {
        const PART: &str = "B-tree of chunks";
        let (head, entry) = (self.head1() as u64, self.entry_bytes1() as u64);
        let length = |first: &[u8]| {
            let head_is_right = first.starts_with(b"TREE\x01") && first.get(5).is_some_and(|n| *n <= MAX_LEVELS);
            let entries = first.get(6..8).filter(|_| head_is_right).map(uint);
            let entries = entries.ok_or_else(|| format!("damaged {PART}: there is no node at address {at}"))?;
            Ok(head + entries * entry)
        };
        let node = self.file.sized_node(at, PART, blocking, (head + USUAL_ENTRIES * entry, length), |node| {
            let entries = || (0..self.count1(node)).map(|n| self.entry1(node, n));
            let is_sorted = entries().zip(entries().skip(1)).all(|(a, b)| self.key1(a).lt(self.key1(b)));
            if is_sorted {
                Ok(())
            } else {
                Err(format!("damaged {PART}: the node at address {at} is not sorted").into())
            }
        })?;
        if level.is_some_and(|level| level != node[5]) {
            return Err(format!("damaged {PART}: the node at address {at} has another level than it should").into());
        }
        Ok(node)
    }

    /// Bytes before the first entry of a node, and of an entry with what it leads to.
    fn head1(&self) -> usize {
        8 + 2 * self.file.widths.offset
    }

    fn entry_bytes1(&self) -> usize {
        self.key() + self.file.widths.offset
    }

    fn count1(&self, node: &[u8]) -> usize {
        node.len().saturating_sub(self.head1()) / self.entry_bytes1()
    }

    fn entry1<'a>(&self, node: &'a [u8], number: usize) -> &'a [u8] {
        let begin = self.head1() + number * self.entry_bytes1();
        node.get(begin..begin + self.entry_bytes1()).unwrap_or_default()
    }

    /// The position in an entry.
    fn key1<'a>(&self, entry: &'a [u8]) -> impl Iterator<Item = u64> + 'a {
        entry.get(8..).unwrap_or_default().chunks_exact(8).take(self.most.len()).map(uint)
    }

    fn compare1(&self, entry: &[u8], position: &[u64]) -> Ordering {
        self.key1(entry).cmp(position.iter().copied())
    }

    fn child1(&self, entry: &[u8]) -> Option<u64> {
        address(entry.get(self.key()..)?)
    }

    fn chunk1(&self, entry: &[u8]) -> Option<Chunk> {
        let (bytes, mask) = (uint(entry.get(..4)?), uint(entry.get(4..8)?) as u32);
        Some(Chunk { address: self.child1(entry)?, bytes, mask })
    }

    // B-trees of version 2

    fn in_btree2(&self, tree: &BTree2, at: &[u64], blocking: Blocking) -> Result<Option<Chunk>, FormatError> {
        let begin = tree.record - 8 * at.len();
        let compare =
            |record: &[u8]| record.get(begin..).unwrap_or_default().chunks_exact(8).map(uint).cmp(at.iter().copied());
        let found = tree.find(&self.file, blocking, compare)?;
        Ok(found.and_then(|record| self.element(record.get(..begin)?)))
    }

    // fixed arrays

    fn fixed_header(&self, at: u64) -> Result<Header, FormatError> {
        const PART: &str = "fixed array";
        let bytes = self.file.read(at, (12 + self.file.widths.length + self.file.widths.offset) as u64, PART)?;
        let mut fields = self.file.fields(PART, &bytes);
        fields.signature(b"FAHD", PART)?;
        fields.version(&[0], PART)?;
        check_sum_at_end(&bytes, PART)?;
        let (client, width, page_bits) = (fields.u8()?, usize::from(fields.u8()?), u32::from(fields.u8()?));
        let (count, block) = (fields.length()?, fields.address()?);
        if client != u8::from(self.has_filters) || !self.width_is_right(width) || page_bits > 32 {
            return Err(format!("damaged {PART}: its elements are none of chunks").into());
        }
        Ok(Header::Fixed(Elements { width, page_bits, count, block }))
    }

    fn in_fixed(&self, array: &Elements, number: u64, blocking: Blocking) -> Result<Option<Chunk>, FormatError> {
        const PART: &str = "block of a fixed array";
        let Some(block) = array.block else { return Ok(None) };
        if number >= array.count {
            return Err(format!("damaged fixed array: chunk {number} is not among its {} elements", array.count).into());
        }
        let head = 6 + self.file.widths.offset as u64;
        let page = 1u64 << array.page_bits;
        if array.count <= page {
            let length = head + array.count * array.width as u64 + 4;
            let node = self.signed((block, length), b"FADB", PART, blocking)?;
            return Ok(self.at(&node, head, number, array.width));
        }
        let pages = array.count.div_ceil(page);
        let head = head + pages.div_ceil(8);
        let prefix = self.signed((block, head + 4), b"FADB", PART, blocking)?;
        let which = number / page;
        if !bit(prefix.get(6 + self.file.widths.offset..), which) {
            return Ok(None);
        }
        let all = page * array.width as u64 + 4;
        let count = page.min(array.count - which * page);
        let at = (block + head + 4).checked_add(which.saturating_mul(all)).ok_or("a page has no address")?;
        let node = self.page((at, count * array.width as u64 + 4), PART, blocking)?;
        Ok(self.at(&node, 0, number % page, array.width))
    }

    /// Returns element `number` of those from byte `begin` of a node on.
    fn at(&self, node: &[u8], begin: u64, number: u64, width: usize) -> Option<Chunk> {
        let begin = begin as usize + number as usize * width;
        self.element(node.get(begin..begin + width)?)
    }

    /// Reads a node that begins with a signature.
    fn signed(
        &self,
        place: (u64, u64),
        signature: &[u8; 4],
        part: &'static str,
        blocking: Blocking,
    ) -> Result<Arc<Vec<u8>>, FormatError> {
        self.file.node(place, part, blocking, |node| {
            if !node.starts_with(signature) {
                return Err(format!("damaged {part}: there is none at address {}", place.0).into());
            }
            check_sum_at_end(node, part)
        })
    }

    fn page(&self, place: (u64, u64), part: &'static str, blocking: Blocking) -> Result<Arc<Vec<u8>>, FormatError> {
        self.file.node(place, part, blocking, |node| check_sum_at_end(node, part))
    }

    // extensible arrays

    fn extensible_header(&self, at: u64) -> Result<Header, FormatError> {
        const PART: &str = "extensible array";
        let (offset, length) = (self.file.widths.offset, self.file.widths.length);
        let bytes = self.file.read(at, (16 + 6 * length + offset) as u64, PART)?;
        let mut fields = self.file.fields(PART, &bytes);
        fields.signature(b"EAHD", PART)?;
        fields.version(&[0], PART)?;
        check_sum(&bytes, 12 + 6 * length + offset, PART)?;
        let client = fields.u8()?;
        let mut number = || fields.u8().map(u64::from);
        let (width, max_bits, in_first) = (number()? as usize, number()?, number()?);
        let (least, pointers, page_bits) = (number()?, number()?, number()? as u32);
        fields.take(4 * length)?;
        let count = fields.length()?;
        fields.length()?;
        let block = fields.address()?;
        let sizes_are_right = least.is_power_of_two() && pointers.is_power_of_two() && pointers >= 2;
        let bits_are_right = max_bits <= 64 && page_bits <= 32 && u64::from(least.max(1).ilog2()) <= max_bits;
        if client != u8::from(self.has_filters) || !self.width_is_right(width) || !sizes_are_right || !bits_are_right {
            return Err(format!("damaged {PART}: the sizes of its blocks make no sense").into());
        }
        let elements = Elements { width, page_bits, count, block };
        Ok(Header::Extensible(Extensible { elements, max_bits, in_first, least, pointers }))
    }

    fn in_extensible(&self, array: &Extensible, number: u64, blocking: Blocking) -> Result<Option<Chunk>, FormatError> {
        const PART: &str = ARRAY_BLOCK;
        let Some(first) = array.elements.block else { return Ok(None) };
        let (offset, width) = (self.file.widths.offset as u64, array.elements.width);
        let head = 6 + offset;
        let Shape { groups, direct_groups, direct, elements_end, length } = array.shape(offset);
        let node = self.signed((first, length), b"EAIB", PART, blocking)?;
        let Some(number) = number.checked_sub(array.in_first) else {
            return Ok(self.at(&node, head, number, width));
        };
        let group = u64::from((number / array.least + 1).ilog2());
        if group >= groups {
            return Ok(None);
        }
        // what is before the group: blocks and elements
        let (mut blocks_before, mut before) = (0, 0u64);
        for smaller in 0..group {
            let (blocks, elements) = array.size(smaller);
            blocks_before += blocks;
            before = before.saturating_add(blocks.saturating_mul(elements));
        }
        let (blocks, elements) = array.size(group);
        let number = number - before;
        let (block, within) = (number / elements, number % elements);
        let pointer = |node: &[u8], at: u64| address(node.get(at as usize..(at + offset) as usize)?);
        let block_offset = array.max_bits.div_ceil(8);
        if group < direct_groups {
            let found = pointer(&node, elements_end + (blocks_before + block) * offset);
            let Some(at) = found else { return Ok(None) };
            let head = head + block_offset;
            let node = self.signed((at, head + elements.saturating_mul(width as u64) + 4), b"EADB", PART, blocking)?;
            return Ok(self.at(&node, head, within, width));
        }
        let found = pointer(&node, elements_end + (direct + group - direct_groups) * offset);
        let Some(at) = found else { return Ok(None) };
        let (page, pages) = (1u64 << array.elements.page_bits, array.pages(elements));
        let (length, begin) = self.super_block(array, blocks, elements);
        let head = head + block_offset;
        let node = self.signed((at, length), b"EASB", PART, blocking)?;
        let Some(at) = pointer(&node, begin + block * offset) else { return Ok(None) };
        if pages == 0 {
            let node = self.signed((at, head + elements.saturating_mul(width as u64) + 4), b"EADB", PART, blocking)?;
            return Ok(self.at(&node, head, within, width));
        }
        let which = within / page;
        if !bit(node.get(head as usize..), block * pages + which) {
            return Ok(None);
        }
        let all = page * width as u64 + 4;
        let at = at.saturating_add(head + 4).saturating_add(which.saturating_mul(all));
        let node = self.page((at, all), PART, blocking)?;
        Ok(self.at(&node, 0, within % page, width))
    }

    /// Visits the positions of all elements in blocks that are there.
    fn visit_extensible(&self, array: &Extensible, visit: &mut dyn FnMut(&[u64]) -> bool) -> Result<(), FormatError> {
        let Some(first) = array.elements.block else { return Ok(()) };
        // there is not room for more
        let mut room = self.file.end / self.file.widths.offset as u64;
        let mut position = vec![0; self.most.len()];
        let mut goes_on = true;
        let mut run = |numbers: std::ops::Range<u64>| -> Result<bool, FormatError> {
            for number in numbers.start..numbers.end.min(array.elements.count) {
                room = room.checked_sub(1).ok_or("damaged extensible array: the file has no room for its elements")?;
                self.position(number, &mut position);
                goes_on = goes_on && visit(&position);
                if !goes_on {
                    break;
                }
            }
            Ok(goes_on)
        };
        let (shape, offset) = (array.shape(self.file.widths.offset as u64), self.file.widths.offset as u64);
        let node = self.signed((first, shape.length), b"EAIB", ARRAY_BLOCK, Blocking::Yes)?;
        let pointer = |node: &[u8], at: u64| address(node.get(at as usize..(at + offset) as usize)?);
        let (mut before, mut direct) = (array.in_first, 0);
        if !run(0..before)? {
            return Ok(());
        }
        for group in 0..shape.groups {
            let (blocks, elements) = array.size(group);
            let (node, begin) = if group < shape.direct_groups {
                direct += blocks;
                (Some(Arc::clone(&node)), shape.elements_end + (direct - blocks) * offset)
            } else {
                let at = pointer(&node, shape.elements_end + (shape.direct + group - shape.direct_groups) * offset);
                let (length, begin) = self.super_block(array, blocks, elements);
                let read = |at| self.signed((at, length), b"EASB", ARRAY_BLOCK, Blocking::Yes);
                (at.map(read).transpose()?, begin)
            };
            for block in 0..if node.is_some() { blocks } else { 0 } {
                let start = before.saturating_add(block.saturating_mul(elements));
                let is_there = node.as_ref().is_some_and(|node| pointer(node, begin + block * offset).is_some());
                if is_there && !run(start..start.saturating_add(elements))? {
                    return Ok(());
                }
            }
            before = before.saturating_add(blocks.saturating_mul(elements));
            if before >= array.elements.count {
                break;
            }
        }
        Ok(())
    }

    /// Returns the position of the chunk with this number in an extensible array.
    fn position(&self, mut number: u64, position: &mut [u64]) {
        let first = self.unlimited().unwrap_or(0);
        for axis in (0..position.len()).rev().filter(|axis| *axis != first) {
            let most = self.most[axis].max(1);
            (position[axis], number) = (number % most, number / most);
        }
        position[first] = number;
    }

    /// Returns the bytes of a block that leads to other blocks, and where in it their addresses begin.
    fn super_block(&self, array: &Extensible, blocks: u64, elements: u64) -> (u64, u64) {
        let offset = self.file.widths.offset as u64;
        let bitmap = blocks.saturating_mul(array.pages(elements).div_ceil(8));
        let begin = (6 + offset + array.max_bits.div_ceil(8)).saturating_add(bitmap);
        (begin.saturating_add(blocks.saturating_mul(offset) + 4), begin)
    }

    // all chunks

    /// Visits the positions of chunks that may be stored, each once, until `visit` returns `false`; `None` if these are all
    /// that there may ever be. May wait.
    pub(super) fn visit(&self, visit: &mut dyn FnMut(&[u64]) -> bool) -> Result<Option<()>, FormatError> {
        let Some(root) = self.address else { return Ok(Some(())) };
        let all = self.count.product().unwrap_or(u64::MAX);
        let each = if self.kind == IndexKind::Implicit { self.bytes } else { self.file.widths.offset as u64 };
        let room = self.file.end / each.max(1);
        match self.kind {
            IndexKind::ExtensibleArray => {
                let Header::Extensible(array) = self.header(root, Blocking::Yes)? else { return Ok(None) };
                return self.visit_extensible(array, visit).map(Some);
            }
            IndexKind::FixedArray | IndexKind::Implicit if all > room => {
                return Err(format!("the file has no room for an index of {all} chunks, or for these").into());
            }
            _ => {}
        }
        let mut last: Option<Vec<u64>> = None;
        let visit = &mut |at: &[u64]| {
            if last.as_deref().is_some_and(|last| last >= at) {
                return Err("damaged B-tree: its chunks are not sorted".into());
            }
            last = Some(at.to_vec());
            Ok(visit(at))
        };
        match self.kind {
            IndexKind::BTree1 => self.visit1(root, visit).map(Some),
            IndexKind::BTree2 => {
                let Header::BTree2(tree) = self.header(root, Blocking::Yes)? else { return Ok(None) };
                let begin = tree.record - 8 * self.most.len();
                let mut at = vec![0; self.most.len()];
                tree.visit(&self.file, &mut |record| {
                    let numbers = record.get(begin..).unwrap_or_default().chunks_exact(8).map(uint);
                    at.iter_mut().zip(numbers).for_each(|(to, number)| *to = number);
                    visit(&at)
                })?;
                Ok(Some(()))
            }
            _ => Ok(None),
        }
    }

    fn visit1(&self, root: u64, visit: &mut dyn FnMut(&[u64]) -> Result<bool, FormatError>) -> Result<(), FormatError> {
        let mut left = vec![(root, None)];
        // each node takes more bytes than this
        let mut nodes = self.file.end / 24;
        let mut at = vec![0; self.most.len()];
        while let Some((address, level)) = left.pop() {
            nodes = nodes.checked_sub(1).ok_or("damaged B-tree: it has more nodes than the file has room for")?;
            let node = self.btree1_node(address, level, Blocking::Yes)?;
            let entries = || (0..self.count1(&node)).map(|n| self.entry1(&node, n));
            if node[5] > 0 {
                let below = Some(node[5] - 1);
                left.extend(entries().rev().filter_map(|entry| Some((self.child1(entry)?, below))));
                continue;
            }
            for entry in entries() {
                for ((to, number), chunk) in at.iter_mut().zip(self.key1(entry)).zip(self.chunk.iter()) {
                    *to = number / chunk;
                }
                if !visit(&at)? {
                    return Ok(());
                }
            }
        }
        Ok(())
    }
}

/// Returns bit `number`, counted from the highest one of the first byte.
fn bit(bytes: Option<&[u8]>, number: u64) -> bool {
    let byte = bytes.and_then(|bytes| bytes.get(usize::try_from(number / 8).ok()?));
    byte.is_some_and(|byte| byte & (0x80 >> (number % 8)) != 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::hdf5::file::Widths;

    #[test]
    fn chunks_without_an_index_need_room_for_themselves_alone() {
        let (file, end) = File::with_part(&[], Widths { offset: 8, length: 8 });
        let mut chunks = Chunks {
            file: Arc::new(file),
            kind: IndexKind::Implicit,
            address: Some(0),
            chunk: [1].into(),
            count: [end].into(),
            most: [end].into(),
            bytes: 1,
            has_filters: false,
            header: OnceLock::new(),
        };
        assert_eq!(chunks.visit(&mut |_| true), Ok(None), "all may be there");
        chunks.count = [end + 1].into();
        assert!(chunks.visit(&mut |_| true).is_err());
    }
}
