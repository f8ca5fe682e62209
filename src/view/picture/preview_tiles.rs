//! The tiles in which the samples of a preview are read.

use std::ops::Range;

use super::plane::Rectangle;
use super::preview_plan::{Line, Part};

/// The most samples that are requested at a time.
pub(crate) const MAX_SAMPLES: u64 = 1 << 17;

/// The next tile, by the number of its part and the numbers of its first samples along both axes, counting those that
/// are shown.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Tiles {
    part: usize,
    slow: u64,
    fast: u64,
}

/// A rectangle of samples of a part that are requested at a time, counting those that are shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Tile {
    /// The number of the part.
    pub part: usize,
    /// The rows.
    pub down: Range<u64>,
    /// The columns.
    pub along: Range<u64>,
}

impl Tiles {
    /// Returns the next tile: several lines of samples along the faster axis, or a part of one.
    pub(crate) fn next(&mut self, parts: &[Part]) -> Option<Tile> {
        let part = parts.get(self.part)?;
        let is_turned = part.plane.axes()[0] > part.plane.axes()[1];
        let (slow, fast) = if is_turned { (part.along, part.down) } else { (part.down, part.along) };
        let in_line = (MAX_SAMPLES / fast.skip).clamp(1, fast.shown() - self.fast);
        let lines = MAX_SAMPLES / fast.shown().saturating_mul(fast.skip) / slow.skip;
        let lines = if in_line == fast.shown() { lines.clamp(1, slow.shown() - self.slow) } else { 1 };
        let (of_slow, of_fast) = (self.slow..self.slow + lines, self.fast..self.fast + in_line);
        let (down, along) = if is_turned { (of_fast, of_slow) } else { (of_slow, of_fast) };
        let tile = Tile { part: self.part, down, along };
        self.fast += in_line;
        if self.fast == fast.shown() {
            (self.fast, self.slow) = (0, self.slow + lines);
        }
        if self.slow == slow.shown() {
            (self.slow, self.part) = (0, self.part + 1);
        }
        Some(tile)
    }
}

impl Tile {
    /// Returns the samples, with those between them that are not shown.
    pub(crate) fn rectangle(&self, part: &Part) -> Rectangle {
        let samples = |line: &Line, shown: &Range<u64>| shown.start * line.skip..(shown.end - 1) * line.skip + 1;
        part.plane.rectangle(&samples(&part.down, &self.down), &samples(&part.along, &self.along))
    }
}

#[cfg(test)]
mod tests {
    use super::super::preview_plan::tests::plan;
    use super::super::subject::Subject;
    use super::*;
    use crate::view::array_file::tests::zeros;
    use crate::volume::Dtype;

    const PLAIN: Subject = Subject { axes: 3, components: 1, is_labels: false, vertical: None };

    #[test]
    fn every_sample_is_in_one_tile() {
        for (shape, subject) in [
            ([700, 900, 2000], PLAIN),
            ([700, 900, 2000], Subject { vertical: Some(2), ..PLAIN }),
            ([1, 2, 3_000_000], PLAIN),
            ([5, 1, 1], PLAIN),
        ] {
            let plan = plan(zeros(&shape, Dtype::UInt8).info(), &subject);
            let mut seen: Vec<Vec<u8>> = plan.parts.iter().map(|part| vec![0; part.shown() as usize]).collect();
            let mut tiles = Tiles::default();
            while let Some(tile) = tiles.next(&plan.parts) {
                let part = &plan.parts[tile.part];
                for (down, along) in tile.down.clone().flat_map(|down| tile.along.clone().map(move |x| (down, x))) {
                    seen[tile.part][(down * part.along.shown() + along) as usize] += 1;
                }
            }
            assert!(seen.iter().flatten().all(|count| *count == 1), "{shape:?}");
        }
    }
}
