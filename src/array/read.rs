//! The one entry of all reads: samples of an array into memory of the caller.
//!
//! What is in memory is copied on the calling thread; the rest is divided among workers of the pool. A calling thread
//! that may wait is one of the workers, so that little work needs no other thread.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Instant;

use super::brick::{Access, Parts};
use super::cache::BrickCache;
use super::copier::{Copied, Copier, ReadError};
use super::output::{MEANWHILE, Meanwhile, Memory, Rows, Work, lend};
use super::prefetch::{Prefetcher, workers};
use super::readers::Recorded;
use super::region::{Piece, Pieces, Selection, are_disjoint};
use super::resources::{DecodeGate, Resources};
use super::scan::brick_bytes;
use crate::counters::Counters;
use crate::format::{Array, FormatError};
use crate::memory::{Buffer, BufferPool, try_push};
use crate::pool::{Bulkhead, Pool, WaitingRequest, is_worker};
use crate::source::Blocking;
use crate::sync::Mutex;
use crate::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use crate::volume::{Brick, Dims};

/// Bytes that all decoders together may need at a time.
const DECODE_BUDGET: usize = 256 << 20;
/// Of a read of more bytes nothing is copied by the calling thread alone: several workers are faster.
const MAX_AT_ONCE: u64 = 1 << 20;
/// Nor of a read for which the processor fetches more bytes than this: samples that lie apart take a cache line each.
const MAX_FETCHED_AT_ONCE: u64 = 4 << 20;
const CACHE_LINE: u64 = 64;
/// Reads of one selection with more bytes do not fill the cache with bricks that they have read completely. Patches do:
/// they are often read again.
const LARGE: u64 = 8 << 20;
/// The bytes of bricks that a read holds on to at a time, in case the cache evicts them meanwhile, and the pieces.
const MAX_HELD: usize = 8 << 20;
const MAX_PIECES: usize = 256;
/// Another worker is woken for each of this many bytes to decode: fewer are decoded before it is awake.
const BATCH: usize = 64 << 10;
/// A worker takes bricks of this many bytes at a time, and copies them together.
const TAKEN_AT_ONCE: usize = 128 << 10;
/// Pieces that are requested at a time from a source that takes long to answer.
const REQUESTED_AT_ONCE: usize = 16;
/// Pieces whose tables are requested at a time.
const TABLES_AT_ONCE: usize = 64;

/// Reads arrays. All reads of a process share one reader and its cache.
pub(crate) struct Reader {
    resources: Arc<Resources>,
    prefetcher: Prefetcher,
}

/// Samples of an array to be read.
pub(crate) struct ReadRequest {
    pub(crate) array: Arc<dyn Array>,
    /// The samples, and their places in the memory of the caller. All are planned together: each brick is loaded once.
    pub(crate) selections: Vec<Selection>,
    /// The concurrency limit of the source that the array is read from.
    pub(crate) bulkhead: Bulkhead,
    /// Counters that count the work for this read, besides those of all reads.
    pub(crate) counters: Option<Arc<Counters>>,
    /// The reader of an open file, if a file shows the array.
    pub(crate) from_file: Option<Recorded>,
    /// Whether these are all the samples that the client wants just now: not one request of several, or of a file.
    pub(crate) is_entire: bool,
}

/// What reads are in progress just now: all of it is 0 when nothing is read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Gauges {
    /// Jobs of the pool that run or wait: of reads, prefetches, and requests that had to wait for the source.
    pub(crate) jobs: usize,
    /// Bricks that are being loaded and that others may wait for.
    pub(crate) bricks_in_flight: usize,
    /// Decoders at work.
    pub(crate) decoders: usize,
    /// Bytes of memory that they need.
    pub(crate) decoder_bytes: usize,
}

