//! The source fails at random under eight readers: each request gives what is right, or an error. Afterwards everything
//! is right again. The source is a file system of this test. `scripts/stress/faults.sh` runs this for minutes.

use std::fs::{self, File};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use tempfile::TempDir;

use crate::support::checked_reader::{CheckedReader, Tally, Truth, truth_of};
use crate::support::faults::{Fault, Faults};
use crate::support::faulty_folder::FaultyFolder;
use crate::support::{Mount, copy_all, stress, test_data, wait_until};

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
