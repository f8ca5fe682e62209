//! Scans of arrays whose bricks have to be decoded, in all orders of axes: right bytes, and few decodes however small the
//! cache is.

use std::ops::Range;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use super::{MixedArray, by, open, read_box, read_permuted, read_with, reader_with};
use crate::array::{Reader, Readers};
use crate::counters::Counters;
use crate::format::Array;
use crate::sync::Mutex;
use crate::volume::{AxisPermutation, Region};

const BRICK: usize = 64 * 8 * 8 * 2;
/// 8 x 8 bricks of 64 planes.
const LAYER: usize = 64 * BRICK;
/// What these samples take as planes: in chunks of 512 bytes.
const LAYER_OF_PLANES: usize = LAYER * 7 / 4;

fn coded() -> Arc<MixedArray> {
    Arc::new(MixedArray::new(&[192, 64, 64], 0, &[64, 8, 8], 0).all_coded())
}

/// Reads the whole array in order. Returns the number of decodes for each brick.
fn scan(array: &Arc<MixedArray>, reader: &Arc<Reader>, counters: &Counters, window: usize) -> f64 {
    let (whole, file) = (array.whole(), open(array));
    let before = counters.bricks_decoded.get();
    for start in (0..whole.len()).step_by(window) {
        let end = (start + window).min(whole.len());
        let samples = start as u64 / 2..end as u64 / 2;
        assert!(read_with(reader, array, samples, Some(&file)).unwrap() == whole[start..end], "at {start}");
    }
    (counters.bricks_decoded.get() - before) as f64 / 192.0
}

fn amplification(cache: usize, window: usize) -> f64 {
    let decodes = [false, true].map(|page_cached| amplification_of(cache, window, page_cached));
    decodes[0].max(decodes[1])
}

fn amplification_of(cache: usize, window: usize, page_cached: bool) -> f64 {
    let counters: Arc<Counters> = Arc::default();
    let (mut array, reader) = (coded(), reader_with(cache, &counters));
    Arc::get_mut(&mut array).unwrap().page_cached = page_cached;
    let decodes = scan(&array, &reader, &counters, window);
    assert!(decodes >= 1.0, "all bricks have to be decoded");
    assert!(reader.bytes_held() <= cache + BRICK, "{} held of {cache}", reader.bytes_held());
    decodes
}

/// Asserts that `decodes` returns at most `most`. The timing of threads may cause a brick or two more to be decoded, so
/// the least of a few passes counts: a wrong policy is wrong in all of them.
pub(crate) fn at_most(most: f64, what: &str, mut decodes: impl FnMut() -> f64) {
    let mut least = f64::MAX;
    for _ in 0..6 {
        least = least.min(decodes());
        if least <= most {
            return;
        }
    }
    panic!("{what}: {least}, not {most}");
}

#[test]
fn a_layer_that_fits_is_decoded_once() {
    for window in [512, 4096, 10_000] {
        at_most(1.01, &format!("window {window}"), || amplification(2 * LAYER, window));
    }
}

#[test]
fn what_decodes_fast_is_kept_when_a_box_needs_it_again() {
    for is_fast in [false, true] {
        let counters: Arc<Counters> = Arc::default();
        let (mut array, reader) = (coded(), reader_with(4 * LAYER, &counters));
        Arc::get_mut(&mut array).unwrap().is_fast = is_fast;
        // 27 bricks, of 8 none is needed completely
        let region = Region { start: [32, 12, 20].into(), shape: [128, 16, 16].into() };
        let expected = read_box(&reader_with(0, &counters), &array, region).unwrap();
        let decodes = [27, if is_fast { 27 } else { 0 }, 0].map(|wanted| {
            let before = counters.bricks_decoded.get();
            assert!(read_box(&reader, &array, region).unwrap() == expected);
            assert_eq!(counters.bricks_decoded.get() - before, wanted, "fast: {is_fast}");
            reader.bytes_held()
        });
        assert_eq!(decodes, [if is_fast { 0 } else { 27 * BRICK }, 27 * BRICK, 27 * BRICK]);
    }
}

