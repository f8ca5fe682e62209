//! Sources that fail at random, or once: each request gives what is right, or an error; a verification finds nothing bad
//! that is good; and afterwards everything is as before. `scripts/stress/faults.sh` runs this for minutes.

use std::fs::{self, File};
use std::path::Path;
use std::process::Output;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::support::checked_reader::{CheckedReader, Tally, Truth, truth_of};
use crate::support::faulty_folder::FaultyFolder;
use crate::support::faulty_folder::{Fault, Faults};
use crate::support::{Mount, copy_all, stress, test_data, text, volfs, wait_until, within};

/// Datasets of all formats, with all kinds of bricks, as files and as folders.
const DATASETS: [&str; 12] = [
    "zgy/v3_int8.zgy",
    "zgy/v3_float32.zgy",
    "zgy/v4_mixed.zgy",
    "zgy/v4_zfp_snr30.zgy",
    "vds/formats-zip.vds",
    "vds/formats-rle.vds",
    "vds/wavelet.vds",
    "vds/pages",
    "vds/json-names",
    "wkw/pyramid",
    "wkw/old",
    "wkw/annotation",
];

const READERS: u64 = 8;

/// The time within which everything reads right again: failures to open count for a second, names that do not exist
/// for another, and the kernel caches names and attributes for almost one. The rest is for a busy machine.
const RECOVERY: Duration = Duration::from_secs(20);

fn source() -> TempDir {
    let source = tempfile::tempdir().unwrap();
    for name in DATASETS {
        let copy = source.path().join(name.rsplit('/').next().unwrap());
        copy_all(&test_data(name), &copy);
        age(&copy);
    }
    source
}

/// Makes files and folders look as if they were written an hour ago: others are read a second time when they have aged.
fn age(path: &Path) {
    if path.is_dir() {
        fs::read_dir(path).unwrap().for_each(|entry| age(&entry.unwrap().path()));
    }
    File::open(path).unwrap().set_modified(SystemTime::now() - Duration::from_secs(3600)).unwrap();
}

/// Has readers at work for `duration`; requests that hang are answered every now and then.
fn read(point: &Path, truth: &Truth, faults: &Faults, seed: u64, duration: Duration) -> Tally {
    let end = Instant::now() + duration;
    let mut all = Tally::default();
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        let readers: Vec<_> = (0..READERS)
            .map(|n| {
                scope.spawn(move || {
                    let mut reader = CheckedReader::new(point, truth, seed * READERS + n);
                    while Instant::now() < end {
                        reader.step();
                    }
                    reader.tally
                })
            })
            .collect();
        scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                thread::sleep(Duration::from_millis(100));
                faults.release();
            }
        });
        readers.into_iter().for_each(|reader| all.add(reader.join().unwrap()));
        is_over.store(true, Ordering::Relaxed);
    });
    all
}

/// Waits until the mount does nothing any more.
fn check_at_rest(mount: &Mount) {
    wait_until("nothing is in progress", || {
        let status = mount.status();
        let now = status["now"].as_object().unwrap();
        ["open_files", "jobs", "bricks_in_flight", "decoders", "decoder_bytes"].iter().all(|gauge| now[*gauge] == 0)
    });
}

