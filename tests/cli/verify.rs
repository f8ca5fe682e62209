//! `volfs verify`.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read, Seek, SeekFrom, Write};
use std::path::Path;
use std::process::{Child, Output, Stdio};

use nix::sys::signal::Signal;
use serde_json::{Value, json};

use super::{demo, output, run, zgy};
use crate::support::{
    Mount, copy_all, damaged, fixture, fixtures, numbers, signal, source_with, test_data, text, volfs, wait_for,
    wait_until,
};

/// Returns what `volfs verify --json` prints, and its exit status.
fn verified(arguments: &[&str], path: &Path) -> (Value, Option<i32>) {
    let output = run("verify", &[arguments, &["--json"]].concat(), path);
    (serde_json::from_slice(&output.stdout).unwrap(), output.status.code())
}

/// Checks that something is bad and nothing but one line of it is on stderr; returns the lines on stdout.
fn bad_lines(output: &Output) -> Vec<String> {
    let stderr = text(&output.stderr);
    assert_eq!((output.status.code(), stderr.lines().count()), (Some(1), 1), "{stderr}");
    assert!(stderr.starts_with("volfs: ") && stderr.contains("bad; restore"), "{stderr}");
    text(&output.stdout).lines().map(str::to_owned).collect()
}

#[test]
fn good_volumes_are_one_line() {
    let printed = text(&output("verify", &[], &test_data("demo")));
    assert_eq!(printed.lines().count(), 1, "{printed}");
    assert!(printed.starts_with("4 volumes, ") && printed.ends_with("all can be read\n"), "{printed}");
    let printed = text(&output("verify", &["--quick"], &demo()));
    assert!(printed.starts_with("1 volume, ") && printed.contains("no brick was decoded"), "{printed}");
}

#[test]
fn every_brick_is_counted() {
    let (found, status) = verified(&[], &demo());
    let info: Value = serde_json::from_slice(&output("info", &["--json"], &demo())).unwrap();
    assert_eq!((status, &found["schema"], &found["quick"]), (Some(0), &json!(1), &json!(false)));
    let dataset = &found["datasets"][0];
    assert_eq!(
        (&dataset["format"], &dataset["bad"], &dataset["complete"]),
        (&json!("zgy"), &json!(false), &json!(true))
    );
    assert_eq!((&dataset["damage"], &dataset["notes"], &dataset["error"]), (&json!([]), &json!([]), &Value::Null));
    let levels = dataset["layers"][0]["lods"].as_array().unwrap();
    assert_eq!(levels.len(), info["levels"]["data"].as_array().unwrap().len());
    for (level, described) in levels.iter().zip(info["levels"]["data"].as_array().unwrap()) {
        assert_eq!((&level["lod"], &level["bricks"]), (&described["lod"], &described["bricks"]["total"]));
        assert_eq!((&level["total"], &level["bad_bricks"]), (&level["bricks"], &json!(0)));
        let constant =
            described["bricks"]["constant"].as_u64().unwrap() + described["bricks"]["missing"].as_u64().unwrap();
        assert_eq!(level["constant"], constant);
    }
    let bytes: u64 = levels.iter().map(|level| level["bytes"].as_u64().unwrap()).sum();
    let size = fs::metadata(demo()).unwrap().len();
    assert!(bytes <= size && bytes > size / 8, "{bytes} of {size}");
    let totals = &found["totals"];
    assert_eq!(
        (&totals["bytes"], &totals["datasets"], &totals["interrupted"]),
        (&json!(bytes), &json!(1), &json!(false))
    );
}

#[test]
fn exactly_the_damaged_files_are_bad() {
    let (found, status) = verified(&[], &test_data("zgy"));
    assert_eq!(status, Some(1));
    let of = |name: &str| {
        let datasets = found["datasets"].as_array().unwrap();
        datasets.iter().find(|dataset| dataset["path"].as_str().unwrap().ends_with(&format!("/{name}"))).unwrap()
    };
    for fixture in fixtures() {
        assert_eq!(of(&fixture.name)["bad"], false, "{}", of(&fixture.name));
    }
    for fixture in damaged("open") {
        let dataset = of(&fixture.name);
        assert!(dataset["bad"] == true && dataset["error"].is_string(), "{dataset}");
    }
    for fixture in damaged("read") {
        let dataset = of(&fixture.name);
        let expected: Vec<Vec<u64>> =
            fixture.expected["damaged_bricks"].as_array().unwrap().iter().map(|bad| numbers(&bad["brick"])).collect();
        let bricks: Vec<Vec<u64>> =
            dataset["damage"].as_array().unwrap().iter().map(|entry| numbers(&entry["first"])).collect();
        assert_eq!((bricks, &dataset["bad_bricks"]), (expected.clone(), &json!(expected.len())), "{dataset}");
    }
}

