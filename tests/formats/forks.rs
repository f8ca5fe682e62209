//! Children of a program that reads with several threads: they inherit no lock, no thread and no queue.
//!
//! Each test is a process of its own, since a child inherits whatever the threads of other tests hold just then.
#![allow(unsafe_code)]

use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use nix::libc;
use nix::sys::wait::{WaitStatus, waitpid};
use nix::unistd::{ForkResult, alarm, fork};

use crate::array::{ReadRequest, Reader, Selection};
use crate::catalog::open_dataset;
use crate::counters::Counters;
use crate::format::vds::wavelet::with_scratch;
use crate::format::{Array, registry};
use crate::logging::warn_seldom;
use crate::memory::BufferPool;
use crate::pool::{Bulkhead, Pool};
use crate::sync;
use crate::test_support::test_data;
use crate::volume::{Dims, Region};

/// Raw samples, which are read through maps, LZ4, ZFP, Zip, RLE and wavelets.
const DATASETS: [&str; 8] = [
    "demo/cells",
    "demo/north.zgy",
    "demo/south.vds",
    "wkw/pyramid",
    "vds/formats-zip.vds",
    "vds/formats-rle.vds",
    "vds/wavelet.vds",
    "zgy/v4_zfp_snr30.zgy",
];
const FORKS: usize = 200;
const READERS: usize = 3;
/// Seconds for what takes some milliseconds, after which a process that waits for ever is ended.
const CHILD: u32 = 120;
const PARENT: u32 = 900;

/// Calls that take a lock of the process.
const HELD: [fn(); 2] = [|| with_scratch(|_| ()), || warn_seldom("on purpose")];

/// Starts the ignored test of this name in a process of its own.
fn run(name: &str) {
    let test = format!("formats_tests::forks::{name}");
    let mut command = Command::new(std::env::current_exe().unwrap());
    let output = command.args(["--exact", &test, "--ignored", "--nocapture"]).output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert!(output.status.success(), "{}\n{}\n{}", output.status, text(&output.stdout), text(&output.stderr));
    assert!(text(&output.stdout).contains("1 passed"), "{}", text(&output.stdout));
}

/// Calls `check` in a child, which is ended when it takes too long. Returns whether it has found what it expects.
fn in_child(check: impl FnOnce() -> Result<(), String>) -> bool {
    // SAFETY: the child calls what is to be shown to work there, besides the allocator, which the C library makes usable
    // in children, and ends without the destructors and handlers of its parent.
    match unsafe { fork() }.unwrap() {
        ForkResult::Child => {
            alarm::set(CHILD);
            let checked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(check));
            if let Ok(Err(why)) = &checked {
                // not through the locks of the standard library
                let _ = nix::unistd::write(std::io::stderr(), why.as_bytes());
            }
            // SAFETY: it ends the process.
            unsafe { libc::_exit(if matches!(checked, Ok(Ok(()))) { 0 } else { 1 }) }
        }
        ForkResult::Parent { child } => waitpid(child, None) == Ok(WaitStatus::Exited(child, 0)),
    }
}

fn open(name: &str) -> Vec<Arc<dyn Array>> {
    let open = open_dataset(registry(), &test_data(name), None).unwrap();
    open.dataset.layers().iter().flat_map(|layer| layer.levels.iter().map(Arc::clone)).collect()
}

/// A reader with little cache, so that most bricks are decoded again.
fn reader(pool: &Arc<Pool>) -> Arc<Reader> {
    let buffers = BufferPool::for_bricks(1 << 20, 1 << 20);
    Reader::new(256 << 10, 4, buffers, Arc::clone(pool), Arc::<Counters>::default())
}

/// Reads a level in slabs along its slowest axis, each of them a request of its own.
fn read(reader: &Arc<Reader>, array: &Arc<dyn Array>) -> Result<Vec<u8>, String> {
    let (info, mut out) = (array.info(), vec![0; array.info().bytes() as usize]);
    let row = out.len() / info.shape()[0] as usize;
    let slab = info.shape()[0].div_ceil(8);
    for first in (0..info.shape()[0]).step_by(slab as usize) {
        let shape = info.shape();
        let mut region = Region { start: Dims::filled(shape.len(), 0), shape };
        (region.start[0], region.shape[0]) = (first, slab.min(info.shape()[0] - first));
        let selections = vec![Selection::new(&region, 0, info.dtype.size())];
        let (array, bulkhead) = (Arc::clone(array), Bulkhead::new(1));
        let request = ReadRequest { array, selections, bulkhead, counters: None, from_file: None, is_entire: true };
        let to = &mut out[first as usize * row..][..region.shape[0] as usize * row];
        reader.read_into(request, to).map_err(|error| error.to_string())?;
    }
    Ok(out)
}

#[test]
fn children_read_while_threads_of_their_parent_read() {
    run("fork_while_threads_read");
}

#[test]
#[ignore = "it is a process that another test starts"]
fn fork_while_threads_read() {
    alarm::set(PARENT);
    sync::enter();
    let expected: Vec<Vec<Vec<u8>>> = DATASETS
        .iter()
        .map(|name| {
            let (pool, levels) = (Pool::new(), open(name));
            levels.iter().map(|level| read(&reader(&pool), level).unwrap()).collect()
        })
        .collect();
    // The standard library has a list of the stacks of a Rust program, with a lock that threads take when they begin
    // and end: there are all threads before the first fork.
    let pool = Pool::new();
    pool.keep_workers(64);
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        let (pool, stop, expected) = (&pool, &stop, &expected);
        let goes_on = || !stop.load(Ordering::Relaxed);
        for first in 0..READERS {
            scope.spawn(move || {
                let from = (first..DATASETS.len()).chain(0..first);
                for n in from.cycle().take_while(|_| goes_on()) {
                    let (reader, levels) = (reader(pool), open(DATASETS[n]));
                    for (level, expected) in levels.iter().zip(&expected[n]) {
                        assert!(read(&reader, level).unwrap() == *expected, "{}", DATASETS[n]);
                    }
                }
            });
        }
        // reads hold these locks for moments, so that few children would notice
        for call in HELD {
            scope.spawn(move || {
                while goes_on() {
                    call()
                }
            });
        }
        let failed = (0..FORKS).find(|n| {
            let (name, expected) = (DATASETS[n % DATASETS.len()], &expected[n % DATASETS.len()]);
            !in_child(|| {
                sync::enter();
                HELD.iter().for_each(|call| call());
                let (pool, levels) = (Pool::new(), open(name));
                let (reader, number) = (reader(&pool), n / DATASETS.len() % levels.len());
                // often enough for maps
                for _ in 0..3 {
                    if read(&reader, &levels[number])? != expected[number] {
                        return Err(format!("level {number} of {name} is another one"));
                    }
                }
                Ok(())
            })
        });
        stop.store(true, Ordering::Relaxed);
        assert_eq!(failed, None, "a child fails or waits for ever");
    });
}
