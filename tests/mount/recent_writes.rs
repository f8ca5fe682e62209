//! Files that are written while they are read: a file whose size and times have not changed since it was opened may
//! still get new bytes, since the system sets the time when a write begins. The files are on a FUSE file system of this
//! test, whose attributes stay the same when their content changes.

use std::fs::{self, File};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::PathBuf;
use std::sync::{Arc, RwLock};
use std::time::{Duration, Instant, SystemTime};

use fuser::SessionACL;
use tempfile::TempDir;

use crate::support::own_fs::{OneFile, OwnMount};
use crate::support::{Mount, SOON, comes_true, fixture, fuse_or_skip, is_eio, read_at, source_with, test_data, volfs};

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
fn two_of_one_size(name: &str) -> [(Vec<u8>, Vec<u8>); 2] {
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
        let [(old, old_samples), (new, new_samples)] = two_of_one_size(name);
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
    let [(old, old_samples), (new, new_samples)] = two_of_one_size("v3_int16.zgy");
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
    let [(bytes, samples), _] = two_of_one_size("v3_int16.zgy");
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
    let [(old, old_samples), (new, new_samples)] = two_of_one_size("v3_int16.zgy");
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
