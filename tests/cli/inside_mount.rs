//! Commands about mounts: datasets by paths inside them, the state of mounts, `volfs doctor`, `volfs stats`, and mounts of other users.

use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::os::fd::AsRawFd;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::{Arc, RwLock};
use std::thread;
use std::time::{Duration, SystemTime};

use fuser::{BackgroundSession, Config, Session, SessionACL};
use nix::mount::{MntFlags, MsFlags, mount, umount2};
use nix::sys::signal::Signal;
use serde_json::Value;

use super::{output, run};
use crate::support::hanging::Hanging;
use crate::support::own_fs::{OneFile, SLOW, SlowSource};
use crate::support::run::TIMEOUT;
use crate::support::{
    Mount, comes_true, copy_all, fixture, fuse_or_skip, one_line_of_failure, signal, skip, source_with, stop,
    test_data, text, volfs, wait_for, wait_until, within,
};

/// Runs a command in a folder.
fn run_in(folder: &Path, arguments: &[&str]) -> Output {
    volfs().args(arguments).current_dir(folder).output().unwrap()
}

#[test]
fn a_dataset_may_be_given_by_any_path_inside_a_mount() {
    let source = source_with(&["v3_int16.zgy"]);
    let Some(mount) = Mount::of(source.path()) else { return };
    let file = source.path().join("v3_int16.zgy");
    let (info, list) = (output("info", &["--json"], &file), output("ls", &[], source.path()));
    for path in ["v3_int16.zgy", "v3_int16.zgy/data", "v3_int16.zgy/data/lod1.json", "v3_int16.zgy/dataset.json"] {
        assert_eq!(text(&output("info", &["--json"], &mount.path(path))), text(&info), "{path}");
        assert_eq!(text(&output("ls", &[], &mount.path(path))), text(&list), "{path}");
    }
    assert_eq!(text(&output("ls", &[], mount.point())), text(&list));
    let link = source.path().join("link");
    symlink(mount.path("v3_int16.zgy"), &link).unwrap();
    assert_eq!(text(&output("info", &["--json"], &link)), text(&info));
    assert_eq!(text(&run_in(&mount.path("v3_int16.zgy/data"), &["info", "--json", ".."]).stdout), text(&info));
    let whole = fixture("v3_int16.zgy");
    for (path, lod) in [("", 0), ("data", 0), ("data/lod0.npy", 0), ("data/lod1.raw", 1), ("data/lod1.mhd", 1)] {
        let found = output("cat", &[], &mount.path("v3_int16.zgy").join(path));
        assert!(found == whole.samples(lod).unwrap(), "{path}");
    }
    assert!(output("cat", &["--lod", "1"], &mount.path("v3_int16.zgy/data")) == whole.samples(1).unwrap());
}

#[test]
fn a_path_that_shows_no_samples_is_told() {
    let source = source_with(&["v3_int16.zgy"]);
    let Some(mount) = Mount::of(source.path()) else { return };
    let point = mount.point().display().to_string();
    for (command, path, status, part) in [
        ("info", "none.zgy", 1, "none.zgy does not exist: it would show "),
        ("info", "v3_int16.zgy/color", 1, "the folders of its layers are data"),
        ("info", ".volfs/log", 1, ".volfs/log is about the mount, not a volume"),
        ("ls", ".volfs", 1, &format!("volfs stats {point}")),
        ("info", "", 1, "to see the volumes in it type: volfs ls"),
        ("cat", "v3_int16.zgy/dataset.json", 2, "dataset.json has no samples of a level"),
        ("cat", "v3_int16.zgy/data/lod9.raw", 2, "there is no LOD 9; layer data has LOD 0 to "),
    ] {
        let line = one_line_of_failure(&run(command, &[], &mount.path(path)), status);
        assert!(line.contains(part), "{command} {path}: {line}");
    }
    let contradiction = run("cat", &["--lod", "1"], &mount.data("v3_int16.zgy", "lod0.raw"));
    assert!(one_line_of_failure(&contradiction, 2).contains("--lod contradicts the path"));
    let turned = run("cat", &["--region", "0,0,0"], &mount.data("v3_int16.zgy", "lod0.by-sample.npy"));
    assert!(text(&turned.stderr).contains("as [inline, crossline, sample], not turned"), "{}", text(&turned.stderr));
    assert_eq!((turned.status.code(), turned.stdout.len()), (Some(0), 2));
}

