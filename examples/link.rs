//! Passes TCP connections on to a server as a distant network would: every byte comes later, and so many a second at
//! most. Used by `scripts/bench store`.
//!
//! `link PORT SERVER_PORT MILLISECONDS MEGABITS` makes a round trip so many milliseconds longer; all connections share
//! the bandwidth, which each direction has for itself (0: it is not limited).

use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use futures_util::future::join;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep_until};

/// The most bytes that are read at a time.
const PIECE: usize = 256 << 10;
/// Pieces of one connection that are under way; a server that sends more has to wait.
const UNDER_WAY: usize = 64;

/// One direction of the link.
struct Direction {
    delay: Duration,
    bytes_per_second: f64,
    /// When all that was sent before will have passed.
    free_at: Mutex<Instant>,
}

impl Direction {
    fn new(round_trip_ms: u64, megabits: f64) -> Arc<Self> {
        let (delay, bytes_per_second) = (Duration::from_micros(round_trip_ms * 500), megabits * 1e6 / 8.0);
        Arc::new(Self { delay, bytes_per_second, free_at: Mutex::new(Instant::now()) })
    }

    /// Returns when bytes that are sent now arrive.
    fn arrival(&self, bytes: usize) -> Instant {
        let now = Instant::now();
        if self.bytes_per_second <= 0.0 {
            return now + self.delay;
        }
        let mut free_at = self.free_at.lock().unwrap_or_else(PoisonError::into_inner);
        *free_at = (*free_at).max(now) + Duration::from_secs_f64(bytes as f64 / self.bytes_per_second);
        *free_at + self.delay
    }

    /// Passes bytes on until one end closes the connection.
    async fn pass(self: Arc<Self>, mut from: OwnedReadHalf, mut to: OwnedWriteHalf) {
        let (sender, mut receiver) = mpsc::channel::<(Instant, Bytes)>(UNDER_WAY);
        let writer = async move {
            while let Some((due, bytes)) = receiver.recv().await {
                sleep_until(due).await;
                if to.write_all(&bytes).await.is_err() {
                    return;
                }
            }
            // the other end may still send
            let _ = to.shutdown().await;
        };
        let reader = async move {
            let mut buffer = BytesMut::new();
            loop {
                buffer.reserve(PIECE);
                match from.read_buf(&mut buffer).await {
                    Ok(1..) => {}
                    Ok(0) | Err(_) => return,
                }
                let bytes = buffer.split().freeze();
                if sender.send((self.arrival(bytes.len()), bytes)).await.is_err() {
                    return;
                }
            }
        };
        join(reader, writer).await;
    }
}

fn main() -> io::Result<()> {
    tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(serve())
}

async fn serve() -> io::Result<()> {
    let numbers = std::env::args().skip(1).map(|text| text.parse::<u32>()).collect::<Result<Vec<_>, _>>();
    let [port, server, milliseconds, megabits] = numbers.map_err(io::Error::other)?[..] else {
        return Err(io::Error::other("give two ports, milliseconds and megabits a second"));
    };
    let direction = || Direction::new(milliseconds.into(), megabits.into());
    let (up, down) = (direction(), direction());
    let (port, server) =
        (u16::try_from(port).map_err(io::Error::other)?, u16::try_from(server).map_err(io::Error::other)?);
    let listener = TcpListener::bind(("127.0.0.1", port)).await?;
    loop {
        let (client, _) = listener.accept().await?;
        let (up, down) = (Arc::clone(&up), Arc::clone(&down));
        tokio::spawn(async move {
            let Ok(there) = TcpStream::connect(("127.0.0.1", server)).await else { return };
            let _ = (client.set_nodelay(true), there.set_nodelay(true));
            let ((from_client, to_client), (from_server, to_server)) = (client.into_split(), there.into_split());
            join(up.pass(from_client, to_server), down.pass(from_server, to_client)).await;
        });
    }
}
