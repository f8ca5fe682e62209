//! The names of axes as they appear in file names.

use std::collections::HashSet;

use super::file_names::{NAME_MAX, file_name, unique};
use crate::volume::ArrayInfo;

/// The longest axis name in a file name, in bytes.
const AXIS_NAME_MAX: usize = NAME_MAX - "lod99.by-.npy".len();

/// Returns the names of all axes, as they appear in file names: `axisN` for an axis without a name or with the name of
/// another axis.
#[must_use]
pub(crate) fn axis_names(info: &ArrayInfo) -> Vec<String> {
    let name = |axis: usize| info.axes.get(axis).map_or("", |axis| axis.name.as_str());
    let axes = info.shape().len();
    let unambiguous =
        |axis: usize| !name(axis).is_empty() && (0..axes).filter(|other| name(*other) == name(axis)).count() == 1;
    let mut taken = HashSet::new();
    let mut in_file_name = |axis: usize| {
        let name = if unambiguous(axis) { file_name(name(axis), AXIS_NAME_MAX) } else { format!("axis{axis}") };
        unique(name, AXIS_NAME_MAX, &mut taken)
    };
    // the first axis has fewer files than the others: it is the one that changes its name if it has to be another one
    let mut names: Vec<String> = (1..axes).map(&mut in_file_name).collect();
    names.insert(0, in_file_name(0));
    names
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
    fn files_are_named_after_their_axes() {
        assert_eq!(names_of(&["inline", "crossline", "sample"]), ["inline", "crossline", "sample"]);
        assert_eq!(names_of(&["Time", "Cross/line 100%", "."]), ["Time", "Cross%2Fline 100%25", "%2E"]);
        assert_eq!(names_of(&["x"]), ["x"]);
    }

    #[test]
    fn axes_without_an_unambiguous_name_are_numbered() {
        assert_eq!(names_of(&["", "", "z"]), ["axis0", "axis1", "z"]);
        assert_eq!(names_of(&["x", "x", "y"]), ["axis0", "axis1", "y"]);
        assert_eq!(names_of(&["z", "y", "y"]), ["z", "axis1", "axis2"]);
        assert_eq!(names_of(&["z", "", "axis1"]), ["z", "axis1", "axis1~2"]);
        assert_eq!(names_of(&["axis1", "", "z"]), ["axis1~2", "axis1", "z"]);
    }

    #[test]
    fn long_names_leave_room_for_prefix_and_suffix() {
        let long = "é".repeat(200);
        for name in &names_of(&["z", &long, &format!("{long}x")])[1..] {
            assert!(name.len() <= AXIS_NAME_MAX && name.contains('~'), "{name}");
        }
    }
}
