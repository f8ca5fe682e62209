//! A box cut into boxes that follow one another in C order, so that each brick is decoded once.
//!
//! The natural part is a layer of bricks along the slowest axis: all bricks of it are decoded, each for itself and once, and
//! their samples are written where they belong. Where that takes too much memory, parts are thinner than a brick, and the
//! cache has to hold the bricks until the next part wants them. Bricks that need no decoding may be cut anywhere; smaller
//! parts then stay in the processor's cache.

use crate::format::Array;
use crate::source::Wait;
use crate::volume::{Brick, Dims, Region};

/// Bytes of a part that has nothing to decode, and the least that others have where the box allows.
const SMALL: u64 = 4 << 20;

/// The parts of a box, in order.
pub struct Parts<'a> {
    array: &'a dyn Array,
    region: Region,
    /// The axis that is cut; along those before it a part has one position, along those behind it all.
    axis: usize,
    /// Bytes of a part with one position along the cut axis.
    slice: u64,
    /// The most bytes of a part, unless one position alone has more.
    most: u64,
    /// First position of the next part, along the axes up to the one that is cut.
    next: Option<Dims>,
}

impl<'a> Parts<'a> {
    /// Parts of at most `most` bytes of a box of `array`.
    #[must_use]
    pub fn new(array: &'a dyn Array, region: Region, most: u64) -> Self {
        let size = array.info().dtype.size() as u64;
        let slice = |axis: usize| region.shape[axis + 1..].iter().fold(size, |bytes, n| bytes.saturating_mul(*n));
        let axis = (0..region.axes()).find(|axis| slice(*axis) <= most).unwrap_or(region.axes() - 1);
        let next = (!region.shape.contains(&0)).then_some(region.start);
        Self { array, region, axis, slice: slice(axis), most, next }
    }

    /// Whether a brick belongs to several parts, so that a cache is of use.
    #[must_use]
    pub fn share_bricks(&self) -> bool {
        let step = self.array.info().grid.step();
        let several = self.region.shape[..self.axis].iter().any(|n| *n > 1);
        let layer = step[self.axis].min(self.region.shape[self.axis]);
        several || layer.saturating_mul(self.slice) > self.most
    }

    /// One past the last position of the part that begins at `at` along the cut axis.
    fn end(&self, at: &Dims) -> u64 {
        let (axis, grid) = (self.axis, &self.array.info().grid);
        let stop = self.region.end(axis);
        let positions = |bytes: u64| (bytes / self.slice).max(1);
        let mut end = at[axis];
        while end < stop && (end - at[axis]).saturating_mul(self.slice) < SMALL {
            end = grid.owned(axis, grid.brick_of(axis, end)).1.clamp(end + 1, stop);
        }
        let most = if self.decodes(&self.part(at, end)) { self.most } else { SMALL };
        end.min(at[axis].saturating_add(positions(most)))
    }

    fn part(&self, at: &Dims, end: u64) -> Region {
        let axes = self.region.axes();
        let start = Dims::from_fn(axes, |a| if a <= self.axis { at[a] } else { self.region.start[a] });
        let shape = Dims::from_fn(axes, |a| match a {
            a if a < self.axis => 1,
            a if a == self.axis => end - at[a],
            a => self.region.shape[a],
        });
        Region { start, shape }
    }

    /// Whether any brick of a box has to be decoded. One that cannot be looked at will say so when it is read.
    fn decodes(&self, part: &Region) -> bool {
        let touched = self.array.info().grid.touched(part);
        (0..touched.samples()).any(|n| {
            let within = touched.shape.index_of(n);
            let brick = Dims::from_fn(within.len(), |a| touched.start[a] + within[a]);
            matches!(self.array.brick(&brick, Wait::Yes), Ok(Brick::Coded(_)))
        })
    }

    /// The first position behind a part that ends at `end`.
    fn behind(&self, mut at: Dims, end: u64) -> Option<Dims> {
        at[self.axis] = end;
        for axis in (0..=self.axis).rev() {
            if at[axis] < self.region.end(axis) {
                return Some(at);
            }
            at[axis] = self.region.start[axis];
            *at[..axis].last_mut()? += 1;
        }
        None
    }
}

