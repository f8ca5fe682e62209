//! B-trees of version 2: records in order, found or visited.

use std::cmp::Ordering;
use std::sync::Arc;

use super::file::{File, address, check_sum_at_end, uint};
use super::heap::width_of;
use crate::format::FormatError;
use crate::source::Blocking;

const PART: &str = "B-tree";
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
        let bytes = file.read(at, (22 + offset + length) as u64, PART)?;
        let mut fields = file.fields(PART, &bytes);
        fields.signature(b"BTHD", PART)?;
        fields.version(&[0], PART)?;
        check_sum_at_end(&bytes, PART)?;
        let kind = fields.u8()?;
        let (node, record, depth) = (u64::from(fields.u32()?), fields.u16()?, fields.u16()?);
        fields.take(2)?;
        let root = fields.address()?;
        let count = u64::from(fields.u16()?);
        let damaged = || format!("damaged {PART}: nodes of {node} bytes with records of {record}, {depth} levels");
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
            return Err(format!("damaged {PART}: a node has {records} records").into());
        }
        file.node((at, length), PART, blocking, |node| {
            let expected = if level == 0 { b"BTLF" } else { b"BTIN" };
            if !node.starts_with(expected) || node.get(5) != Some(&self.kind) {
                return Err(format!("damaged {PART}: there is no node at address {at}").into());
            }
            check_sum_at_end(node, PART)
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