/// The thread that begins a read.
struct Caller<'a> {
    /// With [`Blocking::Yes`] it works on the read.
    blocking: Blocking,
    /// Ends the read before its end.
    is_ended: Arc<AtomicBool>,
    /// Called between bricks.
    meanwhile: Meanwhile<'a>,
}

/// Gets the memory of a read when nobody writes to it any more.
type Done = Box<dyn FnOnce(Memory, Result<(), ReadError>) + Send>;

impl Reader {
    /// Creates a reader that keeps `cache` bytes of decoded bricks, and decodes with `threads` threads of `pool`.
    pub(crate) fn new(
        cache: usize,
        threads: usize,
        buffers: Arc<BufferPool>,
        pool: Arc<Pool>,
        counters: Arc<Counters>,
    ) -> Arc<Self> {
        let (cache, gate) = (BrickCache::new(cache), DecodeGate::new(threads, DECODE_BUDGET));
        let resources = Resources { cache, gate, pool, buffers, counters, prefaulting: AtomicBool::new(false) };
        Arc::new(Self { resources: Arc::new(resources), prefetcher: Prefetcher::default() })
    }

    /// Reads samples to `out`. `done` gets it back when they are there, little-endian: from within this call if nothing
    /// has to be waited for, otherwise from a worker of the pool. Once `is_ended`, since the client has gone away, the
    /// rest of the read is left out, and the buffer has arbitrary content.
    pub(crate) fn read(
        self: &Arc<Self>,
        request: ReadRequest,
        out: Buffer,
        is_ended: Arc<AtomicBool>,
        done: impl FnOnce(Result<Buffer, ReadError>) + Send + 'static,
    ) {
        let blocking = if is_worker() { Blocking::Yes } else { Blocking::No };
        let done = |memory: Memory, read: Result<(), ReadError>| {
            // an owned buffer comes back as one
            if let Some(buffer) = memory.into_buffer() {
                done(read.map(|()| buffer));
            }
        };
        let caller = Caller { blocking, is_ended, meanwhile: None };
        self.start(request, Memory::Owned(out), caller, done);
    }

    /// Reads samples to `out`, little-endian, and waits for them. Not for threads that talk to the kernel.
    pub(crate) fn read_into(self: &Arc<Self>, request: ReadRequest, out: &mut [u8]) -> Result<(), ReadError> {
        self.read_lent(request, out, Blocking::Yes, &Arc::default(), None)
    }

    /// Like [`Reader::read_into`], for a caller that may be told to stop meanwhile: the calling thread asks `goes_on` some
    /// times a second, and leaves to workers what is read from a source that takes long to answer. Once that is `false`,
    /// the rest of the read is left out, and `out` has arbitrary content.
    pub(crate) fn read_into_while(
        self: &Arc<Self>,
        request: ReadRequest,
        out: &mut [u8],
        goes_on: &mut dyn FnMut() -> bool,
    ) -> Result<(), ReadError> {
        let (is_ended, mut asked) = (Arc::<AtomicBool>::default(), None);
        let mut ask = || {
            // after `false` it is not asked again; a read from the cache does not look at the clock
            if asked.get_or_insert_with(Instant::now).elapsed() >= MEANWHILE && !is_ended.load(Ordering::Relaxed) {
                is_ended.store(!goes_on(), Ordering::Relaxed);
                asked = Some(Instant::now());
            }
        };
        let blocking = if request.array.source().fetches_ahead() { Blocking::No } else { Blocking::Yes };
        self.read_lent(request, out, blocking, &is_ended, Some(&mut ask))
    }

    /// Reads samples to `out` if all of them are in memory, and returns whether they are. Never waits.
    pub(crate) fn read_cached(&self, request: ReadRequest, out: &mut [u8]) -> Result<bool, ReadError> {
        let ReadRequest { array, selections, bulkhead, counters, .. } = request;
        let access = Access { counters, ..Access::new(&self.resources, array, bulkhead) };
        let copied = copy_at_once(&access, &selections, &mut Rows::new(out))?;
        Ok(copied.pending.is_empty() && !copied.is_unchecked)
    }

