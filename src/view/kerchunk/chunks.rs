//! The chunks of a raw file: contiguous ranges of equal length that are boxes of the array.

use crate::volume::ArrayInfo;

/// The most chunks: their references are read as a whole.
const MAX_CHUNKS: u64 = 1 << 17;
/// A plane with more bytes is divided.
const DIVIDED_FROM: u64 = 64 << 20;
/// Larger chunks are of no use.
const USEFUL_TO: u64 = 1 << 30;

/// How a raw file is divided into chunks. A chunk has one position on the axes before `axis`, and all on those after it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Chunks {
    shape: Vec<u64>,
    axis: usize,
    /// Positions of a chunk on `axis`, of which the extent is a multiple.
    length: u64,
    sample_bytes: u64,
}

impl Chunks {
    /// Returns the chunks of an array: its planes. Large planes are divided, and small ones put together if they are too
    /// many. Since no chunk may be shorter than the others, this needs an extent that can be divided. `None` for an array
    /// without samples.
    pub(crate) fn of(info: &ArrayInfo) -> Option<Self> {
        let shape: Vec<u64> = info.shape().iter().copied().collect();
        let has_channels = shape.len() > 2 && info.axes.get(shape.len() - 1).is_some_and(|axis| !axis.spatial);
        let plane = shape.len().saturating_sub(if has_channels { 3 } else { 2 });
        if shape.contains(&0) {
            return None;
        }
        let chunks = |axis: usize, length: u64| Self {
            shape: shape.clone(),
            axis,
            length,
            sample_bytes: info.dtype.size() as u64,
        };
        let by_planes = chunks(plane, *shape.get(plane)?);
        if by_planes.bytes() <= DIVIDED_FROM && by_planes.count() <= MAX_CHUNKS {
            return Some(by_planes);
        }
        let mut all: Vec<Self> = (0..shape.len())
            .flat_map(|axis| divisors(shape[axis]).into_iter().map(move |length| (axis, length)))
            .map(|(axis, length)| chunks(axis, length))
            .filter(|chunks| chunks.count() <= MAX_CHUNKS)
            .collect();
        all.sort_by_key(Self::bytes);
        let largest = all.iter().rposition(|chunks| chunks.bytes() <= DIVIDED_FROM);
        // of chunks that are too large anyway, the smallest
        let chosen = if by_planes.bytes() > DIVIDED_FROM { largest.unwrap_or(0) } else { 0 };
        all.into_iter().nth(chosen)
    }

    /// Returns whether a program can hold a chunk.
    pub(crate) fn are_useful(&self) -> bool {
        self.bytes() <= USEFUL_TO
    }

    /// Returns the shape of a chunk.
    pub(crate) fn shape(&self) -> Vec<u64> {
        let extent = |(axis, extent): (usize, &u64)| match axis.cmp(&self.axis) {
            std::cmp::Ordering::Less => 1,
            std::cmp::Ordering::Equal => self.length,
            std::cmp::Ordering::Greater => *extent,
        };
        self.shape.iter().enumerate().map(extent).collect()
    }

    /// Returns the bytes of a chunk. The bytes of the array fit 63 bits.
    pub(crate) fn bytes(&self) -> u64 {
        self.shape[self.axis + 1..].iter().product::<u64>() * self.length * self.sample_bytes
    }

    /// Returns the number of chunks.
    pub(crate) fn count(&self) -> u64 {
        self.shape[..self.axis].iter().product::<u64>() * (self.shape[self.axis] / self.length)
    }

    /// Returns the position of a chunk in the grid of chunks, as Zarr writes it: `12.0.0`.
    pub(crate) fn key(&self, number: u64) -> String {
        let mut rest = number;
        let mut positions = vec![0; self.shape.len()];
        for axis in (0..=self.axis).rev() {
            let extent = if axis == self.axis { self.shape[axis] / self.length } else { self.shape[axis] };
            positions[axis] = rest % extent;
            rest /= extent;
        }
        positions.iter().map(u64::to_string).collect::<Vec<_>>().join(".")
    }
}

/// Returns all divisors of an extent; of a huge one only itself and 1.
fn divisors(extent: u64) -> Vec<u64> {
    let mut found = vec![1, extent];
    if extent <= i32::MAX as u64 {
        let small = (2..).take_while(|n| n * n <= extent).filter(|n| extent.is_multiple_of(*n));
        found.extend(small.flat_map(|n| [n, extent / n]));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::super::super::array_file::tests::zeros;
    use super::*;
    use crate::volume::Dtype;

    fn chunks(shape: &[u64], dtype: Dtype) -> Option<Chunks> {
        Chunks::of(zeros(shape, dtype).info())
    }

    fn shape_and_count(shape: &[u64]) -> (Vec<u64>, u64) {
        let chunks = chunks(shape, Dtype::UInt8).unwrap();
        assert_eq!(chunks.bytes() * chunks.count(), shape.iter().product::<u64>());
        (chunks.shape(), chunks.count())
    }

    #[test]
    fn chunks_are_planes() {
        assert_eq!(shape_and_count(&[4, 5, 7]), (vec![1, 5, 7], 4));
        assert_eq!(shape_and_count(&[2, 3, 5, 7]), (vec![1, 1, 5, 7], 6));
        assert_eq!(shape_and_count(&[5, 7]), (vec![5, 7], 1));
        assert_eq!(shape_and_count(&[7]), (vec![7], 1));
        let mut channels = zeros(&[4, 5, 7, 3], Dtype::UInt16).info().clone();
        channels.axes[3].spatial = false;
        let channels = Chunks::of(&channels).unwrap();
        assert_eq!((channels.shape(), channels.bytes()), (vec![1, 5, 7, 3], 210));
    }

    #[test]
    fn keys_count_in_c_order() {
        let chunks = chunks(&[2, 3, 5, 7], Dtype::UInt8).unwrap();
        let keys: Vec<String> = (0..6).map(|number| chunks.key(number)).collect();
        assert_eq!(keys, ["0.0.0.0", "0.1.0.0", "0.2.0.0", "1.0.0.0", "1.1.0.0", "1.2.0.0"]);
    }

    #[test]
    fn large_planes_are_divided_and_small_ones_put_together() {
        assert_eq!(shape_and_count(&[10, 1 << 14, 1 << 14]), (vec![1, 1 << 12, 1 << 14], 40));
        assert_eq!(shape_and_count(&[1 << 20, 4, 4]), (vec![8, 4, 4], 1 << 17));
        let divided = chunks(&[10, 1 << 14, 1 << 14], Dtype::UInt8).unwrap();
        assert_eq!((divided.key(5), divided.key(39)), ("1.1.0".to_owned(), "9.3.0".to_owned()));
        let together = chunks(&[1 << 20, 4, 4], Dtype::UInt8).unwrap();
        assert_eq!(together.key(9), "9.0.0");
        // no divisor but 1 and itself: the planes are large
        assert_eq!(shape_and_count(&[10, 100_003, 1 << 13]), (vec![1, 100_003, 1 << 13], 10));
        let useless = chunks(&[1 << 40, 1 << 10, 3], Dtype::UInt8).unwrap();
        assert!(useless.count() == 1 && !useless.are_useful());
    }
}
