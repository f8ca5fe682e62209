//! Two names that are exchanged without pause. The unit tests of `src` use this file as well.

use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};

use rustix::fs::{RenameFlags, renameat_with};

/// A thread that exchanges two names, by renameat2(2). It ends when this is dropped, also by a panic, and each name is
/// where it was then.
pub struct Exchange {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Exchange {
    /// Begins to exchange two names below an open folder.
    pub fn begin(folder: impl AsFd + Send + 'static, one: &str, other: &str) -> Self {
        let stop = Arc::<AtomicBool>::default();
        let (stopped, one, other) = (Arc::clone(&stop), one.to_owned(), other.to_owned());
        let thread = thread::spawn(move || {
            while !stopped.load(Ordering::Relaxed) {
                for _ in 0..2 {
                    renameat_with(&folder, &*one, &folder, &*other, RenameFlags::EXCHANGE).unwrap();
                }
            }
        });
        Self { stop, thread: Some(thread) }
    }
}

impl Drop for Exchange {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        let ended = self.thread.take().map(JoinHandle::join);
        assert!(thread::panicking() || matches!(ended, Some(Ok(()))), "the names could not be exchanged");
    }
}
