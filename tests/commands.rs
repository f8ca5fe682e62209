//! The commands that read data or look at a mount: what they print, and what they say when they cannot.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod support;

use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};

use nix::sys::signal::Signal;
use serde_json::Value;
use support::{
    Dice, Mount, Npy, damaged, fixture, fixtures, fuse_or_skip, numbers, one_line_of_failure, signal, source_with,
    test_data, text, volfs, wait_for, wait_until,
};

#[path = "support/naive.rs"]
mod naive;

fn run(command: &str, arguments: &[&str], path: &Path) -> Output {
    volfs().arg(command).args(arguments).arg(path).output().unwrap()
}

/// The output of a command that succeeds and has nothing to say beside it.
fn output(command: &str, arguments: &[&str], path: &Path) -> Vec<u8> {
    let output = run(command, arguments, path);
    assert_eq!(text(&output.stderr), "", "{command} {arguments:?} {}", path.display());
    assert_eq!(output.status.code(), Some(0), "{command} {arguments:?} {}", path.display());
    output.stdout
}

fn zgy(name: &str) -> PathBuf {
    test_data("zgy").join(name)
}

fn demo() -> PathBuf {
    test_data("demo/north.zgy")
}

// --- ls

fn listed(path: &Path) -> Vec<Value> {
    let list: Value = serde_json::from_slice(&output("ls", &["--json"], path)).unwrap();
    list.as_array().unwrap().clone()
}

#[test]
fn every_dataset_is_listed_with_its_shape() {
    let list = listed(&test_data("zgy"));
    for fixture in fixtures() {
        let found = list.iter().find(|object| object["path"] == fixture.name).unwrap();
        assert_eq!(numbers(&found["shape"]), fixture.shape(), "{}", fixture.name);
        assert_eq!(found["dtype"], fixture.dtype(), "{}", fixture.name);
        assert_eq!(found["lods"], fixture.levels().len(), "{}", fixture.name);
        assert_eq!((&found["layer"], &found["format"]), (&"data".into(), &"zgy".into()));
        assert!(found["error"].is_null() && found["codec"].is_string(), "{found}");
    }
    for fixture in damaged("open") {
        let found = list.iter().find(|object| object["path"] == fixture.name).unwrap();
        assert!(found["error"].is_string() && found["layer"].is_null(), "{found}");
    }
}

#[test]
fn a_line_says_it_for_people() {
    let source = source_with(&["v3_int8.zgy", "bad_empty.zgy"]);
    fs::create_dir(source.path().join("deep")).unwrap();
    fs::copy(zgy("v4_mixed.zgy"), source.path().join("deep/a\x1b[31mb.zgy")).unwrap();
    let text = text(&output("ls", &[], source.path()));
    let lines: Vec<Vec<&str>> = text.lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(lines[0][..5], ["bad_empty.zgy", "not", "shown:", "not", "a"]);
    assert_eq!(lines[1], ["deep/a\\u{1b}[31mb.zgy", "data", "33x12x18", "float32", "mixed", "3", "LODs"]);
    assert_eq!(lines[2], ["v3_int8.zgy", "data", "35x17x33", "int8", "raw", "3", "LODs"]);
    assert_eq!(lines.len(), 3);
}

#[test]
fn one_dataset_is_a_list_of_its_layers() {
    let list = listed(&demo());
    assert_eq!(list.len(), 1);
    assert_eq!((&list[0]["path"], numbers(&list[0]["shape"])), (&"north.zgy".into(), vec![128, 96, 192]));
    assert_eq!((&list[0]["codec"], &list[0]["size"]), (&"zfp".into(), &9_437_184.into()));
}

#[test]
fn an_empty_folder_has_no_lines() {
    let folder = tempfile::tempdir().unwrap();
    let found = run("ls", &[], folder.path());
    assert_eq!((found.status.code(), text(&found.stdout)), (Some(0), String::new()));
    assert!(text(&found.stderr).contains("no volumes found below"), "{}", text(&found.stderr));
    assert_eq!(text(&output("ls", &["--json"], folder.path())), "[]\n");
}

