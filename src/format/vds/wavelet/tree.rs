//! The wavelet decomposition of a chunk: how its box is halved, step by step, where the subbands lie, and which
//! coefficients of the next finer step are the children of a node.

use super::header::Coding;

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
}

/// A box of children for the nodes of one sector.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Link {
    /// The position of the first child of the sector's first node.
    pub from: [usize; 3],
    /// Legal children are before this position.
    pub limit: [usize; 3],
    /// The coordinate of the parent that has one child more, in each dimension; [`NO_EXTRA`] if none has.
    pub extra: [usize; 3],
    pub sector: DimSet,
}

/// No parent has more children than the others.
const NO_EXTRA: usize = usize::MAX;

/// Where the nodes of a sector have their children.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum ChildKind {
    #[default]
    None,
    /// At twice the position, all in the same sector; together they are one block.
    Block,
    /// At twice the position, all in the same sector; each of them is an entry.
    Singles,
    /// In the boxes of these links.
    Linked { first: u16, count: u16 },
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Sector {
    /// Where they have their children.
    pub kind: ChildKind,
    /// The position of the first node.
    pub origin: [usize; 3],
}

/// The tree of chunks of one shape.
#[derive(Debug, Default)]
pub(super) struct TreeLinks {
    /// The size, dimensions and rule that it was built for.
    built_for: Option<([usize; 3], usize, bool)>,
    pub bands: Bands,
    pub links: Vec<Link>,
    /// The sectors, by step and sector.
    pub sectors: [[Sector; 8]; MAX_STEPS],
    /// Every step is plain: there are no singles, and the stream has no counts of them.
    pub all_plain: bool,
    /// The dimensions in which a block extends.
    pub block: DimSet,
    /// The stream, of an old version, may list a position twice or one outside the chunk.
    pub may_repeat: bool,
}

impl TreeLinks {
    /// Rebuilds the tree, unless it was built for chunks of the same shape.
    pub(crate) fn fit(&mut self, coding: &Coding) {
        let wanted = (coding.size, coding.dims, coding.old);
        if self.built_for != Some(wanted) {
            self.built_for = Some(wanted);
            self.build(coding);
        }
    }

    pub(crate) fn bytes(&self) -> usize {
        self.links.capacity() * size_of::<Link>()
    }

    /// Returns the number of coefficients in a block.
    pub(crate) fn block_len(&self) -> usize {
        1 << self.block.count_ones()
    }

    fn build(&mut self, coding: &Coding) {
        let bands = Bands::new(coding.size);
        self.bands = bands;
        self.links.clear();
        self.sectors = Default::default();
        self.may_repeat = false;
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
                    self.may_repeat |= made.iter().any(|l| is_faulty(&bands, step, l));
                }
                let kind = match plain {
                    false => ChildKind::Linked { first: first as u16, count: made.len() as u16 },
                    true if bands.mask[step].count_ones() == self.block.count_ones() => ChildKind::Block,
                    true => ChildKind::Singles,
                };
                if plain {
                    self.links.truncate(first);
                }
                self.sectors[step][sector] = Sector { kind, origin: bands.sector(step, sector).0 };
            }
        }
    }
}

/// Returns the factor from a parent's coordinate to its children's.
pub(super) fn factor(mask: DimSet, d: usize) -> usize {
    if has(mask, d) { 2 } else { 1 }
}

/// Returns the links of a sector, in the order of the stream.
fn links(bands: &Bands, step: usize, sector: DimSet) -> impl Iterator<Item = Link> {
    let bands = *bands;
    let (mask, finer) = (bands.mask[step], bands.mask[step - 1]);
    let (origin, end) = bands.sector(step, sector);
    let (box_, finer_box) = (bands.size[step], bands.size[step - 1]);
    // the dimensions that only the finer step halves
    let new = finer & !mask;
    let is_first = subsets(mask).next() == Some(sector);
    let make = move |from: [usize; 3], to: DimSet| {
        let mut link = Link { from, limit: [0; 3], extra: [NO_EXTRA; 3], sector: to };
        for d in 0..3 {
            link.limit[d] = if has(to, d) { finer_box[d] } else { box_[d] };
            if link.limit[d] > link.from[d] + (end[d] - origin[d]) * factor(mask, d) {
                link.extra[d] = end[d] - 1;
            }
        }
        link
    };
    let at = move |high: DimSet, rest: [usize; 3]| -> [usize; 3] {
        std::array::from_fn(|d| if has(high, d) { box_[d] } else { rest[d] })
    };
    let own = std::iter::once(0).chain(subsets(new)).map(move |o| make(at(sector | o, [0; 3]), sector | o));
    // sectors of the finer step that would otherwise have no parent
    let orphans = subsets(new).filter(move |_| is_first).map(move |o| {
        let rest = std::array::from_fn(|d| if has(sector, d) { 0 } else { origin[d] });
        make(at(o, rest), o)
    });
    own.chain(orphans)
}

