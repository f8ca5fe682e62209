//! Where metadata are stored: B-trees of version 2, whose records are found or visited in order; fractal heaps, whose
//! objects have identifiers; global collections of values of variable length; and local heaps, which hold names.

use std::cmp::Ordering;
use std::sync::Arc;

use super::file::{File, MAX_PART, address, check_sum_at_end, uint, width_of};
use crate::format::FormatError;
use crate::source::Blocking;

const FRACTAL: &str = "fractal heap";
/// Bytes of the longest object that is read.
const MAX_OBJECT: u64 = 1 << 20;
/// Levels of blocks that hold blocks: each is longer than all those below it.
const MAX_LEVELS: usize = 64;

/// A heap whose blocks are a table with rows of growing sizes.
pub(super) struct FractalHeap {
    /// Bits of offsets in the heap.
    bits: usize,
    /// Bytes of an object's length in its identifier.
    length_width: usize,
    id_length: usize,
    /// Blocks in a row, and the bytes of one of the first two rows.
    width: u64,
    start: u64,
    /// Bytes of the longest block that holds objects itself.
    max_direct: u64,
    root: Option<u64>,
    /// The rows of the root, 0 if it holds objects itself.
    rows: u64,
    /// The tree of the objects that are too long for blocks.
    huge: Option<u64>,
}

impl FractalHeap {
    pub(super) fn open(file: &File, address: u64) -> Result<Self, FormatError> {
        let (offset, length) = (file.widths.offset, file.widths.length);
        let bytes = file.read(address, 26 + (3 * offset + 12 * length) as u64, FRACTAL);
        // a heap with filters has a longer header
        let mut fields = file.fields(FRACTAL, bytes.as_deref().map_err(Clone::clone)?);
        fields.signature(b"FRHP", FRACTAL)?;
        fields.version(&[0], FRACTAL)?;
        let id_length = usize::from(fields.u16()?);
        let filters = fields.u16()?;
        fields.u8()?;
        let max_managed = u64::from(fields.u32()?);
        fields.length()?;
        let huge = fields.address()?;
        fields.take(length + offset + 8 * length)?;
        let (width, start, max_direct) = (u64::from(fields.u16()?), fields.length()?, fields.length()?);
        let (bits, _) = (usize::from(fields.u16()?), fields.u16()?);
        let (root, rows) = (fields.address()?, u64::from(fields.u16()?));
        if filters > 0 {
            return Err(FormatError::Unsupported("a heap of its metadata has filters, which is not supported".into()));
        }
        check_sum_at_end(bytes.as_deref().map_err(Clone::clone)?, FRACTAL)?;
        let sizes_are_right = start.is_power_of_two() && max_direct.is_power_of_two() && start <= max_direct;
        if !sizes_are_right || !width.is_power_of_two() || bits > 64 || bits == 0 || max_direct > 1 << 40 {
            return Err(format!("damaged {FRACTAL}: the sizes of its blocks make no sense").into());
        }
        let direct_width = (max_direct.ilog2() as usize).div_ceil(8);
        let length_width = direct_width.min(width_of(max_managed));
        Ok(Self { bits, length_width, id_length, width, start, max_direct, root, rows, huge })
    }

    /// Bytes of an offset in the heap.
    fn offset_width(&self) -> usize {
        self.bits.div_ceil(8)
    }

    /// Reads the object with an identifier.
    pub(super) fn object(&self, file: &File, id: &[u8]) -> Result<Vec<u8>, FormatError> {
        let mut fields = file.fields("identifier in a heap", id);
        let first = fields.u8()?;
        if first >> 6 != 0 {
            return Err("an identifier in a heap has another version".into());
        }
        match first >> 4 & 3 {
            0 => {
                let offset = fields.uint(self.offset_width())?;
                let length = fields.uint(self.length_width)?;
                self.managed(file, offset, length)
            }
            1 => self.huge(file, fields.rest()),
            2 if self.id_length <= 18 => Ok(fields.take(usize::from(first & 15) + 1)?.to_vec()),
            2 => {
                let length = usize::from(first & 15) << 8 | usize::from(fields.u8()?);
                Ok(fields.take(length + 1)?.to_vec())
            }
            _ => Err("an identifier in a heap is of another kind".into()),
        }
    }

