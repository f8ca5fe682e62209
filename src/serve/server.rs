//! The server: its connections, which of them are accepted, and its end.

use std::convert::Infallible;
use std::future::poll_fn;
use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::thread::available_parallelism;
use std::time::Duration;

use futures_util::future::{Either, select};
use hyper::Request;
use hyper::body::Incoming;
use hyper::header::CONNECTION;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use hyper_util::server::graceful::{GracefulShutdown, Watcher};
use thiserror::Error;
use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream};
use tokio::runtime::Builder;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{sleep, timeout};

use super::ServeOptions;
use super::access::TokenError;
use super::app::App;
use super::body::SHORT;
use super::connection::{Activity, Connection, NotedStream, SlottedBody, Streams};
use super::listener::{Listen, ListenError, Listener, SocketFile};
use super::peer::{Ends, Peer, Peers, overflow_user};
use super::response::{Problem, set};
use crate::fs::Volfs;
use crate::logging::warn_seldom;
use crate::pool::try_threads;

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
/// Refused connections that are told why at a time; further ones are closed without a word. They take no part of what
/// accepted connections may take.
const REFUSED: usize = 64;
/// How long a connection may take to be told.
const REFUSED_FOR: Duration = Duration::from_secs(5);
/// What to do where users cannot be told apart.
const NO_USERS: &str = "use --listen unix:PATH, --token-file or --allow-other";