/// Returns whether the children of all nodes of a sector stand at twice the position.
fn is_plain(bands: &Bands, step: usize, sector: DimSet) -> bool {
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

/// Returns whether a sector is plain in a step that is not, by the rule of the version.
fn ends_even(bands: &Bands, step: usize, link: &Link, old: bool) -> bool {
    let mask = bands.mask[step];
    let even = |d: usize| link.limit[d].is_multiple_of(2);
    if old {
        even(0) && even(1) && (even(2) || mask.count_ones() == 2)
    } else {
        (0..3).all(|d| even(d) || !has(mask, d))
    }
}

/// Returns whether the old rule goes wrong: the last children along Z then lie beyond their sector.
fn is_faulty(bands: &Bands, step: usize, link: &Link) -> bool {
    let mask = bands.mask[step];
    let even = |d: usize| link.limit[d].is_multiple_of(2);
    even(0) && even(1) && !even(2) && mask.count_ones() == 2 && has(mask, 2)
}

/// A node: 8 bits of x, 8 of y, 10 of z, 3 of the sector, 3 of the step. Nodes are in steps of at least 1, so that a
/// legal coordinate is at most 255; only in faulty streams of old versions z may be a little more.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Node(u32);

impl Node {
    /// The bits of the coordinates.
    const POSITION: u32 = (1 << 26) - 1;
    /// The number 1 in the bits of the step.
    const STEP: u32 = 1 << 29;

    #[inline]
    pub(crate) fn new([x, y, z]: [usize; 3], sector: DimSet, step: usize) -> Self {
        let position = (x & 0xff) | (y & 0xff) << 8 | (z & 0x3ff) << 16;
        Self(position as u32 | (sector as u32 & 7) << 26 | (step as u32 & 7) << 29)
    }

    /// Returns its coordinates, x first.
    #[inline]
    pub(crate) fn position(self) -> [usize; 3] {
        [(self.0 & 0xff) as usize, (self.0 >> 8 & 0xff) as usize, (self.0 >> 16 & 0x3ff) as usize]
    }

    #[inline]
    pub(crate) fn sector(self) -> DimSet {
        (self.0 >> 26 & 7) as usize
    }

    #[inline]
    pub(crate) fn step(self) -> usize {
        (self.0 >> 29) as usize
    }

    /// Returns the position of the first child, where coordinates double in the dimensions of `mask`.
    #[inline]
    pub(crate) fn first_child(self, mask: DimSet) -> PackedPosition {
        let [x, y, z] = self.position();
        PackedPosition::new([x << (mask & 1), y << (mask >> 1 & 1), z << (mask >> 2 & 1)])
    }

    /// Returns the first child, one step finer.
    #[inline]
    pub(crate) fn doubled(self, mask: DimSet) -> Self {
        Self(Self::new(self.first_child(mask).position(), 0, 0).0 | (self.0 & !Self::POSITION).wrapping_sub(Self::STEP))
    }

    /// Returns the neighbour one further in each dimension of `set`, for a node whose coordinates are even.
    #[inline]
    pub(crate) fn neighbour(self, set: DimSet) -> Self {
        let set = set as u32;
        Self(self.0 | (set & 1) | (set >> 1 & 1) << 8 | (set >> 2 & 1) << 16)
    }
}

/// The position of a coefficient: 10 bits each of x, y and z.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct PackedPosition(u32);

impl PackedPosition {
    #[inline]
    pub(crate) fn new([x, y, z]: [usize; 3]) -> Self {
        Self(((x & 0x3ff) | (y & 0x3ff) << 10 | (z & 0x3ff) << 20) as u32)
    }

    /// Returns the coordinates, x first.
    #[inline]
    pub(crate) fn position(self) -> [usize; 3] {
        [(self.0 & 0x3ff) as usize, (self.0 >> 10 & 0x3ff) as usize, (self.0 >> 20 & 0x3ff) as usize]
    }

    /// Returns the index in an array with these strides, in samples; that of x is 1.
    #[inline]
    pub(crate) fn index(self, [_, along_y, along_z]: [usize; 3]) -> usize {
        let [x, y, z] = self.position();
        x + y * along_y + z * along_z
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

    fn made(size: [usize; 3], dims: usize, old: bool) -> TreeLinks {
        let mut made = TreeLinks::default();
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
        assert!(!links.all_plain && links.block_len() == 4);
        // 8 x 4 halves X only, 16 x 8 both: the sector also is the parent of a second one, and of an orphan
        let ChildKind::Linked { first, count: 3 } = links.sectors[3][1].kind else {
            panic!("{:?}", links.sectors[3][1])
        };
        let found: Vec<_> = links.links[usize::from(first)..][..3].iter().map(|l| (l.from, l.sector)).collect();
        assert_eq!(found, [([8, 0, 0], 1), ([8, 4, 0], 3), ([0, 4, 0], 2)]);
    }

    #[test]
    fn only_old_streams_are_faulty() {
        for size in [[2, 16, 19], [6, 40, 39]] {
            assert!(made(size, 3, true).may_repeat, "{size:?}");
            assert!(!made(size, 3, false).may_repeat, "{size:?}");
        }
        assert!(!made([100; 3], 3, true).may_repeat);
    }

    #[test]
    fn children_stand_at_twice_the_position() {
        let node = Node::new([3, 127, 65], 5, 4);
        assert_eq!((node.position(), node.sector(), node.step()), ([3, 127, 65], 5, 4));
        let child = node.doubled(6);
        assert_eq!((child.position(), child.sector(), child.step()), ([3, 254, 130], 5, 3));
        let last = child.neighbour(6);
        assert_eq!((last.position(), last.sector(), last.step()), ([3, 255, 131], 5, 3));
        assert_eq!(PackedPosition::new([511, 600, 1023]).index([1, 1000, 1_000_000]), 1_023_600_511);
    }
}
