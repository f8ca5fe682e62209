//! Inode numbers: computed, not kept.
//!
//! The upper 24 bits are the number of a folder or dataset of the source (a changed dataset has a new one), the lower 40 bits the
//! place of a file in it. Ten million names that were looked up cost no memory.

use crate::catalog::NodeId;

const INDEX_BITS: u32 = 40;

/// An inode number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Ino(pub u64);

impl Ino {
    /// The top of the mount: the kernel has it as 1.
    pub const ROOT: Self = Self(1);

    /// The number of file `index` of a folder or dataset. Index 0 is the folder itself.
    #[must_use]
    pub fn new(node: NodeId, index: u64) -> Self {
        Self(u64::from(node) << INDEX_BITS | (index + 1) & ((1 << INDEX_BITS) - 1))
    }

    /// The folder or dataset.
    #[must_use]
    pub fn node(self) -> NodeId {
        (self.0 >> INDEX_BITS) as NodeId
    }

    /// The place of the file in it; beyond all of them for a number that none was given.
    #[must_use]
    pub fn index(self) -> u64 {
        (self.0 & ((1 << INDEX_BITS) - 1)).wrapping_sub(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_come_apart_again() {
        assert_eq!(Ino::new(0, 0), Ino::ROOT);
        let ino = Ino::new(70_000, 123_456_789_012);
        assert_eq!((ino.node(), ino.index()), (70_000, 123_456_789_012));
        assert_eq!(Ino(0).index(), u64::MAX);
    }
}
