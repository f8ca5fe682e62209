//! Nodes of the tree and places of coefficients, packed into 32 bits.

use super::bands::Set;

/// A node: 8 bits of x, 8 of y, 10 of z, 3 of the sector, 3 of the step. Nodes stand in steps of at least 1, so no legal
/// coordinate is more than 255; z alone may be a little more in faulty streams of old versions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Node(u32);

impl Node {
    /// The bits below sector and step.
    const POSITION: u32 = (1 << 26) - 1;
    /// One step.
    const STEP: u32 = 1 << 29;

    /// The node at a position.
    #[inline]
    pub fn new([x, y, z]: [usize; 3], sector: Set, step: usize) -> Self {
        let position = (x & 0xff) | (y & 0xff) << 8 | (z & 0x3ff) << 16;
        Self(position as u32 | (sector as u32 & 7) << 26 | (step as u32 & 7) << 29)
    }

    /// Where it is.
    #[inline]
    pub fn position(self) -> [usize; 3] {
        [(self.0 & 0xff) as usize, (self.0 >> 8 & 0xff) as usize, (self.0 >> 16 & 0x3ff) as usize]
    }

    /// Its sector.
    #[inline]
    pub fn sector(self) -> Set {
        (self.0 >> 26 & 7) as usize
    }

    /// Its step.
    #[inline]
    pub fn step(self) -> usize {
        (self.0 >> 29) as usize
    }

    /// The first child in a step where positions double in the dimensions of `mask`.
    #[inline]
    pub fn doubled(self, mask: Set) -> Self {
        let [x, y, z] = self.position();
        let moved = LayerRef::new([x << (mask & 1), y << (mask >> 1 & 1), z << (mask >> 2 & 1)]);
        let [x, y, z] = moved.position();
        Self(Self::new([x, y, z], 0, 0).0 | (self.0 & !Self::POSITION).wrapping_sub(Self::STEP))
    }

    /// The neighbours of a node at even coordinates, itself the first: one further in each set of dimensions.
    #[inline]
    pub fn beside(self, set: Set) -> Self {
        let set = set as u32;
        Self(self.0 | (set & 1) | (set >> 1 & 1) << 8 | (set >> 2 & 1) << 16)
    }
}

/// Where a coefficient stands: 10 bits each of x, y and z.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct LayerRef(u32);

impl LayerRef {
    /// The place at a position.
    #[inline]
    pub fn new([x, y, z]: [usize; 3]) -> Self {
        Self(((x & 0x3ff) | (y & 0x3ff) << 10 | (z & 0x3ff) << 20) as u32)
    }

    /// Where it is.
    #[inline]
    pub fn position(self) -> [usize; 3] {
        [(self.0 & 0x3ff) as usize, (self.0 >> 10 & 0x3ff) as usize, (self.0 >> 20 & 0x3ff) as usize]
    }

    /// The same in an array.
    #[inline]
    pub fn index(self, [_, along_y, along_z]: [usize; 3]) -> usize {
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
        let last = child.beside(6);
        assert_eq!((last.position(), last.sector(), last.step()), ([3, 255, 131], 5, 3));
        assert_eq!(LayerRef::new([511, 600, 1023]).index([1, 1000, 1_000_000]), 1_023_600_511);
    }
}
