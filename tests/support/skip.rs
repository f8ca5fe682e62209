//! Skipping tests that this machine cannot run.

use std::fs::{self, File};
use std::io::{self, Write};

/// Reports on stderr, past the capture of test output, that the running test is skipped.
pub fn skip(why: &str) {
    let test = std::thread::current().name().unwrap_or("a test").to_owned();
    // one write for the whole line, so that threads do not mix their lines
    let _ = io::stderr().write_all(format!("SKIPPED {test}: {why}\n").as_bytes());
}

/// Returns whether this machine can mount; reports why not.
pub fn fuse_or_skip() -> bool {
    let why = why_no_fuse();
    if let Some(why) = &why {
        skip(why);
    }
    why.is_none()
}

fn why_no_fuse() -> Option<String> {
    if let Err(error) = File::options().read(true).write(true).open("/dev/fuse") {
        return Some(format!("/dev/fuse: {error}"));
    }
    if nix::unistd::geteuid().is_root() {
        let status = fs::read_to_string("/proc/self/status").unwrap();
        let set = status.lines().find_map(|line| line.strip_prefix("CapEff:")).unwrap().trim();
        let may_mount = u64::from_str_radix(set, 16).unwrap() >> 21 & 1 == 1;
        return (!may_mount).then(|| "root lacks CAP_SYS_ADMIN".to_owned());
    }
    let found = std::env::split_paths(&std::env::var_os("PATH")?).any(|dir| dir.join("fusermount3").exists());
    (!found).then(|| "fusermount3 is missing (package fuse3)".to_owned())
}
