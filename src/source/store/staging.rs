//! Ranges of objects that are being fetched, or were fetched ahead and wait in memory for their readers.
//!
//! Every byte of a store comes through here: a range is requested once, however many want it (single flight), and a
//! reader waits for the request that covers what it wants. Bytes that were read once are dropped; small blocks, which
//! headers and tables are read in, stay until they are evicted. The bytes in flight or waiting are bounded: what does
//! not fit is not fetched ahead. Only what a reader waits for is fetched in any case. The requests of a source are
//! bounded by their bytes ([`RequestLimit`]).

use std::collections::HashMap;
use std::num::NonZeroUsize;
use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use lru::LruCache;
use tokio::sync::{AcquireError, Semaphore, SemaphorePermit};

use super::client::{Fetched, Outcome};
use crate::sync::atomic::{AtomicU64, Ordering};
use crate::sync::{Condvar, Mutex};

/// Bytes in flight and waiting that ranges fetched ahead may take.
const MAX_BYTES: u64 = 64 << 20;

/// What was fetched ahead is not dropped for other ranges for this time: its reader is about to come.
const UNREAD_TTL: Duration = Duration::from_secs(3);

/// The beginning of an object stays when the rest was read: a header may be checked by several readers, each before it
/// reads the rest.
const HEADER: u64 = 4 << 10;

/// For this time all readers get the same answer about a range that could not be fetched, or an absent object.
const ERROR_TTL: Duration = Duration::from_secs(1);

/// Ranges that were read a moment ago are not fetched ahead again for this time; so many are remembered.
const READ_TTL: Duration = Duration::from_secs(2);
const READ: NonZeroUsize = NonZeroUsize::new(2048).unwrap();

/// Bytes that are requested at a time, as far as their number is known before they come: as many as fill a fast link to
/// a store that takes 50 ms to answer. More would only wait for each other, and delay what is needed first.
const MAX_IN_FLIGHT: u32 = 32 << 20;
/// The most requests in flight, if what they bring is short and there are connections enough.
pub(super) const MAX_REQUESTS: usize = 64;
/// Answers to shorter requests tell nothing about others: they are of tables and headers.
const MIN_RECORDED: u64 = 128 << 10;

/// An object of a source: the source's number, and the key.
pub(super) type ObjectId = (u64, Arc<str>);

/// Whether a range may be fetched ahead.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reservation {
    /// The caller has to request it.
    Made,
    /// It is in flight or in memory.
    Requested,
    /// Too much is in flight and in memory.
    NoRoom,
}

#[derive(Default)]
pub(super) struct Staging {
    state: Mutex<State>,
    arrived: Condvar,
}

struct State {
    objects: HashMap<ObjectId, Vec<Span>>,
    /// The object of each span that has arrived, by the span's number.
    arrived: LruCache<u64, ObjectId>,
    next: u64,
    bytes: u64,
    /// The beginnings of ranges that were read a moment ago, and may not be decoded yet.
    read: LruCache<(ObjectId, u64), Instant>,
}

impl Default for State {
    fn default() -> Self {
        let (arrived, read) = (LruCache::unbounded(), LruCache::new(READ));
        Self { objects: HashMap::new(), arrived, next: 0, bytes: 0, read }
    }
}

struct Span {
    number: u64,
    range: Range<u64>,
    /// Whether it stays after it was read.
    kept: bool,
    read: u64,
    waiting: u32,
    outcome: Option<(Outcome, Instant)>,
}

impl Span {
    /// Returns whether the span answers for a range: it holds it, or knows that the object ends before.
    fn covers(&self, range: &Range<u64>) -> bool {
        let ends = match &self.outcome {
            Some((Ok(Some(fetched)), _)) => fetched.meta.size <= self.range.end,
            Some((Ok(None), _)) => true,
            _ => false,
        };
        self.range.start <= range.start && (range.end <= self.range.end || ends)
    }

    fn is_expired(&self) -> bool {
        matches!(&self.outcome, Some((Err(_) | Ok(None), at)) if at.elapsed() >= ERROR_TTL)
    }

    /// Returns whether somebody is about to read it: waits for it, or had it fetched ahead a moment ago.
    fn is_awaited(&self) -> bool {
        let is_fresh = self.outcome.as_ref().is_some_and(|(_, at)| at.elapsed() < UNREAD_TTL);
        self.waiting > 0 || (!self.kept && self.read == 0 && is_fresh)
    }

    /// Returns the bytes that it takes, or will take.
    fn weight(&self) -> u64 {
        match &self.outcome {
            Some((Ok(Some(fetched)), _)) => fetched.bytes.len() as u64,
            Some(_) => 0,
            None => self.range.end - self.range.start,
        }
    }
}

