//! `volfs ls`, and `volfs cache`.

use std::fs;
use std::io::Read;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::Value;
use volfs::internals::fill_disk_cache;

use super::{demo, output, run, zgy};
use crate::support::faulty_folder::{Fault, FaultyFolder};
use crate::support::{
    damaged, fixtures, numbers, one_line_of_failure, program, source_with, test_data, text, volfs, wait_for,
};

/// Returns what `volfs ls --json` lists.
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
fn people_get_one_line_for_each_layer() {
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
fn what_the_disk_does_not_give_is_listed_with_the_reason() {
    let source = source_with(&["v3_int8.zgy", "v4_mixed.zgy"]);
    let Some(faulty) = FaultyFolder::of(source.path()) else { return };
    faulty.faults.below("v3_int8.zgy", Fault::Io);
    let list = listed(&faulty.path);
    let shown = |object: &Value| (object["path"].as_str().map(str::to_owned), object["error"].is_string());
    let errors: Vec<(Option<String>, bool)> = list.iter().map(shown).collect();
    assert_eq!(errors, [(Some("v4_mixed.zgy".into()), false), (Some("v3_int8.zgy".into()), true)]);
}

#[test]
fn a_working_directory_that_is_gone_is_not_the_root() {
    let gone = tempfile::tempdir().unwrap();
    let output = Command::new("sh")
        .args(["-c", r#"cd "$1" && rmdir "$1" && exec "$2" ls ."#, "sh"])
        .args([gone.path(), &program()])
        .output()
        .unwrap();
    assert!(one_line_of_failure(&output, 1).contains("cannot find the source ."));
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
    // the reader closes the pipe at once
    let mut child = volfs().arg("ls").arg(folder.path()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    assert_eq!(wait_for(&mut child).code(), Some(0));
    let mut errors = String::new();
    child.stderr.take().unwrap().read_to_string(&mut errors).unwrap();
    assert_eq!(errors, "");
}

#[test]
fn links_are_followed_as_in_a_mount() {
    let source = source_with(&["v3_int8.zgy"]);
    symlink(source.path().join("v3_int8.zgy"), source.path().join("inside.zgy")).unwrap();
    symlink(zgy("v3_int16.zgy"), source.path().join("outside.zgy")).unwrap();
    assert_eq!(listed(source.path()).len(), 2);
    let all = text(&output("ls", &["--follow-links"], source.path()));
    assert_eq!(all.lines().count(), 3, "{all}");
}

#[test]
fn an_invalid_source_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let missing = folder.path().join("missing");
    let line = one_line_of_failure(&run("ls", &[], &missing), 1);
    assert!(line.starts_with("volfs: cannot find the source") && line.contains("missing"), "{line}");
    fs::write(&missing, "something else").unwrap();
    let line = one_line_of_failure(&run("ls", &[], &missing), 1);
    assert!(line.contains("is not a volume"), "{line}");
}

#[test]
fn ls_and_info_agree() {
    let info: Value = serde_json::from_slice(&output("info", &["--json"], &demo())).unwrap();
    let level = &info["levels"]["data"][0];
    let listed = &listed(&demo())[0];
    for key in ["shape", "dtype", "codec", "size", "layer", "format"] {
        assert_eq!(listed[key], level[key], "{key}");
    }
}

#[test]
fn a_cache_is_shown_checked_and_cleared() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path().join("cache");
    let names = [0, 1, 2, 3, 4].map(|n| format!("lod0/{n}"));
    let north = names.iter().map(|name| (["s3://bucket", "surveys/north", name, "etag"], 0, vec![1; 10_000]));
    let south = (["az://other", "south.zgy", "", "7"], 4096, vec![1; 1 << 20]);
    fill_disk_cache(&dir, 64 << 20, north.chain([south]));

    let json = |arguments: &[&str]| -> Value { serde_json::from_slice(&output("cache", arguments, &dir)).unwrap() };
    let shown = json(&["--json"]);
    assert_eq!((&shown["files"], shown["datasets"].as_array().unwrap().len()), (&Value::from(6), 2));
    assert_eq!(
        (shown["datasets"][1]["store"].as_str(), &shown["datasets"][1]["files"]),
        (Some("s3://bucket"), &5.into())
    );
    assert!(shown["bytes"].as_u64().unwrap() > (1 << 20) + 50_000);
    let printed = text(&output("cache", &[], &dir));
    assert!(printed.contains("az://other/south.zgy\n") && printed.contains("6 files"), "{printed}");

    let file = fs::read_dir(&dir)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .find(|path| path.is_dir() && !path.ends_with("writers") && fs::read_dir(path).unwrap().count() > 0);
    let file = fs::read_dir(file.unwrap()).unwrap().next().unwrap().unwrap().path();
    let mut bytes = fs::read(&file).unwrap();
    *bytes.last_mut().unwrap() ^= 1;
    fs::write(&file, bytes).unwrap();
    assert_eq!(json(&["--json"])["bad"]["files"], 0);
    assert_eq!(json(&["--json", "--check"])["bad"]["files"], 1);
    let printed = text(&output("cache", &["--check"], &dir));
    assert!(printed.contains(file.file_name().unwrap().to_str().unwrap()), "{printed}");

    fs::write(file.with_file_name("a thesis"), "").unwrap();
    let cleared = run("cache", &["--clear"], &dir);
    let printed = text(&cleared.stdout);
    assert!(printed.starts_with(dir.to_str().unwrap()) && printed.contains("removed 6 files, 1.05 MiB"), "{printed}");
    assert!(text(&cleared.stderr).contains("left 1 file not of the cache"), "{}", text(&cleared.stderr));
    fs::remove_file(file.with_file_name("a thesis")).unwrap();
    assert!(text(&output("cache", &[], &dir)).contains("nothing"));
    assert_eq!(json(&["--clear", "--json"])["cleared"]["files"], 0);
}

#[test]
fn a_folder_that_is_no_cache_is_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("000")).unwrap();
    let file = folder.path().join("000/0000000000000000-0-1");
    fs::write(&file, "a thesis").unwrap();
    for arguments in [&["--clear"][..], &["--check"], &[]] {
        let line = one_line_of_failure(&run("cache", arguments, folder.path()), 1);
        assert!(line.contains("is not a disk cache of volfs"), "{line}");
    }
    assert!(file.exists());
    let line = one_line_of_failure(&run("cache", &[], &folder.path().join("absent")), 1);
    assert!(line.contains("No such file"), "{line}");
}
