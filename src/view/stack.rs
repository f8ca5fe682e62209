//! An array as a stack of planes.

use crate::volume::{ArrayInfo, Dtype};

/// A last axis that is not spatial is the channels of a pixel if it is no longer than this.
const MAX_CHANNELS: u64 = 64;

/// An array as a stack of planes of equal size, one directly behind the other. The last spatial axis is the width, the
/// one before it the height.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Stack {
    /// Pixels of a row.
    pub width: u64,
    /// Rows of a plane.
    pub height: u64,
    /// The axes across the planes, slowest first: none to three.
    pub across: Vec<u64>,
    /// Samples of a pixel.
    pub channels: u64,
    /// The type of a sample.
    pub dtype: Dtype,
}

impl Stack {
    /// Returns the stack of an array; `None` for an array of fewer than two or more than five axes besides the channels.
    pub(crate) fn of(info: &ArrayInfo) -> Option<Self> {
        let shape: Vec<u64> = info.shape().iter().copied().collect();
        let (last, before) = shape.split_last()?;
        let last_is_spatial = info.axes.get(before.len()).is_none_or(|axis| axis.spatial);
        let (channels, extents) =
            if last_is_spatial || !(2..=MAX_CHANNELS).contains(last) { (1, &shape[..]) } else { (*last, before) };
        let [across @ .., height, width] = extents else { return None };
        // nothing of a size of zero is an image
        let is_image = across.len() <= 3 && !shape.contains(&0);
        is_image.then(|| Self { width: *width, height: *height, across: across.to_vec(), channels, dtype: info.dtype })
    }

    /// Returns the number of planes.
    pub(crate) fn planes(&self) -> u64 {
        self.across.iter().product()
    }

    /// Returns the bytes of a plane. The product of all extents and the size of a sample fits 63 bits.
    pub(crate) fn plane_bytes(&self) -> u64 {
        self.width * self.height * self.channels * self.dtype.size() as u64
    }

    /// Returns whether a pixel is red, green and blue.
    pub(crate) fn is_rgb(&self) -> bool {
        self.channels == 3 && matches!(self.dtype, Dtype::UInt8 | Dtype::UInt16)
    }
}

#[cfg(test)]
mod tests {
    use super::super::array_file::tests::zeros;
    use super::*;

    fn stack(shape: &[u64], channels: bool) -> Option<Stack> {
        let mut info = zeros(shape, Dtype::UInt8).info().clone();
        info.axes.last_mut().unwrap().spatial = !channels;
        Stack::of(&info)
    }

    #[test]
    fn the_last_two_spatial_axes_are_the_plane() {
        let got = stack(&[4, 5, 7], false).unwrap();
        assert_eq!((got.width, got.height, got.planes(), got.channels, got.plane_bytes()), (7, 5, 4, 1, 35));
        let got = stack(&[4, 5, 7, 3], true).unwrap();
        assert_eq!((got.width, got.height, got.planes(), got.channels, got.plane_bytes()), (7, 5, 4, 3, 105));
        assert!(got.is_rgb());
        assert_eq!(stack(&[5, 7], false).unwrap().planes(), 1);
        assert_eq!(stack(&[2, 3, 4, 5, 7], false).unwrap().across, [2, 3, 4]);
    }

    #[test]
    fn long_axes_are_no_channels_and_lines_no_images() {
        let headers = stack(&[33, 6, 240], true).unwrap();
        assert_eq!((headers.width, headers.height, headers.planes(), headers.channels), (240, 6, 33, 1));
        assert_eq!(stack(&[33, 6, 1], true).unwrap().width, 1);
        assert_eq!(stack(&[9], false), None);
        assert_eq!(stack(&[9, 3], true), None);
        assert_eq!(stack(&[2, 2, 2, 2, 5, 7], false), None);
    }
}
