//! Datasets in an object store: they are those of a folder; what is fetched, kept and retried, and what is said when it
//! fails.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Output;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::thread;
use std::time::Duration;

use serde_json::Value;

use crate::support::http::Certificate;
use crate::support::stores::page;
use crate::support::stores::{SECRET, StoreServer, object_metadata};
use crate::support::{
    Answer, Fault, FaultProxy, HttpServer, Mount, Objects, Request, SOON, comes_true, copy_all, fuse_or_skip, is_eio,
    json, names, one_line_of_failure, read_at, test_data, text, volfs, wait_until,
};

/// Runs a command of volfs that reads from a server.
fn run(server: &StoreServer, arguments: &[&str]) -> Output {
    volfs().args(arguments).envs(StoreServer::environment(server.address())).output().unwrap()
}

fn mount_key(server: &StoreServer, key: &str, arguments: &[&str]) -> Option<Mount> {
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
        (mount_key(&server, "top", &["--views", "raw"]), Mount::with(local.path(), &["--views", "raw"]))
    else {
        return;
    };
    let files = raw_files(here.point());
    assert!(files.len() > 20 && raw_files(remote.point()) == files, "{:?}", files.keys());
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
    let Some(mount) = mount_key(&server, "four.vds", &["--store-option", "timeout=20s"]) else { return };
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

/// Checks that a mount soon shows another dataset that `put` puts in the place of one.
pub fn shows_another(mount: &Mount, dataset: &str, put: impl FnOnce(Vec<u8>)) {
    let other = test_data("zgy/v3_float32.zgy");
    let wanted = volfs().arg("cat").arg(&other).output().unwrap().stdout;
    let raw = || fs::read(mount.data(dataset, "lod0.raw"));
    assert!(raw().unwrap() != wanted);
    put(fs::read(&other).unwrap());
    assert!(comes_true(2 * SOON, || raw().is_ok_and(|now| now == wanted)), "{}", mount.log());
}

#[test]
fn an_object_that_is_replaced_is_a_new_dataset() {
    let Some(server) = StoreServer::start() else { return };
    server.put_all("top/a.zgy", &test_data("zgy/v3_int16.zgy"));
    let Some(mount) = mount_key(&server, "top", &[]) else { return };
    shows_another(&mount, "a.zgy", |bytes| server.put("top/a.zgy", bytes));
    server.remove("top/a.zgy");
    assert!(comes_true(Duration::from_secs(10), || !mount.path("a.zgy").exists()));
}

#[test]
fn reads_fail_while_the_store_is_down_and_work_again_when_it_is_back() {
    let Some(mut server) = StoreServer::start() else { return };
    server.put_all("top/a.zgy", &test_data("zgy/v3_int16.zgy"));
    let brief = ["--store-option=retries=1", "--store-option=retry_seconds=2"];
    let Some(mount) = mount_key(&server, "top", &brief) else { return };
    let file = mount.data("a.zgy", "lod0.raw");
    server.stop();
    assert!(is_eio(&fs::read(&file).unwrap_err()));
    assert!(mount.path(".volfs/status.json").exists() && server.resume());
    assert!(comes_true(Duration::from_secs(20), || fs::read(&file).is_ok()), "{}", mount.log());
    let lines = mount.log().lines().filter(|line| line.contains("connection refused")).count();
    assert!((1..=4).contains(&lines), "{}", mount.log());
}

const CROWD: usize = 1_000_000;
/// Names on a page of a listing.
const PAGE: usize = 1000;

/// Answers a listing of a folder of a million objects, and of a folder `survey` among them.
fn crowd(request: &Request, prefix: &str) -> Answer {
    let first: usize = request.asked("continuation-token").map_or(0, |token| token.parse().unwrap());
    let end = CROWD.min(first + PAGE);
    let name = |n: usize| (format!("{prefix}{n:07}"), 1, format!("etag{n}"));
    let files: Vec<_> = (first..end).map(name).collect();
    let survey = format!("{prefix}survey/");
    // in the order of the names, so on the last page
    let folders = if end == CROWD { vec![survey.as_str()] } else { Vec::new() };
    page(&files, folders.into_iter(), (end < CROWD).then(|| end.to_string()).as_deref())
}

/// Starts a store with a crowd at the top and another one in `deep/`, and a dataset in each.
fn start() -> HttpServer {
    let objects = Objects::default();
    for key in ["survey", "deep/survey"] {
        objects.put_all(key, &test_data("vds/pages"));
    }
    HttpServer::start(move |request| match request.asked("prefix") {
        None | Some("") if request.asked("list-type").is_some() => crowd(request, ""),
        Some("deep/") => crowd(request, "deep/"),
        _ => objects.answer(request),
    })
}

#[test]
fn a_bucket_of_a_million_objects_is_entered_with_a_few_requests() {
    if !fuse_or_skip() {
        return;
    }
    let server = start();
    let environment = [
        ("AWS_ENDPOINT_URL", format!("http://{}", server.address())),
        ("AWS_ALLOW_HTTP", "true".to_owned()),
        ("AWS_SKIP_SIGNATURE", "true".to_owned()),
    ];
    for key in ["s3://volfs", "s3://volfs/deep"] {
        server.forget();
        let Some(mount) = Mount::of_store(key, &environment, &[]) else { return };
        let mounted = server.log();
        // the signs of all formats, in a folder whose names are not all known
        assert!(mounted.len() <= 24, "{key}: {mounted:#?}");
        server.forget();
        assert!(names(mount.path("survey")).contains("Amplitude"), "{:?}", names(mount.path("survey")));
        let entered = server.log();
        assert!(entered.len() <= 30, "{key}: {entered:#?}");
        // and what is in it is read
        assert!(!fs::read(mount.path("survey/Amplitude/lod0.raw")).unwrap().is_empty());
        assert!(server.log().len() < 200, "{}", server.log().len());
    }
}

#[test]
fn a_bucket_that_is_far_away_is_listed_whole() {
    if !fuse_or_skip() {
        return;
    }
    let objects = Objects::default();
    objects.put_all("cloud", &test_data("vds/pages"));
    (0..6).for_each(|n| objects.put_all(&format!("survey-{n}"), &test_data("demo/north.zgy")));
    let server = HttpServer::start(move |request| {
        thread::sleep(Duration::from_millis(60));
        objects.answer(request)
    });
    let environment = environment(format!("http://{}", server.address()));
    let Some(mount) = Mount::of_store("s3://volfs", &environment, &[]) else { return };
    // also those that are known only by their first bytes
    let listed = names(mount.point());
    assert!(listed.contains("cloud") && (0..6).all(|n| listed.contains(&format!("survey-{n}"))), "{listed:?}");
}

/// Readers of the dataset that hangs: more than there are threads, and than requests of a dataset in flight.
const READERS: usize = 20;
const LENGTH: usize = 4096;

#[test]
fn an_object_that_hangs_stops_nobody_else() {
    let Some(server) = server() else { return };
    let truth = truth(&server);
    let proxy = FaultProxy::before(server.address());
    let Some(mount) = mount(&proxy, &["--threads", "2", "--cache-size", "1MiB"]) else { return };
    let hanging = ["demo/south.vds", "demo/cloud-survey"].map(|dataset| Path::new(dataset).join("Amplitude/lod0.raw"));
    hanging.iter().for_each(|file| assert!(fs::metadata(mount.path(file)).unwrap().len() == truth[file].len() as u64));
    proxy.set(|request| {
        let hangs = ["south.vds", "cloud-survey/Dimensions"].iter().any(|key| request.target.contains(key));
        (request.method == "GET" && hangs).then_some(Fault::Hang)
    });
    // each at another place of its file
    let place = |n: usize| (&hanging[n % 2], (truth[&hanging[n % 2]].len() - LENGTH) * n / READERS);
    let read = |n: usize| {
        let (file, offset) = (mount.path(place(n).0), place(n).1 as u64);
        thread::spawn(move || read_at(&File::open(file).unwrap(), offset, LENGTH))
    };
    let readers: Vec<_> = (0..READERS).map(read).collect();
    wait_until("requests hang", || proxy.passed().faults >= 2);
    for dataset in ["demo/north.zgy/data/lod0.raw", "vds/wavelet-no-pages/Amplitude/lod0.raw"] {
        assert!(fs::read(mount.path(dataset)).unwrap() == truth[Path::new(dataset)], "{dataset}");
    }
    assert!(names(mount.path("demo")).len() >= 3 && mount.status()["store"]["in_flight"].as_u64().unwrap() > 0);
    assert!(readers.iter().any(|reader| !reader.is_finished()), "the objects still hang");
    // their readers go on when they answer: the connections that hang are closed, and the requests sent again
    proxy.clear();
    proxy.drop_hanging();
    for (n, reader) in readers.into_iter().enumerate() {
        let (file, from) = place(n);
        assert!(reader.join().unwrap().unwrap() == truth[file][from..from + LENGTH], "reader {n}");
    }
    assert_eq!(mount.counter("errors"), 0);
}

#[test]
fn a_coarser_quality_fetches_fewer_bytes() {
    let Some(server) = StoreServer::start() else { return };
    server.put_all("lossless", &test_data("vds/lossless"));
    let environment = StoreServer::environment(server.address());
    let fetched = |arguments: &[&str]| {
        let mount = Mount::of_store(&StoreServer::url("lossless"), &environment, arguments)?;
        let file = mount.path("lossless/Amplitude/lod0.raw");
        let entered = mount.status()["store"]["bytes"].as_u64().unwrap();
        let bytes = fs::read(&file).unwrap();
        let store = mount.status()["store"].clone();
        Some((store["bytes"].as_u64().unwrap() - entered, bytes))
    };
    let Some((all, exact)) = fetched(&[]) else { return };
    let chunks: u64 = (0..6)
        .filter_map(|n| fs::metadata(server.file(&format!("lossless/Dimensions_012LOD0/{n}"))).ok())
        .map(|file| file.len())
        .sum();
    assert!(all >= chunks, "{all} of {chunks}");
    let mut before = all;
    for quality in ["0", "2", "6"] {
        let (bytes, samples) = fetched(&["--quality", quality]).unwrap();
        println!("{quality}: {bytes} of {all}");
        assert!(bytes < before - chunks / 50, "quality {quality}: {bytes} bytes, and {before} of a better one");
        assert_eq!(samples.len(), exact.len());
        before = bytes;
    }
    assert!(before < all / 2, "{before} of {all}");
}

const BRIEF: [&str; 2] = ["--store-option=retries=1", "--store-option=retry_seconds=2"];

fn environment(endpoint: String) -> [(&'static str, String); 6] {
    [
        ("AWS_ENDPOINT_URL", endpoint),
        ("AWS_REGION", "us-east-1".to_owned()),
        ("AWS_ACCESS_KEY_ID", "KEY".to_owned()),
        ("AWS_SECRET_ACCESS_KEY", "hunter2".to_owned()),
        ("AWS_ALLOW_HTTP", "true".to_owned()),
        ("SSL_CERT_FILE", "/etc/ssl/certs/ca-certificates.crt".to_owned()),
    ]
}

/// Returns the line that `volfs ls` fails with.
fn line(endpoint: String, url: &str) -> String {
    let mut command = volfs();
    let output = command.args(["ls", url]).args(BRIEF).envs(environment(endpoint)).output().unwrap();
    let line = one_line_of_failure(&output, 1);
    assert!(line.contains(url) && !line.contains("hunter2") && line.len() < 400, "{line}");
    line
}

#[test]
fn refusals_of_a_store_are_one_line_that_says_what_to_do() {
    for (status, code, says) in [
        (403, "RequestTimeTooSkewed", "set the clock"),
        (400, "AuthorizationHeaderMalformed", "AWS_REGION"),
        (301, "PermanentRedirect", "AWS_REGION"),
        (307, "TemporaryRedirect", "AWS_REGION"),
        (403, "SignatureDoesNotMatch", "check the key and the secret"),
        (400, "ExpiredToken", "have expired"),
        (403, "AccessDenied", "denies it (403)"),
        (404, "NoSuchBucket", "no such bucket"),
        (503, "SlowDown", "too many requests"),
        (500, "InternalError", "500"),
    ] {
        // the answer to a look at one object has no text
        let server = HttpServer::start(move |_| Answer::error(status, code));
        let line = line(format!("http://{}", server.address()), "s3://volfs/survey");
        assert!(line.contains(says), "{status} {code}: {line}");
    }
}

#[test]
fn listings_that_make_no_sense_are_one_line() {
    type Listing = fn() -> Answer;
    let listings: [(&str, Listing); 3] = [
        ("makes no sense", || page(&[], ["survey/a/"].into_iter(), Some(&"x".repeat(100_000)))),
        ("makes no sense", || {
            let files: Vec<_> = (0..20_000).map(|n| (format!("survey/{n}"), 1, String::new())).collect();
            page(&files, std::iter::empty(), None)
        }),
        ("longer than any list", || Answer::new(200, vec![b' '; 20 << 20])),
    ];
    for (says, listing) in listings {
        let server = HttpServer::start(move |request| match request.asked("list-type") {
            Some(_) => listing(),
            None => Answer::error(404, "NoSuchKey"),
        });
        let line = line(format!("http://{}", server.address()), "s3://volfs/survey");
        assert!(line.contains(says), "{says}: {line}");
    }
}

#[test]
fn folders_in_folders_without_end_are_looked_into_as_far_as_keys_go() {
    let server = HttpServer::start(|request| match request.asked("list-type") {
        Some(_) => {
            let folder = format!("{}{}/", request.asked("prefix").unwrap_or(""), "x".repeat(100));
            page(&[], [folder.as_str()].into_iter(), None)
        }
        None => Answer::error(404, "NoSuchKey"),
    });
    let mut command = volfs();
    let output = command.args(["ls", "s3://volfs/survey"]).args(BRIEF);
    let output = output.envs(environment(format!("http://{}", server.address()))).output().unwrap();
    assert!(text(&output.stderr).contains("no volumes found"), "{}", text(&output.stderr));
}

#[test]
fn what_is_wrong_on_the_way_to_a_store_is_one_line() {
    let plain = HttpServer::start(|_| Answer::error(404, "NoSuchKey"));
    let line_at = |endpoint: String| line(endpoint, "s3://volfs/survey");
    let said = line_at(format!("https://{}", plain.address()));
    assert!(said.contains("does not speak TLS"), "{said}");
    let said = line_at("http://no-such-host.invalid".to_owned());
    assert!(said.contains("host is not known"), "{said}");
    let said = line_at("http://127.0.0.1:1".to_owned());
    assert!(said.contains("connection refused"), "{said}");
    let Some(certificate) = Certificate::make() else { return };
    let server = HttpServer::with_tls(certificate, |_| Answer::error(404, "NoSuchKey"));
    let said = line_at(format!("https://{}", server.address()));
    assert!(said.contains("certificate") && said.contains("SSL_CERT_FILE"), "{said}");
    let said = line_at(format!("http://{}", server.address()));
    assert!(said.contains("http") && !said.contains("no credentials"), "{said}");
}

#[test]
fn the_name_of_an_object_is_no_sign_of_what_failed() {
    // each is a word by which a failure is known, as the name of a folder of the store
    for name in ["certificates", "AccessDenied", "NoSuchBucket", "InvalidRange", "SlowDown", "169.254.169.254"] {
        let objects = Objects::default();
        objects.put_all(&format!("{name}/AccessDenied.zgy"), &test_data("demo/north.zgy"));
        let (url, fails) = (format!("s3://volfs/{name}"), Arc::new(AtomicBool::new(false)));
        let failing = Arc::clone(&fails);
        let server = HttpServer::start(move |request| match failing.load(Relaxed) {
            true => Answer::new(500, format!("<Error><Code>InternalError</Code><Key>{}</Key></Error>", request.path)),
            false => objects.answer(request),
        });
        let endpoint = format!("http://{}", server.address());
        let mut command = volfs();
        let output = command.args(["ls", &url]).args(BRIEF).envs(environment(endpoint.clone())).output().unwrap();
        assert!(text(&output.stdout).contains("AccessDenied.zgy"), "{name}: {}", text(&output.stderr));
        let absent = line(endpoint.clone(), &format!("{url}/AccessDenied.zgy/x"));
        assert!(!absent.contains("403") && !absent.contains("credentials"), "{name}: {absent}");
        fails.store(true, Relaxed);
        let said = line(endpoint, &format!("{url}/AccessDenied.zgy"));
        assert!(said.contains("500"), "{name}: {said}");
    }
}

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
            if path.is_dir() && !path.to_string_lossy().ends_with(".zarr") {
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
    assert!(!log.contains(crate::support::stores::SECRET));
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
fn a_folder_on_this_machine_has_no_disk_cache() {
    let folder = tempfile::tempdir().unwrap();
    let mut command = volfs();
    command.args(["mount", "--disk-cache-size", "1GiB", "--disk-cache"]).arg(folder.path().join("cache"));
    let line = one_line_of_failure(&command.arg(test_data("demo")).arg(folder.path()).output().unwrap(), 2);
    assert!(line.contains("is for object stores"), "{line}");
}

/// Returns the requests of a mount so far, but those for listings.
fn requests(proxy: &FaultProxy) -> Vec<String> {
    proxy.passed().log.into_iter().filter(|request| !request.contains("list-type")).collect()
}

#[test]
fn what_is_written_with_chunks_is_not_fetched_again() {
    let Some(server) = StoreServer::start() else { return };
    server.put_all("data", &test_data("vds/wavelet-no-pages"));
    put_tags(&server, "data", &test_data("vds/wavelet-no-pages"));
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