#[test]
fn many_datasets_are_listed_in_order() {
    let folder = tempfile::tempdir().unwrap();
    let names: Vec<String> = (0..1000).map(|n| format!("{:02}/{n:04}.zgy", n % 20)).collect();
    for name in &names {
        let path = folder.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::copy(zgy("v3_size_1x1x1.zgy"), path).unwrap();
    }
    let mut sorted = names;
    sorted.sort();
    let text = text(&output("ls", &[], folder.path()));
    let found: Vec<&str> = text.lines().map(|line| line.split_whitespace().next().unwrap()).collect();
    assert_eq!(found, sorted);
    let list = listed(folder.path());
    assert!(list.iter().map(|object| object["path"].as_str().unwrap()).eq(sorted.iter()));
    // nobody reads on
    let mut child = volfs().arg("ls").arg(folder.path()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    assert_eq!(wait_for(&mut child).code(), Some(0));
    let mut words = String::new();
    child.stderr.take().unwrap().read_to_string(&mut words).unwrap();
    assert_eq!(words, "");
}

#[test]
fn links_are_followed_as_in_a_mount() {
    let source = source_with(&["v3_int8.zgy"]);
    std::os::unix::fs::symlink(source.path().join("v3_int8.zgy"), source.path().join("inside.zgy")).unwrap();
    std::os::unix::fs::symlink(zgy("v3_int16.zgy"), source.path().join("outside.zgy")).unwrap();
    assert_eq!(listed(source.path()).len(), 2);
    let all = text(&output("ls", &["--follow-links"], source.path()));
    assert_eq!(all.lines().count(), 3, "{all}");
}

#[test]
fn a_source_that_is_none_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let missing = folder.path().join("missing");
    let line = one_line_of_failure(&run("ls", &[], &missing), 1);
    assert!(line.starts_with("volfs: cannot find the source") && line.contains("missing"), "{line}");
    fs::write(&missing, "something else").unwrap();
    let line = one_line_of_failure(&run("ls", &[], &missing), 1);
    assert!(line.contains("is not a volume"), "{line}");
}

// --- cat

/// The box of `ranges` of a C-ordered array.
fn slice(samples: &[u8], shape: &[u64], size: u64, ranges: &[(u64, u64)]) -> Vec<u8> {
    let mut out = Vec::new();
    for i in ranges[0].0..ranges[0].1 {
        for j in ranges[1].0..ranges[1].1 {
            let row = (i * shape[1] + j) * shape[2];
            let (from, to) = ((row + ranges[2].0) * size, (row + ranges[2].1) * size);
            out.extend_from_slice(&samples[from as usize..to as usize]);
        }
    }
    out
}

#[test]
fn every_level_is_printed_as_it_is() {
    for fixture in fixtures() {
        for lod in 0..fixture.levels().len() {
            let Some(samples) = fixture.samples(lod) else { continue };
            let found = output("cat", &["--lod", &lod.to_string()], &zgy(&fixture.name));
            assert!(found == samples, "{} lod {lod}", fixture.name);
        }
    }
}

#[test]
fn a_box_of_a_dataset_is_a_slice_of_it() {
    let mut dice = Dice::new(7);
    for name in ["v3_int8.zgy", "v2_int16.zgy", "v3_float32.zgy", "v4_mixed.zgy", "v3_brick_4x8x16.zgy"] {
        let fixture = fixture(name);
        let (shape, samples) = (fixture.shape(), fixture.samples(0).unwrap());
        for _ in 0..6 {
            let ranges: Vec<(u64, u64)> = shape
                .iter()
                .map(|n| {
                    let from = dice.below(*n);
                    (from, from + 1 + dice.below(n - from))
                })
                .collect();
            let region: Vec<String> = ranges.iter().map(|(a, b)| format!("{a}:{b}")).collect();
            let region = region.join(",");
            let wanted = slice(&samples, &shape, fixture.sample_bytes(), &ranges);
            assert!(output("cat", &["--region", &region], &zgy(name)) == wanted, "{name} {region}");
            let npy = Npy::parse(&output("cat", &["--region", &region, "--format", "npy"], &zgy(name)));
            let lengths: Vec<u64> = ranges.iter().map(|(a, b)| b - a).collect();
            assert_eq!((npy.shape, npy.fortran_order, npy.descr), (lengths, false, fixture.descr()), "{name} {region}");
            assert!(npy.samples == wanted, "{name} {region}");
        }
    }
}

