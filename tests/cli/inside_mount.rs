//! Paths inside a mount mean their source.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Output;

use nix::sys::signal::Signal;
use serde_json::Value;

use super::{output, run};
use crate::support::wait::TIMEOUT;
use crate::support::{
    Mount, copy_all, fixture, one_line_of_failure, signal, source_with, test_data, text, volfs, wait_until, within,
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
    signal(mount.pid(), Signal::SIGSTOP).unwrap();
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