#[test]
fn people_get_a_line_for_each_bad_brick_and_volume() {
    let source = source_with(&["bad_empty.zgy", "bad_zfp_cut.zgy", "v3_int8.zgy"]);
    fs::create_dir_all(source.path().join("deep/er")).unwrap();
    fs::rename(source.path().join("bad_zfp_cut.zgy"), source.path().join("deep/er/x\x1b[1m.zgy")).unwrap();
    let lines = bad_lines(&run("verify", &[], source.path()));
    let top = source.path().display();
    assert_eq!(lines[0], format!("{top}/bad_empty.zgy: not a ZGY file (too short)"));
    let place =
        format!("{top}/deep/er/x\\u{{1b}}[1m.zgy: layer data, lod 0, brick [1, 0, 0]: brick at byte 3493: its ZFP");
    assert!(lines[1].starts_with(&place), "{lines:?}");
    assert!(
        lines[2].starts_with("3 volumes, ") && lines[2].contains("2 volumes are bad (bad bricks: 1, other faults: 1)")
    );
    assert_eq!(lines.len(), 3, "{lines:?}");
    // a damaged stream is not looked into
    let quick = bad_lines(&run("verify", &["--quick"], source.path()));
    assert!(quick.len() == 2 && quick[1].contains("1 volume is bad"), "{quick:?}");
}

#[test]
fn bricks_that_follow_one_another_share_a_line() {
    let folder = tempfile::tempdir().unwrap();
    copy_all(&test_data("wkw/damaged"), &folder.path().join("damaged"));
    let lines = bad_lines(&run("verify", &[], folder.path()));
    let has = |words: &str| lines.iter().any(|line| line.contains(words));
    assert!(
        has("layer empty, lod 0, bricks [0, 0, 0] to [1, 1, 1] (8): z0/y0/x0.wkw: it has only 0 bytes"),
        "{lines:?}"
    );
    assert!(has("layer last byte, lod 0, brick [1, 1, 1]: block 7"), "{lines:?}");
    assert!(has("layer no header: cannot be shown: none of its mags can be read"), "{lines:?}");
}

#[test]
fn long_lists_are_cut_unless_all_is_wanted() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a.zgy");
    fs::copy(zgy("v3_int8.zgy"), &file).unwrap();
    let levels: Vec<Vec<u64>> = fixture("v3_int8.zgy").levels().iter().map(|lod| numbers(&lod["bricks"])).collect();
    let columns: u64 = levels.iter().map(|bricks| bricks[0] * bricks[1]).sum();
    let strings = fs::read(&file).unwrap()[9 + 333..][..4].try_into().map(u32::from_le_bytes).unwrap();
    let mut entry = 346 + u64::from(strings) + 2064 + 8 * columns;
    let mut table = File::options().write(true).open(&file).unwrap();
    // the coarsest level first, inlines fastest; neighbours in C order are bad for different reasons
    for bricks in levels.iter().rev() {
        for n in 0..bricks.iter().product() {
            let [i, j, k] = [n % bricks[0], n / bricks[0] % bricks[1], n / bricks[0] / bricks[1]];
            let number = (i * bricks[1] + j) * bricks[2] + k;
            table.seek(SeekFrom::Start(entry + 7)).unwrap();
            table.write_all(&[if number % 2 == 0 { 0x90 } else { 0x40 }]).unwrap();
            entry += 8;
        }
    }
    let (found, _) = verified(&[], &file);
    let count = found["datasets"][0]["damage"].as_array().unwrap().len();
    assert_eq!((&found["totals"]["bad_bricks"], &found["totals"]["bricks"]), (&json!(count), &json!(count)));
    let short = bad_lines(&run("verify", &[], &file));
    let all = bad_lines(&run("verify", &["--all"], &file));
    assert!(short.iter().any(|line| line.contains("more bad bricks (--all lists them)")), "{short:?}");
    assert!(all.len() > short.len() && all.iter().all(|line| !line.contains("--all")), "{all:?}");
}

