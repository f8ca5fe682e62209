//! Sizes: the number of bricks in a layer and in a row of bricks, their bytes in memory, and the workers that decoding
//! them is worth.

use crate::memory::entry_weight;
use crate::volume::ArrayInfo;

/// Bricks from this size on take whole pages of memory.
const PAGE: usize = 4096;

/// The number of bricks in a layer of bricks: those that one plane (one index of the slowest axis) touches.
pub(crate) fn layer_bricks(info: &ArrayInfo) -> u64 {
    info.grid.count()[1..].iter().product::<u64>().max(1)
}

/// Whether a layer has so few bricks that a thread which talks to the kernel may look at each of them.
pub(crate) fn may_be_walked(info: &ArrayInfo) -> bool {
    layer_bricks(info) <= 1 << 16
}

/// The number of bricks in a row of bricks: those that a few rows of a plane touch.
pub(crate) fn row_bricks(info: &ArrayInfo) -> u64 {
    info.grid.count().get(2..).map_or(1, |inner| inner.iter().product::<u64>()).max(1)
}

/// Bytes of a decoded brick.
pub(crate) fn brick_bytes(info: &ArrayInfo) -> usize {
    let samples = info.brick_shape.product().and_then(|n| usize::try_from(n).ok());
    samples.and_then(|n| n.checked_mul(info.dtype.size())).unwrap_or(usize::MAX).max(1)
}

/// Bytes that a decoded brick takes in the cache, overhead included.
pub(crate) fn brick_cost(info: &ArrayInfo) -> usize {
    let brick = brick_bytes(info);
    entry_weight(if brick < PAGE { brick } else { brick.saturating_add(PAGE - 1) / PAGE * PAGE })
}

/// The number of workers worth waking for `bricks` bricks if each is to decode `batch` bytes.
pub(crate) fn workers(bricks: u64, info: &ArrayInfo, batch: usize) -> usize {
    let bytes = bricks.saturating_mul(brick_bytes(info) as u64);
    usize::try_from(bytes.div_ceil(batch as u64).min(bricks)).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::volume::{BrickGrid, Dims, Dtype};

    #[test]
    fn bricks_are_counted_and_weighed() {
        let (shape, brick) = (Dims::from_fn(3, |a| [100, 130, 65][a]), Dims::filled(3, 64));
        let info = ArrayInfo::new(Dtype::Int16, BrickGrid::aligned(shape, brick), brick);
        assert_eq!((layer_bricks(&info), row_bricks(&info), brick_bytes(&info)), (6, 2, 64 * 64 * 64 * 2));
        assert!(brick_cost(&info) >= brick_bytes(&info));
        // no more workers than bricks, and no more than batches
        assert_eq!((workers(6, &info, 1 << 20), workers(6, &info, 1 << 10), workers(0, &info, 1)), (3, 6, 0));
    }
}
