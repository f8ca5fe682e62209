use std::fs;
use std::io::Read;
use std::os::unix::fs::symlink;
use std::sync::mpsc;
use std::time::{Duration, Instant};

use rustix::fs::fcntl_getfl;

use super::*;
use crate::test_support::exchange::Exchange;

/// A source, and a folder outside of it.
struct Sample {
    folder: tempfile::TempDir,
}

impl Sample {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        for name in ["root", "root/a", "roots", "other"] {
            fs::create_dir(folder.path().join(name)).unwrap();
        }
        for (name, content) in [("root/a/x", "inside"), ("roots/x", "outside"), ("other/x", "outside")] {
            fs::write(folder.path().join(name), content).unwrap();
        }
        Self { folder }
    }

    fn at(&self, name: &str) -> PathBuf {
        self.folder.path().canonicalize().unwrap().join(name)
    }

    fn link(&self, target: impl AsRef<Path>, name: &str) {
        symlink(target, self.at(name)).unwrap();
    }

    /// The source as kernels with and without `openat2` show it.
    fn roots(&self) -> [Arc<SourceRoot>; 2] {
        [SourceRoot::below(&self.at("root"), false), SourceRoot::without_openat2(&self.at("root"), false)]
    }

    /// Exchanges two names without pause while `look` is called for `time`. In the end each is where it was.
    fn exchange(&self, one: &str, other: &str, time: Duration, mut look: impl FnMut()) {
        let _exchange = Exchange::begin(File::open(self.folder.path()).unwrap(), one, other);
        let began = Instant::now();
        while began.elapsed() < time {
            look();
        }
    }
}

fn text(file: File) -> String {
    let mut text = String::new();
    (&file).read_to_string(&mut text).unwrap();
    text
}

#[test]
fn links_are_followed_if_they_stay_below_the_root() {
    let sample = Sample::new();
    sample.link("../other", "root/out");
    sample.link("../roots", "root/sibling");
    sample.link("a", "root/in");
    sample.link(sample.at("root/a"), "root/absolute");
    sample.link("../other/../root/a", "root/out-and-in");
    sample.link("root", "link");
    let through_link = [SourceRoot::below(&sample.at("link"), false)];
    for root in through_link.into_iter().chain(sample.roots()) {
        for name in ["root/a", "root/in", "root/absolute", "root/out-and-in", "link/a", "root/out/../root/a"] {
            let place = root.locate(&sample.at(name)).unwrap().unwrap();
            assert_eq!(place.path, sample.at("root/a"), "{name}");
            assert_eq!(text(root.open_file(&sample.at(name).join("x")).unwrap().unwrap()), "inside", "{name}");
            let file = root.locate_in(&place, Path::new("x")).unwrap().unwrap();
            assert_eq!(text(root.open(&file).unwrap()), "inside", "{name}");
        }
        for name in ["root/out", "root/sibling", "other", "root/..", "root/out/x", "roots/x"] {
            assert!(root.locate(&sample.at(name)).unwrap().is_none(), "{name}");
        }
        let top = root.locate(&sample.at("root")).unwrap().unwrap();
        for name in ["out", "out/x", "sibling/x"] {
            assert!(root.locate_in(&top, Path::new(name)).unwrap().is_none(), "{name}");
        }
        assert!(root.locate_in(&top, Path::new("in/x")).unwrap().is_some());
    }
    let anywhere = SourceRoot::below(&sample.at("root"), true);
    assert_eq!(anywhere.locate(&sample.at("root/out")).unwrap().unwrap().path, sample.at("other"));
    assert_eq!(text(anywhere.open_file(&sample.at("root/out/x")).unwrap().unwrap()), "outside");
}

#[test]
fn nothing_tells_whether_a_path_outside_exists() {
    let sample = Sample::new();
    sample.link(sample.at("other/x"), "root/there");
    sample.link(sample.at("other/y"), "root/not there");
    sample.link(sample.at("other"), "root/folder");
    sample.link(sample.at("another"), "root/no folder");
    sample.link("/root/.profile", "root/not allowed");
    for root in sample.roots() {
        for name in
            ["there", "not there", "folder/x", "folder/y", "no folder/x", "not allowed", "../other/y", "../y/../a"]
        {
            let path = sample.at("root").join(name);
            assert!(matches!(root.locate(&path), Ok(None)), "{name}");
            assert!(matches!(root.open_file(&path), Ok(None)), "{name}");
        }
        assert!(matches!(root.locate(Path::new("/nowhere")), Ok(None)));
    }
    let [root, _] = sample.roots();
    assert_eq!(root.locate(&sample.at("root/b")).err().unwrap().kind(), io::ErrorKind::NotFound, "inside it may");
}

