//! Which samples are read: a slice for each axis.

use std::ops::{Range, RangeFrom, RangeFull, RangeInclusive, RangeTo};

use crate::volume::{Dims, Region};

/// What is read along one axis. Made from a number or a range.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Slice {
    /// One position. The result has no axis for it.
    Index(u64),
    /// All positions from one to another, without the last.
    Range(Range<u64>),
    /// All positions from one on.
    From(u64),
    /// All positions.
    All,
}

impl From<u64> for Slice {
    fn from(index: u64) -> Self {
        Self::Index(index)
    }
}

impl From<Range<u64>> for Slice {
    fn from(range: Range<u64>) -> Self {
        Self::Range(range)
    }
}

impl From<RangeInclusive<u64>> for Slice {
    fn from(range: RangeInclusive<u64>) -> Self {
        Self::Range(*range.start()..range.end().saturating_add(1))
    }
}

impl From<RangeTo<u64>> for Slice {
    fn from(range: RangeTo<u64>) -> Self {
        Self::Range(0..range.end)
    }
}

impl From<RangeFrom<u64>> for Slice {
    fn from(range: RangeFrom<u64>) -> Self {
        Self::From(range.start)
    }
}

impl From<RangeFull> for Slice {
    fn from(_: RangeFull) -> Self {
        Self::All
    }
}

/// A region of an array: `..` for all of it, a tuple with a number or a range for each axis (slowest first), such as
/// `(0..64, .., 128)`, or a slice of ranges. Axes that are left out at the end are whole.
pub trait IntoRegion {
    /// Returns the slices of the first axes.
    fn into_slices(self) -> Vec<Slice>;
}

impl IntoRegion for RangeFull {
    fn into_slices(self) -> Vec<Slice> {
        Vec::new()
    }
}

impl IntoRegion for &[Range<u64>] {
    fn into_slices(self) -> Vec<Slice> {
        self.iter().cloned().map(Slice::from).collect()
    }
}

impl<const N: usize> IntoRegion for [Range<u64>; N] {
    fn into_slices(self) -> Vec<Slice> {
        self.map(Slice::from).into()
    }
}

impl IntoRegion for Vec<Slice> {
    fn into_slices(self) -> Vec<Slice> {
        self
    }
}

macro_rules! tuples {
    ($($name:ident)+) => {
        impl<$($name: Into<Slice>),+> IntoRegion for ($($name,)+) {
            #[allow(non_snake_case)]
            fn into_slices(self) -> Vec<Slice> {
                let ($($name,)+) = self;
                vec![$($name.into()),+]
            }
        }
    };
}

tuples!(A);
tuples!(A B);
tuples!(A B C);
tuples!(A B C D);
tuples!(A B C D E);
tuples!(A B C D E F);
tuples!(A B C D E F G);

/// Returns the region of an array that slices select, and for each axis whether the result has it. Fails with the reason
/// if the array does not have all of it.
pub(super) fn resolve(slices: &[Slice], shape: &Dims) -> Result<(Region, Vec<bool>), String> {
    if slices.len() > shape.len() {
        return Err(format!("{} slices for an array of {} axes", slices.len(), shape.len()));
    }
    let mut region = Region::whole(*shape);
    let mut kept = vec![true; shape.len()];
    for (axis, slice) in slices.iter().enumerate() {
        let count = shape[axis];
        let (from, to) = match *slice {
            Slice::Index(at) if at < count => (at, at + 1),
            Slice::Index(at) => return Err(format!("{at} on axis {axis}, which has {count} positions")),
            Slice::Range(Range { start, end }) => (start, end),
            Slice::From(start) => (start, count),
            Slice::All => (0, count),
        };
        if from > to || to > count {
            return Err(format!("{from}..{to} on axis {axis}, which has {count} positions"));
        }
        (region.start[axis], region.shape[axis]) = (from, to - from);
        kept[axis] = !matches!(slice, Slice::Index(_));
    }
    Ok((region, kept))
}

#[cfg(test)]
mod tests {
    use super::*;

    type Resolved = (Vec<u64>, Vec<u64>, Vec<bool>);

    fn resolved(region: impl IntoRegion) -> Result<Resolved, String> {
        let (region, kept) = resolve(&region.into_slices(), &[10, 20, 30].into())?;
        Ok((region.start.to_vec(), region.shape.to_vec(), kept))
    }

    #[test]
    fn tuples_and_ranges_are_regions() {
        let all = vec![true; 3];
        assert_eq!(resolved(..), Ok((vec![0; 3], vec![10, 20, 30], all.clone())));
        assert_eq!(resolved((2..5, .., 7)), Ok((vec![2, 0, 7], vec![3, 20, 1], vec![true, true, false])));
        assert_eq!(resolved((3..,)), Ok((vec![3, 0, 0], vec![7, 20, 30], all.clone())));
        assert_eq!(resolved((..4, 1..=2)), Ok((vec![0, 1, 0], vec![4, 2, 30], all.clone())));
        assert_eq!(resolved([1..2, 3..3]), Ok((vec![1, 3, 0], vec![1, 0, 30], all)));
    }

    #[test]
    fn what_the_array_does_not_have_is_refused() {
        assert_eq!(resolved((10,)), Err("10 on axis 0, which has 10 positions".into()));
        assert_eq!(resolved((.., 5..21)), Err("5..21 on axis 1, which has 20 positions".into()));
        #[allow(clippy::reversed_empty_ranges)]
        let reversed = 5..4;
        assert!(resolved((reversed,)).is_err() && resolved((31..,)).is_err() && resolved((0..=u64::MAX,)).is_err());
        assert_eq!(resolved((0, 0, 0, 0)), Err("4 slices for an array of 3 axes".into()));
    }
}
