//! A source that hangs: the rest of the mount goes on. The source is a mount of our own whose daemon is stopped.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod support;

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use support::{Mount, comes_true, fixture, fuse_or_skip, process_lives, signal, test_data, volfs};

/// Runs something that must not take long; `None` if it does.
fn within<T: Send + 'static>(limit: Duration, run: impl FnOnce() -> T + Send + 'static) -> Option<T> {
    let (done, answer) = std::sync::mpsc::channel();
    std::thread::spawn(move || done.send(run()));
    answer.recv_timeout(limit).ok()
}

/// The mount that hangs; goes on and goes away at the end, also of a test that fails.
struct Inner {
    point: PathBuf,
    pid: i32,
}

impl Drop for Inner {
    fn drop(&mut self) {
        let _ = kill(Pid::from_raw(self.pid), Signal::SIGCONT);
        let _ = volfs().args(["umount", "--lazy"]).arg(&self.point).output();
    }
}

/// Generous: what hangs, hangs for ever.
const LIMIT: Duration = Duration::from_secs(20);

#[test]
fn a_hanging_folder_does_not_hold_up_the_others() {
    if !fuse_or_skip() {
        return;
    }
    let source = tempfile::tempdir().unwrap();
    for name in ["v3_int8.zgy", "v3_int16.zgy"] {
        fs::copy(test_data("zgy").join(name), source.path().join(name)).unwrap();
    }
    fs::create_dir(source.path().join("hang")).unwrap();
    let inner = volfs().arg("mount").arg(test_data("zgy")).arg(source.path().join("hang")).output().unwrap();
    assert!(inner.status.success(), "{inner:?}");
    let status: serde_json::Value =
        serde_json::from_slice(&fs::read(source.path().join("hang/.volfs/status.json")).unwrap()).unwrap();
    let stopped = i32::try_from(status["pid"].as_i64().unwrap()).unwrap();
    let inner = Inner { point: source.path().join("hang"), pid: stopped };
    let mount = Mount::of(source.path()).unwrap();
    let point = mount.point().to_owned();
    assert!(fs::read_dir(point.join("hang")).unwrap().count() > 10, "its folders are folders here");
    signal(stopped, Signal::SIGSTOP).unwrap();
    // until the kernel asks the stopped daemon again
    std::thread::sleep(Duration::from_millis(1000));

    let hung = point.join("hang/v3_int16.zgy");
    let waiting: Vec<_> = (0..4)
        .map(|_| {
            let hung = hung.clone();
            std::thread::spawn(move || fs::read_dir(hung).is_ok_and(|entries| entries.count() == 1))
        })
        .collect();
    for _ in 0..3 {
        let point = point.clone();
        let names = within(LIMIT, move || {
            let names = fs::read_dir(point).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
            names.collect::<Vec<_>>()
        });
        let mut names = names.expect("the folder is listed");
        names.sort_unstable();
        assert_eq!(names, [".volfs", "hang", "v3_int16.zgy", "v3_int8.zgy"]);
    }
    for name in ["v3_int8.zgy", "v3_int16.zgy"] {
        let path = mount.data(name, "lod0.raw");
        let samples = within(LIMIT, move || fs::read(path).unwrap()).expect("other datasets are read");
        assert!(samples == fixture(name).samples(0).unwrap());
    }
    let file = point.join(".volfs/status.json");
    assert!(within(LIMIT, move || fs::read(file).unwrap()).is_some(), "status.json answers");

    signal(stopped, Signal::SIGCONT).unwrap();
    for reader in waiting {
        assert!(reader.join().unwrap(), "what waited is served when the source answers again");
    }
    assert!(volfs().arg("umount").arg(mount.point()).status().unwrap().success());
    drop(inner);
    assert!(comes_true(LIMIT, || !process_lives(stopped)));
}