    fn huge(&self, file: &File, rest: &[u8]) -> Result<Vec<u8>, FormatError> {
        let (offset, length) = (file.widths.offset, file.widths.length);
        let found = if self.id_length > offset + length {
            rest.split_at_checked(offset).map(|(at, rest)| (at.to_vec(), uint(&rest[..rest.len().min(length)])))
        } else {
            let key = uint(&rest[..rest.len().min(length)]);
            let mut found = None;
            BTree2::open(file, self.huge.ok_or("a heap has no tree of long objects")?)?.visit(file, &mut |record| {
                let mut fields = file.fields("record of a long object", record);
                let at = fields.take(offset)?;
                let (bytes, id) = (fields.length()?, fields.length()?);
                if id == key {
                    found = Some((at.to_vec(), bytes));
                }
                Ok(found.is_none())
            })?;
            found
        };
        let found = found.and_then(|(at, length)| Some((address(&at)?, length)));
        let (at, length) = found.ok_or("an object of a heap is not in its tree")?;
        if length > MAX_OBJECT {
            return Err(format!("an object of a heap has {length} bytes").into());
        }
        file.read(at, length, "object of a heap")
    }

    /// Bytes of a block in a row.
    fn size(&self, row: u64) -> Option<u64> {
        if row == 0 { Some(self.start) } else { self.start.checked_mul(1u64.checked_shl(row as u32 - 1)?) }
    }

    /// The number of rows whose blocks hold objects themselves.
    fn direct_rows(&self) -> u64 {
        u64::from(self.max_direct.ilog2() - self.start.ilog2()) + 2
    }

    /// Reads an object in a block, at an offset in the heap.
    fn managed(&self, file: &File, offset: u64, length: u64) -> Result<Vec<u8>, FormatError> {
        let outside = || format!("an object at offset {offset} is in no block of its heap");
        let mut block = self.root.ok_or_else(outside)?;
        let (mut within, mut rows) = (offset, self.rows);
        let mut size = self.start;
        for _ in 0..MAX_LEVELS {
            if rows == 0 {
                if within.checked_add(length).is_none_or(|end| end > size) || length > MAX_PART {
                    return Err(outside().into());
                }
                return file.read(block.saturating_add(within), length, "object of a heap");
            }
            // the row of the block, and what comes before it
            let (mut row, mut before) = (0, 0u64);
            let (bytes, column) = loop {
                let bytes = self.size(row).filter(|_| row < rows).ok_or_else(outside)?;
                let all = bytes.checked_mul(self.width).ok_or_else(outside)?;
                if within - before < all {
                    break (bytes, (within - before) / bytes);
                }
                before = before.checked_add(all).ok_or_else(outside)?;
                row += 1;
            };
            let head = 5 + file.widths.offset + self.offset_width();
            let entry = (row * self.width + column) * file.widths.offset as u64 + head as u64;
            let found = file.read(block.saturating_add(entry), file.widths.offset as u64, "block of a heap")?;
            block = address(&found).ok_or_else(outside)?;
            within = within - before - column * bytes;
            (size, rows) = if row < self.direct_rows() {
                (bytes, 0)
            } else {
                // a block that holds blocks has as many rows as its bytes need
                (bytes, u64::from(bytes.ilog2()).saturating_sub(u64::from((self.start * self.width).ilog2())) + 1)
            };
        }
        Err(format!("damaged {FRACTAL}: its blocks lead in a circle").into())
    }
}

/// Reads a value of a global collection: what the address and the number that stand in an element lead to.
pub(super) fn global_value(file: &File, collection: u64, number: u32) -> Result<Vec<u8>, FormatError> {
    const PART: &str = "global heap";
    // of the collection and of each object, up to a multiple of 8 bytes
    let head = (8 + file.widths.length).next_multiple_of(8);
    file.count_named(0)?;
    let bytes = file.read_sized(collection, PART, |fields| {
        fields.signature(b"GCOL", PART)?;
        fields.take(4)?;
        Ok(fields.length()?)
    })?;
    file.count_named(bytes.len())?;
    let mut fields = file.fields(PART, &bytes);
    fields.take(head)?;
    while fields.rest().len() >= head {
        let found = u32::from(fields.u16()?);
        fields.take(6)?;
        let length = fields.length()?;
        fields.take(head - 8 - file.widths.length)?;
        if found == 0 {
            break;
        }
        let length = usize::try_from(length).map_err(|_| "an object of the global heap is too long")?;
        if found == number {
            return Ok(fields.take(length)?.to_vec());
        }
        let rest = fields.rest().len();
        fields.take(length.min(rest).next_multiple_of(8).min(rest))?;
    }
    Err(format!("the global heap at address {collection} has no object {number}").into())
}

