//! Boxes of samples: `lodN.raw?box=64,0:256,:` has the samples of a box in C order.
//!
//! One entry for each axis, slowest first: `START:STOP`, either of which may be left out, or one index. Axes at the end
//! that are not named are whole, as with `volfs cat --region`.

use crate::volume::{Dims, Region};

use super::problem::Problem;

/// Returns the value of `box` in the query of a URL. Commas and colons may be percent-encoded.
pub(crate) fn box_of(query: &str) -> Option<String> {
    let mut pairs = query.split('&').filter_map(|pair| pair.split_once('='));
    let (_, value) = pairs.find(|(name, _)| *name == "box")?;
    Some(percent_encoding::percent_decode_str(value).decode_utf8_lossy().into_owned())
}

/// Reads a box of an array of this shape.
pub(crate) fn region(text: &str, shape: &Dims) -> Result<Region, Problem> {
    let mut region = Region::whole(*shape);
    for (axis, slice) in text.split(',').enumerate() {
        let bad = |why: String| Problem::Bad(format!("box, axis {axis}: {why}"));
        let Some(count) = shape.get(axis).copied() else {
            return Err(bad(format!("the array has {} axes", shape.len())));
        };
        let number = |text: &str, default: u64| match text.trim() {
            "" => Ok(default),
            text => text.parse::<u64>().map_err(|_| bad("write START:STOP, or an index".to_owned())),
        };
        let (start, stop) = match slice.split_once(':') {
            Some((start, stop)) => (number(start, 0)?, number(stop, count)?),
            None => {
                let index = number(slice, u64::MAX)?;
                (index, index.saturating_add(1))
            }
        };
        if start >= stop || stop > count {
            return Err(bad(format!("{start}:{stop} is not within 0:{count}, or empty")));
        }
        region.start[axis] = start;
        region.shape[axis] = stop - start;
    }
    Ok(region)
}

/// Returns the longest box that begins with the sample `from` of a region, counted in C order, is contiguous in it, and
/// has at most `most` samples, but one at least.
pub(crate) fn next_box(region: &Region, from: u64, most: u64) -> Region {
    let axes = region.axes();
    let index = region.shape.index_of(from);
    let mut next = Region { start: Dims::from_fn(axes, |a| region.start[a] + index[a]), shape: Dims::filled(axes, 1) };
    let mut samples = 1u64;
    for axis in (0..axes).rev() {
        let left = region.shape[axis] - index[axis];
        let count = left.min((most / samples).max(1));
        next.shape[axis] = count;
        samples = samples.saturating_mul(count);
        // a slower axis may go on only behind whole rows
        if count < region.shape[axis] {
            break;
        }
    }
    next
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn dims(values: &[u64]) -> Dims {
        Dims::from_slice(values).unwrap()
    }

    #[test]
    fn boxes_are_read_like_regions() {
        let shape = dims(&[10, 20, 30]);
        let read = |text: &str| region(text, &shape).map(|r| (r.start.to_vec(), r.shape.to_vec()));
        assert_eq!(read(":"), Ok((vec![0, 0, 0], vec![10, 20, 30])));
        assert_eq!(read("5,2:4"), Ok((vec![5, 2, 0], vec![1, 2, 30])));
        assert_eq!(read("9:,:3, 29"), Ok((vec![9, 0, 29], vec![1, 3, 1])));
        for bad in ["", "10", "3:3", "4:3", "0:11", "-1:", "a", "1,2,3,4", "0:99999999999999999999"] {
            assert!(matches!(read(bad), Err(Problem::Bad(_))), "{bad}");
        }
        assert_eq!(box_of("a=1&box=1%3A2,%3A").as_deref(), Some("1:2,:"));
        assert_eq!(box_of("boxes=1"), None);
    }

    proptest! {
        #[test]
        fn pieces_are_the_samples_in_order(
            shape in prop::collection::vec(1u64..6, 1..5), most in 1u64..40,
        ) {
            let start: Vec<u64> = shape.iter().map(|n| n / 2).collect();
            let region = Region { start: dims(&start), shape: dims(&shape) };
            let mut from = 0;
            while from < region.samples() {
                let next = next_box(&region, from, most);
                prop_assert!(region.contains(&next) && next.samples() <= most);
                // the last sample of the piece is as many samples behind the first one
                let last = Dims::from_fn(region.axes(), |a| next.end(a) - 1 - region.start[a]);
                let linear: u64 = last.iter().zip(region.shape.strides(1).iter()).map(|(i, s)| i * s).sum();
                prop_assert_eq!(linear, from + next.samples() - 1);
                from += next.samples();
            }
        }
    }
}