#[test]
fn encoded_names_of_layers_lead_to_their_layers() {
    let folder = tempfile::tempdir().unwrap();
    fs::copy(test_data("vds/names.vds"), folder.path().join("names.vds")).unwrap();
    let Some(mount) = Mount::of(folder.path()) else { return };
    let layers: Vec<_> = fs::read_dir(mount.path("names.vds")).unwrap().map(|e| e.unwrap().path()).collect();
    let layers: Vec<_> = layers.iter().filter(|path| path.join("lod0.raw").exists()).collect();
    assert!(layers.iter().any(|path| path.ends_with("a%2Fb")) && layers.len() > 6, "{layers:?}");
    for layer in layers {
        assert!(output("cat", &[], layer) == fs::read(layer.join("lod0.raw")).unwrap(), "{}", layer.display());
    }
}

#[test]
fn other_names_of_layers_lead_to_their_layers() {
    let Some(mount) = Mount::of(test_data("demo")) else { return };
    for (typed, listed) in [
        ("south.vds/data/lod1.raw", "south.vds/Amplitude/lod1.raw"),
        ("south.vds/trace", "south.vds/Trace"),
        ("cells/data/lod1.npy", "cells/color/lod1.raw"),
    ] {
        assert!(output("cat", &[], &mount.path(typed)) == output("cat", &[], &mount.path(listed)), "{typed}");
    }
    let line = one_line_of_failure(&run("cat", &[], &mount.path("cells/colour")), 1);
    assert!(line.contains("the folders of its layers are color, segmentation"), "{line}");
}

#[test]
fn a_source_that_is_one_dataset_is_found() {
    let folder = tempfile::tempdir().unwrap();
    copy_all(&test_data("demo/cells"), &folder.path().join("cells"));
    let Some(mount) = Mount::of(folder.path().join("cells")) else { return };
    let info = output("info", &["--json"], &folder.path().join("cells"));
    for path in ["", "cells", "cells/color/lod0.raw"] {
        assert_eq!(text(&output("info", &["--json"], &mount.path(path))), text(&info), "{path}");
    }
}

#[test]
fn a_mount_that_hangs_or_died_is_not_needed() {
    let source = source_with(&["v3_int8.zgy"]);
    let Some(mount) = Mount::of(source.path()) else { return };
    let (data, dataset, point) = (mount.path("v3_int8.zgy/data"), mount.path("v3_int8.zgy"), mount.point().to_owned());
    let commands = move || {
        assert!(output("cat", &[], &data) == fixture("v3_int8.zgy").samples(0).unwrap());
        assert!(!output("info", &[], &dataset).is_empty());
        assert!(!output("ls", &[], &point).is_empty());
        assert!(!output("verify", &["--quick"], &point).is_empty());
    };
    // a command that hangs could not even be killed before the daemon goes on
    let works = || assert!(within(TIMEOUT, commands.clone()).is_some(), "it hangs");
    stop(mount.pid());
    works();
    signal(mount.pid(), Signal::SIGKILL).unwrap();
    wait_until("the mount is dead", || fs::read_dir(mount.point()).is_err());
    works();
    let all: Value = serde_json::from_slice(&volfs().args(["stats", "--json"]).output().unwrap().stdout).unwrap();
    let point = mount.point().to_str().unwrap();
    let found = all["mounts"].as_array().unwrap().iter().find(|mount| mount["mountpoint"] == point).unwrap();
    assert_eq!((&found["state"], &found["status"]), (&"dead".into(), &Value::Null));
    let table = text(&volfs().arg("stats").output().unwrap().stdout);
    assert!(table.contains(&format!("{point}: its daemon died; to clear it type: volfs umount {point}")), "{table}");
    let metrics = output("stats", &["--format", "prometheus"], mount.point());
    let down = format!("volfs_up{{mountpoint=\"{point}\",source=\"{}\"}} 0", source.path().display());
    assert!(text(&metrics).lines().collect::<Vec<_>>()[2..] == [down], "{metrics:?}");
}

