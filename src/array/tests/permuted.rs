//! Compares arrays with permuted axes with the plain model: all samples with the axes moved, and then a slice of them.

use std::sync::Arc;
use std::thread;

use proptest::prelude::*;

use super::model::{MixedArray, read_permuted, reader_with};
use super::scan::at_most;
use crate::array::{Reader, ScanDetector};
use crate::counters::Counters;
use crate::volume::AxisPermutation;

fn by(axis: usize) -> Option<AxisPermutation> {
    Some(AxisPermutation::to_front(axis))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn every_range_of_every_permutation_equals_the_model(
        dims in prop::collection::vec((1u64..14, 1u64..7), 1..5), origin in -5i64..6, margin in 0u64..3,
        slow in any::<bool>(), all_coded in any::<bool>(), scanned in any::<bool>(), page_cached in any::<bool>(),
        cache in prop::sample::select(vec![0usize, 700, 1 << 20]),
        ranges in prop::collection::vec((0usize..4, 0.0f64..1.0, 0.0f64..1.0), 1..10),
    ) {
        let shape: Vec<u64> = dims.iter().map(|d| d.0).collect();
        let step: Vec<u64> = dims.iter().map(|d| d.1).collect();
        let mut array = MixedArray::new(&shape, origin, &step, margin);
        if all_coded {
            array = array.all_coded();
        }
        if slow {
            array = array.slow();
        }
        array.page_cached = page_cached;
        let (reader, array) = (reader_with(cache, &Arc::default()), Arc::new(array));
        let wholes: Vec<Vec<u8>> = (0..shape.len()).map(|axis| array.whole_by(axis)).collect();
        let scans: Vec<Arc<ScanDetector>> = (0..shape.len()).map(|_| Arc::default()).collect();
        // all permutations share the cache
        for (axis, a, b) in ranges {
            let axis = axis % shape.len();
            let n = (wholes[axis].len() / 2) as f64;
            let range = (n * a.min(b)) as u64..(n * a.max(b)).ceil() as u64;
            let expected = &wholes[axis][range.start as usize * 2..range.end as usize * 2];
            let got = read_permuted(&reader, &array, by(axis), range, scanned.then_some(&scans[axis])).unwrap();
            prop_assert_eq!(got, expected);
        }
    }
}

/// Reads the whole array in order.
fn scan(array: &Arc<MixedArray>, reader: &Arc<Reader>, axis: usize, window: usize) {
    let (whole, scans) = (array.whole_by(axis), Arc::default());
    for start in (0..whole.len()).step_by(window) {
        let end = (start + window).min(whole.len());
        let samples = start as u64 / 2..end as u64 / 2;
        let got = read_permuted(reader, array, by(axis), samples, Some(&scans)).unwrap();
        assert!(got == whole[start..end], "axis {axis} at {start}");
    }
}

const BRICK: usize = 32 * 24 * 28 * 2;
const BRICKS: u64 = 3 * 4 * 5;

/// Returns an array of 3 x 4 x 5 bricks, and for each axis the bytes of the bricks that a plane touches.
fn coded() -> (Arc<MixedArray>, [usize; 3]) {
    let array = MixedArray::new(&[96, 96, 140], 0, &[32, 24, 28], 0).all_coded();
    (Arc::new(array), [20 * BRICK, 15 * BRICK, 12 * BRICK])
}

fn amplification(axis: usize, cache: impl Fn(usize) -> usize, window: usize) -> f64 {
    let counters: Arc<Counters> = Arc::default();
    let (array, layers) = coded();
    let cache = cache(layers[axis]);
    let reader = reader_with(cache, &counters);
    scan(&array, &reader, axis, window);
    assert!(reader.bytes_held() <= cache + BRICK, "{} held of {cache}", reader.bytes_held());
    let decodes = counters.bricks_decoded.get() as f64 / BRICKS as f64;
    assert!(decodes >= 1.0, "all bricks have to be decoded");
    decodes
}

#[test]
fn a_permuted_scan_decodes_each_brick_once_if_its_layer_fits() {
    for axis in 0..3 {
        for window in [2048, 10_000] {
            at_most(1.01, &format!("axis {axis}, window {window}"), || amplification(axis, |layer| 2 * layer, window));
        }
    }
}

#[test]
fn a_permuted_scan_decodes_a_few_times_if_its_layer_does_not_fit() {
    for (part, most) in [(2, 2.8), (4, 5.5)] {
        for axis in 0..3 {
            let what = format!("axis {axis}, 1/{part} of a layer");
            at_most(most, &what, || amplification(axis, |layer| layer / part, 4096));
        }
    }
}

#[test]
fn a_scan_across_scattered_planes_reads_plain_bricks_once() {
    // a cache for two layers of bricks, and one for half a layer
    for (cache, most, decodes) in [(24 * BRICK, 4, BRICKS / 3), (6 * BRICK, 6, BRICKS)] {
        let counters: Arc<Counters> = Arc::default();
        // a third of the bricks is constant, a third plain, and a third coded
        let array = Arc::new(MixedArray::new(&[96, 96, 140], 0, &[32, 24, 28], 0).slow());
        let reader = reader_with(cache, &counters);
        scan(&array, &reader, 2, 4096);
        let (read, whole) = (array.bytes_read(), array.whole().len() as u64);
        // the first planes are read in parts, until the reader counts as a scan of several planes
        assert!(read < most * whole, "cache {cache}: {read} bytes of {whole}");
        assert!(counters.bricks_decoded.get() <= decodes, "plain bricks are decoded nowhere");
        scan(&array, &reader, 0, 4096);
    }
}

#[test]
fn scans_in_all_directions_share_bricks_and_a_tiny_cache() {
    let counters: Arc<Counters> = Arc::default();
    let (array, layers) = coded();
    let reader = reader_with(layers[1] / 2, &counters);
    thread::scope(|scope| {
        for axis in [0, 1, 2, 2] {
            let (array, reader) = (&array, &reader);
            scope.spawn(move || scan(array, reader, axis, 3000));
        }
    });
}

#[test]
fn bricks_decoded_for_one_direction_serve_the_others() {
    let counters: Arc<Counters> = Arc::default();
    let (array, _) = coded();
    let reader = reader_with(16 << 20, &counters);
    for axis in 0..3 {
        scan(&array, &reader, axis, 4096);
        assert_eq!(counters.bricks_decoded.get(), BRICKS, "after axis {axis}");
    }
}

#[test]
fn a_bad_brick_is_named_by_its_index_in_the_array() {
    // there are 3 x 2 x 2 bricks, so number 5 is at [1, 0, 1]
    let array = Arc::new(MixedArray::new(&[24, 16, 10], 0, &[8, 8, 5], 0).broken(5));
    let reader = reader_with(1 << 20, &Arc::default());
    let error = read_permuted(&reader, &array, by(2), 0..24 * 16 * 10, None).unwrap_err();
    assert_eq!(error.brick, [1, 0, 1].into());
    let whole = array.whole_by(2);
    // the first five slices do not touch it
    assert_eq!(read_permuted(&reader, &array, by(2), 0..24 * 16 * 5, None).unwrap(), whole[..24 * 16 * 5 * 2]);
}
