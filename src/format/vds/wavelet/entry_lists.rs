//! The lists that the tree walk fills: nodes to be visited, positions of coded coefficients, and the bit fields of each
//! level.

use super::grow::grow_to;
use super::node::{Node, PackedPosition};

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
