//! How a box is halved, step by step, and where the halves lie.

/// Sides shorter than this are not halved.
const SHORTEST: usize = 8;
/// The longest side there may be.
pub const LONGEST: usize = 512;
/// The steps that the longest side takes: 512, 256, ... 8.
pub(super) const MOST_STEPS: usize = 7;

/// A set of dimensions: x = 1, y = 2, z = 4. As the name of a sector: those in which it is the high half.
pub(super) type Set = usize;

/// Whether dimension `d` is in `set`.
pub(super) fn has(set: Set, d: usize) -> bool {
    set >> d & 1 != 0
}

/// The sets that are neither empty nor have what `set` has not, lowest first.
pub(super) fn subsets(set: Set) -> impl Iterator<Item = Set> {
    (1..8).filter(move |s| s & !set == 0)
}

/// The nested boxes: step `i` splits the box `size[i]` in the dimensions of `mask[i]`, low halves first, and leaves
/// `size[i + 1]`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Bands {
    /// Steps there are.
    pub steps: usize,
    /// Sizes, X first.
    pub size: [[usize; 3]; MOST_STEPS + 1],
    /// Which dimensions a step halves.
    pub mask: [Set; MOST_STEPS + 1],
}

impl Bands {
    /// The boxes of a chunk with sides of at most [`LONGEST`].
    pub fn new(mut size: [usize; 3]) -> Self {
        let mut bands = Self::default();
        while bands.steps < MOST_STEPS && size.iter().any(|s| *s >= SHORTEST) {
            bands.size[bands.steps] = size;
            for (d, side) in size.iter_mut().enumerate() {
                if *side >= SHORTEST {
                    bands.mask[bands.steps] |= 1 << d;
                    *side = side.div_ceil(2);
                }
            }
            bands.steps += 1;
        }
        bands.size[bands.steps] = size;
        bands
    }

    /// Whether a stream of an old version could be faulty with these boxes: a step but the first halves Z and one other.
    pub fn may_be_faulty(&self) -> bool {
        self.mask[1..].iter().any(|mask| has(*mask, 2) && mask.count_ones() == 2)
    }

    /// Samples of the box of a step.
    pub fn volume(&self, step: usize) -> usize {
        self.size[step].iter().product()
    }

    /// Where sector `set` of a step begins and ends.
    pub fn sector(&self, step: usize, set: Set) -> ([usize; 3], [usize; 3]) {
        let (whole, low) = (self.size[step], self.size[step + 1]);
        let pick = |d: usize| if has(set, d) { (low[d], whole[d]) } else { (0, low[d]) };
        let [x, y, z] = [pick(0), pick(1), pick(2)];
        ([x.0, y.0, z.0], [x.1, y.1, z.1])
    }

    /// The step whose box stands at the stream's front as it is: the lowest one that is no parent of anything.
    pub fn coarse(&self) -> usize {
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
