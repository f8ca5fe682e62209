//! A client that does what programs do with a mount, at random, and compares all that it gets with what is right.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io;
use std::ops::Range;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::Instant;

use super::Noise;

/// The right content of files, by their paths below the mount point.
pub type Truth = BTreeMap<String, Vec<u8>>;

/// Reads all files below the datasets of a mount.
pub fn truth_of(point: &Path) -> Truth {
    fn add(truth: &mut Truth, point: &Path, folder: &Path) {
        for entry in fs::read_dir(folder).unwrap().map(Result::unwrap) {
            let path = entry.path();
            if path.is_dir() {
                add(truth, point, &path);
            } else {
                let name = path.strip_prefix(point).unwrap().to_str().unwrap().to_owned();
                truth.insert(name, fs::read(&path).unwrap());
            }
        }
    }
    let mut truth = Truth::new();
    for entry in fs::read_dir(point).unwrap().map(Result::unwrap).filter(|entry| entry.file_name() != ".volfs") {
        add(&mut truth, point, &entry.path());
    }
    truth
}

/// What a reader did.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    /// Bytes that were compared and right.
    pub bytes: u64,
    /// Requests that succeeded.
    pub right: u64,
    /// Requests that failed, by error number.
    pub failed: BTreeMap<i32, u64>,
    /// The last request that failed.
    pub last_failure: String,
    /// What should never be.
    pub wrong: Vec<String>,
}

impl Tally {
    /// Adds what another reader did.
    pub fn add(&mut self, other: Self) {
        self.bytes += other.bytes;
        self.right += other.right;
        for (errno, count) in other.failed {
            *self.failed.entry(errno).or_default() += count;
        }
        self.wrong.extend(other.wrong);
    }
}

/// A client with some files open.
pub struct CheckedReader<'a> {
    point: &'a Path,
    truth: &'a Truth,
    names: Vec<&'a str>,
    noise: Noise,
    open: Vec<(&'a str, File)>,
    until: Option<Instant>,
    /// What it did.
    pub tally: Tally,
}

/// Files that a reader keeps open.
const KEPT_OPEN: usize = 6;
/// Bytes that a reader reads at a time.
const PIECE: usize = 1 << 20;

impl<'a> CheckedReader<'a> {
    /// Makes a client of the mount at `point`.
    pub fn new(point: &'a Path, truth: &'a Truth, seed: u64) -> Self {
        Self::of_names(point, truth, truth.keys().map(String::as_str).collect(), seed)
    }

    /// Makes a client that reads files of these names; one that is there twice is read twice as often.
    pub fn of_names(point: &'a Path, truth: &'a Truth, names: Vec<&'a str>, seed: u64) -> Self {
        let noise = Noise::seeded(seed);
        Self { point, truth, names, noise, open: Vec::new(), until: None, tally: Tally::default() }
    }

    /// Leaves out what is left of a long range at this time.
    pub fn until(self, time: Instant) -> Self {
        Self { until: Some(time), ..self }
    }

    /// Does one thing.
    pub fn step(&mut self) {
        let name = self.names[self.noise.below(self.names.len())];
        match self.noise.below(20) {
            0..2 => self.stat(name),
            2..4 => self.list(name),
            4..12 => self.open_and_read(name),
            12 => self.read_whole(name),
            _ if self.open.is_empty() => self.open_and_read(name),
            _ => {
                let (name, file) = self.open.swap_remove(self.noise.below(self.open.len()));
                self.read(name, &file);
                self.open.push((name, file));
            }
        }
    }

    fn count<T>(&mut self, what: &str, name: &str, outcome: io::Result<T>) -> Option<T> {
        match outcome {
            Ok(value) => {
                self.tally.right += 1;
                Some(value)
            }
            Err(error) => {
                self.tally.last_failure = format!("{what} {name}: {error}");
                match error.raw_os_error() {
                    Some(errno) => *self.tally.failed.entry(errno).or_default() += 1,
                    None => self.tally.wrong.push(format!("{what} {name}: {error}")),
                }
                None
            }
        }
    }

