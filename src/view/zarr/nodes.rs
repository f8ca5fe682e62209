//! The numbers of the files and folders. Arithmetic only.

use crate::volume::Dims;

/// A layer of more files and folders is not shown: their numbers are part of inode numbers.
const MOST: u64 = 1 << 34;

/// The name of the folder of a level's samples; those of positions have the names of their axes.
pub const IMAGE: &str = "image";
/// The name of the metadata of groups and arrays.
pub const METADATA: &str = "zarr.json";
/// The name of the folder of an array's chunks.
pub const CHUNKS: &str = "c";

/// A file or folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Node {
    /// The folder of all.
    Root,
    /// Its metadata.
    RootMetadata,
    /// The folder of a level.
    Level(usize),
    /// Its metadata.
    LevelMetadata(usize),
    /// The folder of an array, and what is in it.
    Array {
        /// The LOD.
        level: usize,
        /// 0 for the samples, 1 + N for the positions along axis N.
        array: usize,
        /// Which part of it.
        part: Part,
    },
}

/// A file or folder of an array.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// The array's folder.
    Folder,
    /// Its metadata.
    Metadata,
    /// The chunks whose index begins with so many given numbers: a folder, or one chunk if all are given.
    Chunks {
        /// How many numbers of the index are given.
        depth: usize,
        /// The number of these numbers in C order.
        number: u64,
    },
}

/// The numbers of one array's files and folders: the folder, the metadata, and the chunks by depth.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ArrayNodes {
    first: u64,
    /// The number of chunks along each axis.
    count: Dims,
}

/// The numbers of all files and folders of a layer.
#[derive(Clone, Debug)]
pub struct Nodes {
    levels: Vec<LevelNodes>,
    end: u64,
}

#[derive(Clone, Debug)]
struct LevelNodes {
    first: u64,
    arrays: Vec<ArrayNodes>,
}

impl ArrayNodes {
    /// Returns the number of chunks along each axis.
    #[must_use]
    pub fn count(&self) -> Dims {
        self.count
    }

    /// Returns the index of a chunk, given its number in C order.
    #[must_use]
    pub fn chunk(&self, number: u64) -> Dims {
        self.count.index_of(number)
    }

    /// Returns how many folders or chunks there are at a depth.
    fn at_depth(&self, depth: usize) -> Option<u64> {
        self.count.iter().take(depth).try_fold(1u64, |product, n| product.checked_mul(*n))
    }

    /// Returns one past the last number.
    fn end(&self) -> Option<u64> {
        let chunks = (0..=self.count.len()).try_fold(2u64, |sum, depth| sum.checked_add(self.at_depth(depth)?));
        self.first.checked_add(chunks?)
    }

    fn part(&self, node: u64) -> Option<Part> {
        let mut number = match node.checked_sub(self.first)? {
            0 => return Some(Part::Folder),
            1 => return Some(Part::Metadata),
            number => number - 2,
        };
        for depth in 0..=self.count.len() {
            let chunks = self.at_depth(depth)?;
            if number < chunks {
                return Some(Part::Chunks { depth, number });
            }
            number -= chunks;
        }
        None
    }

    fn node(&self, part: Part) -> u64 {
        match part {
            Part::Folder => self.first,
            Part::Metadata => self.first + 1,
            Part::Chunks { depth, number } => {
                self.first + 2 + (0..depth).filter_map(|depth| self.at_depth(depth)).sum::<u64>() + number
            }
        }
    }
}

impl Part {
    /// Returns whether it is a folder, in an array of so many axes.
    #[must_use]
    pub fn is_folder(self, axes: usize) -> bool {
        match self {
            Self::Folder => true,
            Self::Metadata => false,
            Self::Chunks { depth, .. } => depth < axes,
        }
    }
}

impl Nodes {
    /// Numbers the files and folders of levels, each given as the chunks of its arrays along each axis. `None` if there
    /// are too many.
    pub fn new(levels: impl Iterator<Item = Vec<Dims>>) -> Option<Self> {
        let (mut numbered, mut end) = (Vec::new(), 2);
        for arrays in levels {
            let mut level = LevelNodes { first: end, arrays: Vec::with_capacity(arrays.len()) };
            end += 2;
            for count in arrays {
                let array = ArrayNodes { first: end, count };
                end = array.end().filter(|end| *end <= MOST)?;
                level.arrays.push(array);
            }
            numbered.push(level);
        }
        Some(Self { levels: numbered, end })
    }