impl Staging {
    /// Returns a range of an object, once it is there. If nobody has requested it, `request` gets the range `wide`,
    /// which has it: it must see to it that [`Staging::arrive`] is called. What is `kept` stays in memory afterwards as
    /// long as there is room.
    pub(super) fn get(
        &self,
        object: &ObjectId,
        range: &Range<u64>,
        (wide, kept): (&Range<u64>, bool),
        request: impl Fn(),
    ) -> Outcome {
        let mut state = self.state.lock();
        loop {
            state.drop_expired(object);
            match state.find(object, range) {
                Some(span) if span.outcome.is_some() => {
                    let (taken, dropped) = state.take(object, range);
                    drop(state);
                    drop(dropped);
                    return taken;
                }
                Some(span) => {
                    span.waiting += 1;
                    let number = span.number;
                    self.arrived.wait(&mut state);
                    // another span may have the range by now
                    if let Some(waited) = state.numbered(object, number) {
                        waited.waiting -= 1;
                    }
                }
                None => {
                    state.insert(object, wide.clone(), kept);
                    let dropped = state.evict(0, true);
                    drop(state);
                    drop(dropped);
                    request();
                    state = self.state.lock();
                }
            }
        }
    }

    /// Returns whether a range is in flight or in memory, or was read a moment ago and need not be fetched again.
    pub(super) fn has_or_had(&self, object: &ObjectId, range: &Range<u64>) -> bool {
        let mut state = self.state.lock();
        let at = state.read.peek(&(object.clone(), range.start));
        at.is_some_and(|at| at.elapsed() < READ_TTL) || state.find(object, range).is_some()
    }

    /// Returns whether this range, and not only one that has it, is in flight or in memory.
    pub(super) fn has(&self, object: &ObjectId, range: &Range<u64>) -> bool {
        self.state.lock().objects.get(object).into_iter().flatten().any(|span| span.range == *range)
    }

    /// Makes room for a range that is to be fetched ahead: in any case if somebody is about to wait for it.
    pub(super) fn reserve(&self, object: &ObjectId, range: &Range<u64>, awaited: bool) -> Reservation {
        let mut state = self.state.lock();
        if state.find(object, range).is_some() {
            return Reservation::Requested;
        }
        let length = range.end.saturating_sub(range.start);
        let dropped = state.evict(length, awaited);
        let has_room = awaited || state.bytes.saturating_add(length) <= MAX_BYTES;
        if has_room {
            state.insert(object, range.clone(), false);
        }
        drop(state);
        drop(dropped);
        if has_room { Reservation::Made } else { Reservation::NoRoom }
    }

    /// Takes what a request has brought, and wakes the threads that wait for it.
    pub(super) fn arrive(&self, object: &ObjectId, range: &Range<u64>, outcome: Outcome) {
        self.state.lock().arrive(object, range, outcome);
        self.arrived.notify_all();
    }

    /// Returns whether a request for an object is in flight or waits for its reader, and what it has brought: waits if
    /// it is in flight. `None` if there is none.
    pub(super) fn any_of(&self, object: &ObjectId) -> Option<Outcome> {
        let mut state = self.state.lock();
        loop {
            state.drop_expired(object);
            let span = state.objects.get(object)?.first()?;
            match &span.outcome {
                Some((outcome, _)) => return Some(outcome.clone()),
                None => self.arrived.wait(&mut state),
            }
        }
    }

    pub(super) fn forget(&self, source: u64) {
        let mut state = self.state.lock();
        let closed: Vec<ObjectId> = state.objects.keys().filter(|(number, _)| *number == source).cloned().collect();
        let remove_all = |object: &ObjectId| std::iter::from_fn(|| state.remove(object, 0)).collect::<Vec<_>>();
        // freed last, without the lock
        let _dropped: Vec<_> = closed.iter().map(remove_all).collect();
        drop(state);
    }

    pub(super) fn bytes(&self) -> usize {
        usize::try_from(self.state.lock().bytes).unwrap_or(usize::MAX)
    }
}

impl State {
    fn find(&mut self, object: &ObjectId, range: &Range<u64>) -> Option<&mut Span> {
        self.objects.get_mut(object)?.iter_mut().find(|span| span.covers(range))
    }

    fn numbered(&mut self, object: &ObjectId, number: u64) -> Option<&mut Span> {
        self.objects.get_mut(object)?.iter_mut().find(|span| span.number == number)
    }

