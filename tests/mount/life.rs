//! How a mount begins, what the daemon inherits, where a mount may be, and how it ends: by umount, by signals, with its
//! mount point, or because the daemon was killed. `scripts/stress/life.py` does the latter hundreds of times.

use std::fs::{self, File};
use std::io::Read;
use std::os::fd::AsRawFd;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use nix::mount::{MsFlags, mount};
use nix::sys::signal::Signal;

use crate::support::hanging::Hanging;
use crate::support::{
    Mount, Point, SOON, comes_true, fixture, fuse_or_skip, in_mount_namespace, json, mounted_name, one_line_of_failure,
    process_lives, program, signal, skip, source_with, stop, test_data, text, volfs, wait_for, wait_until,
};

#[test]
fn mounting_returns_when_the_mount_answers_and_prints_one_line() {
    let source = source_with(&["v3_int8.zgy"]);
    let Some(mount) = Mount::of(source.path()) else { return };
    let output = mount.output();
    let stdout = text(&output.stdout);
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(stdout.lines().count(), 1, "{stdout}");
    assert!(stdout.contains(mount.point().to_str().unwrap()), "{stdout}");
    assert_eq!(text(&output.stderr), "");
    assert!(mount.data("v3_int8.zgy", "lod0.raw").exists());
    assert_ne!(mount.pid(), i32::try_from(std::process::id()).unwrap());
    // the first dataset is named only if it is found in time
    let first = mount.data("v3_int8.zgy", "lod0.npy");
    assert!(!stdout.contains("np.load") || stdout.contains(first.to_str().unwrap()), "{stdout}");
    assert_eq!(mounted_name(mount.point()), Some(format!("volfs:{}", source.path().display())));
    for descriptor in 0..3 {
        let target = fs::read_link(format!("/proc/{}/fd/{descriptor}", mount.pid())).unwrap();
        assert_eq!(target, Path::new("/dev/null"), "descriptor {descriptor}");
    }
    let folder = fs::read_link(format!("/proc/{}/cwd", mount.pid())).unwrap();
    assert_eq!(folder, Path::new("/"), "the daemon keeps no folder busy");
}

#[test]
fn a_relative_source_becomes_absolute() {
    let Some(point) = Point::new() else { return };
    let source = source_with(&["v3_int8.zgy"]);
    point.mounts(&format!("cd {}", source.path().display()), &[".".as_ref()]);
    assert_eq!(mounted_name(point.path()), Some(format!("volfs:{}", source.path().display())));
    assert!(point.samples("v3_int8.zgy").is_ok());
    point.unmount();
}

#[test]
fn a_mount_whose_line_cannot_be_printed_is_undone() {
    let Some(point) = Point::new() else { return };
    let source = source_with(&["v3_int8.zgy"]);
    let line = point.refuses("exec > /dev/full", &[source.path().as_ref()]);
    assert!(line.contains("No space left"), "{line}");
}

#[test]
fn a_foreground_mount_ends_with_sigint_and_sigterm() {
    for ending in [Signal::SIGINT, Signal::SIGTERM] {
        let source = source_with(&["v3_int8.zgy"]);
        let Some(mut mount) = Mount::in_foreground(source.path(), &[]) else { return };
        let mut child = mount.take_foreground();
        assert_eq!(mount.pid(), i32::try_from(child.id()).unwrap(), "it stays in the foreground");
        assert!(mount.data("v3_int8.zgy", "lod0.raw").exists());
        signal(mount.pid(), ending).unwrap();
        let status = wait_for(&mut child);
        assert_eq!(status.code(), Some(0), "{ending}");
        assert!(!mount.is_mounted(), "{ending}");
    }
}

#[test]
fn mounting_twice_at_one_mount_point_is_an_error() {
    let source = source_with(&["v3_int8.zgy"]);
    let Some(mount) = Mount::of(source.path()) else { return };
    let output = volfs().arg("mount").arg(source.path()).arg(mount.point()).output().unwrap();
    one_line_of_failure(&output, 1);
    assert!(mount.data("v3_int8.zgy", "lod0.raw").exists(), "the first mount still answers");
}

#[test]
fn a_mount_right_after_an_unmount_stays() {
    let Some(mount) = Mount::of(test_data("zgy")) else { return };
    for _ in 0..10 {
        // umount(8) does not wait for the daemon, which may still be ending when the next mount begins
        let gone = match nix::unistd::geteuid().is_root() {
            true => Command::new("umount").arg(mount.point()).status(),
            false => Command::new("fusermount3").arg("-u").arg(mount.point()).status(),
        };
        assert!(gone.unwrap().success());
        mount.mount_again(test_data("zgy"));
        assert!(mount.data("v3_int8.zgy", "lod0.raw").exists());
    }
    mount.unmount();
}

