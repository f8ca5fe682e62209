//! Copies part of a decoded brick into a brick of its own.

use std::sync::Arc;

use super::gather::Loops;
use crate::cache::DecodedBrick;
use crate::memory::{BufferPool, OutOfMemory};
use crate::volume::{Dims, Layout, Region};

/// Returns a new brick with the samples `region` of `brick`, in C order. A sample has `size` bytes.
pub(crate) fn extract(
    brick: &DecodedBrick,
    region: Region,
    size: usize,
    buffers: &Arc<BufferPool>,
) -> Result<DecodedBrick, OutOfMemory> {
    let strides: Dims = region.shape.strides(size as u64);
    let layout = Layout { held: region, first: 0, strides };
    // a brick may own no samples, where a margin is all that is left of it
    if region.shape.contains(&0) {
        return Ok(DecodedBrick { bytes: buffers.empty().into(), layout });
    }
    let (length, is_whole) = (region.samples() as usize * size, region == brick.layout.held);
    let mut bytes = if is_whole { buffers.take_brick(length)? } else { buffers.try_take(length)? };
    let start = brick.layout.offset_of(&region.start) as usize;
    Loops::new(&region.shape, &brick.layout.strides, &strides, size).copy(&brick.bytes[start..], &mut bytes);
    Ok(DecodedBrick { bytes: bytes.into(), layout })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_of_a_brick_is_an_empty_brick() {
        let buffers = BufferPool::new(0);
        let brick = |shape: Dims| {
            let held = Region { start: [4, 4].into(), shape };
            let bytes = buffers.take(held.samples() as usize * 4);
            DecodedBrick { bytes: bytes.into(), layout: Layout { held, first: 0, strides: [8, 2].into() } }
        };
        for (held, wanted) in [([3, 3], [3, 0]), ([3, 0], [3, 0]), ([0, 3], [0, 3]), ([0, 0], [0, 0])] {
            let region = Region { start: [4, 4].into(), shape: wanted.into() };
            let part = extract(&brick(held.into()), region, 2, &buffers).unwrap();
            assert_eq!((part.bytes.len(), part.layout.held), (0, region));
        }
    }
}
