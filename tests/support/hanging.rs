//! A mount of a source that hangs on command.

use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::thread::{self, JoinHandle};

use fuser::SessionACL;
use tempfile::TempDir;

use super::own_fs::{SLOW, SlowSource};
use super::{Mount, fixture, fuse_or_skip, read_directly, source_with, test_data, wait_until};

/// Opens a file past the page cache.
pub fn directly(path: &Path) -> File {
    File::options().read(true).custom_flags(nix::libc::O_DIRECT).open(path).unwrap()
}

/// A mount of a dataset that hangs on command, as `server/slow.zgy`, and of `v3_int8.zgy`, which does not.
pub struct Hanging {
    pub mount: Mount,
    pub slow: SlowSource,
    pub source: TempDir,
}

impl Hanging {
    pub fn new() -> Option<Self> {
        if !fuse_or_skip() {
            return None;
        }
        let source = source_with(&["v3_int8.zgy"]);
        let bytes = fs::read(test_data("zgy/v3_int16.zgy")).unwrap();
        let slow = SlowSource::new(&source.path().join("server"), bytes, SessionACL::Owner);
        Some(Self { mount: Mount::of(source.path())?, slow, source })
    }

    /// The dataset that hangs. The file system lists nothing, but finds the name.
    pub fn dataset(&self) -> PathBuf {
        self.mount.path("server").join(SLOW)
    }

    fn samples(&self) -> PathBuf {
        self.dataset().join("data/lod0.raw")
    }

    /// Has readers read the dataset that hangs from now on, each its own file, and waits until all hang. They return what
    /// they have read.
    pub fn readers(&self, count: usize) -> Vec<JoinHandle<io::Result<Vec<u8>>>> {
        // from now on the kernel has the source's bytes in its page cache
        assert!(read_directly(&self.samples()) == truth() && read_directly(&self.samples()) == truth());
        let files: Vec<File> = (0..count).map(|_| directly(&self.samples())).collect();
        self.slow.gate.set_closed(true);
        let read = |mut file: File| {
            let mut bytes = Vec::new();
            file.read_to_end(&mut bytes).map(|_| bytes)
        };
        let readers = files.into_iter().map(|file| thread::spawn(move || read(file))).collect();
        wait_until("all readers hang", || self.slow.gate.waiting() == count);
        readers
    }

    /// Lets the source answer, and checks what the readers get.
    pub fn goes_on(&self, readers: Vec<JoinHandle<io::Result<Vec<u8>>>>) {
        self.slow.gate.set_closed(false);
        for reader in readers {
            assert!(reader.join().unwrap().unwrap() == truth(), "waiting reads are answered when the source answers");
        }
    }
}

/// The samples of the dataset that hangs.
fn truth() -> Vec<u8> {
    fixture("v3_int16.zgy").samples(0).unwrap()
}
