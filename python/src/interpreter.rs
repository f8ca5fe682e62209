//! The interpreter's lock: given back while the engine works, and not asked for again once the interpreter ends; and work
//! that ends when the user interrupts it.
//!
//! Before Python 3.14, the C library unwinds a thread that asks an ending interpreter for its lock, and a process ends with
//! an error where such an unwinding comes upon frames of Rust. So these threads sleep until the process is gone, as they
//! do in Python 3.14 by themselves.

use std::cell::Cell;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::sync::{Arc, OnceLock};
use std::thread::{self, ThreadId};
use std::time::Duration;
use std::{io, mem};

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use pyo3::wrap_pyfunction;

/// The thread that ends the interpreter.
static ENDING: OnceLock<ThreadId> = OnceLock::new();
/// Threads that are about to get the lock.
static RETURNING: AtomicUsize = AtomicUsize::new(0);
/// How many forks led to this process.
static FORKS: AtomicUsize = AtomicUsize::new(0);

/// The interval between looks for signals, and the intervals after which the thread of interrupted work is left alone.
const MEANWHILE: Duration = Duration::from_millis(100);
const LEFT_ALONE: u32 = 8;

/// A thread that is about to get the interpreter's lock, until it is dropped.
pub struct Returning;

impl Returning {
    /// Returns `None` if the interpreter ends in another thread.
    pub fn new() -> Option<Self> {
        RETURNING.fetch_add(1, Ordering::SeqCst);
        let returning = Self;
        let ends = ENDING.get().is_some_and(|ending| *ending != thread::current().id());
        (!ends).then_some(returning)
    }
}

impl Drop for Returning {
    fn drop(&mut self) {
        RETURNING.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Does work without the interpreter's lock. Does not return if the interpreter ends meanwhile.
pub fn detach<T: Send>(py: Python<'_>, work: impl FnOnce() -> T + Send) -> T {
    let (done, _returning) = py.detach(|| {
        let done = work();
        let returning = Returning::new().unwrap_or_else(|| {
            loop {
                thread::park();
            }
        });
        (done, returning)
    });
    done
}

/// Handles signals, with the interpreter's lock, and returns whether work that was detached goes on: `None` if the
/// interpreter ends.
pub fn check_signals() -> Option<PyResult<()>> {
    let _returning = Returning::new()?;
    Some(Python::attach(|py| py.check_signals()))
}

type Job = Box<dyn FnOnce() + Send>;

/// The way to the thread that works for another one, and the fork before which it was started.
struct ToWorker(Sender<Job>, usize);

thread_local! {
    static WORKER: Cell<Option<ToWorker>> = const { Cell::new(None) };
}

/// Has the worker thread of this thread do a job, and starts it if there is none, or none in this process. It ends with
/// this thread.
fn hand_over(job: Job) -> io::Result<ToWorker> {
    let (forks, worker) = (FORKS.load(Ordering::Relaxed), WORKER.take());
    let job = match worker {
        Some(worker) if worker.1 == forks => match worker.0.send(job) {
            Ok(()) => return Ok(worker),
            Err(unsent) => unsent.0,
        },
        // the parent's thread is not here: what it held stays locked
        worker => {
            mem::forget(worker);
            job
        }
    };
    let (sender, jobs) = mpsc::channel::<Job>();
    let work = move || {
        job();
        jobs.into_iter().for_each(|job| job());
    };
    thread::Builder::new().name("volfs-python".into()).spawn(work)?;
    Ok(ToWorker(sender, forks))
}

/// Does work that may wait for a server, on a thread of its own. `work` is told by its argument when the user has
/// interrupted it; if it does not end then, within a second, the thread is left alone.
pub fn interruptible<T: Send + 'static>(
    py: Python<'_>,
    work: impl FnOnce(&AtomicBool) -> T + Send + 'static,
) -> PyResult<T> {
    let (done, finished) = mpsc::channel();
    let is_ended = Arc::new(AtomicBool::new(false));
    let of_work = Arc::clone(&is_ended);
    let to_worker = hand_over(Box::new(move || drop(done.send(work(&of_work)))))?;
    let (interrupted, found) = detach(py, move || {
        let (mut interrupted, mut waits) = (None, 0);
        loop {
            match finished.recv_timeout(MEANWHILE) {
                Err(RecvTimeoutError::Timeout) if is_ended.load(Ordering::Relaxed) => waits += 1,
                Err(RecvTimeoutError::Timeout) => {
                    let checked = check_signals();
                    is_ended.store(!matches!(checked, Some(Ok(()))), Ordering::Relaxed);
                    interrupted = checked.and_then(Result::err);
                }
                found => break (interrupted, found.ok()),
            }
            if waits == LEFT_ALONE {
                break (interrupted, None);
            }
        }
    });
    if found.is_some() {
        WORKER.set(Some(to_worker));
    }
    match (interrupted, found) {
        (Some(error), _) => Err(error),
        (None, Some(found)) => Ok(found),
        (None, None) => Err(PyRuntimeError::new_err("a thread of volfs ended without an outcome")),
    }
}

/// Has the interpreter tell when it ends, and when a child begins.
pub fn watch(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let py = module.py();
    py.import("atexit")?.call_method1("register", (wrap_pyfunction!(ends, module)?,))?;
    let in_child = PyDict::new(py);
    in_child.set_item("after_in_child", wrap_pyfunction!(forked, module)?)?;
    if let Ok(register) = py.import("os")?.getattr("register_at_fork") {
        register.call((), Some(&in_child))?;
    }
    Ok(())
}

#[pyfunction]
fn ends(py: Python<'_>) {
    if ENDING.set(thread::current().id()).is_ok() {
        py.detach(|| {
            while RETURNING.load(Ordering::SeqCst) > 0 {
                thread::sleep(Duration::from_millis(1));
            }
        });
    }
}

/// A child has none of its parent's other threads.
#[pyfunction]
fn forked() {
    RETURNING.store(0, Ordering::SeqCst);
    FORKS.fetch_add(1, Ordering::Relaxed);
}
