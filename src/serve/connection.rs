//! A connection: whether it is in use, and when it or one of its requests is given up.
//!
//! A client that sends no request, does not end the head of one, or does not take what it has asked for, must not hold
//! anything for ever. Which bytes come does not matter: a client that trickles them is as idle as a silent one.
//!
//! What a client takes of a response is counted where it leaves this process: in the pieces ([`SentPiece`]) that hyper
//! has. HTTP/1 has one response at a time, and one that stalls ends with its connection ([`TimedStream`]). In HTTP/2 a
//! client may stop one response with the window of its stream, which looks like an idle connection from outside. So each
//! stream has a task that ends it ([`Streams`]).

use std::future::Future;
use std::io;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::task::{Context, Poll, Waker, ready};
use std::time::Duration;

use axum::body::Body;
use bytes::{Buf, Bytes};
use futures_util::future::select;
use http_body::{Body as HttpBody, Frame, SizeHint};
use hyper::rt::Executor;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::sync::OwnedSemaphorePermit;
use tokio::task_local;
use tokio::time::{Instant, Sleep, sleep, sleep_until};

use super::turns::{Line, Turns};
use crate::sync::Mutex;

/// The first bytes of HTTP/2; RFC 9113, section 3.4.
const HTTP2: &[u8] = b"PRI * HTTP/2";
/// Bytes that a client has to take within the idle timeout, if it does not take all that is there.
const MIN_TAKEN: usize = 4 << 10;
/// How long a client may take nothing while other requests wait for a turn, and of a refusal, which has no turn.
const CROWDED: Duration = Duration::from_secs(3);
/// The time between two looks at a request.
const TICK: Duration = Duration::from_secs(1);

task_local! {
    /// The slot of the HTTP/2 stream whose task this is.
    static STREAM: RequestSlot;
}

/// How long a connection waits.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Timeouts {
    /// For the head of a request.
    pub header: Duration,
    /// For the next request, and for a client to take some of a response.
    pub idle: Duration,
}

/// What a connection is used for.
pub(crate) struct Activity {
    timeouts: Timeouts,
    turns: Arc<Turns>,
    line: Line,
    requests: AtomicUsize,
    /// Those of the requests that have a turn.
    with_turn: AtomicUsize,
    begun: AtomicU64,
    idle_since: Mutex<Instant>,
    /// Whether the socket takes nothing now.
    is_stalled: AtomicBool,
}

impl Activity {
    /// Returns that of a new connection.
    pub(crate) fn new(timeouts: Timeouts, turns: Arc<Turns>) -> Arc<Self> {
        Arc::new(Self {
            timeouts,
            turns,
            line: Line::default(),
            requests: AtomicUsize::new(0),
            with_turn: AtomicUsize::new(0),
            begun: AtomicU64::new(0),
            idle_since: Mutex::new(Instant::now()),
            is_stalled: AtomicBool::new(false),
        })
    }

    /// Notes that a request has begun. It ends when the slot is dropped, and all its clones.
    pub(crate) fn begin(self: &Arc<Self>) -> RequestSlot {
        STREAM.try_with(Clone::clone).unwrap_or_else(|_| RequestSlot::new(self))
    }

    /// Returns whether a client that has taken nothing since then is given up. It `holds` a turn, or none.
    fn gives_up(&self, since: Instant, holds: bool) -> bool {
        let stalled = since.elapsed();
        stalled >= self.timeouts.idle || (stalled >= CROWDED && (!holds || self.turns.claim()))
    }
}

/// A request in progress, until the last byte of its response is sent or given up.
#[derive(Clone)]
pub(crate) struct RequestSlot(Arc<Slot>);

struct Slot {
    activity: Arc<Activity>,
    turn: Mutex<Option<OwnedSemaphorePermit>>,
    untaken: Mutex<Untaken>,
    is_given_up: AtomicBool,
}

/// What hyper has of a response, and the client has not taken.
struct Untaken {
    bytes: usize,
    /// Bytes that were taken since then.
    taken: usize,
    since: Instant,
    /// Who waits until all is taken.
    waiting: Option<Waker>,
}

impl RequestSlot {
    fn new(activity: &Arc<Activity>) -> Self {
        activity.requests.fetch_add(1, Ordering::SeqCst);
        activity.begun.fetch_add(1, Ordering::SeqCst);
        let untaken = Untaken { bytes: 0, taken: 0, since: Instant::now(), waiting: None };
        Self(Arc::new(Slot {
            activity: Arc::clone(activity),
            turn: Mutex::default(),
            untaken: Mutex::new(untaken),
            is_given_up: AtomicBool::new(false),
        }))
    }

