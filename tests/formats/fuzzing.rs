//! Runs the bodies of the fuzz targets on the inputs that are kept: the seeds of each target, and what fuzzing has found.
//!
//! By default each target reads a part of its seeds; VOLFS_FUZZ_SEEDS=all makes it read all.

use std::fs;
use std::panic::catch_unwind;
use std::path::{Path, PathBuf};

use crate::fuzz::TARGETS;
use crate::test_support::stress;

/// The most seeds of a target that are read by default.
const SEEDS: usize = 200;

fn fuzz() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz")
}

/// Returns the inputs in a folder by name.
fn inputs(folder: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    let mut inputs: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    inputs.sort();
    inputs
}

/// Runs the target `name` on its inputs.
fn replay(name: &str) {
    let target = TARGETS.iter().find(|target| target.name == name).expect("the target exists");
    let (seeds, found) = (inputs(&fuzz().join("seeds").join(name)), inputs(&fuzz().join("regressions").join(name)));
    assert!(!seeds.is_empty(), "{name} has no seeds");
    let all = std::env::var("VOLFS_FUZZ_SEEDS").is_ok_and(|value| value == "all");
    // names are hashes, so that these are as good as any others
    let step = if all { 1 } else { seeds.len().div_ceil(SEEDS) };
    let mut read = 0;
    for path in found.iter().chain(seeds.iter().skip(stress::seed() as usize % step).step_by(step)) {
        let input = fs::read(path).unwrap();
        let done = catch_unwind(|| (target.body)(&input));
        read += done.unwrap_or_else(|_| panic!("{name} fails for {}", path.display()));
    }
    println!("{name}: {} inputs, {read} things read", found.len() + seeds.len().div_ceil(step));
    assert!(read >= target.least, "{name} could read only {read} things, expected {}", target.least);
}

macro_rules! replay {
    ($($name:ident)*) => {
        $(#[test] fn $name() { replay(stringify!($name)); })*

        /// The targets that have a test.
        const REPLAYED: &[&str] = &[$(stringify!($name)),*];
    };
}

replay! {
    array_read codecs compressed_segmentation hdf5_open jpeg lz4 n5_open png precomputed_open vds_chunk vds_container
    vds_description vds_open vds_rle vds_wavelet wkw_cube wkw_open wkw_properties zarr_open zfp zgy_bricks zgy_open zlib
}

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
