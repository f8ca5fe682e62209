//! `lodN.by-AXIS.npy`: the samples with another axis first, so that a slice across it is one piece of the file.

use std::collections::HashSet;
use std::sync::Arc;

use super::names::{file_name, unique};
use super::{ArrayFile, Content, Entry, LayerRef, ShownArray, View, npy};
use crate::format::FormatError;
use crate::volume::{ArrayInfo, AxisPermutation};

/// Bytes of a name that are left for the axis: the longest name of a file less `lod99.by-.npy`.
const LONGEST: usize = 255 - 13;

/// The view. An array has such a file for each of its axes but the first, which is the slowest anyway.
pub struct ByAxis;

impl ByAxis {
    /// Files of a level.
    fn of_level(place: LayerRef<'_>) -> u64 {
        place.layer().levels.first().map_or(0, |level| level.info().shape().len() as u64 - 1)
    }

    /// The level of a node, and the axis that comes first.
    fn parts(place: LayerRef<'_>, node: u64) -> Option<(usize, usize)> {
        let of_level = Self::of_level(place);
        let level = usize::try_from(node.checked_div(of_level)?).ok()?;
        let axis = (node % of_level) as usize + 1;
        let info = place.layer().levels.get(level)?.info();
        (axis < info.shape().len()).then_some((level, axis))
    }
}

/// What the files of an array's axes are called, the first axis left out: as the axis, or by its number where it has no name
/// of its own.
fn axis_names(info: &ArrayInfo) -> Vec<String> {
    let name = |axis: usize| info.axes.get(axis).map_or("", |axis| axis.name.as_str());
    let axes = info.shape().len();
    let own = |axis: usize| !name(axis).is_empty() && (0..axes).filter(|other| name(*other) == name(axis)).count() == 1;
    let mut taken = HashSet::new();
    (1..axes)
        .map(|axis| if own(axis) { file_name(name(axis), LONGEST) } else { format!("axis{axis}") })
        .map(|name| unique(name, LONGEST, &mut taken))
        .collect()
}

impl View for ByAxis {
    fn nodes(&self, place: LayerRef<'_>) -> u64 {
        Self::of_level(place).saturating_mul(place.layer().levels.len() as u64)
    }

    fn list(&self, place: LayerRef<'_>, folder: Option<u64>, add: &mut dyn FnMut(Entry)) {
        if folder.is_some() {
            return;
        }
        let of_level = Self::of_level(place);
        for (lod, level) in place.layer().levels.iter().enumerate() {
            for (n, name) in (0..of_level).zip(axis_names(level.info())) {
                let node = lod as u64 * of_level + n;
                add(Entry { node, name: format!("lod{lod}.by-{name}.npy"), folder: false });
            }
        }
    }

    fn shows(&self, place: LayerRef<'_>, node: u64) -> Option<ShownArray> {
        let (level, axis) = Self::parts(place, node)?;
        let info = place.info(level);
        Some(ShownArray { shape: AxisPermutation::to_front(axis).dims(&info.shape()), dtype: info.dtype })
    }

    fn may_wait(&self) -> bool {
        false
    }

    fn content(&self, place: LayerRef<'_>, node: u64) -> Result<Content, FormatError> {
        let Some((level, axis)) = Self::parts(place, node) else {
            return Err(FormatError::Unsupported(format!("there is no turned file number {node}")));
        };
        let (array, turn) = (Arc::clone(&place.layer().levels[level]), AxisPermutation::to_front(axis));
        let header = npy::header(array.info().dtype, &turn.dims(&array.info().shape()));
        Ok(Content::Array(ArrayFile::turned(header, array, turn)))
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
        axis_names(&info)
    }

    #[test]
    fn files_are_called_as_their_axes() {
        assert_eq!(names_of(&["inline", "crossline", "sample"]), ["crossline", "sample"]);
        assert_eq!(names_of(&["Time", "Cross/line 100%", "."]), ["Cross%2Fline 100%25", "%2E"]);
        assert_eq!(names_of(&["x"]), [""; 0]);
    }

    #[test]
    fn axes_without_a_name_of_their_own_have_their_number() {
        assert_eq!(names_of(&["", "", "z"]), ["axis1", "z"]);
        assert_eq!(names_of(&["x", "x", "y"]), ["axis1", "y"]);
        assert_eq!(names_of(&["z", "y", "y"]), ["axis1", "axis2"]);
        assert_eq!(names_of(&["z", "", "axis1"]), ["axis1", "axis1~2"]);
    }

    #[test]
    fn long_names_leave_room_for_the_rest() {
        let long = "é".repeat(200);
        for name in names_of(&["z", &long, &format!("{long}x")]) {
            assert!(name.len() <= LONGEST && name.contains('~'), "{name}");
        }
    }
}
