//! Clients written in Python.

use std::ffi::OsStr;
use std::process::{Command, Output};

use super::skip;

/// Runs a script that needs NumPy; `None` (after reporting why) if this machine has no Python with NumPy.
pub fn python_with_numpy<A: AsRef<OsStr>>(script: &str, arguments: impl IntoIterator<Item = A>) -> Option<Output> {
    let has_numpy = Command::new("python3").args(["-c", "import numpy"]).output().is_ok_and(|o| o.status.success());
    if !has_numpy {
        skip("no Python with NumPy");
        return None;
    }
    Some(Command::new("python3").args(["-c", script]).args(arguments).output().unwrap())
}
