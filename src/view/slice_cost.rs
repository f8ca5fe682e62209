//! `access` of lodN.json: what a slice across each axis costs.

use serde_json::{Value, json};

use crate::format::{Array, FormatError, StoredBrick};
use crate::volume::{ArrayInfo, Dims, Region};

/// Slices of more bricks are not looked at brick by brick.
const MAX_BRICKS: u64 = 1 << 14;

/// What the middle slice across one axis costs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct SliceCost {
    /// The position of the slice on its axis.
    pub index: u64,
    /// Bytes of the slice's samples.
    pub slice_bytes: u64,
    /// Bricks that it touches.
    pub bricks: u64,
    /// Bytes that are stored of them, if that is cheap to know.
    pub stored_bytes: Option<u64>,
    /// Bytes that come out of decoding them. If it is not cheap to know how they are stored, every brick counts.
    pub decoded_bytes: u64,
}

impl SliceCost {
    /// Computes the access of the middle slice across `axis`.
    pub(crate) fn new(array: &dyn Array, axis: usize) -> Result<Self, FormatError> {
        let info = array.info();
        let slice = middle_slice(info, axis);
        let size = info.dtype.size() as u64;
        let touched = info.grid.touched(&slice);
        let bricks = touched.shape.product().unwrap_or(u64::MAX);
        let looked_at = if bricks <= MAX_BRICKS { look_at(array, &touched)? } else { None };
        let (stored_bytes, decoded) = looked_at.unwrap_or_else(|| (None, decoded_samples(array, &touched)));
        Ok(Self {
            index: slice.start[axis],
            slice_bytes: slice.samples().saturating_mul(size),
            bricks,
            stored_bytes,
            decoded_bytes: decoded.saturating_mul(size),
        })
    }

    /// Returns the decoded bytes as a multiple of the slice's own.
    pub(crate) fn amplification(&self) -> f64 {
        // three decimals, since people read it
        (self.decoded_bytes as f64 / self.slice_bytes.max(1) as f64 * 1e3).round() / 1e3
    }
}

pub(crate) fn slice_costs(array: &dyn Array) -> Result<Value, FormatError> {
    let info = array.info();
    let across = |axis: usize| {
        let access = SliceCost::new(array, axis)?;
        Ok(json!({
            "axis": info.axes.get(axis).map(|axis| axis.name.as_str()),
            "index": access.index,
            "slice_bytes": access.slice_bytes,
            "bricks": access.bricks,
            "stored_bytes": access.stored_bytes,
            "decoded_bytes": access.decoded_bytes,
            "amplification": access.amplification(),
        }))
    };
    (0..info.shape().len()).map(across).collect::<Result<Vec<_>, _>>().map(Value::from)
}

fn middle_slice(info: &ArrayInfo, axis: usize) -> Region {
    let mut slice = Region::whole(info.shape());
    slice.start[axis] = slice.shape[axis] / 2;
    slice.shape[axis] = slice.shape[axis].min(1);
    slice
}

/// Returns the stored bytes of a box of bricks, if they are known, and the samples that come out of decoding it. `None`
/// if the tables do not tell.
fn look_at(array: &dyn Array, touched: &Region) -> Result<Option<(Option<u64>, u64)>, FormatError> {
    let (mut stored, mut decoded) = (Some(0u64), 0u64);
    for number in 0..touched.samples() {
        let within = touched.shape.index_of(number);
        let at = Dims::from_fn(within.len(), |axis| touched.start[axis] + within[axis]);
        let Some(StoredBrick { bytes, is_coded }) = array.stored_brick(&at)? else { return Ok(None) };
        stored = stored.zip(bytes).map(|(sum, bytes)| sum.saturating_add(bytes));
        if let Some(samples) = array.decoded_shape(&at).filter(|_| is_coded) {
            decoded = decoded.saturating_add(samples.product().unwrap_or(u64::MAX));
        }
    }
    Ok(Some((stored, decoded)))
}

