//! The walk through the tree: which coefficients are coded, and from which level on.

use super::bands::{Set, subsets};
use super::cursor::Cursor;
use super::error::{Part, WaveletError};
use super::links::{Kind, Link, SymlinkPolicy, factor};
use super::node::{LayerRef, Node};

/// Levels of which the stream counts the entries.
const COUNTED: usize = 16;
/// How many times as many nodes and entries there may be in a faulty stream of an old version, which makes some twice.
pub(super) const TWICE: usize = 2;
/// The most elements that are sifted at a time.
const GROUP: usize = 64;

/// The bit fields of one level and one list of entries.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Field {
    /// Coefficients known after this level, each of which has a bit.
    pub known: usize,
    /// Where the bit plane begins in the stream.
    pub plane: usize,
    /// Where the signs of those begin that were not known before.
    pub signs: usize,
}

/// The bit fields of one level: blocks, singles.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Level {
    /// Of the blocks.
    pub blocks: Field,
    /// Of the singles.
    pub singles: Field,
}

/// A list of fixed room.
#[derive(Debug, Default)]
pub(super) struct List<T> {
    items: Vec<T>,
    length: usize,
}

impl<T: Copy + Default> List<T> {
    /// Empties it, and makes room for `most` items.
    pub fn reset(&mut self, most: usize) {
        self.length = 0;
        super::scratch::room(&mut self.items, most);
    }

    /// What is in it.
    pub fn items(&self) -> &[T] {
        &self.items[..self.length]
    }

    /// Appends an item; `None` if there is no room.
    #[inline]
    fn push(&mut self, item: T) -> Option<()> {
        *self.items.get_mut(self.length)? = item;
        self.length += 1;
        Some(())
    }

    /// Appends what `each` makes of every one of `of`.
    #[inline]
    fn extend<U: Copy>(&mut self, of: &[U], each: impl Fn(U) -> T) -> Option<()> {
        let room = self.items.get_mut(self.length..)?.get_mut(..of.len())?;
        for (item, one) in room.iter_mut().zip(of) {
            *item = each(*one);
        }
        self.length += of.len();
        Some(())
    }
}

/// The lists of the walk, which are used again.
#[derive(Debug, Default)]
pub(super) struct Lists {
    /// Nodes whose children may become entries.
    insignificant: List<Node>,
    /// Nodes whose children are entries, and may become nodes.
    significant: List<Node>,
    /// Entries of several coefficients.
    pub blocks: List<LayerRef>,
    /// Entries of one.
    pub singles: List<LayerRef>,
    /// What each level has, the finest first.
    pub levels: Vec<Level>,
}

impl Lists {
    /// Bytes that they have room for.
    pub fn bytes(&self) -> usize {
        let items = [&self.insignificant, &self.significant].map(|list| list.items.capacity()).iter().sum::<usize>();
        let places = [&self.blocks, &self.singles].map(|list| list.items.capacity()).iter().sum::<usize>();
        4 * (items + places) + self.levels.capacity() * size_of::<Level>()
    }
}

/// What the stream says in front of the tree: entries known at a level.
#[derive(Clone, Copy, Debug)]
pub(super) struct Counts {
    blocks: [i32; COUNTED],
    /// `None` if the tree is all-plain.
    singles: Option<[i32; COUNTED]>,
}

impl Counts {
    /// Reads parts A and B.
    pub fn read(stream: &mut Cursor<'_>, all_plain: bool) -> Result<Self, WaveletError> {
        let mut row = || {
            let mut row = [0; COUNTED];
            for count in &mut row {
                *count = stream.i32(Part::Counts)?;
            }
            Ok(row)
        };
        Ok(Self { blocks: row()?, singles: if all_plain { None } else { Some(row()?) } })
    }

    /// Entries after a level, blocks and singles, of a picture that takes `most` coefficients.
    fn entries(&self, level: usize, ideal: usize, most: usize) -> Result<[usize; 2], WaveletError> {
        let count = |row: &[i32; COUNTED]| row.get(level).copied().unwrap_or(0);
        let (blocks, singles) = (count(&self.blocks), self.singles.as_ref().map_or(0, count));
        let sum = i64::from(blocks) * ideal as i64 + i64::from(singles);
        if blocks < 0 || singles < 0 || sum > most as i64 {
            return Err(WaveletError::Entries(sum, most));
        }
        Ok([blocks as usize, singles as usize])
    }
}

