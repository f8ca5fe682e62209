//! Sources in an object store: the same bytes as from a local folder, changes, servers that are down, and secrets.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Output;
use std::time::Duration;

use serde_json::Value;

use crate::support::store_server::{SECRET, StoreServer, object_metadata};
use crate::support::{Mount, comes_true, copy_all, is_eio, json, test_data, text, volfs};

/// Runs a command of volfs that reads from a server.
fn run(server: &StoreServer, arguments: &[&str]) -> Output {
    volfs().args(arguments).envs(StoreServer::environment(server.address())).output().unwrap()
}

fn mount(server: &StoreServer, key: &str, arguments: &[&str]) -> Option<Mount> {
    Mount::of_store(&StoreServer::url(key), &StoreServer::environment(server.address()), arguments)
}

/// Puts the metadata of the chunks, which a copy of a dataset keeps in one file.
fn put_tags(server: &StoreServer, key: &str, folder: &Path) {
    let listed = object_metadata(folder);
    for (object, entries) in &listed {
        let entries: Vec<(&str, &str)> = entries.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        server.put_metadata(&format!("{key}/{object}"), &entries);
    }
    if !listed.is_empty() {
        server.remove(&format!("{key}/ObjectMetadata.json"));
    }
}

fn files_below(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() { folders.push(path) } else { files.push(path) }
        }
    }
    files.sort();
    files
}

#[test]
fn a_mount_of_a_store_shows_the_same_as_one_of_a_folder() {
    let Some(server) = StoreServer::start() else { return };
    let names = ["no-pages", "pages", "four.vds", "wavelet.vds"];
    let local = tempfile::tempdir().unwrap();
    for name in names {
        let (from, to) = (test_data("vds").join(name), local.path().join(name));
        copy_all(&from, &to);
        server.put_all(&format!("top/{name}"), &from);
        put_tags(&server, &format!("top/{name}"), &from);
    }
    server.put_all("top/pyramid", &test_data("wkw").join("pyramid"));
    copy_all(&test_data("wkw").join("pyramid"), &local.path().join("pyramid"));
    server.put_all("top/north.zgy", &test_data("zgy/v3_int16.zgy"));
    copy_all(&test_data("zgy/v3_int16.zgy"), &local.path().join("north.zgy"));
    let (Some(remote), Some(here)) =
        (mount(&server, "top", &["--views", "raw"]), Mount::with(local.path(), &["--views", "raw"]))
    else {
        return;
    };
    let relative = |mount: &Mount| -> Vec<_> {
        let is_sample = |path: &Path| path.extension().is_some_and(|extension| extension == "raw");
        let below = files_below(mount.point()).into_iter().filter(|path| is_sample(path));
        below.map(|path| path.strip_prefix(mount.point()).unwrap().to_owned()).collect()
    };
    let files = relative(&here);
    assert!(files.len() > 20 && files == relative(&remote), "{files:?}");
    for file in files {
        assert!(fs::read(remote.path(&file)).unwrap() == fs::read(here.path(&file)).unwrap(), "{}", file.display());
    }
    let store = remote.status()["store"].clone();
    assert!(store["requests"].as_u64().unwrap() > 0 && store["bytes"].as_u64().unwrap() > 0, "{store}");
    assert!(here.status()["store"].is_null());
    // each page fault of a map is a request that takes long
    assert!(remote.kernel_read_ahead().is_none_or(|kib| kib == 128));
    // a path inside the mount leads to the store
    let info = run(&server, &["info", "--json", &remote.path("pages").to_string_lossy()]);
    assert!(info.status.success(), "{}", text(&info.stderr));
    let listed =
        |source: &str| -> Value { serde_json::from_slice(&run(&server, &["ls", "--json", source]).stdout).unwrap() };
    assert_eq!(listed(&StoreServer::url("top")), listed(&local.path().to_string_lossy()));
    let verified = run(&server, &["verify", &StoreServer::url("top/pages"), &StoreServer::url("top/four.vds")]);
    assert!(verified.status.success(), "{}", text(&verified.stderr));
}

