//! The memory of the daemon.

use std::fs::{self, File};
use std::io::{copy, sink};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::thread::{scope, sleep};
use std::time::Duration;

use crate::support::{Mount, copy_all, fixtures, memory, test_data};

const READERS: usize = 4;
const CACHE: u64 = 8 << 20;

/// Opens twenty surveys and all small datasets at once. Four readers read every file of the small datasets but their
/// slices, of which there are thousands, and share the files of the surveys, which do not fit the cache, until the
/// daemon has decoded many times its limit.
#[test]
fn memory_stays_below_the_ceiling() {
    let source = tempfile::tempdir().unwrap();
    let surveys: Vec<String> = (0..20).map(|copy| format!("{copy}.zgy")).collect();
    for survey in &surveys {
        fs::copy(test_data("demo/north.zgy"), source.path().join(survey)).unwrap();
    }
    let small: Vec<String> = fixtures().into_iter().map(|fixture| fixture.name).collect();
    for name in &small {
        copy_all(&test_data("zgy").join(name), &source.path().join(name));
    }
    let arguments = ["--cache-size", "8MiB", "--threads", "2"];
    let Some(mount) = Mount::with(source.path(), &arguments) else { return };
    let in_flight = 2 * 2 * (1 << 20); // a stored and a decoded brick of 1 MiB for each decoding thread
    let ceiling = CACHE + (64 << 20) + in_flight;
    let large = Mutex::new(surveys.iter().flat_map(|survey| files_below(&mount.path(survey))));
    let mut highest = 0;
    scope(|scope| {
        let read = || {
            surveys.iter().for_each(|survey| read_whole(&mount.path(survey).join("dataset.json")));
            let is_slice = |file: &PathBuf| file.extension().is_some_and(|extension| extension == "png");
            let of_small = small.iter().flat_map(|name| files_below(&mount.path(name)));
            of_small.filter(|file| !is_slice(file) || file.ends_with("preview.png")).for_each(|file| read_whole(&file));
            while mount.counter("bytes_decoded") < 10 * ceiling {
                let Some(file) = large.lock().unwrap().next() else { break };
                read_whole(&file);
            }
        };
        let readers: Vec<_> = (0..READERS).map(|_| scope.spawn(read)).collect();
        while readers.iter().any(|reader| !reader.is_finished()) {
            highest = highest.max(memory(mount.pid(), "RssAnon"));
            sleep(Duration::from_millis(2));
        }
    });
    assert!(mount.counter("bytes_decoded") >= 10 * ceiling);
    assert!(highest <= ceiling, "{} MiB", highest >> 20);
    assert!(mount.counter("cache_bytes") <= CACHE);
}

/// Returns the paths of all files below a folder.
fn files_below(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() { files.extend(files_below(&path)) } else { files.push(path) }
    }
    files
}

fn read_whole(file: &Path) {
    let read = File::open(file).and_then(|mut open| copy(&mut open, &mut sink()));
    read.unwrap_or_else(|error| panic!("{}: {error}", file.display()));
}
