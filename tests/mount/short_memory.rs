//! A daemon whose memory runs out under load: requests fail, and the daemon goes on; or its end is told.

use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use nix::errno::Errno;
use rustix::process::{Pid, Resource, Rlimit, prlimit};

use crate::support::{Mount, SOON, comes_true, memory, process_lives, test_data, text, volfs, wait_until};

/// Files of several formats, with and without decoding, one of them computed.
const FILES: [&str; 8] = [
    "north.zgy/data/lod1.raw",
    "north.zgy/data/lod1.by-crossline.npy",
    "north.zgy/data/lod0.json",
    "north.zgy/dataset.json",
    "cells/color/lod0.npy",
    "cells/dataset.json",
    "cells/color/lod0.nhdr",
    "north.zgy/data/lod2.npy",
];

/// Limits the addresses of a process; `None` lifts the limit.
fn limit_addresses(pid: i32, bytes: Option<u64>) {
    let limit = Rlimit { current: bytes, maximum: None };
    prlimit(Pid::from_raw(pid), Resource::As, limit).unwrap();
}

/// Reads a file without the kernel's page cache.
fn read(path: &PathBuf) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    File::options().read(true).custom_flags(nix::libc::O_DIRECT).open(path)?.read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Has eight readers read all files, and list all folders, a few times. Each gets the right bytes or an error that
/// tells of memory or of a read that failed. Returns the numbers of right and failed reads.
fn load(mount: &Mount, wanted: &[Vec<u8>]) -> (usize, usize) {
    let (right, failed) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let count = |file: &str, outcome: io::Result<bool>| match outcome {
        Ok(is_right) => {
            assert!(is_right, "{file}: other bytes");
            right.fetch_add(1, Ordering::Relaxed);
        }
        Err(error) => {
            let errno = Errno::from_raw(error.raw_os_error().unwrap_or(0));
            assert!(matches!(errno, Errno::EIO | Errno::ENOMEM), "{file}: {error}");
            failed.fetch_add(1, Ordering::Relaxed);
        }
    };
    thread::scope(|scope| {
        for reader in 0..8 {
            let count = &count;
            scope.spawn(move || {
                for n in 0..FILES.len() {
                    let n = (n + reader) % FILES.len();
                    let bytes = read(&mount.path(FILES[n]));
                    if let Ok(bytes) = &bytes
                        && *bytes != wanted[n]
                        && bytes.len() < 100_000
                    {
                        eprintln!("{}\n{}", text(bytes), text(&wanted[n]));
                    }
                    count(FILES[n], bytes.map(|bytes| bytes == wanted[n]));
                    let folder = mount.path(FILES[n]).parent().unwrap().to_owned();
                    count("a folder", fs::read_dir(folder).map(|entries| entries.count() > 1));
                }
            });
        }
    });
    (right.into_inner(), failed.into_inner())
}

#[test]
fn without_addresses_requests_fail_and_the_daemon_goes_on() {
    let arguments = ["--cache-size", "64MiB"];
    let Some(first) = Mount::with(test_data("demo"), &arguments) else { return };
    let wanted = FILES.map(|file| read(&first.path(file)).unwrap());
    drop(first);
    let mut failures = 0;
    for free in [0, 8 << 20] {
        let Some(mount) = Mount::with(test_data("demo"), &arguments) else { return };
        limit_addresses(mount.pid(), Some(memory(mount.pid(), "VmSize") + free));
        let (_, failed) = load(&mount, &wanted);
        failures += failed;
        assert!(process_lives(mount.pid()), "the daemon has ended with {free} bytes left:\n{}", mount.log());
        if failed > 0 {
            wait_until("the log tells", || mount.log().to_lowercase().contains("no memory"));
        }
        limit_addresses(mount.pid(), None);
        // names and failures are remembered for a second
        assert!(comes_true(SOON, || load(&mount, &wanted).1 == 0), "all is right again:\n{}", mount.log());
        assert!(mount.umount(&[]).status.success());
    }
    assert!(failures > 0, "there was memory all the time");
}

/// Has eight readers read all files, and takes all addresses away as soon as one file was read: threads of the daemon
/// are just being started then.
fn load_while_addresses_end(mount: &Mount) {
    thread::scope(|scope| {
        for reader in 0..8 {
            scope.spawn(move || {
                for n in 0..FILES.len() {
                    let _ = read(&mount.path(FILES[(n + reader) % FILES.len()]));
                    // not even the reserve helps: its addresses are beyond the limit, too
                    if reader == 0 && n == 0 && process_lives(mount.pid()) {
                        limit_addresses(mount.pid(), Some(1 << 20));
                    }
                }
            });
        }
    });
}

#[test]
fn a_daemon_that_gets_no_memory_at_all_ends_with_a_line_in_the_log() {
    let Some(mount) = Mount::with(test_data("demo"), &["--cache-size", "64MiB"]) else { return };
    let wanted = FILES.map(|file| read(&mount.path(file)).unwrap());
    load_while_addresses_end(&mount);
    for _ in 0..20 {
        if !process_lives(mount.pid()) {
            break;
        }
        thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| FILES.iter().for_each(|file| drop(read(&mount.path(file)))));
            }
        });
    }
    if process_lives(mount.pid()) {
        limit_addresses(mount.pid(), None);
        assert!(comes_true(SOON, || load(&mount, &wanted).1 == 0), "all is right again:\n{}", mount.log());
        return;
    }
    wait_until("the end is logged", || mount.log().contains("ended without unmounting: no memory was left"));
    // an empty folder would look like a source without datasets
    let listed = fs::read_dir(mount.point()).unwrap_err();
    assert_eq!(listed.raw_os_error(), Some(Errno::ENOTCONN as i32));
    let again = volfs().arg("mount").arg(test_data("demo")).arg(mount.point()).output().unwrap();
    assert!(again.status.success(), "{}", text(&again.stderr));
    assert!(mount.umount(&[]).status.success());
}
