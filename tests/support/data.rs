//! The test data: files and folders of it, copies, expected values of each format; and values of other kinds of files.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use nix::errno::Errno;
use serde_json::Value;
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

/// Makes a temporary source with copies of some of the files.
pub fn source_with(names: &[&str]) -> TempDir {
    source_of("zgy", names)
}

/// A file and its expected contents.
pub struct Fixture {
    /// The file's name, with its extension.
    pub name: String,
    /// The expected contents, which scripts/make_fixtures.py has written.
    pub expected: Value,
}

/// Returns all files, including those that must be refused.
fn all_fixtures() -> Vec<Fixture> {
    let mut found: Vec<_> = fs::read_dir(test_data("zgy"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|e| e == "json"))
        .map(|path| {
            let expected = json(&path);
            Fixture { name: expected["file"].as_str().unwrap().to_owned(), expected }
        })
        .collect();
    found.sort_by(|a, b| a.name.cmp(&b.name));
    assert!(found.len() > 50, "the test data is not complete");
    found
}

/// Returns the files that must be readable as a whole.
pub fn fixtures() -> Vec<Fixture> {
    all_fixtures().into_iter().filter(|f| f.expected["invalid"] != true).collect()
}

/// Returns one file.
pub fn fixture(name: &str) -> Fixture {
    all_fixtures().into_iter().find(|f| f.name == name).unwrap()
}

/// Returns the files that must be refused at `stage`: `open` or `read`.
pub fn damaged(stage: &str) -> Vec<Fixture> {
    all_fixtures().into_iter().filter(|f| f.expected["stage"] == stage).collect()
}

impl Fixture {
    /// Returns the expected description of each LOD that must be shown.
    pub fn levels(&self) -> &[Value] {
        self.expected["lods"].as_array().unwrap()
    }

    /// Returns the shape of LOD 0, slowest axis first.
    pub fn shape(&self) -> Vec<u64> {
        numbers(&self.expected["size"])
    }

    /// Returns NumPy's name of the sample type.
    pub fn dtype(&self) -> &str {
        self.expected["datatype"]["name"].as_str().unwrap()
    }

    /// Returns NumPy's description of the sample type, as in a .npy header.
    pub fn descr(&self) -> String {
        self.expected["datatype"]["numpy"].as_str().unwrap().replace("<i1", "|i1").replace("<u1", "|u1")
    }

    /// Returns the bytes of a sample.
    pub fn sample_bytes(&self) -> u64 {
        self.expected["datatype"]["numpy"].as_str().unwrap()[2..].parse().unwrap()
    }

    /// Returns the samples of a LOD if the test data has them.
    pub fn samples(&self, lod: usize) -> Option<Vec<u8>> {
        let name = self.levels()[lod]["npy"].as_str()?;
        Some(Npy::parse(&fs::read(test_data("zgy").join(name)).unwrap()).samples)
    }
}

/// Returns one list of the expected results, which scripts/make_wkw_fixtures.py has written.
pub fn wkw_expected(list: &str) -> Vec<Value> {
    json(test_data("wkw/expected.json"))[list].as_array().unwrap().clone()
}

/// Reads a JSON file.
pub fn json(path: impl AsRef<Path>) -> Value {
    let path = path.as_ref();
    let bytes = fs::read(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    serde_json::from_slice(&bytes).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Returns the elements of an array of whole numbers.
pub fn numbers(value: &Value) -> Vec<u64> {
    let list = value.as_array().unwrap_or_else(|| panic!("not a list: {value}"));
    list.iter().map(|n| n.as_u64().unwrap_or_else(|| panic!("not whole numbers: {value}"))).collect()
}

/// Returns the elements of an array of numbers.
pub fn floats(value: &Value) -> Vec<f64> {
    let list = value.as_array().unwrap_or_else(|| panic!("not a list: {value}"));
    list.iter().map(|n| n.as_f64().unwrap_or_else(|| panic!("not numbers: {value}"))).collect()
}

/// Returns the CRC-32 of bytes as eight hexadecimal digits.
pub fn crc(bytes: &[u8]) -> String {
    let mut crc = flate2::Crc::new();
    crc.update(bytes);
    format!("{:08x}", crc.sum())
}

/// Groups the entries of a list by their key `dataset`.
pub fn by_dataset(entries: &[Value]) -> BTreeMap<String, Vec<Value>> {
    let mut groups: BTreeMap<String, Vec<Value>> = BTreeMap::new();
    for entry in entries {
        groups.entry(entry["dataset"].as_str().unwrap().to_owned()).or_default().push(entry.clone());
    }
    groups
}

/// A NumPy file.
#[derive(Debug, PartialEq)]
pub struct Npy {
    /// Type of a sample: `<f4`.
    pub descr: String,
    /// Whether the first axis is the fastest.
    pub fortran_order: bool,
    /// Samples along each axis.
    pub shape: Vec<u64>,
    /// The samples' bytes.
    pub samples: Vec<u8>,
}

impl Npy {
    /// Parses a file of version 1.0, and checks that the samples are aligned.
    pub fn parse(file: &[u8]) -> Self {
        assert_eq!(&file[..8], b"\x93NUMPY\x01\x00");
        let length = 10 + usize::from(u16::from_le_bytes([file[8], file[9]]));
        assert_eq!(length % 64, 0);
        let header = std::str::from_utf8(&file[10..length]).unwrap();
        assert!(header.ends_with('\n'));
        let value = |key: &str, until: &str| {
            let rest = header.split_once(&format!("'{key}': ")).unwrap().1;
            rest.split_once(until).unwrap().0.to_owned()
        };
        let shape = value("shape", ")");
        Self {
            descr: value("descr", ",").trim_matches('\'').to_owned(),
            fortran_order: value("fortran_order", ",") == "True",
            shape: shape
                .trim_start_matches('(')
                .split(',')
                .map(str::trim)
                .filter(|n| !n.is_empty())
                .map(|n| n.parse().unwrap())
                .collect(),
            samples: file[length..].to_vec(),
        }
    }
}

/// A xorshift generator. The number is its state, which must not be 0.
pub struct Noise(pub u64);

impl Noise {
    /// Makes a generator whose state depends on a small number.
    pub fn seeded(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    /// Returns the next number.
    pub fn number(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    /// Returns a number below `limit`, or 0 if that is 0.
    pub fn below(&mut self, limit: usize) -> usize {
        (self.number() % limit.max(1) as u64) as usize
    }

    /// Returns `n` bytes.
    pub fn bytes(&mut self, n: usize) -> Vec<u8> {
        (0..n).map(|_| self.number() as u8).collect()
    }
}
