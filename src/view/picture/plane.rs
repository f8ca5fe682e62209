//! The plane of an array that a picture shows: which axes its rows and columns are.

use std::ops::Range;

use crate::view::LayerRef;
use crate::volume::{ArrayInfo, Dims, Dtype, Region};

/// A plane of an array of 2 or 3 axes. The faster axis runs along the rows of the picture, except the vertical one,
/// which points down.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Plane {
    shape: Dims,
    /// The axis across, and the index along it; an array of two axes is one plane.
    across: Option<(usize, u64)>,
    /// The axis from row to row.
    pub down: usize,
    /// The axis from column to column.
    pub along: usize,
    pub components: usize,
}

/// A rectangle of a plane: the box of samples, and the steps between them in the order in which they are read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Rectangle {
    pub region: Region,
    /// Pixels from one row to the next.
    pub row_step: usize,
    /// Pixels from one column to the next.
    pub column_step: usize,
}

impl Plane {
    /// Returns the plane at an index along an axis; `across` is `None` for an array of two axes.
    pub(crate) fn new(shape: Dims, subject: &Subject, across: Option<(usize, u64)>) -> Self {
        let mut axes = (0..subject.axes).filter(|axis| across.is_none_or(|(across, _)| across != *axis));
        let (slow, fast) = (axes.next().unwrap_or(0), axes.next().unwrap_or(1));
        let (down, along) = if subject.vertical == Some(fast) { (fast, slow) } else { (slow, fast) };
        Self { shape, across, down, along, components: subject.components }
    }

    pub(crate) fn width(&self) -> u64 {
        self.shape[self.along]
    }

    pub(crate) fn height(&self) -> u64 {
        self.shape[self.down]
    }

    pub(crate) fn rectangle(&self, rows: &Range<u64>, columns: &Range<u64>) -> Rectangle {
        let mut region = Region::whole(self.shape);
        if let Some((axis, index)) = self.across {
            (region.start[axis], region.shape[axis]) = (index, 1);
        }
        for (axis, range) in [(self.down, rows), (self.along, columns)] {
            (region.start[axis], region.shape[axis]) = (range.start, range.end - range.start);
        }
        let is_turned = self.along < self.down;
        let (row_step, column_step) =
            if is_turned { (1, region.shape[self.down]) } else { (region.shape[self.along], 1) };
        Rectangle { region, row_step: row_step as usize, column_step: column_step as usize }
    }
}

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
mod tests {
    use super::*;
    use crate::view::tests::zeros;

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

    const SEISMIC: Subject = Subject { axes: 3, components: 1, is_labels: false, vertical: Some(2) };

    #[test]
    fn the_sample_axis_points_down() {
        let shape = Dims::from([4, 5, 6]);
        let plane = |subject: &Subject, axis| Plane::new(shape, subject, Some((axis, 3)));
        let axes =
            |subject: &Subject| [0, 1, 2].map(|axis| plane(subject, axis)).map(|plane| [plane.down, plane.along]);
        assert_eq!(axes(&SEISMIC), [[2, 1], [2, 0], [0, 1]]);
        assert_eq!(axes(&Subject { vertical: None, ..SEISMIC }), [[1, 2], [0, 2], [0, 1]]);
        let inline = plane(&SEISMIC, 0);
        assert_eq!((inline.width(), inline.height()), (5, 6));
        let line = Plane::new(Dims::from([7, 9]), &Subject { axes: 2, vertical: Some(1), ..SEISMIC }, None);
        assert_eq!((line.width(), line.height()), (7, 9));
    }

    #[test]
    fn rectangles_are_boxes() {
        let inline = Plane::new(Dims::from([4, 5, 6]), &SEISMIC, Some((0, 3)));
        let got = inline.rectangle(&(2..4), &(1..5));
        let region = Region { start: Dims::from([3, 1, 2]), shape: Dims::from([1, 4, 2]) };
        assert_eq!(got, Rectangle { region, row_step: 1, column_step: 2 });
        let rgb = Subject { components: 3, vertical: None, ..SEISMIC };
        let slice = Plane::new(Dims::from([4, 5, 6, 3]), &rgb, Some((1, 0)));
        let got = slice.rectangle(&(0..4), &(2..5));
        let region = Region { start: Dims::from([0, 0, 2, 0]), shape: Dims::from([4, 1, 3, 3]) };
        assert_eq!(got, Rectangle { region, row_step: 3, column_step: 1 });
    }
}