#[test]
fn slices_may_be_short_open_single_and_negative() {
    let fixture = fixture("v3_int16.zgy"); // 20 x 18 x 35
    let (shape, samples) = (fixture.shape(), fixture.samples(0).unwrap());
    for (region, ranges) in [
        ("3", [(3, 4), (0, 18), (0, 35)]),
        (":,-1", [(0, 20), (17, 18), (0, 35)]),
        ("-3:,:5,-5:-2", [(17, 20), (0, 5), (30, 33)]),
        (":,:,:", [(0, 20), (0, 18), (0, 35)]),
    ] {
        let found = output("cat", &["--region", region], &zgy("v3_int16.zgy"));
        assert!(found == slice(&samples, &shape, 2, &ranges), "{region}");
    }
    let npy = Npy::parse(&output("cat", &["--region", "3,4,5", "--format", "npy"], &zgy("v3_int16.zgy")));
    assert_eq!(npy.shape, [1, 1, 1]);
}

/// The demo has 9 MiB: several parts, and bricks of three kinds of edge.
#[test]
fn a_dataset_of_several_parts_is_printed_whole() {
    let open = volfs::catalog::open_dataset(volfs::format::registry(), &demo(), None).unwrap();
    let samples = naive::read_all(&*open.dataset.layers()[0].levels[0]).unwrap();
    assert!(output("cat", &["--layer", "data"], &demo()) == samples);
    let wanted = slice(&samples, &[128, 96, 192], 4, &[(1, 127), (0, 96), (1, 191)]);
    assert!(output("cat", &["--region", "1:127,:,1:191"], &demo()) == wanted);
}

#[test]
fn lines_are_found_by_their_numbers() {
    let open = volfs::catalog::open_dataset(volfs::format::registry(), &demo(), None).unwrap();
    let samples = naive::read_all(&*open.dataset.layers()[0].levels[0]).unwrap();
    for (arguments, ranges) in [
        (&["--at", "inline=1004"][..], [(2, 3), (0, 96), (0, 192)]),
        (&["--at", "inline=1004:1010", "--at", "sample=1200:1208"], [(2, 6), (0, 96), (0, 3)]),
        (&["--at", "crossline=2095", "--region", "-1"], [(127, 128), (95, 96), (0, 192)]),
        (&["--at", "Crossline=2094:", "--region", "0:2,:,7"], [(0, 2), (94, 96), (7, 8)]),
    ] {
        let found = output("cat", arguments, &demo());
        assert!(found == slice(&samples, &[128, 96, 192], 4, &ranges), "{arguments:?}");
    }
    // a coarser level has every second line
    let found = output("cat", &["--lod", "1", "--at", "inline=1004", "--format", "npy"], &demo());
    assert_eq!(Npy::parse(&found).shape, [1, 48, 96]);
}

#[test]
fn what_is_not_there_is_wrong_usage_and_says_what_is() {
    for (arguments, part) in [
        (&["--layer", "x"][..], "there is no layer x; there is data"),
        (&["--lod", "3"], "there is no LOD 3; layer data has LOD 0 to 2"),
        (&["--region", "128"], "128 is out of range: axis inline has 0 to 127"),
        (&["--region", ":,0:97"], "an end of 97 is out of range: axis crossline has 0 to 95"),
        (&["--region", "-129:"], "-129 is out of range: axis inline has 0 to 127"),
        (&["--region", ":,:,:,:"], "4 slices, but the array has 3 axes: inline, crossline, sample"),
        (&["--region", "5:5"], "5:5 is empty"),
        (&["--region", "5:3"], "5:3 runs backwards"),
        (&["--at", "inline=1001"], "axis inline has no 1001; the nearest is 1002 (it has 1000 to 1254 in steps of 2)"),
        (&["--at", "sample=0"], "axis sample has no 0; the nearest is 1200 (it has 1200 to 1964 in steps of 4 ms)"),
        (&["--at", "inline=1010:1004"], "runs the other way: give 1004:1010"),
        (&["--at", "trace=1"], "there is no axis trace; there are inline, crossline, sample"),
        (&["--at", "inline=1004", "--region", "3"], "axis inline is given twice"),
        (&["--at", "inline=1004", "--at", "inline=1006"], "axis inline is given twice"),
    ] {
        let line = one_line_of_failure(&run("cat", arguments, &demo()), 2);
        assert!(line.starts_with("volfs: ") && line.contains(part), "{arguments:?}: {line}");
    }
    for arguments in
        [&["--region", "a"][..], &["--region", "1:2:3"], &["--at", "inline"], &["--at", "inline=x"], &["--lod", "-1"]]
    {
        let found = run("cat", arguments, &demo());
        assert_eq!((found.status.code(), text(&found.stdout)), (Some(2), String::new()), "{arguments:?}");
    }
}