    /// Returns how many there are.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.end
    }

    /// Returns the arrays of a level.
    #[must_use]
    pub fn arrays(&self, level: usize) -> &[ArrayNodes] {
        self.levels.get(level).map_or(&[], |level| &level.arrays)
    }

    /// Returns the number of levels.
    #[must_use]
    pub fn levels(&self) -> usize {
        self.levels.len()
    }

    /// Returns the file or folder with a number.
    #[must_use]
    pub fn at(&self, node: u64) -> Option<Node> {
        match node {
            0 => return Some(Node::Root),
            1 => return Some(Node::RootMetadata),
            _ if node >= self.end => return None,
            _ => {}
        }
        let level = self.levels.partition_point(|level| level.first <= node).checked_sub(1)?;
        let LevelNodes { first, arrays } = &self.levels[level];
        match node - first {
            0 => return Some(Node::Level(level)),
            1 => return Some(Node::LevelMetadata(level)),
            _ => {}
        }
        let array = arrays.partition_point(|array| array.first <= node).checked_sub(1)?;
        Some(Node::Array { level, array, part: arrays[array].part(node)? })
    }

    /// Returns the number of a file or folder.
    #[must_use]
    pub fn number(&self, node: Node) -> Option<u64> {
        match node {
            Node::Root => Some(0),
            Node::RootMetadata => Some(1),
            Node::Level(level) => Some(self.levels.get(level)?.first),
            Node::LevelMetadata(level) => Some(self.levels.get(level)?.first + 1),
            Node::Array { level, array, part } => Some(self.levels.get(level)?.arrays.get(array)?.node(part)),
        }
    }

    /// Returns the folder that contains a file or folder; `None` for the folder of all.
    #[must_use]
    pub fn parent(&self, node: Node) -> Option<Node> {
        match node {
            Node::Root => None,
            Node::RootMetadata | Node::Level(_) => Some(Node::Root),
            Node::LevelMetadata(level) | Node::Array { level, part: Part::Folder, .. } => Some(Node::Level(level)),
            Node::Array { level, array, part: Part::Metadata | Part::Chunks { depth: 0, .. } } => {
                Some(Node::Array { level, array, part: Part::Folder })
            }
            Node::Array { level, array, part: Part::Chunks { depth, number } } => {
                let along = self.arrays(level).get(array)?.count.get(depth - 1).copied()?;
                let part = Part::Chunks { depth: depth - 1, number: number / along.max(1) };
                Some(Node::Array { level, array, part })
            }
        }
    }

    /// Returns whether it is a folder.
    #[must_use]
    pub fn is_folder(&self, node: Node) -> bool {
        match node {
            Node::Root | Node::Level(_) => true,
            Node::RootMetadata | Node::LevelMetadata(_) => false,
            Node::Array { level, array, part } => {
                self.arrays(level).get(array).is_some_and(|array| part.is_folder(array.count.len()))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_number_is_one_node_whose_folder_comes_before_it() {
        let arrays = |counts: [u64; 3]| vec![Dims::from(counts), [1].into(), [2].into(), [1].into()];
        let nodes = Nodes::new([arrays([2, 3, 4]), arrays([1, 2, 2])].into_iter()).unwrap();
        // both: root and metadata; a level: folder, metadata, the samples' folder, metadata, `c`, folders and chunks
        let level = |chunks: u64| 2 + 3 + chunks + (3 + 1) + (3 + 2) + (3 + 1);
        assert_eq!(nodes.len(), 2 + level(2 + 6 + 24) + level(1 + 2 + 4));
        let mut seen = Vec::new();
        for number in 0..nodes.len() {
            let node = nodes.at(number).unwrap();
            assert_eq!(nodes.number(node), Some(number), "{node:?}");
            assert!(!seen.contains(&node), "{node:?}");
            seen.push(node);
            let parent = nodes.parent(node);
            assert_eq!(parent.is_none(), number == 0);
            if let Some(parent) = parent {
                assert!(nodes.is_folder(parent), "{node:?}");
                assert!(nodes.number(parent) < Some(number), "{node:?}");
            }
        }
        assert_eq!(nodes.at(nodes.len()), None);
        let chunk = Node::Array { level: 0, array: 0, part: Part::Chunks { depth: 3, number: 23 } };
        let folder = Node::Array { level: 0, array: 0, part: Part::Chunks { depth: 2, number: 5 } };
        assert_eq!((nodes.parent(chunk), nodes.is_folder(chunk)), (Some(folder), false));
    }

    #[test]
    fn too_many_chunks_have_no_numbers() {
        let of = |counts: &[u64]| Nodes::new([vec![Dims::from_slice(counts).unwrap()]].into_iter());
        assert!(of(&[1 << 11; 3]).is_some());
        assert!(of(&[1 << 11, 1 << 11, 1 << 12]).is_none());
        assert!(of(&[u64::MAX; 7]).is_none());
    }
}
