//! Sources that change, are deleted, or are written while they are read: reads give right samples or an error, never a
//! mixture, and never a crash; and the daemon lets go of what is gone.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, RwLock};
use std::thread::sleep;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use fuser::SessionACL;
use nix::errno::Errno;
use serde_json::Value;
use tempfile::TempDir;

use crate::support::own_fs::{OneFile, OwnMount};
use crate::support::{
    Mount, SOON, comes_true, copy_all, fixture, fuse_or_skip, is_eio, json, names, process_lives, read_at, replace,
    set, source_of, source_with, test_data, text, volfs,
};

#[test]
fn a_truncated_source_gives_errors_and_no_crash() {
    for name in ["v3_int8.zgy", "v3_float32.zgy", "v4_mixed.zgy"] {
        let source = source_with(&[name, "v3_int16.zgy"]);
        let Some(mount) = Mount::with(source.path(), &["--direct-io"]) else { return };
        let samples = fixture(name).samples(0).unwrap();
        let file = File::open(mount.data(name, "lod0.raw")).unwrap();
        assert!(read_at(&file, 0, 1000).unwrap() == samples[..1000]);
        File::options().write(true).open(source.path().join(name)).unwrap().set_len(4096).unwrap();
        for offset in (0..samples.len() - 1000).step_by(997) {
            match read_at(&file, offset as u64, 1000) {
                Ok(found) => assert!(found == samples[offset..offset + 1000], "{name}: wrong samples at {offset}"),
                Err(error) => assert!(is_eio(&error), "{name}: {error}"),
            }
        }
        assert!(process_lives(mount.pid()));
        let good = fixture("v3_int16.zgy");
        assert!(fs::read(mount.data(&good.name, "lod0.raw")).unwrap() == good.samples(0).unwrap());
    }
}

#[test]
fn truncating_under_load_gives_errors_and_no_crash() {
    let source = source_with(&["v3_float32.zgy", "v3_int16.zgy"]);
    let Some(mount) = Mount::with(source.path(), &["--direct-io", "--cache-size", "16KiB"]) else { return };
    let samples = fixture("v3_float32.zgy").samples(0).unwrap();
    let whole = fs::read(source.path().join("v3_float32.zgy")).unwrap();
    let (stop, reads) = (AtomicBool::new(false), AtomicUsize::new(0));
    let is_read_again = || {
        let before = reads.load(Ordering::Relaxed);
        comes_true(SOON, || reads.load(Ordering::Relaxed) >= before + 4)
    };
    let mut rounds = 0;
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                while !stop.load(Ordering::Relaxed) {
                    match fs::read(mount.data("v3_float32.zgy", "lod0.raw")) {
                        Ok(found) => assert!(found.len() != samples.len() || found == samples, "wrong samples"),
                        // a source that changes twice during one path lookup gives ESTALE: the kernel retries only once
                        Err(error) => assert!(
                            [Errno::EIO, Errno::ENOENT, Errno::ESTALE]
                                .map(|e| Some(e as i32))
                                .contains(&error.raw_os_error()),
                            "{error}"
                        ),
                    }
                    reads.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        let path = source.path().join("v3_float32.zgy");
        let mut goes_on = true;
        while goes_on && rounds < 30 {
            File::options().write(true).open(&path).unwrap().set_len(1000 + rounds * 7000).unwrap();
            goes_on = is_read_again();
            replace(&path, &whole);
            goes_on &= is_read_again();
            rounds += 1;
        }
        // nothing above may panic: the readers would run for ever
        stop.store(true, Ordering::Relaxed);
        assert!(goes_on, "nothing is read any more");
    });
    assert!(process_lives(mount.pid()));
    let read = || fs::read(mount.data("v3_float32.zgy", "lod0.raw"));
    assert!(comes_true(SOON, || read().is_ok_and(|found| found == samples)));
}