#[test]
fn of_the_first_plane_of_a_reader_no_more_is_kept_and_all_bricks_when_it_goes_on() {
    const PLANE: usize = 64 * 64 * 2;
    // whether bricks have parts, or are decoded fast, from which plane on, how many bytes are decoded for the first
    // plane, and how many are kept of it at most, with what tells where they are
    for (has_parts, is_fast, first, decoded, kept) in [
        (true, false, 70, PLANE, 5 * PLANE),
        (false, true, 70, LAYER, 12 * PLANE),
        (true, true, 0, LAYER, LAYER),
        (false, false, 70, LAYER, LAYER),
    ] {
        at_most(1.0, &format!("parts: {has_parts}, fast: {is_fast}, from plane {first}"), || {
            let counters: Arc<Counters> = Arc::default();
            let array = MixedArray::new(&[192, 64, 64], 0, &[64, 8, 8], 0).all_coded();
            let array = Arc::new(MixedArray { has_parts, is_fast, ..array });
            let (reader, whole, file) = (reader_with(4 * LAYER, &counters), array.whole(), open(&array));
            let read = |planes: Range<usize>, decoded: usize, kept: usize| {
                let before = counters.bytes_decoded.get();
                for start in (planes.start * PLANE..planes.end * PLANE).step_by(PLANE / 8) {
                    let samples = start as u64 / 2..(start + PLANE / 8) as u64 / 2;
                    let read = read_with(&reader, &array, samples, Some(&file)).unwrap();
                    assert!(read == whole[start..start + PLANE / 8], "at {start}");
                }
                while reader.gauges() != Default::default() {
                    thread::yield_now();
                }
                let now_decoded = (counters.bytes_decoded.get() - before) as f64;
                (now_decoded / decoded.max(1) as f64).max(reader.bytes_held() as f64 / kept as f64)
            };
            let of_plane = read(first..first + 1, decoded, kept);
            of_plane.max(read(first + 1..first + 9, if kept == LAYER { 0 } else { LAYER }, LAYER))
        });
    }
}

#[test]
fn a_layer_that_does_not_fit_is_decoded_a_few_times() {
    // of a layer, in sixteenths
    for (part, most) in [(15, 1.3), (12, 1.5), (8, 2.4), (4, 3.6), (2, 7.5), (1, 15.0)] {
        for window in [256, 1024] {
            let what = format!("{part}/16 of a layer, window {window}");
            at_most(most, &what, || amplification(LAYER_OF_PLANES * part / 16, window));
        }
    }
}

#[test]
fn a_plane_that_does_not_fit_is_decoded_once_for_each_plane_at_most() {
    at_most(64.0 * 1.1, "1/128 of a layer", || amplification(LAYER / 128, 256));
}

/// Reads the first 48 of the 64 bricks of a layer in order. Returns whether something is, or becomes, true of the reader's
/// work.
fn read_beginning(array: &Arc<MixedArray>, is_done: impl Fn(&Counters) -> bool) -> bool {
    let counters: Arc<Counters> = Arc::default();
    let (reader, file, whole) = (reader_with(4 * LAYER, &counters), open(array), array.whole());
    // 512 bytes are 4 of 64 rows
    for start in (0..3 * 2048).step_by(512) {
        let samples = start as u64 / 2..(start as u64 + 512) / 2;
        assert!(read_with(&reader, array, samples, Some(&file)).unwrap() == whole[start..start + 512], "at {start}");
    }
    while !is_done(&counters) && reader.gauges() != Default::default() {
        thread::sleep(Duration::from_millis(1));
    }
    is_done(&counters)
}

#[test]
fn bricks_that_a_scan_will_need_are_decoded_before_it_asks() {
    // a worker that stood still for more than a row has decoded what it was to decode for an earlier one
    assert!((0..20).any(|_| read_beginning(&coded(), |counters| counters.bricks_decoded.get() > 48)));
}

#[test]
fn bricks_of_one_plane_are_decoded_for_the_next_planes_too() {
    for bricks in [[1, 64, 64], [1, 16, 64]] {
        let array = Arc::new(MixedArray::new(&[96, 64, 64], 0, &bricks, 0).all_coded());
        let (whole, in_plane) = (array.whole(), 64 * 64 / bricks.iter().product::<u64>());
        let is_ahead = || {
            let counters: Arc<Counters> = Arc::default();
            let (reader, file) = (reader_with(4 * LAYER, &counters), open(&array));
            for start in (0..4 * 8192).step_by(2048) {
                let samples = start as u64 / 2..(start as u64 + 2048) / 2;
                assert!(read_with(&reader, &array, samples, Some(&file)).unwrap() == whole[start..start + 2048]);
            }
            while reader.gauges() != Default::default() {
                thread::sleep(Duration::from_millis(1));
            }
            // not more than the scan's share, either
            (4 * in_plane + 1..=4 * in_plane + 16).contains(&counters.bricks_decoded.get())
        };
        assert!((0..20).any(|_| is_ahead()), "{bricks:?}");
        at_most(1.01, &format!("{bricks:?} in one pass"), || {
            let counters: Arc<Counters> = Arc::default();
            scan(&array, &reader_with(16 * 8192, &counters), &counters, 2048) * 2.0 / in_plane as f64
        });
    }
}

