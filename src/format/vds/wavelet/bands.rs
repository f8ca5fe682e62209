//! The wavelet decomposition of a chunk: how its box is halved, step by step, and where the subbands lie.

/// Shorter sides are not halved.
const MIN_HALVED_SIDE: usize = 8;
/// The longest side of a chunk.
pub(crate) const MAX_SIDE: usize = 512;
/// Steps of the longest side: it is halved at 512, 256, ... 8.
pub(super) const MAX_STEPS: usize = 7;

/// A set of dimensions: x = 1, y = 2, z = 4. A *sector* is a subband of a step, named by the set of dimensions in which
/// it is the high half.
pub(super) type DimSet = usize;

/// Returns whether dimension `d` is in `set`.
pub(super) fn has(set: DimSet, d: usize) -> bool {
    set >> d & 1 != 0
}

/// Returns the subsets of `set` except for the empty one, lowest first.
pub(super) fn subsets(set: DimSet) -> impl Iterator<Item = DimSet> {
    (1..8).filter(move |s| s & !set == 0)
}

/// The nested boxes: step `i` halves the box `size[i]` in the dimensions of `mask[i]`, low half first; the low half in
/// all of them is the box `size[i + 1]`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Bands {
    /// The number of steps.
    pub steps: usize,
    /// The size of each box, X first.
    pub size: [[usize; 3]; MAX_STEPS + 1],
    /// The dimensions that each step halves.
    pub mask: [DimSet; MAX_STEPS + 1],
}

impl Bands {
    /// Computes the boxes of a chunk, whose sides are at most [`MAX_SIDE`].
    pub(crate) fn new(mut size: [usize; 3]) -> Self {
        let mut bands = Self::default();
        while bands.steps < MAX_STEPS && size.iter().any(|s| *s >= MIN_HALVED_SIDE) {
            bands.size[bands.steps] = size;
            for (d, side) in size.iter_mut().enumerate() {
                if *side >= MIN_HALVED_SIDE {
                    bands.mask[bands.steps] |= 1 << d;
                    *side = side.div_ceil(2);
                }
            }
            bands.steps += 1;
        }
        bands.size[bands.steps] = size;
        bands
    }

    /// Returns whether a stream of an old version may be faulty with these boxes: a step other than the first halves Z
    /// and one other dimension.
    pub(crate) fn may_be_faulty(&self) -> bool {
        self.mask[1..].iter().any(|mask| has(*mask, 2) && mask.count_ones() == 2)
    }

    /// Returns the number of samples in the box of a step.
    pub(crate) fn volume(&self, step: usize) -> usize {
        self.size[step].iter().product()
    }

    /// Returns the first position of sector `set` of a step, and the position after its last.
    pub(crate) fn sector(&self, step: usize, set: DimSet) -> ([usize; 3], [usize; 3]) {
        let (whole, low) = (self.size[step], self.size[step + 1]);
        let pick = |d: usize| if has(set, d) { (low[d], whole[d]) } else { (0, low[d]) };
        let [x, y, z] = [pick(0), pick(1), pick(2)];
        ([x.0, y.0, z.0], [x.1, y.1, z.1])
    }

    /// Returns the coarsest step: its coefficients are not children of any node, and stand at the front of the stream
    /// as plain floats.
    pub(crate) fn coarse(&self) -> usize {
        self.steps.saturating_sub(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn boxes_are_halved_until_all_sides_are_short() {
        let bands = Bands::new([64, 29, 1]);
        assert_eq!(bands.size[..5], [[64, 29, 1], [32, 15, 1], [16, 8, 1], [8, 4, 1], [4, 4, 1]]);
        assert_eq!((bands.steps, &bands.mask[..4]), (4, &[3, 3, 3, 1][..]));
        let bands = Bands::new([28, 32, 32]);
        assert_eq!(bands.size[..4], [[28, 32, 32], [14, 16, 16], [7, 8, 8], [7, 4, 4]]);
        assert_eq!((bands.steps, &bands.mask[..3]), (3, &[7, 7, 6][..]));
        assert_eq!(Bands::new([100; 3]).size[..5], [[100; 3], [50; 3], [25; 3], [13; 3], [7; 3]]);
        assert_eq!(Bands::new([512; 3]).size[7], [4; 3]);
        assert_eq!((Bands::new([7; 3]).steps, Bands::new([7; 3]).size[0]), (0, [7; 3]));
    }
}
