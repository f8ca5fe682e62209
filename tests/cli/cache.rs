//! `volfs cache`.

use std::fs;

use serde_json::Value;
use volfs::internals::{CachedRange, fill_disk_cache};

use super::{output, run};
use crate::support::{one_line_of_failure, text};

#[test]
fn a_cache_is_shown_checked_and_cleared() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path().join("cache");
    let names = [0, 1, 2, 3, 4].map(|n| format!("lod0/{n}"));
    let north = names.iter().map(|name| CachedRange {
        object: ["s3://bucket", "surveys/north", name, "etag"],
        offset: 0,
        bytes: vec![1; 10_000],
    });
    let south = CachedRange { object: ["az://other", "south.zgy", "", "7"], offset: 4096, bytes: vec![1; 1 << 20] };
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

    let printed = text(&output("cache", &["--clear"], &dir));
    assert!(printed.starts_with(dir.to_str().unwrap()) && printed.contains("removed 6 files, 1.05 MiB"), "{printed}");
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
