//! The read-ahead process: it helps sequential readers, and no reader fails when it ends.

use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::thread;

use nix::sys::signal::Signal;

use crate::support::{Mount, process_lives, signal, test_data, volfs, wait_until};

const FILE: &str = "north.zgy/data/lod0.raw";

/// Returns the read-ahead process of a daemon, if it sleeps.
fn sleeping_read_ahead_process(daemon: i32) -> Option<i32> {
    let parent = |stat: &str| stat.rsplit_once(") ")?.1.split(' ').nth(1)?.parse::<i32>().ok();
    let is_it = |pid: &i32| {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        stat.contains("(volfs-ahead) S") && parent(&stat) == Some(daemon)
    };
    let processes = fs::read_dir("/proc").unwrap();
    processes.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok()).find(is_it)
}

fn read_ahead_process(mount: &Mount) -> i32 {
    let mut found = None;
    wait_until("the read-ahead process waits for requests", || {
        found = sleeping_read_ahead_process(mount.pid());
        found.is_some()
    });
    found.unwrap()
}

/// Reads the samples without a mount.
fn truth() -> Vec<u8> {
    let output = volfs().arg("cat").arg(test_data("demo/north.zgy")).output().unwrap();
    assert!(output.status.success());
    output.stdout
}

#[test]
fn the_pages_that_follow_are_read_before_the_reader_requests_them() {
    let Some(mount) = Mount::of(test_data("demo")) else { return };
    let before = mount.counter("bytes_read");
    let mut file = File::open(mount.path(FILE)).unwrap();
    let mut piece = vec![0; 512 << 10];
    file.read_exact(&mut piece).unwrap();
    // the kernel alone reads 128 KiB ahead, and requests 128 KiB more when the reader enters those
    wait_until("more is read than was requested", || mount.counter("bytes_read") - before > 1 << 20);
    let mut rest = Vec::new();
    file.read_to_end(&mut rest).unwrap();
    assert!([piece, rest].concat() == truth());
}

#[test]
fn many_readers_at_once_read_the_right_bytes() {
    let Some(mount) = Mount::with(test_data("demo"), &["--cache-size", "1MiB"]) else { return };
    let truth = truth();
    thread::scope(|scope| {
        for n in 0..8 {
            let (mount, truth) = (&mount, &truth);
            scope.spawn(move || {
                let mut file = File::open(mount.path(FILE)).unwrap();
                let mut at = 0;
                let mut piece = vec![0; 30_000 * (n + 1)];
                loop {
                    let read = file.read(&mut piece).unwrap();
                    if read == 0 {
                        break;
                    }
                    assert!(piece[..read] == truth[at..at + read], "reader {n} at {at}");
                    at += read;
                }
                assert_eq!(at, truth.len());
            });
        }
    });
    assert!(mount.umount(&[]).status.success());
}

#[test]
fn the_process_keeps_no_file_open_and_ends_with_the_daemon() {
    for ending in [None, Some(Signal::SIGTERM), Some(Signal::SIGKILL)] {
        let Some(mount) = Mount::of(test_data("demo")) else { return };
        let pid = read_ahead_process(&mount);
        assert!(fs::read(mount.path(FILE)).unwrap() == truth());
        wait_until("it has closed the file", || open_files(pid).len() == 4);
        let open = open_files(pid);
        assert_eq!(open.iter().filter(|file| *file == Path::new("/dev/null")).count(), 3, "{open:?}");
        assert!(open.iter().any(|file| file.to_string_lossy().starts_with("socket:")), "{open:?}");
        assert_eq!(fs::read_link(format!("/proc/{pid}/cwd")).unwrap(), Path::new("/"));
        match ending {
            None => assert!(mount.umount(&[]).status.success()),
            Some(ending) => signal(mount.pid(), ending).unwrap(),
        }
        wait_until("both have gone", || !process_lives(mount.pid()) && !process_lives(pid));
    }
}

fn open_files(pid: i32) -> Vec<PathBuf> {
    let entries = fs::read_dir(format!("/proc/{pid}/fd")).unwrap();
    entries.filter_map(|entry| fs::read_link(entry.unwrap().path()).ok()).collect()
}

#[test]
fn readers_work_without_the_process() {
    for ending in [Signal::SIGKILL, Signal::SIGSTOP] {
        let Some(mount) = Mount::of(test_data("demo")) else { return };
        let truth = truth();
        let pid = read_ahead_process(&mount);
        signal(pid, ending).unwrap();
        assert!(fs::read(mount.path(FILE)).unwrap() == truth, "{ending}");
        assert!(mount.umount(&[]).status.success(), "{ending}");
        wait_until("the daemon has gone", || !process_lives(mount.pid()));
        if ending == Signal::SIGSTOP {
            // it may have ended with the daemon, and be reaped already
            let _ = signal(pid, Signal::SIGCONT);
        }
        wait_until("it has gone", || !process_lives(pid));
    }
}

#[test]
fn a_mount_with_direct_io_has_no_process() {
    let Some(mount) = Mount::with(test_data("demo"), &["--direct-io"]) else { return };
    assert_eq!(sleeping_read_ahead_process(mount.pid()), None);
    assert!(fs::read(mount.path(FILE)).unwrap() == truth());
}
