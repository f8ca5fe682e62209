//! A listener for the servers of tests: a thread for each connection, until it is dropped.

use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;

/// A listener on a free port.
pub struct Listener {
    address: SocketAddr,
    ends: Arc<AtomicBool>,
}

impl Listener {
    /// Listens, and calls `serve` with each connection on a thread of its own. Sets `ends` when it is dropped.
    pub fn start(ends: &Arc<AtomicBool>, serve: impl Fn(TcpStream) -> io::Result<()> + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let address = listener.local_addr().unwrap();
        let (serve, ended) = (Arc::new(serve), Arc::clone(ends));
        thread::spawn(move || {
            for client in listener.incoming() {
                if ended.load(Relaxed) {
                    break;
                }
                let serve = Arc::clone(&serve);
                // a connection that breaks is one of the client's troubles
                thread::spawn(move || client.and_then(|client| serve(client)));
            }
        });
        Self { address, ends: Arc::clone(ends) }
    }

    /// Returns where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        self.ends.store(true, Relaxed);
        // wakes the thread that accepts
        let _ = TcpStream::connect(self.address);
    }
}
