//! Ranges of objects that are being fetched, or were fetched ahead and wait in memory for their readers.
//!
//! Every byte of a store comes through here: a range is requested once, however many want it (single flight), and a
//! reader waits for the request that covers what it wants. Bytes that were read once are dropped; small blocks, which
//! headers and tables are read in, stay until they are evicted. The bytes in flight or waiting are bounded: what does
//! not fit is not fetched ahead. Only what a reader waits for is fetched in any case.

use std::collections::{BTreeMap, HashMap};
use std::num::NonZeroUsize;
use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use lru::LruCache;

use super::client::Fetched;
use super::error::StoreError;
use crate::sync::{Condvar, Mutex, MutexGuard};

/// Bytes in flight and waiting that ranges fetched ahead may take.
const MAX_BYTES: u64 = 64 << 20;

/// What was fetched ahead is not dropped for other ranges for this time: whoever asked for it is about to read it.
const UNREAD_TTL: Duration = Duration::from_secs(3);

/// The beginning of an object stays when the rest was read: a header may be checked by several readers, each before it
/// reads the rest.
const HEADER: u64 = 4 << 10;

/// All who want a range that could not be fetched, or of an object that is not there, get the same answer for this time.
const ERROR_TTL: Duration = Duration::from_secs(1);

/// Ranges that were read a moment ago are not fetched ahead again for this time; so many are remembered.
const READ_TTL: Duration = Duration::from_secs(2);
const READ: NonZeroUsize = NonZeroUsize::new(2048).unwrap();

/// An object of a source: the source's number, and the key.
pub(crate) type ObjectId = (u64, Arc<str>);

/// What a request for a range has brought: `None` if there is no such object.
pub(crate) type Outcome = Result<Option<Fetched>, StoreError>;

/// Whether a range may be fetched ahead.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reservation {
    /// The caller has to request it.
    Made,
    /// It is in flight or in memory.
    Requested,
    /// Too much is in flight and in memory.
    NoRoom,
}

/// Ranges in flight and in memory.
#[derive(Default)]
pub(crate) struct Staging {
    state: Mutex<State>,
    arrived: Condvar,
}

#[derive(Default)]
struct State {
    objects: HashMap<ObjectId, Vec<Span>>,
    /// The object of each span that has arrived, by the time of its last use.
    by_age: BTreeMap<u64, ObjectId>,
    /// The next number for an age.
    clock: u64,
    /// Bytes in flight and waiting.
    bytes: u64,
    /// The beginnings of ranges that were read a moment ago: those who have read them may not have decoded them yet.
    read: Option<LruCache<(ObjectId, u64), Instant>>,
}

/// A range that was requested.
struct Span {
    range: Range<u64>,
    /// Whether it stays after it was read.
    kept: bool,
    /// Bytes that were read of it so far.
    read: u64,
    /// Readers that wait for it.
    waiting: u32,
    /// The number in [`State::by_age`]; meaningful once it has arrived.
    age: u64,
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
    /// Returns a range of an object, once it is there. If nobody has requested it, `request` gets it, or a larger one
    /// that `widen` makes of it: it must see to it that [`Staging::arrive`] is called. A range that is `kept` stays in
    /// memory afterwards as long as there is room.
    pub(crate) fn get(
        &self,
        object: &ObjectId,
        range: Range<u64>,
        kept: bool,
        widen: impl Fn(&Range<u64>) -> Range<u64>,
        request: impl Fn(Range<u64>) -> Result<(), StoreError>,
    ) -> Outcome {
        let mut state = self.state.lock();
        let mut waits = false;
        loop {
            state.drop_expired(object);
            match state.find(object, &range) {
                Some(span) => {
                    span.waiting = span.waiting.saturating_sub(u32::from(waits));
                    if span.outcome.is_some() {
                        let (taken, dropped) = state.take(object, &range);
                        drop(state);
                        drop(dropped);
                        return taken;
                    }
                    span.waiting += 1;
                    waits = true;
                    self.arrived.wait(&mut state);
                }
                None => {
                    let wide = widen(&range);
                    state.insert(object, wide.clone(), kept);
                    let dropped = state.evict(0, true);
                    drop(state);
                    drop(dropped);
                    if let Err(error) = request(wide.clone()) {
                        self.arrive(object, &wide, Err(error));
                    }
                    state = self.state.lock();
                }
            }
        }
    }