#[test]
fn what_does_not_open_says_why() {
    let line = one_line_of_failure(&run("cat", &[], &zgy("bad_magic.zgy")), 1);
    assert!(line.contains("bad_magic.zgy: not a ZGY file"), "{line}");
    let line = one_line_of_failure(&run("cat", &[], &test_data("zgy")), 1);
    assert!(line.contains("volfs ls"), "{line}");
    let line = one_line_of_failure(&run("cat", &[], &test_data("zgy/none.zgy")), 1);
    assert!(line.contains("No such file"), "{line}");
}

#[test]
fn a_damaged_brick_is_named_and_can_be_left_out() {
    for fixture in damaged("read") {
        let brick = numbers(&fixture.expected["damaged_bricks"][0]["brick"]);
        let line = one_line_of_failure(&run("cat", &[], &zgy(&fixture.name)), 1);
        for part in [fixture.name.as_str(), "layer data", "lod 0", &format!("brick {brick:?}")] {
            assert!(line.contains(part), "no {part} in {line}");
        }
        let size = numbers(&fixture.expected["bricksize"])[0];
        assert!(line.contains(&format!("--region {}:", brick[0] * size)), "{line}");
        if brick[0] > 0 {
            let found = output("cat", &["--region", &format!(":{}", brick[0] * size)], &zgy(&fixture.name));
            assert!(fixture.samples(0).unwrap().starts_with(&found) && !found.is_empty(), "{}", fixture.name);
        }
    }
}

