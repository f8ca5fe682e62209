//! Whole reads: scans with prefetch and readers at random, in caches of several sizes.

use std::ops::Range;
use std::sync::Arc;

use shuttle::sync::mpsc;

use super::check;
use crate::array::tests::model::{MixedArray, reader_with};
use crate::array::{Gauges, ReadError, ReadRequest, Reader, ScanDetector};
use crate::format::Array;
use crate::pool::Bulkhead;
use crate::sync::thread;

fn read(
    reader: &Arc<Reader>,
    array: &Arc<MixedArray>,
    samples: Range<u64>,
    scans: &Arc<ScanDetector>,
) -> Result<Vec<u8>, ReadError> {
    let (done, answer) = mpsc::channel();
    let (array, scans) = (Arc::clone(array) as Arc<dyn Array>, Some(Arc::clone(scans)));
    let (permutation, bulkhead) = (None, Bulkhead::new(0));
    let request =
        ReadRequest { array, permutation, samples, bulkhead, scans, page_cached: true, ahead: false, counters: None };
    reader.read(request, move |read| done.send(read.map(|bytes| bytes.to_vec())).unwrap());
    answer.recv().unwrap()
}

/// Reads an array by two threads that share an open file: from the beginning to the end, and some planes again.
fn check_reads(cache: usize, broken: Option<u64>) {
    check(move || {
        let array = MixedArray::new(&[8, 4, 8], 0, &[4, 4, 4], 0).all_coded();
        let whole = Arc::new(array.whole());
        let array = Arc::new(match broken {
            Some(brick) => array.broken(brick),
            None => array,
        });
        let (reader, scans): (_, Arc<ScanDetector>) = (reader_with(cache, &Arc::default()), Arc::default());
        let threads: Vec<_> = [[0..64, 64..128, 128..192, 192..256], [96..160, 0..32, 200..256, 8..24]]
            .into_iter()
            .map(|ranges| {
                let (reader, array, whole) = (Arc::clone(&reader), Arc::clone(&array), Arc::clone(&whole));
                let scans = Arc::clone(&scans);
                thread::spawn(move || {
                    for range in ranges {
                        let expected = &whole[2 * range.start as usize..2 * range.end as usize];
                        match read(&reader, &array, range.clone(), &scans) {
                            Ok(bytes) => assert!(bytes == expected, "{range:?}"),
                            Err(error) => assert!(broken.is_some(), "{range:?}: {error}"),
                        }
                    }
                })
            })
            .collect();
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        // prefetches may still be at work
        while reader.gauges().jobs > 0 {
            thread::yield_now();
        }
        assert_eq!(reader.gauges(), Gauges::default());
        // each scan may keep a brick that it has read in part
        assert!(reader.bytes_held() <= cache + 2 * 128, "{} bytes are held", reader.bytes_held());
        assert_eq!(scans.prefetches_in_flight(), 0);
    });
}

#[test]
fn readers_get_right_samples_from_a_cache_that_is_large_enough() {
    check_reads(1 << 16, None);
}

#[test]
fn readers_get_right_samples_from_a_cache_that_is_too_small() {
    check_reads(300, None);
}

#[test]
fn readers_get_right_samples_without_a_cache() {
    check_reads(0, None);
}

#[test]
fn a_brick_that_fails_costs_only_its_own_readers() {
    check_reads(300, Some(1));
}