#[derive(Debug, Error)]
pub(crate) enum ServeError {
    #[error(transparent)]
    Listen(#[from] ListenError),
    #[error(transparent)]
    Token(#[from] TokenError),
    #[error("cannot start the threads of the server: {0}; allow more processes (ulimit -u)")]
    Threads(io::Error),
}

/// A server that listens, and does not answer yet.
pub(crate) struct Server {
    listener: Listener,
    /// Where it listens.
    pub(crate) address: Listen,
    options: ServeOptions,
}

impl Server {
    pub(crate) fn listen(mut options: ServeOptions) -> Result<Self, ServeError> {
        let listener = Listener::bind(&options.listen, options.access.is_for_others())?;
        options.listen = listener.at(&options.listen);
        Ok(Self { listener, address: options.listen.clone(), options })
    }

    /// Answers requests until one of these signals, by their numbers, ends the server. Calls `ready` when signals are
    /// awaited and connections accepted; if that returns `false` the server ends.
    pub(crate) fn run(self, fs: Arc<Volfs>, signals: &[i32], ready: impl FnOnce() -> bool) -> Result<(), ServeError> {
        let served = fs.start_refreshes().and_then(|()| {
            fs.pool().keep_workers(KEPT_WORKERS);
            let threads = available_parallelism().map_or(2, |n| n.get().clamp(2, 8));
            try_threads(threads)?;
            let mut runtime = Builder::new_multi_thread();
            let runtime = runtime.worker_threads(threads).thread_name("volfs-serve").enable_all().build()?;
            let served = runtime.block_on(self.serve(fs, signals, ready));
            // a thread that waits for a source cannot end
            runtime.shutdown_background();
            served
        });
        served.map_err(ServeError::Threads)
    }

    async fn serve(self, fs: Arc<Volfs>, signals: &[i32], ready: impl FnOnce() -> bool) -> io::Result<()> {
        let most = self.options.max_connections;
        let permits = Arc::new(Semaphore::new(most.clamp(1, Semaphore::MAX_PERMITS)));
        let connections = Arc::new(Connections::new(fs, self.options)?);
        let mut door = Door::new(self.listener)?;
        let stopped = stopped(signals)?;
        if !ready() {
            return Ok(());
        }
        let graceful = GracefulShutdown::new();
        let accepting = async {
            while let Ok(permit) = Arc::clone(&permits).acquire_owned().await {
                let stream = door.accept().await;
                tokio::spawn(Arc::clone(&connections).handle(stream, permit, graceful.watcher()));
            }
        };
        select(pin!(stopped), pin!(accepting)).await;
        drop(door);
        log::info!("ending: {} connections", most.saturating_sub(permits.available_permits()));
        if timeout(GRACE, graceful.shutdown()).await.is_err() {
            log::warn!("responses in progress were broken off");
        }
        Ok(())
    }
}

/// Ends when one of these signals arrives.
fn stopped(signals: &[i32]) -> io::Result<impl Future<Output = ()>> {
    let signals = signals.iter().map(|number| signal(SignalKind::from_raw(*number)));
    let mut signals = signals.collect::<io::Result<Vec<_>>>()?;
    Ok(poll_fn(move |context| {
        let has_arrived = signals.iter_mut().any(|signal| signal.poll_recv(context).is_ready());
        if has_arrived { Poll::Ready(()) } else { Poll::Pending }
    }))
}

/// The listeners of the runtime. The file of a socket goes with it.
enum Door {
    Tcp(Vec<TcpListener>),
    Unix { listener: UnixListener, _file: SocketFile },
}

/// A connection, and what the system can say about its other end.
enum Stream {
    Tcp(TcpStream),
    Unix(UnixStream),
}

impl Door {
    fn new(listener: Listener) -> io::Result<Self> {
        Ok(match listener {
            Listener::Tcp(listeners) => {
                Self::Tcp(listeners.into_iter().map(TcpListener::from_std).collect::<Result<_, _>>()?)
            }
            Listener::Unix(listener, file) => Self::Unix { listener: UnixListener::from_std(listener)?, _file: file },
        })
    }

    /// Accepts the next connection.
    async fn accept(&mut self) -> Stream {
        loop {
            let accepted = match self {
                Self::Tcp(listeners) => poll_fn(|context| accept_any(listeners, context)).await.map(Stream::Tcp),
                Self::Unix { listener, .. } => listener.accept().await.map(|(stream, _)| Stream::Unix(stream)),
            };
            match accepted {
                Ok(stream) => return stream,
                Err(error) => {
                    warn_seldom(&format!("a connection was not accepted: {error}"));
                    sleep(PAUSE).await;
                }
            }
        }
    }
}

/// Accepts a connection of one of these listeners, which take turns: a flood at one keeps none from another.
fn accept_any(listeners: &mut [TcpListener], context: &mut Context<'_>) -> Poll<io::Result<TcpStream>> {
    let accepted = first_ready(listeners, |listener| listener.poll_accept(context));
    accepted.map(|accepted| accepted.map(|(stream, _)| stream))
}

fn first_ready<T, R>(all: &mut [T], mut poll: impl FnMut(&T) -> Poll<R>) -> Poll<R> {
    for n in 0..all.len() {
        if let Some(Poll::Ready(found)) = all.get(n).map(&mut poll) {
            all.rotate_left(n + 1);
            return Poll::Ready(found);
        }
    }
    Poll::Pending
}

/// What all connections share.
struct Connections {
    app: Arc<App>,
    /// Finds the users of TCP connections, where they matter.
    peers: Option<Peers>,
    /// The number that the kernel shows for all users of other namespaces.
    overflow: Option<u32>,
    /// Permits of connections that are refused, and of guests.
    refused: Semaphore,
    guests: Semaphore,
}

impl Connections {
    fn new(fs: Arc<Volfs>, options: ServeOptions) -> io::Result<Self> {
        let address = options.listen.addresses().first().filter(|_| options.access.needs_user(true));
        let peers = address.map(|address| Peers::start(address.ip())).transpose()?;
        if options.access.users.is_some() && peers.as_ref().is_some_and(|peers| !peers.can_tell) {
            log::warn!("all connections are refused, since the kernel does not say here whose they are: {NO_USERS}");
        }
        let guests = Semaphore::new((options.max_connections / 2).clamp(1, Semaphore::MAX_PERMITS));
        let (overflow, refused) = (overflow_user(), Semaphore::new(REFUSED));
        Ok(Self { app: Arc::new(App::new(fs, options)), peers, overflow, refused, guests })
    }

    /// Finds out whose a connection is, and answers its requests or refuses it.
    async fn handle(self: Arc<Self>, stream: Stream, permit: OwnedSemaphorePermit, watcher: Watcher) {
        let (stream, peer): (Box<dyn Connection>, Peer) = match stream {
            Stream::Tcp(stream) => {
                // small responses must not wait for others
                let _ = stream.set_nodelay(true);
                let Some(peer) = self.peer_of(&stream).await else { return };
                (Box::new(stream), peer)
            }
            Stream::Unix(stream) => {
                let user = stream.peer_cred().ok().map(|credentials| credentials.uid());
                (Box::new(stream), Peer { user: self.known(user), address: None, is_local: true })
            }
        };
        let access = &self.app.options.access;
        if let Some(problem) = access.refuses(&peer) {
            drop((permit, watcher));
            return self.refuse(stream, peer, problem).await;
        }
        let guest = access.is_guest(&peer).then(|| self.guests.try_acquire());
        let Ok(_guest) = guest.transpose() else { return };
        let activity = self.activity();
        let builder = protocols(&activity);
        let stream = NotedStream::new(stream, Arc::clone(&activity));
        let service = service_fn(|request: Request<Incoming>| {
            let (app, activity) = (Arc::clone(&self.app), Arc::clone(&activity));
            async move {
                // in the task of the request, which may have a slot
                let slot = activity.begin();
                let response = app.respond(request.map(drop), &peer, &slot).await;
                Ok::<_, Infallible>(response.map(|body| SlottedBody { body, slot }))
            }
        });
        let connection = watcher.watch(builder.serve_connection(TokioIo::new(stream), service));
        if let Either::Left((Err(error), _)) = select(pin!(connection), pin!(activity.times_out())).await {
            log::debug!("a connection ended: {error}");
        }
        drop(permit);
    }

    /// Returns the other end of a TCP connection; `None` if that is gone.
    async fn peer_of(&self, stream: &TcpStream) -> Option<Peer> {
        let ends = Ends::new(stream.peer_addr().ok()?, stream.local_addr().ok()?);
        let user = match &self.peers {
            Some(peers) if self.app.options.access.needs_user(ends.is_local()) => peers.user(ends).await,
            _ => None,
        };
        Some(Peer { user: self.known(user), address: Some(ends.client.0), is_local: ends.is_local() })
    }

    fn known(&self, user: Option<u32>) -> Option<u32> {
        user.filter(|user| Some(*user) != self.overflow)
    }

    fn activity(&self) -> Arc<Activity> {
        Activity::new(&self.app.options, &self.app.turns)
    }

    /// Tells a client why it is refused, for a short time and if there are not too many of them.
    async fn refuse(&self, stream: Box<dyn Connection>, peer: Peer, problem: Problem) {
        match peer.user {
            Some(user) => warn_seldom(&format!("connections of uid {user} are refused")),
            None => warn_seldom("connections are refused because their user is not known"),
        }
        let Ok(_permit) = self.refused.try_acquire() else { return };
        let activity = self.activity();
        let service = service_fn(|_| {
            let (mut response, activity) = (problem.response(), Arc::clone(&activity));
            set(response.headers_mut(), CONNECTION, "close");
            async move {
                let slot = activity.begin();
                Ok::<_, Infallible>(response.map(|body| SlottedBody { body, slot }))
            }
        });
        let builder = protocols(&activity);
        let _ = timeout(REFUSED_FOR, builder.serve_connection(TokioIo::new(stream), service)).await;
    }
}

/// Returns the protocols of a connection.
fn protocols(activity: &Arc<Activity>) -> auto::Builder<Streams> {
    let mut builder = auto::Builder::new(Streams(Arc::clone(activity)));
    builder.http1().timer(TokioTimer::new()).header_read_timeout(None).max_buf_size(LONGEST_HEAD);
    builder.http2().timer(TokioTimer::new()).max_concurrent_streams(STREAMS).max_send_buf_size(SHORT);
    builder
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn listeners_take_turns() {
        let mut all = [0, 1, 2];
        let mut next = |ready: &[usize]| {
            first_ready(&mut all, |n| if ready.contains(n) { Poll::Ready(*n) } else { Poll::Pending })
        };
        assert_eq!([0; 4].map(|_| next(&[0, 1, 2])), [0, 1, 2, 0].map(Poll::Ready));
        // one that was silent comes before those that were not
        assert_eq!([next(&[0, 2]), next(&[0, 2]), next(&[0, 1, 2])], [2, 0, 1].map(Poll::Ready));
        assert_eq!(next(&[]), Poll::Pending);
    }
}
