//! The cache of decoded bricks: flights, eviction, the weight of what is held.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::check;
use crate::cache::{BrickCache, DecodeResult, DecodedBrick, Partition, ScanQuota};
use crate::format::FormatError;
use crate::memory::BufferPool;
use crate::sync::thread;
use crate::volume::{ArrayId, Layout};

const THREADS: usize = 3;
const SHARED: Option<Partition> = Some(Partition::Shared);
const SCAN: Option<Partition> = Some(Partition::Scan);

fn brick(bytes: usize) -> DecodeResult {
    let layout = Layout::c_order([0].into(), [bytes as u64].into(), [bytes as u64].into(), 1);
    // a decoder locks something as well: other threads may go on in the middle of it
    let bytes = BufferPool::new(0).take(bytes);
    thread::yield_now();
    Ok(Arc::new(DecodedBrick { bytes: bytes.into(), layout }))
}

#[test]
fn a_brick_is_decoded_once_in_a_flight() {
    check(|| {
        let cache = Arc::new(BrickCache::new(1 << 20));
        let (decoded, key) = (Arc::new(AtomicUsize::new(0)), (ArrayId::next(), 5));
        let readers: Vec<_> = (0..THREADS)
            .map(|_| {
                let (cache, decoded) = (Arc::clone(&cache), Arc::clone(&decoded));
                thread::spawn(move || {
                    let (got, _) = cache.get_or_decode(key, SHARED, || {
                        decoded.fetch_add(1, Ordering::Relaxed);
                        brick(1000)
                    });
                    assert_eq!(got.unwrap().bytes.len(), 1000);
                })
            })
            .collect();
        readers.into_iter().for_each(|reader| reader.join().unwrap());
        assert_eq!(decoded.load(Ordering::Relaxed), 1);
        assert_eq!(cache.in_flight(), 0);
        assert!((1000..2000).contains(&cache.bytes()));
        cache.remove(key);
        assert_eq!(cache.bytes(), 0);
    });
}

#[test]
fn a_brick_that_is_not_kept_is_decoded_once_for_all_who_wait_for_it() {
    check(|| {
        let cache = Arc::new(BrickCache::new(1 << 20));
        let (running, key) = (Arc::new(AtomicUsize::new(0)), (ArrayId::next(), 5));
        let readers: Vec<_> = (0..THREADS)
            .map(|_| {
                let (cache, running) = (Arc::clone(&cache), Arc::clone(&running));
                thread::spawn(move || {
                    let (got, _) = cache.get_or_decode(key, None, || {
                        assert_eq!(running.fetch_add(1, Ordering::Relaxed), 0, "two decode the same brick");
                        let brick = brick(1000);
                        running.fetch_sub(1, Ordering::Relaxed);
                        brick
                    });
                    assert!(got.is_ok());
                })
            })
            .collect();
        readers.into_iter().for_each(|reader| reader.join().unwrap());
        assert_eq!((cache.in_flight(), cache.bytes()), (0, 0));
    });
}

#[test]
fn a_failure_reaches_all_who_wait_and_is_not_cached() {
    check(|| {
        let cache = Arc::new(BrickCache::new(1 << 20));
        let (decoded, key) = (Arc::new(AtomicUsize::new(0)), (ArrayId::next(), 5));
        let readers: Vec<_> = (0..THREADS)
            .map(|_| {
                let (cache, decoded) = (Arc::clone(&cache), Arc::clone(&decoded));
                thread::spawn(move || {
                    // the first attempt fails, all others succeed
                    let decode = || {
                        let attempt = decoded.fetch_add(1, Ordering::Relaxed);
                        thread::yield_now();
                        if attempt == 0 { Err(FormatError::Damaged("on purpose".into())) } else { brick(10) }
                    };
                    match cache.get_or_decode(key, SHARED, decode).0 {
                        Ok(brick) => assert_eq!(brick.bytes.len(), 10),
                        Err(e) => assert_eq!(e, FormatError::Damaged("on purpose".into())),
                    }
                })
            })
            .collect();
        readers.into_iter().for_each(|reader| reader.join().unwrap());
        assert!(decoded.load(Ordering::Relaxed) <= 2, "after the failure one attempt is enough");
        assert_eq!(cache.in_flight(), 0);
        assert!(cache.get_or_decode(key, SHARED, || brick(10)).0.is_ok());
    });
}

#[test]
fn what_is_held_stays_within_the_capacity_and_returns_to_nothing() {
    const CAPACITY: usize = 2500;
    check(|| {
        let (cache, array) = (Arc::new(BrickCache::new(CAPACITY)), ArrayId::next());
        let quotas = Arc::clone(&cache);
        let divides = thread::spawn(move || {
            for (outside, partition) in [(0, 1100), (1000, 1000), (2500, 0), (0, 0)] {
                let quota = ScanQuota { outside, partition, scan_resistant: partition > 0 };
                quotas.set_scan_quota(quota, (0..3).map(|n| (array, n)));
                quotas.demote((0..2).map(|n| (array, n)), true);
                assert!(quotas.bytes() <= CAPACITY);
            }
        });
        let readers: Vec<_> = (0..2)
            .map(|reader| {
                let cache = Arc::clone(&cache);
                thread::spawn(move || {
                    for n in 0..4 {
                        let partition = if (n + reader) % 2 == 0 { SHARED } else { SCAN };
                        let (got, _) = cache.get_or_decode((array, n), partition, || brick(1000));
                        assert_eq!(got.unwrap().bytes.len(), 1000);
                        assert!(cache.bytes() <= CAPACITY);
                    }
                })
            })
            .collect();
        readers.into_iter().for_each(|reader| reader.join().unwrap());
        divides.join().unwrap();
        (0..4).for_each(|n| cache.remove((array, n)));
        assert_eq!((cache.in_flight(), cache.bytes()), (0, 0));
    });
}