    fn read_lent(
        self: &Arc<Self>,
        request: ReadRequest,
        out: &mut [u8],
        blocking: Blocking,
        is_ended: &Arc<AtomicBool>,
        meanwhile: Meanwhile<'_>,
    ) -> Result<(), ReadError> {
        let outcome = Arc::new(Mutex::new(None));
        let start = |memory, meanwhile: Meanwhile<'_>| {
            let outcome = Arc::clone(&outcome);
            let caller = Caller { blocking, is_ended: Arc::clone(is_ended), meanwhile };
            self.start(request, memory, caller, move |memory, read| {
                *outcome.lock() = Some(read);
                // whoever waits for it goes on
                drop(memory);
            });
        };
        lend(out, start, meanwhile);
        let lost = || Err(ReadError::new(None, FormatError::Internal("a read ended without an outcome".into())));
        outcome.lock().take().unwrap_or_else(lost)
    }

    fn start(
        self: &Arc<Self>,
        request: ReadRequest,
        mut memory: Memory,
        caller: Caller<'_>,
        done: impl FnOnce(Memory, Result<(), ReadError>) + Send + 'static,
    ) {
        let ReadRequest { array, selections, bulkhead, counters, from_file, is_entire } = request;
        let (shape, size) = (array.info().shape(), array.info().dtype.size());
        let length = memory.len();
        if !selections.iter().all(|selection| selection.fits(&shape, size, length)) {
            let cause = FormatError::Internal(format!("samples beyond {shape:?} or {length} bytes were to be read"));
            return done(memory, Err(ReadError::new(None, cause)));
        }
        let scan = from_file.as_ref().and_then(|file| file.scan.clone());
        let is_other = scan.is_none() && from_file.as_ref().is_none_or(|file| !file.has_scans);
        let bytes = selections.iter().map(Selection::samples).fold(0, u64::saturating_add).saturating_mul(size as u64);
        let drops_whole_bricks = bytes >= LARGE && scan.is_none() && selections.len() == 1;
        // a reader that begins with the first sample is likely to read on
        let is_slice = is_entire && selections.len() == 1 && selections[0].start.iter().any(|index| *index > 0);
        let is_in_only_plane = from_file.as_ref().is_some_and(|file| file.may_want_one_plane);
        // what is stored elsewhere is not fetched for each part
        let is_local = !array.source().fetches_ahead();
        let decodes_fast = is_local && array.decodes_fast();
        let parts = if is_slice || is_in_only_plane && decodes_fast {
            Parts::FasterOrSmaller
        } else if is_in_only_plane && is_local {
            Parts::Faster
        } else {
            Parts::None
        };
        // requests for a file keep them at once: the kernel's next one is likely to need the same bricks
        let keeps_when_decoded_again = is_entire && decodes_fast;
        let resources = Arc::clone(&self.resources);
        let access =
            Access { resources, array, bulkhead, scan, counters, drops_whole_bricks, keeps_when_decoded_again, parts };
        let copied = copy_at_once(&access, &selections, &mut memory.rows());
        let Copied { pending, has_decoded, is_unchecked } = match copied {
            Ok(copied) => copied,
            Err(error) => return done(memory, Err(error)),
        };
        let has_coded = has_decoded || !pending.is_empty();
        self.prefetcher.record_request(&self.resources, is_other && has_coded);
        let prefetches = (access.scan.is_some() && has_coded).then(|| access.clone());
        if pending.is_empty() {
            finish(access, selections, is_unchecked, memory, done);
        } else {
            Read::start(access, selections, pending, memory, caller, is_unchecked, Box::new(done));
        }
        // after the request itself, whose bricks come first
        if let Some(access) = prefetches {
            self.prefetcher.prefetch(&access);
            if let (true, Some(scan)) = (has_decoded, &access.scan) {
                scan.set_cache_is_tight(Prefetcher::is_cache_tight(&access));
            }
        }
    }

    /// Has memory made ready for the bricks of a slice, across the axis `slowest` or any, for a client that has opened a
    /// file of the array and is likely to read samples next. Does nothing if the bricks need not be decoded, or only parts
    /// of them, if only planes of them are kept since they decode fast, if their source takes longer than the pages, or if
    /// clients read already.
    pub(crate) fn prefault_slice(&self, array: &dyn Array, slowest: Option<usize>, blocking: Blocking) {
        let (count, resources) = (array.info().grid.count(), &self.resources);
        if array.source().fetches_ahead() || array.decodes_fast() || !resources.buffers.is_unused_for_bricks() {
            return;
        }
        // those at the edges of a survey are often constant
        let middle = Dims::from_fn(count.len(), |a| count[a] / 2);
        // whoever reads it gets the error
        let Ok(Brick::Coded(coded)) = array.brick(&middle, blocking) else { return };
        let has_part = |axis| {
            let mut plane = coded.layout.held;
            plane.shape[axis] = 1;
            array.part_around(&coded, &plane).is_some()
        };
        let axes = coded.layout.held.axes();
        if (0..axes).any(|axis| slowest.is_none_or(|slowest| slowest == axis) && !has_part(axis)) {
            let bricks = count[1..].iter().product::<u64>();
            resources.buffers.will_need_bricks(coded.decoded, usize::try_from(bricks).unwrap_or(usize::MAX));
            resources.prefault();
        }
    }

    /// Returns the pool that the buffers of reads may be taken from.
    pub(crate) fn buffers(&self) -> &Arc<BufferPool> {
        &self.resources.buffers
    }

    /// What all reads share.
    pub(super) fn resources(&self) -> &Arc<Resources> {
        &self.resources
    }

    /// Returns the bytes of decoded samples in memory: bricks in the cache, and planes of scans.
    pub(crate) fn bytes_held(&self) -> usize {
        self.resources.cache.bytes() + self.prefetcher.plane_bytes()
    }

    /// Returns what is in progress just now.
    pub(crate) fn gauges(&self) -> Gauges {
        let (decoders, decoder_bytes) = self.resources.gate.admitted();
        let (jobs, bricks_in_flight) = (self.resources.pool.jobs(), self.resources.cache.in_flight());
        Gauges { jobs, bricks_in_flight, decoders, decoder_bytes }
    }
}

