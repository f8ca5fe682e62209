//! Scans of an array whose bricks all have to be decoded: right bytes, and few decodes however small the cache.

use std::sync::Arc;

use super::model_tests::{Mixed, read_with, reader_with};
use super::{Reader, Scans};
use crate::counters::Counters;

const BRICK: usize = 64 * 8 * 8 * 2;
/// 8 x 8 bricks of 64 planes.
const LAYER: usize = 64 * BRICK;

fn coded() -> Arc<Mixed> {
    Arc::new(Mixed::new(&[192, 64, 64], 0, &[64, 8, 8], 0).all_coded())
}

/// A pass in order; gives decodes for each brick.
fn scan(array: &Arc<Mixed>, reader: &Arc<Reader>, counters: &Counters, window: usize) -> f64 {
    let (whole, scans) = (array.whole(), Arc::new(Scans::default()));
    let before = counters.bricks_decoded.get();
    for start in (0..whole.len()).step_by(window) {
        let end = (start + window).min(whole.len());
        let samples = start as u64 / 2..end as u64 / 2;
        assert!(read_with(reader, array, samples, Some(&scans)).unwrap() == whole[start..end], "at {start}");
    }
    (counters.bricks_decoded.get() - before) as f64 / 192.0
}

fn amplification(cache: usize, window: usize) -> f64 {
    let counters: Arc<Counters> = Arc::default();
    let (array, reader) = (coded(), reader_with(cache, &counters));
    let decodes = scan(&array, &reader, &counters, window);
    assert!(reader.bytes_held() <= cache + BRICK, "{} held of {cache}", reader.bytes_held());
    decodes
}

#[test]
fn a_layer_that_fits_is_decoded_once() {
    for window in [512, 4096, 10_000] {
        let decodes = amplification(2 * LAYER, window);
        assert!((1.0..1.01).contains(&decodes), "window {window}: {decodes}");
    }
}

#[test]
fn a_layer_that_does_not_fit_is_decoded_a_few_times() {
    for (part, most) in [(2, 2.5), (4, 4.0), (8, 8.0), (16, 24.0)] {
        for window in [256, 1024] {
            let decodes = amplification(LAYER / part, window);
            assert!(decodes <= most, "1/{part} of a layer, window {window}: {decodes}");
        }
    }
}

#[test]
fn two_scans_at_once_share_the_cache() {
    let counters: Arc<Counters> = Arc::default();
    let reader = reader_with(LAYER, &counters);
    let arrays = [coded(), coded()];
    std::thread::scope(|scope| {
        for array in &arrays {
            scope.spawn(|| scan(array, &reader, &counters, 2048));
        }
    });
    let decodes = counters.bricks_decoded.get() as f64 / 384.0;
    assert!(decodes <= 2.6, "{decodes} with half a layer for each");
}

#[test]
fn a_scan_that_stopped_gives_the_cache_back() {
    let counters: Arc<Counters> = Arc::default();
    let (array, reader) = (coded(), reader_with(LAYER / 2, &counters));
    scan(&array, &reader, &counters, 4096);
    // another reader, who wants the same quarter of a layer again and again
    let part = || (0..16u64).map(|n| n * 128..n * 128 + 8);
    for samples in part().chain(part()) {
        read_with(&reader, &array, samples, None).unwrap();
    }
    let before = counters.bricks_decoded.get();
    for samples in part() {
        read_with(&reader, &array, samples, None).unwrap();
    }
    assert_eq!(counters.bricks_decoded.get(), before);
}

#[test]
fn scans_and_random_readers_of_a_tiny_cache_get_the_right_bytes() {
    let counters: Arc<Counters> = Arc::default();
    let (array, reader) = (coded(), reader_with(LAYER / 8, &counters));
    let whole = array.whole();
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| scan(&array, &reader, &counters, 3000));
        }
        for thread in 0..3u64 {
            let (whole, array, reader) = (&whole, &array, &reader);
            scope.spawn(move || {
                let scans = Arc::new(Scans::default());
                for n in 0..400u64 {
                    let start = (n * 7919 + thread * 104_729) % 780_000;
                    let samples = start..start + (n * 131) % 5000;
                    let expected = &whole[2 * samples.start as usize..2 * samples.end as usize];
                    assert!(read_with(reader, array, samples, Some(&scans)).unwrap() == expected);
                }
            });
        }
    });
}
