//! The walk through the tree bits: which coefficients are coded, and from which level on.

use super::tree::{ChildKind, DimSet, Link, Node, PackedPosition, TreeLinks, factor, subsets};
use super::{ChunkPart, WaveletError, grow_to};
use crate::format::bytes::ByteReader;

/// The number of levels, from the finest on, whose entries the stream counts.
const COUNTED_LEVELS: usize = 16;
/// Nodes that are partitioned at a time.
const GROUP: usize = 64;

/// The counts before the tree: entries that are known after each level.
#[derive(Clone, Copy, Debug)]
pub(super) struct Counts {
    blocks: [i32; COUNTED_LEVELS],
    /// `None` if all steps of the tree are plain.
    singles: Option<[i32; COUNTED_LEVELS]>,
}

impl Counts {
    /// Reads the counts of blocks and, unless the tree is `all_plain`, those of singles.
    pub(crate) fn read(stream: &mut ByteReader<'_, ChunkPart>, all_plain: bool) -> Result<Self, WaveletError> {
        stream.enter(ChunkPart::Counts);
        Ok(Self { blocks: stream.i32s()?, singles: if all_plain { None } else { Some(stream.i32s()?) } })
    }

    /// Returns the numbers of blocks and of singles after a level; together they may have `most` coefficients.
    fn entries(&self, level: usize, block_len: usize, most: usize) -> Result<[usize; 2], WaveletError> {
        let count = |row: &[i32; COUNTED_LEVELS]| row.get(level).copied().unwrap_or(0);
        let (blocks, singles) = (count(&self.blocks), self.singles.as_ref().map_or(0, count));
        let sum = i64::from(blocks) * block_len as i64 + i64::from(singles);
        if blocks < 0 || singles < 0 || sum > most as i64 {
            return Err(WaveletError::Entries(sum, most));
        }
        Ok([blocks as usize, singles as usize])
    }
}

/// Fills the lists from the tree of all levels from `highest` down to `lowest`.
pub(super) fn walk(
    stream: &mut ByteReader<'_, ChunkPart>,
    links: &TreeLinks,
    counts: &Counts,
    highest: u8,
    lowest: u8,
    lists: &mut EntryLists,
) -> Result<(), WaveletError> {
    let bands = &links.bands;
    let repeats = if links.may_repeat { MAX_REPEATS } else { 1 };
    let nodes = if bands.steps > 1 { bands.volume(1) * repeats } else { 0 };
    let [blocks, singles] = counts.entries(usize::from(lowest), links.block_len(), bands.volume(0) * repeats)?;
    lists.insignificant.reset(nodes);
    lists.significant.reset(nodes);
    lists.blocks.reset(blocks);
    lists.singles.reset(singles);
    lists.levels.clear();
    lists.levels.resize(usize::from(highest) + 1, LevelFields::default());
    if bands.steps > 1 {
        let step = bands.steps - 1;
        for sector in subsets(bands.mask[step]) {
            let (from, to) = bands.sector(step, sector);
            for (z, y, x) in positions(from, to) {
                let _ = lists.insignificant.push(Node::new([x, y, z], sector, step));
            }
        }
    }
    let mut before = LevelFields::default();
    for level in (lowest..=highest).rev() {
        tree(stream, links, level, lists)?;
        check(counts, level, lists)?;
        stream.enter(ChunkPart::Values(level));
        let mut fields = |known: usize, before: usize| {
            let plane = stream.position();
            stream.take(known.div_ceil(8))?;
            let signs = stream.position();
            stream.take((known - before).div_ceil(8))?;
            Ok::<_, WaveletError>(BitField { known, plane, signs })
        };
        before.blocks = fields(links.block_len() * lists.blocks.length, before.blocks.known)?;
        if !links.all_plain {
            before.singles = fields(lists.singles.length, before.singles.known)?;
        }
        if let Some(level) = lists.levels.get_mut(usize::from(level)) {
            *level = before;
        }
    }
    Ok(())
}

/// Returns the positions of a box, X fastest.
fn positions(from: [usize; 3], to: [usize; 3]) -> impl Iterator<Item = (usize, usize, usize)> {
    (from[2]..to[2]).flat_map(move |z| (from[1]..to[1]).flat_map(move |y| (from[0]..to[0]).map(move |x| (z, y, x))))
}

/// Compares the lengths of the lists with the counts.
fn check(counts: &Counts, level: u8, lists: &EntryLists) -> Result<(), WaveletError> {
    let compare = |what, row: &[i32], found: usize| match row.get(usize::from(level)) {
        Some(announced) if usize::try_from(*announced) != Ok(found) => {
            Err(WaveletError::Counts { level, what, found, announced: i64::from(*announced) })
        }
        _ => Ok(()),
    };
    compare("blocks", &counts.blocks, lists.blocks.length)?;
    counts.singles.as_ref().map_or(Ok(()), |row| compare("singles", row, lists.singles.length))
}

