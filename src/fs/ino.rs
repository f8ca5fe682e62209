//! Inode numbers.
//!
//! They are computed, not stored: the upper 24 bits are the number of a folder or dataset of the source (a changed
//! dataset has a new one), the lower 40 bits the index of a file in it. So looked-up names cost no memory.

use crate::catalog::NodeId;

const INDEX_BITS: u32 = 40;

/// An inode number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Ino(pub u64);

impl Ino {
    /// The root of the mount; the kernel wants it to be 1.
    pub(crate) const ROOT: Self = Self(1);
    /// `.volfs`, the folder about the state of the mount.
    pub(crate) const DOT_VOLFS: Self = Self(2);
    /// `.volfs/status.json`.
    pub(crate) const STATUS: Self = Self(3);
    /// `.volfs/log`.
    pub(crate) const LOG: Self = Self(4);
    /// `.volfs/status.json` as users other than the owner of the mount see it.
    pub(crate) const PUBLIC_STATUS: Self = Self(5);

    /// Returns the number of file `index` of a folder or dataset. Index 0 is the folder itself.
    pub(crate) fn new(node: NodeId, index: u64) -> Self {
        Self(u64::from(node) << INDEX_BITS | (index + 1) & ((1 << INDEX_BITS) - 1))
    }
    /// Returns the folder or dataset.
    pub(crate) fn node(self) -> NodeId {
        (self.0 >> INDEX_BITS) as NodeId
    }

    /// Returns the index of the file in its folder or dataset; for a number that was never assigned, one beyond all
    /// files.
    pub(crate) fn index(self) -> u64 {
        (self.0 & ((1 << INDEX_BITS) - 1)).wrapping_sub(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog;

    #[test]
    fn numbers_are_split_into_node_and_index() {
        assert_eq!(Ino::new(0, 0), Ino::ROOT);
        let ino = Ino::new(70_000, 123_456_789_012);
        assert_eq!((ino.node(), ino.index()), (70_000, 123_456_789_012));
        assert_eq!(Ino(0).index(), u64::MAX);
    }

    #[test]
    fn the_files_of_dot_volfs_belong_to_the_root() {
        let of_root = [Ino::ROOT, Ino::DOT_VOLFS, Ino::STATUS, Ino::LOG, Ino::PUBLIC_STATUS];
        assert_eq!(of_root, [0, 1, 2, 3, 4].map(|index| Ino::new(catalog::ROOT, index)));
    }
}