#[test]
fn a_source_that_was_moved_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let source = folder.path().canonicalize().unwrap().join("source");
    fs::create_dir(&source).unwrap();
    fs::copy(test_data("zgy/v3_int8.zgy"), source.join("a.zgy")).unwrap();
    let Some(mount) = Mount::of(&source) else { return };
    fs::rename(&source, folder.path().join("elsewhere")).unwrap();
    for (command, path) in [("info", "a.zgy"), ("ls", ""), ("verify", ""), ("cat", "a.zgy/data")] {
        let line = one_line_of_failure(&run(command, &[], &mount.path(path)), 1);
        let wanted =
            format!("the mount at {} shows {}, which cannot be found", mount.point().display(), source.display());
        assert!(line.contains(&wanted) && line.contains("volfs umount"), "{command}: {line}");
    }
}

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
    let paths = [mount.path("north.zgy/data"), mount.point().to_owned()];
    let metrics = volfs().args(["stats", "--format", "prometheus"]).args(paths).output().unwrap();
    let labels = format!("{{mountpoint=\"{}\",source=\"{}\"}}", mount.point().display(), test_data("demo").display());
    for (name, value) in [("up", "1"), ("cache_limit_bytes", "67108864"), ("errors_total", "0")] {
        let line = format!("volfs_{name}{labels} {value}");
        let lines = text(&metrics.stdout).lines().filter(|found| **found == line).count();
        assert_eq!(lines, 1, "{line}: {metrics:?}");
    }
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
    let (mut bytes, mut bricks, mut seconds) = (0, 0, 0.0);
    while bytes < samples.len() as u64 {
        let line = next();
        bytes += line["increase"]["bytes_read"].as_u64().unwrap();
        bricks += line["increase"]["bricks_decoded"].as_u64().unwrap();
        seconds += line["seconds"].as_f64().unwrap();
        assert!(seconds < 30.0, "{line}");
    }
    assert!(bricks > 0 && bricks <= mount.counter("bricks_decoded"), "{bricks}");
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
    stop(mount.pid());
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

#[test]
fn doctor_agrees_with_mount() {
    let output = volfs().args(["doctor", "--json"]).output().unwrap();
    let found: Value = serde_json::from_slice(&output.stdout).unwrap();
    let can_mount = found["can_mount"].as_bool().unwrap();
    assert_eq!(output.status.code(), Some(i32::from(!can_mount)));
    for finding in found["findings"].as_array().unwrap() {
        let level = finding["level"].as_str().unwrap();
        assert_eq!(finding["remedy"].is_string(), level != "ok", "{finding}");
    }
    if fuse_or_skip() {
        assert!(can_mount, "{found}");
    }
    let printed = volfs().arg("doctor").output().unwrap();
    assert_eq!(printed.status.code(), output.status.code());
    assert!(
        text(&printed.stdout)
            .lines()
            .all(|l| ["ok  ", "note", "prob", "    "].iter().any(|start| l.starts_with(start)))
    );
    if !can_mount {
        assert!(text(&printed.stderr).contains("cannot mount yet"), "{}", text(&printed.stderr));
    }
}

/// The number of the other user.
const OTHER: u32 = 65533;

/// A mount that the kernel takes for that of the other user.
struct HostileMount {
    place: PathBuf,
    session: Option<BackgroundSession>,
}

impl HostileMount {
    fn new(place: PathBuf, source: &Path, status: String) -> Self {
        fs::create_dir(&place).unwrap();
        let device = File::options().read(true).write(true).open("/dev/fuse").unwrap();
        let fd = device.as_raw_fd();
        let options = format!("fd={fd},rootmode=40555,user_id={OTHER},group_id={OTHER},allow_other");
        let name = format!("volfs:{}", source.display());
        mount(Some(&*name), &place, Some("fuse.volfs"), MsFlags::MS_RDONLY, Some(&*options)).unwrap();
        let system = OneFile {
            path: &[".volfs", "status.json"],
            bytes: Arc::new(RwLock::new(status.into_bytes())),
            time: SystemTime::UNIX_EPOCH,
            cached: false,
            gate: Arc::default(),
        };
        let session = Session::from_fd(system, device.into(), SessionACL::All, Config::default());
        Self { place, session: Some(session.unwrap().spawn().unwrap()) }
    }
}

impl Drop for HostileMount {
    fn drop(&mut self) {
        let _ = umount2(&self.place, MntFlags::MNT_DETACH);
        drop(self.session.take().map(|session| session.guard.join()));
    }
}

