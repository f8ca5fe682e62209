//! The numbers of the files and folders. Arithmetic only.

use std::iter::once;
use std::sync::Arc;

use super::chunk::{ChunkGrid, number};
use crate::format::{Array, FormatError};
use crate::source::Blocking;
use crate::view::headers;
use crate::view::names::{NAME_MAX, axis_names, file_name, unique};
use crate::view::virtual_file::LayerRef;
use crate::volume::{ArrayInfo, Brick, Dims, Element, Region};

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

/// The positions in a chunk.
pub(crate) const POSITIONS: u64 = 8 << 10;

/// The name of the channels in an image, which is what viewers expect.
const CHANNELS: &str = "c";

/// Returns whether a level is an image of OME-NGFF: it has three axes in space, and perhaps channels behind them.
pub(crate) fn is_image(info: &ArrayInfo) -> bool {
    let (spatial, others) = info.axes.split_at(info.axes.len().min(3));
    spatial.len() == 3 && spatial.iter().all(|a| a.spatial) && others.len() < 2 && others.iter().all(|a| !a.spatial)
}

/// Returns the chunks of a level.
pub(crate) fn chunk_grid(info: &ArrayInfo) -> ChunkGrid {
    ChunkGrid::of(info, is_image(info) && info.axes.len() == 4)
}

/// Returns the names of a level's axes, which are those of its dimensions and of the folders of their positions.
pub(crate) fn dimension_names(info: &ArrayInfo) -> Vec<String> {
    let mut names = axis_names(info);
    for axis in 0..names.len() {
        let name = &names[axis];
        // these mean something else to Zarr, or are the names of the other entries of the folder
        let is_reserved =
            name.starts_with("__") || name.bytes().all(|b| b == b'.') || name == IMAGE || name == METADATA;
        let replaced = match axis {
            3 if is_image(info) => CHANNELS.to_owned(),
            _ if is_reserved => format!("axis{axis}"),
            _ => continue,
        };
        let mut others = names.iter().enumerate().filter(|(n, _)| *n != axis).map(|(_, name)| name.clone()).collect();
        names[axis] = unique(replaced, NAME_MAX, &mut others);
    }
    names
}

/// Returns a chunk of the positions along an axis, padded with zeros: float64, little-endian.
pub(crate) fn positions(info: &ArrayInfo, axis: usize, chunk: u64) -> Vec<u8> {
    let begin = chunk.saturating_mul(POSITIONS);
    headers::positions(info, axis, begin..begin.saturating_add(POSITIONS.min(info.shape()[axis])))
}

/// Returns the value of samples where there is no chunk: that of bricks that were never written, if JSON has a form for
/// it.
pub(crate) fn fill_value(array: &dyn Array) -> Element {
    let (unwritten, dtype) = (array.unwritten(), array.info().dtype);
    if number(dtype, &unwritten).is_some() { unwritten } else { Element::zero(dtype.size()) }
}

/// Returns the name of the folder of a layer's label, if its samples are numbers of objects.
pub(crate) fn label_name(layer: LayerRef<'_>) -> Option<String> {
    let info = layer.info(0);
    let says_so = info.native.get("category").is_some_and(|category| category == "segmentation");
    let is_label = says_so && info.dtype.is_integer() && info.axes.len() == 3 && is_image(info);
    is_label.then(|| file_name(layer.name(), NAME_MAX))
}

/// Returns the chunks along each axis of the arrays of each level. `None` if a level has no samples.
fn counts(layer: LayerRef<'_>) -> Option<Vec<Vec<Dims>>> {
    let arrays = |level: &Arc<dyn Array>| {
        let shape = level.info().shape();
        let positions = shape.iter().map(|count| [count.div_ceil(POSITIONS)].into());
        let chunks = once(chunk_grid(level.info()).count());
        (!shape.contains(&0)).then(|| chunks.chain(positions).collect())
    };
    layer.levels().iter().map(arrays).collect()
}

/// Numbers the files and folders of a layer, those of its label included. `None` if it has no samples, or too many
/// chunks.
pub(crate) fn nodes(layer: LayerRef<'_>) -> Option<Nodes> {
    let (own, label) = (counts(layer)?, label_name(layer));
    let label = label.map(|_| own.clone());
    Nodes::new(once(own).chain(label))
}

/// Bricks are looked up for all chunks of a folder when it is listed, which must end soon.
const MOST_IN_FOLDER: u64 = 1 << 20;

/// Returns whether chunks may be absent from the folders of an array: each has `chunks` of them, of a size such as
/// `region`. Otherwise all chunks are there.
pub(crate) fn is_looked_up(info: &ArrayInfo, region: &Region, chunks: u64) -> bool {
    let bricks = info.grid.touched(region).shape.product().unwrap_or(u64::MAX);
    bricks.saturating_mul(chunks) <= MOST_IN_FOLDER
}

