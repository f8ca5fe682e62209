#![allow(clippy::single_range_in_vec_init)]

use std::cell::RefCell;
use std::io;
use std::thread;

use bytes::Bytes;

use super::*;
use crate::source::store::meta::Meta;

fn object(key: &str) -> ObjectId {
    (1, key.into())
}

/// Returns what a request brings of an object of `size` bytes, each of which is its own offset.
fn fetched(range: &Range<u64>, size: u64) -> Outcome {
    let meta = Meta { size, modified: 0, etag: None, headers: None };
    let bytes: Vec<u8> = (range.start..range.end.min(size)).map(|at| at as u8).collect();
    Ok(Some(Fetched { meta, bytes: Bytes::from(bytes) }))
}

impl Staging {
    /// Makes all that has arrived older.
    fn age(&self, by: Duration) {
        let mut state = self.lock();
        state.objects.values_mut().flatten().filter_map(|span| span.outcome.as_mut()).for_each(|(_, at)| *at -= by);
    }
}

/// Gets a range, and returns its bytes and the requests that were made for it.
fn get(staging: &Staging, range: Range<u64>, kept: bool) -> (Vec<u8>, Vec<Range<u64>>) {
    let requests = RefCell::new(Vec::new());
    let widen =
        |range: &Range<u64>| if kept { range.start / 64 * 64..range.end.next_multiple_of(64) } else { range.clone() };
    let got = staging.get(&object("a"), range, kept, widen, |range| {
        staging.arrive(&object("a"), &range, fetched(&range, 200));
        requests.borrow_mut().push(range);
        Ok(())
    });
    (got.unwrap().unwrap().bytes.to_vec(), requests.into_inner())
}

#[test]
fn blocks_are_kept_and_other_ranges_are_dropped_once_they_were_read() {
    let staging = Staging::default();
    assert_eq!(get(&staging, 10..12, true), (vec![10, 11], vec![0..64]));
    assert_eq!(get(&staging, 60..64, true), (vec![60, 61, 62, 63], vec![]));
    assert_eq!(staging.bytes(), 64);
    assert_eq!(staging.reserve(&object("a"), &(100..150), false), Reservation::Made);
    assert_eq!(staging.reserve(&object("a"), &(110..120), false), Reservation::Requested, "it is in flight");
    assert_eq!(staging.bytes(), 114);
    staging.arrive(&object("a"), &(100..150), fetched(&(100..150), 200));
    assert_eq!(get(&staging, 100..120, false), ((100..120).collect(), vec![]));
    assert_eq!(staging.bytes(), 114);
    assert_eq!(get(&staging, 120..150, false).1, vec![]);
    assert_eq!(staging.bytes(), 64, "all of it was read");
    assert_eq!(get(&staging, 120..150, false).1, vec![120..150]);
    staging.forget(1);
    let state = staging.lock();
    assert_eq!((state.bytes, state.by_age.len(), state.objects.len()), (0, 0, 0));
}

#[test]
fn a_range_that_reaches_the_end_answers_for_what_lies_beyond() {
    let staging = Staging::default();
    assert_eq!(get(&staging, 190..250, true), ((190..200).collect(), vec![128..256]));
    assert_eq!(get(&staging, 195..1000, false), ((195..200).collect(), vec![]));
    assert!(get(&staging, 300..301, false).0.is_empty());
}

#[test]
fn what_does_not_fit_is_not_fetched_ahead_and_the_oldest_goes_first() {
    let staging = Staging::default();
    let third = MAX_BYTES / 3;
    for n in 0..3 {
        let range = n * third..(n + 1) * third;
        assert_eq!(staging.reserve(&object("a"), &range, false), Reservation::Made);
    }
    assert_eq!(staging.reserve(&object("b"), &(0..third), false), Reservation::NoRoom, "all is in flight");
    let empty = |size| {
        Ok(Some(Fetched {
            meta: Meta { size, modified: 0, etag: None, headers: None },
            bytes: Bytes::from(vec![0; third as usize]),
        }))
    };
    staging.arrive(&object("a"), &(0..third), empty(u64::MAX));
    staging.arrive(&object("a"), &(third..2 * third), empty(u64::MAX));
    assert_eq!(staging.reserve(&object("b"), &(0..third), false), Reservation::NoRoom, "somebody is about to read it");
    assert_eq!(staging.reserve(&object("c"), &(0..third), true), Reservation::Made, "somebody waits for it");
    staging.arrive(&object("c"), &(0..third), Ok(None));
    staging.age(UNREAD_TTL);
    assert_eq!(
        staging.reserve(&object("b"), &(0..third), false),
        Reservation::Made,
        "the first that has arrived is dropped"
    );
    assert_eq!(staging.reserve(&object("a"), &(0..1), false), Reservation::Made, "its bytes are requested again");
    assert_eq!(staging.reserve(&object("a"), &(third..third + 1), false), Reservation::Requested, "the second waits");
}