    fn stat(&mut self, name: &str) {
        let found = fs::metadata(self.point.join(name));
        if let Some(found) = self.count("stat", name, found)
            && found.len() != self.truth[name].len() as u64
        {
            self.tally.wrong.push(format!("{name} has {} bytes", found.len()));
        }
    }

    /// Lists the folder of a file. A list is complete.
    fn list(&mut self, name: &'a str) {
        let (folder, file) = name.rsplit_once('/').unwrap();
        let names = fs::read_dir(self.point.join(folder))
            .and_then(|entries| entries.map(|entry| Ok(entry?.file_name())).collect::<io::Result<Vec<_>>>());
        if let Some(names) = self.count("list", folder, names)
            && !names.iter().any(|name| name == file)
            && !(names.len() == 1 && names[0] == "error.txt")
        {
            self.tally.wrong.push(format!("{folder} has {names:?}, but no {file}"));
        }
    }

    fn open_and_read(&mut self, name: &'a str) {
        let flags = if self.noise.below(3) == 0 { nix::libc::O_DIRECT } else { 0 };
        let opened = File::options().read(true).custom_flags(flags).open(self.point.join(name));
        let Some(file) = self.count("open", name, opened) else { return };
        self.read(name, &file);
        if self.open.len() >= KEPT_OPEN {
            self.open.swap_remove(self.noise.below(KEPT_OPEN));
        }
        self.open.push((name, file));
    }

    /// Reads a range of a file, or two in a row.
    fn read(&mut self, name: &str, file: &File) {
        let truth = &self.truth[name];
        if truth.is_empty() {
            return;
        }
        let from = self.noise.below(truth.len());
        let most = if self.noise.below(4) == 0 { truth.len() } else { 70_000 };
        let length = 1 + self.noise.below((truth.len() - from).min(most));
        self.read_range(name, file, from..from + length);
        self.read_range(name, file, from + length..(from + 2 * length).min(truth.len()));
    }

    /// Reads a range of a file in pieces.
    fn read_range(&mut self, name: &str, file: &File, range: Range<usize>) {
        for from in range.clone().step_by(PIECE) {
            let mut bytes = vec![0xa5; PIECE.min(range.end - from)];
            let read = file.read_exact_at(&mut bytes, from as u64);
            if self.count("read", name, read).is_some() {
                self.compare(name, from, &bytes);
            }
            if self.until.is_some_and(|until| Instant::now() > until) {
                return;
            }
        }
    }

    fn read_whole(&mut self, name: &str) {
        if self.truth[name].len() > PIECE {
            if let Some(file) = self.count("open", name, File::open(self.point.join(name))) {
                self.read_range(name, &file, 0..self.truth[name].len());
            }
            return;
        }
        let read = fs::read(self.point.join(name));
        if let Some(bytes) = self.count("read", name, read) {
            if bytes.len() != self.truth[name].len() {
                self.tally.wrong.push(format!("{name} ends after {} bytes", bytes.len()));
            } else {
                self.compare(name, 0, &bytes);
            }
        }
    }

    fn compare(&mut self, name: &str, from: usize, bytes: &[u8]) {
        self.tally.bytes += bytes.len() as u64;
        if *bytes != self.truth[name][from..from + bytes.len()] {
            self.tally.wrong.push(format!("{name}: {} bytes from {from} on are wrong", bytes.len()));
        }
    }

    /// Reads each file that is still open from the beginning to the end.
    pub fn read_all_open(&mut self) {
        for (name, file) in std::mem::take(&mut self.open) {
            let mut bytes = vec![0; self.truth[name].len()];
            let read = file.read_exact_at(&mut bytes, 0);
            if self.count("read", name, read).is_some() {
                self.compare(name, 0, &bytes);
            }
        }
    }
}
