//! Splits a range of a C-ordered array into boxes.

use std::ops::Range;

use crate::volume::{Dims, Region};

/// Splits the samples `range` of a C-ordered array of `shape` into as few boxes as possible, in order: part of a row,
/// rows, planes, ..., rows, part of a row. Returns at most `2 * axes - 1` boxes.
pub(crate) fn boxes(shape: &Dims, range: Range<u64>) -> Vec<Region> {
    let axes = shape.len();
    let strides = shape.strides(1);
    let mut boxes = Vec::with_capacity(2 * axes - 1);
    let (mut at, end) = (range.start, range.end);
    while at < end {
        let start = shape.index_of(at);
        // the slowest axis along which whole slabs begin here and fit
        let fits = |axis: &usize| at % strides[*axis] == 0 && end - at >= strides[*axis];
        let axis = (0..axes).find(fits).unwrap_or(axes - 1);
        let slabs = ((end - at) / strides[axis]).min(shape[axis] - start[axis]);
        let extent = Dims::from_fn(axes, |a| match a {
            a if a < axis => 1,
            a if a == axis => slabs,
            a => shape[a],
        });
        boxes.push(Region { start, shape: extent });
        at += slabs * strides[axis];
    }
    boxes
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_range_is_rows_planes_and_rows() {
        let shape = Dims::from([10, 10, 10]);
        let got = boxes(&shape, 95..512);
        let shapes: Vec<Dims> = got.iter().map(|b| b.shape).collect();
        assert_eq!(shapes, [[1, 1, 5], [4, 10, 10], [1, 1, 10], [1, 1, 2]].map(Dims::from));
        assert_eq!(boxes(&shape, 0..1000), [Region::whole(shape)]);
        assert_eq!(boxes(&shape, 7..7), []);
    }

    proptest! {
        #[test]
        fn boxes_cover_the_range_in_order(
            shape in prop::collection::vec(1u64..7, 1..6), from in 0.0f64..1.0, to in 0.0f64..1.0,
        ) {
            let shape = Dims::from_slice(&shape).unwrap();
            let n = shape.product().unwrap() as f64;
            let range = ((n * from.min(to)) as u64)..((n * from.max(to)) as u64);
            let mut seen = Vec::new();
            let all = boxes(&shape, range.clone());
            prop_assert!(all.len() < 2 * shape.len());
            for part in all {
                for n in 0..part.samples() {
                    let within = part.shape.index_of(n);
                    seen.push(shape.linear_of(&Dims::from_fn(shape.len(), |a| part.start[a] + within[a])));
                }
            }
            prop_assert!(seen.into_iter().eq(range));
        }
    }
}
