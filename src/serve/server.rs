//! The server: its socket, its connections, and its end.

use std::future::{Future, poll_fn};
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::thread::available_parallelism;
use std::time::Duration;

use axum::Router;
use axum::http::Request;
use futures_util::future::{Either, select};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use hyper_util::server::graceful::GracefulShutdown;
use thiserror::Error;
use tokio::net::{TcpListener as AsyncListener, TcpStream};
use tokio::runtime::{Builder, Runtime};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{sleep, timeout};
use tower::ServiceExt;

use super::app_state::App;
use super::budget::SHORT;
use super::connection::{Activity, SlottedBody, TimedStream, Timeouts};
use super::options::ServeOptions;
use crate::fs::Volfs;
use crate::log_limit::warn_seldom;

/// How long responses in progress may take when the server ends.
const GRACE: Duration = Duration::from_secs(3);
/// The pause after a connection that the system refuses, such as for lack of descriptors.
const PAUSE: Duration = Duration::from_millis(100);
/// Requests at a time in one HTTP/2 connection.
const STREAMS: u32 = 64;
/// The longest head of a request in bytes. The next piece of a body is taken when less than this is left to send.
const LONGEST_HEAD: usize = 16 << 10;
/// Worker threads that go on when the system has no more threads.
const KEPT_WORKERS: usize = 2;

/// Why there is no server.
#[derive(Debug, Error)]
pub enum ServeError {
    /// The address cannot be listened at.
    #[error("cannot listen at {0}: {1}; choose another --listen ADDRESS:PORT")]
    Listen(SocketAddr, io::Error),
    /// The system has too few threads.
    #[error("cannot start the threads of the server: {0}; allow more processes (ulimit -u)")]
    Threads(io::Error),
}

/// A server that listens, and does not answer yet.
pub struct Server {
    listener: TcpListener,
    address: SocketAddr,
    options: ServeOptions,
}

/// The signals that end the server.
struct Stop {
    signals: Vec<Signal>,
}

impl Server {
    /// Begins to listen.
    ///
    /// # Errors
    /// [`ServeError::Listen`]
    pub fn listen(options: ServeOptions) -> Result<Self, ServeError> {
        let failed = |error| ServeError::Listen(options.listen, error);
        let listener = TcpListener::bind(options.listen).map_err(failed)?;
        listener.set_nonblocking(true).map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        Ok(Self { listener, address, options })
    }

    /// Returns the address that it listens at.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Answers requests until one of these signals, by their numbers, ends the server. Calls `ready` when signals are
    /// awaited and connections accepted; without its consent the server ends.
    ///
    /// # Errors
    /// [`ServeError::Threads`]
    pub fn run(self, fs: Arc<Volfs>, signals: &[i32], ready: impl FnOnce() -> bool) -> Result<(), ServeError> {
        fs.start_refreshes().map_err(ServeError::Threads)?;
        fs.pool().keep_workers(KEPT_WORKERS);
        let runtime = runtime().map_err(ServeError::Threads)?;
        let served = runtime.block_on(self.serve(fs, signals, ready));
        // a thread that waits for a source cannot end
        runtime.shutdown_background();
        served
    }

    async fn serve(self, fs: Arc<Volfs>, signals: &[i32], ready: impl FnOnce() -> bool) -> Result<(), ServeError> {
        let listener = AsyncListener::from_std(self.listener).map_err(ServeError::Threads)?;
        let mut stop = Stop::new(signals).map_err(ServeError::Threads)?;
        if !ready() {
            return Ok(());
        }
        let options = &self.options;
        let connections = Arc::new(Semaphore::new(options.max_connections.clamp(1, Semaphore::MAX_PERMITS)));
        let timeouts = Timeouts { header: options.header_timeout, idle: options.idle_timeout };
        let mut builder = auto::Builder::new(TokioExecutor::new());
        builder.http1().timer(TokioTimer::new()).header_read_timeout(None).max_buf_size(LONGEST_HEAD);
        builder.http2().timer(TokioTimer::new()).max_concurrent_streams(STREAMS).max_send_buf_size(SHORT);
        let (router, graceful) = (App::new(fs, self.options.clone()).router(), GracefulShutdown::new());
        loop {
            let next = accept(&listener, &connections);
            let Some((stream, permit)) = stop.unless_stopped(next).await else { break };
            // small responses must not wait for others
            let _ = stream.set_nodelay(true);
            let activity = Activity::new();
            let stream = TimedStream::new(stream, Arc::clone(&activity), timeouts);
            let router = router.clone();
            let service = service_fn(move |request| respond(router.clone(), Arc::clone(&activity), request));
            let connection = builder.serve_connection(TokioIo::new(stream), service).into_owned();
            let watched = graceful.watch(connection);
            tokio::spawn(async move {
                if let Err(error) = watched.await {
                    log::debug!("a connection ended: {error}");
                }
                drop(permit);
            });
        }
        drop(listener);
        log::info!("ending: {} connections", options.max_connections.saturating_sub(connections.available_permits()));
        if timeout(GRACE, graceful.shutdown()).await.is_err() {
            log::warn!("responses in progress were broken off");
        }
        Ok(())
    }
}

fn runtime() -> io::Result<Runtime> {
    let threads = available_parallelism().map_or(2, |n| n.get().clamp(2, 8));
    Builder::new_multi_thread().worker_threads(threads).thread_name("volfs-serve").enable_all().build()
}

/// Accepts the next connection, when there may be one more.
async fn accept(listener: &AsyncListener, connections: &Arc<Semaphore>) -> Option<(TcpStream, OwnedSemaphorePermit)> {
    let permit = Arc::clone(connections).acquire_owned().await.ok()?;
    loop {
        match listener.accept().await {
            Ok((stream, _)) => return Some((stream, permit)),
            Err(error) => {
                warn_seldom(&format!("a connection was not accepted: {error}"));
                sleep(PAUSE).await;
            }
        }
    }
}

/// Answers a request of a connection.
async fn respond(
    router: Router,
    activity: Arc<Activity>,
    mut request: Request<Incoming>,
) -> Result<axum::http::Response<SlottedBody>, std::convert::Infallible> {
    let slot = activity.begin();
    request.extensions_mut().insert(slot.clone());
    let response = router.oneshot(request).await?;
    Ok(response.map(|body| SlottedBody::new(body, slot)))
}

impl Stop {
    fn new(signals: &[i32]) -> io::Result<Self> {
        let signals = signals.iter().map(|number| signal(SignalKind::from_raw(*number))).collect::<Result<_, _>>()?;
        Ok(Self { signals })
    }

    /// Returns what a future gives, or `None` if a signal comes first.
    async fn unless_stopped<T>(&mut self, future: impl Future<Output = Option<T>>) -> Option<T> {
        let signals = &mut self.signals;
        let arrives = poll_fn(|context| {
            let arrived = signals.iter_mut().any(|signal| signal.poll_recv(context).is_ready());
            if arrived { Poll::Ready(()) } else { Poll::Pending }
        });
        match select(pin!(arrives), pin!(future)).await {
            Either::Left(_) => None,
            Either::Right((value, _)) => value,
        }
    }
}
