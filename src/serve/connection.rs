//! A connection: the turns of its requests, and its timeouts.
//!
//! A client that sends no request, does not end the head of one, or does not take what it has asked for, must not hold
//! anything for ever. A client that trickles bytes is as idle as a silent one.
//!
//! The bytes that a client takes of a response are counted where they leave this process: in the pieces ([`SentPiece`])
//! that hyper has. HTTP/1 has one response at a time, and one that stalls ends with its connection
//! ([`Activity::times_out`]). In HTTP/2 a client may stop one response with the window of its stream, which looks like
//! an idle connection from outside. So each stream has a task that ends it ([`Streams`]).

use std::future::Future;
use std::io;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;
use std::sync::atomic::{AtomicBool, AtomicUsize};
use std::task::{Context, Poll, Waker, ready};
use std::time::Duration;

use bytes::{Buf, Bytes};
use futures_util::future::select;
use http_body::{Body as HttpBody, Frame, SizeHint};
use hyper::rt::Executor;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::runtime::Handle;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task_local;
use tokio::time::{Instant, sleep, timeout};

use super::ServeOptions;
use super::response::Body;
use crate::memory::trim_heap;
use crate::sync::{Mutex, thread};

/// The first bytes of HTTP/2; RFC 9113, section 3.4.
const HTTP2: &[u8] = b"PRI * HTTP/2";
/// Bytes that a client has to take within the idle timeout, or all that there are.
const MIN_TAKEN: usize = 4 << 10;
/// How long a client may take nothing while other requests wait for a turn, or of a response without a turn.
const CROWDED: Duration = Duration::from_secs(3);
/// The longest time between two looks at a connection or request.
const TICK: Duration = Duration::from_secs(1);
/// How long a request waits for a turn.
const WAIT: Duration = Duration::from_secs(10);
/// So many requests at a time leave memory with the allocator, whose blocks lie between others.
const MANY: usize = 128;
/// The time after their end until that memory is given back to the system.
const SETTLED: Duration = Duration::from_secs(2);

/// Turns limit how many requests are in progress. When others wait, stalled requests are ended.
pub(super) struct Turns {
    free: Arc<Semaphore>,
    /// How many turns there are. As many requests may wait for one: each has its head in memory.
    count: usize,
    /// The most requests that had a turn since memory was last given back.
    peak: AtomicUsize,
    queue: Mutex<Queue>,
}

#[derive(Default)]
struct Queue {
    waiting: usize,
    /// How many of them get the turn of a request that was ended for them.
    promised: usize,
}

/// A request that waits.
struct Waiting<'t>(&'t Turns);

impl Turns {
    pub(super) fn new(count: usize) -> Arc<Self> {
        let count = count.clamp(1, Semaphore::MAX_PERMITS);
        let free = Arc::new(Semaphore::new(count));
        Arc::new(Self { free, count, peak: AtomicUsize::new(0), queue: Mutex::default() })
    }

    /// Waits for a turn; `None` if none comes free for too long, or too many requests wait already. Only the request
    /// that has the `place` of its connection waits in the common queue, so that connections take turns, and one with
    /// many requests does not keep the others out.
    async fn next(&self, place: &Semaphore) -> Option<OwnedSemaphorePermit> {
        if let Ok(turn) = Arc::clone(&self.free).try_acquire_owned() {
            self.peak.fetch_max(self.taken(), SeqCst);
            return Some(turn);
        }
        let first = place.try_acquire();
        let _waiting = self.wait(first.is_ok())?;
        let turn = async {
            let _place = match first {
                Ok(first) => first,
                Err(_) => place.acquire().await.ok()?,
            };
            Arc::clone(&self.free).acquire_owned().await.ok()
        };
        timeout(WAIT, turn).await.ok()?
    }

    /// Counts a request as waiting; `None` if too many wait. The first one of a connection may always wait.
    fn wait(&self, is_first: bool) -> Option<Waiting<'_>> {
        let mut queue = self.queue.lock();
        if queue.waiting >= self.count && !is_first {
            return None;
        }
        queue.waiting += 1;
        Some(Waiting(self))
    }

    fn taken(&self) -> usize {
        self.count.saturating_sub(self.free.available_permits())
    }

    /// Gives memory back to the system once many requests have ended.
    fn ended(&self) {
        let (peak, taken) = (self.peak.load(SeqCst), self.taken());
        let are_over = peak >= MANY && taken <= peak / 8;
        if !are_over || self.peak.compare_exchange(peak, 0, SeqCst, SeqCst).is_err() {
            return;
        }
        if let Ok(runtime) = Handle::try_current() {
            runtime.spawn(async {
                // their connections are closed by then, too
                sleep(SETTLED).await;
                let _ = thread::Builder::new().name("volfs-trim".into()).spawn(trim_heap);
            });
        }
    }

    /// Returns whether a stalled request has to end for a waiting one. If so, the caller ends it.
    fn claim(&self) -> bool {
        let mut queue = self.queue.lock();
        let is_claimed = queue.promised < queue.waiting;
        queue.promised += usize::from(is_claimed);
        is_claimed
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        let mut queue = self.0.queue.lock();
        queue.waiting = queue.waiting.saturating_sub(1);
        queue.promised = queue.promised.saturating_sub(1);
    }
}