#[test]
fn paths_may_be_several_and_inside_a_mount() {
    let source = source_with(&["v3_int8.zgy", "bad_entry_top_byte.zgy"]);
    let two = volfs().arg("verify").args([&zgy("v3_int16.zgy"), &source.path().join("v3_int8.zgy")]).output().unwrap();
    assert_eq!((two.status.code(), text(&two.stderr)), (Some(0), String::new()));
    assert!(text(&two.stdout).starts_with("2 volumes, "), "{}", text(&two.stdout));
    let Some(mount) = Mount::of(source.path()) else { return };
    let (found, status) = verified(&[], &mount.data("v3_int8.zgy", "lod0.raw"));
    let real = source.path().canonicalize().unwrap();
    assert_eq!((status, &found["datasets"][0]["path"]), (Some(0), &json!(real.join("v3_int8.zgy"))));
    let (found, status) = verified(&[], mount.point());
    assert_eq!(
        (status, &found["totals"]["datasets"], &found["totals"]["bad_datasets"]),
        (Some(1), &json!(2), &json!(1))
    );
}

#[test]
fn nothing_found_and_nothing_there_are_told() {
    let folder = tempfile::tempdir().unwrap();
    let nothing = run("verify", &[], folder.path());
    assert_eq!((nothing.status.code(), text(&nothing.stdout)), (Some(0), String::new()));
    assert!(text(&nothing.stderr).contains("no volumes found below"), "{}", text(&nothing.stderr));
    let (found, status) = verified(&[], folder.path());
    assert_eq!((status, &found["datasets"], &found["totals"]["datasets"]), (Some(0), &json!([]), &json!(0)));
    let missing = run("verify", &[], &folder.path().join("none"));
    assert_eq!(missing.status.code(), Some(1));
    assert!(text(&missing.stderr).contains("cannot find the source"), "{}", text(&missing.stderr));
}

/// Makes a WKW dataset that takes very long to read: a hole of 64 GiB. Where files cannot be so large, it returns
/// `false`.
fn make_long(folder: &Path) -> bool {
    let header = [b'W', b'K', b'W', 1, 0x56, 1, 4, 8, 16, 0, 0, 0, 0, 0, 0, 0];
    fs::create_dir_all(folder.join("1/z0/y0")).unwrap();
    fs::write(folder.join("1/header.wkw"), header).unwrap();
    let mut file = File::create(folder.join("1/z0/y0/x0.wkw")).unwrap();
    file.write_all(&header).unwrap();
    file.set_len(16 + (64 << 30)).is_ok()
}

/// Starts to verify a bad volume and one that takes very long. Returns once the first one is printed.
fn start_long(folder: &Path, arguments: &[&str]) -> Option<(Child, BufReader<std::process::ChildStdout>, String)> {
    fs::copy(zgy("bad_entry_top_byte.zgy"), folder.join("a.zgy")).unwrap();
    if !make_long(&folder.join("b")) {
        return None;
    }
    let mut command = volfs();
    command.arg("verify").args(arguments).arg(folder).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut out = BufReader::new(child.stdout.take().unwrap());
    let mut line = String::new();
    out.read_line(&mut line).unwrap();
    Some((child, out, line))
}

/// Waits until a process that was started by [`start_long`] reads the second volume.
fn wait_for_reading(pid: i32) {
    wait_until("the second volume is read", || {
        fs::read_to_string(format!("/proc/{pid}/io")).is_ok_and(|io| {
            let read = io.lines().find_map(|line| line.strip_prefix("rchar: ")).unwrap();
            read.parse::<u64>().unwrap() > 64 << 20
        })
    });
}

