//! Reads a mount's `.volfs/status.json`, with a timeout for a mount that does not answer.

use std::fs;
use std::io;
use std::path::Path;
use std::time::Duration;

use nix::errno::Errno;
use serde_json::Value;

use crate::cli::timeout::with_timeout;

/// The status file, below the mount point.
pub const STATUS: &str = ".volfs/status.json";

/// How a mount answers a request for its status.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// With its status: the daemon's process id, if it can be read.
    Alive(Option<u32>),
    /// Its daemon died.
    Dead,
    /// Not in time: it may be busy.
    Silent,
    /// With an error.
    Error(String),
}

/// Asks the mount at `mountpoint` for its status, which shows whether its daemon lives.
#[must_use]
pub fn ask(mountpoint: &Path, limit: Duration) -> Answer {
    match read(mountpoint, limit) {
        Ok(status) => Answer::Alive(pid(&status)),
        Err(answer) => answer,
    }
}

/// Returns the text of the mount's status.json.
///
/// # Errors
/// Why it cannot be read; [`Answer::Alive`] if another user's mount denies access.
pub fn read(mountpoint: &Path, limit: Duration) -> Result<Vec<u8>, Answer> {
    let file = mountpoint.join(STATUS);
    let read = move || match fs::read(&file) {
        // a request in flight when the daemon dies ends so; the next one gets the mount's lasting error
        Err(error) if error.raw_os_error() == Some(Errno::ECONNABORTED as i32) => fs::read(&file),
        answer => answer,
    };
    match with_timeout(limit, read) {
        None => Err(Answer::Silent),
        Some(Ok(status)) => Ok(status),
        Some(Err(error)) if error.raw_os_error() == Some(Errno::ENOTCONN as i32) => Err(Answer::Dead),
        // another user's mount refuses, which shows that it lives
        Some(Err(error)) if error.kind() == io::ErrorKind::PermissionDenied => Err(Answer::Alive(None)),
        Some(Err(error)) => Err(Answer::Error(error.to_string())),
    }
}

fn pid(status: &[u8]) -> Option<u32> {
    let status: Value = serde_json::from_slice(status).ok()?;
    status.get("pid")?.as_u64()?.try_into().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_process_id_is_found() {
        assert_eq!(pid(br#"{"version": "1", "pid": 4711}"#), Some(4711));
        assert_eq!(pid(br#"{"pid": -1}"#), None);
        assert_eq!(pid(b"{"), None);
    }

    #[test]
    fn a_folder_without_status_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        assert!(matches!(ask(folder.path(), Duration::from_secs(10)), Answer::Error(_)));
    }
}