#[test]
fn what_a_scan_will_need_of_a_slow_source_is_fetched_before_it_asks() {
    // what the workers have decoded before it could be requested is not requested
    let is_requested = (0..20).any(|_| {
        let mut array = coded();
        Arc::get_mut(&mut array).unwrap().fetched = Some(Mutex::default());
        let fetched = || array.fetched.iter().flat_map(|all| all.lock().clone()).collect::<Vec<_>>();
        let is_requested = read_beginning(&array, |_| fetched().iter().any(|range| range.start >= 48 * BRICK as u64));
        assert!(fetched().iter().all(|range| range.end - range.start == BRICK as u64));
        is_requested
    });
    assert!(is_requested);
}

/// Runs two scans of different arrays at once. Returns the number of decodes for each brick.
fn two(cache: usize) -> f64 {
    let counters: Arc<Counters> = Arc::default();
    let reader = reader_with(cache, &counters);
    let arrays = [coded(), coded()];
    thread::scope(|scope| {
        for array in &arrays {
            scope.spawn(|| scan(array, &reader, &counters, 2048));
        }
    });
    counters.bricks_decoded.get() as f64 / 384.0
}

#[test]
fn two_scans_at_once_share_the_cache() {
    at_most(1.1, "a layer for each", || two(5 * LAYER / 2));
    at_most(2.5, "half a layer for each", || two(LAYER));
}

/// Reads ranges of samples for several readers, one range of each reader at a time. Returns the number of decodes for
/// each of `bricks` bricks.
fn decodes(array: &Arc<MixedArray>, cache: usize, bricks: u64, readers: &[Vec<Range<u64>>]) -> f64 {
    decodes_of(array, &array.whole(), cache, bricks, readers)
}

fn decodes_of(array: &Arc<MixedArray>, whole: &[u8], cache: usize, bricks: u64, readers: &[Vec<Range<u64>>]) -> f64 {
    let counters: Arc<Counters> = Arc::default();
    let reader = reader_with(cache, &counters);
    let files: Vec<_> = readers.iter().map(|_| open(array)).collect();
    for n in 0..readers.iter().map(Vec::len).max().unwrap() {
        for (ranges, file) in readers.iter().zip(&files) {
            let Some(range) = ranges.get(n).filter(|range| !range.is_empty()) else { continue };
            let expected = &whole[2 * range.start as usize..2 * range.end as usize];
            assert!(read_with(&reader, array, range.clone(), Some(file)).unwrap() == expected, "at {range:?}");
        }
    }
    counters.bricks_decoded.get() as f64 / bricks as f64
}

fn windows(samples: Range<u64>, window: u64) -> Vec<Range<u64>> {
    samples.clone().step_by(window as usize).map(|start| start..(start + window).min(samples.end)).collect()
}

/// The windows of planes in the given order, eight for each.
fn planes(order: impl Iterator<Item = u64>) -> Vec<Range<u64>> {
    order.flat_map(|plane| windows(plane << 12..(plane + 1) << 12, 512)).collect()
}

#[test]
fn readers_that_skip_planes_or_start_in_the_middle() {
    let array = coded();
    for (what, ranges, cache, most) in [
        ("from the middle of a brick", planes(100..192), LAYER_OF_PLANES / 2, 1.4),
        ("every second plane, in a cache that holds a layer", planes((0..192).step_by(2)), 5 * LAYER / 4, 1.1),
        ("every second plane, in half of one", planes((0..192).step_by(2)), LAYER_OF_PLANES / 2, 3.2),
        (
            "windows out of order",
            planes(0..192).chunks(2).flat_map(|two| two.iter().rev().cloned()).collect(),
            LAYER_OF_PLANES / 2,
            2.5,
        ),
    ] {
        let ranges = [ranges];
        at_most(most, what, || decodes(&array, cache, 192, &ranges));
    }
}

