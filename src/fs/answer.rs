//! Answers to requests that may have to wait: from memory at once, otherwise from a thread of the pool.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use super::error::FsError;
use super::volfs::Volfs;
use crate::logging::warn_seldom;
use crate::memory::has_memory;
use crate::pool::Bulkhead;
use crate::source::Blocking;

impl Volfs {
    /// Replies with the result of `call`: at once if it need not wait, otherwise from a thread of the pool, which may
    /// wait.
    pub(crate) fn answer<T: 'static>(
        self: &Arc<Self>,
        bulkhead: Bulkhead,
        call: impl Fn(&Arc<Self>, Blocking) -> Result<T, FsError> + Send + 'static,
        reply: impl FnOnce(Result<T, FsError>) + Send + 'static,
    ) {
        if !has_memory() {
            warn_seldom("no memory is left: requests fail; choose a smaller --cache-size, or allow the process more");
            return reply(Err(FsError::NoMemory));
        }
        // a panic fails one request and does not end the thread that takes requests
        match catch_unwind(AssertUnwindSafe(|| call(self, Blocking::No))).unwrap_or(Err(FsError::Io)) {
            Err(FsError::WouldBlock) => {
                let (fs, waiting) = (Arc::clone(self), self.pool().request(bulkhead));
                self.pool().submit(bulkhead, move || {
                    let answer = call(&fs, Blocking::Yes);
                    drop(waiting);
                    reply(answer);
                });
            }
            answer => reply(answer),
        }
    }
}