    /// Waits until the request has a turn, which it keeps until it ends. Returns whether there is one.
    pub(crate) async fn has_turn(&self) -> bool {
        let activity = &self.0.activity;
        let Some(turn) = activity.turns.next(&activity.line).await else { return false };
        if self.0.turn.lock().replace(turn).is_none() {
            activity.with_turn.fetch_add(1, Ordering::SeqCst);
        }
        true
    }

    /// Returns a piece of the response as hyper gets it.
    fn piece(&self, bytes: Bytes) -> SentPiece {
        let mut untaken = self.0.untaken.lock();
        if untaken.bytes == 0 {
            (untaken.since, untaken.taken) = (Instant::now(), 0);
        }
        untaken.bytes += bytes.len();
        SentPiece { bytes, slot: self.clone() }
    }

    fn took(&self, count: usize) {
        let mut untaken = self.0.untaken.lock();
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
        let mut untaken = self.0.untaken.lock();
        if untaken.bytes == 0 {
            return Poll::Ready(());
        }
        untaken.waiting = Some(context.waker().clone());
        Poll::Pending
    }

    /// Ends when the client is to be given up.
    async fn stalls(self) {
        let activity = &self.0.activity;
        loop {
            let stalled = {
                let untaken = self.0.untaken.lock();
                // if it is the whole connection, that ends
                (untaken.bytes > 0 && !activity.is_stalled.load(Ordering::SeqCst)).then_some(untaken.since)
            };
            if stalled.is_some_and(|since| activity.gives_up(since, self.0.turn.lock().is_some())) {
                log::debug!("an HTTP/2 stream ends: its client takes nothing");
                self.0.is_given_up.store(true, Ordering::SeqCst);
                return;
            }
            let next = Instant::now() + TICK.min(activity.timeouts.idle);
            sleep_until(stalled.map_or(next, |since| next.min(since + activity.timeouts.idle))).await;
        }
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        if self.turn.lock().take().is_some() {
            self.activity.with_turn.fetch_sub(1, Ordering::SeqCst);
            self.activity.turns.ended();
        }
        // a client that takes nothing does not use its connection
        if !self.is_given_up.load(Ordering::SeqCst) {
            *self.activity.idle_since.lock() = Instant::now();
        }
        self.activity.requests.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Runs each stream of an HTTP/2 connection as a task that ends when its client takes nothing: with it ends the stream,
/// and all that its response holds is free.
#[derive(Clone)]
pub(crate) struct Streams(Arc<Activity>);

impl Streams {
    /// Those of a connection.
    pub(crate) fn new(activity: Arc<Activity>) -> Self {
        Self(activity)
    }
}

impl<F: Future<Output = ()> + Send + 'static> Executor<F> for Streams {
    fn execute(&self, stream: F) {
        let slot = RequestSlot::new(&self.0);
        let stalls = slot.clone().stalls();
        tokio::spawn(async move {
            select(pin!(STREAM.scope(slot, stream)), pin!(stalls)).await;
        });
    }
}

/// A body with the slot of its request. Hyper gets one piece after the other, each when the client has taken the last
/// one, and so the end as well: what hyper has after the end of a body cannot be ended any more.
pub(crate) struct SlottedBody {
    body: Body,
    slot: RequestSlot,
}

impl SlottedBody {
    /// Ties a body to its request.
    pub(crate) fn new(body: Body, slot: RequestSlot) -> Self {
        Self { body, slot }
    }
}

impl HttpBody for SlottedBody {
    type Data = SentPiece;
    type Error = axum::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<SentPiece>, axum::Error>>> {
        let this = self.get_mut();
        ready!(this.slot.poll_taken(context));
        let slot = &this.slot;
        let next = ready!(Pin::new(&mut this.body).poll_frame(context));
        Poll::Ready(next.map(|frame| Ok(frame?.map_data(|bytes| slot.piece(bytes)))))
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream() && self.slot.0.untaken.lock().bytes == 0
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// A piece of a response, until it is sent or given up.
pub(crate) struct SentPiece {
    bytes: Bytes,
    slot: RequestSlot,
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

/// A stream that fails when its client has let it wait too long.
pub(crate) struct TimedStream<S> {
    stream: S,
    activity: Arc<Activity>,
    timer: Pin<Box<Sleep>>,
    /// When the head of a request began to come, and how many had begun before.
    head: Option<(u64, Instant)>,
    is_http2: Option<bool>,
    /// Since when the client takes nothing, or less than [`MIN_TAKEN`], and how many bytes that is.
    stalled: Option<(Instant, usize)>,
}

impl<S> TimedStream<S> {
    /// Wraps a stream.
    pub(crate) fn new(stream: S, activity: Arc<Activity>) -> Self {
        let timer = Box::pin(sleep(activity.timeouts.header.min(activity.timeouts.idle)));
        Self { stream, activity, timer, head: None, is_http2: None, stalled: None }
    }

    fn note_read(&mut self, bytes: &[u8]) {
        if bytes.is_empty() {
            return;
        }
        let is_http2 =
            *self.is_http2.get_or_insert_with(|| bytes.starts_with(HTTP2.get(..bytes.len()).unwrap_or(HTTP2)));
        let begun = self.activity.begun.load(Ordering::SeqCst);
        // frames of HTTP/2 between requests are no heads
        let may_be_head = !is_http2 || begun == 0;
        if may_be_head
            && self.activity.requests.load(Ordering::SeqCst) == 0
            && self.head.is_none_or(|(at, _)| at != begun)
        {
            self.head = Some((begun, Instant::now()));
        }
    }

    /// Returns when a connection that sends nothing is to be given up, as things are now.
    fn read_deadline(&self) -> Instant {
        let (begun, timeouts) = (self.activity.begun.load(Ordering::SeqCst), self.activity.timeouts);
        if self.activity.requests.load(Ordering::SeqCst) > 0 {
            return Instant::now() + timeouts.idle;
        }
        let idle = *self.activity.idle_since.lock() + timeouts.idle;
        let head = self.head.filter(|(at, _)| *at == begun).map(|(_, since)| since + timeouts.header);
        head.map_or(idle, |head| head.min(idle))
    }

    /// Fails when the connection is to be given up.
    fn poll_deadline(&mut self, context: &mut Context<'_>) -> Poll<io::Error> {
        loop {
            let mut deadline = self.read_deadline();
            if let Some((since, _)) = self.stalled {
                if self.activity.gives_up(since, self.activity.with_turn.load(Ordering::SeqCst) > 0) {
                    return Poll::Ready(io::ErrorKind::TimedOut.into());
                }
                deadline = deadline.min(since + self.activity.timeouts.idle).min(Instant::now() + TICK);
            }
            if deadline <= Instant::now() {
                return Poll::Ready(io::ErrorKind::TimedOut.into());
            }
            // a timer that rings too early is set again then
            if deadline < self.timer.deadline() || self.timer.is_elapsed() {
                self.timer.as_mut().reset(deadline);
            }
            ready!(self.timer.as_mut().poll(context));
        }
    }

    fn set_stalled(&mut self, stalled: Option<(Instant, usize)>) {
        self.stalled = stalled;
        self.activity.is_stalled.store(stalled.is_some(), Ordering::SeqCst);
    }

    fn wrote(&mut self, context: &mut Context<'_>, written: Poll<io::Result<usize>>) -> Poll<io::Result<usize>> {
        match (&written, self.stalled) {
            (Poll::Ready(Ok(count)), Some((since, taken))) => {
                let taken = taken + count;
                self.set_stalled((taken < MIN_TAKEN).then_some((since, taken)));
            }
            (Poll::Ready(_), _) => {}
            (Poll::Pending, stalled) => {
                self.set_stalled(stalled.or_else(|| Some((Instant::now(), 0))));
                return self.poll_deadline(context).map(Err);
            }
        }
        written
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for TimedStream<S> {
    fn poll_read(self: Pin<&mut Self>, context: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let before = into.filled().len();
        match Pin::new(&mut this.stream).poll_read(context, into) {
            Poll::Ready(Ok(())) => {
                this.note_read(into.filled().get(before..).unwrap_or_default());
                Poll::Ready(Ok(()))
            }
            Poll::Ready(error) => Poll::Ready(error),
            Poll::Pending => this.poll_deadline(context).map(Err),
        }
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for TimedStream<S> {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let written = Pin::new(&mut this.stream).poll_write(context, bytes);
        this.wrote(context, written)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let written = Pin::new(&mut this.stream).poll_write_vectored(context, parts);
        this.wrote(context, written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        // all that there was is written
        this.set_stalled(None);
        Pin::new(&mut this.stream).poll_flush(context)
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_shutdown(context)
    }
}
