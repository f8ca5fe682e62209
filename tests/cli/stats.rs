//! `volfs stats`.

use std::fs;
use std::path::Path;

use nix::sys::signal::Signal;
use serde_json::Value;

use super::{output, run};
use crate::support::{Mount, one_line_of_failure, signal, source_with, test_data, text, volfs, wait_until};

#[test]
fn the_counters_of_a_mount_are_shown() {
    let Some(mount) = Mount::with(test_data("demo"), &["--threads", "2", "--cache-size", "64MiB"]) else { return };
    let samples = fs::read(mount.data("north.zgy", "lod1.raw")).unwrap();
    let printed = text(&output("stats", &[], mount.point()));
    let row = |label: &str| {
        printed.lines().find_map(|line| line.trim().strip_prefix(label)).unwrap_or_else(|| panic!("{printed}")).trim()
    };
    assert!(printed.starts_with(mount.point().to_str().unwrap()), "{printed}");
    assert_eq!(row("source"), test_data("demo").to_str().unwrap());
    assert!(row("daemon").ends_with(&format!("process {}", mount.pid())), "{printed}");
    assert_eq!(
        row("options"),
        "threads 2, log file ".to_owned() + mount.status()["options"]["log_file"].as_str().unwrap()
    );
    assert!(row("held").contains("of 64.00 MiB"), "{printed}");
    assert!(row("decoded").starts_with("2,"), "{printed}");
    assert_eq!(row("errors"), "none");
    let found: Value = serde_json::from_slice(&output("stats", &["--json"], mount.point())).unwrap();
    assert_eq!((&found["pid"], &found["options"]), (&mount.pid().into(), &mount.status()["options"]));
    assert!(found["counters"]["bytes_read"].as_u64().unwrap() >= samples.len() as u64);
    let line = one_line_of_failure(&run("stats", &[], &mount.path("north.zgy")), 1);
    assert!(line.contains(&format!("the mount around it is at {}", mount.point().display())), "{line}");
}

#[test]
fn stats_of_anything_but_a_mount_of_volfs_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let line = one_line_of_failure(&run("stats", &[], folder.path()), 1);
    assert!(line.contains("nothing is mounted at"), "{line}");
    let line = one_line_of_failure(&run("stats", &[], Path::new("/proc")), 1);
    assert!(line.contains("/proc is a mount of proc, not of volfs"), "{line}");
    let line = one_line_of_failure(&run("stats", &[], &folder.path().join("none")), 1);
    assert!(line.contains("cannot find"), "{line}");
}

#[test]
fn dead_and_stopped_mounts_are_distinguished() {
    let source = source_with(&["v3_int8.zgy"]);
    let Some(mount) = Mount::of(source.path()) else { return };
    signal(mount.pid(), Signal::SIGSTOP).unwrap();
    // a thread that is not stopped yet could accept a request and then stop; the client could not even be killed
    wait_until("all threads of the daemon are stopped", || {
        let threads = fs::read_dir(format!("/proc/{}/task", mount.pid())).unwrap();
        let state = |thread: fs::DirEntry| fs::read_to_string(thread.path().join("status")).unwrap_or_default();
        threads.flatten().all(|thread| state(thread).contains("T (stopped)"))
    });
    // takes the five seconds that the command itself waits for an answer
    let stopped = run("stats", &[], mount.point());
    signal(mount.pid(), Signal::SIGCONT).unwrap();
    let line = one_line_of_failure(&stopped, 1);
    assert!(line.contains("did not answer within"), "{line}");
    signal(mount.pid(), Signal::SIGKILL).unwrap();
    wait_until("the mount is dead", || fs::read_dir(mount.point()).is_err());
    let line = one_line_of_failure(&run("stats", &[], mount.point()), 1);
    assert!(line.contains(&format!("died; to clear it type: volfs umount {}", mount.point().display())), "{line}");
    let findings = text(&volfs().arg("doctor").output().unwrap().stdout);
    let point = mount.point().display();
    assert!(findings.contains(&format!("note     the daemon of the mount at {point} died\n")), "{findings}");
    assert!(findings.contains(&format!("volfs umount {point}\n")), "{findings}");
}
