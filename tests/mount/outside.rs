//! Links in the source that are exchanged without pause: nothing outside of the source is ever shown.

use std::fs::{self, File};
use std::os::unix::fs::symlink;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crate::support::exchange::Exchange;
use crate::support::{Mount, SOON, comes_true, fixture, stress, test_data};

const DURATION: Duration = Duration::from_secs(2);

#[test]
fn a_dataset_that_is_exchanged_with_a_link_never_shows_a_file_outside() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().canonicalize().unwrap().join(name);
    for name in ["source/in", "outside"] {
        fs::create_dir_all(at(name)).unwrap();
    }
    let samples = fixture("v3_int16.zgy").samples(0).unwrap();
    let mut bytes = fs::read(test_data("zgy/v3_int16.zgy")).unwrap();
    fs::write(at("source/in/x.zgy"), &bytes).unwrap();
    bytes[16 * 16 * 16 * 2..].iter_mut().for_each(|byte| *byte ^= 0xFF);
    fs::write(at("outside/x.zgy"), &bytes).unwrap();
    symlink(at("outside/x.zgy"), at("source/in/other")).unwrap();
    symlink(at("outside"), at("source/other")).unwrap();
    let Some(mount) = Mount::with(at("source"), &["--direct-io"]) else { return };
    let path = mount.path("in/x.zgy/data/lod0.raw");
    let duration = stress::duration(DURATION);
    let (stop, began) = (AtomicBool::new(false), Instant::now());
    let (right, outside) = (AtomicUsize::new(0), AtomicUsize::new(0));
    // by descriptor: the path of the inner folder leads outside for half of the time
    let open = |name: &str| File::open(at(name)).unwrap();
    let exchanges =
        [(open("source/in"), "x.zgy"), (open("source"), "in")].map(|(at, name)| Exchange::begin(at, name, "other"));
    thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                while !stop.load(Ordering::Relaxed) {
                    match fs::read(&path) {
                        Ok(found) if found == samples => drop(right.fetch_add(1, Ordering::Relaxed)),
                        Ok(_) => drop(outside.fetch_add(1, Ordering::Relaxed)),
                        Err(_) => {}
                    }
                }
            });
        }
        while began.elapsed() < duration && outside.load(Ordering::Relaxed) == 0 {
            thread::sleep(Duration::from_millis(10));
        }
        stop.store(true, Ordering::Relaxed);
    });
    drop(exchanges);
    assert_eq!(outside.load(Ordering::Relaxed), 0, "reads of a file outside, {} of that inside", right.into_inner());
    let shown = || fs::read(&path).is_ok_and(|found| found == samples);
    assert!(comes_true(SOON, shown), "it is shown in the end: {:?}", fs::read(&path).map(|found| found.len()));
}
