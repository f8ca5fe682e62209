//! The numbers of the files and folders. Arithmetic only.

use crate::volume::Dims;

/// A layer of more files and folders is not shown: their numbers are part of inode numbers.
const MOST: u64 = 1 << 34;

/// The name of the folder of a level's samples; those of positions have the names of their axes.
pub(crate) const IMAGE: &str = "image";
/// The name of the metadata of groups and arrays.
pub(crate) const METADATA: &str = "zarr.json";
/// The name of the folder of an array's chunks.
pub(crate) const CHUNKS: &str = "c";

/// The name of the folder of an image's labels.
pub(crate) const LABELS: &str = "labels";

/// A file or folder. Image 0 is the layer; the others are its labels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Node {
    /// The folder of an image.
    Image(usize),
    /// The metadata of an image.
    ImageMetadata(usize),
    /// The folder of the labels.
    Labels,
    /// The metadata of the labels.
    LabelsMetadata,
    /// The folder of a level of an image.
    Level(usize, usize),
    /// The metadata of a level of an image.
    LevelMetadata(usize, usize),
    /// The folder of an array, or what is in it.
    Array(ArrayAt, Part),
}

/// An array.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ArrayAt {
    /// The image.
    pub image: usize,
    /// The LOD.
    pub level: usize,
    /// 0 for the samples, 1 + N for the positions along axis N.
    pub array: usize,
}

/// A file or folder of an array.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
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
pub(crate) struct ArrayNodes {
    first: u64,
    /// The number of chunks along each axis.
    count: Dims,
}

/// The numbers of all files and folders of a layer: those of its own image, of the labels' folder, and of each label.
#[derive(Clone, Debug)]
pub(crate) struct Nodes {
    images: Vec<ImageNodes>,
    /// The folder of the labels.
    labels: Option<u64>,
    end: u64,
}

#[derive(Clone, Debug)]
struct ImageNodes {
    first: u64,
    levels: Vec<LevelNodes>,
}

#[derive(Clone, Debug)]
struct LevelNodes {
    first: u64,
    arrays: Vec<ArrayNodes>,
}

/// Every folder of an image or a level is followed by its metadata.
const FOLDER_AND_METADATA: u64 = 2;

impl ArrayNodes {
    /// Returns the number of chunks along each axis.
    pub(crate) fn count(&self) -> Dims {
        self.count
    }

    /// Returns the index of a chunk, given its number in C order.
    pub(crate) fn chunk(&self, number: u64) -> Dims {
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
    pub(crate) fn is_folder(self, axes: usize) -> bool {
        match self {
            Self::Folder => true,
            Self::Metadata => false,
            Self::Chunks { depth, .. } => depth < axes,
        }
    }
}

impl ImageNodes {
    /// Numbers the files and folders of an image from `first` on. Returns one past the last number as well.
    fn new(first: u64, levels: Vec<Vec<Dims>>) -> Option<(Self, u64)> {
        let (mut numbered, mut end) = (Vec::with_capacity(levels.len()), first + FOLDER_AND_METADATA);
        for arrays in levels {
            let mut level = LevelNodes { first: end, arrays: Vec::with_capacity(arrays.len()) };
            end += FOLDER_AND_METADATA;
            for count in arrays {
                let array = ArrayNodes { first: end, count };
                end = array.end().filter(|end| *end <= MOST)?;
                level.arrays.push(array);
            }
            numbered.push(level);
        }
        Some((Self { first, levels: numbered }, end))
    }
}

impl Nodes {
    /// Numbers the files and folders of a layer and of its labels. Each image is given as the chunks along each axis of
    /// the arrays of each level. `None` if there are too many.
    pub(crate) fn new(images: impl Iterator<Item = Vec<Vec<Dims>>>) -> Option<Self> {
        let mut nodes = Self { images: Vec::new(), labels: None, end: 0 };
        for image in images {
            if nodes.images.len() == 1 {
                nodes.labels = Some(nodes.end);
                nodes.end += FOLDER_AND_METADATA;
            }
            let (image, end) = ImageNodes::new(nodes.end, image)?;
            nodes.images.push(image);
            nodes.end = end;
        }
        Some(nodes)
    }

    /// Returns how many there are.
    pub(crate) fn len(&self) -> u64 {
        self.end
    }

    /// Returns the number of levels of an image.
    pub(crate) fn levels(&self, image: usize) -> usize {
        self.images.get(image).map_or(0, |image| image.levels.len())
    }

    /// Returns whether there are labels.
    pub(crate) fn has_labels(&self) -> bool {
        self.labels.is_some()
    }

    /// Returns the numbers of an array.
    pub(crate) fn array(&self, at: ArrayAt) -> Option<&ArrayNodes> {
        self.images.get(at.image)?.levels.get(at.level)?.arrays.get(at.array)
    }

