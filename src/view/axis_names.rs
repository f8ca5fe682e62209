//! The names of axes, as file names have them.

use std::collections::HashSet;

use super::file_names::{file_name, unique};
use crate::volume::ArrayInfo;

/// Returns the names of an array's axes as the dataset has them, an empty one where it has none.
pub fn own_names(info: &ArrayInfo) -> Vec<&str> {
    (0..info.shape().len()).map(|axis| info.axes.get(axis).map_or("", |axis| axis.name.as_str())).collect()
}

/// Returns file names of at most `max` bytes for the axes from number `first` on: `axisN` for an axis without a name or
/// with the name of another axis. None of them is in `taken`, to which they are added.
pub fn axis_names(own: &[&str], first: usize, max: usize, taken: &mut HashSet<String>) -> Vec<String> {
    let unambiguous = |name: &str| !name.is_empty() && own.iter().filter(|other| **other == name).count() == 1;
    let named = own.iter().enumerate().skip(first);
    named
        .map(|(axis, name)| if unambiguous(name) { file_name(name, max) } else { format!("axis{axis}") })
        .map(|name| unique(name, max, taken))
        .collect()
}
