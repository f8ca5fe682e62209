//! Which folders may be caches.

use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};

use rustix::fs::{FlockOperation, flock};

use super::super::{Cleared, DiskCacheError, Survey};
use super::*;

#[test]
fn a_folder_with_other_files_is_refused() {
    let (_folder, dir) = place();
    fs::create_dir(&dir).unwrap();
    fs::write(dir.join("thesis.txt"), "years").unwrap();
    let refused = DiskCache::open(&dir, BUDGET);
    assert!(matches!(refused, Err(DiskCacheError::ForeignFiles { ref name, .. }) if name == "thesis.txt"));
    assert!(refused.err().unwrap().to_string().contains("give an empty folder"));
    assert_eq!(fs::read_dir(&dir).unwrap().count(), 1, "nothing was made in it");
    assert!(matches!(Cleared::of(&dir), Err(DiskCacheError::NoCache(_))));
    assert!(matches!(Survey::of(&dir, false, |_| true), Err(DiskCacheError::NoCache(_))));
    // the cache of another program
    fs::remove_file(dir.join("thesis.txt")).unwrap();
    fs::write(dir.join("CACHEDIR.TAG"), "Signature: 8a477f597d28d172789f06886806bc55\n").unwrap();
    assert!(matches!(DiskCache::open(&dir, BUDGET), Err(DiskCacheError::ForeignFiles { .. })));
    assert!(matches!(Cleared::of(&dir), Err(DiskCacheError::NoCache(_))));
    // an empty one, as that of a disk of its own
    fs::remove_file(dir.join("CACHEDIR.TAG")).unwrap();
    fs::create_dir(dir.join("lost+found")).unwrap();
    drop(open(&dir));
    // and once it is a cache, other files may come: they stay
    fs::write(dir.join("thesis.txt"), "years").unwrap();
    drop(open(&dir));
    assert_eq!(Cleared::of(&dir).unwrap(), Cleared::default());
    assert!(dir.join("thesis.txt").exists());
}

#[test]
fn the_cache_of_another_version_is_one_of_ours() {
    let (_folder, dir) = place();
    let cache = open(&dir);
    put(&cache, "a", 0, &[1; 100]);
    drop(cache);
    let tag = "Signature: 8a477f597d28d172789f06886806bc55\n# A disk cache of volfs; `volfs cache DIR` tells more\n";
    fs::write(dir.join("CACHEDIR.TAG"), tag).unwrap();
    let reopened = open(&dir);
    wait_until_scanned(&reopened);
    assert_eq!(get(&reopened, "a", 0, 100), Some(vec![1; 100]));
    assert_eq!(fs::read_to_string(dir.join("CACHEDIR.TAG")).unwrap(), tag);
    assert!(Cleared::of(&dir).is_ok());
}

#[test]
fn others_may_not_read_it_nor_write_to_it() {
    let (_folder, dir) = place();
    let cache = open(&dir);
    put(&cache, "a", 0, &[1; 100]);
    let mode = |path: &Path| fs::metadata(path).unwrap().mode() & 0o777;
    let file = only_file(&dir);
    let own = fs::read_dir(dir.join("writers")).unwrap().next().unwrap().unwrap().path();
    let modes = [&dir, file.parent().unwrap(), &file, &dir.join("writers"), &own].map(mode);
    assert_eq!(modes, [0o700, 0o700, 0o600, 0o700, 0o700]);
    drop(cache);
    fs::set_permissions(&dir, fs::Permissions::from_mode(0o770)).unwrap();
    assert!(matches!(DiskCache::open(&dir, BUDGET), Err(DiskCacheError::WritableByOthers(_))));
}

#[test]
fn what_killed_processes_left_is_removed_and_what_others_write_is_not() {
    let (_folder, dir) = place();
    drop(open(&dir));
    let (dead, alive) = (dir.join("writers/1-dead"), dir.join("writers/1-alive"));
    for folder in [&dead, &alive] {
        fs::create_dir(folder).unwrap();
        fs::write(folder.join("0"), "half a file").unwrap();
    }
    let lock = fs::File::open(&alive).unwrap();
    flock(&lock, FlockOperation::LockExclusive).unwrap();
    let cache = open(&dir);
    assert_eq!((dead.exists(), alive.join("0").exists()), (false, true));
    drop(cache);
    drop(lock);
    assert_eq!(Cleared::of(&dir).unwrap().files, 0);
    assert!(!alive.exists());
}

#[test]
fn a_survey_tells_what_is_of_which_dataset() {
    let (_folder, dir) = place();
    let cache = open(&dir);
    put(&cache, "a", 0, &[1; 100]);
    put(&cache, "b", 0, &[1; 100_000]);
    cache.put(&ObjectVersion::new("s3://other", "south.vds", "", "7"), 0, vec![1; 5000]);
    drop(cache);
    let survey = Survey::of(&dir, true, |_| true).unwrap();
    let found: Vec<(&str, &str, u64)> =
        survey.datasets.iter().map(|((store, name), kept)| (store.as_str(), name.as_str(), kept.files)).collect();
    assert_eq!(found, [("s3://bucket", "survey", 2), ("s3://other", "south.vds", 1)]);
    let total = survey.total();
    let sizes: u64 = files(&dir).iter().map(|file| fs::metadata(file).unwrap().len()).sum();
    assert_eq!((total.files, total.bytes, survey.bad.files, survey.foreign), (3, sizes, 0, 0));
    assert!(total.oldest.unwrap() <= total.newest.unwrap());
    // damage that only checksums show, and damage that the size shows
    let [first, second] = [0, 1].map(|n| files(&dir)[n].clone());
    let mut bytes = fs::read(&first).unwrap();
    *bytes.last_mut().unwrap() ^= 1;
    fs::write(&first, bytes).unwrap();
    fs::write(&second, "short").unwrap();
    let notes = first.parent().unwrap().join("notes.txt");
    fs::write(&notes, "not ours").unwrap();
    symlink(&notes, dir.join("fff")).unwrap();
    let bad = |check| Survey::of(&dir, check, |_| true).map(|survey| (survey.bad.files, survey.foreign)).unwrap();
    assert_eq!((bad(false), bad(true)), ((1, 1), (2, 1)));
    let cleared = Cleared::of(&dir).unwrap();
    assert_eq!((cleared.files, cleared.foreign), (3, 1));
    assert!(notes.exists());
    assert_eq!(Survey::of(&dir, false, |_| true).unwrap().total().files, 0);
    drop(open(&dir));
}