/// Waits until all files (in the short test, some of each dataset) read right; returns when the last one failed.
fn recover(point: &Path, truth: &Truth) -> Duration {
    let (begun, mut last_failure) = (Instant::now(), Duration::ZERO);
    let step = if stress::is_long() { 1 } else { 9 };
    let mut left: Vec<&String> = truth.keys().step_by(step).collect();
    loop {
        left.retain(|name| match fs::read(point.join(name)) {
            Ok(bytes) => {
                assert!(bytes == truth[*name], "{name} is wrong after the faults");
                false
            }
            Err(_) => {
                last_failure = begun.elapsed();
                true
            }
        });
        if left.is_empty() {
            return last_failure;
        }
        let why = || fs::read(point.join(left[0])).map(|bytes| bytes.len());
        assert!(begun.elapsed() < RECOVERY, "{} files do not recover: {left:?}: {:?}", left.len(), why());
        thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn a_source_that_fails_at_random_gives_right_bytes_or_errors_and_recovers() {
    let source = source();
    let Some(faulty) = FaultyFolder::of(source.path()) else { return };
    let truth = truth_of(Mount::of(source.path()).unwrap().point());
    let mount = Mount::with(&faulty.path, &["--cache-size", "300KiB"]).unwrap();
    let (end, mut seed) = (Instant::now() + stress::duration(Duration::ZERO), stress::seed());
    let (mut all, mut slowest) = (Tally::default(), Duration::ZERO);
    loop {
        for rate in [3_000, 30_000, 200_000] {
            faulty.faults.at_random(seed, rate, &Fault::ALL);
            let phase = Duration::from_secs(if stress::is_long() { 10 } else { 1 });
            let tally = read(mount.point(), &truth, &faulty.faults, seed, phase);
            faulty.faults.end();
            assert!(tally.wrong.is_empty(), "seed {seed}, rate {rate}: {:#?}\n{}", tally.wrong, faulty.faults.report());
            all.add(tally);
            slowest = slowest.max(recover(mount.point(), &truth));
            seed += 1;
        }
        if Instant::now() > end {
            break;
        }
    }
    check_at_rest(&mount);
    let lines = mount.log().lines().count();
    assert!(lines < 200 + 50 * all.failed.len(), "{lines} lines of log");
    println!("{}", faulty.faults.report());
    println!("right: {} requests, {} bytes; failed, by errno: {:?}", all.right, all.bytes, all.failed);
    println!("recovered within {slowest:?}; {} lines of log", mount.log().lines().count());
    assert!(faulty.faults.count() > 100 && all.right > 100, "{:?}\n{}", all, faulty.faults.report());
}

#[test]
fn open_files_outlive_transient_faults() {
    let source = source();
    let Some(faulty) = FaultyFolder::of(source.path()) else { return };
    let truth = truth_of(Mount::of(source.path()).unwrap().point());
    let mount = Mount::of(&faulty.path).unwrap();
    let mut reader = CheckedReader::new(mount.point(), &truth, stress::seed());
    (0..60).for_each(|_| reader.step());
    assert!(reader.tally.wrong.is_empty() && reader.tally.failed.is_empty(), "{:?}", reader.tally);
    faulty.faults.at_random(stress::seed(), 200_000, &Fault::TRANSIENT);
    let tally = read(mount.point(), &truth, &faulty.faults, 77, Duration::from_secs(1));
    assert!(tally.wrong.is_empty(), "{:#?}", tally.wrong);
    faulty.faults.end();
    // requests that were in flight may still fail
    wait_until("nothing is in progress", || mount.status()["now"]["jobs"] == 0);
    reader.read_all_open();
    assert!(reader.tally.wrong.is_empty() && reader.tally.failed.is_empty(), "{:?}", reader.tally);
}

const VERIFIED: [&str; 7] = [
    "zgy/v3_int8.zgy",
    "zgy/v4_mixed.zgy",
    "vds/formats-zip.vds",
    "vds/wavelet.vds",
    "vds/pages",
    "wkw/bare",
    "wkw/old",
];
/// Longer than any verification here takes on a busy machine.
const LIMIT: Duration = Duration::from_secs(120);
/// The requests of one dataset that fail in the short test.
const SHORT: u64 = 8;

fn source_of_all(datasets: &[&str]) -> TempDir {
    let source = tempfile::tempdir().unwrap();
    for name in datasets {
        copy_all(&test_data(name), &source.path().join(name.rsplit('/').next().unwrap()));
    }
    source
}

fn verify(path: &Path, arguments: &[&str]) -> Output {
    let mut command = volfs();
    command.arg("verify").args(arguments).arg(path);
    within(LIMIT, move || command.output().unwrap()).expect("it does not end")
}

/// Returns what `volfs verify --json` prints, and its exit status; `None` if its first look at the path, which is not
/// tried again, has failed.
fn try_verify(path: &Path) -> Option<(Value, Option<i32>)> {
    let output = verify(path, &["--json"]);
    let (status, stderr) = (output.status.code(), text(&output.stderr));
    if output.stdout.is_empty() {
        assert!(status == Some(1) && stderr.lines().count() == 1 && stderr.contains("(os error"), "{stderr}");
        return None;
    }
    Some((serde_json::from_slice(&output.stdout).unwrap(), status))
}

fn verified(path: &Path) -> (Value, Option<i32>) {
    (0..10).find_map(|_| try_verify(path)).expect("the path cannot be looked at")
}

/// Returns the datasets by the ends of their paths, without what differs from run to run.
fn by_name(found: &Value) -> Vec<(String, &Value)> {
    let datasets = found["datasets"].as_array().unwrap().iter();
    let name = |dataset: &Value| dataset["path"].as_str().unwrap().rsplit('/').next().unwrap().to_owned();
    datasets.map(|dataset| (name(dataset), dataset)).collect()
}

/// Checks that a dataset is as it is without faults, or that it says that something could not be read.
fn check(name: &str, found: &Value, right: &Value) {
    assert_eq!(
        (&found["bad"], &found["damage"], &found["bad_bricks"]),
        (&json!(false), &json!([]), &json!(0)),
        "{name}"
    );
    if found["complete"] == true {
        for key in ["error", "bricks", "constant", "unread_bricks", "bytes", "layers", "unread", "notes"] {
            assert_eq!(found[key], right[key], "{name}: {key}");
        }
    } else {
        assert!(!found["unread"].as_array().unwrap().is_empty(), "{name}: {found}");
    }
}

#[test]
fn faults_that_pass_are_tried_again_and_nothing_good_counts_as_bad() {
    let source = source_of_all(&VERIFIED);
    let Some(faulty) = FaultyFolder::of(source.path()) else { return };
    let (right, status) = verified(&faulty.path);
    assert_eq!((status, &right["totals"]["unread_datasets"]), (Some(0), &json!(0)));
    let transient = &Fault::TRANSIENT[..];
    for (rate, kinds) in [(2_000, transient), (10_000, transient), (100_000, transient), (200_000, &[Fault::Late])] {
        let before = faulty.faults.count();
        // once, but for the lowest rate
        while faulty.faults.count() <= before + 10 {
            faulty.faults.at_random(stress::seed() + faulty.faults.count(), rate, kinds);
            let (found, status) = verified(&faulty.path);
            faulty.faults.end();
            let [found_by_name, right_by_name] = [&found, &right].map(by_name);
            assert_eq!(found_by_name.len(), right_by_name.len());
            for ((name, found), (_, right)) in found_by_name.iter().zip(&right_by_name) {
                check(name, found, right);
            }
            let unread = found["totals"]["unread_datasets"].as_u64().unwrap();
            assert_eq!(status, Some(i32::from(unread > 0)), "{unread} volumes could not be read");
            // four tries: no brick is left where one request in a hundred fails; a volume takes many to be opened
            let bricks = found["totals"]["unread_bricks"].as_u64().unwrap();
            assert!(rate > 10_000 || bricks == 0, "{bricks} bricks at a rate of {rate}");
            assert!(rate > 2_000 || unread == 0, "{unread} volumes at a rate of {rate}");
        }
    }
}

#[test]
fn no_request_that_fails_once_makes_less_pass() {
    for name in ["zgy/v4_mixed.zgy", "vds/pages", "wkw/bare"] {
        let source = source_of_all(&[name]);
        let Some(faulty) = FaultyFolder::of(source.path()) else { return };
        let path = faulty.path.join(name.rsplit('/').next().unwrap());
        faulty.faults.end();
        let (right, _) = verified(&path);
        let all = faulty.faults.requests();
        let step = if stress::is_long() { 1 } else { all.div_ceil(SHORT) };
        let (before, mut refused) = (faulty.faults.count(), 0);
        for number in (0..all).step_by(step as usize) {
            faulty.faults.of_request(number, Fault::Io);
            let outcome = try_verify(&path);
            faulty.faults.end();
            let Some((found, status)) = outcome else {
                refused += 1;
                continue;
            };
            assert_eq!(status, Some(0), "request {number} of {name}: {found}");
            check(name, &found["datasets"][0], &right["datasets"][0]);
            assert_eq!(found["totals"]["bricks"], right["totals"]["bricks"], "request {number} of {name}");
        }
        println!("{name}: {} requests failed, one at a time; {refused} first looks", faulty.faults.count() - before);
    }
}

#[test]
fn bricks_that_the_disk_does_not_give_are_not_bad() {
    let source = source_of_all(&["wkw/bare", "zgy/v3_int8.zgy", "zgy/bad_zfp_cut.zgy"]);
    let Some(faulty) = FaultyFolder::of(source.path()) else { return };
    let (right, _) = verified(&faulty.path);
    faulty.faults.below("segmentation/2-2-1/z0/y1/x1.wkw", Fault::Io);
    let (found, status) = verified(&faulty.path);
    let [found_by_name, right_by_name] = [&found, &right].map(by_name);
    assert_eq!(status, Some(1));
    let ((_, bad), (_, bare), (_, good)) = (&found_by_name[0], &found_by_name[1], &found_by_name[2]);
    assert_eq!((&bad["bad"], &bad["bad_bricks"], &bad["unread_bricks"]), (&json!(true), &json!(1), &json!(0)));
    assert_eq!(
        (&good["bad"], &good["complete"], &good["bricks"]),
        (&json!(false), &json!(true), &right_by_name[2].1["bricks"])
    );
    // only the bricks of that file
    assert_eq!((&bare["bad"], &bare["complete"], &bare["damage"]), (&json!(false), &json!(false), &json!([])));
    assert_eq!(bare["bricks"], right_by_name[1].1["bricks"]);
    let levels = bare["layers"].as_array().unwrap().iter().find(|layer| layer["name"] == "segmentation").unwrap();
    let unread: Vec<u64> =
        levels["lods"].as_array().unwrap().iter().map(|lod| lod["unread_bricks"].as_u64().unwrap()).collect();
    assert!(unread[0] == 0 && unread[1] > 0, "{unread:?}");
    assert_eq!(bare["unread_bricks"], unread[1]);
    let listed = bare["unread"].as_array().unwrap();
    let counted: u64 = listed.iter().map(|entry| entry["count"].as_u64().unwrap()).sum();
    assert_eq!(counted, unread[1], "{listed:?}");
    for entry in listed {
        let reason = entry["reason"].as_str().unwrap();
        assert!(reason.contains("x1.wkw") && reason.contains("Input/output error"), "{reason}");
    }
    let totals = &found["totals"];
    assert_eq!(
        (&totals["bad_datasets"], &totals["unread_datasets"], &totals["unread_bricks"], &totals["bad_bricks"]),
        (&json!(1), &json!(1), &json!(unread[1]), &json!(1))
    );
    // people see the same
    let printed = verify(&faulty.path.join("bare"), &[]);
    let (stdout, stderr) = (text(&printed.stdout), text(&printed.stderr));
    assert_eq!((printed.status.code(), stderr.lines().count()), (Some(1), 1), "{stderr}");
    assert!(stderr.contains("1 of 1 volumes could not be read completely"), "{stderr}");
    let summary = format!("1 volume could not be read completely (bricks: {}, other parts: ", unread[1]);
    assert!(stdout.contains(&summary) && !stdout.contains("bad"), "{stdout}");
}

#[test]
fn volumes_that_the_system_cannot_open_are_not_bad() {
    let source = source_of_all(&["zgy/v3_int8.zgy", "wkw/old", "zgy/bad_empty.zgy"]);
    let Some(faulty) = FaultyFolder::of(source.path()) else { return };
    for (kind, words) in [(Fault::TooManyFiles, "Too many open files"), (Fault::Io, "Input/output error")] {
        faulty.faults.below("v3_int8.zgy", kind);
        let (found, status) = verified(&faulty.path);
        faulty.faults.end();
        let datasets = by_name(&found);
        assert_eq!((status, datasets.len()), (Some(1), 3));
        let ((_, empty), (_, old), (_, closed)) = (&datasets[0], &datasets[1], &datasets[2]);
        assert_eq!((&empty["bad"], &empty["unread"]), (&json!(true), &json!([])));
        assert_eq!((&old["bad"], &old["complete"]), (&json!(false), &json!(true)));
        assert_eq!(
            (&closed["bad"], &closed["complete"], &closed["damage"]),
            (&json!(false), &json!(false), &json!([]))
        );
        assert!(closed["error"].as_str().unwrap().contains(words), "{closed}");
        assert_eq!((closed["unread"].as_array().unwrap().len(), &closed["unread"][0]["reason"]), (1, &closed["error"]));
        let totals = &found["totals"];
        assert_eq!((&totals["faults"], &totals["unread_parts"]), (&json!(1), &json!(1)), "{totals}");
    }
    // a folder that cannot be listed is not empty
    faulty.faults.below("old", Fault::Io);
    let (found, status) = verified(&faulty.path);
    assert_eq!((status, &found["totals"]["unread_datasets"]), (Some(1), &json!(1)), "{found}");
}
