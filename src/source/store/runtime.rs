//! The threads that talk to object stores.
//!
//! They are started when a store is first used and not earlier, since a daemon forks before it has threads.

use std::future::Future;
use std::io;
use std::sync::OnceLock;

use tokio::runtime::{Builder, Handle, Runtime};

/// Threads that send and receive. Decoding is done elsewhere.
const THREADS: usize = 2;

/// Returns the runtime, which is started at the first call.
pub(crate) fn handle() -> io::Result<Handle> {
    static RUNTIME: OnceLock<Result<Runtime, String>> = OnceLock::new();
    let started = RUNTIME.get_or_init(|| {
        // fails only if there is one already
        let _ = rustls::crypto::ring::default_provider().install_default();
        let mut builder = Builder::new_multi_thread();
        builder.worker_threads(THREADS).max_blocking_threads(4).thread_name("volfs-store").enable_all();
        builder.build().map_err(|error| error.to_string())
    });
    match started {
        Ok(runtime) => Ok(runtime.handle().clone()),
        Err(why) => {
            Err(io::Error::new(io::ErrorKind::WouldBlock, format!("cannot start the threads of a store: {why}")))
        }
    }
}

/// Runs a future and waits for its result. Not to be called on a thread of the runtime.
pub(crate) fn wait_for<T>(future: impl Future<Output = T>) -> io::Result<T> {
    Ok(handle()?.block_on(future))
}