    fn insert(&mut self, object: &ObjectId, range: Range<u64>, kept: bool) {
        self.bytes = self.bytes.saturating_add(range.end.saturating_sub(range.start));
        self.next += 1;
        let span = Span { number: self.next, range, kept, read: 0, waiting: 0, outcome: None };
        self.objects.entry(object.clone()).or_default().push(span);
    }

    fn arrive(&mut self, object: &ObjectId, range: &Range<u64>, outcome: Outcome) {
        let spans = self.objects.get_mut(object).into_iter().flatten();
        // there is none if the source was closed meanwhile
        if let Some(span) = spans.into_iter().find(|span| span.range == *range && span.outcome.is_none()) {
            self.bytes = self.bytes.saturating_sub(span.weight());
            span.outcome = Some((outcome, Instant::now()));
            self.bytes = self.bytes.saturating_add(span.weight());
            self.arrived.put(span.number, object.clone());
        }
    }

    /// Returns what has arrived of a range. Takes the span out if all of it was read and nobody waits for it.
    fn take(&mut self, object: &ObjectId, range: &Range<u64>) -> (Outcome, Option<Span>) {
        let mut spans = self.objects.get_mut(object).into_iter().flatten().enumerate();
        let Some((at, span)) = spans.find(|(_, span)| span.covers(range)) else { return (Ok(None), None) };
        if !span.kept {
            self.read.put((object.clone(), range.start), Instant::now());
        }
        let (outcome, begin) =
            (span.outcome.as_ref().map_or(Ok(None), |(outcome, _)| outcome.clone()), span.range.start);
        span.read = span.read.saturating_add(range.end - range.start);
        let is_read = !span.kept && outcome.is_ok() && span.read >= span.weight() && span.waiting == 0;
        self.arrived.promote(&span.number);
        let dropped = is_read.then(|| self.remove(object, at)).flatten();
        if let (true, 0, Ok(Some(fetched))) = (is_read, begin, &outcome) {
            self.keep_header(object, fetched);
        }
        let part = outcome.map(|fetched| {
            let Fetched { bytes, meta } = fetched?;
            let has = bytes.len() as u64;
            let (from, to) = ((range.start - begin).min(has) as usize, (range.end - begin).min(has) as usize);
            Some(Fetched { bytes: bytes.slice(from..to), meta })
        });
        (part, dropped)
    }

    fn keep_header(&mut self, object: &ObjectId, fetched: &Fetched) {
        let header = fetched.bytes.get(..HEADER as usize).unwrap_or(&fetched.bytes);
        let (range, meta) = (0..header.len() as u64, fetched.meta.clone());
        if header.is_empty() || self.find(object, &range).is_some() {
            return;
        }
        self.insert(object, range.clone(), true);
        self.arrive(object, &range, Ok(Some(Fetched { bytes: Bytes::copy_from_slice(header), meta })));
    }

    fn remove(&mut self, object: &ObjectId, at: usize) -> Option<Span> {
        let spans = self.objects.get_mut(object)?;
        let span = (at < spans.len()).then(|| spans.swap_remove(at))?;
        if spans.is_empty() {
            self.objects.remove(object);
        }
        self.bytes = self.bytes.saturating_sub(span.weight());
        self.arrived.pop(&span.number);
        Some(span)
    }

    /// Drops the errors of an object that do not count any more, and that it was absent.
    fn drop_expired(&mut self, object: &ObjectId) {
        while let Some(at) = self.objects.get(object).and_then(|spans| spans.iter().position(Span::is_expired)) {
            self.remove(object, at);
        }
    }

    /// Takes the spans out that were not used for the longest time, until `added` bytes fit; but none that somebody is
    /// about to read. Takes nothing out if that is not enough, unless it is a `must`.
    fn evict(&mut self, added: u64, must: bool) -> Vec<Span> {
        let (mut chosen, mut bytes) = (Vec::new(), self.bytes.saturating_add(added));
        for (number, object) in self.arrived.iter().rev() {
            if bytes <= MAX_BYTES {
                break;
            }
            let span = self.objects.get(object).into_iter().flatten().find(|span| span.number == *number);
            if let Some(span) = span.filter(|span| !span.is_awaited()) {
                bytes = bytes.saturating_sub(span.weight());
                chosen.push((*number, object.clone()));
            }
        }
        if bytes > MAX_BYTES && !must {
            return Vec::new();
        }
        let remove = |(number, object): (u64, ObjectId)| {
            let at = self.objects.get(&object)?.iter().position(|span| span.number == number)?;
            self.remove(&object, at)
        };
        chosen.into_iter().filter_map(remove).collect()
    }
}