/// Reads the tree bits of one level.
fn tree(
    stream: &mut ByteReader<'_, ChunkPart>,
    links: &TreeLinks,
    level: u8,
    lists: &mut EntryLists,
) -> Result<(), WaveletError> {
    stream.enter(ChunkPart::Tree(level));
    let EntryLists { insignificant, significant, blocks, singles, .. } = lists;
    let (mut a, mut b) = (0, 0);
    while a < insignificant.length || b < significant.length {
        let full = || WaveletError::TooMany(level);
        if a < insignificant.length {
            let bits = stream.take((insignificant.length - a).div_ceil(8))?;
            partition(insignificant, a, bits, |chosen| {
                if links.all_plain {
                    let mask = links.block;
                    blocks.extend(chosen, |node| doubled(node, mask))?;
                } else {
                    for node in chosen {
                        push_entries(links, *node, blocks, singles)?;
                    }
                }
                for node in chosen.iter().filter(|node| node.step() > 1) {
                    significant.push(*node)?;
                }
                Some(())
            })
            .ok_or_else(full)?;
            a = insignificant.length;
        }
        if b < significant.length {
            let bits = stream.take((significant.length - b).div_ceil(8))?;
            partition(significant, b, bits, |chosen| {
                for node in chosen {
                    push_children(links, *node, insignificant)?;
                }
                Some(())
            })
            .ok_or_else(full)?;
            b = significant.length;
        }
    }
    Ok(())
}

/// Removes the nodes whose bit is set from the list, beginning at index `from`, and passes them to `take` in order, in
/// groups.
#[inline]
fn partition(
    list: &mut List<Node>,
    from: usize,
    bits: &[u8],
    mut take: impl FnMut(&[Node]) -> Option<()>,
) -> Option<()> {
    let mut kept = from;
    let part = &mut list.items[..list.length];
    for (at, bytes) in (from..part.len()).step_by(GROUP).zip(bits.chunks(GROUP / 8)) {
        let count = GROUP.min(part.len() - at);
        let mut word = [0; 8];
        word[..bytes.len()].copy_from_slice(bytes);
        let word = u64::from_le_bytes(word) & (u64::MAX >> (GROUP - count));
        if word == 0 {
            if kept != at {
                part.copy_within(at..at + count, kept);
            }
            kept += count;
            continue;
        }
        let mut group = [Node::default(); GROUP];
        group[..count].copy_from_slice(&part[at..at + count]);
        let mut chosen = [Node::default(); GROUP];
        let mut number = 0;
        for (k, node) in group[..count].iter().enumerate() {
            let bit = (word >> k & 1) as usize;
            part[kept] = *node;
            kept += 1 - bit;
            chosen[number % GROUP] = *node;
            number += bit;
        }
        take(&chosen[..number])?;
    }
    list.length = kept;
    Some(())
}

/// Returns the position of a node's first child where coordinates double in the dimensions of `mask`.
#[inline]
fn doubled(node: Node, mask: DimSet) -> PackedPosition {
    let [x, y, z] = node.position();
    PackedPosition::new([x << (mask & 1), y << (mask >> 1 & 1), z << (mask >> 2 & 1)])
}

/// Appends a node's children to the lists of entries.
#[inline]
fn push_entries(
    links: &TreeLinks,
    node: Node,
    blocks: &mut List<PackedPosition>,
    singles: &mut List<PackedPosition>,
) -> Option<()> {
    let (step, sector) = (node.step(), node.sector());
    let mask = links.bands.mask[step];
    match links.sectors.get(step)?[sector].kind {
        ChildKind::None => {}
        ChildKind::Block => blocks.push(doubled(node, mask))?,
        ChildKind::Singles => {
            let [x, y, z] = doubled(node, mask).position();
            for o in std::iter::once(0).chain(subsets(mask)) {
                singles.push(PackedPosition::new([x + (o & 1), y + (o >> 1 & 1), z + (o >> 2 & 1)]))?;
            }
        }
        ChildKind::Linked { first, count } => {
            let block_len = links.block_len();
            for link in links.links.get(usize::from(first)..)?.get(..usize::from(count))? {
                let (from, to) = child_box(links, node, link);
                let sides: [usize; 3] = std::array::from_fn(|d| to[d] - from[d]);
                if sides.iter().product::<usize>() == block_len && (0..3).all(|d| to[d] <= link.limit[d]) {
                    blocks.push(PackedPosition::new(from))?;
                } else {
                    for (z, y, x) in positions(from, std::array::from_fn(|d| to[d].min(link.limit[d]))) {
                        singles.push(PackedPosition::new([x, y, z]))?;
                    }
                }
            }
        }
    }
    Some(())
}