/// The daemon copies data that is read often, and is in the page cache, from a memory map. If the file is truncated
/// during the copy, the kernel sends SIGBUS, which ends a process that does not handle it.
#[test]
fn a_mapped_source_that_is_truncated_gives_errors_and_no_crash() {
    for name in ["v3_float32.zgy", "v3_int8.zgy"] {
        let source = source_with(&[name, "v3_int16.zgy"]);
        let path = source.path().join(name);
        let Some(mount) = Mount::with(source.path(), &["--direct-io"]) else { return };
        let samples = fixture(name).samples(0).unwrap();
        let file = File::open(mount.data(name, "lod0.raw")).unwrap();
        let maps = || fs::read_to_string(format!("/proc/{}/maps", mount.pid())).unwrap();
        for _ in 0..20 {
            assert!(read_at(&file, 0, samples.len()).unwrap() == samples);
        }
        // a file is mapped only if its file system is known to be local; otherwise only the errors are tested
        let is_mapped = maps().contains(path.to_str().unwrap());
        let (cut, reads) = (AtomicBool::new(false), AtomicUsize::new(0));
        std::thread::scope(|scope| {
            for part in 0..4 {
                let (file, samples, cut, reads) = (&file, &samples, &cut, &reads);
                scope.spawn(move || {
                    let mut failures = 0;
                    while failures < 50 {
                        let was_cut = cut.load(Ordering::SeqCst);
                        let (offset, length) = (part * samples.len() / 4, samples.len() / 4);
                        match read_at(file, offset as u64, length) {
                            Ok(found) => {
                                assert!(found == samples[offset..offset + length], "wrong samples");
                                assert!(!was_cut, "samples of a file that has changed");
                                reads.fetch_add(1, Ordering::Relaxed);
                            }
                            Err(error) => {
                                assert!(is_eio(&error), "{name}: {error}");
                                failures += 1;
                            }
                        }
                    }
                });
            }
            // nothing may panic before the truncation: the readers would run for ever
            let are_reading = comes_true(SOON, || reads.load(Ordering::Relaxed) >= 100);
            File::options().write(true).open(&path).unwrap().set_len(4096).unwrap();
            cut.store(true, Ordering::SeqCst);
            assert!(are_reading, "nothing is read");
        });
        assert!(process_lives(mount.pid()), "{name}, mapped: {is_mapped}");
        let good = fixture("v3_int16.zgy");
        assert!(fs::read(mount.data(&good.name, "lod0.raw")).unwrap() == good.samples(0).unwrap());
        drop(file);
        fs::remove_file(&path).unwrap();
        let is_gone = || File::open(mount.data(name, "lod0.raw")).is_err() && !maps().contains(path.to_str().unwrap());
        assert!(comes_true(SOON, is_gone), "{name}: a file that is gone is still mapped");
    }
}

/// Returns two files of one size and shape but with different samples, each followed by its samples.
fn two_of_one_size() -> (Vec<u8>, Vec<u8>, Vec<u8>, Vec<u8>) {
    let file = fs::read(test_data("zgy/v3_int16.zgy")).unwrap();
    let samples = fixture("v3_int16.zgy").samples(0).unwrap();
    let table_end = 16 * 16 * 16 * 2; // the first brick begins at a multiple of its size
    let mut other = file.clone();
    other[table_end..].iter_mut().for_each(|byte| *byte ^= 0xFF);
    let inverted = samples.iter().map(|byte| byte ^ 0xFF).collect();
    (file, samples, other, inverted)
}

#[test]
fn a_replaced_source_shows_its_new_content() {
    let source = source_with(&["v3_int16.zgy"]);
    let Some(mount) = Mount::of(source.path()) else { return };
    let (_, old_samples, new_file, new_samples) = two_of_one_size();
    let path = mount.data("v3_int16.zgy", "lod0.raw");
    let old = File::open(&path).unwrap();
    let old_inode = old.metadata().unwrap().ino();
    assert!(fs::read(&path).unwrap() == old_samples);

    replace(&source.path().join("v3_int16.zgy"), new_file);
    assert!(
        comes_true(SOON, || fs::read(&path).is_ok_and(|found| found == new_samples)),
        "the new content is not shown"
    );
    assert_ne!(fs::metadata(&path).unwrap().ino(), old_inode);

    let mut found = vec![0; old_samples.len()];
    match old.read_exact_at(&mut found, 0) {
        Ok(()) => assert!(found == old_samples, "the old handle mixes old and new"),
        Err(error) => assert!(is_eio(&error), "{error}"),
    }
}

