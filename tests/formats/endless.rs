//! Small folders and files that claim to have more bricks than anybody can visit: a verification of them ends.

use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::format::{Severity, registry};
use crate::source::Origin;
use crate::verify::{DatasetReport, Datasets, LevelReport, Place, Verification, VerifyOptions};
use serde_json::{Value, json};

use crate::test_support::handmade::Handmade;
use crate::test_support::{copy_all, skip, test_data, within};

/// Samples along each axis.
const SAMPLES: u64 = 1 << 20;
/// A level with more bad bricks is given up.
const MOST_BAD: u64 = 5000;

/// Makes a copy of a dataset with axes of [`SAMPLES`] samples, and changes the records of its stored layers.
fn make(name: &str, to: &Path, change: impl Fn(&mut Value)) {
    copy_all(&test_data("vds").join(name), to);
    let edit = |name: &str, edit: &dyn Fn(&mut Value)| {
        let mut json: Value = serde_json::from_slice(&fs::read(to.join(name)).unwrap()).unwrap();
        edit(&mut json);
        fs::write(to.join(name), json.to_string()).unwrap();
    };
    edit("VolumeDataLayout", &|layout| {
        layout["axisDescriptors"]
            .as_array_mut()
            .unwrap()
            .iter_mut()
            .for_each(|axis| axis["numSamples"] = SAMPLES.into());
    });
    edit("LayerStatus", &|layers| {
        for layer in layers.as_array_mut().unwrap() {
            layer.as_object_mut().unwrap().retain(|key, _| !["chunkCount", "validChunkCount"].contains(&&**key));
            change(layer);
        }
    });
}

fn verify(path: &Path, quick: bool) -> DatasetReport {
    verify_up_to(MOST_BAD, path, quick)
}

/// Verifies the only dataset at a path.
fn verify_up_to(most_bad: u64, path: &Path, quick: bool) -> DatasetReport {
    let place = Place { path: path.canonicalize().unwrap(), name: path.to_owned() };
    let verified = within(Duration::from_secs(60), move || {
        let datasets = Datasets::new(registry(), vec![place], &Origin::default()).map_err(|(_, e)| e).unwrap();
        let options = VerifyOptions { quick, threads: 2, most: 10, most_bad };
        let reports = Arc::new(Mutex::new(Vec::new()));
        let sink = Arc::clone(&reports);
        let verification = Verification::new(datasets, options, move |report| {
            sink.lock().unwrap().push(report);
            true
        });
        verification.run();
        reports.lock().unwrap().pop().unwrap()
    });
    verified.expect("it does not end")
}

/// Makes a sparse ZGY file of 11 TiB whose tables are zeros, but for some entries of the brick table's last part.
fn make_zgy(file: &Path, stored: &[(u64, u64)]) -> bool {
    let mut made = Handmade::new(3, 6, [1 << 21, 1 << 21, 1024], [16; 3], &[0]);
    made.alpha = 1;
    fs::write(file, made.build()).unwrap();
    let made = File::options().write(true).open(file).unwrap();
    // after the parts before them, the alpha table, and the brick tables of the coarser levels
    let (columns, mut bricks) = ((0..18).map(|lod| 1u64 << (34 - 2 * lod)).sum::<u64>(), 0);
    let mut level = [1u64 << 17, 1 << 17, 64];
    while level != [1; 3] {
        level = level.map(|n| n.div_ceil(2));
        bricks += level.iter().product::<u64>();
    }
    let table = 9 + 337 + 25 + 2064 + 8 * (columns + bricks);
    made.set_len(11 << 40).is_ok()
        && stored.iter().all(|(number, entry)| made.write_all_at(&entry.to_le_bytes(), table + 8 * number).is_ok())
}

#[test]
fn bricks_in_the_holes_of_a_file_are_not_looked_up_one_by_one() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("x.zgy");
    if !make_zgy(&file, &[]) {
        return skip("this file system has no sparse files of 11 TiB");
    }
    for quick in [true, false] {
        let report = verify(&file, quick);
        assert_eq!(report.levels.len(), 18, "nothing was ever written: {report:?}");
        let level = &report.levels[0];
        assert_eq!(
            (level.total, level.counts.checked, level.counts.constant),
            (1 << 40, 1 << 40, 1 << 40),
            "{report:?}"
        );
        assert!(report.complete && report.bad.is_empty(), "{report:?}");
    }
    // one brick far behind, of an unknown kind, and two at the same place
    let stored = [(1 << 39, 0x90 << 56), ((1 << 39) + 5, 10 << 40), ((1 << 40) - 1, 10 << 40)];
    assert!(make_zgy(&file, &stored));
    let report = verify(&file, true);
    let level = &report.levels[0];
    assert_eq!((report.levels.len(), level.counts.checked, level.counts.bad), (1, 1 << 40, 2), "{report:?}");
    assert_eq!(level.counts.constant, level.total - 3, "{report:?}");
}

/// Returns the finest level; it has very many bricks.
fn finest(report: &DatasetReport) -> &LevelReport {
    let level = &report.levels[0];
    assert!(level.total > 1 << 40, "{level:?}");
    level
}

#[test]
fn chunks_that_have_no_object_are_not_looked_up_one_by_one() {
    let folder = tempfile::tempdir().unwrap();
    make("no-pages", &folder.path().join("x"), |_| {});
    for quick in [true, false] {
        let report = verify(&folder.path().join("x"), quick);
        let level = finest(&report);
        assert_eq!((level.counts.checked, report.complete), (level.total, true), "{level:?}");
        // the stored chunks are of another size than they should be
        let bad = level.counts.bad;
        assert!(level.total - level.counts.constant <= 6 && bad <= 6 && (bad > 0) != quick, "{level:?}");
        for most in bad.saturating_sub(1)..=bad {
            let found = verify_up_to(most, &folder.path().join("x"), quick).findings;
            let is_given_up =
                found.iter().any(|found| found.lod == Some(0) && found.reason.contains("no more of them"));
            assert_eq!(is_given_up, bad > most, "{found:?}");
        }
    }
}

#[test]
fn chunks_of_pages_that_were_never_written_are_not_looked_up_one_by_one() {
    let folder = tempfile::tempdir().unwrap();
    make("pages", &folder.path().join("x"), |layer| {
        let pages = if layer["lod"] == 0 { 1 << 14 } else { 1 << 11 };
        layer["chunkMetadataPageSize"] = (1u64 << 31).into();
        layer["pageDirectory"] = json!(vec![-1; pages]);
    });
    let report = verify(&folder.path().join("x"), true);
    let level = finest(&report);
    assert_eq!(
        (level.counts.checked, level.counts.constant, level.counts.bad),
        (level.total, level.total, 0),
        "{report:?}"
    );
}

#[test]
fn a_level_with_too_many_bad_chunks_is_given_up_and_that_is_told() {
    let folder = tempfile::tempdir().unwrap();
    make("no-directory", &folder.path().join("x"), |_| {});
    let report = verify(&folder.path().join("x"), true);
    let level = finest(&report);
    assert!(level.counts.bad > MOST_BAD && level.counts.bad < MOST_BAD + 10_000 && !report.complete, "{level:?}");
    let told = report.findings.iter().filter(|found| found.severity == Severity::Damage && found.lod == Some(0));
    let told: Vec<&str> = told.map(|found| &*found.reason).collect();
    assert_eq!(told, [format!("more than {MOST_BAD} of its bricks cannot be read; no more of them were checked")]);
}
