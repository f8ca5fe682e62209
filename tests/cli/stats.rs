//! `volfs stats`.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::Stdio;

use nix::sys::signal::Signal;
use serde_json::Value;

use super::{output, run};
use crate::support::{Mount, one_line_of_failure, signal, source_with, test_data, text, volfs, wait_for, wait_until};

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
    assert!(!printed.contains("pauses"), "{printed}");
    assert!(printed.contains("\nDatasets\n") && printed.ends_with("  north.zgy\n"), "{printed}");
    let inside = text(&output("stats", &[], &mount.path("north.zgy/data/lod0.raw")));
    assert!(inside.starts_with(mount.point().to_str().unwrap()), "{inside}");
    // all mounts of this machine, also those of other tests
    let all = text(&volfs().arg("stats").output().unwrap().stdout);
    let row = all.lines().find(|line| line.contains(mount.point().to_str().unwrap())).unwrap();
    assert!(row.contains(test_data("demo").to_str().unwrap()), "{all}");
}

#[test]
fn rates_are_printed_after_each_interval() {
    let Some(mount) = Mount::of(test_data("demo")) else { return };
    let mut watch = volfs();
    watch.args(["stats", "--watch=0.5", "--json"]).arg(mount.point()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut watch = watch.spawn().unwrap();
    let mut lines = BufReader::new(watch.stdout.take().unwrap()).lines();
    let mut next = || serde_json::from_str::<Value>(&lines.next().unwrap().unwrap()).unwrap();
    let idle = next();
    // other tests may ask all mounts for their status
    assert!(idle["increase"]["bytes_read"].as_u64().unwrap() < 64 << 10, "{idle}");
    let samples = fs::read(mount.data("north.zgy", "lod1.raw")).unwrap();
    let (mut bytes, mut bricks, mut seconds, mut of_dataset) = (0, 0, 0.0, 0);
    while bytes < samples.len() as u64 {
        let line = next();
        for dataset in line["datasets"].as_array().unwrap() {
            assert_eq!(dataset["path"], "north.zgy");
            of_dataset += dataset["increase"]["bytes_read"].as_u64().unwrap();
        }
        bytes += line["increase"]["bytes_read"].as_u64().unwrap();
        bricks += line["increase"]["bricks_decoded"].as_u64().unwrap();
        seconds += line["seconds"].as_f64().unwrap();
        assert!(seconds < 30.0, "{line}");
    }
    assert!(bricks > 0 && bricks <= mount.counter("bricks_decoded"), "{bricks}");
    assert!(of_dataset >= samples.len() as u64, "{of_dataset}");
    assert_eq!(mount.umount(&[]).status.code(), Some(0));
    assert_eq!(wait_for(&mut watch).code(), Some(1), "the mount is gone");
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
    let mut watch = volfs();
    watch.args(["stats", "--watch=0.2"]).arg(mount.point()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut watch = watch.spawn().unwrap();
    let mut lines = BufReader::new(watch.stdout.take().unwrap()).lines();
    let mut seen = |wanted: &str| assert!(lines.any(|line| line.unwrap().contains(wanted)), "no more lines: {wanted}");
    seen("0/s");
    signal(mount.pid(), Signal::SIGSTOP).unwrap();
    // a thread that is not stopped yet could accept a request and then stop; the client could not even be killed
    wait_until("all threads of the daemon are stopped", || {
        let threads = fs::read_dir(format!("/proc/{}/task", mount.pid())).unwrap();
        let state = |thread: fs::DirEntry| fs::read_to_string(thread.path().join("status")).unwrap_or_default();
        threads.flatten().all(|thread| state(thread).contains("T (stopped)"))
    });
    // takes the five seconds that the command itself waits for an answer
    let stopped = run("stats", &[], mount.point());
    seen("no answer");
    signal(mount.pid(), Signal::SIGCONT).unwrap();
    let line = one_line_of_failure(&stopped, 1);
    assert!(line.contains("did not answer within"), "{line}");
    seen("0/s");
    signal(mount.pid(), Signal::SIGKILL).unwrap();
    wait_until("the mount is dead", || fs::read_dir(mount.point()).is_err());
    assert_eq!(wait_for(&mut watch).code(), Some(1), "the mount is dead");
    let line = one_line_of_failure(&run("stats", &[], mount.point()), 1);
    assert!(line.contains(&format!("died; to clear it type: volfs umount {}", mount.point().display())), "{line}");
    let findings = text(&volfs().arg("doctor").output().unwrap().stdout);
    let point = mount.point().display();
    assert!(findings.contains(&format!("note     the daemon of the mount at {point} died\n")), "{findings}");
    assert!(findings.contains(&format!("volfs umount {point}\n")), "{findings}");
}
