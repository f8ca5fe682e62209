use proptest::prelude::*;

use super::super::description::{AxisDescriptor, LayoutDescriptor, SampleFormat};
use super::*;

fn described(sizes: &[u64], layout: LayoutDescriptor) -> Description {
    let axes = sizes.iter().map(|n| AxisDescriptor { samples: *n, ..AxisDescriptor::default() }).collect();
    Description { layout, axes, ..Description::default() }
}

fn layout_descriptor(brick: u64, margins: (u64, u64), lods: u32) -> LayoutDescriptor {
    let (negative_margin, positive_margin) = margins;
    LayoutDescriptor {
        brick,
        negative_margin,
        positive_margin,
        multiplier_2d: 4,
        lods,
        lods_2d: true,
        full_resolution: None,
    }
}

fn direct() -> Channel {
    Channel { components: 1, renderable: true, ..Channel::default() }
}

fn chunk_grid(description: &Description, channel: &Channel, digits: &str, lod: u32) -> ChunkGrid {
    ChunkGrid::new(description, channel, Group::of_digits(digits).unwrap(), lod).unwrap()
}

/// Chunks along each dimension, dimension 0 first.
fn counts(grid: &ChunkGrid) -> Vec<u64> {
    grid.brick_grid().count().iter().rev().copied().collect()
}

fn extent(grid: &ChunkGrid) -> Vec<u64> {
    grid.brick_grid().shape().iter().rev().copied().collect()
}

#[test]
fn a_survey_with_margins() {
    let description = described(&[1126, 605, 385], layout_descriptor(128, (4, 4), 2));
    assert_eq!(
        [0, 1, 2].map(|lod| counts(&chunk_grid(&description, &direct(), "012", lod))),
        [[10, 5, 4], [5, 3, 2], [3, 2, 1]]
    );
    for values in [1, 240] {
        let channel = Channel { per_trace: Some(values), ..direct() };
        assert_eq!([0, 1, 2].map(|lod| chunk_grid(&description, &channel, "012", lod).total()), [20, 6, 2]);
    }
}

#[test]
fn sizes_of_chunks_at_the_edge() {
    let description = described(&[70, 50, 40], layout_descriptor(32, (0, 0), 2));
    let finest = chunk_grid(&description, &direct(), "012", 0);
    assert_eq!(finest.total(), 12);
    assert_eq!(finest.sizes(&finest.position_of(2)), [6, 32, 32]);
    assert_eq!(finest.sizes(&finest.position_of(11)), [6, 18, 8]);
    let half = chunk_grid(&description, &direct(), "012", 1);
    assert_eq!([0, 1].map(|n| half.sizes(&half.position_of(n))), [[32, 25, 20], [3, 25, 20]]);
    let quarter = chunk_grid(&description, &direct(), "012", 2);
    assert_eq!((quarter.total(), quarter.sizes(&quarter.position_of(0))), (1, [18, 13, 10]));

    let description = described(&[70, 50, 40], layout_descriptor(32, (4, 4), 1));
    assert_eq!(chunk_grid(&description, &direct(), "012", 0).total(), 12);
    let half = chunk_grid(&description, &direct(), "012", 1);
    assert_eq!((half.total(), half.sizes(&half.position_of(0))), (2, [28, 25, 20]));
}

#[test]
fn tiles_and_a_dimension_of_full_resolution() {
    let description =
        described(&[70, 50, 40], LayoutDescriptor { multiplier_2d: 2, ..layout_descriptor(32, (2, 3), 0) });
    let tiles = chunk_grid(&description, &direct(), "12", 0);
    assert_eq!((tiles.total(), tiles.sizes(&tiles.position_of(69)), tiles.chunked_dimensions()), (70, [50, 40, 1], 2));

    let description =
        described(&[70, 50, 40], LayoutDescriptor { full_resolution: Some(0), ..layout_descriptor(32, (0, 0), 1) });
    let half = chunk_grid(&description, &direct(), "012", 1);
    assert_eq!((counts(&half), extent(&half)), (vec![3, 1, 1], vec![70, 25, 20]));
    assert_eq!([0, 1, 2].map(|n| half.sizes(&half.position_of(n))[0]), [32, 32, 6]);
}

#[test]
fn more_axes_than_a_chunk_has() {
    let description = described(&[37, 20, 10, 3], layout_descriptor(32, (0, 0), 1));
    assert_eq!(chunk_grid(&description, &direct(), "013", 0).total(), 20);
    let half = chunk_grid(&description, &direct(), "013", 1);
    assert_eq!((half.total(), half.sizes(&half.position_of(9)), extent(&half)), (10, [19, 10, 2], vec![19, 10, 10, 2]));

    let description = described(&[9, 8, 7, 3, 4, 5], layout_descriptor(32, (0, 0), 2));
    let sizes = [0, 1, 2].map(|lod| {
        let grid = chunk_grid(&description, &direct(), "245", lod);
        (grid.total(), grid.sizes(&grid.position_of(0)))
    });
    assert_eq!(sizes, [(216, [7, 4, 5]), (216, [4, 2, 3]), (216, [2, 1, 2])]);
}