/// Fills the lists from the tree of all levels from `highest` down to `lowest`.
pub(super) fn walk(
    stream: &mut Cursor<'_>,
    links: &SymlinkPolicy,
    counts: &Counts,
    highest: u8,
    lowest: u8,
    lists: &mut Lists,
) -> Result<(), WaveletError> {
    let bands = &links.bands;
    let twice = if links.twice { TWICE } else { 1 };
    let nodes = if bands.steps > 1 { bands.volume(1) * twice } else { 0 };
    let [blocks, singles] = counts.entries(usize::from(lowest), links.ideal(), bands.volume(0) * twice)?;
    lists.insignificant.reset(nodes);
    lists.significant.reset(nodes);
    lists.blocks.reset(blocks);
    lists.singles.reset(singles);
    lists.levels.clear();
    lists.levels.resize(usize::from(highest) + 1, Level::default());
    if bands.steps > 1 {
        let step = bands.steps - 1;
        for sector in subsets(bands.mask[step]) {
            let (from, to) = bands.sector(step, sector);
            for (z, y, x) in positions(from, to) {
                let _ = lists.insignificant.push(Node::new([x, y, z], sector, step));
            }
        }
    }
    let mut before = Level::default();
    for level in (lowest..=highest).rev() {
        tree(stream, links, level, lists)?;
        check(counts, level, lists)?;
        let part = Part::Values(level);
        let mut fields = |known: usize, before: usize| {
            let plane = stream.at();
            stream.take(known.div_ceil(8), part)?;
            let signs = stream.at();
            stream.take((known - before).div_ceil(8), part)?;
            Ok(Field { known, plane, signs })
        };
        before.blocks = fields(links.ideal() * lists.blocks.length, before.blocks.known)?;
        if !links.all_plain {
            before.singles = fields(lists.singles.length, before.singles.known)?;
        }
        if let Some(level) = lists.levels.get_mut(usize::from(level)) {
            *level = before;
        }
    }
    Ok(())
}

/// The positions of a box, X fastest.
fn positions(from: [usize; 3], to: [usize; 3]) -> impl Iterator<Item = (usize, usize, usize)> {
    (from[2]..to[2]).flat_map(move |z| (from[1]..to[1]).flat_map(move |y| (from[0]..to[0]).map(move |x| (z, y, x))))
}

/// Compares the lists with what the stream says of them.
fn check(counts: &Counts, level: u8, lists: &Lists) -> Result<(), WaveletError> {
    let compare = |what, row: &[i32], found: usize| match row.get(usize::from(level)) {
        Some(said) if usize::try_from(*said) != Ok(found) => {
            Err(WaveletError::Counts { level, what, found, said: i64::from(*said) })
        }
        _ => Ok(()),
    };
    compare("blocks", &counts.blocks, lists.blocks.length)?;
    counts.singles.as_ref().map_or(Ok(()), |row| compare("singles", row, lists.singles.length))
}

