//! Files and folders: the test data, copies of it, and reading.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use nix::errno::Errno;
use tempfile::TempDir;

/// Returns the path of a file or folder of the test data.
pub fn test_data(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(path)
}

/// Makes a temporary source with copies of some datasets of a folder of the test data.
pub fn source_of(folder: &str, names: &[&str]) -> TempDir {
    let source = tempfile::tempdir().unwrap();
    for name in names {
        copy_all(&test_data(folder).join(name), &source.path().join(name));
    }
    source
}

/// Copies a file, or a folder with all that is in it, and makes the folders around the copy.
pub fn copy_all(from: &Path, to: &Path) {
    if from.is_dir() {
        fs::create_dir_all(to).unwrap();
        for entry in fs::read_dir(from).unwrap().map(Result::unwrap) {
            copy_all(&entry.path(), &to.join(entry.file_name()));
        }
    } else {
        fs::create_dir_all(to.parent().unwrap()).unwrap();
        fs::copy(from, to).unwrap();
    }
}

/// Replaces a file atomically, by renaming a new one.
pub fn replace(path: &Path, bytes: impl AsRef<[u8]>) {
    let new = path.with_extension("new");
    fs::write(&new, bytes).unwrap();
    fs::rename(new, path).unwrap();
}

/// Returns the names in a folder.
pub fn names(folder: impl AsRef<Path>) -> BTreeSet<String> {
    let folder = folder.as_ref();
    let entries = fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}

/// Makes a set of names, to compare with the result of [`names`].
pub fn set<S: AsRef<str>>(names: impl IntoIterator<Item = S>) -> BTreeSet<String> {
    names.into_iter().map(|name| name.as_ref().to_owned()).collect()
}

/// Reads `length` bytes of a file from `offset` on, by one or more positioned reads.
pub fn read_at(file: &File, offset: u64, length: usize) -> io::Result<Vec<u8>> {
    let mut out = vec![0; length];
    file.read_exact_at(&mut out, offset)?;
    Ok(out)
}

/// Returns whether an error is EIO.
pub fn is_eio(error: &io::Error) -> bool {
    error.raw_os_error() == Some(Errno::EIO as i32)
}

/// Reads a whole file with O_DIRECT, which bypasses the page cache.
pub fn read_directly(path: &Path) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut file = File::options().read(true).custom_flags(nix::libc::O_DIRECT).open(path).unwrap();
    file.read_to_end(&mut bytes).unwrap();
    bytes
}
