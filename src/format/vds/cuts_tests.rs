use proptest::prelude::*;

use super::super::description::{Axis, Format, Layout as Cutting};
use super::*;

fn described(sizes: &[u64], layout: Cutting) -> Description {
    let axes = sizes.iter().map(|n| Axis { samples: *n, ..Axis::default() }).collect();
    Description { layout, axes, ..Description::default() }
}

fn cutting(brick: u64, margins: (u64, u64), lods: u32) -> Cutting {
    let (negative_margin, positive_margin) = margins;
    Cutting { brick, negative_margin, positive_margin, multiplier_2d: 4, lods, lods_2d: true, full_resolution: None }
}

fn direct() -> Channel {
    Channel { components: 1, renderable: true, ..Channel::default() }
}

fn cuts(whole: &Description, channel: &Channel, digits: &str, lod: u32) -> Cuts {
    Cuts::new(whole, channel, Group::of_digits(digits).unwrap(), lod).unwrap()
}

/// Chunks along each dimension, dimension 0 first.
fn counts(cuts: &Cuts) -> Vec<u64> {
    cuts.grid().count().iter().rev().copied().collect()
}

fn extent(cuts: &Cuts) -> Vec<u64> {
    cuts.grid().shape().iter().rev().copied().collect()
}

#[test]
fn a_survey_with_margins() {
    let whole = described(&[1126, 605, 385], cutting(128, (4, 4), 2));
    assert_eq!([0, 1, 2].map(|lod| counts(&cuts(&whole, &direct(), "012", lod))), [[10, 5, 4], [5, 3, 2], [3, 2, 1]]);
    for values in [1, 240] {
        let channel = Channel { per_trace: Some(values), ..direct() };
        assert_eq!([0, 1, 2].map(|lod| cuts(&whole, &channel, "012", lod).total()), [20, 6, 2]);
    }
}

#[test]
fn sizes_of_chunks_at_the_edge() {
    let whole = described(&[70, 50, 40], cutting(32, (0, 0), 2));
    let finest = cuts(&whole, &direct(), "012", 0);
    assert_eq!(finest.total(), 12);
    assert_eq!(finest.sizes(&finest.place(2)), [6, 32, 32]);
    assert_eq!(finest.sizes(&finest.place(11)), [6, 18, 8]);
    let half = cuts(&whole, &direct(), "012", 1);
    assert_eq!([0, 1].map(|n| half.sizes(&half.place(n))), [[32, 25, 20], [3, 25, 20]]);
    let quarter = cuts(&whole, &direct(), "012", 2);
    assert_eq!((quarter.total(), quarter.sizes(&quarter.place(0))), (1, [18, 13, 10]));

    let whole = described(&[70, 50, 40], cutting(32, (4, 4), 1));
    assert_eq!(cuts(&whole, &direct(), "012", 0).total(), 12);
    let half = cuts(&whole, &direct(), "012", 1);
    assert_eq!((half.total(), half.sizes(&half.place(0))), (2, [28, 25, 20]));
}

#[test]
fn tiles_and_a_dimension_of_full_resolution() {
    let whole = described(&[70, 50, 40], Cutting { multiplier_2d: 2, ..cutting(32, (2, 3), 0) });
    let tiles = cuts(&whole, &direct(), "12", 0);
    assert_eq!((tiles.total(), tiles.sizes(&tiles.place(69)), tiles.dimensions()), (70, [50, 40, 1], 2));

    let whole = described(&[70, 50, 40], Cutting { full_resolution: Some(0), ..cutting(32, (0, 0), 1) });
    let half = cuts(&whole, &direct(), "012", 1);
    assert_eq!((counts(&half), extent(&half)), (vec![3, 1, 1], vec![70, 25, 20]));
    assert_eq!([0, 1, 2].map(|n| half.sizes(&half.place(n))[0]), [32, 32, 6]);
}

#[test]
fn more_axes_than_a_chunk_has() {
    let whole = described(&[37, 20, 10, 3], cutting(32, (0, 0), 1));
    assert_eq!(cuts(&whole, &direct(), "013", 0).total(), 20);
    let half = cuts(&whole, &direct(), "013", 1);
    assert_eq!((half.total(), half.sizes(&half.place(9)), extent(&half)), (10, [19, 10, 2], vec![19, 10, 10, 2]));

    let whole = described(&[9, 8, 7, 3, 4, 5], cutting(32, (0, 0), 2));
    let sizes = [0, 1, 2].map(|lod| {
        let cuts = cuts(&whole, &direct(), "245", lod);
        (cuts.total(), cuts.sizes(&cuts.place(0)))
    });
    assert_eq!(sizes, [(216, [7, 4, 5]), (216, [4, 2, 3]), (216, [2, 1, 2])]);
}

#[test]
fn values_for_each_trace_take_the_place_of_dimension_0() {
    let whole = described(&[70, 50, 40], cutting(32, (0, 0), 2));
    let header = cuts(&whole, &Channel { per_trace: Some(240), ..direct() }, "012", 1);
    assert_eq!((extent(&header), header.sizes(&header.place(0))), (vec![120, 25, 20], [120, 25, 20]));
    let live = cuts(&whole, &Channel { per_trace: Some(1), ..direct() }, "012", 1);
    assert_eq!((extent(&live), live.sizes(&live.place(0)), live.dimensions()), (vec![1, 25, 20], [25, 20, 1], 2));
    // in a pair the chunk may be a line
    let line = cuts(&whole, &Channel { per_trace: Some(1), ..direct() }, "01", 0);
    assert_eq!((line.total(), line.sizes(&line.place(0)), line.dimensions()), (40, [50, 1, 1], 1));
}