/// Copies the pieces that are in memory. Never waits.
fn copy_at_once<'a>(access: &'a Access, selections: &'a [Selection], out: &mut Rows<'_>) -> Result<Copied, ReadError> {
    let mut pieces = Pieces::new(&access.info().grid, selections);
    let bytes = selections.iter().map(Selection::samples).sum::<u64>() * access.sample_size() as u64;
    let is_large = || bytes > MAX_AT_ONCE || fetched_bytes(access, selections, bytes) > MAX_FETCHED_AT_ONCE;
    if access.scan.is_none() && is_large() {
        let mut pending = Vec::new();
        pieces.try_for_each(|piece| try_push(&mut pending, piece)).map_err(|error| ReadError::new(None, error))?;
        return Ok(Copied { pending, ..Copied::default() });
    }
    let at_once = (MAX_HELD / brick_bytes(access.info())).clamp(1, MAX_PIECES);
    let (mut copier, mut some) = (Copier::new(access, selections, Blocking::No), Vec::new());
    loop {
        some.clear();
        pieces.fill(&mut some, at_once);
        if some.is_empty() {
            return copier.finish(out);
        }
        copier.copy(&some, out)?;
    }
}

/// Returns how many bytes the processor fetches for samples of so many bytes, or fewer, as far as the first piece tells.
fn fetched_bytes(access: &Access, selections: &[Selection], bytes: u64) -> u64 {
    let (info, size) = (access.info(), access.sample_size() as u64);
    if bytes / size * CACHE_LINE <= MAX_FETCHED_AT_ONCE {
        return bytes;
    }
    let Some(piece) = Pieces::new(&info.grid, selections).next() else { return bytes };
    let Ok(brick) = access.array.brick(&piece.brick, Blocking::No) else { return bytes };
    let strides = brick.layout().map_or_else(|| info.brick_shape.strides(size), |layout| layout.strides);
    let step = &selections[piece.selection as usize].step;
    let several = (0..step.len()).filter(|axis| piece.region.shape[*axis] > step[*axis]);
    let apart = several.map(|axis| strides[axis].saturating_mul(step[axis])).min().unwrap_or(size);
    bytes / size * apart.min(CACHE_LINE).max(size)
}