/// The names of a group.
pub(super) struct LocalHeap(Vec<u8>);

impl LocalHeap {
    pub(super) fn read(file: &File, at: u64) -> Result<Self, FormatError> {
        const PART: &str = "local heap";
        let (offset, length) = (file.widths.offset, file.widths.length);
        let bytes = file.read(at, (8 + 2 * length + offset) as u64, PART)?;
        let mut fields = file.fields(PART, &bytes);
        fields.signature(b"HEAP", PART)?;
        fields.take(4)?;
        let size = fields.length()?;
        fields.length()?;
        Ok(Self(file.read(fields.defined("a local heap")?, size, PART)?))
    }

    /// Returns the text at an offset.
    pub(super) fn text(&self, offset: u64) -> Result<&[u8], FormatError> {
        let rest = usize::try_from(offset).ok().and_then(|offset| self.0.get(offset..));
        let rest = rest.ok_or_else(|| format!("a name at offset {offset} is outside of its heap"))?;
        let length = rest.iter().position(|byte| *byte == 0).ok_or("a name in a local heap has no end")?;
        Ok(&rest[..length])
    }
}

const TREE: &str = "B-tree";
/// Bytes of a node besides records and children: signature, version, type and checksum.
const OVERHEAD: u64 = 10;
/// The most levels: a tree of two children a node has fewer.
const MAX_DEPTH: u16 = 40;

pub(super) struct BTree2 {
    /// Bytes of a node and of a record.
    node: u64,
    pub record: usize,
    pub kind: u8,
    depth: u16,
    root: Option<(u64, u64)>,
    /// Bytes of the number of records of a child, and, for each level, of the records of all below a child.
    count_width: usize,
    total_widths: Vec<usize>,
}

/// A node to look into: its address, its records and its level, which is 0 for leaves.
type At = (u64, u64, u16);

impl BTree2 {
    /// Reads the header of a tree. May wait.
    pub(super) fn open(file: &File, at: u64) -> Result<Self, FormatError> {
        let (offset, length) = (file.widths.offset, file.widths.length);
        let bytes = file.read(at, (22 + offset + length) as u64, TREE)?;
        let mut fields = file.fields(TREE, &bytes);
        fields.signature(b"BTHD", TREE)?;
        fields.version(&[0], TREE)?;
        check_sum_at_end(&bytes, TREE)?;
        let kind = fields.u8()?;
        let (node, record, depth) = (u64::from(fields.u32()?), fields.u16()?, fields.u16()?);
        fields.take(2)?;
        let root = fields.address()?;
        let count = u64::from(fields.u16()?);
        let damaged = || format!("damaged {TREE}: nodes of {node} bytes with records of {record}, {depth} levels");
        let leaf = node.checked_sub(OVERHEAD).and_then(|bytes| bytes.checked_div(record.into())).filter(|n| *n > 0);
        let most = leaf.filter(|_| depth <= MAX_DEPTH).ok_or_else(damaged)?;
        let count_width = width_of(most);
        let (mut total_widths, mut total) = (vec![0], most);
        for level in 1..=usize::from(depth) {
            let child = (offset + count_width + total_widths[level - 1]) as u64;
            let most = node.saturating_sub(OVERHEAD + child) / (u64::from(record) + child);
            total = most.saturating_add(1).saturating_mul(total).saturating_add(most);
            total_widths.push(width_of(total));
        }
        let root = root.filter(|_| count > 0).map(|root| (root, count));
        Ok(Self { node, record: record.into(), kind, depth, root, count_width, total_widths })
    }

    /// Bytes of what leads to a child of a node at this level.
    fn child(&self, file: &File, level: u16) -> usize {
        let total = usize::from(level).checked_sub(1).and_then(|below| self.total_widths.get(below));
        file.widths.offset + self.count_width + total.copied().unwrap_or(0)
    }

    fn read(&self, file: &File, (at, records, level): At, blocking: Blocking) -> Result<Arc<Vec<u8>>, FormatError> {
        let children = if level == 0 { 0 } else { (records + 1) * self.child(file, level) as u64 };
        let length = records * self.record as u64 + children + OVERHEAD;
        if length > self.node {
            return Err(format!("damaged {TREE}: a node has {records} records").into());
        }
        file.node((at, length), TREE, blocking, |node| {
            let expected = if level == 0 { b"BTLF" } else { b"BTIN" };
            if !node.starts_with(expected) || node.get(5) != Some(&self.kind) {
                return Err(format!("damaged {TREE}: there is no node at address {at}").into());
            }
            check_sum_at_end(node, TREE)
        })
    }

