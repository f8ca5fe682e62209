//! Which arrays a level has: their names, chunks and fill values, and the positions along its axes.

use super::chunk::{ChunkGrid, number};
use crate::format::Array;
use crate::view::names::{NAME_MAX, axis_names, file_name, unique};
use crate::view::{LayerRef, headers};
use crate::volume::{ArrayInfo, Element};

/// The name of the folder of a level's samples beside its positions; those of positions have the names of their axes.
pub(super) const IMAGE: &str = "image";
/// The name of the metadata of groups and arrays.
pub(super) const METADATA: &str = "zarr.json";
/// The name of the folder of an image's labels.
pub(super) const LABELS: &str = "labels";

/// Returns the names of the arrays of a level: of the samples, and of the positions along each axis.
pub(super) fn array_names(info: &ArrayInfo) -> Vec<String> {
    std::iter::once(IMAGE.to_owned()).chain(dimension_names(info)).collect()
}

/// The positions in a chunk.
pub(super) const POSITIONS: u64 = 8 << 10;

/// The name of the channels in an image, which is what viewers expect.
const CHANNELS: &str = "c";

/// Returns whether a level is an image of OME-NGFF: it has three axes in space, and perhaps channels behind them.
pub(super) fn is_image(info: &ArrayInfo) -> bool {
    let (spatial, others) = info.axes.split_at(info.axes.len().min(3));
    spatial.len() == 3 && spatial.iter().all(|a| a.spatial) && others.len() < 2 && others.iter().all(|a| !a.spatial)
}

pub(super) fn chunk_grid(layer: LayerRef<'_>, lod: usize) -> ChunkGrid {
    let info = layer.info(lod);
    ChunkGrid::of(layer.info(0), info, is_image(info) && info.axes.len() == 4)
}

/// Returns the names of a level's axes, which are those of its dimensions and of the folders of their positions.
pub(super) fn dimension_names(info: &ArrayInfo) -> Vec<String> {
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
pub(super) fn positions(info: &ArrayInfo, axis: usize, chunk: u64) -> Vec<u8> {
    let begin = chunk.saturating_mul(POSITIONS);
    headers::positions(info, axis, begin..begin.saturating_add(POSITIONS.min(info.shape()[axis])))
}

/// Returns the value of samples where there is no chunk: that of bricks that were never written, if JSON has a form for
/// it.
pub(super) fn fill_value(array: &dyn Array) -> Element {
    let (unwritten, dtype) = (array.unwritten(), array.info().dtype);
    if number(dtype, &unwritten).is_some() { unwritten } else { Element::zero(dtype.size()) }
}

/// Returns the name of the folder of a layer's label, if its samples are numbers of objects.
pub(super) fn label_name(layer: LayerRef<'_>) -> Option<String> {
    let info = layer.info(0);
    let says_so = info.native.get("category").is_some_and(|category| category == "segmentation");
    let is_label = says_so && info.dtype.is_integer() && info.axes.len() == 3 && is_image(info);
    is_label.then(|| file_name(layer.name(), NAME_MAX))
}

#[cfg(test)]
mod arrays_tests {
    use super::*;
    use crate::view::tests::zeros;
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