#[test]
fn a_folder_that_is_replaced_is_never_mixed_with_the_new_one() {
    let top = tempfile::tempdir().unwrap();
    let [shown, other, gone] = ["source/cells", "other", "gone"].map(|name| top.path().join(name));
    copy_all(&test_data("demo/cells"), &shown);
    copy_all(&test_data("demo/cells"), &other);
    let cube = |n| other.join(format!("color/1/z{n}/y0/x0.wkw"));
    fs::copy(cube(0), cube(2)).unwrap();
    let Some(mount) = Mount::of(top.path().join("source")) else { return };
    let samples = volfs().arg("cat").arg(test_data("demo/cells")).args(["--layer", "color"]).output().unwrap().stdout;
    let old = File::open(mount.path("cells/color/lod0.raw")).unwrap();
    let mut found = vec![0; 4096];
    old.read_exact_at(&mut found, 0).unwrap();
    // nobody looks at the names in between, and the cubes that differ were not read yet
    fs::rename(&shown, gone).unwrap();
    fs::rename(other, shown).unwrap();
    for (n, wanted) in samples.chunks(4096).enumerate() {
        found.truncate(wanted.len());
        match old.read_exact_at(&mut found, n as u64 * 4096) {
            Ok(()) => assert!(found == wanted, "page {n} is of the new folder"),
            Err(error) => assert!(is_eio(&error), "{error}"),
        }
    }
}

#[test]
fn a_source_overwritten_in_place_shows_its_new_content() {
    let source = source_with(&["v3_int16.zgy"]);
    let Some(mount) = Mount::of(source.path()) else { return };
    let (_, old_samples, new_file, new_samples) = two_of_one_size();
    let path = mount.data("v3_int16.zgy", "lod0.raw");
    assert!(fs::read(&path).unwrap() == old_samples);
    fs::write(source.path().join("v3_int16.zgy"), new_file).unwrap();
    assert!(
        comes_true(SOON, || fs::read(&path).is_ok_and(|found| found == new_samples)),
        "the new content is not shown"
    );
}

#[test]
fn a_replacement_of_another_shape_has_another_size() {
    let source = source_with(&["v3_int16.zgy"]);
    let Some(mount) = Mount::of(source.path()) else { return };
    assert!(mount.data("v3_int16.zgy", "lod0.float32.npy").exists());
    replace(&source.path().join("v3_int16.zgy"), fs::read(test_data("zgy/v4_mixed.zgy")).unwrap());
    let expected = fixture("v4_mixed.zgy").samples(0).unwrap();
    let path = mount.data("v3_int16.zgy", "lod0.raw");
    assert!(comes_true(SOON, || fs::read(&path).is_ok_and(|found| found == expected)));
    assert_eq!(fs::metadata(&path).unwrap().len(), expected.len() as u64);
    assert_eq!(json(mount.data("v3_int16.zgy", "lod0.json"))["dtype"], "float32");
    assert!(comes_true(SOON, || !mount.data("v3_int16.zgy", "lod0.float32.npy").exists()));
}

#[test]
fn a_repaired_file_opens() {
    let source = source_with(&[]);
    let path = source.path().join("late.zgy");
    let whole = fs::read(test_data("zgy/v3_int16.zgy")).unwrap();
    fs::write(&path, &whole[..500]).unwrap();
    let Some(mount) = Mount::of(source.path()) else { return };
    assert!(fs::read_to_string(mount.path("late.zgy/error.txt")).unwrap().contains("truncated"));
    fs::write(&path, &whole).unwrap();
    let expected = fixture("v3_int16.zgy").samples(0).unwrap();
    assert!(comes_true(SOON, || fs::read(mount.data("late.zgy", "lod0.raw")).is_ok_and(|found| found == expected)));
    assert!(comes_true(SOON, || !mount.path("late.zgy/error.txt").exists()));
}