/// Returns whether all bricks of a region are known to have `fill` for all samples. A brick that cannot be found is
/// not: its chunk is there, and reading it says what is wrong. Fails with
/// [`SourceError::WouldBlock`](crate::source::SourceError::WouldBlock) if that cannot be known without waiting and
/// `blocking` is [`Blocking::No`].
pub(crate) fn is_absent(
    array: &dyn Array,
    region: &Region,
    fill: &Element,
    blocking: Blocking,
) -> Result<bool, FormatError> {
    let touched = array.info().grid.touched(region);
    for number in 0..touched.shape.product().unwrap_or(0) {
        let mut at = touched.shape.index_of(number);
        at.iter_mut().zip(touched.start.iter()).for_each(|(at, start)| *at += start);
        // where tables tell that there are bytes, the bytes need not be looked at
        if blocking == Blocking::Yes
            && let Ok(Some(stored)) = array.stored_brick(&at)
            && stored.bytes != Some(0)
        {
            return Ok(false);
        }
        match array.brick(&at, blocking) {
            Ok(Brick::Constant(value)) if value == *fill => {}
            Err(error) if error.would_block() => return Err(error),
            _ => return Ok(false),
        }
    }
    Ok(true)
}

#[cfg(test)]
mod nodes_tests {
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

#[cfg(test)]
mod arrays_tests {
    use super::*;
    use crate::view::file::tests::zeros;
    use crate::volume::Dtype;

    fn info(axes: &[(&str, bool)]) -> ArrayInfo {
        let mut info = zeros(&vec![4; axes.len()], Dtype::UInt8).info().clone();
        for (axis, (name, spatial)) in info.axes.iter_mut().zip(axes) {
            (axis.name, axis.spatial) = ((*name).to_owned(), *spatial);
        }
        info
    }

    #[test]
    fn an_image_has_three_axes_in_space() {
        let [z, y, x, t, channel] = [("z", true), ("y", true), ("x", true), ("t", true), ("channel", false)];
        assert!(is_image(&info(&[z, y, x])) && is_image(&info(&[z, y, x, channel])));
        for axes in [&[y, x][..], &[t, z, y, x], &[y, x, channel], &[t, z, y, x, channel], &[channel, z, y, x]] {
            assert!(!is_image(&info(axes)), "{axes:?}");
        }
        assert_eq!(dimension_names(&info(&[z, y, x, channel])), ["z", "y", "x", "c"]);
        assert_eq!(dimension_names(&info(&[y, x, channel])), ["y", "x", "channel"]);
    }

    #[test]
    fn names_are_those_of_folders_beside_the_samples() {
        let names = |names: [&str; 3]| dimension_names(&info(&names.map(|name| (name, true))));
        assert_eq!(names(["inline", "crossline", "sample"]), ["inline", "crossline", "sample"]);
        assert_eq!(names(["", "x", "x"]), ["axis0", "axis1", "axis2"]);
        assert_eq!(names(["image", "__x", "..."]), ["axis0", "axis1", "axis2"]);
        assert_eq!(names(["zarr.json", "a/b", "axis0"]), ["axis0~2", "a%2Fb", "axis0"]);
    }

    #[test]
    fn positions_are_padded_to_whole_chunks() {
        let long = zeros(&[POSITIONS + 3, 5], Dtype::UInt8);
        let read = |axis, chunk| -> Vec<f64> {
            positions(long.info(), axis, chunk).as_chunks().0.iter().map(|b| f64::from_le_bytes(*b)).collect()
        };
        assert_eq!(read(1, 0), [10.0, 13.0, 16.0, 19.0, 22.0]);
        assert_eq!((read(0, 0).len(), read(0, 0)[8191]), (8192, 10.0 + 2.0 * 8191.0));
        assert_eq!((read(0, 1).len(), &read(0, 1)[2..4]), (8192, &[10.0 + 2.0 * 8194.0, 0.0][..]));
    }
}

#[cfg(test)]
mod absent_tests {
    use super::*;
    use crate::view::file::tests::zeros;
    use crate::volume::Dtype;

    #[test]
    fn long_folders_have_all_their_chunks() {
        let array = zeros(&[64, 64, 1 << 40], Dtype::UInt8);
        let region = |length| Region { start: [0, 0, 0].into(), shape: [64, 64, length].into() };
        assert!(is_looked_up(array.info(), &region(64), 1 << 20));
        assert!(!is_looked_up(array.info(), &region(64), (1 << 20) + 1));
        assert!(!is_looked_up(array.info(), &region(128), 1 << 20));
        let absent = |fill: &[u8]| is_absent(&*array, &region(128), &Element::new(fill), Blocking::No);
        assert_eq!((absent(&[0]), absent(&[7])), (Ok(true), Ok(false)));
    }
}
