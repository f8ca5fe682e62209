//! The daemon and its commands end, and readers get an answer, although a source hangs: a thread that waits for it
//! cannot be killed.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{Read, Seek};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use nix::errno::Errno;
use nix::sys::signal::Signal;

use crate::support::faults::Fault;
use crate::support::faulty_folder::FaultyFolder;
use crate::support::slow_source::{NAME, SlowSource};
use crate::support::{
    Mount, comes_true, fixture, fuse_or_skip, has_stuck_thread, process_lives, read_directly, signal, skip, source_of,
    source_with, test_data, text, volfs, wait_until, within,
};

/// Generous: calls that hang do so until the end of the test.
const LIMIT: Duration = Duration::from_secs(20);

/// A healthy dataset and one that hangs, mounted.
struct Hung {
    mount: Mount,
    healthy: File,
    reader: JoinHandle<bool>,
    slow: SlowSource,
    _source: tempfile::TempDir,
}

/// Mounts a healthy dataset beside one that hangs, and waits until a thread of the daemon hangs for a reader.
fn hung() -> Option<Hung> {
    if !fuse_or_skip() {
        return None;
    }
    let source = source_with(&["v3_int8.zgy"]);
    let slow = SlowSource::at(&source.path().join("server"), fs::read(test_data("zgy/v3_int16.zgy")).unwrap());
    let mount = Mount::of(source.path())?;
    let hanging = mount.path("server").join(NAME).join("data/lod0.raw");
    assert!(read_directly(&hanging) == fixture("v3_int16.zgy").samples(0).unwrap());
    let healthy = directly(&mount.data("v3_int8.zgy", "lod0.raw"));
    let mut file = directly(&hanging);
    slow.gate.set_closed(true);
    let reader = thread::spawn(move || file.read_to_end(&mut Vec::new()).is_err());
    wait_until("a thread of the daemon hangs", || slow.gate.waiting() > 0);
    Some(Hung { mount, healthy, reader, slow, _source: source })
}

fn directly(path: &Path) -> File {
    File::options().read(true).custom_flags(nix::libc::O_DIRECT).open(path).unwrap()
}

impl Hung {
    /// Checks that readers of both datasets get an error, while the thread of the daemon still hangs.
    fn assert_readers_end(self) {
        // dropped in the reverse order: first of all the source answers again
        let Self { _source, mount, mut healthy, reader, slow } = self;
        let failed =
            within(
                LIMIT,
                move || {
                    while healthy.rewind().and_then(|()| healthy.read_to_end(&mut Vec::new())).is_ok() {}
                },
            );
        assert!(failed.is_some(), "a reader of the healthy dataset gets an error");
        assert!(comes_true(LIMIT, || reader.is_finished()), "the reader of the hung dataset hangs");
        assert!(reader.join().unwrap(), "the reader of the hung dataset gets an error");
        // readers are answered a moment before the daemon ends
        assert!(comes_true(LIMIT, || has_stuck_thread(mount.pid())), "the daemon still waits for the source");
        assert!(slow.gate.waiting() > 0, "the daemon still waits for the source");
        let output = mount.umount(&["--lazy"]);
        assert!(output.status.success() || !mount.is_mounted(), "{}", text(&output.stderr));
        assert!(!mount.is_mounted());
        slow.gate.set_closed(false);
        wait_until("the daemon has gone", || !process_lives(mount.pid()) && !has_stuck_thread(mount.pid()));
    }
}

#[test]
fn readers_of_a_killed_daemon_with_a_hung_source_get_an_error() {
    let Some(hung) = hung() else { return };
    signal(hung.mount.pid(), Signal::SIGKILL).unwrap();
    hung.assert_readers_end();
}

#[test]
fn readers_of_a_terminated_daemon_with_a_hung_source_get_an_error() {
    let Some(hung) = hung() else { return };
    signal(hung.mount.pid(), Signal::SIGTERM).unwrap();
    hung.assert_readers_end();
}

