//! Every target has all its parts, so that none is left out of a run or of the tests.

use std::fs;

use super::{REPLAYED, fuzz, inputs};
use crate::fuzz::TARGETS;

/// Returns the names of the entries of a folder, without extension.
fn names(folder: &str) -> Vec<String> {
    inputs(&fuzz().join(folder)).iter().map(|path| path.file_stem().unwrap().to_str().unwrap().to_owned()).collect()
}

#[test]
fn every_target_has_a_program_seeds_and_a_test() {
    let targets = TARGETS.map(|target| target.name);
    assert!(targets.is_sorted());
    assert_eq!(names("fuzz_targets"), targets);
    assert_eq!(names("seeds"), targets);
    assert_eq!(REPLAYED, targets);
    assert!(names("regressions").iter().all(|name| targets.contains(&&**name)));
    let manifest = fs::read_to_string(fuzz().join("Cargo.toml")).unwrap();
    let programs = manifest.split("[[bin]]\nname = \"").skip(1).map(|rest| rest.split('"').next().unwrap());
    assert!(programs.eq(targets), "fuzz/Cargo.toml lists other targets");
    for name in targets {
        let program = fs::read_to_string(fuzz().join(format!("fuzz_targets/{name}.rs"))).unwrap();
        assert!(program.contains(&format!("volfs::fuzz::{name}::run(input)")), "{name} runs another body");
    }
}