#[test]
fn all_who_wait_get_the_error_and_those_who_come_later_ask_again() {
    let staging = Staging::default();
    let error = StoreError::new(io::ErrorKind::TimedOut, "late");
    assert_eq!(staging.reserve(&object("a"), &(0..10), false), Reservation::Made);
    thread::scope(|scope| {
        let waits = || staging.get(&object("a"), 2..4, false, Range::clone, |_| panic!("it is in flight"));
        let waiting = [scope.spawn(waits), scope.spawn(waits)];
        let any = scope.spawn(|| staging.any_of(&object("a")));
        thread::sleep(Duration::from_millis(20));
        staging.arrive(&object("a"), &(0..10), Err(error.clone()));
        for thread in waiting {
            assert_eq!(thread.join().unwrap().unwrap_err(), error);
        }
        assert_eq!(any.join().unwrap().unwrap().unwrap_err(), error);
    });
    staging.age(ERROR_TTL);
    assert_eq!(get(&staging, 2..4, false), (vec![2, 3], vec![2..4]));
    assert_eq!(staging.bytes(), 0);
    let refused = staging.get(&object("b"), 0..1, false, Range::clone, |_| Err(error.clone()));
    assert_eq!(refused.unwrap_err(), error, "the request cannot be made");
}

#[test]
fn a_range_is_requested_once_for_all_who_wait_for_it() {
    let staging = Staging::default();
    assert_eq!(staging.reserve(&object("a"), &(0..100), false), Reservation::Made);
    thread::scope(|scope| {
        let whole = || staging.get(&object("a"), 0..100, false, Range::clone, |_| panic!("it is in flight"));
        let readers = [(); 4].map(|()| scope.spawn(whole));
        while staging.lock().objects.values().flatten().map(|span| span.waiting).sum::<u32>() < 4 {
            thread::yield_now();
        }
        staging.arrive(&object("a"), &(0..100), fetched(&(0..100), 100));
        for reader in readers {
            assert_eq!(reader.join().unwrap().unwrap().unwrap().bytes.len(), 100);
        }
    });
    let state = staging.lock();
    assert_eq!(state.objects.values().flatten().map(|span| span.waiting).sum::<u32>(), 0);
}

#[test]
fn the_header_of_an_object_that_was_read_stays() {
    let staging = Staging::default();
    let size = 3 * HEADER;
    assert_eq!(staging.reserve(&object("a"), &(0..size), false), Reservation::Made);
    staging.arrive(&object("a"), &(0..size), fetched(&(0..size), size));
    assert_eq!(get(&staging, 0..size, false).1, vec![]);
    assert_eq!(staging.bytes() as u64, HEADER);
    assert_eq!(get(&staging, 8..12, true), (vec![8, 9, 10, 11], vec![]));
    assert_eq!(
        staging.reserve(&object("a"), &(0..size), false),
        Reservation::Made,
        "the rest would be requested again"
    );
}

#[test]
fn what_was_requested_beyond_the_end_of_an_object_takes_no_room() {
    let staging = Staging::default();
    let size = 3 * HEADER;
    for n in 0..3 {
        let key: ObjectId = (1, format!("{n}").into());
        assert_eq!(staging.reserve(&key, &(0..10 * HEADER), false), Reservation::Made);
        staging.arrive(&key, &(0..10 * HEADER), fetched(&(0..10 * HEADER), size));
        assert_eq!(staging.bytes() as u64, n * HEADER + size);
        let got = staging.get(&key, 0..size, false, Range::clone, |_| panic!("it has arrived"));
        assert_eq!(got.unwrap().unwrap().bytes.len() as u64, size);
        assert_eq!(staging.bytes() as u64, (n + 1) * HEADER);
    }
}

#[test]
fn nothing_is_dropped_for_a_range_that_does_not_fit_even_then() {
    let staging = Staging::default();
    get(&staging, 0..64, true);
    let most = 0..MAX_BYTES - 64;
    assert_eq!(staging.reserve(&object("b"), &most, false), Reservation::Made);
    assert_eq!(staging.reserve(&object("c"), &(0..128), false), Reservation::NoRoom);
    assert_eq!(get(&staging, 0..64, true).1, vec![], "it is still there");
    assert_eq!(staging.reserve(&object("c"), &(0..64), false), Reservation::Made, "but it goes where that helps");
    assert_eq!(get(&staging, 0..64, true).1, vec![0..64]);
}
