//! A folder of the source hangs, and the rest of the mount goes on. The folder is another mount, whose daemon the test
//! stops.

use std::fs;
use std::path::PathBuf;
use std::thread;
use std::time::Duration;

use nix::sys::signal::Signal;

use crate::support::{
    Mount, comes_true, fixture, fuse_or_skip, json, names, process_lives, set, signal, source_with, test_data, volfs,
    wait_until, within,
};

/// The mount whose daemon is stopped; when dropped, also by a panic, its daemon continues and it is unmounted.
struct Inner {
    point: PathBuf,
    pid: i32,
}

impl Inner {
    fn at(point: PathBuf) -> Self {
        let pid = json(point.join(".volfs/status.json"))["pid"].as_i64().unwrap();
        Self { point, pid: i32::try_from(pid).unwrap() }
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        let _ = signal(self.pid, Signal::SIGCONT);
        let _ = volfs().args(["umount", "--lazy"]).arg(&self.point).output();
    }
}

/// Generous: calls that hang do so until the end of the test.
const LIMIT: Duration = Duration::from_secs(20);

#[test]
fn a_hanging_folder_does_not_hold_up_the_others() {
    if !fuse_or_skip() {
        return;
    }
    let source = source_with(&["v3_int8.zgy", "v3_int16.zgy"]);
    fs::create_dir(source.path().join("hang")).unwrap();
    let inner = volfs().arg("mount").arg(test_data("zgy")).arg(source.path().join("hang")).output().unwrap();
    assert!(inner.status.success(), "{inner:?}");
    let inner = Inner::at(source.path().join("hang"));
    let mount = Mount::of(source.path()).unwrap();
    let point = mount.point().to_owned();
    assert!(fs::read_dir(point.join("hang")).unwrap().count() > 10, "the datasets of the inner mount are folders here");
    signal(inner.pid, Signal::SIGSTOP).unwrap();
    // the kernel answers from its cache at first
    wait_until("the kernel asks the stopped daemon again", || {
        let file = inner.point.join("v3_int16.zgy");
        within(Duration::from_millis(100), move || fs::metadata(file).is_ok()).is_none()
    });

    let hung = point.join("hang/v3_int16.zgy");
    let waiting: Vec<_> = (0..4)
        .map(|_| {
            let hung = hung.clone();
            // its folders: a layer, and the same as OME-Zarr
            thread::spawn(move || fs::read_dir(hung).is_ok_and(|entries| entries.count() == 2))
        })
        .collect();
    for _ in 0..3 {
        let point = point.clone();
        let names = within(LIMIT, move || names(point)).expect("the folder is listed");
        assert_eq!(names, set([".volfs", "hang", "v3_int16.zgy", "v3_int8.zgy"]));
    }
    for name in ["v3_int8.zgy", "v3_int16.zgy"] {
        let path = mount.data(name, "lod0.raw");
        let samples = within(LIMIT, move || fs::read(path).unwrap()).expect("other datasets are read");
        assert!(samples == fixture(name).samples(0).unwrap());
    }
    let file = point.join(".volfs/status.json");
    assert!(within(LIMIT, move || fs::read(file).unwrap()).is_some(), "status.json answers");

    assert!(waiting.iter().all(|reader| !reader.is_finished()), "the folder hangs");
    signal(inner.pid, Signal::SIGCONT).unwrap();
    for reader in waiting {
        assert!(reader.join().unwrap(), "waiting reads are answered when the source answers again");
    }
    assert!(volfs().arg("umount").arg(mount.point()).status().unwrap().success());
    let stopped = inner.pid;
    drop(inner);
    assert!(comes_true(LIMIT, || !process_lives(stopped)));
}