#[test]
fn a_daemon_that_ends_after_its_mount_takes_no_other_mount_away() {
    let source = test_data("zgy");
    for ending in [Signal::SIGTERM, Signal::SIGKILL] {
        let Some(first) = Mount::of(&source) else { return };
        if !nix::unistd::geteuid().is_root() {
            return skip("only root unmounts without asking the daemon");
        }
        stop(first.pid());
        // the process that reads ahead may be looking at the mount
        wait_until("the mount is not busy", || nix::mount::umount(first.point()).is_ok());
        // it gets the device number of the first, unless another test is faster
        let second = Mount::of(&source).unwrap();
        signal(first.pid(), ending).unwrap();
        // a daemon that was killed may be gone already
        let _ = signal(first.pid(), Signal::SIGCONT);
        first.wait_for_end();
        assert!(second.data("v3_int8.zgy", "lod0.raw").exists(), "{ending}");
        second.unmount();
    }
}

#[test]
fn an_inherited_descriptor_is_closed() {
    let Some(point) = Point::new() else { return };
    let (source, folder) = (source_with(&["v3_int8.zgy"]), tempfile::tempdir().unwrap());
    let held = folder.path().join("held");
    point.mounts(&format!("exec 7>{}", held.display()), &[source.path().as_ref()]);
    let mut descriptors = fs::read_dir(format!("/proc/{}/fd", point.pid())).unwrap();
    let holds = descriptors.any(|entry| fs::read_link(entry.unwrap().path()).is_ok_and(|target| target == held));
    point.unmount();
    assert!(!holds, "the daemon holds a file that it has nothing to do with");
}

/// Checks that a mount is refused, and returns the reason.
fn refused(source: &Path, point: &Path) -> String {
    let output = volfs().arg("mount").arg(source).arg(point).output().unwrap();
    let line = one_line_of_failure(&output, 1);
    assert_eq!(mounted_name(point), None);
    line
}

#[test]
fn a_mount_point_has_to_be_a_folder() {
    let source = source_with(&["v3_int8.zgy"]);
    let folder = tempfile::tempdir().unwrap();
    let missing = folder.path().join("missing");
    let line = refused(source.path(), &missing);
    assert!(line.contains(missing.to_str().unwrap()), "{line}");
    let file = folder.path().join("file");
    fs::write(&file, "").unwrap();
    let line = refused(source.path(), &file);
    assert!(line.contains(file.to_str().unwrap()), "{line}");
}

#[test]
fn a_mount_point_inside_the_source_is_refused() {
    let source = source_with(&["v3_int8.zgy"]);
    let inside = source.path().join("deep/inside");
    fs::create_dir_all(&inside).unwrap();
    refused(source.path(), &inside);
    refused(source.path(), source.path());
    let elsewhere = tempfile::tempdir().unwrap();
    let link = elsewhere.path().join("link");
    symlink(&inside, &link).unwrap();
    refused(source.path(), &link);
}

#[test]
fn a_source_has_to_be_a_folder_or_a_volume() {
    let folder = tempfile::tempdir().unwrap();
    let point = folder.path().join("mount");
    fs::create_dir(&point).unwrap();
    let notes = folder.path().join("notes.txt");
    fs::write(&notes, "not a volume").unwrap();
    for source in [folder.path().join("missing"), notes] {
        let line = refused(&source, &point);
        assert!(line.contains(source.to_str().unwrap()), "{line}");
    }
}

#[test]
fn a_mount_point_may_hold_files() {
    let Some(point) = Point::new() else { return };
    let (source, hidden) = (source_with(&["v3_int8.zgy"]), point.path().join("hidden"));
    fs::write(&hidden, "").unwrap();
    let output = point.mount("true", &[source.path().as_ref()]);
    if output.status.success() {
        assert!(point.samples("v3_int8.zgy").is_ok());
        point.unmount();
    } else {
        one_line_of_failure(&output, 1);
    }
    assert!(hidden.exists());
}

#[test]
fn a_daemon_unmounts_at_sigterm_and_umount_returns_when_the_mount_has_gone() {
    for by_signal in [true, false] {
        let Some(mount) = Mount::of(test_data("zgy")) else { return };
        if by_signal {
            signal(mount.pid(), Signal::SIGTERM).unwrap();
            mount.wait_for_end();
        } else {
            mount.unmount();
        }
        assert!(!mount.is_mounted());
        mount.wait_for_end();
    }
}

#[test]
fn umount_of_what_is_no_mount_of_volfs_fails() {
    let folder = tempfile::tempdir().unwrap();
    for place in [folder.path(), Path::new("/proc")] {
        let line = one_line_of_failure(&volfs().arg("umount").arg(place).output().unwrap(), 1);
        assert!(line.contains(place.to_str().unwrap()), "{line}");
    }
    assert!(Path::new("/proc/self/status").exists());
}