#[test]
fn a_signal_ends_it_at_once_with_what_was_found() {
    for (sent, status) in [(Signal::SIGINT, 130), (Signal::SIGTERM, 143)] {
        let folder = tempfile::tempdir().unwrap();
        let Some((mut child, mut out, first)) = start_long(folder.path(), &[]) else { return };
        assert!(first.contains("a.zgy: layer data, lod 0, brick [1, 0, 0]"), "{first}");
        let pid = i32::try_from(child.id()).unwrap();
        wait_for_reading(pid);
        signal(pid, sent).unwrap();
        assert_eq!(wait_for(&mut child).code(), Some(status));
        let mut rest = String::new();
        out.read_to_string(&mut rest).unwrap();
        assert!(rest.starts_with("interrupted: 2 volumes, ") && rest.contains("1 volume is bad"), "{rest}");
        let mut stderr = String::new();
        child.stderr.take().unwrap().read_to_string(&mut stderr).unwrap();
        assert_eq!(stderr, "", "no bar without a terminal");
    }
}

#[test]
fn interrupted_json_is_whole() {
    let folder = tempfile::tempdir().unwrap();
    let Some((mut child, mut out, mut printed)) = start_long(folder.path(), &["--json"]) else { return };
    let pid = i32::try_from(child.id()).unwrap();
    wait_for_reading(pid);
    signal(pid, Signal::SIGINT).unwrap();
    assert_eq!(wait_for(&mut child).code(), Some(130));
    out.read_to_string(&mut printed).unwrap();
    let found: Value = serde_json::from_str(&printed).unwrap();
    assert_eq!((&found["totals"]["interrupted"], &found["totals"]["incomplete_datasets"]), (&json!(true), &json!(1)));
    assert_eq!((&found["datasets"][0]["complete"], &found["datasets"][1]["complete"]), (&json!(true), &json!(false)));
    assert!(found["datasets"][1]["bytes"].as_u64().unwrap() > 0, "{printed}");
}

#[test]
fn a_signal_ends_it_although_nobody_reads_what_it_prints() {
    let folder = tempfile::tempdir().unwrap();
    let Some((mut child, out, _)) = start_long(folder.path(), &["--all"]) else { return };
    drop(out);
    signal(i32::try_from(child.id()).unwrap(), Signal::SIGINT).unwrap();
    assert_eq!(wait_for(&mut child).code(), Some(130));
}

#[test]
fn a_change_is_told_from_damage() {
    let folder = tempfile::tempdir().unwrap();
    let Some((mut child, mut out, _)) = start_long(folder.path(), &[]) else { return };
    wait_for_reading(i32::try_from(child.id()).unwrap());
    let cube = File::options().write(true).open(folder.path().join("b/1/z0/y0/x0.wkw")).unwrap();
    cube.set_len(1 << 30).unwrap();
    assert_eq!(wait_for(&mut child).code(), Some(1));
    let mut printed = String::new();
    out.read_to_string(&mut printed).unwrap();
    assert!(printed.contains("b: it changed while it was checked; verify it again"), "{printed}");
    assert!(printed.contains("2 volumes are bad (bad bricks: 1, other faults: 1)"), "{printed}");
}

#[test]
fn a_box_that_is_all_but_empty_takes_no_time() {
    let folder = tempfile::tempdir().unwrap();
    let dataset = folder.path().join("sparse");
    fs::create_dir_all(dataset.join("a/1/z0/y0")).unwrap();
    let header = [b'W', b'K', b'W', 1, 0x11, 1, 1, 1, 16, 0, 0, 0, 0, 0, 0, 0];
    fs::write(dataset.join("a/1/header.wkw"), header).unwrap();
    fs::write(dataset.join("a/1/z0/y0/x0.wkw"), [&header[..], &[7; 64]].concat()).unwrap();
    let layer = json!({"name": "a", "dataFormat": "wkw", "elementClass": "uint8", "category": "color",
        "mags": [{"mag": [1, 1, 1]}],
        "boundingBox": {"topLeft": [0, 0, 0], "width": 1 << 19, "height": 1 << 19, "depth": 1 << 19}});
    let text = json!({"scale": [1, 1, 1], "dataLayers": [layer]}).to_string();
    fs::write(dataset.join("datasource-properties.json"), text).unwrap();
    let (found, status) = verified(&[], folder.path());
    let level = &found["datasets"][0]["layers"][0]["lods"][0];
    assert_eq!((status, &level["bricks"], &level["bytes"]), (Some(0), &json!(1u64 << 54), &json!(64)));
    assert_eq!(level["constant"], (1u64 << 54) - 8);
}
