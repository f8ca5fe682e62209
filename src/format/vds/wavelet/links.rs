//! Which coefficients hang on which: the links from the nodes of a step to those of the finer one.

use super::bands::{Bands, MOST_STEPS, Set, has, subsets};
use super::header::Coding;

/// A box of children for the nodes of one sector.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Link {
    /// Where the children of the sector's first node stand.
    pub from: [usize; 3],
    /// Where legal children end.
    pub limit: [usize; 3],
    /// The parent with one child more, in each dimension; [`NO_EXTRA`] if there is none.
    pub extra: [usize; 3],
    /// The children's sector.
    pub sector: Set,
}

/// No parent has a child more than the others.
const NO_EXTRA: usize = usize::MAX;

/// How the nodes of a sector have their children.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Kind {
    /// There are no such nodes.
    #[default]
    None,
    /// At twice the position, all of one sector, and they make one block.
    Block,
    /// At twice the position, all of one sector, and each is an entry of its own.
    Singles,
    /// As the links say.
    Linked {
        /// The first of the links.
        first: u16,
        /// How many they are.
        count: u16,
    },
}

/// A sector's nodes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Sector {
    /// How they have their children.
    pub kind: Kind,
    /// The first one.
    pub origin: [usize; 3],
}

/// All that the walk has to know of a chunk's shape.
#[derive(Debug, Default)]
pub(super) struct SymlinkPolicy {
    /// What it was made for.
    made_for: Option<([usize; 3], usize, bool)>,
    /// The boxes.
    pub bands: Bands,
    /// All links of all sectors.
    pub links: Vec<Link>,
    /// By step and sector.
    pub sectors: [[Sector; 8]; MOST_STEPS],
    /// Every step is plain: there are no singles, and part B of the stream is missing.
    pub all_plain: bool,
    /// The dimensions that a block extends in.
    pub block: Set,
    /// A stream of an old version that may name a position twice, or one outside.
    pub twice: bool,
}

impl SymlinkPolicy {
    /// Makes it fit a chunk, if it does not already.
    pub fn fit(&mut self, coding: &Coding) {
        let wanted = (coding.size, coding.dims, coding.old);
        if self.made_for != Some(wanted) {
            self.made_for = Some(wanted);
            self.make(coding);
        }
    }

    /// Bytes that it holds beside itself.
    pub fn bytes(&self) -> usize {
        self.links.capacity() * size_of::<Link>()
    }

    /// Coefficients of a block.
    pub fn ideal(&self) -> usize {
        1 << self.block.count_ones()
    }

    fn make(&mut self, coding: &Coding) {
        let bands = Bands::new(coding.size);
        self.bands = bands;
        self.links.clear();
        self.sectors = Default::default();
        self.twice = false;
        let plain_step = |step: usize| subsets(bands.mask[step]).all(|s| is_plain(&bands, step, s));
        self.all_plain = (1..bands.steps).all(plain_step);
        self.block = match (self.all_plain, bands.steps) {
            (true, ..=1) => 0,
            (true, _) => bands.mask[1],
            (false, _) => (1 << coding.dims) - 1,
        };
        for step in 1..bands.steps {
            let plain_step = plain_step(step);
            for sector in subsets(bands.mask[step]) {
                let first = self.links.len();
                self.links.extend(links(&bands, step, sector));
                let made = &self.links[first..];
                let single = made.len() == 1 && made.iter().all(|l| l.extra == [NO_EXTRA; 3]);
                let plain = plain_step || single && made.iter().all(|l| ends_even(&bands, step, l, coding.old));
                if coding.old && !plain_step && single {
                    self.twice |= made.iter().any(|l| is_faulty(&bands, step, l));
                }
                let kind = match plain {
                    false => Kind::Linked { first: first as u16, count: made.len() as u16 },
                    true if bands.mask[step].count_ones() == self.block.count_ones() => Kind::Block,
                    true => Kind::Singles,
                };
                if plain {
                    self.links.truncate(first);
                }
                self.sectors[step][sector] = Sector { kind, origin: bands.sector(step, sector).0 };
            }
        }
    }
}

/// The factor from a parent's position to its children's.
pub(super) fn factor(mask: Set, d: usize) -> usize {
    if has(mask, d) { 2 } else { 1 }
}

