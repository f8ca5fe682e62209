//! An object store behind a proxy that fails: what a retry mends is not seen, and all else is an error that passes.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::support::{Fault, FaultProxy, Mount, SOON, StoreServer, comes_true, is_eio, test_data};

/// Datasets of each kind: files, and folders of objects.
const DATASETS: [&str; 4] = ["demo/north.zgy", "demo/south.vds", "demo/cloud-survey", "vds/wavelet-no-pages"];

/// Starts a server with some datasets below the key `data`.
pub fn server() -> Option<StoreServer> {
    let server = StoreServer::start()?;
    for dataset in DATASETS {
        server.put_all(&format!("data/{dataset}"), &test_data(dataset));
    }
    Some(server)
}

/// Mounts what [`server`] has, asked at the address of a proxy.
pub fn mount(proxy: &FaultProxy, arguments: &[&str]) -> Option<Mount> {
    Mount::of_store(&StoreServer::url("data"), &StoreServer::environment(proxy.address()), arguments)
}

/// Returns all raw files below a folder, by their paths below it.
pub fn raw_files(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    fn collect(top: &Path, folder: &Path, found: &mut BTreeMap<PathBuf, Vec<u8>>) {
        for entry in fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display())) {
            let path = entry.unwrap().path();
            if path.is_dir() && !path.to_string_lossy().ends_with(".ome.zarr") {
                collect(top, &path, found);
            } else if path.extension().is_some_and(|extension| extension == "raw") {
                let bytes = fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
                found.insert(path.strip_prefix(top).unwrap().to_owned(), bytes);
            }
        }
    }
    let mut found = BTreeMap::new();
    collect(folder, folder, &mut found);
    found
}

/// Returns what the files have where the same data lie on this machine.
pub fn truth(server: &StoreServer) -> BTreeMap<PathBuf, Vec<u8>> {
    let mount = Mount::of(server.file("data")).unwrap();
    let files = raw_files(mount.point());
    assert!(files.len() > 10);
    files
}

#[test]
fn what_a_retry_mends_is_not_seen() {
    let Some(server) = server() else { return };
    let proxy = FaultProxy::before(server.address());
    let Some(mount) = mount(&proxy, &["--threads", "2"]) else { return };
    let truth = truth(&server);
    let faults = [Fault::Drop, Fault::Truncate(0), Fault::Truncate(1000), Fault::Delay(Duration::from_millis(20))];
    proxy.set_random(1, 3, [&faults[..], &[500, 503, 429].map(Fault::Status)].concat());
    assert!(raw_files(mount.point()) == truth);
    let passed = proxy.passed();
    assert!(passed.faults > 10, "{passed:?}");
    assert!(mount.status()["store"]["retries"].as_u64().unwrap() > 5);
    assert_eq!(mount.counter("errors"), 0);
}

#[test]
fn a_request_that_hangs_is_sent_again() {
    let Some(server) = server() else { return };
    let proxy = FaultProxy::before(server.address());
    let Some(mount) = mount(&proxy, &["--store-option", "timeout=1s"]) else { return };
    proxy.forget();
    proxy.set(|request| (request.number % 8 == 2).then_some(Fault::Hang));
    let file = mount.data("demo/north.zgy", "lod0.raw");
    assert!(fs::read(file).unwrap() == truth(&server)[Path::new("demo/north.zgy/data/lod0.raw")]);
    assert!(proxy.passed().faults > 0);
}

#[test]
fn a_fault_that_stays_is_an_error_and_one_line_and_passes() {
    let Some(server) = server() else { return };
    let proxy = FaultProxy::before(server.address());
    let Some(mount) = mount(&proxy, &[]) else { return };
    let file = mount.data("demo/north.zgy", "lod0.raw");
    let open = fs::File::open(&file).unwrap();
    proxy.set(|_| Some(Fault::Status(403)));
    for _ in 0..5 {
        let mut bytes = Vec::new();
        let error = std::io::Read::read_to_end(&mut &open, &mut bytes).unwrap_err();
        assert!(is_eio(&error), "{error}");
    }
    let log = mount.log();
    assert!(log.lines().filter(|line| line.contains("403")).count() <= 2, "{log}");
    assert!(!log.contains(crate::support::store_server::SECRET));
    proxy.clear();
    let truth = truth(&server);
    let is_right = || fs::read(&file).is_ok_and(|bytes| bytes == truth[Path::new("demo/north.zgy/data/lod0.raw")]);
    assert!(comes_true(SOON, is_right), "it does not come back");
}

#[test]
fn an_answer_of_another_version_is_never_mixed_in() {
    let Some(server) = server() else { return };
    let proxy = FaultProxy::before(server.address());
    let Some(mount) = mount(&proxy, &[]) else { return };
    let truth = truth(&server);
    for dataset in ["demo/north.zgy", "demo/cloud-survey"] {
        let layer = if dataset == "demo/cloud-survey" { "Amplitude" } else { "data" };
        let path = Path::new(dataset).join(layer).join("lod0.raw");
        let file = fs::File::open(mount.path(&path)).unwrap();
        proxy.set(|request| (request.method == "GET" && request.range.is_some()).then_some(Fault::WrongEtag));
        let mut bytes = Vec::new();
        // what was fetched when the dataset was opened may be enough
        if std::io::Read::read_to_end(&mut &file, &mut bytes).is_ok() {
            assert!(bytes == truth[&path], "{dataset}");
        }
        proxy.clear();
        let is_right = || fs::read(mount.path(&path)).is_ok_and(|bytes| bytes == truth[&path]);
        assert!(comes_true(SOON, is_right), "{dataset}");
    }
    assert!(proxy.passed().faults > 0);
}
