//! `volfs mount SOURCE --exec CMD`: a mount that lasts while a command runs.

use std::fs;
use std::io::{BufRead, BufReader, Lines};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Output, Stdio};

use nix::sys::signal::Signal;
use tempfile::TempDir;

use crate::support::{
    fuse_or_skip, mounted_name, one_line_of_failure, process_lives, signal, source_with, text, volfs, wait_for,
    wait_until,
};

/// A source, and the folder in which temporary mount points are made.
struct Place {
    source: TempDir,
    temporary: TempDir,
}

impl Place {
    /// Makes a place; `None` (after reporting why) if this machine cannot mount.
    fn new() -> Option<Self> {
        let made = || Self { source: source_with(&["v3_int8.zgy"]), temporary: tempfile::tempdir().unwrap() };
        fuse_or_skip().then(made)
    }

    fn command(&self, script: &str) -> Command {
        let mut command = volfs();
        command.env("TMPDIR", self.temporary.path()).arg("mount").arg(self.source.path());
        command.args(["--exec", "sh", "-c", script]);
        command
    }

    fn run(&self, script: &str) -> Output {
        self.command(script).output().unwrap()
    }

    /// Starts a command, and reads the first line of its output, which is to be the mount point.
    fn start(&self, script: &str) -> (Child, PathBuf, Lines<BufReader<ChildStdout>>) {
        let script = format!("echo $VOLFS_MNT; {script}");
        let mut child = self.command(&script).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let point = PathBuf::from(lines.next().unwrap().unwrap());
        (child, point, lines)
    }

    /// Returns whether neither a mount nor a folder is left.
    fn is_clean(&self) -> bool {
        fs::read_dir(self.temporary.path()).unwrap().next().is_none()
            && !fs::read_to_string("/proc/mounts").unwrap().contains(self.temporary.path().to_str().unwrap())
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        for entry in fs::read_dir(self.temporary.path()).into_iter().flatten().flatten() {
            let _ = volfs().args(["umount", "--lazy"]).arg(entry.path()).output();
        }
    }
}

#[test]
fn a_command_finds_the_mount_and_its_status_is_passed_on() {
    let Some(place) = Place::new() else { return };
    let output = place.run("echo $VOLFS_MNT; ls $VOLFS_MNT; exit 7");
    assert_eq!((output.status.code(), text(&output.stderr).as_str()), (Some(7), ""));
    let stdout = text(&output.stdout);
    let lines: Vec<&str> = stdout.lines().collect();
    assert!(Path::new(lines[0]).starts_with(place.temporary.path()), "{stdout}");
    assert_eq!(lines[1..], ["v3_int8.zgy"]);
    assert!(place.is_clean());
    for (script, status) in [("true", 0), ("kill -KILL $$", 137), ("kill -INT $$", 130)] {
        let output = place.run(script);
        assert_eq!((output.status.code(), text(&output.stderr).as_str()), (Some(status), ""), "{script}");
        assert!(place.is_clean(), "{script}");
    }
}

#[test]
fn a_mount_point_that_is_given_stays() {
    let Some(place) = Place::new() else { return };
    let point = tempfile::tempdir().unwrap();
    let mut command = volfs();
    command.arg("mount").arg(place.source.path()).arg(point.path());
    let output = command.args(["--exec", "sh", "-c", "ls $VOLFS_MNT; volfs=$0; \"$volfs\" umount $VOLFS_MNT"]);
    // the command may also unmount by itself
    let output = output.arg(env!("CARGO_BIN_EXE_volfs")).output().unwrap();
    assert_eq!((output.status.code(), text(&output.stderr).as_str()), (Some(0), ""));
    assert_eq!(text(&output.stdout), "v3_int8.zgy\n");
    assert!(mounted_name(point.path()).is_none() && point.path().is_dir());
}

#[test]
fn a_mount_that_the_command_makes_stays() {
    let Some(place) = Place::new() else { return };
    let point = tempfile::tempdir().unwrap();
    // the new mount gets the device number of the one that the command takes away
    let script = "\"$0\" umount $VOLFS_MNT && \"$0\" mount \"$1\" \"$2\" >/dev/null";
    let mut command = volfs();
    command.env("TMPDIR", place.temporary.path()).arg("mount").arg(place.source.path());
    command
        .args(["--exec", "sh", "-c", script, env!("CARGO_BIN_EXE_volfs")])
        .arg(place.source.path())
        .arg(point.path());
    let output = command.output().unwrap();
    let is_mounted = mounted_name(point.path()).is_some();
    let _ = volfs().arg("umount").arg(point.path()).output();
    assert_eq!((output.status.code(), text(&output.stderr).as_str()), (Some(0), ""));
    assert!(is_mounted && place.is_clean());
}