#[test]
fn components_are_the_fastest_axis_and_bits_fill_bytes() {
    let whole = described(&[70, 50, 40], cutting(32, (0, 0), 0));
    let pair = cuts(&whole, &Channel { components: 2, format: Format::U16, ..direct() }, "012", 0);
    assert_eq!(pair.grid().shape(), Dims::from([40, 50, 70, 2]));
    assert_eq!(pair.layout(&pair.place(2), 0).strides, Dims::from([32 * 6 * 4, 6 * 4, 4, 2]));
    let bits = cuts(&whole, &Channel { format: Format::Bit, ..direct() }, "12", 0);
    assert_eq!((bits.stored_bytes(&bits.place(0)), bits.shown_bytes(&bits.place(0))), (7 * 40, 2000));
}

#[test]
fn what_cannot_be_is_refused() {
    let whole = described(&[70, 50, 40], Cutting { lods_2d: false, ..cutting(32, (0, 0), 1) });
    let new = |channel: &Channel, digits: &str, lod| Cuts::new(&whole, channel, Group::of_digits(digits).unwrap(), lod);
    assert!(new(&direct(), "013", 0).unwrap_err().contains("3 axes"));
    assert!(new(&direct(), "012", 2).unwrap_err().contains("LOD 2"));
    assert!(new(&direct(), "12", 1).unwrap_err().contains("LOD 1"));
    assert!(new(&Channel { renderable: false, ..direct() }, "012", 1).is_err());
    let whole = described(&[70, 50, 40, 30], cutting(32, (0, 0), 1));
    let header = Channel { per_trace: Some(240), ..direct() };
    assert!(Cuts::new(&whole, &header, Group::of_digits("123").unwrap(), 0).unwrap_err().contains("no room"));
    let huge = described(&[i32::MAX as u64; 6], cutting(32, (0, 0), 0));
    assert!(Cuts::new(&huge, &direct(), Group::of_digits("012").unwrap(), 0).unwrap_err().contains("counting"));
    let large = described(&[4096; 3], cutting(4096, (0, 0), 0));
    assert!(Cuts::new(&large, &direct(), Group::of_digits("012").unwrap(), 0).unwrap_err().contains("2 GiB"));
}

fn any_layer() -> impl Strategy<Value = (Description, Channel, String, u32)> {
    let layout = (5u32..8, 0u64..15, 0u64..15, 0u32..4, prop::option::of(0usize..4));
    let trace = prop::option::of(1u64..300);
    (
        prop::collection::vec(1u64..300, 4),
        layout,
        trace,
        prop::sample::select(vec!["012", "123", "013", "01", "13", "23"]),
    )
        .prop_map(|(sizes, (log, negative, positive, lod, full), per_trace, digits)| {
            let layout = Cutting { full_resolution: full, ..cutting(1 << log, (negative, positive), 3) };
            let per_trace = per_trace.map(|n| if digits == "123" { 1 } else { n });
            (described(&sizes, layout), Channel { per_trace, ..direct() }, digits.to_owned(), lod)
        })
}

proptest! {
    #[test]
    fn owned_ranges_tile_every_layer_as_the_format_has_it((whole, channel, digits, lod) in any_layer()) {
        let cuts = cuts(&whole, &channel, &digits, lod);
        let grid = cuts.grid();
        for (axis, cut) in cuts.cuts.iter().rev().enumerate() {
            let (mut next, round) = (0, |x: u64| x.div_ceil(1 << cut.shift));
            for i in 0..cut.count {
                // section 2.4, word by word
                let (low, margins) = (i * cut.step, cut.negative + cut.positive);
                let high = if cut.cut { ((i + 1) * cut.step + margins).min(cut.samples) } else { i + 1 };
                let first = if i == 0 { 0 } else { low + cut.negative };
                let last = if i + 1 == cut.count { high } else { ((i + 1) * cut.step + cut.negative).min(cut.samples) };
                prop_assert_eq!(grid.owned(axis, i), (round(first), round(last)));
                prop_assert_eq!(round(first), next);
                next = round(last);
                let (start, held) = cut.held(i);
                prop_assert!(start <= round(first) && round(last) <= start + held);
                prop_assert!(start + held <= cut.extent());
                prop_assert!((round(first)..round(last)).all(|x| grid.brick_of(axis, x) == i));
            }
            prop_assert_eq!(next, grid.shape()[axis]);
        }
    }

    #[test]
    fn numbers_and_places_of_chunks_agree((whole, channel, digits, lod) in any_layer(), n in any::<u64>()) {
        let cuts = cuts(&whole, &channel, &digits, lod);
        let n = n % cuts.total();
        prop_assert_eq!(cuts.number(&cuts.place(n)), Some(n));
        // dimension 0 counts fastest
        let place = cuts.place(n);
        let number = counts(&cuts).iter().zip(place.iter().rev()).rev().fold(0, |number, (count, at)| number * count + at);
        prop_assert_eq!(number, n);
    }
}