    fn records<'a>(&self, node: &'a [u8], count: u64) -> &'a [u8] {
        node.get(6..6 + count as usize * self.record).unwrap_or_default()
    }

    /// Returns child `number` of a node.
    fn child_of(&self, file: &File, node: &[u8], (_, records, level): At, number: u64) -> Result<At, FormatError> {
        let begin = 6 + records as usize * self.record + number as usize * self.child(file, level);
        let entry = node.get(begin..).and_then(|rest| rest.split_at_checked(file.widths.offset));
        let (at, rest) = entry.ok_or("damaged B-tree: a node has too few children")?;
        let at = address(at).ok_or("damaged B-tree: a child has no address")?;
        let count = rest.get(..self.count_width).map_or(0, uint);
        Ok((at, count, level - 1))
    }

    /// Returns the record that `compare` finds equal; it says how a record is to what is looked for.
    pub(super) fn find(
        &self,
        file: &File,
        blocking: Blocking,
        compare: impl Fn(&[u8]) -> Ordering,
    ) -> Result<Option<Vec<u8>>, FormatError> {
        let Some((root, count)) = self.root else { return Ok(None) };
        let mut at = (root, count, self.depth);
        loop {
            let node = self.read(file, at, blocking)?;
            let records = self.records(&node, at.1);
            let record = |n: u64| records.get(n as usize * self.record..).map_or(&[][..], |r| &r[..self.record]);
            let (mut low, mut high) = (0, at.1);
            while low < high {
                let middle = low.midpoint(high);
                match compare(record(middle)) {
                    Ordering::Less => low = middle + 1,
                    Ordering::Greater => high = middle,
                    Ordering::Equal => return Ok(Some(record(middle).to_vec())),
                }
            }
            if at.2 == 0 {
                return Ok(None);
            }
            at = self.child_of(file, &node, at, low)?;
        }
    }

    /// Visits the records in their order, until `visit` returns `false`. May wait.
    pub(super) fn visit(
        &self,
        file: &File,
        visit: &mut dyn FnMut(&[u8]) -> Result<bool, FormatError>,
    ) -> Result<(), FormatError> {
        let Some((root, count)) = self.root else { return Ok(()) };
        // each node takes more bytes than this
        let mut nodes = file.end / OVERHEAD;
        let mut enter = |at: At| -> Result<_, FormatError> {
            nodes = nodes.checked_sub(1).ok_or("damaged B-tree: it has more nodes than the file has room for")?;
            Ok((at, self.read(file, at, Blocking::Yes)?, 0))
        };
        // nodes from the root down, and what is next in each: children and records in turn, of leaves records alone
        let mut path = vec![enter((root, count, self.depth))?];
        while let Some((at, node, next)) = path.last_mut() {
            let (at, step) = (*at, *next);
            *next += 1;
            let record = if at.2 == 0 { Some(step) } else { (step % 2 == 1).then_some(step / 2) };
            match record {
                Some(number) if number < at.1 => {
                    let records = self.records(node, at.1);
                    let begin = number as usize * self.record;
                    if !visit(records.get(begin..begin + self.record).unwrap_or_default())? {
                        return Ok(());
                    }
                }
                None if step / 2 <= at.1 => {
                    let child = self.child_of(file, node, at, step / 2)?;
                    path.push(enter(child)?);
                }
                _ => drop(path.pop()),
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::hdf5::file::Widths;

    #[test]
    fn heads_of_global_values_end_at_multiples_of_eight_bytes() {
        for length in [2, 4, 8] {
            let mut part = b"GCOL\x01\0\0\0\x50\0\0\0\0\0\0\0".to_vec();
            part.extend(b"\x01\0\x01\0\0\0\0\0\x03\0\0\0\0\0\0\0one\0\0\0\0\0");
            part.extend(b"\x02\0\x01\0\0\0\0\0\x05\0\0\0\0\0\0\0other\0\0\0");
            part.extend([0; 16]);
            let (file, at) = File::with_part(&part, Widths { offset: 8, length });
            assert_eq!(global_value(&file, at, 1).unwrap(), b"one", "{length}");
            assert_eq!(global_value(&file, at, 2).unwrap(), b"other", "{length}");
            assert!(global_value(&file, at, 3).is_err());
        }
    }
}