#[test]
fn a_removed_source_gives_errors_only_for_itself() {
    let source = source_with(&["v3_int8.zgy", "v3_int16.zgy"]);
    let Some(mount) = Mount::of(source.path()) else { return };
    let file = File::open(mount.data("v3_int8.zgy", "lod0.raw")).unwrap();
    fs::remove_file(source.path().join("v3_int8.zgy")).unwrap();
    assert!(comes_true(SOON, || File::open(mount.data("v3_int8.zgy", "lod0.raw")).is_err()));
    if let Err(error) = read_at(&file, 0, 10) {
        assert!(is_eio(&error), "{error}");
    }
    let good = fixture("v3_int16.zgy");
    assert!(fs::read(mount.data(&good.name, "lod0.raw")).unwrap() == good.samples(0).unwrap());
}

/// Returns whether the daemon has a file below a folder open or mapped that has no name any more.
fn holds_deleted(mount: &Mount, folder: &str) -> bool {
    let process = format!("/proc/{}", mount.pid());
    let is_deleted = |text: &str| text.contains(folder) && text.ends_with(" (deleted)");
    let descriptors = fs::read_dir(format!("{process}/fd")).unwrap().flatten();
    let mut targets = descriptors.filter_map(|fd| fs::read_link(fd.path()).ok());
    targets.any(|target| is_deleted(&target.to_string_lossy()))
        || fs::read_to_string(format!("{process}/maps")).unwrap().lines().any(is_deleted)
}

#[test]
fn the_space_of_a_deleted_source_becomes_free_although_nobody_looks() {
    let source = source_with(&["v3_float32.zgy", "v3_int8.zgy", "v3_int16.zgy"]);
    let folder = source.path().canonicalize().unwrap();
    let Some(mount) = Mount::with(source.path(), &["--direct-io"]) else { return };
    let reader = File::open(mount.data("v3_int16.zgy", "lod0.raw")).unwrap();
    for _ in 0..20 {
        for name in ["v3_float32.zgy", "v3_int8.zgy"] {
            fs::read(mount.data(name, "lod0.raw")).unwrap();
        }
        read_at(&reader, 0, 1000).unwrap();
    }
    for name in ["v3_float32.zgy", "v3_int16.zgy"] {
        fs::remove_file(folder.join(name)).unwrap();
    }
    replace(&folder.join("v3_int8.zgy"), fs::read(test_data("zgy/v3_int16.zgy")).unwrap());
    assert!(comes_true(SOON, || !holds_deleted(&mount, folder.to_str().unwrap())), "a deleted file is still open");
    assert!(read_at(&reader, 0, 1000).is_err_and(|error| is_eio(&error)), "an open file of a deleted source");
}

#[test]
fn the_space_of_a_deleted_folder_becomes_free_although_nobody_looks() {
    let source = source_of("wkw", &["bare", "types"]);
    let folder = source.path().canonicalize().unwrap();
    let Some(mount) = Mount::of(source.path()) else { return };
    fs::read(mount.path("bare/color/lod0.raw")).unwrap();
    assert!(!holds_deleted(&mount, folder.to_str().unwrap()));
    fs::remove_dir_all(folder.join("bare")).unwrap();
    assert!(comes_true(SOON, || !holds_deleted(&mount, folder.to_str().unwrap())), "a deleted file is still open");
}

/// Returns how often the thread that looks for deleted sources has waited.
fn waits(mount: &Mount) -> u64 {
    let threads = fs::read_dir(format!("/proc/{}/task", mount.pid())).unwrap().flatten();
    let name = |thread: &fs::DirEntry| fs::read_to_string(thread.path().join("comm")).unwrap_or_default();
    let thread = threads.into_iter().find(|thread| name(thread).trim_end() == "volfs-refresh").unwrap();
    let status = fs::read_to_string(thread.path().join("status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:")).unwrap();
    line.trim().parse().unwrap()
}