task_local! {
    /// The slot of the HTTP/2 stream whose task this is.
    static STREAM: Arc<RequestSlot>;
}

/// How a connection is used.
pub(super) struct Activity {
    /// How long the head of a request may take.
    header_timeout: Duration,
    /// How long the connection may be without a request, and its client without taking some of a response.
    idle_timeout: Duration,
    turns: Arc<Turns>,
    /// A place in the queue for turns.
    place: Semaphore,
    requests: AtomicUsize,
    /// Requests that have a turn.
    with_turn: AtomicUsize,
    has_begun: AtomicBool,
    idle_since: Mutex<Instant>,
    /// When the head of a request began to come.
    head_since: Mutex<Option<Instant>>,
    /// Since when the socket takes nothing, or less than [`MIN_TAKEN`], and how many bytes that is.
    stalled: Mutex<Option<(Instant, usize)>>,
}

impl Activity {
    pub(super) fn new(options: &ServeOptions, turns: &Arc<Turns>) -> Arc<Self> {
        Arc::new(Self {
            header_timeout: options.header_timeout,
            idle_timeout: options.idle_timeout,
            turns: Arc::clone(turns),
            place: Semaphore::new(1),
            requests: AtomicUsize::new(0),
            with_turn: AtomicUsize::new(0),
            has_begun: AtomicBool::new(false),
            idle_since: Mutex::new(Instant::now()),
            head_since: Mutex::default(),
            stalled: Mutex::default(),
        })
    }

    /// Notes that a request has begun. It ends when all clones of the slot are dropped.
    pub(super) fn begin(self: &Arc<Self>) -> Arc<RequestSlot> {
        STREAM.try_with(Arc::clone).unwrap_or_else(|_| RequestSlot::new(self))
    }

    /// Ends when the connection times out.
    pub(super) async fn times_out(&self) {
        while !self.has_timed_out() {
            self.tick().await;
        }
    }

    fn has_timed_out(&self) -> bool {
        let stalled = *self.stalled.lock();
        if stalled.is_some_and(|(since, _)| self.is_too_long(since, self.with_turn.load(SeqCst) > 0)) {
            return true;
        }
        let head = *self.head_since.lock();
        self.requests.load(SeqCst) == 0
            && (self.idle_since.lock().elapsed() >= self.idle_timeout
                || head.is_some_and(|since| since.elapsed() >= self.header_timeout))
    }

    async fn tick(&self) {
        sleep(TICK.min(self.idle_timeout).min(self.header_timeout)).await;
    }

    /// Returns whether a client has taken nothing for too long. It `holds` a turn or not.
    fn is_too_long(&self, since: Instant, holds: bool) -> bool {
        let stalled = since.elapsed();
        stalled >= self.idle_timeout || (stalled >= CROWDED && (!holds || self.turns.claim()))
    }
}

/// A request in progress, until the last byte of its response is sent or dropped.
pub(super) struct RequestSlot {
    activity: Arc<Activity>,
    turn: Mutex<Option<OwnedSemaphorePermit>>,
    untaken: Mutex<Untaken>,
    has_timed_out: AtomicBool,
}

/// Bytes of a response that hyper has, and the client has not taken.
struct Untaken {
    bytes: usize,
    /// Bytes that were taken since `since`.
    taken: usize,
    since: Instant,
    /// Waits until all is taken.
    waiting: Option<Waker>,
}

impl RequestSlot {
    fn new(activity: &Arc<Activity>) -> Arc<Self> {
        activity.requests.fetch_add(1, SeqCst);
        activity.has_begun.store(true, SeqCst);
        *activity.head_since.lock() = None;
        Arc::new(Self {
            activity: Arc::clone(activity),
            turn: Mutex::default(),
            untaken: Mutex::new(Untaken { bytes: 0, taken: 0, since: Instant::now(), waiting: None }),
            has_timed_out: AtomicBool::new(false),
        })
    }