/// Ends a read that has all its samples.
fn finish(
    access: Access,
    selections: Vec<Selection>,
    is_unchecked: bool,
    memory: Memory,
    done: impl FnOnce(Memory, Result<(), ReadError>) + Send + 'static,
) {
    if !is_unchecked {
        return done(memory, Ok(()));
    }
    let first = Pieces::new(&access.info().grid, &selections).next();
    match check_unchanged(&access, first.as_ref(), Blocking::No) {
        // the file was evicted a moment ago, and is opened again by a worker
        Err(error) if error.cause.would_block() => {
            let (pool, bulkhead) = (Arc::clone(&access.resources.pool), access.bulkhead);
            pool.submit(bulkhead, move || {
                done(memory, check_unchanged(&access, first.as_ref(), Blocking::Yes));
            });
        }
        checked => done(memory, checked),
    }
}

/// Checks that the source, which samples came straight from, is unchanged. An error names the `first` piece.
fn check_unchanged(access: &Access, first: Option<&Piece>, blocking: Blocking) -> Result<(), ReadError> {
    access.array.source().check_unchanged_or(blocking).map_err(|cause| ReadError::new(first, cause))
}

/// A read whose pieces are loaded by several workers.
struct Read {
    access: Access,
    selections: Vec<Selection>,
    work: Work,
    /// The next piece to request, from a source that takes long to answer.
    requested: AtomicUsize,
    /// Whether the caller does not want the rest.
    is_ended: Arc<AtomicBool>,
    outcome: Mutex<Outcome>,
}

struct Outcome {
    is_unchecked: bool,
    failure: Option<ReadError>,
    done: Option<(Done, WaitingRequest)>,
}

impl Read {
    /// Divides the pieces of a read among workers. `memory` may hold the samples of other pieces already.
    fn start(
        access: Access,
        selections: Vec<Selection>,
        mut pieces: Vec<Piece>,
        memory: Memory,
        caller: Caller<'_>,
        is_unchecked: bool,
        done: Done,
    ) {
        let Caller { blocking, is_ended, meanwhile } = caller;
        if selections.len() > 1 {
            // all pieces of a brick together
            pieces.sort_by_cached_key(|piece| access.key(&piece.brick).1);
        }
        let (bulkhead, pool) = (access.bulkhead, Arc::clone(&access.resources.pool));
        let workers = workers(pieces.len() as u64, access.info(), BATCH).min(access.resources.gate.decoders);
        let requested = AtomicUsize::new(if access.fetches_ahead() { 0 } else { pieces.len() });
        let done = Some((done, pool.request(bulkhead)));
        let outcome = Mutex::new(Outcome { is_unchecked, failure: None, done });
        let is_parallel = are_disjoint(&selections, access.sample_size());
        let work = Work::new(pieces, memory, is_parallel);
        let read = Arc::new(Self { access, selections, work, requested, is_ended, outcome });
        match blocking {
            Blocking::Yes => read.begin(workers, meanwhile),
            Blocking::No if read.access.fetches_ahead() => pool.submit(bulkhead, move || read.begin(workers, None)),
            Blocking::No => read.submit(workers),
        }
    }