#[test]
fn a_mount_in_use_is_not_unmounted_and_the_process_is_named() {
    let source = source_with(&["v3_int8.zgy"]);
    let Some(mount) = Mount::of(source.path()) else { return };
    let file = File::open(mount.data("v3_int8.zgy", "lod0.raw")).unwrap();
    let output = mount.umount(&[]);
    assert_eq!(output.status.code(), Some(1));
    let stderr = text(&output.stderr);
    assert!(stderr.contains(&std::process::id().to_string()), "the process that uses it is not named: {stderr}");
    assert!(mount.data("v3_int8.zgy", "lod0.raw").exists(), "the mount still answers");
    drop(file);
    mount.unmount();
}

#[test]
fn a_lazy_umount_does_not_wait_for_readers() {
    let source = source_with(&["v3_int8.zgy"]);
    let Some(mount) = Mount::of(source.path()) else { return };
    let mut file = File::open(mount.data("v3_int8.zgy", "lod0.raw")).unwrap();
    let output = mount.umount(&["--lazy"]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert!(!mount.is_mounted());
    let mut samples = Vec::new();
    file.read_to_end(&mut samples).unwrap();
    assert!(samples == fixture("v3_int8.zgy").samples(0).unwrap(), "open files stay readable");
    drop(file);
    mount.wait_for_end();
}

#[test]
fn requests_that_arrive_as_the_connection_ends_are_no_error() {
    let source = source_with(&["v3_int8.zgy"]);
    // one thread of the daemon is handed a request in the moment of the end in about one round of six
    for _ in 0..20 {
        let Some(mut mount) = Mount::in_foreground(source.path(), &[]) else { return };
        let open = || File::open(mount.data("v3_int8.zgy", "lod0.raw")).unwrap();
        let files: Vec<File> = (0..200).map(|_| open()).collect();
        assert!(mount.umount(&["--lazy"]).status.success());
        drop(files);
        let ended = mount.take_foreground().wait_with_output().unwrap();
        assert!(ended.status.success(), "{}", text(&ended.stderr));
    }
}

#[test]
fn a_look_up_that_hangs_is_named_as_what_holds_the_mount() {
    let Some(hanging) = Hanging::new() else { return };
    let Hanging { mount, slow, .. } = &hanging;
    slow.gate.set_closed(true);
    let mut reader = Command::new("stat").arg(hanging.dataset().join("data")).spawn().unwrap();
    wait_until("the look-up hangs", || slow.gate.waiting() > 0);
    // it has no file open
    let named = format!("stat (process {}), which waits for an answer from it", reader.id());
    let mut line = String::new();
    let is_named = comes_true(SOON, || {
        line = text(&mount.umount(&[]).stderr);
        line.contains(&named)
    });
    // and cannot be killed
    reader.kill().unwrap();
    let killed = text(&mount.umount(&[]).stderr);
    slow.gate.set_closed(false);
    reader.wait().unwrap();
    assert!(is_named, "{line}");
    assert!(killed.contains(&named), "{killed}");
    let unmounted = mount.umount(&[]);
    assert!(unmounted.status.success(), "{}", text(&unmounted.stderr));
}

#[test]
fn a_mount_that_another_namespace_sees_is_not_said_to_wait_for_its_source() {
    let Some(mount) = Mount::of(test_data("demo")) else { return };
    let Some(mut other) = in_mount_namespace("echo && exec sleep 60", mount.point()) else { return };
    let mut other = other.stdout(Stdio::piped()).spawn().unwrap();
    other.stdout.as_mut().unwrap().read_exact(&mut [0]).unwrap();
    let output = mount.umount(&[]);
    other.kill().unwrap();
    other.wait().unwrap();
    let line = one_line_of_failure(&output, 1);
    assert!(line.contains("is unmounted here, but") && line.contains("of its mount namespace"), "{line}");
    assert!(!mount.is_mounted());
    mount.wait_for_end();
}

#[test]
fn a_connection_that_the_caller_has_mounted_is_answered_until_it_is_unmounted() {
    if !fuse_or_skip() {
        return;
    }
    if !nix::unistd::geteuid().is_root() {
        return skip("only root may mount by itself");
    }
    let (source, point) = (source_with(&["v3_int8.zgy"]), tempfile::tempdir().unwrap());
    let device = File::options().read(true).write(true).open("/dev/fuse").unwrap();
    let data = format!("fd={},rootmode=40000,user_id=0,group_id=0", device.as_raw_fd());
    let flags = MsFlags::MS_RDONLY | MsFlags::MS_NODEV | MsFlags::MS_NOSUID;
    mount(Some("caller"), point.path(), Some("fuse"), flags, Some(data.as_str())).unwrap();
    let mut daemon = Command::new("sh");
    daemon.args(["-c", "exec 5<&0 </dev/null; exec \"$0\" mount \"$1\" /dev/fd/5"]).arg(program()).arg(source.path());
    let mut daemon = daemon.stdin(device).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let samples = fs::read(point.path().join("v3_int8.zgy/data/lod0.raw"));
    let status = json(point.path().join(".volfs/status.json"));
    // programs of other tests look at every mount
    wait_until("the mount is not used", || nix::mount::umount(point.path()).is_ok());
    assert!(wait_for(&mut daemon).success());
    assert!(samples.unwrap() == fixture("v3_int8.zgy").samples(0).unwrap());
    assert_eq!(status["pid"], daemon.id());
}

#[test]
fn what_is_no_connection_to_fuse_is_not_answered() {
    let source = source_with(&["v3_int8.zgy"]);
    for (arguments, status, expected) in [
        (&["/dev/fd/1"][..], 1, "cannot mount at /dev/fd/1: it is no open connection to FUSE"),
        (&["/dev/fd/99", "--allow-other"], 2, "--allow-other has no effect on /dev/fd/99, which is mounted already"),
        (&["/dev/fd/99", "--exec", "true"], 2, "--exec needs a folder to mount on"),
    ] {
        let output = volfs().arg("mount").arg(source.path()).args(arguments).output().unwrap();
        let line = one_line_of_failure(&output, status);
        assert!(line.contains(expected), "{line}");
    }
}

#[test]
fn a_mount_whose_mount_point_was_moved_is_unmounted_at_sigterm() {
    let Some(mount) = Mount::of(test_data("zgy")) else { return };
    let before = mount.point().parent().unwrap();
    let after = before.with_extension("moved");
    fs::rename(before, &after).unwrap();
    let samples = fs::read(after.join("mount/v3_int8.zgy/data/lod0.raw")).unwrap();
    signal(mount.pid(), Signal::SIGTERM).unwrap();
    mount.wait_for_end();
    let left = mounted_name(&after.join("mount"));
    if left.is_some() {
        let _ = volfs().arg("umount").arg(after.join("mount")).output();
    }
    fs::remove_dir_all(&after).unwrap();
    assert_eq!(left, None, "the mount is taken away where it is now");
    assert!(samples == fixture("v3_int8.zgy").samples(0).unwrap());
}

#[test]
fn a_mount_point_that_vanishes_ends_the_mount() {
    let source = source_with(&["v3_int8.zgy"]);
    let Some(mount) = Mount::of(source.path()) else { return };
    let mut open = File::open(mount.data("v3_int8.zgy", "lod0.raw")).unwrap();
    // a folder on which something is mounted elsewhere can be removed, which takes the mount away
    let Some(mut vanish) = in_mount_namespace("umount --lazy \"$0\" && rmdir \"$0\"", mount.point()) else { return };
    assert!(vanish.status().unwrap().success());
    assert!(!mount.is_mounted() && !mount.point().exists());
    let mut samples = Vec::new();
    open.read_to_end(&mut samples).unwrap();
    assert!(samples == fixture("v3_int8.zgy").samples(0).unwrap(), "open files stay readable");
    drop(open);
    mount.wait_for_end();
    assert!(mount.log().contains("unmounted"), "{}", mount.log());
}

#[test]
fn a_mount_lives_as_long_as_the_last_namespace_that_has_it() {
    let source = source_with(&["v3_int8.zgy"]);
    let Some(mount) = Mount::of(source.path()) else { return };
    let script = "touch \"$0.begun\"; read line; cat \"$0/v3_int8.zgy/data/lod0.raw\"; read line";
    let Some(mut other) = in_mount_namespace(script, mount.point()) else { return };
    let mut other = other.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let begun = mount.point().with_extension("begun");
    wait_until("the namespace is there", || begun.exists());
    nix::mount::umount(mount.point()).unwrap();
    assert!(!mount.is_mounted());
    let mut input = other.stdin.take().unwrap();
    std::io::Write::write_all(&mut input, b"\n").unwrap();
    let truth = fixture("v3_int8.zgy").samples(0).unwrap();
    let mut samples = vec![0; truth.len()];
    other.stdout.take().unwrap().read_exact(&mut samples).unwrap();
    assert!(samples == truth, "the other namespace still reads");
    assert!(process_lives(mount.pid()));
    drop(input);
    other.wait().unwrap();
    mount.wait_for_end();
    fs::remove_file(begun).unwrap();
}

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
        mount.mount_again(test_data("zgy"));
        pid = i32::try_from(json(mount.path(".volfs/status.json"))["pid"].as_i64().unwrap()).unwrap();
    }
    mount.unmount();
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
