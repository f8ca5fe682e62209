//! Copies part of a decoded brick into a brick of its own.

use std::sync::Arc;

use super::gather::Loops;
use crate::cache::DecodedBrick;
use crate::memory::BufferPool;
use crate::volume::{Dims, Layout, Region};

/// Returns a new brick with the samples `region` of `brick`, in C order. A sample has `size` bytes.
pub fn extract(brick: &DecodedBrick, region: Region, size: usize, buffers: &Arc<BufferPool>) -> DecodedBrick {
    let strides: Dims = region.shape.strides(size as u64);
    let mut bytes = buffers.take(region.samples() as usize * size);
    let start = brick.layout.offset_of(&region.start) as usize;
    Loops::new(&region.shape, &brick.layout.strides, &strides, size).copy(&brick.bytes[start..], &mut bytes);
    DecodedBrick { bytes: bytes.into(), layout: Layout { held: region, first: 0, strides } }
}
