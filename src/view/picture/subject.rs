//! What a layer's samples are to a person who looks at them.

use crate::view::virtual_file::LayerRef;
use crate::volume::{ArrayInfo, Dtype};

/// The names of vertical axes, in lower case.
const VERTICAL: [&str; 4] = ["sample", "time", "depth", "twt"];

/// How a level of a layer becomes pictures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Subject {
    /// The axes that are directions in a picture: the first 2 or 3 of the array.
    pub axes: usize,
    /// Samples of a pixel: 3 for red, green and blue along a last axis of their own, otherwise 1.
    pub components: usize,
    /// Whether samples are ids of segments.
    pub is_labels: bool,
    /// The axis that points down: the sample axis of seismic, the last of `axes`.
    pub vertical: Option<usize>,
}

impl Subject {
    /// Returns the subject of a level; `None` if it has too few or too many axes for pictures.
    pub(crate) fn of(layer: LayerRef<'_>, lod: usize) -> Option<Self> {
        let info = layer.info(lod);
        let category = layer.open.dataset.layers()[layer.layer].native.get("category").and_then(|c| c.as_str());
        let is_survey = layer.open.dataset.info().geometry.is_some();
        Self::of_array(info, category, is_survey)
    }

    /// Returns the subject of an array in a layer of this category, and in a dataset with a survey's geometry or
    /// without.
    fn of_array(info: &ArrayInfo, category: Option<&str>, is_survey: bool) -> Option<Self> {
        let shape = info.shape();
        let is_spatial = |axis: usize| info.axes.get(axis).is_none_or(|axis| axis.spatial);
        let last = shape.len() - 1;
        let is_rgb = !is_spatial(last) && shape[last] == 3 && matches!(info.dtype, Dtype::UInt8 | Dtype::UInt16);
        let (axes, components) = if is_rgb { (last, 3) } else { (shape.len(), 1) };
        if !(2..=3).contains(&axes) {
            return None;
        }
        let is_id = matches!(info.dtype, Dtype::UInt32 | Dtype::UInt64);
        let is_labels = components == 1
            && info.dtype.is_integer()
            && match category {
                Some(category) => category == "segmentation",
                None => is_id && info.value_range.is_none(),
            };
        let name = info.axes.get(axes - 1).map(|axis| axis.name.to_lowercase()).unwrap_or_default();
        let is_vertical = is_spatial(axes - 1) && (is_survey || VERTICAL.contains(&name.as_str()));
        Some(Self { axes, components, is_labels, vertical: is_vertical.then_some(axes - 1) })
    }
}

/// Returns why a layer has no pictures: it is none of two or three directions, or else for another reason.
pub(crate) fn why_no_pictures(layer: LayerRef<'_>, other: &'static str) -> &'static str {
    match Subject::of(layer, 0) {
        None => "pictures are of arrays of two or three axes, and of a last one with red, green and blue",
        Some(_) if layer.info(0).shape().contains(&0) => "it has no samples",
        Some(_) => other,
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::super::super::array_file::tests::zeros;
    use super::*;

    /// Returns the subject of an array of this shape; `channels`: its last axis is not spatial.
    fn subject(shape: &[u64], dtype: Dtype, channels: bool, category: Option<&str>) -> Option<Subject> {
        let mut info = zeros(shape, dtype).info().clone();
        for (axis, name) in info.axes.iter_mut().zip(["z", "y", "x", "channel"]) {
            axis.name = name.into();
        }
        if channels {
            info.axes.last_mut().unwrap().spatial = false;
        }
        Subject::of_array(&info, category, false)
    }

    #[test]
    fn three_values_of_a_voxel_are_red_green_and_blue() {
        let plain = Subject { axes: 3, components: 1, is_labels: false, vertical: None };
        let rgb = Subject { components: 3, ..plain };
        assert_eq!(subject(&[4, 5, 6], Dtype::UInt8, false, None), Some(plain));
        assert_eq!(subject(&[4, 5, 6, 3], Dtype::UInt8, true, Some("color")), Some(rgb));
        assert_eq!(subject(&[5, 6, 3], Dtype::UInt16, true, None), Some(Subject { axes: 2, ..rgb }));
        assert_eq!(subject(&[4, 5, 6, 3], Dtype::Float32, true, None), None);
        assert_eq!(subject(&[4, 5, 6, 2], Dtype::UInt8, true, None), None);
        assert_eq!(subject(&[4, 5, 6, 3], Dtype::UInt8, false, None), None);
        assert_eq!(subject(&[4], Dtype::UInt8, false, None), None);
        assert_eq!(subject(&[5, 6, 2], Dtype::UInt8, true, None), Some(plain), "one picture for each value");
    }

    #[test]
    fn segmentations_have_labels() {
        let is_labels = |dtype, category| subject(&[4, 5, 6], dtype, false, category).unwrap().is_labels;
        assert!(is_labels(Dtype::UInt8, Some("segmentation")) && is_labels(Dtype::Int64, Some("segmentation")));
        assert!(is_labels(Dtype::UInt64, None) && !is_labels(Dtype::UInt32, Some("color")));
        assert!(!is_labels(Dtype::UInt16, None) && !is_labels(Dtype::Float32, Some("segmentation")));
        let mut ranged = zeros(&[4, 5, 6], Dtype::UInt32).info().clone();
        ranged.value_range = Some((0.0, 9.0));
        assert!(!Subject::of_array(&ranged, None, false).unwrap().is_labels);
    }

    #[test]
    fn samples_point_down() {
        let info = zeros(&[4, 5, 6], Dtype::Float32).info().clone();
        let vertical = |info: &ArrayInfo, is_survey| Subject::of_array(info, None, is_survey).unwrap().vertical;
        assert_eq!(vertical(&info, false), Some(2), "it is called sample");
        let mut named = info.clone();
        named.axes[2].name = "x".into();
        assert_eq!((vertical(&named, false), vertical(&named, true)), (None, Some(2)));
        named.axes[2].name = "Time".into();
        assert_eq!(vertical(&named, false), Some(2));
        named.axes[2].spatial = false;
        assert_eq!(vertical(&named, true), None);
    }
}