#[test]
fn a_mount_without_open_sources_sleeps() {
    let source = source_with(&["v3_int8.zgy"]);
    let folder = source.path().canonicalize().unwrap();
    let Some(mount) = Mount::of(source.path()) else { return };
    let is_asleep = || {
        let before = waits(&mount);
        sleep(Duration::from_millis(2500));
        waits(&mount) == before
    };
    let listed = || fs::read_dir(mount.point()).unwrap().count();
    assert_eq!(listed(), 2);
    assert_eq!(fs::read(mount.data("v3_int8.zgy", "lod0.raw")).unwrap(), fixture("v3_int8.zgy").samples(0).unwrap());
    fs::remove_file(folder.join("v3_int8.zgy")).unwrap();
    assert!(comes_true(SOON, || !holds_deleted(&mount, folder.to_str().unwrap())), "it looks again");
    // what was written a moment ago is refreshed for a while
    assert!(comes_true(SOON, is_asleep), "after the source was deleted");
}

fn is_stale(listed: io::Result<fs::ReadDir>) -> bool {
    listed.is_err_and(|error| error.raw_os_error() == Some(Errno::ESTALE as i32))
}

/// Looks at everything as programs do, in vain.
fn look_at_all(mount: &Mount, readers: &[File]) {
    assert!(is_stale(fs::read_dir(mount.point())), "ls of the mount");
    for name in ["v3_int16.zgy", "bare", "none"] {
        let error = fs::read_dir(mount.path(name)).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::NotFound, "{name}: {error}");
    }
    for reader in readers {
        assert!(read_at(reader, 0, 1000).is_err());
    }
}

/// Returns the lines of the log about the source, after the one about the mount.
fn lines_about_source(mount: &Mount) -> Vec<String> {
    let log = mount.log();
    log.lines().skip(1).map(|line| line.split_once(": ").unwrap().1.to_owned()).collect()
}

#[test]
fn a_source_that_is_gone_is_named_once_and_no_empty_mount() {
    let top = source_with(&["v3_int16.zgy"]);
    let source = top.path().canonicalize().unwrap().join("source");
    let make = || {
        fs::create_dir(&source).unwrap();
        fs::copy(test_data("zgy/v3_int16.zgy"), source.join("v3_int16.zgy")).unwrap();
        copy_all(&test_data("wkw/bare"), &source.join("bare"));
    };
    make();
    let Some(mount) = Mount::with(&source, &["--direct-io"]) else { return };
    let readers =
        ["v3_int16.zgy/data/lod0.raw", "bare/color/lod0.raw"].map(|file| File::open(mount.path(file)).unwrap());
    assert!(readers.iter().all(|reader| read_at(reader, 0, 1000).is_ok()));
    fs::remove_dir_all(&source).unwrap();
    assert!(comes_true(SOON, || is_stale(fs::read_dir(mount.point()))));
    assert!(comes_true(SOON, || readers.iter().all(|reader| read_at(reader, 0, 1000).is_err())));
    for _ in 0..3 {
        look_at_all(&mount, &readers);
    }
    assert_eq!(names(mount.path(".volfs")), set(["log", "status.json"]));
    let gone = format!("the source {} is gone", source.display());
    let lines = lines_about_source(&mount);
    assert!(lines.len() == 1 && lines[0].starts_with(&gone), "{lines:?}");
    let doctor = volfs().arg("doctor").output().unwrap();
    let named = format!("the source {} of the mount at {} is gone", source.display(), mount.point().display());
    assert!(text(&doctor.stdout).contains(&named), "{}", text(&doctor.stdout));

    make();
    assert!(comes_true(SOON, || fs::read(mount.data("v3_int16.zgy", "lod0.raw")).is_ok()));
    assert_eq!(names(mount.point()), set([".volfs", "bare", "v3_int16.zgy"]));
    let lines = lines_about_source(&mount);
    assert!(lines.len() == 2 && lines[1].ends_with(" is there again"), "{lines:?}");
}

