//! The plane of an array that a picture shows: which axes its rows and columns are.

use std::ops::Range;

use super::subject::Subject;
use crate::volume::{Dims, Region};

/// A plane of an array of 2 or 3 axes. The faster axis runs along the rows of the picture, except the vertical one, which
/// points down.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Plane {
    shape: Dims,
    /// The axis across, and the index along it; an array of two axes is one plane.
    across: Option<(usize, u64)>,
    /// The axis from row to row.
    down: usize,
    /// The axis from column to column.
    along: usize,
    components: usize,
}

/// A rectangle of a plane: the box of samples, and the steps between them in the order in which they are read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Rectangle {
    /// The samples.
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

    /// Returns the axis from row to row, and the axis from column to column.
    pub(crate) fn axes(&self) -> [usize; 2] {
        [self.down, self.along]
    }

    /// Returns the columns.
    pub(crate) fn width(&self) -> u64 {
        self.shape[self.along]
    }

    /// Returns the rows.
    pub(crate) fn height(&self) -> u64 {
        self.shape[self.down]
    }

    /// Returns a rectangle, which lies within the plane.
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

    /// Returns the samples of a pixel.
    pub(crate) fn components(&self) -> usize {
        self.components
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SEISMIC: Subject = Subject { axes: 3, components: 1, is_labels: false, vertical: Some(2) };

    #[test]
    fn the_sample_axis_points_down() {
        let shape = Dims::from([4, 5, 6]);
        let plane = |subject: &Subject, axis| Plane::new(shape, subject, Some((axis, 3)));
        let axes = |subject: &Subject| [0, 1, 2].map(|axis| plane(subject, axis).axes());
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
