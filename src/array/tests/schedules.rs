//! Runs threads of the data path in many orders, which a scheduler chooses. `scripts/stress/schedules.sh` runs these
//! tests; a deadlock fails them, too.

use std::env;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use shuttle::scheduler::{PctScheduler, RandomScheduler};
use shuttle::sync::mpsc;
use shuttle::{Config, FailurePersistence, Runner};

use super::{MixedArray, reader_with};
use crate::array::cache::{BrickCache, DecodeResult, DecodedBrick, Keep, ScanQuota};
use crate::array::resources::DecodeGate;
use crate::array::{Gauges, ReadError, ReadRequest, Reader, Readers, Selection};
use crate::format::{Array, FormatError};
use crate::memory::BufferPool;
use crate::pool::{Bulkhead, Pool};
use crate::sync::{Clock, Condvar, Mutex, thread};
use crate::volume::{ArrayId, AxisPermutation, Layout};

/// Runs a test in VOLFS_SCHEDULES orders (1,000 if that is not set): a half of them at random, the others with few
/// preemptions. In a half of each, waits time out at any moment; in the others they do not, so that a thread that
/// nobody wakes is a deadlock.
fn check(test: impl Fn() + Send + Sync + 'static) {
    let schedules: usize = env::var("VOLFS_SCHEDULES").ok().and_then(|n| n.parse().ok()).unwrap_or(1_000);
    let test = Arc::new(test);
    let mut config = Config::new();
    config.stack_size = 1 << 19;
    config.failure_persistence = FailurePersistence::None;
    for clock in [Clock::Stopped, Clock::Runs] {
        for is_random in [true, false] {
            let test = Arc::clone(&test);
            let run = move || {
                clock.start();
                test();
                Clock::end();
            };
            let schedules = schedules.div_ceil(4);
            let ran = if is_random {
                Runner::new(RandomScheduler::new(schedules), config.clone()).run(run)
            } else {
                Runner::new(PctScheduler::new(3, schedules), config.clone()).run(run)
            };
            assert_eq!(ran, schedules);
        }
    }
}

// The cache, and single flight.

const THREADS: usize = 3;

