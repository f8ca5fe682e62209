//! The command line: what each command prints, how it fails, and mounting by mount(8).
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod cat;
mod exec;
mod fstab;
mod inside_mount;
mod ls;
#[cfg(feature = "serve")]
mod serve;
#[cfg(feature = "serve")]
mod serve_access;
#[cfg(feature = "serve")]
mod serve_limits;
#[cfg(feature = "serve")]
mod serve_opendap;
mod usage;
mod verify;

#[path = "../support/mod.rs"]
#[allow(dead_code, unused_imports)]
mod support;

use std::path::{Path, PathBuf};
use std::process::Output;

use support::{test_data, text, volfs};

/// Runs a command on a path.
fn run(command: &str, arguments: &[&str], path: &Path) -> Output {
    volfs().arg(command).args(arguments).arg(path).output().unwrap()
}

/// Returns the output of a command, which has to succeed and to leave stderr empty.
fn output(command: &str, arguments: &[&str], path: &Path) -> Vec<u8> {
    let output = run(command, arguments, path);
    assert_eq!(text(&output.stderr), "", "{command} {arguments:?} {}", path.display());
    assert_eq!(output.status.code(), Some(0), "{command} {arguments:?} {}", path.display());
    output.stdout
}

fn zgy(name: &str) -> PathBuf {
    test_data("zgy").join(name)
}

fn demo() -> PathBuf {
    test_data("demo/north.zgy")
}