/// Returns the samples that come out of decoding a box of bricks if all of them are stored. Takes no longer for many
/// bricks than for one: the extents along one axis do not depend on the others.
fn decoded_samples(array: &dyn Array, touched: &Region) -> u64 {
    let last = Dims::from_fn(touched.axes(), |axis| touched.end(axis).saturating_sub(1));
    let Some((whole, last)) = array.decoded_shape(&touched.start).zip(array.decoded_shape(&last)) else { return 0 };
    let along = |axis: usize| match touched.shape[axis] {
        0 => 0,
        n => u128::from(n - 1) * u128::from(whole[axis]) + u128::from(last[axis]),
    };
    let samples = (0..touched.axes()).try_fold(1u128, |product, axis| product.checked_mul(along(axis)));
    samples.and_then(|samples| samples.try_into().ok()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;
    use crate::format::Census;
    use crate::source::{Blocking, Source};
    use crate::volume::{Brick, BrickGrid, Dtype, MAX_AXES};

    /// An array whose bricks hold a margin beyond what they own, cut off at the end of the array. Those whose number is
    /// divisible by `constant` are constants; the others have 100 bytes.
    struct Imagined {
        info: ArrayInfo,
        margin: u64,
        constant: u64,
        tells: bool,
    }

    impl Imagined {
        fn new(shape: &[u64], origin: &[i64], step: &[u64], margin: u64) -> Self {
            let [shape, step] = [shape, step].map(|dims| Dims::from_slice(dims).unwrap());
            let mut from = [0; MAX_AXES];
            from[..origin.len()].copy_from_slice(origin);
            let info = ArrayInfo::new(Dtype::UInt16, BrickGrid::new(shape, from, step), step);
            Self { info, margin, constant: u64::MAX, tells: true }
        }

        fn number(&self, at: &Dims) -> u64 {
            self.info.grid.count().linear_of(at)
        }

        fn access(&self, axis: usize) -> SliceCost {
            SliceCost::new(self, axis).unwrap()
        }
    }

    impl Array for Imagined {
        fn info(&self) -> &ArrayInfo {
            &self.info
        }
        fn source(&self) -> &dyn Source {
            unreachable!()
        }
        fn brick(&self, _: &Dims, _: Blocking) -> Result<Brick, FormatError> {
            unreachable!()
        }
        fn decoded_shape(&self, at: &Dims) -> Option<Dims> {
            let grid = &self.info.grid;
            Some(Dims::from_fn(at.len(), |axis| {
                let is_last = at[axis] + 1 == grid.count()[axis];
                grid.step()[axis] + if is_last { 0 } else { self.margin }
            }))
        }
        fn stored_brick(&self, at: &Dims) -> Result<Option<StoredBrick>, FormatError> {
            let coded = StoredBrick { bytes: Some(100), is_coded: true };
            let is_constant = self.number(at).is_multiple_of(self.constant);
            Ok(self.tells.then_some(if is_constant { StoredBrick::EMPTY } else { coded }))
        }
        fn census(&self) -> Result<Option<Census>, FormatError> {
            Ok(None)
        }
    }

    #[test]
    fn a_slice_costs_the_whole_of_its_bricks() {
        let mut array = Imagined::new(&[128, 96, 192], &[0; 3], &[64; 3], 0);
        let (slice, decoded) = (96 * 192 * 2, 2 * 3 * 64 * 64 * 64 * 2);
        let expected =
            SliceCost { index: 64, slice_bytes: slice, bricks: 6, stored_bytes: Some(600), decoded_bytes: decoded };
        // brick 0 is a constant, and is not in the slice; brick 6 is the first in it
        array.constant = 1000;
        assert_eq!(array.access(0), expected);
        assert_eq!(array.access(0).amplification(), 85.333);
        array.constant = 6;
        let without_one = SliceCost { stored_bytes: Some(500), decoded_bytes: decoded / 6 * 5, ..expected };
        assert_eq!(array.access(0), without_one);
        array.tells = false;
        assert_eq!(array.access(0), SliceCost { stored_bytes: None, ..expected });
    }

    #[test]
    fn slices_of_very_many_bricks_are_computed_at_once() {
        let array = Imagined::new(&[1 << 20, 1 << 20, 2], &[0; 3], &[2; 3], 1);
        let access = array.access(2);
        assert_eq!((access.bricks, access.stored_bytes), (1 << 38, None));
        let along = ((1 << 19) - 1) * 3 + 2;
        assert_eq!(access.decoded_bytes, along * along * 2 * 2);
        // no overflow
        let array = Imagined::new(&[1 << 30, 1 << 30, 1, 1], &[0; 4], &[1, 1, 1 << 20, 1 << 20], 0);
        assert_eq!(array.access(2).decoded_bytes, u64::MAX);
        assert!(array.access(2).amplification().is_finite());
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        /// Compares with a look at each sample of the slice: clipped bricks, origins, margins, 1 to 7 axes.
        #[test]
        fn each_brick_of_a_slice_counts_once(
            axes in prop::collection::vec((1u64..7, -5i64..5, 1u64..5), 1..=MAX_AXES),
            margin in 0u64..3, constant in 2u64..6, axis in 0..MAX_AXES, tells in any::<bool>(),
        ) {
            let shape: Vec<u64> = axes.iter().map(|axis| axis.0).collect();
            let origin: Vec<i64> = axes.iter().map(|axis| axis.1).collect();
            let step: Vec<u64> = axes.iter().map(|axis| axis.2).collect();
            let axis = axis % axes.len();
            let mut array = Imagined::new(&shape, &origin, &step, margin);
            (array.constant, array.tells) = (constant, tells);
            let (grid, found) = (&array.info.grid, array.access(axis));
            prop_assert_eq!(found.index, shape[axis] / 2);
            let mut slice = array.info.shape();
            slice[axis] = 1;
            let mut bricks = BTreeSet::new();
            for number in 0..slice.product().unwrap() {
                let mut at = slice.index_of(number);
                at[axis] = found.index;
                bricks.insert(Dims::from_fn(at.len(), |a| grid.brick_of(a, at[a])));
            }
            let coded = |at: &&Dims| !tells || !array.number(at).is_multiple_of(constant);
            let decoded: u64 =
                bricks.iter().filter(coded).map(|at| array.decoded_shape(at).unwrap().product().unwrap() * 2).sum();
            prop_assert_eq!(found.bricks, bricks.len() as u64);
            prop_assert_eq!(found.decoded_bytes, decoded);
            prop_assert_eq!(found.slice_bytes, slice.product().unwrap() * 2);
            prop_assert_eq!(found.stored_bytes, tells.then(|| bricks.iter().filter(coded).count() as u64 * 100));
        }
    }
}