#[test]
fn a_source_of_one_file_that_is_gone_is_named() {
    let source = source_with(&["v3_int16.zgy"]);
    let file: &Path = &source.path().join("v3_int16.zgy");
    let Some(mount) = Mount::of(file) else { return };
    assert_eq!(names(mount.point()), set([".volfs", "v3_int16.zgy"]));
    fs::remove_file(file).unwrap();
    assert!(comes_true(SOON, || is_stale(fs::read_dir(mount.point()))));
    let lines = lines_about_source(&mount);
    assert!(lines.len() == 1 && lines[0].contains("is gone"), "{lines:?}");
}

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

const NAME: &str = "written.zgy";

/// A mount of such a file.
struct Scene {
    bytes: Arc<RwLock<Vec<u8>>>,
    mount: Mount,
    _server: OwnMount,
    _source: TempDir,
}

impl Scene {
    /// Makes a mount of a file that was just written.
    fn new(bytes: Vec<u8>) -> Option<Self> {
        Self::written_at(bytes, SystemTime::now())
    }

    /// Makes a mount of a file that was just written, at this time by the clock of its server.
    fn written_at(bytes: Vec<u8>, at: SystemTime) -> Option<Self> {
        if !fuse_or_skip() {
            return None;
        }
        let source = source_with(&[]);
        let bytes = Arc::new(RwLock::new(bytes));
        let written =
            OneFile { path: &[NAME], bytes: Arc::clone(&bytes), time: at, cached: false, gate: Arc::default() };
        let server = OwnMount::new(written, &source.path().join("server"), 1, SessionACL::Owner);
        let mount = Mount::of(source.path())?;
        Some(Self { bytes, mount, _server: server, _source: source })
    }

    /// Changes the bytes of the file, but not its attributes: the rest of a write arrives.
    fn arrives(&self, bytes: &[u8]) {
        *self.bytes.write().unwrap() = bytes.to_vec();
    }

    fn path(&self, name: &str) -> PathBuf {
        self.mount.path("server").join(NAME).join(name)
    }
}

/// Returns two files of one size, and the samples of both.
fn two_versions(name: &str) -> [(Vec<u8>, Vec<u8>); 2] {
    let old = fs::read(test_data("zgy").join(name)).unwrap();
    let mut new = old.clone();
    let samples = new.len() / 3..new.len();
    // few bits, so that compressed bricks stay readable
    new[samples].iter_mut().step_by(1001).for_each(|byte| *byte ^= 0x10);
    let folder = tempfile::tempdir().unwrap();
    [old, new].map(|bytes| {
        let path = folder.path().join("x.zgy");
        fs::write(&path, &bytes).unwrap();
        let samples = volfs().arg("cat").arg(&path).args(["--layer", "data", "--lod", "0"]).output().unwrap();
        assert!(samples.status.success(), "{samples:?}");
        (bytes, samples.stdout)
    })
}

#[test]
fn bytes_that_arrive_after_the_time_was_set_are_shown() {
    for name in ["v3_int16.zgy", "v4_zfp_rate.zgy"] {
        let [(old, old_samples), (new, new_samples)] = two_versions(name);
        assert!(old_samples != new_samples && old_samples.len() == new_samples.len());
        let Some(scene) = Scene::new(old) else { return };
        let path = scene.path("data/lod0.raw");
        let open = File::open(&path).unwrap();
        assert!(fs::read(&path).unwrap() == old_samples);
        let inode = open.metadata().unwrap().ino();
        scene.arrives(&new);
        let reads_new = || read_at(&open, 0, new_samples.len()).unwrap() == new_samples;
        assert!(comes_true(SOON, reads_new), "{name}: a file that is open shows what it showed before");
        assert!(fs::read(&path).unwrap() == new_samples, "{name}: a file that is opened now shows old bytes");
        assert_eq!(fs::metadata(&path).unwrap().ino(), inode, "the dataset is the same");
        // nothing old comes back from any cache
        let file = File::options().read(true).open(scene.path("data/lod0.npy")).unwrap();
        let header = file.metadata().unwrap().len() - new_samples.len() as u64;
        assert!(read_at(&file, header, new_samples.len()).unwrap() == new_samples);
    }
}

