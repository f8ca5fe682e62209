//! Files with times that no file should have: of the future, or of long before there were computers.

use std::fs::{self, File};
use std::os::unix::fs::MetadataExt;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde_json::Value;

use crate::support::{Mount, SOON, comes_true, fixture, json, replace, source_with};

/// Returns a time that lies a day ahead.
fn tomorrow() -> SystemTime {
    SystemTime::now() + Duration::from_secs(24 * 3600)
}

#[test]
fn odd_times_are_shown_as_they_are_and_do_not_matter() {
    let source = source_with(&["v3_int16.zgy"]);
    let samples = fixture("v3_int16.zgy").samples(0).unwrap();
    let times = [
        ("tomorrow.zgy", tomorrow()),
        ("later.zgy", UNIX_EPOCH + Duration::new(10_000_000_000, 5)),
        ("zero.zgy", UNIX_EPOCH),
        ("before.zgy", UNIX_EPOCH - Duration::from_secs(86_400)),
        ("broken.zgy", UNIX_EPOCH - Duration::from_millis(1750)),
    ];
    for (name, time) in times {
        let path = source.path().join(name);
        fs::copy(source.path().join("v3_int16.zgy"), &path).unwrap();
        File::options().write(true).open(&path).unwrap().set_modified(time).unwrap();
    }
    let Some(mount) = Mount::of(source.path()) else { return };
    for (name, _) in times {
        let (shown, original) =
            (fs::metadata(mount.data(name, "lod0.raw")).unwrap(), fs::metadata(source.path().join(name)).unwrap());
        assert_eq!((shown.mtime(), shown.mtime_nsec()), (original.mtime(), original.mtime_nsec()), "{name}");
        assert!(fs::read(mount.data(name, "lod0.raw")).unwrap() == samples, "{name}");
        assert_ne!(json(mount.path(name).join("dataset.json"))["source"]["mtime"], Value::Null, "{name}");
    }
}

#[test]
fn new_content_under_a_time_of_the_future_is_shown() {
    let source = source_with(&["v3_int16.zgy"]);
    let path = source.path().join("v3_int16.zgy");
    let (old, time) = (fs::read(&path).unwrap(), tomorrow());
    let mut new = old.clone();
    new[16 * 16 * 16 * 2..].iter_mut().for_each(|byte| *byte ^= 0xFF);
    let old_samples = fixture("v3_int16.zgy").samples(0).unwrap();
    let new_samples: Vec<u8> = old_samples.iter().map(|byte| byte ^ 0xFF).collect();
    let set_time = || File::options().write(true).open(&path).unwrap().set_modified(time).unwrap();
    set_time();
    let Some(mount) = Mount::of(source.path()) else { return };
    let shown = mount.data("v3_int16.zgy", "lod0.raw");
    let shows = |samples: &[u8]| comes_true(SOON, || fs::read(&shown).is_ok_and(|found| found == samples));
    assert!(shows(&old_samples));
    // in place, and as another file
    fs::write(&path, &new).unwrap();
    set_time();
    assert!(shows(&new_samples), "old samples after an overwrite in place");
    replace(&path, &old);
    set_time();
    assert!(shows(&old_samples), "old samples after a replacement");
}