    /// Returns whether a range is in flight or in memory, or somebody has read it a moment ago and need not get it again.
    pub(crate) fn has_or_had(&self, object: &ObjectId, range: &Range<u64>) -> bool {
        let mut state = self.state.lock();
        let at = state.read.as_ref().and_then(|read| read.peek(&(object.clone(), range.start)).copied());
        at.is_some_and(|at| at.elapsed() < READ_TTL) || state.find(object, range).is_some()
    }

    /// Makes room for a range that is to be fetched ahead: in any case if somebody is about to wait for it.
    pub(crate) fn reserve(&self, object: &ObjectId, range: &Range<u64>, awaited: bool) -> Reservation {
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

    /// Takes what a request has brought, and wakes those who wait for it.
    pub(crate) fn arrive(&self, object: &ObjectId, range: &Range<u64>, outcome: Outcome) {
        let mut state = self.state.lock();
        let State { objects, by_age, clock, bytes, .. } = &mut *state;
        let spans = objects.get_mut(object).into_iter().flatten();
        // there is none if the source was closed meanwhile
        if let Some(span) = spans.into_iter().find(|span| span.range == *range && span.outcome.is_none()) {
            *bytes = bytes.saturating_sub(span.weight());
            span.outcome = Some((outcome, Instant::now()));
            *bytes = bytes.saturating_add(span.weight());
            *clock += 1;
            span.age = *clock;
            by_age.insert(*clock, object.clone());
        }
        drop(state);
        self.arrived.notify_all();
    }

    /// Returns whether a request for an object is in flight or waits for its reader, and what it has brought: waits if
    /// it is in flight. `None` if there is none.
    pub(crate) fn any_of(&self, object: &ObjectId) -> Option<Outcome> {
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

    /// Drops all of a source that was closed.
    pub(crate) fn forget(&self, source: u64) {
        let mut state = self.state.lock();
        let State { objects, by_age, bytes, .. } = &mut *state;
        let mut dropped = Vec::new();
        objects.retain(|(number, _), spans| {
            if *number != source {
                return true;
            }
            for span in spans.drain(..) {
                *bytes = bytes.saturating_sub(span.weight());
                by_age.remove(&span.age);
                dropped.push(span);
            }
            false
        });
        drop(state);
        drop(dropped);
    }

    /// Returns the bytes in flight and waiting.
    pub(crate) fn bytes(&self) -> usize {
        usize::try_from(self.lock().bytes).unwrap_or(usize::MAX)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }
}

impl State {
    fn find(&mut self, object: &ObjectId, range: &Range<u64>) -> Option<&mut Span> {
        self.objects.get_mut(object)?.iter_mut().find(|span| span.covers(range))
    }

    fn insert(&mut self, object: &ObjectId, range: Range<u64>, kept: bool) {
        self.bytes = self.bytes.saturating_add(range.end.saturating_sub(range.start));
        let span = Span { range, kept, read: 0, waiting: 0, age: 0, outcome: None };
        self.objects.entry(object.clone()).or_default().push(span);
    }

    /// Returns what has arrived of a range. Takes the span out if all of it was read and nobody waits for it.
    fn take(&mut self, object: &ObjectId, range: &Range<u64>) -> (Outcome, Option<Span>) {
        let spans = self.objects.get_mut(object).map_or(&mut [][..], Vec::as_mut_slice);
        let Some(at) = spans.iter().position(|span| span.covers(range)) else { return (Ok(None), None) };
        let Some(span) = spans.get_mut(at) else { return (Ok(None), None) };
        if !span.kept {
            let read = self.read.get_or_insert_with(|| LruCache::new(READ));
            read.put((object.clone(), range.start), Instant::now());
        }
        let (outcome, begin) =
            (span.outcome.as_ref().map_or(Ok(None), |(outcome, _)| outcome.clone()), span.range.start);
        span.read = span.read.saturating_add(range.end - range.start);
        let is_read = !span.kept && outcome.is_ok() && span.read >= span.weight() && span.waiting == 0;
        self.by_age.remove(&span.age);
        let dropped = if is_read {
            let dropped = self.remove(object, at);
            if let (0, Ok(Some(fetched))) = (begin, &outcome) {
                self.keep_header(object, fetched);
            }
            dropped
        } else {
            self.clock += 1;
            span.age = self.clock;
            self.by_age.insert(self.clock, object.clone());
            None
        };
        let part = outcome.map(|fetched| {
            let Fetched { bytes, meta } = fetched?;
            let has = bytes.len() as u64;
            let (from, to) = ((range.start - begin).min(has) as usize, (range.end - begin).min(has) as usize);
            Some(Fetched { bytes: bytes.slice(from..to), meta })
        });
        (part, dropped)
    }

    /// Keeps a copy of the first bytes of an object.
    fn keep_header(&mut self, object: &ObjectId, fetched: &Fetched) {
        let header = fetched.bytes.get(..HEADER as usize).unwrap_or(&fetched.bytes);
        let (range, meta) = (0..header.len() as u64, fetched.meta.clone());
        if header.is_empty() || self.find(object, &range).is_some() {
            return;
        }
        let outcome = Some((Ok(Some(Fetched { bytes: Bytes::copy_from_slice(header), meta })), Instant::now()));
        self.clock += 1;
        self.bytes = self.bytes.saturating_add(range.end);
        self.by_age.insert(self.clock, object.clone());
        let span = Span { range, kept: true, read: 0, waiting: 0, age: self.clock, outcome };
        self.objects.entry(object.clone()).or_default().push(span);
    }

    fn remove(&mut self, object: &ObjectId, at: usize) -> Option<Span> {
        let spans = self.objects.get_mut(object)?;
        let span = (at < spans.len()).then(|| spans.swap_remove(at))?;
        if spans.is_empty() {
            self.objects.remove(object);
        }
        self.bytes = self.bytes.saturating_sub(span.weight());
        Some(span)
    }

    /// Drops the errors of an object that do not count any more, and that it was absent.
    fn drop_expired(&mut self, object: &ObjectId) {
        while let Some(at) = self.objects.get(object).and_then(|spans| spans.iter().position(Span::is_expired)) {
            if let Some(span) = self.remove(object, at) {
                self.by_age.remove(&span.age);
            }
        }
    }

    /// Takes the spans out that were not used for the longest time, until `added` bytes fit; but none that somebody is
    /// about to read. Takes nothing out in vain: unless it is a `must`, all has to fit afterwards.
    fn evict(&mut self, added: u64, must: bool) -> Vec<Span> {
        let (mut chosen, mut bytes) = (Vec::new(), self.bytes.saturating_add(added));
        for (&age, object) in &self.by_age {
            if bytes <= MAX_BYTES {
                break;
            }
            let spans = self.objects.get(object).map_or(&[][..], Vec::as_slice);
            let span = spans.iter().find(|span| span.age == age && span.outcome.is_some());
            if let Some(span) = span.filter(|span| !span.is_awaited()) {
                bytes = bytes.saturating_sub(span.weight());
                chosen.push((age, object.clone()));
            }
        }
        if bytes > MAX_BYTES && !must {
            return Vec::new();
        }
        let mut evicted = Vec::new();
        for (age, object) in chosen {
            self.by_age.remove(&age);
            let spans = self.objects.get(&object).map_or(&[][..], Vec::as_slice);
            let at = spans.iter().position(|span| span.age == age && span.outcome.is_some());
            evicted.extend(at.and_then(|at| self.remove(&object, at)));
        }
        evicted
    }
}

#[cfg(test)]
#[path = "staging_tests.rs"]
mod tests;