#[test]
fn nobody_reading_on_is_no_error() {
    let mut child = volfs().arg("cat").arg(demo()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut first = [0; 16];
    let mut samples = child.stdout.take().unwrap();
    samples.read_exact(&mut first).unwrap();
    drop(samples);
    assert_eq!(wait_for(&mut child).code(), Some(0));
    let mut words = String::new();
    child.stderr.take().unwrap().read_to_string(&mut words).unwrap();
    assert_eq!(words, "");
}

#[test]
fn a_full_disk_is_an_error() {
    let full = File::options().write(true).open("/dev/full").unwrap();
    let output = volfs().arg("cat").arg(demo()).stdout(full).stderr(Stdio::piped()).output().unwrap();
    let line = one_line_of_failure(&output, 1);
    assert!(line.contains("cannot write the output"), "{line}");
}

#[test]
fn samples_are_not_for_a_terminal() {
    // the kernel takes the master end of a pseudo-terminal for a terminal, too
    let terminal = || File::options().read(true).write(true).open("/dev/ptmx").unwrap();
    let cat = |force: &[&str]| {
        let mut command = volfs();
        command
            .arg("cat")
            .args(force)
            .args(["--region", "0,0,0"])
            .arg(demo())
            .stdout(terminal())
            .stderr(Stdio::piped());
        command.output().unwrap()
    };
    let line = one_line_of_failure(&cat(&[]), 2);
    assert!(line.contains("--force"), "{line}");
    assert_eq!(cat(&["--force"]).status.code(), Some(0));
}

// --- stats

#[test]
fn the_counters_of_a_mount_are_shown() {
    let Some(mount) = Mount::with(test_data("demo"), &["--threads", "2", "--cache-size", "64MiB"]) else { return };
    let samples = fs::read(mount.data("north.zgy", "lod1.raw")).unwrap();
    let page = text(&output("stats", &[], mount.point()));
    let row = |label: &str| {
        page.lines().find_map(|line| line.trim().strip_prefix(label)).unwrap_or_else(|| panic!("{page}")).trim()
    };
    assert!(page.starts_with(mount.point().to_str().unwrap()), "{page}");
    assert_eq!(row("source"), test_data("demo").to_str().unwrap());
    assert!(row("daemon").ends_with(&format!("process {}", mount.pid())), "{page}");
    assert_eq!(
        row("options"),
        "threads 2, log file ".to_owned() + mount.status()["options"]["log_file"].as_str().unwrap()
    );
    assert!(row("held").contains("of 64.00 MiB"), "{page}");
    assert!(row("decoded").starts_with("2,"), "{page}");
    assert_eq!(row("errors"), "none");
    let found: Value = serde_json::from_slice(&output("stats", &["--json"], mount.point())).unwrap();
    assert_eq!((&found["pid"], &found["options"]), (&mount.pid().into(), &mount.status()["options"]));
    assert!(found["counters"]["bytes_read"].as_u64().unwrap() >= samples.len() as u64);
    let line = one_line_of_failure(&run("stats", &[], &mount.path("north.zgy")), 1);
    assert!(line.contains(&format!("the mount around it is at {}", mount.point().display())), "{line}");
}

#[test]
fn where_no_mount_of_ours_is_there_are_no_counters() {
    let folder = tempfile::tempdir().unwrap();
    let line = one_line_of_failure(&run("stats", &[], folder.path()), 1);
    assert!(line.contains("nothing is mounted at"), "{line}");
    let line = one_line_of_failure(&run("stats", &[], Path::new("/proc")), 1);
    assert!(line.contains("/proc is a mount of proc, not of volfs"), "{line}");
    let line = one_line_of_failure(&run("stats", &[], &folder.path().join("none")), 1);
    assert!(line.contains("cannot find"), "{line}");
}

#[test]
fn a_mount_that_is_dead_or_asleep_is_told_apart() {
    let source = source_with(&["v3_int8.zgy"]);
    let Some(mount) = Mount::of(source.path()) else { return };
    signal(mount.pid(), Signal::SIGSTOP).unwrap();
    // a thread that still runs could take a request with it into its sleep, and who asked could then not even be killed
    wait_until("all of the daemon sleeps", || {
        let threads = fs::read_dir(format!("/proc/{}/task", mount.pid())).unwrap();
        let state = |thread: fs::DirEntry| fs::read_to_string(thread.path().join("status")).unwrap_or_default();
        threads.flatten().all(|thread| state(thread).contains("T (stopped)"))
    });
    let asleep = run("stats", &[], mount.point());
    signal(mount.pid(), Signal::SIGCONT).unwrap();
    let line = one_line_of_failure(&asleep, 1);
    assert!(line.contains("did not answer within"), "{line}");
    signal(mount.pid(), Signal::SIGKILL).unwrap();
    wait_until("the mount is dead", || fs::read_dir(mount.point()).is_err());
    let line = one_line_of_failure(&run("stats", &[], mount.point()), 1);
    assert!(line.contains(&format!("died; to clear it type: volfs umount {}", mount.point().display())), "{line}");
    let findings = text(&volfs().arg("doctor").output().unwrap().stdout);
    let place = mount.point().display();
    assert!(findings.contains(&format!("note     the daemon of the mount at {place} died\n")), "{findings}");
    assert!(findings.contains(&format!("volfs umount {place}\n")), "{findings}");
}

// --- doctor

#[test]
fn the_doctor_agrees_with_mount() {
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
    let page = volfs().arg("doctor").output().unwrap();
    assert_eq!(page.status.code(), output.status.code());
    assert!(
        text(&page.stdout).lines().all(|l| ["ok  ", "note", "prob", "    "].iter().any(|start| l.starts_with(start)))
    );
    if !can_mount {
        assert!(text(&page.stderr).contains("cannot mount yet"), "{}", text(&page.stderr));
    }
}

// --- all of them

#[test]
fn every_help_teaches_with_an_example() {
    for command in ["ls", "cat", "stats", "doctor", "info", "mount", "umount"] {
        let output = volfs().args([command, "--help"]).output().unwrap();
        let help = text(&output.stdout);
        assert_eq!((output.status.code(), text(&output.stderr)), (Some(0), String::new()));
        let example = help.split("Example:\n").nth(1).unwrap_or_else(|| panic!("no example in {help}"));
        assert!(example.contains(&format!("volfs {command}")), "{help}");
        assert!(example.lines().all(|line| line.len() <= 80), "too wide: {example}");
    }
}

#[test]
fn a_command_without_its_argument_is_wrong_usage() {
    for command in ["ls", "cat", "stats"] {
        assert_eq!(volfs().arg(command).output().unwrap().status.code(), Some(2), "{command}");
    }
    assert_eq!(volfs().args(["doctor", "x"]).output().unwrap().status.code(), Some(2));
}

#[test]
fn what_ls_and_info_say_agrees() {
    let info: Value = serde_json::from_slice(&output("info", &["--json"], &demo())).unwrap();
    let level = &info["levels"]["data"][0];
    let listed = &listed(&demo())[0];
    for key in ["shape", "dtype", "codec", "size", "layer", "format"] {
        assert_eq!(listed[key], level[key], "{key}");
    }
}