pub(super) struct RequestLimit {
    /// A permit for each byte.
    permits: Semaphore,
    /// Permits that even the shortest request takes.
    least: u32,
    /// The bytes that an answer has brought, an average in which the last ones count most; 0 before the first.
    typical: AtomicU64,
}

impl RequestLimit {
    /// Allows at most `requests` requests at a time.
    pub(super) fn new(requests: usize) -> Self {
        let requests = u32::try_from(requests).unwrap_or(u32::MAX).clamp(1, MAX_IN_FLIGHT);
        let (permits, least) = (Semaphore::new(MAX_IN_FLIGHT as usize), MAX_IN_FLIGHT / requests);
        Self { permits, least, typical: AtomicU64::new(0) }
    }

    /// Waits until a request for a range of `length` bytes may be sent; it is in flight until the permit is dropped.
    /// Of ranges of which a format knows no more than a bound, those before tell how long they are.
    pub(super) async fn admit(&self, length: u64) -> Result<SemaphorePermit<'_>, AcquireError> {
        let expected = match self.typical.load(Ordering::Relaxed) {
            0 => length,
            typical => typical.min(length),
        };
        let bytes = u32::try_from(expected).unwrap_or(u32::MAX).clamp(self.least, MAX_IN_FLIGHT);
        self.permits.acquire_many(bytes).await
    }

    /// Records that the answer to a request for `length` bytes has brought `bytes`.
    pub(super) fn record(&self, length: u64, bytes: u64) {
        if length >= MIN_RECORDED {
            let average = |before: u64| Some(if before == 0 { bytes } else { (before.saturating_mul(7) + bytes) / 8 });
            let _ = self.typical.fetch_update(Ordering::Relaxed, Ordering::Relaxed, average);
        }
    }
}

#[cfg(test)]
#[allow(clippy::single_range_in_vec_init)]
mod tests {
    use std::cell::RefCell;
    use std::io;
    use std::task::{Context, Poll, Waker};
    use std::thread;

    use super::*;
    use crate::source::store::client::ObjectMeta;
    use crate::source::store::error::StoreError;

    fn object(key: &str) -> ObjectId {
        (1, key.into())
    }

    /// Returns what a request brings of an object of `size` bytes, each of which is its own offset.
    fn fetched(range: &Range<u64>, size: u64) -> Outcome {
        let meta = ObjectMeta { size, modified: 0, etag: None, headers: None };
        let bytes: Vec<u8> = (range.start..range.end.min(size)).map(|at| at as u8).collect();
        Ok(Some(Fetched { meta, bytes: Bytes::from(bytes) }))
    }

    impl Staging {
        /// Makes all that has arrived older.
        fn age(&self, by: Duration) {
            let mut state = self.state.lock();
            state.objects.values_mut().flatten().filter_map(|span| span.outcome.as_mut()).for_each(|(_, at)| *at -= by);
        }
    }

    /// Gets a range, and returns its bytes and the requests that were made for it.
    fn get(staging: &Staging, range: Range<u64>, kept: bool) -> (Vec<u8>, Vec<Range<u64>>) {
        let requests = RefCell::new(Vec::new());
        let wide = if kept { range.start / 64 * 64..range.end.next_multiple_of(64) } else { range.clone() };
        let got = staging.get(&object("a"), &range, (&wide, kept), || {
            staging.arrive(&object("a"), &wide, fetched(&wide, 200));
            requests.borrow_mut().push(wide.clone());
        });
        (got.unwrap().unwrap().bytes.to_vec(), requests.into_inner())
    }

