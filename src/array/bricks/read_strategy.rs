//! The read strategy: which bricks are loaded whole, and which are read in parts.

use super::access::BrickAccess;
use super::plain_read::{MAX_AMPLIFICATION, bytes_read};
use crate::array::copy::Loops;
use crate::array::scan::Retention;
use crate::volume::{Brick, Coded, Dims, Element, Layout, Plain, Region};

/// The kernel's own read-ahead reads fewer bytes than this beyond the reader's own.
const KERNEL_READ_AHEAD: u64 = 512 << 10;
/// Larger plain bricks are never loaded whole.
const MAX_WHOLE: u64 = 8 << 20;
/// Bricks whose contiguous runs are shorter than this (in bytes) are transposed once, when they are loaded, and not for
/// every plane.
const SHORT_RUN: u64 = 16;

/// How the samples of a brick are read.
pub(crate) enum ReadStrategy {
    /// All samples have this value.
    Constant(Element),
    /// Only the samples of the piece are read from the source.
    Parts(Plain),
    /// All of them are loaded, for the cache or for the planes that a scan keeps.
    Whole(WholeBrick),
}

/// A brick that is loaded whole.
pub(crate) enum WholeBrick {
    /// It has to be decoded.
    Coded(Coded),
    /// It is plain, but its planes are so scattered that a scan would read all of it again for each plane.
    Scattered(Plain),
    /// It is plain, and its source takes long to answer: one request brings all of it.
    Fetched(Plain),
}

impl ReadStrategy {
    /// Chooses how a reader reads a brick.
    pub(crate) fn choose(brick: Brick, access: &BrickAccess) -> Self {
        match brick {
            Brick::Constant(value) => Self::Constant(value),
            Brick::Coded(coded) => Self::Whole(WholeBrick::Coded(coded)),
            Brick::Plain(plain) if is_scattered(&plain, access) => Self::Whole(WholeBrick::Scattered(plain)),
            Brick::Plain(plain) if is_fetched(&plain, access) => Self::Whole(WholeBrick::Fetched(plain)),
            Brick::Plain(plain) => Self::Parts(plain),
        }
    }
}

impl WholeBrick {
    /// Whether the brick holds `region`.
    pub(crate) fn holds(&self, region: &Region) -> bool {
        match self {
            Self::Coded(coded) => coded.layout.held.contains(region),
            Self::Scattered(plain) | Self::Fetched(plain) => plain.layout.held.contains(region),
        }
    }
}

/// Whether a scan reads fewer bytes if it loads a plain brick whole.
fn is_scattered(plain: &Plain, access: &BrickAccess) -> bool {
    let (Some(_), Some(scan)) = (&access.view.permutation, &access.scan) else { return false };
    let (layout, info) = (&plain.layout, access.view.info());
    let size = info.dtype.size();
    // a reader of a single plane is faster with parts; the kernel's read-ahead takes it into the next plane
    let plane_samples = info.shape().strides(1)[0];
    let ahead = (KERNEL_READ_AHEAD / size as u64).min(plane_samples.saturating_mul(4));
    if scan.distance_covered() < plane_samples.saturating_mul(2).saturating_add(ahead) {
        return false;
    }
    let mut plane = layout.held.shape;
    plane[0] = plane[0].min(1);
    let loops = Loops::new(&plane, &layout.strides, &plane.strides(size as u64), size);
    is_small(layout, size) && loops.useful() > 0 && bytes_read(&loops) >= MAX_AMPLIFICATION * loops.useful()
}

/// Whether a plain brick is fetched whole, since its source takes long to answer.
fn is_fetched(plain: &Plain, access: &BrickAccess) -> bool {
    access.fetches_ahead() && is_small(&plain.layout, access.sample_size())
}

/// Whether a plain brick is loaded whole.
pub(crate) fn is_loaded_whole(plain: &Plain, access: &BrickAccess) -> bool {
    is_scattered(plain, access) || is_fetched(plain, access)
}

/// Whether a plain brick may be loaded whole.
fn is_small(layout: &Layout, size: usize) -> bool {
    layout.end(size).is_some_and(|end| end.saturating_sub(layout.first) <= MAX_WHOLE)
}

/// Whether a brick is transposed to the reader's order of axes right after it was decoded.
pub(crate) fn is_transposed_on_load(access: &BrickAccess, layout: &Layout) -> bool {
    // a scan that keeps planes copies them anyway
    let keeps_bricks = access.scan.as_ref().is_some_and(|scan| !matches!(scan.retention(), Retention::Planes(_)));
    access.view.permutation.is_some() && keeps_bricks && contiguous_run(layout, access.sample_size() as u64) < SHORT_RUN
}

/// Returns the bytes of samples that are contiguous in a brick, in the reader's order of axes.
fn contiguous_run(layout: &Layout, size: u64) -> u64 {
    let shape: &Dims = &layout.held.shape;
    let extend = |run: u64, axis: usize| (layout.strides[axis] == run).then(|| run.saturating_mul(shape[axis]));
    let axes = (0..shape.len()).rev().filter(|axis| shape[*axis] > 1);
    let mut run = size;
    for axis in axes {
        match extend(run, axis) {
            Some(longer) => run = longer,
            None => break,
        }
    }
    run
}