#[test]
fn what_another_users_mount_says_is_not_believed() {
    if !fuse_or_skip() {
        return;
    }
    if !nix::unistd::geteuid().is_root() {
        return skip("only root can mount as another user");
    }
    let secret = source_with(&["v3_int16.zgy"]);
    let folder = tempfile::tempdir().unwrap();
    let top = folder.path().canonicalize().unwrap();
    // a process of root with the name of a daemon
    fs::copy("/bin/sleep", top.join("volfs")).unwrap();
    let mut victim = Command::new(top.join("volfs")).arg("60").spawn().unwrap();
    let pid = victim.id();
    let stall = r#"{"seconds": 48, "reads_waiting": 3, "dataset": "x"}"#;
    let mount =
        HostileMount::new(top.join("mount"), secret.path(), format!(r#"{{"pid": {pid}, "source_stall": {stall}}}"#));
    symlink(&mount.place, top.join("link")).unwrap();

    for (command, path) in [
        ("ls", "mount"),
        ("ls", "link"),
        ("info", "mount/v3_int16.zgy"),
        ("verify", "mount"),
        ("cat", "mount/v3_int16.zgy/data/lod0.raw"),
    ] {
        let line = one_line_of_failure(&run(command, &[], &top.join(path)), 1);
        let parts = [format!("the mount at {}", mount.place.display()), secret.path().display().to_string()];
        let owner = format!("belongs to another user (id {OTHER})");
        assert!(line.contains(&owner) && parts.iter().all(|part| line.contains(part)), "{command} {path}: {line}");
    }
    let doctor = text(&volfs().arg("doctor").output().unwrap().stdout);
    assert!(doctor.contains("has not answered for 48 s") && !doctor.contains(&format!("kill {pid}")), "{doctor}");
    // a daemon that goes on would be waited for, and is an error
    let unmounted = run("umount", &[], &mount.place);
    assert!(unmounted.status.success(), "{}", text(&unmounted.stderr));
    let ended = victim.try_wait().unwrap();
    victim.kill().unwrap();
    victim.wait().unwrap();
    assert_eq!(ended, None);
}

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
    let Some(hanging) = Hanging::new() else { return };
    let Hanging { mount, source, .. } = &hanging;
    assert!(mount.status()["source_stall"].is_null());
    let readers = hanging.readers(3);

    let asked = ended(&["ls"], Some(mount.point()));
    assert_eq!(asked.status.code(), Some(1));
    let silent = format!("the source {}", source.path().display());
    let said = text(&asked.stderr);
    assert!(said.contains(&silent) && said.contains("does not answer within 10 s"), "{said}");
    for command in [&["info"] as &[&str], &["cat", "--force"]] {
        let line = one_line_of_failure(&ended(command, Some(&hanging.dataset())), 1);
        assert!(line.contains(SLOW) && line.contains("does not answer within 10 s"), "{command:?}: {line}");
    }

    // what the commands before have asked for may be counted as others by now
    let says =
        |said: &str| said.contains(&format!("the source (server/{SLOW}")) && said.contains(" has not answered for ");
    assert!(comes_true(STALL, || !mount.status()["source_stall"].is_null()), "status.json does not tell");
    let stall = mount.status()["source_stall"].clone();
    assert_eq!(stall["reads_waiting"], 3, "{stall}");
    assert_eq!(stall["dataset"], format!("server/{SLOW}"), "{stall}");
    assert!(stall["seconds"].as_f64().unwrap() >= 30.0, "{stall}");
    let shown = text(&ended(&["stats"], Some(mount.point())).stdout);
    assert!(says(&shown) && shown.contains("3 reads wait"), "{shown}");
    let all = text(&ended(&["stats"], None).stdout);
    assert!(says(&all) && all.contains(&format!("{}: the source (", mount.point().display())), "{all}");
    let found = findings(mount.point());
    assert!(found.contains("answers, but") && says(&found) && found.contains("3 reads wait"), "{found}");
    assert!(found.contains(&format!("kill {}", mount.pid())), "{found}");
    let line = format!("server/{SLOW}: the source has not answered for ");
    assert_eq!(mount.log().matches(&line).count(), 1, "{}", mount.log());
    assert!(mount.log().contains("; 3 reads wait"), "{}", mount.log());

    let dataset = hanging.dataset();
    let late = thread::spawn(move || ended(&["info"], Some(&dataset)));
    // more than one look at what it does
    thread::sleep(Duration::from_millis(1200));
    hanging.goes_on(readers);
    let late = late.join().unwrap();
    assert!(late.status.success(), "{}", text(&late.stderr));
    assert!(comes_true(LIMIT, || mount.status()["source_stall"].is_null()));
    let again = format!("server/{SLOW}: the source answers again, after ");
    assert!(comes_true(LIMIT, || mount.log().matches(&again).count() == 1), "{}", mount.log());
    assert_eq!(mount.log().matches(&line).count(), 1, "{}", mount.log());
    mount.unmount();
}

#[test]
fn a_source_that_does_not_answer_is_told_from_a_daemon_that_does_not() {
    if !fuse_or_skip() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let slow = SlowSource::new(
        &folder.path().join("source"),
        fs::read(test_data("zgy/v3_int8.zgy")).unwrap(),
        SessionACL::Owner,
    );
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
    stop(pid);
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
    mount.unmount();
}
