//! The walk through the tree bits: which coefficients are coded, and from which level on.

use super::grow_to;
use super::tree::{ChildKind, Link, Node, PackedPosition, TreeLinks, factor, subsets};
use crate::format::bytes::{ByteReader, PastEnd};

/// The number of levels, from the finest on, whose entries the stream counts.
pub(super) const COUNTED_LEVELS: usize = 16;
/// Nodes that are partitioned at a time.
const GROUP: usize = 64;

/// The counts before the tree, of blocks and of singles: entries that are known after each level.
pub(super) type Counts = [[i32; COUNTED_LEVELS]; 2];

/// Returns the numbers of blocks and of singles after a level; together they may have `most` coefficients.
fn entries(counts: &Counts, level: usize, block_len: usize, most: usize) -> Result<[usize; 2], String> {
    let [blocks, singles] = counts.map(|row| row.get(level).copied().unwrap_or(0));
    let sum = i64::from(blocks) * block_len as i64 + i64::from(singles);
    if blocks < 0 || singles < 0 || sum > most as i64 {
        return Err(format!("the counts announce {sum} entries of {most} samples"));
    }
    Ok([blocks as usize, singles as usize])
}

/// Fills the lists from the tree of all levels from `highest` down to `lowest`.
pub(super) fn walk(
    stream: &mut ByteReader<'_>,
    links: &TreeLinks,
    counts: &Counts,
    highest: u8,
    lowest: u8,
    lists: &mut EntryLists,
) -> Result<(), String> {
    let bands = &links.bands;
    let repeats = if links.may_repeat { MAX_REPEATS } else { 1 };
    let nodes = if bands.steps > 1 { bands.volume(1) * repeats } else { 0 };
    let [blocks, singles] = entries(counts, usize::from(lowest), links.block_len(), bands.volume(0) * repeats)?;
    lists.insignificant.reset(nodes)?;
    lists.significant.reset(nodes)?;
    lists.blocks.reset(blocks)?;
    lists.singles.reset(singles)?;
    for fields in &mut lists.fields {
        fields.clear();
        fields.resize(usize::from(highest) + 1, BitField::default());
    }
    if bands.steps > 1 {
        let step = bands.steps - 1;
        for sector in subsets(bands.mask[step]) {
            let (from, to) = bands.sector(step, sector);
            for (z, y, x) in positions(from, to) {
                let _ = lists.insignificant.push(Node::new([x, y, z], sector, step));
            }
        }
    }
    let mut before = [0; 2];
    for level in (lowest..=highest).rev() {
        let of_level = |error: PastEnd| format!("{} of level {level}", String::from(error));
        stream.enter("the tree");
        if !tree(stream, links, lists).map_err(of_level)? {
            return Err(format!("the tree of level {level} has more entries than the counts say"));
        }
        check(counts, level, lists)?;
        stream.enter("the values");
        let known = [links.block_len() * lists.blocks.length, lists.singles.length];
        for ((fields, known), before) in lists.fields.iter_mut().zip(known).zip(&mut before) {
            let plane = stream.position();
            stream.take(known.div_ceil(8)).map_err(of_level)?;
            let signs = stream.position();
            stream.take((known - *before).div_ceil(8)).map_err(of_level)?;
            fields[usize::from(level)] = BitField { known, plane, signs };
            *before = known;
        }
    }
    Ok(())
}

/// Returns the positions of a box, X fastest.
fn positions(from: [usize; 3], to: [usize; 3]) -> impl Iterator<Item = (usize, usize, usize)> {
    (from[2]..to[2]).flat_map(move |z| (from[1]..to[1]).flat_map(move |y| (from[0]..to[0]).map(move |x| (z, y, x))))
}

/// Compares the lengths of the lists with the counts.
fn check(counts: &Counts, level: u8, lists: &EntryLists) -> Result<(), String> {
    let found = [("blocks", lists.blocks.length), ("singles", lists.singles.length)];
    for (row, (what, found)) in counts.iter().zip(found) {
        let announced = row.get(usize::from(level)).filter(|announced| usize::try_from(**announced) != Ok(found));
        if let Some(announced) = announced {
            return Err(format!("the tree of level {level} has {found} {what}, the counts say {announced}"));
        }
    }
    Ok(())
}

/// Reads the tree bits of one level; `false` if the lists are too short.
fn tree(stream: &mut ByteReader<'_>, links: &TreeLinks, lists: &mut EntryLists) -> Result<bool, PastEnd> {
    let EntryLists { insignificant, significant, blocks, singles, .. } = lists;
    let (mut a, mut b) = (0, 0);
    while a < insignificant.length || b < significant.length {
        if a < insignificant.length {
            let bits = stream.take((insignificant.length - a).div_ceil(8))?;
            let done = partition(insignificant, a, bits, |chosen| {
                if links.all_plain {
                    let mask = links.block;
                    blocks.extend(chosen, |node| node.first_child(mask))?;
                } else {
                    for node in chosen {
                        push_entries(links, *node, blocks, singles)?;
                    }
                }
                for node in chosen.iter().filter(|node| node.step() > 1) {
                    significant.push(*node)?;
                }
                Some(())
            });
            if done.is_none() {
                return Ok(false);
            }
            a = insignificant.length;
        }
        if b < significant.length {
            let bits = stream.take((significant.length - b).div_ceil(8))?;
            let done = partition(significant, b, bits, |chosen| {
                for node in chosen {
                    push_children(links, *node, insignificant)?;
                }
                Some(())
            });
            if done.is_none() {
                return Ok(false);
            }
            b = significant.length;
        }
    }
    Ok(true)
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
        ChildKind::Block => blocks.push(node.first_child(mask))?,
        ChildKind::Singles => {
            let [x, y, z] = node.first_child(mask).position();
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

/// A list with a fixed capacity.
#[derive(Debug, Default)]
pub(super) struct List<T> {
    pub items: Vec<T>,
    pub length: usize,
}

impl<T: Copy + Default> List<T> {
    /// Empties the list and makes room for `most` items, and no more: whether a damaged chunk is an error must not depend
    /// on the chunks that were decoded before it.
    pub(crate) fn reset(&mut self, most: usize) -> Result<(), String> {
        self.length = 0;
        self.items.truncate(most);
        grow_to(&mut self.items, most)
    }

    pub(crate) fn items(&self) -> &[T] {
        &self.items[..self.length]
    }

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
    /// The bit fields of blocks and of singles in each level, the finest first.
    pub fields: [Vec<BitField>; 2],
}

impl EntryLists {
    pub(crate) fn bytes(&self) -> usize {
        let nodes = [&self.insignificant, &self.significant].map(|list| list.items.capacity()).iter().sum::<usize>();
        let positions = [&self.blocks, &self.singles].map(|list| list.items.capacity()).iter().sum::<usize>();
        let fields = self.fields.each_ref().map(Vec::capacity).iter().sum::<usize>();
        4 * (nodes + positions) + fields * size_of::<BitField>()
    }
}