#[test]
fn the_end_of_a_killed_daemon_is_logged_and_a_remount_works() {
    let Some(mount) = Mount::of(test_data("zgy")) else { return };
    signal(mount.pid(), Signal::SIGKILL).unwrap();
    wait_until("the end is logged", || mount.log().contains("ended without unmounting"));
    // a request that is in flight when the kernel closes the last file of the daemon fails in another way
    wait_until("the mount is dead, not gone", || {
        fs::read_dir(mount.point()).is_err_and(|error| error.raw_os_error() == Some(Errno::ENOTCONN as i32))
    });
    let again = volfs().arg("mount").arg(test_data("zgy")).arg(mount.point()).output().unwrap();
    assert!(again.status.success(), "{}", text(&again.stderr));
    assert!(mount.data("v3_int8.zgy", "lod0.raw").exists());
    assert!(mount.umount(&[]).status.success());
}

#[test]
fn mounting_ends_although_the_source_begins_to_hang() {
    if !fuse_or_skip() {
        return;
    }
    let source = source_with(&["v3_int8.zgy"]);
    let slow = SlowSource::at(&source.path().join("server"), Vec::new());
    slow.gate.set_closed(true);
    let folder = tempfile::tempdir().unwrap();
    let point = folder.path().join("mount");
    fs::create_dir(&point).unwrap();
    let mut command = volfs();
    command.arg("mount").arg(source.path()).arg(&point);
    let output = within(LIMIT, move || command.output().unwrap());
    let healthy = point.join("v3_int8.zgy/data/lod0.raw");
    let samples = within(LIMIT, move || fs::read(healthy).unwrap());
    slow.gate.set_closed(false);
    assert!(volfs().arg("umount").arg(&point).status().unwrap().success());
    let output = output.expect("volfs mount ends");
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert_eq!(text(&output.stdout).lines().count(), 1);
    assert!(samples.expect("the healthy dataset is read") == fixture("v3_int8.zgy").samples(0).unwrap());
}

#[test]
fn mounting_gives_up_a_source_that_hangs_from_the_start() {
    if !fuse_or_skip() {
        return;
    }
    if std::env::var_os("VOLFS_SLOW_TESTS").is_none() {
        return skip("takes 30 s; VOLFS_SLOW_TESTS=1 runs it");
    }
    let folder = tempfile::tempdir().unwrap();
    let point = folder.path().join("mount");
    fs::create_dir(&point).unwrap();
    let slow = SlowSource::at(&folder.path().join("source"), Vec::new());
    slow.gate.set_closed(true);
    let mut command = volfs();
    command.current_dir(folder.path()).args(["mount", "source", "mount"]);
    let output = within(2 * LIMIT, move || command.output().unwrap()).expect("volfs mount ends");
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stderr).contains("does not answer within 30 s"), "{}", text(&output.stderr));
}

/// Returns whether a thread of a daemon waits in a message to the kernel, which takes so long only if it drops pages that
/// somebody reads.
fn drops_pages(pid: i32) -> bool {
    let waiting = || -> BTreeSet<PathBuf> {
        let threads = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
        let waits = |thread: &PathBuf| {
            let call = fs::read_to_string(thread.join("syscall")).unwrap_or_default();
            call.split(' ').next() == Some(&nix::libc::SYS_writev.to_string())
        };
        threads.map(|thread| thread.path()).filter(waits).collect()
    };
    let before = waiting();
    thread::sleep(Duration::from_millis(200));
    !before.is_disjoint(&waiting())
}

#[test]
fn readers_get_an_error_although_pages_are_dropped_when_the_daemon_is_terminated() {
    // just written, so the daemon refreshes it after 1.5, 3, 6 seconds, and drops its pages
    let folder = source_of("wkw", &["bare"]);
    let Some(source) = FaultyFolder::of(folder.path()) else { return };
    let Some(mount) = Mount::of(&source.path) else { return };
    let mut file = File::open(mount.path("bare/color/lod0.raw")).unwrap();
    // the data, and not the folders and headers that a refresh reads
    source.faults.below("/x", Fault::Hang);
    let reader = thread::spawn(move || file.read(&mut [0; 4096]).is_err());
    wait_until("the source hangs", || source.faults.waiting() > 0);
    if !comes_true(LIMIT, || drops_pages(mount.pid())) {
        return skip("this system does not tell what a thread waits for");
    }
    signal(mount.pid(), Signal::SIGTERM).unwrap();
    let ended = comes_true(LIMIT, || reader.is_finished());
    assert!(source.faults.waiting() > 0);
    source.faults.end();
    assert!(ended, "the reader hangs");
    assert!(reader.join().unwrap(), "the reader gets an error");
    wait_until("the daemon has gone", || !process_lives(mount.pid()) && !has_stuck_thread(mount.pid()));
}