/// The tree of one level.
fn tree(stream: &mut Cursor<'_>, links: &SymlinkPolicy, level: u8, lists: &mut Lists) -> Result<(), WaveletError> {
    let part = Part::Tree(level);
    let Lists { insignificant, significant, blocks, singles, .. } = lists;
    let (mut a, mut b) = (0, 0);
    while a < insignificant.length || b < significant.length {
        let full = || WaveletError::TooMany(level);
        if a < insignificant.length {
            let bits = stream.take((insignificant.length - a).div_ceil(8), part)?;
            sift(insignificant, a, bits, |chosen| {
                if links.all_plain {
                    let mask = links.block;
                    blocks.extend(chosen, |node| doubled(node, mask))?;
                } else {
                    for node in chosen {
                        emit(links, *node, blocks, singles)?;
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
            let bits = stream.take((significant.length - b).div_ceil(8), part)?;
            sift(significant, b, bits, |chosen| {
                for node in chosen {
                    children(links, *node, insignificant)?;
                }
                Some(())
            })
            .ok_or_else(full)?;
            b = significant.length;
        }
    }
    Ok(())
}

/// Takes those nodes out of the list's part from `from` on whose bit is set, and hands them on in order, some at a time.
#[inline]
fn sift(list: &mut List<Node>, from: usize, bits: &[u8], mut take: impl FnMut(&[Node]) -> Option<()>) -> Option<()> {
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

/// The place of a node's first child where positions double in the dimensions of `mask`.
#[inline]
fn doubled(node: Node, mask: Set) -> LayerRef {
    let [x, y, z] = node.position();
    LayerRef::new([x << (mask & 1), y << (mask >> 1 & 1), z << (mask >> 2 & 1)])
}

/// Makes entries of a node's children.
#[inline]
fn emit(links: &SymlinkPolicy, node: Node, blocks: &mut List<LayerRef>, singles: &mut List<LayerRef>) -> Option<()> {
    let (step, sector) = (node.step(), node.sector());
    let mask = links.bands.mask[step];
    match links.sectors.get(step)?[sector].kind {
        Kind::None => {}
        Kind::Block => blocks.push(doubled(node, mask))?,
        Kind::Singles => {
            let [x, y, z] = doubled(node, mask).position();
            for o in std::iter::once(0).chain(subsets(mask)) {
                singles.push(LayerRef::new([x + (o & 1), y + (o >> 1 & 1), z + (o >> 2 & 1)]))?;
            }
        }
        Kind::Linked { first, count } => {
            let ideal = links.ideal();
            for link in links.links.get(usize::from(first)..)?.get(..usize::from(count))? {
                let (from, to) = reach(links, node, link);
                let sides: [usize; 3] = std::array::from_fn(|d| to[d] - from[d]);
                if sides.iter().product::<usize>() == ideal && (0..3).all(|d| to[d] <= link.limit[d]) {
                    blocks.push(LayerRef::new(from))?;
                } else {
                    for (z, y, x) in positions(from, std::array::from_fn(|d| to[d].min(link.limit[d]))) {
                        singles.push(LayerRef::new([x, y, z]))?;
                    }
                }
            }
        }
    }
    Some(())
}

/// Makes nodes of a node's children.
#[inline]
fn children(links: &SymlinkPolicy, node: Node, list: &mut List<Node>) -> Option<()> {
    let (step, sector) = (node.step(), node.sector());
    let mask = links.bands.mask[step];
    match links.sectors.get(step)?[sector].kind {
        Kind::None => {}
        Kind::Block | Kind::Singles => {
            let first = node.doubled(mask);
            if mask == 7 {
                let room = list.items.get_mut(list.length..)?.first_chunk_mut::<8>()?;
                for (o, child) in room.iter_mut().enumerate() {
                    *child = first.beside(o);
                }
                list.length += 8;
            } else {
                for o in std::iter::once(0).chain(subsets(mask)) {
                    list.push(first.beside(o))?;
                }
            }
        }
        Kind::Linked { first, count } => {
            for link in links.links.get(usize::from(first)..)?.get(..usize::from(count))? {
                let (from, to) = reach(links, node, link);
                for (z, y, x) in positions(from, std::array::from_fn(|d| to[d].min(link.limit[d]))) {
                    list.push(Node::new([x, y, z], link.sector, step - 1))?;
                }
            }
        }
    }
    Some(())
}

/// The box of a node's children, which may go beyond the link's limit.
#[inline]
fn reach(links: &SymlinkPolicy, node: Node, link: &Link) -> ([usize; 3], [usize; 3]) {
    let mask = links.bands.mask[node.step()];
    let origin = links.sectors[node.step()][node.sector()].origin;
    let position = node.position();
    let from = std::array::from_fn(|d| link.from[d] + position[d].saturating_sub(origin[d]) * factor(mask, d));
    let to = std::array::from_fn(|d| from[d] + factor(mask, d) + usize::from(position[d] == link.extra[d]));
    (from, to)
}