/// The links of a sector, in the stream's order.
fn links(bands: &Bands, step: usize, sector: Set) -> impl Iterator<Item = Link> {
    let bands = *bands;
    let (mask, finer) = (bands.mask[step], bands.mask[step - 1]);
    let (origin, end) = bands.sector(step, sector);
    let (box_, finer_box) = (bands.size[step], bands.size[step - 1]);
    // the dimensions that are halved in the finer step only
    let new = finer & !mask;
    let is_first = subsets(mask).next() == Some(sector);
    let make = move |from: [usize; 3], to: Set| {
        let mut link = Link { from, limit: [0; 3], extra: [NO_EXTRA; 3], sector: to };
        for d in 0..3 {
            link.limit[d] = if has(to, d) { finer_box[d] } else { box_[d] };
            if link.limit[d] > link.from[d] + (end[d] - origin[d]) * factor(mask, d) {
                link.extra[d] = end[d] - 1;
            }
        }
        link
    };
    let at = move |high: Set, rest: [usize; 3]| -> [usize; 3] {
        std::array::from_fn(|d| if has(high, d) { box_[d] } else { rest[d] })
    };
    let own = std::iter::once(0).chain(subsets(new)).map(move |o| make(at(sector | o, [0; 3]), sector | o));
    // sectors of the finer step that nobody else is a parent of
    let orphans = subsets(new).filter(move |_| is_first).map(move |o| {
        let rest = std::array::from_fn(|d| if has(sector, d) { 0 } else { origin[d] });
        make(at(o, rest), o)
    });
    own.chain(orphans)
}

/// Whether the children of a sector stand at twice the position, and nothing is special.
fn is_plain(bands: &Bands, step: usize, sector: Set) -> bool {
    let (mask, finer) = (bands.mask[step], bands.mask[step - 1]);
    let (origin, end) = bands.sector(step, sector);
    finer & !mask == 0
        && links(bands, step, sector).all(|link| {
            link.extra == [NO_EXTRA; 3]
                && (0..3).all(|d| {
                    let c = factor(mask, d);
                    origin[d] * c == link.from[d] && link.from[d] + (end[d] - origin[d]) * c <= link.limit[d]
                })
        })
}

/// The versions' rules for a sector that is plain in a step that is not.
fn ends_even(bands: &Bands, step: usize, link: &Link, old: bool) -> bool {
    let mask = bands.mask[step];
    let even = |d: usize| link.limit[d].is_multiple_of(2);
    if old {
        even(0) && even(1) && (even(2) || mask.count_ones() == 2)
    } else {
        (0..3).all(|d| even(d) || !has(mask, d))
    }
}

/// Where the old rule goes wrong: the last children along Z lie beyond their sector.
fn is_faulty(bands: &Bands, step: usize, link: &Link) -> bool {
    let mask = bands.mask[step];
    let even = |d: usize| link.limit[d].is_multiple_of(2);
    even(0) && even(1) && !even(2) && mask.count_ones() == 2 && has(mask, 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn made(size: [usize; 3], dims: usize, old: bool) -> SymlinkPolicy {
        let mut made = SymlinkPolicy::default();
        made.fit(&Coding { size, dims, old, integer: false, gain: true });
        made
    }

    #[test]
    fn powers_of_two_are_plain_all_the_way() {
        for (size, dims, block) in [([64, 64, 1], 2, 3), ([64; 3], 3, 7), ([128, 64, 32], 3, 7), ([1, 1, 256], 3, 4)] {
            let links = made(size, dims, false);
            let same = links.bands.mask[..links.bands.steps].iter().all(|m| *m == block);
            assert_eq!(links.all_plain, same, "{size:?}");
            if same {
                assert_eq!((links.block, links.links.len()), (block, 0));
            }
        }
    }

    #[test]
    fn odd_sizes_have_links() {
        let links = made([64, 29, 1], 2, false);
        assert!(!links.all_plain && links.ideal() == 4);
        // 8 x 4 halves X only, 16 x 8 both: a second sector hangs on it, and an orphan
        let Kind::Linked { first, count: 3 } = links.sectors[3][1].kind else { panic!("{:?}", links.sectors[3][1]) };
        let found: Vec<_> = links.links[usize::from(first)..][..3].iter().map(|l| (l.from, l.sector)).collect();
        assert_eq!(found, [([8, 0, 0], 1), ([8, 4, 0], 3), ([0, 4, 0], 2)]);
    }

    #[test]
    fn only_old_streams_are_faulty() {
        for size in [[2, 16, 19], [6, 40, 39]] {
            assert!(made(size, 3, true).twice, "{size:?}");
            assert!(!made(size, 3, false).twice, "{size:?}");
        }
        assert!(!made([100; 3], 3, true).twice);
    }
}
