//! Nodes of the tree and positions of coefficients, packed into 32 bits.

use super::bands::DimSet;

/// A node: 8 bits of x, 8 of y, 10 of z, 3 of the sector, 3 of the step. Nodes are in steps of at least 1, so that a
/// legal coordinate is at most 255; only in faulty streams of old versions z may be a little more.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Node(u32);

impl Node {
    /// The bits of the coordinates.
    const POSITION: u32 = (1 << 26) - 1;
    /// The number 1 in the bits of the step.
    const STEP: u32 = 1 << 29;

    /// Packs a node.
    #[inline]
    pub(crate) fn new([x, y, z]: [usize; 3], sector: DimSet, step: usize) -> Self {
        let position = (x & 0xff) | (y & 0xff) << 8 | (z & 0x3ff) << 16;
        Self(position as u32 | (sector as u32 & 7) << 26 | (step as u32 & 7) << 29)
    }

    /// Returns its coordinates, x first.
    #[inline]
    pub(crate) fn position(self) -> [usize; 3] {
        [(self.0 & 0xff) as usize, (self.0 >> 8 & 0xff) as usize, (self.0 >> 16 & 0x3ff) as usize]
    }

    /// Returns its sector.
    #[inline]
    pub(crate) fn sector(self) -> DimSet {
        (self.0 >> 26 & 7) as usize
    }

    /// Returns its step.
    #[inline]
    pub(crate) fn step(self) -> usize {
        (self.0 >> 29) as usize
    }

    /// Returns the first child, one step finer, where coordinates double in the dimensions of `mask`.
    #[inline]
    pub(crate) fn doubled(self, mask: DimSet) -> Self {
        let [x, y, z] = self.position();
        let moved = PackedPosition::new([x << (mask & 1), y << (mask >> 1 & 1), z << (mask >> 2 & 1)]);
        let [x, y, z] = moved.position();
        Self(Self::new([x, y, z], 0, 0).0 | (self.0 & !Self::POSITION).wrapping_sub(Self::STEP))
    }

    /// Returns the neighbour one further in each dimension of `set`, for a node whose coordinates are even.
    #[inline]
    pub(crate) fn neighbour(self, set: DimSet) -> Self {
        let set = set as u32;
        Self(self.0 | (set & 1) | (set >> 1 & 1) << 8 | (set >> 2 & 1) << 16)
    }
}

/// The position of a coefficient: 10 bits each of x, y and z.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct PackedPosition(u32);

impl PackedPosition {
    /// Packs coordinates, x first.
    #[inline]
    pub(crate) fn new([x, y, z]: [usize; 3]) -> Self {
        Self(((x & 0x3ff) | (y & 0x3ff) << 10 | (z & 0x3ff) << 20) as u32)
    }

    /// Returns the coordinates, x first.
    #[inline]
    pub(crate) fn position(self) -> [usize; 3] {
        [(self.0 & 0x3ff) as usize, (self.0 >> 10 & 0x3ff) as usize, (self.0 >> 20 & 0x3ff) as usize]
    }

    /// Returns the index in an array with these strides, in samples; that of x is 1.
    #[inline]
    pub(crate) fn index(self, [_, along_y, along_z]: [usize; 3]) -> usize {
        let [x, y, z] = self.position();
        x + y * along_y + z * along_z
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn children_stand_at_twice_the_position() {
        let node = Node::new([3, 127, 65], 5, 4);
        assert_eq!((node.position(), node.sector(), node.step()), ([3, 127, 65], 5, 4));
        let child = node.doubled(6);
        assert_eq!((child.position(), child.sector(), child.step()), ([3, 254, 130], 5, 3));
        let last = child.neighbour(6);
        assert_eq!((last.position(), last.sector(), last.step()), ([3, 255, 131], 5, 3));
        assert_eq!(PackedPosition::new([511, 600, 1023]).index([1, 1000, 1_000_000]), 1_023_600_511);
    }
}
