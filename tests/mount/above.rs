//! What stands above a mount: bind mounts, overlayfs with the mount as its lower layer, also while sources are replaced;
//! and readers while the daemon is stopped.

use std::fs::{self, File};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use nix::sys::signal::Signal;

use crate::support::{
    Mount, fixture, in_mount_namespace, process_lives, read_at, read_directly, signal, skip, source_with, stop,
    test_data, text, wait_until,
};

/// Runs a script in a mount namespace of its own, with the mount point as `$0`; returns whether it could be run there.
/// What it writes to standard error is the reason of a failure.
fn run_above(script: &str, mount: &Mount) -> Option<String> {
    let output = in_mount_namespace(&format!("set -eu; {script}"), mount.point())?.output().unwrap();
    assert!(output.status.success(), "{}{}", text(&output.stdout), text(&output.stderr));
    Some(text(&output.stdout))
}

/// Returns the path of a file with the samples of a fixture.
fn truth(folder: &Path, name: &str) -> String {
    let path = folder.join(name).with_extension("truth");
    fs::write(&path, fixture(name).samples(0).unwrap()).unwrap();
    path.to_str().unwrap().to_owned()
}

#[test]
fn a_bind_mount_reads_as_the_mount_does_also_of_one_folder_or_file() {
    let source = source_with(&["v3_int8.zgy", "v3_int16.zgy"]);
    let Some(mount) = Mount::of(source.path()) else { return };
    let scratch = tempfile::tempdir().unwrap();
    let (at, expected) = (scratch.path().display(), truth(scratch.path(), "v3_int8.zgy"));
    let script = format!(
        "mkdir {at}/all {at}/data; touch {at}/one
        mount --bind $0 {at}/all; mount -o remount,bind,ro,noexec {at}/all
        mount --bind $0/v3_int8.zgy/data {at}/data; mount --bind $0/v3_int8.zgy/data/lod0.raw {at}/one
        cmp {expected} {at}/all/v3_int8.zgy/data/lod0.raw; cmp {expected} {at}/data/lod0.raw; cmp {expected} {at}/one
        ! touch {at}/all/new 2>/dev/null
        # the mount goes; what is bound stays, and is not only what the kernel has in memory
        umount -l $0; test ! -e $0/v3_int8.zgy
        cmp {expected} {at}/data/lod0.raw; dd if={at}/one iflag=direct bs=1M status=none | cmp {expected} -
        cat {at}/all/v3_int16.zgy/data/lod0.npy >/dev/null; umount {at}/one {at}/data {at}/all"
    );
    run_above(&script, &mount);
    mount.unmount();
}

#[test]
fn a_bind_mount_shows_a_dataset_that_replaced_another_and_ends_with_the_daemon() {
    let source = source_with(&["v3_int8.zgy"]);
    let Some(mount) = Mount::of(source.path()) else { return };
    let scratch = tempfile::tempdir().unwrap();
    let (at, from) = (scratch.path().display(), source.path().display());
    let other = test_data("zgy/v3_int16.zgy");
    let expected = truth(scratch.path(), "v3_int16.zgy");
    let script = format!(
        "mkdir {at}/all; mount --bind $0 {at}/all; cat {at}/all/v3_int8.zgy/data/lod0.raw >/dev/null
        cp {} {from}/.new; mv {from}/.new {from}/v3_int8.zgy
        for try in $(seq 100); do cmp -s {expected} {at}/all/v3_int8.zgy/data/lod0.raw && break; sleep 0.1; done
        cmp {expected} {at}/all/v3_int8.zgy/data/lod0.raw
        kill -9 {}; for try in $(seq 100); do kill -0 {} 2>/dev/null || break; sleep 0.1; done
        ls {at}/all 2>&1 || true; umount {at}/all",
        other.display(),
        mount.pid(),
        mount.pid()
    );
    let Some(said) = run_above(&script, &mount) else { return };
    assert!(said.contains("not connected"), "{said}");
}

