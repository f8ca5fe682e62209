//! Daemons that are killed or terminated under eight readers, and the mounts after them. `scripts/stress/life.py` does
//! the same hundreds of times.

use std::fs::{self, File};
use std::io::Read;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use nix::sys::signal::Signal;

use crate::support::{Mount, fixture, json, mounted_name, process_lives, signal, test_data, text, volfs, wait_until};

const READERS: usize = 8;
const ROUNDS: usize = 3;
const NAMES: [&str; 3] = ["v3_int8.zgy", "v3_int16.zgy", "v4_mixed.zgy"];

/// Reads a file again and again until that fails. Every sample that it gets must be right.
fn read_until_failure(path: &Path, truth: &[u8], bytes: &AtomicU64) {
    while let Ok(mut file) = File::open(path) {
        let mut samples = Vec::new();
        let read = file.read_to_end(&mut samples);
        assert!(truth.starts_with(&samples), "{}", path.display());
        bytes.fetch_add(samples.len() as u64, Ordering::Relaxed);
        if read.is_err() || samples.is_empty() {
            return;
        }
    }
}

fn end_under_readers(ending: Signal) {
    let Some(mount) = Mount::of(test_data("zgy")) else { return };
    let truths = NAMES.map(|name| fixture(name).samples(0).unwrap());
    let mut pid = mount.pid();
    for round in 0..ROUNDS {
        let bytes = AtomicU64::new(0);
        thread::scope(|scope| {
            for reader in 0..READERS {
                let (name, truth, bytes) = (NAMES[reader % NAMES.len()], &truths[reader % NAMES.len()], &bytes);
                let path = mount.data(name, "lod0.raw");
                scope.spawn(move || read_until_failure(&path, truth, bytes));
            }
            wait_until("all readers read", || bytes.load(Ordering::Relaxed) > 64 * truths[0].len() as u64);
            signal(pid, ending).unwrap();
        });
        wait_until("the daemon has gone", || !process_lives(pid));
        assert_eq!(mount.is_mounted(), ending == Signal::SIGKILL, "round {round}");
        if mount.is_mounted() && round % 2 == 0 {
            // otherwise the next mount clears it
            let output = mount.umount(&[]);
            assert!(output.status.success(), "{}", text(&output.stderr));
        }
        let again = volfs().arg("mount").arg(test_data("zgy")).arg(mount.point()).output().unwrap();
        assert!(again.status.success(), "{}", text(&again.stderr));
        pid = i32::try_from(json(mount.path(".volfs/status.json"))["pid"].as_i64().unwrap()).unwrap();
    }
    assert!(mount.umount(&[]).status.success());
    wait_until("the daemon has gone", || !process_lives(pid));
}

#[test]
fn daemons_that_are_killed_under_readers_leave_nothing() {
    end_under_readers(Signal::SIGKILL);
}

#[test]
fn daemons_that_are_terminated_under_readers_leave_nothing() {
    end_under_readers(Signal::SIGTERM);
}

#[test]
fn several_mounts_of_one_source_are_independent() {
    let source = test_data("zgy");
    let Some(first) = Mount::of(&source) else { return };
    let (second, third) = (Mount::of(&source).unwrap(), Mount::of(&source).unwrap());
    let truth = fixture("v3_int8.zgy").samples(0).unwrap();
    signal(first.pid(), Signal::SIGKILL).unwrap();
    assert!(second.umount(&["--lazy"]).status.success());
    assert!(fs::read(third.data("v3_int8.zgy", "lod0.raw")).unwrap() == truth);
    assert!(third.umount(&[]).status.success());
    wait_until("the first is dead", || fs::read_dir(first.point()).is_err());
    assert!(first.umount(&[]).status.success());
    assert_eq!(mounted_name(first.point()), None);
}
