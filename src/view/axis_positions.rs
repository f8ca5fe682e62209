//! The positions of samples along an axis, for views that have a vector of them.

use std::ops::Range;

use super::spatial_transform::{finite, step};
use crate::volume::{ArrayInfo, Axis};

/// Returns the position of the first sample along an axis, and the distance of neighbours: finite numbers, the distance
/// not 0.
pub(crate) fn first_and_step(axis: Option<&Axis>) -> (f64, f64) {
    axis.map_or((0.0, 1.0), |axis| (finite(axis.first), step(axis.step)))
}

/// Returns the positions of `samples` along an axis, with zeros beyond its end: float64, little-endian.
pub(crate) fn positions(info: &ArrayInfo, axis: usize, samples: Range<u64>) -> Vec<u8> {
    let (count, (first, step)) = (info.shape()[axis], first_and_step(info.axes.get(axis)));
    let position = |n: u64| if n < count { first + step * n as f64 } else { 0.0 };
    samples.flat_map(|n| position(n).to_le_bytes()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::view::array_file::tests::zeros;
    use crate::volume::Dtype;

    #[test]
    fn positions_are_finite_and_end_in_zeros() {
        let read = |info: &ArrayInfo, samples| -> Vec<f64> {
            positions(info, 1, samples).as_chunks().0.iter().map(|b| f64::from_le_bytes(*b)).collect()
        };
        let mut info = zeros(&[2, 5], Dtype::UInt8).info().clone();
        assert_eq!(read(&info, 0..5), [10.0, 13.0, 16.0, 19.0, 22.0]);
        assert_eq!(read(&info, 3..7), [19.0, 22.0, 0.0, 0.0]);
        (info.axes[1].first, info.axes[1].step) = (f64::NAN, f64::INFINITY);
        assert!(read(&info, 0..5).iter().all(|position| position.is_finite()));
    }
}
