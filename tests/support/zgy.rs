//! ZGY files of the test data.

use std::fs;

use serde_json::Value;
use tempfile::TempDir;

use super::{Npy, json, numbers, source_of, test_data};

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
