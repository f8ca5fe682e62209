//! `lodN.by-AXIS.npy`: transposed views of an array. Another axis comes first, so that a slice across it is contiguous
//! in the file.

use std::collections::HashSet;
use std::sync::Arc;

use super::array_file::ArrayFile;
use super::axis_names::{axis_names, own_names};
use super::content::{Content, ShownArray};
use super::file_names::NAME_MAX;
use super::npy;
use super::virtual_file::{Entry, LayerRef, View};
use crate::format::FormatError;
use crate::volume::{ArrayInfo, AxisPermutation};

/// The longest axis name in a file name, in bytes.
const AXIS_NAME_MAX: usize = NAME_MAX - "lod99.by-.npy".len();

/// The view of all levels. An array has one file for each axis except the first, which comes first in `lodN.npy`
/// already.
pub struct ByAxis;

impl ByAxis {
    /// Returns the number of files of one level.
    fn files_per_level(layer: LayerRef<'_>) -> u64 {
        layer.levels().first().map_or(0, |level| level.info().shape().len() as u64 - 1)
    }

    /// Returns the level of a node, and the axis that comes first in its file.
    fn level_and_axis(layer: LayerRef<'_>, node: u64) -> Option<(usize, usize)> {
        let files_per_level = Self::files_per_level(layer);
        let level = usize::try_from(node.checked_div(files_per_level)?).ok()?;
        let axis = (node % files_per_level) as usize + 1;
        let info = layer.levels().get(level)?.info();
        (axis < info.shape().len()).then_some((level, axis))
    }
}

/// Returns the names of all axes but the first, as they appear in file names.
fn names(info: &ArrayInfo) -> Vec<String> {
    axis_names(&own_names(info), 1, AXIS_NAME_MAX, &mut HashSet::new())
}

/// Returns the names of all axes: that of the first, which is distinct from the others, and [`axis_names`].
pub(super) fn all_axis_names(info: &ArrayInfo) -> Vec<String> {
    let others = axis_names(info);
    let name = info.axes.first().map_or("", |axis| axis.name.as_str());
    let name = if name.is_empty() { "axis0".to_owned() } else { file_name(name, AXIS_NAME_MAX) };
    let first = unique(name, AXIS_NAME_MAX, &mut others.iter().cloned().collect());
    [first].into_iter().chain(others).collect()
}

impl View for ByAxis {
    fn name(&self) -> Option<&'static str> {
        Some("by-axis")
    }

    fn nodes(&self, layer: LayerRef<'_>) -> u64 {
        Self::files_per_level(layer).saturating_mul(layer.levels().len() as u64)
    }

    fn list(&self, layer: LayerRef<'_>, folder: Option<u64>, add: &mut dyn FnMut(Entry)) {
        if folder.is_some() {
            return;
        }
        let files_per_level = Self::files_per_level(layer);
        for (lod, level) in layer.levels().iter().enumerate() {
            for (n, name) in (0..files_per_level).zip(names(level.info())) {
                let node = lod as u64 * files_per_level + n;
                add(Entry { node, name: format!("lod{lod}.by-{name}.npy"), folder: false });
            }
        }
    }

    fn shown_array(&self, layer: LayerRef<'_>, node: u64) -> Option<ShownArray> {
        let (level, axis) = Self::level_and_axis(layer, node)?;
        let info = layer.info(level);
        Some(ShownArray { shape: AxisPermutation::to_front(axis).permute_dims(&info.shape()), dtype: info.dtype })
    }

    fn may_block(&self) -> bool {
        false
    }

    fn content(&self, layer: LayerRef<'_>, node: u64) -> Result<Content, FormatError> {
        let Some((level, axis)) = Self::level_and_axis(layer, node) else {
            return Err(FormatError::Unsupported(format!("there is no transposed file number {node}")));
        };
        let (array, permutation) = (Arc::clone(&layer.levels()[level]), AxisPermutation::to_front(axis));
        let header = npy::header(array.info().dtype, &permutation.permute_dims(&array.info().shape()));
        Ok(Content::Array(ArrayFile::permuted(header, array, permutation)))
    }
}

#[cfg(test)]
mod tests {
    use super::super::array_file::tests::zeros;
    use super::*;
    use crate::volume::Dtype;

    fn names_of(axes: &[&str]) -> Vec<String> {
        let shape = vec![2; axes.len()];
        let mut info = zeros(&shape, Dtype::UInt8).info().clone();
        for (axis, name) in info.axes.iter_mut().zip(axes) {
            axis.name = (*name).to_owned();
        }
        super::names(&info)
    }

    #[test]
    fn files_are_named_after_their_axes() {
        assert_eq!(names_of(&["inline", "crossline", "sample"]), ["crossline", "sample"]);
        assert_eq!(names_of(&["Time", "Cross/line 100%", "."]), ["Cross%2Fline 100%25", "%2E"]);
        assert_eq!(names_of(&["x"]), [""; 0]);
    }

    #[test]
    fn axes_without_an_unambiguous_name_are_numbered() {
        assert_eq!(names_of(&["", "", "z"]), ["axis1", "z"]);
        assert_eq!(names_of(&["x", "x", "y"]), ["axis1", "y"]);
        assert_eq!(names_of(&["z", "y", "y"]), ["axis1", "axis2"]);
        assert_eq!(names_of(&["z", "", "axis1"]), ["axis1", "axis1~2"]);
    }

    #[test]
    fn long_names_leave_room_for_prefix_and_suffix() {
        let long = "é".repeat(200);
        for name in names_of(&["z", &long, &format!("{long}x")]) {
            assert!(name.len() <= AXIS_NAME_MAX && name.contains('~'), "{name}");
        }
    }
}