    fn begin(self: &Arc<Self>, workers: usize, meanwhile: Meanwhile<'_>) {
        // a worker that reads the first piece would request it by itself
        self.request_pieces();
        self.submit(workers.saturating_sub(1));
        self.work(meanwhile);
    }

    fn submit(self: &Arc<Self>, workers: usize) {
        for _ in 0..workers {
            let read = Arc::clone(self);
            self.access.resources.pool.submit(self.access.bulkhead, move || read.work(None));
        }
    }

    /// Takes pieces until none are left, and calls `meanwhile` after each. The worker that finishes the last one replies.
    fn work(&self, mut meanwhile: Meanwhile<'_>) {
        // all pieces of a brick, and small bricks together
        let at_once = (TAKEN_AT_ONCE / brick_bytes(self.access.info())).max(1);
        let count = |pieces: &[Piece]| {
            let bricks = pieces.chunk_by(|a, b| a.brick == b.brick);
            bricks.take(at_once).map(<[Piece]>::len).sum()
        };
        while let Some(mut claim) = self.work.claim(count) {
            let (pieces, mut rows) = claim.parts();
            let copied = catch_unwind(AssertUnwindSafe(|| self.copy(pieces, &mut rows)));
            let panicked = |_| Err(ReadError::new(pieces.first(), FormatError::Internal("a worker panicked".into())));
            if let Err(error) = copied.unwrap_or_else(panicked) {
                self.outcome.lock().failure.get_or_insert(error);
            }
            if let Some(memory) = claim.finish() {
                self.reply(memory);
            }
            // there may be room for more now
            self.request_pieces();
            if let Some(meanwhile) = &mut meanwhile {
                meanwhile();
            }
        }
    }

    /// Copies pieces, unless the read has failed already or was ended.
    fn copy(&self, pieces: &[Piece], out: &mut Rows<'_>) -> Result<(), ReadError> {
        if self.is_ended.load(Ordering::Relaxed) || self.outcome.lock().failure.is_some() {
            return Ok(());
        }
        let mut copier = Copier::new(&self.access, &self.selections, Blocking::Yes);
        copier.copy(pieces, out)?;
        let copied = copier.finish(out)?;
        self.outcome.lock().is_unchecked |= copied.is_unchecked;
        Ok(())
    }

    /// Requests the pieces that were not requested yet, as far as the source has room.
    fn request_pieces(&self) {
        let all = self.work.pieces();
        loop {
            let from = self.requested.load(Ordering::Relaxed);
            let to = all.len().min(from.saturating_add(REQUESTED_AT_ONCE));
            let pieces = all.get(from..to).unwrap_or_default();
            let wanted = pieces.iter().map(|piece| (piece.brick, piece.region));
            let next = all.get(from..all.len().min(from.saturating_add(TABLES_AT_ONCE))).unwrap_or_default();
            self.access.fetch_tables(next.iter().map(|piece| piece.brick));
            if pieces.is_empty() || !self.access.fetch_ahead(wanted) {
                return;
            }
            self.requested.fetch_max(to, Ordering::Relaxed);
        }
    }

    fn reply(&self, memory: Memory) {
        let mut outcome = self.outcome.lock();
        let Some((done, waiting)) = outcome.done.take() else { return };
        let (failure, is_unchecked) = (outcome.failure.take(), outcome.is_unchecked);
        drop(outcome);
        let first = self.work.pieces().first();
        let checked = match failure {
            Some(failure) => Err(failure),
            None if is_unchecked => check_unchanged(&self.access, first, Blocking::Yes),
            None => Ok(()),
        };
        drop(waiting);
        done(memory, checked);
        // a source that takes long to answer takes longer than the pages of a brick
        if !self.access.fetches_ahead() && !self.access.drops_whole_bricks {
            self.access.resources.prefault();
        }
    }
}