#[test]
fn arrays_of_other_kinds() {
    for (what, shape, step, cache, bricks, most) in [
        ("tiles", vec![100, 64, 64], vec![1, 16, 16], 64 << 10, 1600.0, 1.05),
        ("few planes", vec![3, 128, 128], vec![64, 16, 16], 67 << 10, 64.0, 2.1),
        ("four axes", vec![64, 16, 32, 4], vec![16, 8, 8, 4], 56 << 10, 32.0, 2.5),
        ("one brick, larger than the cache", vec![64, 32, 32], vec![64, 32, 32], 16 << 10, 1.0, 12.0),
    ] {
        let array = Arc::new(MixedArray::new(&shape, 0, &step, 0).all_coded());
        let samples = shape.iter().product::<u64>();
        at_most(most, what, || decodes(&array, cache, 1, &[windows(0..samples, 1024)]) / bricks);
    }
}

#[test]
fn a_scan_and_a_random_reader_do_not_evict_each_others_bricks() {
    at_most((192 + 2 * 40) as f64, "192 bricks of a scan, and 40 of another reader", scan_beside_a_reader);
}

fn scan_beside_a_reader() -> f64 {
    let counters: Arc<Counters> = Arc::default();
    let (scanned, other) = (coded(), coded());
    let reader = reader_with(2 * LAYER, &counters);
    // bricks for a third of the cache, which one reader reads all the time, each in its last plane
    let hot: Vec<u64> = (0..40).map(|n| ((n / 8 % 8) * 8 * 64 + n % 8 * 8) + (63 + n / 40 * 64) * 4096).collect();
    let (to_scan, file) = (planes(0..192), open(&scanned));
    let at_random = |n: usize| {
        let start = hot[n * 7 % hot.len()];
        read_with(&reader, &other, start..start + 4, None).unwrap();
    };
    (0..400).for_each(at_random);
    for (n, range) in to_scan.into_iter().enumerate() {
        at_random(n);
        read_with(&reader, &scanned, range, Some(&file)).unwrap();
    }
    counters.bricks_decoded.get() as f64
}

#[test]
fn a_scan_that_stopped_gives_the_cache_back() {
    let counters: Arc<Counters> = Arc::default();
    let (array, reader) = (coded(), reader_with(LAYER / 2, &counters));
    scan(&array, &reader, &counters, 4096);
    // another reader reads the same quarter of a layer again and again
    let part = || (0..16u64).map(|n| n * 128..n * 128 + 8);
    for samples in part().chain(part()) {
        read_with(&reader, &array, samples, None).unwrap();
    }
    // prefetches of the scan may still be in flight
    let nothing_is_decoded = || {
        let before = counters.bricks_decoded.get();
        part().for_each(|samples| drop(read_with(&reader, &array, samples, None).unwrap()));
        counters.bricks_decoded.get() == before
    };
    assert!((0..20).any(|_| nothing_is_decoded()));
}

#[test]
fn scans_and_random_readers_of_a_tiny_cache_get_the_right_bytes() {
    let counters: Arc<Counters> = Arc::default();
    let (array, reader) = (coded(), reader_with(LAYER / 8, &counters));
    let whole = array.whole();
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| scan(&array, &reader, &counters, 3000));
        }
        for thread in 0..3u64 {
            let (whole, array, reader) = (&whole, &array, &reader);
            scope.spawn(move || {
                let file = open(array);
                for n in 0..400u64 {
                    let start = (n * 7919 + thread * 104_729) % 780_000;
                    let samples = start..start + (n * 131) % 5000;
                    let expected = &whole[2 * samples.start as usize..2 * samples.end as usize];
                    assert!(read_with(reader, array, samples, Some(&file)).unwrap() == expected);
                }
            });
        }
    });
}

/// Bricks of 256 KiB, 8 x 8 of them in a layer, and planes of 1 MiB, which are eight of the kernel's windows.
mod large {
    use std::sync::LazyLock;

    use super::*;

    pub(crate) const BRICKS: u64 = 192;
    pub(crate) const LAYER: usize = 16 << 20;
    const PLANE: u64 = 512 << 10;
    static ARRAY: LazyLock<Arc<MixedArray>> =
        LazyLock::new(|| Arc::new(MixedArray::new(&[48, 512, 1024], 0, &[16, 64, 128], 0).all_coded()));
    static WHOLE: LazyLock<Vec<u8>> = LazyLock::new(|| ARRAY.whole());

    /// The windows of planes in the given order.
    pub(crate) fn planes(order: impl Iterator<Item = u64>) -> Vec<Range<u64>> {
        order.flat_map(|plane| windows(plane * PLANE..(plane + 1) * PLANE, 64 << 10)).collect()
    }

    pub(crate) fn decodes(cache: usize, readers: &[Vec<Range<u64>>]) -> f64 {
        super::decodes_of(&ARRAY, &WHOLE, cache, BRICKS, readers)
    }
}

