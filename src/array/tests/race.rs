//! Runs readers of all kinds at once, on separate threads, with caches that are too small for them: each gets the right
//! bytes.

use std::ops::Range;
use std::sync::Arc;
use std::thread;

use proptest::prelude::*;

use super::model::{MixedArray, read_with, reader_with};
use crate::array::ScanDetector;

/// The order in which a reader goes through an array.
#[derive(Clone, Copy, Debug)]
enum Order {
    Forwards,
    Backwards,
    EverySecondPlane,
    Random,
}

/// The requests of a reader: `window` samples at a time, from fraction `from` of the array on.
fn requests(order: Order, samples: u64, plane: u64, window: u64, from: f64) -> Vec<Range<u64>> {
    let first = (samples as f64 * from) as u64;
    let windows = |range: Range<u64>| {
        let end = range.end.min(samples);
        range.step_by(window as usize).map(move |start| start..(start + window).min(end)).filter(|r| r.start < r.end)
    };
    let planes = first / plane..samples.div_ceil(plane);
    let of_plane = |n: u64| windows(n * plane..(n + 1) * plane);
    match order {
        Order::Forwards => windows(first..samples).collect(),
        Order::Backwards => planes.rev().flat_map(of_plane).collect(),
        Order::EverySecondPlane => planes.step_by(2).flat_map(of_plane).collect(),
        Order::Random => {
            let hash = |n: u64| (n + first).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 20;
            (0..60).map(|n| hash(n) % samples).map(|start| start..(start + window).min(samples)).collect()
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn readers_at_once_get_the_right_bytes_however_small_the_cache(
        dims in prop::collection::vec((1u64..40, 1u64..16), 1..5), origin in -5i64..6, margin in 0u64..3,
        all_coded in any::<bool>(), slow in any::<bool>(), page_cached in any::<bool>(),
        cache in prop::sample::select(vec![0usize, 500, 2000, 8000, 40_000]),
        readers in prop::collection::vec(
            (
                prop::sample::select(vec![
                    Order::Forwards, Order::Forwards, Order::Backwards, Order::EverySecondPlane, Order::Random,
                ]),
                1u64..3000, 0.0f64..0.9, any::<bool>(),
            ),
            2..6,
        ),
    ) {
        // no more than some ten thousand samples
        let mut room = 30_000;
        let shape: Vec<u64> = dims
            .iter()
            .map(|(n, _)| {
                let n = (*n).min(room);
                room = (room / n).max(1);
                n
            })
            .collect();
        let step: Vec<u64> = dims.iter().map(|d| d.1).collect();
        let mut array = MixedArray::new(&shape, origin, &step, margin);
        (array.slow, array.page_cached) = (slow, page_cached);
        let array = Arc::new(if all_coded { array.all_coded() } else { array });
        let (whole, reader) = (array.whole(), reader_with(cache, &Arc::default()));
        let (samples, plane) = (shape.iter().product::<u64>(), shape[1..].iter().product::<u64>());
        let one_file: Arc<ScanDetector> = Arc::default();
        thread::scope(|scope| {
            for (order, window, from, own) in readers {
                let scans = if own { Arc::default() } else { Arc::clone(&one_file) };
                let (array, whole, reader) = (&array, &whole, &reader);
                scope.spawn(move || {
                    // at most a hundred requests for each pass
                    let window = window.max(samples / 100);
                    for range in requests(order, samples, plane, window, from) {
                        let expected = &whole[2 * range.start as usize..2 * range.end as usize];
                        let got = read_with(reader, array, range.clone(), Some(&scans)).unwrap();
                        assert!(got == expected, "{range:?}");
                    }
                });
            }
        });
    }
}