#[test]
fn they_are_shown_although_the_clock_of_the_server_is_ahead() {
    let [(old, old_samples), (new, new_samples)] = two_versions("v3_int16.zgy");
    for ahead in [Duration::from_secs(60), Duration::from_secs(24 * 3600)] {
        let Some(scene) = Scene::written_at(old.clone(), SystemTime::now() + ahead) else { return };
        let path = scene.path("data/lod0.raw");
        assert!(fs::read(&path).unwrap() == old_samples);
        scene.arrives(&new);
        assert!(comes_true(SOON, || fs::read(&path).unwrap() == new_samples), "{ahead:?} ahead: old bytes");
    }
}

#[test]
fn a_dataset_that_becomes_another_one_fails_old_readers_and_shows_the_new_files() {
    let [(bytes, samples), _] = two_versions("v3_int16.zgy");
    let Some(scene) = Scene::new(bytes.clone()) else { return };
    let path = scene.path("data/lod0.raw");
    let open = File::open(&path).unwrap();
    assert!(read_at(&open, 0, samples.len()).unwrap() == samples);
    let mut damaged = bytes.clone();
    damaged[..4].copy_from_slice(b"....");
    scene.arrives(&damaged);
    let error = scene.path("error.txt");
    assert!(comes_true(SOON, || error.exists()), "the damaged file has no error.txt");
    let fails = || open.read_at(&mut [0; 16], 0).is_err_and(|e| is_eio(&e));
    assert!(comes_true(SOON, fails), "the old reader reads on");
    assert!(!path.exists());
    scene.arrives(&bytes);
    assert!(comes_true(SOON, || fs::read(&path).is_ok_and(|found| found == samples)), "an error is never forgotten");
    assert!(comes_true(SOON, || !error.exists()));
}

#[test]
fn a_reader_of_a_file_that_was_just_copied_notices_nothing() {
    let source = source_with(&["v3_int16.zgy"]);
    let Some(mount) = Mount::of(source.path()) else { return };
    let samples = fixture("v3_int16.zgy").samples(0).unwrap();
    let path = mount.data("v3_int16.zgy", "lod0.raw");
    let open = File::open(&path).unwrap();
    let (inode, began) = (open.metadata().unwrap().ino(), Instant::now());
    // over two refreshes
    while began.elapsed() < Duration::from_millis(3500) {
        assert!(read_at(&open, 0, samples.len()).unwrap() == samples);
        assert!(fs::read(&path).unwrap() == samples);
        assert_eq!(fs::metadata(&path).unwrap().ino(), inode);
    }
}

#[test]
fn new_content_with_the_old_time_is_shown_at_the_next_open() {
    let [(old, old_samples), (new, new_samples)] = two_versions("v3_int16.zgy");
    let source = source_with(&["v3_int16.zgy"]);
    let in_source = source.path().join("v3_int16.zgy");
    let Some(mount) = Mount::of(source.path()) else { return };
    let path = mount.data("v3_int16.zgy", "lod0.raw");
    let time = fs::metadata(&in_source).unwrap().modified().unwrap();
    for (bytes, samples) in [(&old, &old_samples), (&new, &new_samples), (&old, &old_samples)] {
        fs::write(&in_source, bytes).unwrap();
        File::options().write(true).open(&in_source).unwrap().set_modified(time).unwrap();
        let shows = || fs::read(&path).is_ok_and(|found| found == *samples);
        assert!(comes_true(SOON, shows), "the old content is shown");
    }
}