#[test]
fn overlayfs_has_a_mount_as_its_lower_layer() {
    let source = source_with(&["v3_int8.zgy", "v3_int16.zgy"]);
    let Some(mount) = Mount::of(source.path()) else { return };
    let scratch = tempfile::tempdir().unwrap();
    let (at, expected) = (scratch.path().display(), truth(scratch.path(), "v3_int8.zgy"));
    // the upper layer is on a disk of its own: what /tmp is may be an overlay itself, which cannot be an upper layer
    let script = format!(
        "mkdir {at}/over {at}/disk; mount -t tmpfs none {at}/disk; mkdir {at}/disk/upper {at}/disk/work
        if ! mount -t overlay none -o lowerdir=$0,upperdir={at}/disk/upper,workdir={at}/disk/work {at}/over 2>{at}/why; then
            echo skipped: $(cat {at}/why); exit 0; fi
        o={at}/over/v3_int8.zgy/data
        cmp {expected} $o/lod0.raw; test $(ls $o | wc -l) = $(ls $0/v3_int8.zgy/data | wc -l)
        # written to: the file is copied up, and the mount stays as it is
        cp {expected} {at}/more; printf more >>{at}/more; printf more >>$o/lod0.raw; cmp {at}/more $o/lod0.raw
        cmp {expected} $0/v3_int8.zgy/data/lod0.raw
        rm $o/lod0.json; test ! -e $o/lod0.json; test -e $0/v3_int8.zgy/data/lod0.json
        mv $o/lod0.npy $o/renamed.npy; cmp $0/v3_int8.zgy/data/lod0.npy $o/renamed.npy
        rm -r {at}/over/v3_int16.zgy; test ! -e {at}/over/v3_int16.zgy; mkdir {at}/over/v3_int16.zgy
        test $(ls {at}/over/v3_int16.zgy | wc -l) = 0; test -e $0/v3_int16.zgy/data
        umount {at}/over
        # and two of them, without an upper layer
        mkdir {at}/below; cp {at}/more {at}/below/more
        mount -t overlay none -o lowerdir={at}/below:$0 {at}/over
        cmp {at}/more {at}/over/more; cmp {expected} {at}/over/v3_int8.zgy/data/lod0.raw; umount {at}/over; umount {at}/disk"
    );
    let Some(said) = run_above(&script, &mount) else { return };
    if said.contains("skipped") {
        skip(&format!("overlayfs cannot be mounted: {said}"));
    }
    mount.unmount();
}

#[test]
fn a_stopped_daemon_delays_its_readers_who_can_be_killed_and_goes_on() {
    let source = source_with(&["v3_int8.zgy", "v3_int16.zgy"]);
    let Some(mount) = Mount::with(source.path(), &["--direct-io"]) else { return };
    let (path, expected) = (mount.data("v3_int8.zgy", "lod0.raw"), fixture("v3_int8.zgy").samples(0).unwrap());
    let open = File::open(&path).unwrap();
    assert!(read_at(&open, 0, expected.len()).unwrap() == expected);
    stop(mount.pid());
    let (sender, answer) = mpsc::channel();
    let length = expected.len();
    let reader = thread::spawn(move || sender.send(read_at(&open, 0, length)).unwrap());
    let other = mount.data("v3_int16.zgy", "lod0.raw");
    let mut killed = Command::new("cat").arg(&other).stdout(Stdio::null()).spawn().unwrap();
    assert!(answer.recv_timeout(Duration::from_millis(300)).is_err(), "a stopped daemon answers");
    // a process that waits for an answer can be killed: the kernel has not handed its question out
    killed.kill().unwrap();
    let pid = i32::try_from(killed.id()).unwrap();
    thread::spawn(move || killed.wait().unwrap());
    wait_until("the reader is gone", || !process_lives(pid));
    signal(mount.pid(), Signal::SIGCONT).unwrap();
    assert!(answer.recv_timeout(Duration::from_secs(60)).unwrap().unwrap() == expected);
    reader.join().unwrap();
    assert!(read_directly(&other) == fixture("v3_int16.zgy").samples(0).unwrap());
    mount.unmount();
}

#[test]
fn every_call_ends_as_on_a_read_only_file_system_of_the_kernel() {
    let source = source_with(&["v3_int8.zgy"]);
    let Some(mount) = Mount::of(source.path()) else { return };
    let (scratch, file) = (tempfile::tempdir().unwrap(), "v3_int8.zgy/data/lod0.raw");
    let folder = scratch.path().join("same");
    fs::create_dir_all(folder.join(file).parent().unwrap()).unwrap();
    fs::copy(mount.path(file), folder.join(file)).unwrap();
    let calls = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/mount/errors.py");
    let script = format!(
        "mount --bind {0} {0}; mount -o remount,bind,ro,noexec,nosuid,nodev {0}
        ! command -v python3 >/dev/null || python3 {1} $0 {0} {file}",
        folder.display(),
        calls.display()
    );
    let Some(told) = run_above(&script, &mount) else { return };
    if told.is_empty() {
        return skip("there is no Python");
    }
    let count = told.trim().strip_suffix(" calls").and_then(|count| count.parse::<u32>().ok());
    assert!(count.is_some_and(|count| count > 1000), "{told}");
}

#[test]
fn a_file_is_found_by_its_handle_when_the_kernel_has_forgotten_it_and_not_in_the_next_mount() {
    let source = source_with(&["v3_int8.zgy", "v3_int16.zgy"]);
    let Some(mount) = Mount::of(source.path()) else { return };
    if !nix::unistd::geteuid().is_root() || !Path::new("/proc/sys/vm/drop_caches").exists() {
        return skip("only root can open files by handle");
    }
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/mount/handles.py");
    let run = |further: &[&Path]| {
        let output = Command::new("python3").arg(&script).arg(mount.point()).args(further).output();
        let Ok(output) = output else { return None };
        assert!(output.status.success(), "{}", text(&output.stderr));
        Some(text(&output.stdout))
    };
    let Some(handles) = run(&[]) else { return skip("there is no Python") };
    let kept = source.path().join("handles.json");
    fs::write(&kept, &handles).unwrap();
    mount.unmount();
    mount.mount_again(source.path());
    let refused: usize = run(&[&kept]).unwrap().trim().parse().unwrap();
    assert!(refused > 20, "{refused}");
    mount.unmount();
}
