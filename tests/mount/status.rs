//! The folder `.volfs`: status.json and the log.

use std::fs;
use std::io::Read;

use serde_json::Value;

use crate::support::mount::is_volfs;
use crate::support::{Mount, source_with, test_data, text as text_of, volfs};

#[test]
fn status_is_always_fresh() {
    let source = source_with(&["v4_mixed.zgy"]);
    let Some(mount) = Mount::of(source.path()) else { return };
    let before = mount.status();
    assert_eq!(before["version"], env!("CARGO_PKG_VERSION"));
    assert_eq!(before["source"], source.path().to_str().unwrap());
    assert!(is_volfs(mount.pid()));
    assert_eq!(before["pid"], mount.pid());
    let samples = fs::read(mount.data("v4_mixed.zgy", "lod0.raw")).unwrap();
    let after = mount.status();
    let grown = |name: &str| {
        let count = |status: &Value| status["counters"][name].as_u64().unwrap_or_else(|| panic!("no {name}"));
        count(&after).checked_sub(count(&before)).unwrap_or_else(|| panic!("{name} has shrunk"))
    };
    assert!(grown("reads") >= 1);
    assert!(grown("bytes_read") >= samples.len() as u64);
    assert!(grown("bricks_decoded") >= 1);
    assert!(grown("bytes_decoded") >= 16 * 16 * 16 * 4);
    assert!(grown("source_bytes") >= 1);
    assert!(grown("cache_misses") >= 1);
    for name in ["cache_hits", "prefetched", "errors"] {
        grown(name);
    }
    assert!(after["counters"]["cache_bytes"].as_u64().unwrap() >= 1);
}

/// Returns what was counted of a dataset.
fn dataset<'a>(status: &'a Value, path: &str) -> &'a Value {
    let all = status["datasets"].as_array().unwrap();
    all.iter().find(|dataset| dataset["path"] == path).unwrap_or_else(|| panic!("no {path} in {all:?}"))
}

#[test]
fn each_dataset_has_counters_that_sum_up_to_those_of_the_mount() {
    let source = tempfile::tempdir().unwrap();
    for (file, below) in [("v4_mixed.zgy", "a/b"), ("v3_int8.zgy", "c"), ("bad_zfp_magic.zgy", ".")] {
        let folder = source.path().join(below);
        fs::create_dir_all(&folder).unwrap();
        fs::copy(test_data("zgy").join(file), folder.join(file)).unwrap();
    }
    let Some(mount) = Mount::of(source.path()) else { return };
    let samples = |dataset: &str| fs::read(mount.data(dataset, "lod0.raw"));
    let (mixed, plain) = (samples("a/b/v4_mixed.zgy").unwrap().len(), samples("c/v3_int8.zgy").unwrap().len());
    samples("a/b/v4_mixed.zgy").unwrap();
    samples("bad_zfp_magic.zgy").unwrap_err();
    fs::read(mount.path("c/v3_int8.zgy/dataset.json")).unwrap();
    let status = mount.status();
    assert_eq!(status["datasets"].as_array().map(Vec::len), Some(3), "{status}");
    assert_eq!(status["datasets"][0]["path"], "bad_zfp_magic.zgy", "it was read last");
    let count = |path: &str, name: &str| dataset(&status, path)[name].as_u64().unwrap();
    assert!(count("a/b/v4_mixed.zgy", "bytes_read") >= mixed as u64);
    assert!(count("c/v3_int8.zgy", "bytes_read") >= plain as u64);
    assert!(count("c/v3_int8.zgy", "source_bytes") > 0, "its bricks are plain");
    assert_eq!((count("c/v3_int8.zgy", "bricks_decoded"), count("c/v3_int8.zgy", "cache_hits")), (0, 0));
    assert!(count("a/b/v4_mixed.zgy", "bricks_decoded") > 0 && count("a/b/v4_mixed.zgy", "source_bytes") > 0);
    assert!(count("bad_zfp_magic.zgy", "errors") > 0);
    let sum = |name: &str| -> u64 {
        let listed = status["datasets"].as_array().unwrap().iter().map(|dataset| dataset[name].as_u64().unwrap());
        listed.sum::<u64>() + status["other_datasets"][name].as_u64().unwrap()
    };
    let total = |name: &str| status["counters"][name].as_u64().unwrap();
    for name in ["bricks_decoded", "bytes_decoded", "cache_hits", "cache_misses", "prefetched", "errors"] {
        assert_eq!(sum(name), total(name), "{name}");
    }
    for name in ["reads", "bytes_read", "source_bytes"] {
        assert!(sum(name) > 0 && sum(name) < total(name), "{name}: headers and JSON are of the mount alone");
    }
}

#[test]
fn no_more_than_64_datasets_are_listed_and_none_is_lost() {
    const DATASETS: usize = 200;
    let source = tempfile::tempdir().unwrap();
    for n in 0..DATASETS {
        // names that JSON makes longer
        let name = format!("{n:03}{}.zgy", "\u{1}".repeat(200));
        fs::copy(test_data("zgy").join("v3_int8.zgy"), source.path().join(name)).unwrap();
    }
    let Some(mount) = Mount::of(source.path()) else { return };
    let mut names: Vec<_> = fs::read_dir(source.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    names.sort();
    for name in &names {
        let mut first = [0; 16];
        let file = mount.path(name).join("data/lod0.raw");
        fs::File::open(file).unwrap().read_exact(&mut first).unwrap();
    }
    let text = fs::read(mount.path(".volfs/status.json")).unwrap();
    assert!(text.len() < 64 << 10, "{} bytes", text.len());
    let status = mount.status();
    let listed = status["datasets"].as_array().unwrap();
    assert!((10..=64).contains(&listed.len()), "{}", listed.len());
    assert_eq!(listed[0]["path"], names[DATASETS - 1].to_str().unwrap());
    assert_eq!(status["other_datasets"]["count"], DATASETS - listed.len());
    let reads = |dataset: &Value| dataset["reads"].as_u64().unwrap();
    assert!(listed.iter().map(reads).sum::<u64>() + reads(&status["other_datasets"]) >= DATASETS as u64);
    let shown = volfs().arg("stats").arg(mount.point()).output().unwrap();
    assert!(shown.status.success() && text_of(&shown.stdout).contains("\nDatasets\n"), "{shown:?}");
    assert!(text_of(&shown.stdout).ends_with("  and 195 more\n"), "{shown:?}");
}

#[test]
fn the_mount_has_a_log_file() {
    let source = source_with(&["bad_zfp_magic.zgy"]);
    let Some(mount) = Mount::of(source.path()) else { return };
    fs::read(mount.data("bad_zfp_magic.zgy", "lod0.raw")).unwrap_err();
    let log = fs::read_to_string(mount.path(".volfs/log")).unwrap();
    assert!(log.lines().any(|line| line.contains("bad_zfp_magic.zgy")), "{log}");
    assert!(log.lines().count() <= 100);
}
