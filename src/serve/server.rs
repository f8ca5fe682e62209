//! The server: its connections, who may have one, and its end.

use std::convert::Infallible;
use std::future::{Future, poll_fn};
use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::thread::available_parallelism;
use std::time::Duration;

use axum::Router;
use axum::http::header::CONNECTION;
use axum::http::{HeaderValue, Request};
use futures_util::future::{Either, select};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use hyper_util::server::graceful::{GracefulShutdown, Watcher};
use thiserror::Error;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream};
use tokio::runtime::{Builder, Runtime};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{sleep, timeout};
use tower::ServiceExt;

use super::access::{Access, TokenError};
use super::app_state::App;
use super::budget::SHORT;
use super::connection::{Activity, SlottedBody, Streams, TimedStream, Timeouts};
use super::listener::{Listen, ListenError, Listener, SocketFile};
use super::options::ServeOptions;
use super::peer::{Ends, Peer, Peers, overflow_user};
use super::problem::Problem;
use crate::fs::Volfs;
use crate::log_limit::warn_seldom;

/// How long responses in progress may take when the server ends.
const GRACE: Duration = Duration::from_secs(3);
/// The pause after a connection that the system refuses, such as for lack of descriptors.
const PAUSE: Duration = Duration::from_millis(100);
/// Requests at a time in one HTTP/2 connection.
const STREAMS: u32 = 64;
/// The longest head of a request in bytes.
const LONGEST_HEAD: usize = 16 << 10;
/// Worker threads that go on when the system has no more threads.
const KEPT_WORKERS: usize = 2;
/// Connections at a time that are told why they are refused; further ones are closed without a word. They take no part of
/// what connections may take that are let in.
const REFUSED: usize = 64;
/// What to do where no user can be told.
const NO_USERS: &str = "use --listen unix:PATH, --token-file or --allow-other";
/// How long a connection may take to be told.
const REFUSED_FOR: Duration = Duration::from_secs(5);