#[test]
fn a_name_that_is_exchanged_with_a_link_never_leads_out() {
    const TIME: Duration = Duration::from_millis(500);
    let sample = Sample::new();
    sample.link(sample.at("other/x"), "root/a/link");
    sample.link(sample.at("other"), "root/b");
    for root in sample.roots() {
        let mut counts = [0; 2];
        let mut check = |file: io::Result<Option<File>>| {
            let inside = file.unwrap().is_some_and(|file| {
                assert_eq!(text(file), "inside");
                true
            });
            counts[usize::from(inside)] += 1;
        };
        sample.exchange("root/a/x", "root/a/link", TIME, || check(root.open_file(&sample.at("root/a/x"))));
        sample.exchange("root/a", "root/b", TIME, || {
            check(root.locate(&sample.at("root/a/x")).and_then(|place| place.map(|p| root.open(&p)).transpose()));
            let folder = root.locate(&sample.at("root/a")).unwrap();
            let found = folder.map(|folder| root.locate_in(&folder, Path::new("x")).map(Option::unwrap)).transpose();
            check(found.and_then(|place| place.map(|p| root.open(&p)).transpose()));
        });
        assert!(counts.iter().all(|n| *n > 20), "outside and inside: {counts:?}");
    }
}

#[test]
fn a_pipe_that_takes_the_place_of_a_file_holds_nobody_up() {
    let sample = Sample::new();
    let made = std::process::Command::new("mkfifo").arg(sample.at("root/a/pipe")).status();
    assert!(made.unwrap().success());
    let (done, finished) = mpsc::channel();
    thread::spawn(move || {
        for root in sample.roots() {
            let (mut files, mut pipes) = (0, 0);
            sample.exchange("root/a/x", "root/a/pipe", Duration::from_millis(300), || {
                match root.open_file(&sample.at("root/a/x")) {
                    Ok(file) => files += usize::from(text(file.unwrap()) == "inside"),
                    Err(_) => pipes += 1,
                }
            });
            done.send((files, pipes)).unwrap();
        }
    });
    for _ in 0..2 {
        let (files, pipes) = finished.recv_timeout(Duration::from_secs(20)).expect("an open waits for ever");
        assert!(files > 0 && pipes > 0);
    }
}

#[test]
fn a_file_can_be_read_in_the_ordinary_way() {
    let sample = Sample::new();
    for root in sample.roots() {
        let file = root.open_file(&sample.at("root/a/x")).unwrap().unwrap();
        assert!(!fcntl_getfl(&file).unwrap().contains(OFlags::NONBLOCK));
        assert!(root.open_file(&sample.at("root/a")).is_err(), "a folder");
    }
}

/// A file system mounted by a test; unmounted when dropped.
struct Mounted(PathBuf);

impl Mounted {
    /// Mounts a file system in memory; `None` if this user may not.
    fn at(place: PathBuf) -> Option<Self> {
        let (kind, none) = (Some("tmpfs"), None::<&str>);
        nix::mount::mount(kind, &place, kind, nix::mount::MsFlags::empty(), none).ok().map(|()| Self(place))
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        let _ = nix::mount::umount2(&self.0, nix::mount::MntFlags::MNT_DETACH);
    }
}

#[test]
fn what_is_mounted_beside_a_file_is_left_alone() {
    let sample = Sample::new();
    fs::create_dir_all(sample.at("root/a/mounted")).unwrap();
    let Some(mounted) = Mounted::at(sample.at("root/a/mounted")) else { return };
    fs::write(mounted.0.join("x"), "elsewhere").unwrap();
    for root in sample.roots() {
        let top = root.locate(&sample.at("root")).unwrap().unwrap();
        let beside = |name: &str| root.locate_beside(&top, Path::new(name)).unwrap().map(|place| place.path);
        assert_eq!(beside("a/x"), Some(sample.at("root/a/x")));
        assert_eq!(beside("a"), Some(sample.at("root/a")));
        for name in ["a/mounted", "a/mounted/x"] {
            assert_eq!(beside(name), None, "{name}");
        }
    }
}