    /// Returns the file or folder with a number.
    pub(crate) fn at(&self, node: u64) -> Option<Node> {
        let in_labels = self.labels.and_then(|labels| node.checked_sub(labels));
        match in_labels {
            Some(0) => return Some(Node::Labels),
            Some(1) => return Some(Node::LabelsMetadata),
            _ if node >= self.end => return None,
            _ => {}
        }
        let image = self.images.partition_point(|image| image.first <= node).checked_sub(1)?;
        let ImageNodes { first, levels } = &self.images[image];
        match node - first {
            0 => return Some(Node::Image(image)),
            1 => return Some(Node::ImageMetadata(image)),
            _ => {}
        }
        let level = levels.partition_point(|level| level.first <= node).checked_sub(1)?;
        let LevelNodes { first, arrays } = &levels[level];
        match node - first {
            0 => return Some(Node::Level(image, level)),
            1 => return Some(Node::LevelMetadata(image, level)),
            _ => {}
        }
        let array = arrays.partition_point(|array| array.first <= node).checked_sub(1)?;
        Some(Node::Array(ArrayAt { image, level, array }, arrays[array].part(node)?))
    }

    /// Returns the number of a file or folder.
    pub(crate) fn number(&self, node: Node) -> Option<u64> {
        let level = |image: usize, level: usize| self.images.get(image)?.levels.get(level).map(|level| level.first);
        match node {
            Node::Image(image) => Some(self.images.get(image)?.first),
            Node::ImageMetadata(image) => Some(self.images.get(image)?.first + 1),
            Node::Labels => self.labels,
            Node::LabelsMetadata => Some(self.labels? + 1),
            Node::Level(image, of_image) => level(image, of_image),
            Node::LevelMetadata(image, of_image) => Some(level(image, of_image)? + 1),
            Node::Array(array, part) => Some(self.array(array)?.node(part)),
        }
    }

    /// Returns the folder that contains a file or folder; `None` for the folder of the layer's own image.
    pub(crate) fn parent(&self, node: Node) -> Option<Node> {
        Some(match node {
            Node::Image(0) => return None,
            Node::Image(_) | Node::LabelsMetadata => Node::Labels,
            Node::Labels => Node::Image(0),
            Node::ImageMetadata(image) | Node::Level(image, _) => Node::Image(image),
            Node::LevelMetadata(image, level) => Node::Level(image, level),
            Node::Array(array, Part::Folder) => Node::Level(array.image, array.level),
            Node::Array(array, Part::Metadata | Part::Chunks { depth: 0, .. }) => Node::Array(array, Part::Folder),
            Node::Array(array, Part::Chunks { depth, number }) => {
                let along = self.array(array)?.count.get(depth - 1).copied()?;
                Node::Array(array, Part::Chunks { depth: depth - 1, number: number / along.max(1) })
            }
        })
    }

    /// Returns whether it is a folder.
    pub(crate) fn is_folder(&self, node: Node) -> bool {
        match node {
            Node::Image(_) | Node::Labels | Node::Level(..) => true,
            Node::ImageMetadata(_) | Node::LabelsMetadata | Node::LevelMetadata(..) => false,
            Node::Array(array, part) => self.array(array).is_some_and(|array| part.is_folder(array.count.len())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(images: &[&[[u64; 3]]]) -> Option<Nodes> {
        let arrays = |counts: &[u64; 3]| vec![Dims::from(*counts), [1].into(), [2].into(), [1].into()];
        Nodes::new(images.iter().map(|levels| levels.iter().map(arrays).collect()))
    }

    #[test]
    fn every_number_is_one_node_whose_folder_comes_before_it() {
        // folder and metadata; the samples' folder, metadata, `c`, folders and chunks; the positions'
        let level = |chunks: u64| 2 + 3 + chunks + (3 + 1) + (3 + 2) + (3 + 1);
        let own = 2 + level(2 + 6 + 24) + level(1 + 2 + 4);
        let labels = 2 + 2 * (2 + level(3));
        let levels: &[[u64; 3]] = &[[2, 3, 4], [1, 2, 2]];
        for (images, count) in [(&[levels][..], own), (&[levels, &[[1; 3]], &[[1; 3]]], own + labels)] {
            let nodes = of(images).unwrap();
            assert_eq!((nodes.len(), nodes.has_labels()), (count, count > own));
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
            let of_array =
                |depth, number| Node::Array(ArrayAt { image: 0, level: 0, array: 0 }, Part::Chunks { depth, number });
            assert_eq!(
                (nodes.parent(of_array(3, 23)), nodes.is_folder(of_array(3, 23))),
                (Some(of_array(2, 5)), false)
            );
        }
    }

    #[test]
    fn too_many_chunks_have_no_numbers() {
        assert!(of(&[&[[1 << 11; 3]]]).is_some());
        assert!(of(&[&[[1 << 11, 1 << 11, 1 << 12]]]).is_none());
        assert!(of(&[&[[1 << 11; 3]], &[[1 << 11; 3]]]).is_none(), "labels count");
        assert!(of(&[&[[u64::MAX; 3]]]).is_none());
    }
}
