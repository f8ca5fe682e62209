//! A file of the source hangs while it is read, and the rest of the mount goes on.

use std::fs::{self, File};
use std::io::Read;
use std::os::unix::fs::OpenOptionsExt;
use std::thread;
use std::time::Duration;

use crate::support::slow_source::{NAME, SlowSource, THREADS};
use crate::support::{Mount, fixture, fuse_or_skip, read_directly, source_with, test_data, wait_until, within};

/// Generous: calls that hang do so until the end of the test.
const LIMIT: Duration = Duration::from_secs(20);

/// At least the number of threads with which the daemon serves the kernel.
const READERS: usize = THREADS;

#[test]
fn a_file_that_hangs_while_it_is_read_does_not_hold_up_others() {
    if !fuse_or_skip() {
        return;
    }
    let source = source_with(&["v3_int8.zgy"]);
    let bytes = fs::read(test_data("zgy/v3_int16.zgy")).unwrap();
    let slow = SlowSource::at(&source.path().join("server"), bytes);
    let Some(mount) = Mount::of(source.path()) else { return };
    // the file system lists nothing, but finds the name
    let hanging = mount.path("server").join(NAME).join("data/lod0.raw");
    let truth = fixture("v3_int16.zgy").samples(0).unwrap();
    // from now on the kernel has the source's bytes in its page cache
    assert!(read_directly(&hanging) == truth && read_directly(&hanging) == truth);
    let open = || File::options().read(true).custom_flags(nix::libc::O_DIRECT).open(&hanging).unwrap();
    let files: Vec<File> = (0..READERS).map(|_| open()).collect();
    slow.gate.set_closed(true);
    let read = |mut file: File| {
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).map(|_| bytes)
    };
    let readers: Vec<_> = files.into_iter().map(|file| thread::spawn(move || read(file))).collect();
    wait_until("all readers hang", || slow.gate.waiting() == READERS);
    for _ in 0..3 {
        let status = mount.path(".volfs/status.json");
        assert!(within(LIMIT, move || fs::read(status).unwrap()).is_some(), "status.json answers");
        let top = mount.point().to_owned();
        assert_eq!(within(LIMIT, move || fs::read_dir(top).unwrap().count()), Some(3), "the top is listed");
        let path = mount.data("v3_int8.zgy", "lod0.raw");
        let samples = within(LIMIT, move || read_directly(&path)).expect("other datasets are read");
        assert!(samples == fixture("v3_int8.zgy").samples(0).unwrap());
    }
    slow.gate.set_closed(false);
    for reader in readers {
        assert!(reader.join().unwrap().unwrap() == truth, "waiting reads are answered when the source answers again");
    }
    assert!(mount.umount(&[]).status.success());
}