#[test]
fn a_daemon_that_is_killed_leaves_no_mount() {
    let Some(place) = Place::new() else { return };
    let pid = r#"sed -n 's/.*"pid": *\([0-9]*\).*/\1/p' $VOLFS_MNT/.volfs/status.json"#;
    let output = place.run(&format!("kill -KILL $({pid}) && exit 3"));
    assert_eq!(output.status.code(), Some(3), "{}", text(&output.stderr));
    assert!(place.is_clean());
}

#[test]
fn a_command_that_cannot_run_leaves_nothing_behind() {
    let Some(place) = Place::new() else { return };
    let run = |source: &Path, program: &Path| {
        let mut command = volfs();
        command.env("TMPDIR", place.temporary.path()).arg("mount").arg(source).arg("--exec").arg(program);
        command.output().unwrap()
    };
    let missing = place.source.path().join("missing");
    for (source, program, status, named) in [
        (place.source.path(), &*missing, 127, "No such file"),
        (place.source.path(), place.source.path(), 126, "Permission denied"),
        (&missing, Path::new("true"), 1, "cannot find the source"),
    ] {
        let line = one_line_of_failure(&run(source, program), status);
        assert!(line.contains(named), "{line}");
        assert!(place.is_clean(), "{line}");
    }
}

#[test]
fn signals_are_for_the_command() {
    let Some(place) = Place::new() else { return };
    for wanted in [Signal::SIGTERM, Signal::SIGINT, Signal::SIGHUP] {
        let name = wanted.as_str().trim_start_matches("SIG");
        let script = format!("trap 'ls $VOLFS_MNT; exit 9' {name}; echo ready; while :; do sleep 0.05; done");
        let (mut child, _, mut lines) = place.start(&script);
        assert_eq!(lines.next().unwrap().unwrap(), "ready");
        signal(i32::try_from(child.id()).unwrap(), wanted).unwrap();
        assert_eq!(lines.next().unwrap().unwrap(), "v3_int8.zgy", "the mount is there until the command ends");
        assert_eq!(wait_for(&mut child).code(), Some(9), "{name}");
        assert!(place.is_clean(), "{name}");
    }
}

#[test]
fn a_mount_ends_with_a_process_that_is_killed() {
    let Some(place) = Place::new() else { return };
    // the command uses the mount, and is told to end
    let (mut child, point, mut lines) = place.start("cd $VOLFS_MNT; echo $$; exec sleep 600");
    let command: i32 = lines.next().unwrap().unwrap().parse().unwrap();
    assert!(mounted_name(&point).is_some());
    signal(i32::try_from(child.id()).unwrap(), Signal::SIGKILL).unwrap();
    wait_for(&mut child);
    wait_until("the mount and its folder are gone", || place.is_clean());
    wait_until("the command has ended", || !process_lives(command));
}

#[test]
fn a_mount_that_is_still_used_is_taken_away() {
    let Some(place) = Place::new() else { return };
    let script = "cd $VOLFS_MNT; exec 9<v3_int8.zgy/data/lod0.raw; sleep 600 >/dev/null 2>&1 & echo $!; exit 4";
    let (child, point, mut lines) = place.start(script);
    let user: i32 = lines.next().unwrap().unwrap().parse().unwrap();
    let output = child.wait_with_output().unwrap();
    let stderr = text(&output.stderr);
    let served = fs::read(format!("/proc/{user}/fd/9")).map(|samples| samples.len());
    let _ = signal(user, Signal::SIGKILL);
    assert_eq!((output.status.code(), stderr.lines().count()), (Some(4), 1), "{stderr}");
    assert!(stderr.contains(&format!("sleep (process {user}) uses {}", point.display())), "{stderr}");
    assert!(place.is_clean());
    assert!(served.is_ok_and(|bytes| bytes > 0), "what has a file open can go on reading");
}

#[test]
fn a_command_gets_what_its_caller_has() {
    let Some(place) = Place::new() else { return };
    let script = "ulimit -Sn; grep SigBlk /proc/self/status; ls -l /proc/self/fd";
    let mut shell = Command::new("sh");
    shell.env("TMPDIR", place.temporary.path()).stdin(Stdio::null());
    shell.args(["-c", "ulimit -Sn 99; exec \"$0\" mount \"$1\" --exec sh -c \"$2\"", env!("CARGO_BIN_EXE_volfs")]);
    let output = shell.arg(place.source.path()).arg(script).output().unwrap();
    let stdout = text(&output.stdout);
    assert!(stdout.starts_with("99\nSigBlk:\t0000000000000000\n"), "{stdout}");
    assert!(!stdout.contains("fuse") && !stdout.contains("socket:") && !stdout.contains("signalfd"), "{stdout}");
    assert!(!stdout.contains(place.temporary.path().to_str().unwrap()), "{stdout}");
}