    /// Waits until the request has a turn, which it keeps until it ends. Returns whether it has one.
    pub(super) async fn take_turn(&self) -> bool {
        let Some(turn) = self.activity.turns.next(&self.activity.place).await else { return false };
        if self.turn.lock().replace(turn).is_none() {
            self.activity.with_turn.fetch_add(1, SeqCst);
        }
        true
    }

    /// Returns a piece of the response as hyper gets it.
    fn piece(self: &Arc<Self>, bytes: Bytes) -> SentPiece {
        let mut untaken = self.untaken.lock();
        if untaken.bytes == 0 {
            (untaken.since, untaken.taken) = (Instant::now(), 0);
        }
        untaken.bytes += bytes.len();
        SentPiece { bytes, slot: Arc::clone(self) }
    }

    fn took(&self, count: usize) {
        let mut untaken = self.untaken.lock();
        untaken.bytes = untaken.bytes.saturating_sub(count);
        untaken.taken += count;
        if untaken.taken >= MIN_TAKEN {
            (untaken.since, untaken.taken) = (Instant::now(), 0);
        }
        if untaken.bytes == 0
            && let Some(waker) = untaken.waiting.take()
        {
            drop(untaken);
            waker.wake();
        }
    }

    /// Waits until the client has taken all that hyper has.
    fn poll_taken(&self, context: &Context<'_>) -> Poll<()> {
        let mut untaken = self.untaken.lock();
        if untaken.bytes == 0 {
            return Poll::Ready(());
        }
        untaken.waiting = Some(context.waker().clone());
        Poll::Pending
    }

    /// Ends when the client takes nothing of the response for too long.
    async fn stalls(self: Arc<Self>) {
        let activity = &self.activity;
        let has_stalled = || {
            let untaken = self.untaken.lock();
            let since = (untaken.bytes > 0).then_some(untaken.since);
            drop(untaken);
            // a stalled socket ends the whole connection
            activity.stalled.lock().is_none()
                && since.is_some_and(|since| activity.is_too_long(since, self.turn.lock().is_some()))
        };
        while !has_stalled() {
            activity.tick().await;
        }
        log::debug!("an HTTP/2 stream ends: its client takes nothing");
        self.has_timed_out.store(true, SeqCst);
    }
}

impl Drop for RequestSlot {
    fn drop(&mut self) {
        if self.turn.lock().take().is_some() {
            self.activity.with_turn.fetch_sub(1, SeqCst);
            self.activity.turns.ended();
        }
        // a client that takes nothing does not use its connection
        if !self.has_timed_out.load(SeqCst) {
            *self.activity.idle_since.lock() = Instant::now();
        }
        self.activity.requests.fetch_sub(1, SeqCst);
    }
}

/// Runs each stream of an HTTP/2 connection as a task that ends when its client takes nothing: with it ends the stream,
/// and all that its response holds is free.
#[derive(Clone)]
pub(super) struct Streams(pub(super) Arc<Activity>);

impl<F: Future<Output = ()> + Send + 'static> Executor<F> for Streams {
    fn execute(&self, stream: F) {
        let slot = RequestSlot::new(&self.0);
        let stalls = Arc::clone(&slot).stalls();
        tokio::spawn(async move {
            select(pin!(STREAM.scope(slot, stream)), pin!(stalls)).await;
        });
    }
}

/// A body with the slot of its request. Hyper gets one piece after the other, each when the client has taken the last
/// one, and so the end as well: what hyper has after the end of a body cannot be ended any more.
pub(super) struct SlottedBody {
    pub(super) body: Body,
    pub(super) slot: Arc<RequestSlot>,
}

impl HttpBody for SlottedBody {
    type Data = SentPiece;
    type Error = io::Error;

    fn poll_frame(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<io::Result<Frame<SentPiece>>>> {
        ready!(self.slot.poll_taken(context));
        let next = ready!(self.body.poll_next(context));
        Poll::Ready(next.map(|piece| Ok(Frame::data(self.slot.piece(piece?)))))
    }

    fn is_end_stream(&self) -> bool {
        matches!(&self.body, Body::Whole(bytes) if bytes.is_empty()) && self.slot.untaken.lock().bytes == 0
    }

    fn size_hint(&self) -> SizeHint {
        self.body.len().map_or_else(SizeHint::default, SizeHint::with_exact)
    }
}

/// A piece of a response, until it is sent or dropped.
pub(super) struct SentPiece {
    bytes: Bytes,
    slot: Arc<RequestSlot>,
}

impl Buf for SentPiece {
    fn remaining(&self) -> usize {
        self.bytes.len()
    }