impl Iterator for Parts<'_> {
    type Item = Region;

    fn next(&mut self) -> Option<Region> {
        let at = self.next?;
        let end = self.end(&at);
        self.next = self.behind(at, end);
        Some(self.part(&at, end))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::format::{Census, FormatError};
    use crate::source::Source;
    use crate::volume::{ArrayInfo, BrickGrid, Coded, Dtype, Element, Layout, StoredLength};

    /// Bricks of an array that is only looked at.
    struct Bricks {
        info: ArrayInfo,
        coded: bool,
    }

    impl Bricks {
        fn new(shape: &[u64], step: &[u64], coded: bool) -> Self {
            let (shape, step) = (Dims::from_slice(shape).unwrap(), Dims::from_slice(step).unwrap());
            let info = ArrayInfo::new(Dtype::Float32, BrickGrid::aligned(shape, step), step);
            Self { info, coded }
        }
    }

    impl Array for Bricks {
        fn info(&self) -> &ArrayInfo {
            &self.info
        }

        fn source(&self) -> &dyn Source {
            unreachable!("nothing is read")
        }

        fn brick(&self, at: &Dims, _: Wait) -> Result<Brick, FormatError> {
            let layout = Layout { held: self.info.grid.region(at), first: 0, strides: *at };
            let coded = Coded {
                object: "".into(),
                offset: 0,
                length: StoredLength::Bytes(1),
                padding: 0,
                decoded: 1,
                scratch: 0,
                layout,
                codec: 0,
            };
            Ok(if self.coded { Brick::Coded(coded) } else { Brick::Constant(Element::zero(4)) })
        }

        fn decode(&self, _: &Coded, _: &[u8], _: &mut [u8]) -> Result<(), FormatError> {
            unreachable!("nothing is decoded")
        }

        fn census(&self) -> Result<Option<Census>, FormatError> {
            Ok(None)
        }
    }

    fn first_axis(array: &Bricks, region: Region, most: u64) -> Vec<(u64, u64)> {
        Parts::new(array, region, most).map(|part| (part.start[0], part.end(0))).collect()
    }

    #[test]
    fn layers_of_coded_bricks_stay_together() {
        let array = Bricks::new(&[300, 512, 512], &[64, 64, 64], true);
        let mut region = Region::whole(array.info.shape());
        // a plane has 1 MiB
        assert_eq!(first_axis(&array, region, 1 << 30), [(0, 64), (64, 128), (128, 192), (192, 256), (256, 300)]);
        assert!(!Parts::new(&array, region, 1 << 30).share_bricks());
        assert_eq!(first_axis(&array, region, 40 << 20)[..4], [(0, 40), (40, 64), (64, 104), (104, 128)]);
        assert!(Parts::new(&array, region, 40 << 20).share_bricks());
        (region.start[0], region.shape[0]) = (100, 50);
        assert_eq!(first_axis(&array, region, 1 << 30), [(100, 128), (128, 150)]);
        region.shape = [50, 8, 8].into();
        assert_eq!(first_axis(&array, region, 1 << 30), [(100, 150)]);
    }

    #[test]
    fn what_is_not_decoded_is_cut_small() {
        let array = Bricks::new(&[300, 512, 512], &[64, 64, 64], false);
        let parts = first_axis(&array, Region::whole(array.info.shape()), 1 << 30);
        assert!(parts.len() > 70 && parts.iter().all(|(from, to)| to - from <= 4), "{parts:?}");
    }

    #[test]
    fn a_plane_beyond_the_memory_is_cut_along_the_next_axis() {
        let array = Bricks::new(&[2, 3000, 3000], &[64, 64, 64], true);
        let parts: Vec<Region> = Parts::new(&array, Region::whole(array.info.shape()), 16 << 20).collect();
        assert!(parts.iter().all(|part| part.shape[0] == 1 && part.shape[2] == 3000), "{parts:?}");
        assert_eq!(parts[0].shape[1], 384);
        assert!(Parts::new(&array, Region::whole(array.info.shape()), 16 << 20).share_bricks());
    }

    proptest! {
        #[test]
        fn parts_cover_the_box_in_order(
            dims in prop::collection::vec((1u64..90, 1u64..30, 0.0f64..1.0, 0.0f64..1.0), 1..4), coded in any::<bool>(),
            most in prop::sample::select(vec![1u64, 700, 40_000, 1 << 30]),
        ) {
            let shape: Vec<u64> = dims.iter().map(|d| d.0).collect();
            let step: Vec<u64> = dims.iter().map(|d| d.1).collect();
            let array = Bricks::new(&shape, &step, coded);
            let edge = |a: usize, part: f64| (shape[a] as f64 * part) as u64;
            let start = Dims::from_fn(shape.len(), |a| edge(a, dims[a].2.min(dims[a].3)));
            let extent = Dims::from_fn(shape.len(), |a| edge(a, dims[a].2.max(dims[a].3)) - start[a]);
            let region = Region { start, shape: extent };
            let mut next = 0;
            for part in Parts::new(&array, region, most) {
                prop_assert!(region.contains(&part));
                let within = Dims::from_fn(shape.len(), |a| part.start[a] - start[a]);
                prop_assert_eq!(extent.linear_of(&within), next);
                next += part.samples();
            }
            prop_assert_eq!(next, region.samples());
        }
    }
}