fn brick(bytes: usize) -> DecodeResult {
    let layout = Layout::c_order([0].into(), [bytes as u64].into(), [bytes as u64].into(), 1);
    // a decoder locks something as well: other threads may go on in the middle of it
    let bytes = BufferPool::new(0).take(bytes);
    thread::yield_now();
    Ok(Arc::new(DecodedBrick { bytes, layout }))
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
                    let (got, _) = cache.get_or_decode(key, Keep::Shared, || {
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
                    let (got, _) = cache.get_or_decode(key, Keep::Never, || {
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
                    match cache.get_or_decode(key, Keep::Shared, decode).0 {
                        Ok(brick) => assert_eq!(brick.bytes.len(), 10),
                        Err(e) => assert_eq!(e, FormatError::Damaged("on purpose".into())),
                    }
                })
            })
            .collect();
        readers.into_iter().for_each(|reader| reader.join().unwrap());
        assert!(decoded.load(Ordering::Relaxed) <= 2, "after the failure one attempt is enough");
        assert_eq!(cache.in_flight(), 0);
        assert!(cache.get_or_decode(key, Keep::Shared, || brick(10)).0.is_ok());
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
                        let keep = if (n + reader) % 2 == 0 { Keep::Shared } else { Keep::Scan };
                        let (got, _) = cache.get_or_decode((array, n), keep, || brick(1000));
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

// The gate before the decoders.

#[test]
fn the_gate_keeps_its_budget_admits_one_always_and_forgets_nobody() {
    const BUDGET: usize = 100;
    check(|| {
        let (gate, decoders, bytes) = (Arc::new(DecodeGate::new(2, BUDGET)), Arc::default(), Arc::default());
        let threads: Vec<_> = [30, 70, 1000, 80]
            .into_iter()
            .map(|needed: usize| {
                let gate = Arc::clone(&gate);
                let (decoders, bytes): (Arc<AtomicUsize>, Arc<AtomicUsize>) =
                    (Arc::clone(&decoders), Arc::clone(&bytes));
                thread::spawn(move || {
                    gate.admit(needed, || {
                        let running = decoders.fetch_add(1, Ordering::SeqCst) + 1;
                        let total = bytes.fetch_add(needed, Ordering::SeqCst) + needed;
                        assert!(running <= 2, "{running} decoders");
                        assert!(total <= BUDGET || running == 1, "{running} decoders need {total} bytes");
                        thread::yield_now();
                        decoders.fetch_sub(1, Ordering::SeqCst);
                        bytes.fetch_sub(needed, Ordering::SeqCst);
                    });
                })
            })
            .collect();
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        assert_eq!(gate.admitted(), (0, 0));
    });
}

// The pool of threads, and its bulkheads.

/// Waits until the pool has no jobs; the last one may have to be put away after it has run.
fn wait_until_idle(pool: &Pool) {
    while pool.jobs() > 0 {
        thread::yield_now();
    }
}

#[test]
fn each_job_runs_once_and_no_more_than_the_limit_at_a_time() {
    check(|| {
        let (pool, (done, finished)) = (Pool::new(), mpsc::channel());
        let running: Arc<AtomicUsize> = Arc::default();
        let submitters: Vec<_> = (0..2)
            .map(|submitter| {
                let (pool, done, running) = (Arc::clone(&pool), done.clone(), Arc::clone(&running));
                thread::spawn(move || {
                    for n in 0..3 {
                        let (done, running) = (done.clone(), Arc::clone(&running));
                        pool.submit(Bulkhead::new(1).for_prefetch(2), move || {
                            let at_once = running.fetch_add(1, Ordering::SeqCst) + 1;
                            thread::yield_now();
                            running.fetch_sub(1, Ordering::SeqCst);
                            done.send((submitter * 3 + n, at_once)).unwrap();
                        });
                    }
                })
            })
            .collect();
        let mut jobs: Vec<(usize, usize)> = (0..6).map(|_| finished.recv().unwrap()).collect();
        submitters.into_iter().for_each(|submitter| submitter.join().unwrap());
        jobs.sort_unstable();
        assert!(jobs.iter().map(|(job, _)| *job).eq(0..6), "{jobs:?}");
        assert!(jobs.iter().all(|(_, at_once)| *at_once <= 2), "{jobs:?}");
        wait_until_idle(&pool);
    });
}

#[test]
fn a_bulkhead_that_hangs_does_not_hold_up_another() {
    check(|| {
        let pool = Pool::new();
        let gate = Arc::new((Mutex::new(false), Condvar::new()));
        let (done, finished) = mpsc::channel();
        for _ in 0..3 {
            let (gate, done) = (Arc::clone(&gate), done.clone());
            pool.submit(Bulkhead::new(1).for_prefetch(1), move || {
                let mut is_open = gate.0.lock();
                while !*is_open {
                    gate.1.wait(&mut is_open);
                }
                done.send(1).unwrap();
            });
        }
        for _ in 0..2 {
            let done = done.clone();
            pool.submit(Bulkhead::new(2), move || done.send(2).unwrap());
        }
        assert_eq!([finished.recv().unwrap(), finished.recv().unwrap()], [2, 2]);
        *gate.0.lock() = true;
        gate.1.notify_all();
        assert_eq!([1; 3].map(|_| finished.recv().unwrap()), [1, 1, 1]);
        wait_until_idle(&pool);
    });
}

// Whole reads: scans with prefetch and readers at random, in caches of several sizes.

fn read(
    reader: &Arc<Reader>,
    array: &Arc<MixedArray>,
    samples: Range<u64>,
    file: &Readers,
) -> Result<Vec<u8>, ReadError> {
    let (done, answer) = mpsc::channel();
    let (order, bulkhead) = (AxisPermutation::IDENTITY, Bulkhead::new(0));
    let selections = Selection::from_range(array.info(), &order, samples.clone(), 0).collect();
    let out = reader.buffers().take((samples.end - samples.start) as usize * 2);
    let from_file = Some(file.record(&samples, false, true));
    let array = Arc::clone(array) as Arc<dyn Array>;
    let request = ReadRequest { array, selections, bulkhead, counters: None, from_file, is_entire: false };
    reader.read(request, out, Arc::default(), move |read| done.send(read.map(|bytes| bytes.to_vec())).unwrap());
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
        let (reader, file) = (reader_with(cache, &Arc::default()), super::open(&array));
        let threads: Vec<_> = [[0..64, 64..128, 128..192, 192..256], [96..160, 0..32, 200..256, 8..24]]
            .into_iter()
            .map(|ranges| {
                let (reader, array, whole) = (Arc::clone(&reader), Arc::clone(&array), Arc::clone(&whole));
                let file = Arc::clone(&file);
                thread::spawn(move || {
                    for range in ranges {
                        let expected = &whole[2 * range.start as usize..2 * range.end as usize];
                        match read(&reader, &array, range.clone(), &file) {
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
        assert_eq!(file.prefetches_in_flight(), 0);
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
