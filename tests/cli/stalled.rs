//! Commands about a mount whose source, or whose daemon, does not answer: each ends, and says which of them it is.

use std::fs::{self, File};
use std::io::Read;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::process::Output;
use std::thread;
use std::time::Duration;

use nix::sys::signal::Signal;

use crate::support::slow_source::{NAME, SlowSource};
use crate::support::{
    Mount, comes_true, fixture, fuse_or_skip, one_line_of_failure, read_directly, signal, source_with, test_data, text,
    volfs, wait_until, within,
};

/// Longer than any command waits for an answer.
const LIMIT: Duration = Duration::from_secs(25);

/// Longer than it takes until a source is said to stall.
const STALL: Duration = Duration::from_secs(60);

/// Runs a command that must end, whatever hangs.
fn ended(arguments: &[&str], path: Option<&Path>) -> Output {
    let mut command = volfs();
    command.args(arguments).args(path);
    within(LIMIT, move || command.output().unwrap()).unwrap_or_else(|| panic!("{arguments:?} does not end"))
}

/// Returns what `volfs doctor` says of one mount.
fn findings(point: &Path) -> String {
    let printed = text(&ended(&["doctor"], None).stdout);
    let lines: Vec<&str> = printed.lines().collect();
    let at = lines.iter().position(|line| line.contains(point.to_str().unwrap()));
    at.map_or_else(String::new, |at| lines[at..(at + 2).min(lines.len())].join("\n"))
}

#[test]
fn a_source_that_stalls_is_named_by_every_command_and_in_the_log() {
    if !fuse_or_skip() {
        return;
    }
    let source = source_with(&["v3_int8.zgy"]);
    let bytes = fs::read(test_data("zgy/v3_int16.zgy")).unwrap();
    let slow = SlowSource::at(&source.path().join("server"), bytes);
    let Some(mount) = Mount::of(source.path()) else { return };
    let hanging = mount.path("server").join(NAME).join("data/lod0.raw");
    let truth = fixture("v3_int16.zgy").samples(0).unwrap();
    assert!(read_directly(&hanging) == truth);
    let open = || File::options().read(true).custom_flags(nix::libc::O_DIRECT).open(&hanging).unwrap();
    let files = [open(), open(), open()];
    assert!(mount.status()["source_stall"].is_null());
    slow.gate.set_closed(true);
    let read = |mut file: File| {
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).map(|_| bytes)
    };
    let readers = files.map(|file| thread::spawn(move || read(file)));
    wait_until("all readers hang", || slow.gate.waiting() == readers.len());

    let asked = ended(&["ls"], Some(mount.point()));
    assert_eq!(asked.status.code(), Some(1));
    let silent = format!("the source {}", source.path().display());
    let said = text(&asked.stderr);
    assert!(said.contains(&silent) && said.contains("does not answer within 10 s"), "{said}");
    for command in [&["info"] as &[&str], &["cat", "--force"]] {
        let line = one_line_of_failure(&ended(command, Some(&mount.path("server").join(NAME))), 1);
        assert!(line.contains(NAME) && line.contains("does not answer within 10 s"), "{command:?}: {line}");
    }

    let says = format!("the source (server/{NAME}) has not answered for ");
    assert!(comes_true(STALL, || !mount.status()["source_stall"].is_null()), "status.json does not tell");
    let stall = mount.status()["source_stall"].clone();
    assert_eq!((&stall["reads_waiting"], &stall["other_datasets"]), (&3.into(), &0.into()), "{stall}");
    assert_eq!(stall["dataset"], format!("server/{NAME}"), "{stall}");
    assert!(stall["seconds"].as_f64().unwrap() >= 30.0, "{stall}");
    let shown = text(&ended(&["stats"], Some(mount.point())).stdout);
    assert!(shown.contains(&says) && shown.contains("3 reads wait"), "{shown}");
    let all = text(&ended(&["stats"], None).stdout);
    assert!(all.contains(&format!("{}: {says}", mount.point().display())), "{all}");
    let found = findings(mount.point());
    assert!(found.contains("answers, but") && found.contains(&says) && found.contains("3 reads wait"), "{found}");
    assert!(found.contains(&format!("kill {}", mount.pid())), "{found}");
    let line = format!("server/{NAME}: the source has not answered for ");
    assert_eq!(mount.log().matches(&line).count(), 1, "{}", mount.log());
    assert!(mount.log().contains("; 3 reads wait"), "{}", mount.log());

    slow.gate.set_closed(false);
    for reader in readers {
        assert!(reader.join().unwrap().unwrap() == truth);
    }
    assert!(comes_true(LIMIT, || mount.status()["source_stall"].is_null()));
    let again = format!("server/{NAME}: the source answers again, after ");
    assert!(comes_true(LIMIT, || mount.log().matches(&again).count() == 1), "{}", mount.log());
    assert_eq!(mount.log().matches(&line).count(), 1, "{}", mount.log());
    assert!(mount.umount(&[]).status.success());
}

#[test]
fn a_source_that_does_not_answer_is_told_from_a_daemon_that_does_not() {
    if !fuse_or_skip() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let slow = SlowSource::at(&folder.path().join("source"), fs::read(test_data("zgy/v3_int8.zgy")).unwrap());
    let Some(mount) = Mount::of(folder.path().join("source")) else { return };
    let place = mount.point().display().to_string();
    assert_eq!(findings(mount.point()), "");
    slow.gate.set_closed(true);
    let found = findings(mount.point());
    assert!(found.contains(&format!("{place} answers, but its source")) && found.contains("does not"), "{found}");
    assert!(found.contains("check its file server"), "{found}");
    let shown = ended(&["stats"], Some(mount.point()));
    assert!(shown.status.success(), "{}", text(&shown.stderr));
    let line = one_line_of_failure(&ended(&["ls"], Some(mount.point())), 1);
    assert!(line.contains("does not answer within 10 s"), "{line}");
    slow.gate.set_closed(false);
    wait_until("the source answers again", || findings(mount.point()).is_empty());

    let pid = mount.pid();
    signal(pid, Signal::SIGSTOP).unwrap();
    let is_stopped = |thread: fs::DirEntry| {
        fs::read_to_string(thread.path().join("status")).unwrap_or_default().contains("T (stopped)")
    };
    // a thread that is not stopped yet could accept a request and then stop
    wait_until("all threads of the daemon are stopped", || {
        fs::read_dir(format!("/proc/{pid}/task")).unwrap().flatten().all(is_stopped)
    });
    let outcomes = [("stats", Some(mount.point())), ("umount", Some(mount.point()))]
        .map(|(command, path)| (command, ended(&[command], path)));
    let (found, listed) = (findings(mount.point()), ended(&["ls"], Some(mount.point())));
    let all = text(&ended(&["stats"], None).stdout);
    signal(pid, Signal::SIGCONT).unwrap();
    let remedy = format!("its daemon (process {pid}) is stopped; to continue it type: kill -CONT {pid}");
    for (command, outcome) in outcomes {
        let line = one_line_of_failure(&outcome, 1);
        assert!(line.contains(&remedy), "{command}: {line}");
    }
    assert!(found.contains(&format!("the daemon of the mount at {place} does not answer\n")), "{found}");
    assert!(found.contains(&remedy) && !found.contains("umount"), "{found}");
    assert!(all.contains(&format!("{place}: it did not answer within 2 s; {remedy}")), "{all}");
    // the source is asked, and not the mount; this one cannot list its names
    assert!(text(&listed.stderr).contains("Function not implemented"), "{}", text(&listed.stderr));
    assert!(mount.umount(&[]).status.success());
}
