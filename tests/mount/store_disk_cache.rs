//! The disk cache of mounts of an object store.

use std::fs;
use std::path::Path;

use serde_json::Value;

use super::store_faults::{mount, raw_files, server, truth};
use crate::support::store_server::object_metadata;
use crate::support::{
    Fault, FaultProxy, Mount, StoreServer, comes_true, one_line_of_failure, test_data, volfs, wait_until,
};

/// Returns a figure of the disk cache of a mount.
fn figure(mount: &Mount, name: &str) -> u64 {
    let status = mount.status();
    status["store"]["disk_cache"][name].as_u64().unwrap_or_else(|| panic!("no {name} in {status}"))
}

/// Waits until all that was fetched is written.
fn wait_until_written(mount: &Mount) {
    let mut last = Value::Null;
    wait_until("all is written", || {
        let now = mount.status()["store"]["disk_cache"].clone();
        let is_same = now == last;
        last = now;
        std::thread::sleep(std::time::Duration::from_millis(100));
        is_same
    });
}

#[test]
fn what_was_read_once_is_not_fetched_again() {
    let Some(server) = server() else { return };
    let truth = truth(&server);
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path().join("cache");
    let dir = dir.to_str().unwrap();
    let proxy = FaultProxy::before(server.address());
    let Some(first) = mount(&proxy, &["--disk-cache", dir]) else { return };
    // another mount, which goes on meanwhile
    let second = mount(&proxy, &["--disk-cache", dir]).unwrap();
    assert!(raw_files(first.point()) == truth);
    wait_until_written(&first);
    let fetched = first.status()["store"]["bytes"].as_u64().unwrap();
    assert!(figure(&first, "written_bytes") > fetched / 2 && figure(&first, "bad") == 0);
    assert!(raw_files(second.point()) == truth);
    let again = second.status()["store"]["bytes"].as_u64().unwrap();
    assert!(again < fetched / 5, "{again} bytes of {fetched} were fetched again");
    assert!(figure(&second, "hits") > 10);
    drop((first, second));
    assert_eq!(fs::read_dir(Path::new(dir).join("writers")).unwrap().count(), 0, "nothing temporary is left");
    // a third one, when all files have changed on the disk
    for folder in fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path()) {
        let files = fs::read_dir(&folder).into_iter().flatten().map(|entry| entry.unwrap().path());
        for file in files.filter(|file| file.is_file()) {
            let mut bytes = fs::read(&file).unwrap();
            let middle = bytes.len() / 2;
            bytes[middle] ^= 1;
            fs::write(&file, bytes).unwrap();
        }
    }
    let third = mount(&proxy, &["--disk-cache", dir]).unwrap();
    assert!(raw_files(third.point()) == truth);
    assert!(figure(&third, "bad") > 5);
}

#[test]
fn what_faults_spoil_is_not_kept() {
    let Some(server) = server() else { return };
    let truth = truth(&server);
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path().join("cache");
    let proxy = FaultProxy::before(server.address());
    let Some(first) = mount(&proxy, &["--disk-cache", dir.to_str().unwrap()]) else { return };
    proxy.set_random(3, 5, vec![Fault::Drop, Fault::Truncate(100), Fault::Truncate(5000), Fault::Status(503)]);
    assert!(raw_files(first.point()) == truth);
    wait_until_written(&first);
    assert!(proxy.passed().faults > 5);
    proxy.clear();
    let second = mount(&proxy, &["--disk-cache", dir.to_str().unwrap()]).unwrap();
    assert!(raw_files(second.point()) == truth);
    assert_eq!(figure(&second, "bad"), 0);
}

#[test]
fn a_new_version_of_an_object_is_fetched() {
    let Some(server) = server() else { return };
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path().join("cache");
    let proxy = FaultProxy::before(server.address());
    let Some(mounted) = mount(&proxy, &["--disk-cache", dir.to_str().unwrap()]) else { return };
    let old = fs::read(mounted.data("demo/north.zgy", "lod0.raw")).unwrap();
    wait_until_written(&mounted);
    server.put("data/demo/north.zgy", fs::read(test_data("zgy/v3_float32.zgy")).unwrap());
    let changed = truth(&server);
    let new = &changed[Path::new("demo/north.zgy/data/lod0.raw")];
    assert!(*new != old);
    let is_new = |mount: &Mount| fs::read(mount.data("demo/north.zgy", "lod0.raw")).is_ok_and(|read| read == *new);
    assert!(comes_true(crate::support::SOON, || is_new(&mounted)));
    drop(mounted);
    let again = mount(&proxy, &["--disk-cache", dir.to_str().unwrap()]).unwrap();
    assert!(is_new(&again));
}

#[test]
fn a_folder_that_cannot_be_a_cache_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let point = folder.path().join("mount");
    fs::create_dir(&point).unwrap();
    fs::write(folder.path().join("thesis.txt"), "years").unwrap();
    let refused = |source: &str, dir: &Path, status| {
        let mut command = volfs();
        command.args(["mount", "--disk-cache"]).arg(dir).args(["--disk-cache-size", "1GiB", source]).arg(&point);
        // nothing listens there, and nothing is asked before the folder is checked
        command.envs(StoreServer::environment(([127, 0, 0, 1], 1).into()));
        one_line_of_failure(&command.output().unwrap(), status)
    };
    let local = test_data("demo");
    let line = refused(local.to_str().unwrap(), &folder.path().join("cache"), 2);
    assert!(line.contains("is for object stores"), "{line}");
    let _ = refused;
}

/// Returns the requests of a mount so far, but those for listings.
fn requests(proxy: &FaultProxy) -> Vec<String> {
    proxy.passed().log.into_iter().filter(|request| !request.contains("list-type")).collect()
}

#[test]
fn what_is_written_with_chunks_is_not_fetched_again() {
    let Some(server) = StoreServer::start() else { return };
    server.put_all("data", &test_data("vds/wavelet-no-pages"));
    for (object, entries) in object_metadata(&test_data("vds/wavelet-no-pages")) {
        let entries: Vec<(&str, &str)> = entries.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        server.put_metadata(&format!("data/{object}"), &entries);
    }
    server.remove("data/ObjectMetadata.json");
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path().join("cache");
    let arguments = ["--disk-cache", dir.to_str().unwrap()];
    let proxy = FaultProxy::before(server.address());
    let Some(first) = mount(&proxy, &arguments) else { return };
    let wanted = raw_files(first.point());
    assert!(wanted.values().map(Vec::len).sum::<usize>() > 1000, "{:?}", wanted.keys());
    wait_until_written(&first);
    drop(first);
    // one that was never written is asked for anew
    let is_chunk = |request: &&String| request.contains("Dimensions_") && !request.ends_with("LOD0/4");
    let chunks = |requests: &[String]| requests.iter().filter(is_chunk).count();
    assert!(chunks(&requests(&proxy)) > 1, "{:?}", requests(&proxy));
    proxy.forget();
    let second = mount(&proxy, &arguments).unwrap();
    assert!(raw_files(second.point()) == wanted);
    assert_eq!(chunks(&requests(&proxy)), 0, "{:#?}", requests(&proxy));
    assert_eq!(figure(&second, "bad"), 0);
}