#[test]
fn no_secret_is_seen_anywhere() {
    let Some(server) = StoreServer::start() else { return };
    server.put_all("four.vds", &test_data("vds/four.vds"));
    let Some(mount) = mount(&server, "four.vds", &["--store-option", "timeout=20s"]) else { return };
    let command_line = fs::read_to_string(format!("/proc/{}/cmdline", mount.pid())).unwrap();
    let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap();
    let status = json(mount.path(".volfs/status.json")).to_string();
    assert!(mounts.contains("volfs:s3://volfs/four.vds"), "{mounts}");
    assert!(status.contains("timeout=20s"));
    for seen in [command_line, mounts, status, mount.log()] {
        assert!(!seen.contains(SECRET), "{seen}");
    }
    // wrong keys: the error has neither of them
    let wrong = volfs()
        .args(["ls", &StoreServer::url("four.vds")])
        .envs(StoreServer::environment(server.address()))
        .env("AWS_SECRET_ACCESS_KEY", "another-secret")
        .output()
        .unwrap();
    let error = text(&wrong.stderr);
    assert_eq!((wrong.status.code(), error.lines().count()), (Some(1), 1), "{error}");
    assert!(!error.contains("another-secret") && error.contains("credentials"), "{error}");
    let option = ["ls", "s3://volfs/four.vds", "--store-option=secret_access_key=hunter2"];
    for arguments in [&option[..], &["ls", "https://me:hunter2@host/x"], &["ls", "az://c/x?sig=hunter2"]] {
        let refused = run(&server, arguments);
        let error = text(&refused.stderr);
        assert!(refused.status.code() == Some(1) && error.lines().count() == 1, "{error}");
        assert!(!error.contains("hunter2"), "{error}");
    }
}

#[test]
fn what_is_wrong_with_a_url_is_one_line() {
    let Some(mut server) = StoreServer::start() else { return };
    let brief = ["--store-option=retries=1", "--store-option=retry_seconds=2"];
    let refused = |server: &StoreServer, url: &str, says: &str| {
        let output = run(server, &[&["ls", url][..], &brief].concat());
        let error = text(&output.stderr);
        assert!(
            output.status.code() == Some(1) && error.lines().count() == 1 && error.contains(says),
            "{url}: {error}"
        );
    };
    refused(&server, "ftp://host/x", "no scheme");
    refused(&server, "s3://volfs/none", "no such object or folder");
    refused(&server, "s3://", "needs a name");
    server.stop();
    refused(&server, "s3://volfs/none", "connection refused");
}

#[test]
fn an_object_that_is_replaced_is_a_new_dataset() {
    let Some(server) = StoreServer::start() else { return };
    server.put_all("top/a.zgy", &test_data("zgy/v3_int16.zgy"));
    let Some(mount) = mount(&server, "top", &[]) else { return };
    let raw = || fs::read(mount.data("a.zgy", "lod0.raw"));
    let before = raw().unwrap();
    let other = test_data("zgy/v3_float32.zgy");
    server.put("top/a.zgy", fs::read(&other).unwrap());
    let wanted = volfs().arg("cat").arg(&other).output().unwrap().stdout;
    assert!(before != wanted && comes_true(Duration::from_secs(10), || raw().is_ok_and(|now| now == wanted)));
    server.remove("top/a.zgy");
    assert!(comes_true(Duration::from_secs(10), || !mount.path("a.zgy").exists()));
}

#[test]
fn reads_fail_while_the_store_is_down_and_work_again_when_it_is_back() {
    let Some(mut server) = StoreServer::start() else { return };
    server.put_all("top/a.zgy", &test_data("zgy/v3_int16.zgy"));
    let brief = ["--store-option=retries=1", "--store-option=retry_seconds=2"];
    let Some(mount) = mount(&server, "top", &brief) else { return };
    let file = mount.data("a.zgy", "lod0.raw");
    server.stop();
    assert!(is_eio(&fs::read(&file).unwrap_err()));
    assert!(mount.path(".volfs/status.json").exists() && server.resume());
    assert!(comes_true(Duration::from_secs(20), || fs::read(&file).is_ok()), "{}", mount.log());
    let lines = mount.log().lines().filter(|line| line.contains("connection refused")).count();
    assert!((1..=4).contains(&lines), "{}", mount.log());
}
