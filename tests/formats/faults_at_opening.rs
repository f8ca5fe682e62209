//! Each request that opening a dataset makes fails once: the dataset then does not open, or is as it would be without
//! the fault. It never has fewer layers or levels, and the failure is not final.

use std::fmt::Write;
use std::path::Path;
use std::thread;

use crate::catalog::{OpenDataset, OpenError, open_dataset};
use crate::format::registry;

use crate::test_support::faulty_folder::Fault;
use crate::test_support::faulty_folder::FaultyFolder;
use crate::test_support::{copy_all, stress, test_data};

/// One of each kind of file and folder.
const DATASETS: [&str; 7] =
    ["zgy/v4_mixed.zgy", "vds/wavelet.vds", "vds/pages", "vds/json-names", "wkw/annotation", "wkw/bare", "wkw/pyramid"];
/// The requests of one dataset that fail in the short test.
const SHORT: u64 = 16;

/// Describes all that a dataset shows.
fn describe(open: &OpenDataset) -> String {
    let mut out = format!("{}: {:?}\n", open.format, open.dataset.info().warnings);
    for layer in open.dataset.layers() {
        let _ = write!(out, "{} {:?}:", layer.name, layer.native);
        for level in &layer.levels {
            let info = level.info();
            let _ = write!(out, " {:?} {} {:?}", info.shape(), info.dtype, info.warnings);
        }
        out.push('\n');
    }
    for layer in open.dataset.hidden() {
        let _ = writeln!(out, "hidden: {} {}", layer.name, layer.reason);
    }
    out
}

fn open(path: &Path) -> Result<String, OpenError> {
    open_dataset(registry(), path, None).map(|open| describe(&open))
}

/// Lets each request of opening a dataset fail in turn, or [`SHORT`] of them. Returns how many did.
fn check(faulty: &FaultyFolder, name: &str, kind: Fault, wrong: &mut String) -> u64 {
    let path = faulty.path.join(name);
    faulty.faults.end();
    let right = open(&path).unwrap();
    let (before, all) = (faulty.faults.count(), faulty.faults.requests());
    let step = if stress::is_long() { 1 } else { all.div_ceil(SHORT) };
    for number in (stress::seed() % step..).step_by(step as usize) {
        faulty.faults.of_request(number, kind);
        let opened = open(&path);
        let requests = faulty.faults.requests();
        faulty.faults.end();
        match opened {
            Ok(described) if described != right => {
                let different = described.lines().zip(right.lines()).find(|(now, right)| now != right);
                let _ = writeln!(wrong, "{name}: {kind:?} of request {number}: other than without: {different:?}");
            }
            Err(error) if !error.is_transient() => {
                let _ = writeln!(wrong, "{name}: {kind:?} of request {number}: final: {error}");
            }
            _ => {}
        }
        if number >= requests {
            break;
        }
    }
    faulty.faults.count() - before
}

#[test]
fn a_request_that_fails_once_never_changes_what_a_dataset_is() {
    let source = tempfile::tempdir().unwrap();
    for name in DATASETS {
        copy_all(&test_data(name), &source.path().join(name.split('/').next_back().unwrap()));
    }
    // the verdict on a description is remembered by the file's version: one file system for each kind of fault
    let all = [Fault::Io, Fault::Empty, Fault::Stale, Fault::TooManyFiles, Fault::Interrupted, Fault::Short];
    let kinds = if stress::is_long() { &all[..] } else { &all[..2] };
    let checks: Vec<_> = kinds
        .iter()
        .map(|kind| {
            let (source, kind) = (source.path().to_owned(), *kind);
            thread::spawn(move || {
                let faulty = FaultyFolder::of(&source)?;
                let (mut wrong, mut faults) = (String::new(), 0);
                for name in DATASETS {
                    let name = name.split('/').next_back().unwrap();
                    faults += check(&faulty, name, kind, &mut wrong);
                }
                Some((wrong, faults))
            })
        })
        .collect();
    let mut sum = 0;
    for check in checks {
        let Some((wrong, faults)) = check.join().unwrap() else { return };
        assert!(wrong.is_empty(), "{wrong}");
        sum += faults;
        println!("{faults} faults, one at a time");
    }
    assert!(sum > 50, "{sum} faults");
}