    #[test]
    fn whoever_waits_waits_for_one_span() {
        let (staging, a) = (Staging::default(), object("a"));
        let [before, own, around] = [0..10, 100..110, 90..120];
        let waiting = || staging.state.lock().objects[&a].iter().map(|span| span.waiting).sum::<u32>();
        for range in [&before, &own] {
            assert_eq!(staging.reserve(&a, range, true), Reservation::Made);
        }
        thread::scope(|scope| {
            let reader = scope.spawn(|| staging.get(&a, &own, (&own, false), || panic!("it is requested")));
            while waiting() == 0 {
                thread::yield_now();
            }
            assert_eq!(staging.reserve(&a, &around, true), Reservation::Made);
            staging.arrive(&a, &before, fetched(&before, 200));
            // the last span takes the place of the one that was read, and is found first
            assert_eq!(get(&staging, before.clone(), false).1, vec![]);
            staging.arrive(&a, &around, fetched(&around, 200));
            assert_eq!(reader.join().unwrap().unwrap().unwrap().bytes[..], (100..110).collect::<Vec<u8>>());
        });
        assert_eq!(waiting(), 0, "nobody waits for the range that is still in flight");
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
        let state = staging.state.lock();
        assert_eq!((state.bytes, state.arrived.len(), state.objects.len()), (0, 0, 0));
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
                meta: ObjectMeta { size, modified: 0, etag: None, headers: None },
                bytes: Bytes::from(vec![0; third as usize]),
            }))
        };
        staging.arrive(&object("a"), &(0..third), empty(u64::MAX));
        staging.arrive(&object("a"), &(third..2 * third), empty(u64::MAX));
        assert_eq!(
            staging.reserve(&object("b"), &(0..third), false),
            Reservation::NoRoom,
            "somebody is about to read it"
        );
        assert_eq!(staging.reserve(&object("c"), &(0..third), true), Reservation::Made, "somebody waits for it");
        staging.arrive(&object("c"), &(0..third), Ok(None));
        staging.age(UNREAD_TTL);
        assert_eq!(
            staging.reserve(&object("b"), &(0..third), false),
            Reservation::Made,
            "the first that has arrived is dropped"
        );
        assert_eq!(staging.reserve(&object("a"), &(0..1), false), Reservation::Made, "its bytes are requested again");
        assert_eq!(
            staging.reserve(&object("a"), &(third..third + 1), false),
            Reservation::Requested,
            "the second waits"
        );
    }

    #[test]
    fn all_who_wait_get_the_error_and_those_who_come_later_ask_again() {
        let staging = Staging::default();
        let error = StoreError::new(io::ErrorKind::TimedOut, "late");
        assert_eq!(staging.reserve(&object("a"), &(0..10), false), Reservation::Made);
        thread::scope(|scope| {
            let waits = || staging.get(&object("a"), &(2..4), (&(2..4), false), || panic!("it is in flight"));
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
        let fails = || staging.arrive(&object("b"), &(0..1), Err(error.clone()));
        let refused = staging.get(&object("b"), &(0..1), (&(0..1), false), fails);
        assert_eq!(refused.unwrap_err(), error, "the request cannot be made");
    }

    #[test]
    fn a_range_is_requested_once_for_all_who_wait_for_it() {
        let staging = Staging::default();
        assert_eq!(staging.reserve(&object("a"), &(0..100), false), Reservation::Made);
        thread::scope(|scope| {
            let whole = || staging.get(&object("a"), &(0..100), (&(0..100), false), || panic!("it is in flight"));
            let readers = [(); 4].map(|()| scope.spawn(whole));
            while staging.state.lock().objects.values().flatten().map(|span| span.waiting).sum::<u32>() < 4 {
                thread::yield_now();
            }
            staging.arrive(&object("a"), &(0..100), fetched(&(0..100), 100));
            for reader in readers {
                assert_eq!(reader.join().unwrap().unwrap().unwrap().bytes.len(), 100);
            }
        });
        let state = staging.state.lock();
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
            let got = staging.get(&key, &(0..size), (&(0..size), false), || panic!("it has arrived"));
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

    /// Returns how many requests for `length` bytes are sent before one has to wait.
    fn sent(limit: &RequestLimit, length: u64) -> usize {
        let mut admitted = Vec::new();
        loop {
            let mut next = Box::pin(limit.admit(length));
            match next.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
                Poll::Ready(permit) => admitted.push(permit.unwrap()),
                Poll::Pending => return admitted.len(),
            }
        }
    }

    #[test]
    fn short_requests_are_bounded_by_their_number_and_long_ones_by_their_bytes() {
        let limit = RequestLimit::new(MAX_REQUESTS);
        assert_eq!([1, 1 << 10, 1 << 20, 8 << 20, 1 << 40].map(|length| sent(&limit, length)), [64, 64, 32, 4, 1]);
        assert_eq!([1, 1 << 20, 4 << 20].map(|length| sent(&RequestLimit::new(10), length)), [10, 10, 8]);
        assert_eq!(sent(&RequestLimit::new(0), 1), 1);
    }

    #[test]
    fn the_length_of_answers_counts_where_requests_give_a_bound() {
        let limit = RequestLimit::new(MAX_REQUESTS);
        limit.record(64 << 10, 64 << 10);
        assert_eq!(sent(&limit, 1 << 20), 32, "a header tells nothing");
        limit.record(1 << 20, 100 << 10);
        assert_eq!(sent(&limit, 1 << 20), 64);
        (0..100).for_each(|_| limit.record(1 << 20, 1 << 20));
        assert_eq!([1 << 20, 1 << 10].map(|length| sent(&limit, length)), [32, 64]);
    }
}