/// Why there is no server.
#[derive(Debug, Error)]
pub(crate) enum ServeError {
    /// The server cannot listen.
    #[error(transparent)]
    Listen(#[from] ListenError),
    /// The token cannot be used.
    #[error(transparent)]
    Token(#[from] TokenError),
    /// The system has too few threads.
    #[error("cannot start the threads of the server: {0}; allow more processes (ulimit -u)")]
    Threads(io::Error),
}

/// A server that listens, and does not answer yet.
pub(crate) struct Server {
    listener: Listener,
    address: Listen,
    options: ServeOptions,
}

/// A listener of the runtime. The file of a socket goes with it.
enum Door {
    Tcp(TcpListener),
    Unix { listener: UnixListener, _file: SocketFile },
}

/// A connection, and what the system can say about its other end.
enum Stream {
    Tcp(TcpStream),
    Unix(UnixStream),
}

/// What all connections share.
struct Connections {
    app: Arc<App>,
    router: Router,
    access: Arc<Access>,
    /// Finds the users of TCP connections, where they matter.
    peers: Option<Peers>,
    /// The number of users that cannot be told apart.
    overflow: Option<u32>,
    timeouts: Timeouts,
    /// Permits of connections that are refused, and of guests.
    refused: Semaphore,
    guests: Semaphore,
}

/// The signals that end the server.
struct Stop {
    signals: Vec<Signal>,
}

impl Server {
    /// Begins to listen.
    pub(crate) fn listen(options: ServeOptions) -> Result<Self, ServeError> {
        let listener = Listener::bind(&options.listen, options.access.is_for_others())?;
        let address = listener.at(&options.listen);
        Ok(Self { listener, address, options })
    }

    /// Returns where it listens.
    pub(crate) fn address(&self) -> &Listen {
        &self.address
    }

    /// Answers requests until one of these signals, by their numbers, ends the server. Calls `ready` when signals are
    /// awaited and connections accepted; without its consent the server ends.
    pub(crate) fn run(self, fs: Arc<Volfs>, signals: &[i32], ready: impl FnOnce() -> bool) -> Result<(), ServeError> {
        fs.start_refreshes().map_err(ServeError::Threads)?;
        fs.pool().keep_workers(KEPT_WORKERS);
        let runtime = runtime().map_err(ServeError::Threads)?;
        let served = runtime.block_on(self.serve(fs, signals, ready));
        // a thread that waits for a source cannot end
        runtime.shutdown_background();
        served
    }

    async fn serve(self, fs: Arc<Volfs>, signals: &[i32], ready: impl FnOnce() -> bool) -> Result<(), ServeError> {
        let options = &self.options;
        let connections = Arc::new(Connections::new(fs, options).map_err(ServeError::Threads)?);
        let door = Door::new(self.listener).map_err(ServeError::Threads)?;
        let mut stop = Stop::new(signals).map_err(ServeError::Threads)?;
        if !ready() {
            return Ok(());
        }
        let permits = Arc::new(Semaphore::new(options.max_connections.clamp(1, Semaphore::MAX_PERMITS)));
        let graceful = GracefulShutdown::new();
        loop {
            let next = accept(&door, &permits);
            let Some((stream, permit)) = stop.unless_stopped(next).await else { break };
            tokio::spawn(Arc::clone(&connections).handle(stream, permit, graceful.watcher()));
        }
        drop(door);
        log::info!("ending: {} connections", options.max_connections.saturating_sub(permits.available_permits()));
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

/// Returns the protocols of a connection.
fn protocols(activity: &Arc<Activity>) -> auto::Builder<Streams> {
    let mut builder = auto::Builder::new(Streams::new(Arc::clone(activity)));
    builder.http1().timer(TokioTimer::new()).header_read_timeout(None).max_buf_size(LONGEST_HEAD);
    builder.http2().timer(TokioTimer::new()).max_concurrent_streams(STREAMS).max_send_buf_size(SHORT);
    builder
}

/// Accepts the next connection, when there may be one more.
async fn accept(door: &Door, permits: &Arc<Semaphore>) -> Option<(Stream, OwnedSemaphorePermit)> {
    let permit = Arc::clone(permits).acquire_owned().await.ok()?;
    loop {
        let accepted = match door {
            Door::Tcp(listener) => listener.accept().await.map(|(stream, _)| Stream::Tcp(stream)),
            Door::Unix { listener, .. } => listener.accept().await.map(|(stream, _)| Stream::Unix(stream)),
        };
        match accepted {
            Ok(stream) => return Some((stream, permit)),
            Err(error) => {
                warn_seldom(&format!("a connection was not accepted: {error}"));
                sleep(PAUSE).await;
            }
        }
    }
}

impl Door {
    fn new(listener: Listener) -> io::Result<Self> {
        Ok(match listener {
            Listener::Tcp(listener) => Self::Tcp(TcpListener::from_std(listener)?),
            Listener::Unix(listener, file) => Self::Unix { listener: UnixListener::from_std(listener)?, _file: file },
        })
    }
}

impl Connections {
    fn new(fs: Arc<Volfs>, options: &ServeOptions) -> io::Result<Self> {
        let access = Arc::clone(&options.access);
        let peers = match &options.listen {
            Listen::Tcp(address) if access.needs_user(true) => Some(Peers::start(address.ip())?),
            _ => None,
        };
        if access.users.is_some() && peers.as_ref().is_some_and(|peers| !peers.can_tell()) {
            log::warn!("all connections are refused, since the kernel does not say here whose they are: {NO_USERS}");
        }
        let app = App::new(fs, options.clone());
        Ok(Self {
            router: app.router(),
            app,
            access,
            peers,
            overflow: overflow_user(),
            timeouts: Timeouts { header: options.header_timeout, idle: options.idle_timeout },
            refused: Semaphore::new(REFUSED),
            guests: Semaphore::new((options.max_connections / 2).clamp(1, Semaphore::MAX_PERMITS)),
        })
    }

    /// Finds out whose a connection is, and answers its requests or refuses it.
    async fn handle(self: Arc<Self>, stream: Stream, permit: OwnedSemaphorePermit, watcher: Watcher) {
        match stream {
            Stream::Tcp(stream) => {
                // small responses must not wait for others
                let _ = stream.set_nodelay(true);
                if let Some(peer) = self.peer_of(&stream).await {
                    self.admit(stream, peer, permit, watcher).await;
                }
            }
            Stream::Unix(stream) => {
                let user = stream.peer_cred().ok().map(|credentials| credentials.uid());
                let peer = Peer { user: self.known(user), address: None, is_local: true };
                self.admit(stream, peer, permit, watcher).await;
            }
        }
    }

    /// Returns the other end of a TCP connection; `None` if that is gone.
    async fn peer_of(&self, stream: &TcpStream) -> Option<Peer> {
        let ends = Ends::new(stream.peer_addr().ok()?, stream.local_addr().ok()?);
        let user = match &self.peers {
            Some(peers) if self.access.needs_user(ends.is_local()) => peers.user(ends).await,
            _ => None,
        };
        Some(Peer { user: self.known(user), address: Some(ends.client()), is_local: ends.is_local() })
    }

    fn known(&self, user: Option<u32>) -> Option<u32> {
        user.filter(|user| Some(*user) != self.overflow)
    }

    async fn admit<S>(&self, stream: S, peer: Peer, permit: OwnedSemaphorePermit, watcher: Watcher)
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        if let Some(problem) = self.access.refuses(&peer) {
            drop((permit, watcher));
            return self.refuse(stream, peer, problem).await;
        }
        let _guest = if self.access.is_guest(&peer) {
            let Ok(guest) = self.guests.try_acquire() else { return };
            Some(guest)
        } else {
            None
        };
        let activity = Activity::new(self.timeouts, Arc::clone(&self.app.turns));
        let builder = protocols(&activity);
        let stream = TimedStream::new(stream, Arc::clone(&activity));
        let service = service_fn(move |request| respond(self.router.clone(), Arc::clone(&activity), peer, request));
        let connection = builder.serve_connection(TokioIo::new(stream), service).into_owned();
        if let Err(error) = watcher.watch(connection).await {
            log::debug!("a connection ended: {error}");
        }
        drop(permit);
    }

    /// Tells a client why it is refused, for a short time and if there are not too many of them.
    async fn refuse<S>(&self, stream: S, peer: Peer, problem: Problem)
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        match peer.user {
            Some(user) => warn_seldom(&format!("connections of uid {user} are refused")),
            None => warn_seldom("connections are refused because their user is not known"),
        }
        let Ok(_permit) = self.refused.try_acquire() else { return };
        let service = service_fn(|_| {
            let mut response = problem.response();
            response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
            async { Ok::<_, Infallible>(response) }
        });
        let builder = protocols(&Activity::new(self.timeouts, Arc::clone(&self.app.turns)));
        let _ = timeout(REFUSED_FOR, builder.serve_connection(TokioIo::new(stream), service)).await;
    }
}

/// Answers a request of a connection.
async fn respond(
    router: Router,
    activity: Arc<Activity>,
    peer: Peer,
    mut request: Request<Incoming>,
) -> Result<axum::http::Response<SlottedBody>, Infallible> {
    let slot = activity.begin();
    request.extensions_mut().insert(slot.clone());
    request.extensions_mut().insert(peer);
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
