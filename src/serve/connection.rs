//! A connection: whether it is in use, and when it is given up.
//!
//! A client that sends no request, does not end the head of one, or does not take what it has asked for, must not keep a
//! connection for ever. Which bytes come does not matter: a client that trickles them is as idle as a silent one.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use axum::body::Body;
use bytes::Bytes;
use http_body::{Body as HttpBody, Frame, SizeHint};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::{Instant, Sleep, sleep};

use crate::sync::Mutex;

/// The first bytes of HTTP/2; RFC 9113, section 3.4.
const HTTP2: &[u8] = b"PRI * HTTP/2";

/// What a connection is used for.
#[derive(Debug)]
pub struct Activity {
    requests: AtomicUsize,
    begun: AtomicU64,
    idle_since: Mutex<Instant>,
}

impl Activity {
    /// Returns that of a new connection.
    #[must_use]
    pub fn new() -> Arc<Self> {
        let idle_since = Mutex::new(Instant::now());
        Arc::new(Self { requests: AtomicUsize::new(0), begun: AtomicU64::new(0), idle_since })
    }

    /// Notes that a request has begun. It ends when the slot is dropped, and all its clones.
    #[must_use]
    pub fn begin(self: &Arc<Self>) -> RequestSlot {
        self.requests.fetch_add(1, Ordering::SeqCst);
        self.begun.fetch_add(1, Ordering::SeqCst);
        RequestSlot(Arc::new(Slot { activity: Arc::clone(self), turn: Mutex::default() }))
    }
}

/// A request in progress, until the last byte of its response is sent or given up.
#[derive(Clone)]
pub struct RequestSlot(Arc<Slot>);

struct Slot {
    activity: Arc<Activity>,
    turn: Mutex<Option<OwnedSemaphorePermit>>,
}

impl RequestSlot {
    /// Keeps the turn that the request has got until it ends.
    pub fn hold(&self, turn: OwnedSemaphorePermit) {
        *self.0.turn.lock() = Some(turn);
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        *self.activity.idle_since.lock() = Instant::now();
        self.activity.requests.fetch_sub(1, Ordering::SeqCst);
    }
}

/// A body with the slot of its request.
pub struct SlottedBody {
    body: Body,
    _slot: RequestSlot,
}

impl SlottedBody {
    /// Ties a body to its request.
    #[must_use]
    pub fn new(body: Body, slot: RequestSlot) -> Self {
        Self { body, _slot: slot }
    }
}

impl HttpBody for SlottedBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// How long a connection waits.
#[derive(Clone, Copy, Debug)]
pub struct Timeouts {
    /// For the head of a request.
    pub header: Duration,
    /// For the next request, and for a client to take some of a response.
    pub idle: Duration,
}

/// A stream that fails when its client has let it wait too long.
pub struct TimedStream<S> {
    stream: S,
    activity: Arc<Activity>,
    timeouts: Timeouts,
    timer: Pin<Box<Sleep>>,
    /// When the head of a request began to come, and how many had begun before.
    head: Option<(u64, Instant)>,
    is_http2: Option<bool>,
    /// Since when the client takes nothing.
    stalled: Option<Instant>,
}

impl<S> TimedStream<S> {
    /// Wraps a stream.
    pub fn new(stream: S, activity: Arc<Activity>, timeouts: Timeouts) -> Self {
        let timer = Box::pin(sleep(timeouts.header.min(timeouts.idle)));
        Self { stream, activity, timeouts, timer, head: None, is_http2: None, stalled: None }
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

    /// Returns when the connection is to be given up, as things are now.
    fn deadline(&self) -> Instant {
        let begun = self.activity.begun.load(Ordering::SeqCst);
        let read = if self.activity.requests.load(Ordering::SeqCst) > 0 {
            Instant::now() + self.timeouts.idle
        } else {
            let idle = *self.activity.idle_since.lock() + self.timeouts.idle;
            let head = self.head.filter(|(at, _)| *at == begun).map(|(_, since)| since + self.timeouts.header);
            head.map_or(idle, |head| head.min(idle))
        };
        self.stalled.map_or(read, |since| read.min(since + self.timeouts.idle))
    }

    /// Fails when the deadline has come.
    fn poll_deadline(&mut self, context: &mut Context<'_>) -> Poll<io::Error> {
        loop {
            let deadline = self.deadline();
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

    fn wrote(&mut self, context: &mut Context<'_>, written: Poll<io::Result<usize>>) -> Poll<io::Result<usize>> {
        if written.is_ready() {
            self.stalled = None;
            return written;
        }
        self.stalled.get_or_insert_with(Instant::now);
        self.poll_deadline(context).map(Err)
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
        Pin::new(&mut self.get_mut().stream).poll_flush(context)
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_shutdown(context)
    }
}