#[test]
fn values_for_each_trace_take_the_place_of_dimension_0() {
    let description = described(&[70, 50, 40], layout_descriptor(32, (0, 0), 2));
    let header = chunk_grid(&description, &Channel { per_trace: Some(240), ..direct() }, "012", 1);
    assert_eq!((extent(&header), header.sizes(&header.position_of(0))), (vec![120, 25, 20], [120, 25, 20]));
    let live = chunk_grid(&description, &Channel { per_trace: Some(1), ..direct() }, "012", 1);
    assert_eq!(
        (extent(&live), live.sizes(&live.position_of(0)), live.chunked_dimensions()),
        (vec![1, 25, 20], [25, 20, 1], 2)
    );
    // in a pair the chunk may be a line
    let line = chunk_grid(&description, &Channel { per_trace: Some(1), ..direct() }, "01", 0);
    assert_eq!((line.total(), line.sizes(&line.position_of(0)), line.chunked_dimensions()), (40, [50, 1, 1], 1));
}

#[test]
fn components_are_the_fastest_axis_and_bits_fill_bytes() {
    let description = described(&[70, 50, 40], layout_descriptor(32, (0, 0), 0));
    let pair = chunk_grid(&description, &Channel { components: 2, format: SampleFormat::U16, ..direct() }, "012", 0);
    assert_eq!(pair.brick_grid().shape(), Dims::from([40, 50, 70, 2]));
    assert_eq!(pair.layout(&pair.position_of(2), 0).strides, Dims::from([32 * 6 * 4, 6 * 4, 4, 2]));
    let bits = chunk_grid(&description, &Channel { format: SampleFormat::Bit, ..direct() }, "12", 0);
    assert_eq!(
        (bits.uncompressed_bytes(&bits.position_of(0)), bits.decoded_bytes(&bits.position_of(0))),
        (7 * 40, 2000)
    );
}

#[test]
fn impossible_layers_are_refused() {
    let description = described(&[70, 50, 40], LayoutDescriptor { lods_2d: false, ..layout_descriptor(32, (0, 0), 1) });
    let new = |channel: &Channel, digits: &str, lod| {
        ChunkGrid::new(&description, channel, Group::of_digits(digits).unwrap(), lod)
    };
    assert!(new(&direct(), "013", 0).unwrap_err().contains("3 axes"));
    assert!(new(&direct(), "012", 2).unwrap_err().contains("LOD 2"));
    assert!(new(&direct(), "12", 1).unwrap_err().contains("LOD 1"));
    assert!(new(&Channel { renderable: false, ..direct() }, "012", 1).is_err());
    let description = described(&[70, 50, 40, 30], layout_descriptor(32, (0, 0), 1));
    let header = Channel { per_trace: Some(240), ..direct() };
    assert!(
        ChunkGrid::new(&description, &header, Group::of_digits("123").unwrap(), 0).unwrap_err().contains("no room")
    );
    let huge = described(&[i32::MAX as u64; 6], layout_descriptor(32, (0, 0), 0));
    assert!(ChunkGrid::new(&huge, &direct(), Group::of_digits("012").unwrap(), 0).unwrap_err().contains("counting"));
    let large = described(&[4096; 3], layout_descriptor(4096, (0, 0), 0));
    assert!(ChunkGrid::new(&large, &direct(), Group::of_digits("012").unwrap(), 0).unwrap_err().contains("2 GiB"));
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
            let layout =
                LayoutDescriptor { full_resolution: full, ..layout_descriptor(1 << log, (negative, positive), 3) };
            let per_trace = per_trace.map(|n| if digits == "123" { 1 } else { n });
            (described(&sizes, layout), Channel { per_trace, ..direct() }, digits.to_owned(), lod)
        })
}

proptest! {
    #[test]
    fn owned_ranges_tile_every_layer_as_in_openvds((description, channel, digits, lod) in any_layer()) {
        let grid = chunk_grid(&description, &channel, &digits, lod);
        let bricks = grid.brick_grid();
        for (axis, dim) in grid.dimensions.iter().rev().enumerate() {
            let (mut next, round) = (0, |x: u64| x.div_ceil(1 << dim.shift));
            for i in 0..dim.count {
                // the ranges by which OpenVDS divides a layer: each chunk owns what its margins do not repeat
                let (low, margins) = (i * dim.step, dim.negative + dim.positive);
                let high = if dim.chunked { ((i + 1) * dim.step + margins).min(dim.samples) } else { i + 1 };
                let first = if i == 0 { 0 } else { low + dim.negative };
                let last = if i + 1 == dim.count { high } else { ((i + 1) * dim.step + dim.negative).min(dim.samples) };
                prop_assert_eq!(bricks.owned(axis, i), (round(first), round(last)));
                prop_assert_eq!(round(first), next);
                next = round(last);
                let (start, held) = dim.held(i);
                prop_assert!(start <= round(first) && round(last) <= start + held);
                prop_assert!(start + held <= dim.extent());
                prop_assert!((round(first)..round(last)).all(|x| bricks.brick_of(axis, x) == i));
            }
            prop_assert_eq!(next, bricks.shape()[axis]);
        }
    }

    #[test]
    fn numbers_and_positions_of_chunks_agree((description, channel, digits, lod) in any_layer(), n in any::<u64>()) {
        let grid = chunk_grid(&description, &channel, &digits, lod);
        let n = n % grid.total();
        prop_assert_eq!(grid.number_of(&grid.position_of(n)), Some(n));
        // dimension 0 counts fastest
        let position = grid.position_of(n);
        let slowest_first = counts(&grid).into_iter().zip(position.iter().rev()).rev();
        let number = slowest_first.fold(0, |number, (count, at)| number * count + at);
        prop_assert_eq!(number, n);
    }
}