    fn chunk(&self) -> &[u8] {
        &self.bytes
    }

    fn advance(&mut self, count: usize) {
        self.bytes.advance(count);
        self.slot.took(count);
    }
}

impl Drop for SentPiece {
    fn drop(&mut self) {
        self.slot.took(self.bytes.len());
    }
}

/// A TCP or Unix connection.
pub(super) trait Connection: AsyncRead + AsyncWrite + Unpin + Send {}

impl<S: AsyncRead + AsyncWrite + Unpin + Send> Connection for S {}

/// The stream of a connection, which notes what is read and written.
pub(super) struct NotedStream {
    stream: Box<dyn Connection>,
    activity: Arc<Activity>,
    is_http2: Option<bool>,
}

impl NotedStream {
    pub(super) fn new(stream: Box<dyn Connection>, activity: Arc<Activity>) -> Self {
        Self { stream, activity, is_http2: None }
    }

    fn note_read(&mut self, bytes: &[u8]) {
        let activity = &self.activity;
        if bytes.is_empty() || activity.requests.load(SeqCst) > 0 {
            return;
        }
        let is_http2 =
            *self.is_http2.get_or_insert_with(|| bytes.starts_with(HTTP2.get(..bytes.len()).unwrap_or(HTTP2)));
        // frames of HTTP/2 between requests are no heads
        if !is_http2 || !activity.has_begun.load(SeqCst) {
            activity.head_since.lock().get_or_insert_with(Instant::now);
        }
    }

    fn note_write(&self, written: &Poll<io::Result<usize>>) {
        let mut stalled = self.activity.stalled.lock();
        match (written, *stalled) {
            (Poll::Ready(Ok(count)), Some((since, taken))) => {
                *stalled = Some((since, taken + count)).filter(|(_, taken)| *taken < MIN_TAKEN);
            }
            (Poll::Pending, None) => *stalled = Some((Instant::now(), 0)),
            _ => {}
        }
    }
}

impl AsyncRead for NotedStream {
    fn poll_read(mut self: Pin<&mut Self>, context: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let before = into.filled().len();
        let read = Pin::new(&mut self.stream).poll_read(context, into);
        self.note_read(into.filled().get(before..).unwrap_or_default());
        read
    }
}

impl AsyncWrite for NotedStream {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.note_write(&written);
        written
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(context, parts);
        self.note_write(&written);
        written
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        // all that there was is written
        *self.activity.stalled.lock() = None;
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;
    use tokio::runtime::Builder;

    use super::*;

    fn run(test: impl Future<Output = ()>) {
        Builder::new_current_thread().enable_time().build().unwrap().block_on(test);
    }

    #[test]
    fn one_stalled_request_ends_for_each_that_waits() {
        run(async {
            let (turns, line) = (Turns::new(2), Semaphore::new(1));
            let held = [turns.next(&line).await, turns.next(&line).await];
            assert!(held.iter().all(Option::is_some) && !turns.claim(), "nobody waits");
            let (mut first, mut second) = (Box::pin(turns.next(&line)), Box::pin(turns.next(&line)));
            assert!((&mut first).now_or_never().is_none() && (&mut second).now_or_never().is_none());
            assert!(turns.claim() && turns.claim() && !turns.claim());
            drop(held);
            let held = [first.await, second.await];
            assert!(held.iter().all(Option::is_some) && !turns.claim());
        });
    }

    #[test]
    fn a_connection_with_many_requests_does_not_keep_the_others_out() {
        run(async {
            let (turns, greedy, modest) = (Turns::new(6), Semaphore::new(1), Semaphore::new(1));
            let mut held = Vec::new();
            for _ in 0..6 {
                held.extend(turns.next(&greedy).await);
            }
            let mut many: Vec<_> = (0..6).map(|_| Box::pin(turns.next(&greedy))).collect();
            assert!(many.iter_mut().all(|turn| turn.now_or_never().is_none()));
            assert!(turns.next(&greedy).now_or_never().is_some_and(|turn| turn.is_none()), "too many wait");
            let mut one = Box::pin(turns.next(&modest));
            assert!((&mut one).now_or_never().is_none(), "it may wait nevertheless");
            held.truncate(1);
            assert!((&mut one).now_or_never().is_some_and(|turn| turn.is_some()), "fewer are before it");
        });
    }
}