#[test]
fn a_cache_of_exactly_one_layer_holds_it() {
    at_most(1.02, "small planes", || amplification(LAYER, 1024));
    at_most(1.02, "large planes", || large::decodes(large::LAYER, &[large::planes(0..48)]));
}

#[test]
fn two_readers_of_one_file_at_the_same_place() {
    for lag in [0, 1, 3, 8, 40, 60, 100] {
        let first = large::planes(0..48);
        let second = std::iter::repeat_n(0..0, lag).chain(first.clone()).collect();
        let readers = [first, second];
        at_most(2.6, &format!("{lag} windows between them"), || large::decodes(5 * large::LAYER / 4, &readers));
    }
}

#[test]
fn two_readers_of_one_file_at_different_places() {
    for from in [8, 16, 20, 32] {
        let second = large::planes((from..48).chain(0..from));
        let readers = [large::planes(0..48), second];
        at_most(2.2, &format!("the second one {from} planes ahead"), || large::decodes(5 * large::LAYER / 2, &readers));
    }
}

#[test]
fn a_reader_that_goes_backwards() {
    at_most(1.1, "small planes", || decodes(&coded(), 5 * LAYER / 4, 192, &[planes((0..192).rev())]));
    at_most(1.1, "large planes", || large::decodes(5 * large::LAYER / 4, &[large::planes((0..48).rev())]));
}

mod permuted {
    use super::*;

    /// Reads the whole array in order.
    fn scan(array: &Arc<MixedArray>, reader: &Arc<Reader>, axis: usize, window: usize) {
        let (whole, file) = (array.whole_by(axis), Readers::new(array.info(), by(axis)));
        for start in (0..whole.len()).step_by(window) {
            let end = (start + window).min(whole.len());
            let samples = start as u64 / 2..end as u64 / 2;
            let got = read_permuted(reader, array, by(axis), samples, Some(&file)).unwrap();
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
                at_most(1.01, &format!("axis {axis}, window {window}"), || {
                    amplification(axis, |layer| 2 * layer, window)
                });
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
}

/// Bricks that scans have passed: evicted soon, unless somebody comes back to them.
mod passed {
    use super::*;

    const BRICK: usize = 32 * 16 * 16 * 2;
    /// 4 x 4 bricks.
    const LAYER: usize = 16 * BRICK;
    const LAYERS: usize = 20;
    const CACHE: usize = 16 * LAYER * 2;

    /// Reads the whole array in order, in steps of a few planes. Returns the number of decodes for each brick, and the bytes
    /// that were held at most.
    fn scan(
        array: &Arc<MixedArray>,
        reader: &Arc<Reader>,
        counters: &Counters,
        order: AxisPermutation,
    ) -> (f64, usize) {
        let file = Readers::new(array.info(), order);
        let (before, samples) = (counters.bricks_decoded.get(), (LAYERS * LAYER / 2) as u64);
        let mut held = 0;
        for start in (0..samples).step_by(8192) {
            let range = start..(start + 8192).min(samples);
            assert!(read_permuted(reader, array, order, range, Some(&file)).is_ok());
            held = held.max(reader.bytes_held());
        }
        ((counters.bricks_decoded.get() - before) as f64 / (16 * LAYERS) as f64, held)
    }

    #[test]
    fn a_scan_holds_few_bricks_behind_it_until_somebody_comes_back() {
        let array =
            Arc::new(MixedArray::new(&[32 * LAYERS as u64, 64, 64], 0, &[32, 16, 16], 0).all_coded().page_cached());
        let counters: Arc<Counters> = Arc::default();
        let (turned, straight) = (by(2), by(0));
        at_most(1.01, "decodes of a brick, besides its first two", || {
            let reader = reader_with(CACHE, &counters);
            let (decodes, held) = scan(&array, &reader, &counters, straight);
            assert!((1.0..1.05).contains(&decodes), "{decodes}");
            // the layer that it is in, the next one, and what it has passed last
            assert!(held <= 6 * LAYER, "{} layers are held of a cache for {}", held / LAYER, CACHE / LAYER);
            let (again, _) = scan(&array, &reader, &counters, turned);
            assert!(again < 1.05, "{again}");
            // which is why the cache keeps them now
            let (_, held) = scan(&array, &reader, &counters, straight);
            assert!(held > LAYERS / 2 * LAYER);
            let more = [turned, straight, turned, straight].map(|order| scan(&array, &reader, &counters, order).0);
            1.0 + more.iter().sum::<f64>()
        });
    }
}
