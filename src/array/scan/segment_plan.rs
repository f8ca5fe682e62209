//! Plans how many planes of each brick a scan keeps if it cannot keep a layer of bricks whole.

/// The greatest number of chunks in a segment. A chunk is released when all of it was read.
pub(crate) const CHUNKS: u64 = 16;

/// The percentage of the memory that a plan uses: segments do not end quite evenly, so that more is held at times.
const PLANNED: u64 = 97;

/// The lengths of the segments of one layer, in planes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SegmentPlan {
    /// Bricks of the layer.
    bricks: u64,
    /// The number of bricks that are kept whole from the first plane on.
    whole: u64,
    /// The shortest and the longest first segment of the other bricks.
    first: (u64, u64),
    /// The length of all later segments.
    longest: u64,
}

impl SegmentPlan {
    /// Plans for a layer of `bricks` bricks, each `depth` planes deep, in `share` bytes of memory. One plane of all
    /// bricks takes `plane` bytes.
    ///
    /// With memory for half of the layer or more, some bricks are kept whole, and the others get a first segment after
    /// which the rest of all bricks fits. With less, segments are twice as long as there is room for, since on average
    /// half of each was released; and the first segments have all lengths up to that, so that they do not all end in
    /// the same plane.
    pub(crate) fn new(share: usize, bricks: u64, depth: u64, plane: u64) -> Self {
        let (plane, depth, wide) = (u128::from(plane.max(1)), u128::from(depth.max(1)), u128::from(bricks));
        let memory = (share as u128 * u128::from(PLANNED) / 100).min(plane * depth);
        let narrow = |n: u128| u64::try_from(n).unwrap_or(u64::MAX);
        if 2 * memory >= plane * depth {
            let whole = wide * (2 * memory - plane * depth) / memory.max(1);
            let first = depth - (memory / plane).min(depth - 1);
            let first = (narrow(first), narrow(first));
            return Self { bricks, whole: narrow(whole), first, longest: narrow(depth) };
        }
        // a plane is released when it was read, so a segment of two planes holds one at most; of a segment in larger
        // chunks, one chunk is held although it was read in part
        let (twice, chunks) = (2 * memory / plane, u128::from(CHUNKS));
        let longest = (twice + 2).saturating_sub(twice.div_ceil(chunks)).clamp(1, depth);
        Self { bricks, whole: 0, first: (1, narrow(longest)), longest: narrow(longest) }
    }

    /// Returns the planes of the longest segment.
    pub(crate) fn longest(&self) -> u64 {
        self.longest
    }

    /// Returns the planes of the first segment of the layer's brick number `n`.
    pub(crate) fn first(&self, n: u64) -> u64 {
        // neighbours get different lengths, so that the segments that end in one plane are spread over the plane
        let share = |of: u64| (u128::from(n) * u128::from(of) / u128::from(self.bricks.max(1))) as u64;
        let next = |of: u64| (u128::from(n + 1) * u128::from(of) / u128::from(self.bricks.max(1))) as u64;
        if next(self.whole) > share(self.whole) {
            return self.longest;
        }
        let (least, most) = self.first;
        let golden = n.wrapping_mul(0x9E37_79B9_7F4A_7C15);
        least + ((u128::from(golden) * u128::from(most - least + 1)) >> 64) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns how often a pass decodes each brick, and the most that was held as a fraction of `share`.
    fn pass(share: usize, bricks: u64, depth: u64, plane: u64) -> (f64, f64) {
        let plan = SegmentPlan::new(share, bricks, depth, plane);
        let each = plane / bricks;
        let mut left: Vec<Option<u64>> = vec![None; bricks as usize];
        let (mut decodes, mut most) = (0, 0);
        for at in 0..depth {
            for n in 0..bricks {
                let held: u64 = left.iter().flatten().sum::<u64>() * each;
                most = most.max(held);
                let this = &mut left[n as usize];
                if matches!(this, None | Some(0)) {
                    decodes += 1;
                    let planes = if this.is_none() { plan.first(n) } else { plan.longest() };
                    let room = share as u64 - held;
                    *this = Some(planes.min(depth - at).min(room / each).max(1));
                }
                *this = this.map(|planes| planes - 1);
            }
        }
        (f64::from(decodes) / bricks as f64, most as f64 / share as f64)
    }

    #[test]
    fn a_pass_decodes_little_more_than_need_be() {
        for (part, best) in
            [(0.98, 1.1), (0.75, 1.33), (0.5, 2.0), (0.375, 2.3), (0.25, 3.0), (0.125, 4.9), (0.0625, 8.9)]
        {
            for bricks in [64, 128, 1000] {
                let layer = bricks * 64 * 100;
                let (decodes, most) = pass((layer as f64 * part) as usize, bricks, 64, bricks * 100);
                assert!(decodes <= best * 1.13, "{part} of {bricks}: {decodes}");
                assert!(most <= 1.0, "{part} of {bricks}: {most}");
            }
        }
    }

    #[test]
    fn whatever_the_numbers_segments_have_a_length() {
        for share in [0, 1, 1000, usize::MAX] {
            for (bricks, depth, plane) in [(0, 0, 0), (1, 1, 1), (7, 64, 1), (1 << 40, 64, u64::MAX), (3, u64::MAX, 7)]
            {
                let plan = SegmentPlan::new(share, bricks, depth, plane);
                for n in [0, 1, bricks.saturating_sub(1)] {
                    assert!((1..=depth.max(1)).contains(&plan.first(n)), "{plan:?}");
                }
                assert!((1..=depth.max(1)).contains(&plan.longest()), "{plan:?}");
            }
        }
    }
}