/// Appends a node's children to a list of nodes.
#[inline]
fn push_children(links: &TreeLinks, node: Node, list: &mut List<Node>) -> Option<()> {
    let (step, sector) = (node.step(), node.sector());
    let mask = links.bands.mask[step];
    match links.sectors.get(step)?[sector].kind {
        ChildKind::None => {}
        ChildKind::Block | ChildKind::Singles => {
            let first = node.doubled(mask);
            if mask == 7 {
                let room = list.items.get_mut(list.length..)?.first_chunk_mut::<8>()?;
                for (o, child) in room.iter_mut().enumerate() {
                    *child = first.neighbour(o);
                }
                list.length += 8;
            } else {
                for o in std::iter::once(0).chain(subsets(mask)) {
                    list.push(first.neighbour(o))?;
                }
            }
        }
        ChildKind::Linked { first, count } => {
            for link in links.links.get(usize::from(first)..)?.get(..usize::from(count))? {
                let (from, to) = child_box(links, node, link);
                for (z, y, x) in positions(from, std::array::from_fn(|d| to[d].min(link.limit[d]))) {
                    list.push(Node::new([x, y, z], link.sector, step - 1))?;
                }
            }
        }
    }
    Some(())
}

/// Returns the box of a node's children in a link: its first position and the position after its last, which may be
/// beyond the limit.
#[inline]
fn child_box(links: &TreeLinks, node: Node, link: &Link) -> ([usize; 3], [usize; 3]) {
    let mask = links.bands.mask[node.step()];
    let origin = links.sectors[node.step()][node.sector()].origin;
    let position = node.position();
    let from = std::array::from_fn(|d| link.from[d] + position[d].saturating_sub(origin[d]) * factor(mask, d));
    let to = std::array::from_fn(|d| from[d] + factor(mask, d) + usize::from(position[d] == link.extra[d]));
    (from, to)
}

/// A faulty stream of an old version lists some nodes and entries twice. Lists may be longer by this factor.
pub(super) const MAX_REPEATS: usize = 2;

/// The bit fields of one level and one list of entries.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct BitField {
    /// Coefficients known after this level, each of which has a bit.
    pub known: usize,
    /// The byte of the stream at which the bit plane begins.
    pub plane: usize,
    /// The byte of the stream at which the signs begin of the coefficients that are new in this level.
    pub signs: usize,
}

/// The bit fields of one level, for both lists of entries.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct LevelFields {
    pub blocks: BitField,
    pub singles: BitField,
}

/// A list with a fixed capacity.
#[derive(Debug, Default)]
pub(super) struct List<T> {
    pub items: Vec<T>,
    pub length: usize,
}

impl<T: Copy + Default> List<T> {
    /// Empties the list and makes room for `most` items.
    pub(crate) fn reset(&mut self, most: usize) {
        self.length = 0;
        grow_to(&mut self.items, most);
    }

    /// Returns the items in the list.
    pub(crate) fn items(&self) -> &[T] {
        &self.items[..self.length]
    }

    /// Appends an item; `None` if the list is full.
    #[inline]
    pub(crate) fn push(&mut self, item: T) -> Option<()> {
        *self.items.get_mut(self.length)? = item;
        self.length += 1;
        Some(())
    }

    /// Appends `each(item)` for every item of `of`; `None` if they do not fit.
    #[inline]
    pub(crate) fn extend<U: Copy>(&mut self, of: &[U], each: impl Fn(U) -> T) -> Option<()> {
        let room = self.items.get_mut(self.length..)?.get_mut(..of.len())?;
        for (item, one) in room.iter_mut().zip(of) {
            *item = each(*one);
        }
        self.length += of.len();
        Some(())
    }
}

/// All lists of the walk. They are used again for the next chunk.
#[derive(Debug, Default)]
pub(super) struct EntryLists {
    /// Nodes whose children may become entries.
    pub insignificant: List<Node>,
    /// Nodes whose children are entries, and may become nodes.
    pub significant: List<Node>,
    /// Entries of several neighbouring coefficients: the position of the first.
    pub blocks: List<PackedPosition>,
    /// Entries of one coefficient.
    pub singles: List<PackedPosition>,
    /// The bit fields of each level, the finest first.
    pub levels: Vec<LevelFields>,
}

impl EntryLists {
    /// Returns the bytes of memory that the lists hold.
    pub(crate) fn bytes(&self) -> usize {
        let nodes = [&self.insignificant, &self.significant].map(|list| list.items.capacity()).iter().sum::<usize>();
        let positions = [&self.blocks, &self.singles].map(|list| list.items.capacity()).iter().sum::<usize>();
        4 * (nodes + positions) + self.levels.capacity() * size_of::<LevelFields>()
    }
}
