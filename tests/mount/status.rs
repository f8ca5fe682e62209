//! The folder `.volfs`: status.json and the log.

use std::fs;

use serde_json::Value;

use crate::support::process::is_volfs;
use crate::support::{Mount, source_with};

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

#[test]
fn the_mount_has_a_log_file() {
    let source = source_with(&["bad_zfp_magic.zgy"]);
    let Some(mount) = Mount::of(source.path()) else { return };
    fs::read(mount.data("bad_zfp_magic.zgy", "lod0.raw")).unwrap_err();
    let log = fs::read_to_string(mount.path(".volfs/log")).unwrap();
    assert!(log.lines().any(|line| line.contains("bad_zfp_magic.zgy")), "{log}");
    assert!(log.lines().count() <= 100);
}
