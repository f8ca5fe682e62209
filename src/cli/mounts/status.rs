//! Reads a mount's `.volfs/status.json`, with a timeout for a mount that does not answer.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use nix::errno::Errno;
use serde_json::Value;

use crate::cli::text::duration::duration;
use crate::cli::timeout::with_timeout;
use crate::mount::side_process::{Link, SideProcess};

/// The status file, below the mount point.
pub(crate) const STATUS: &str = ".volfs/status.json";

/// More bytes than any status has.
const MAX_STATUS: usize = 64 << 10;

/// How a mount answers a request for its status.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    /// With its status: the daemon's process id, if it can be read.
    Alive(Option<u32>),
    /// Its daemon died.
    Dead,
    /// Not in time: it may be busy.
    Silent,
    /// With an error.
    Error(String),
}

/// Asks the mount at `mountpoint` for its status, which shows whether its daemon lives. It should be called before there
/// are threads; otherwise a mount that hangs keeps this process from ending.
pub(crate) fn ask(mountpoint: &Path, limit: Duration) -> Answer {
    match Asker::default().ask(&[mountpoint.to_owned()], limit).pop() {
        Some(Ok(status)) => Answer::Alive(pid(&status)),
        Some(Err(answer)) => answer,
        None => Answer::Silent,
    }
}

/// Returns the text of the mount's status.json. Waits for it, so that only a process may call this that may be left
/// behind. The error is [`Answer::Alive`] if another user's mount denies access.
pub(crate) fn wait_for(mountpoint: &Path) -> Result<Vec<u8>, Answer> {
    let file = mountpoint.join(STATUS);
    let read = match read_start(&file) {
        // a request in flight when the daemon dies ends so; the next one gets the mount's lasting error
        Err(error) if error.raw_os_error() == Some(Errno::ECONNABORTED as i32) => read_start(&file),
        read => read,
    };
    read.map_err(|error| match error.kind() {
        _ if error.raw_os_error() == Some(Errno::ENOTCONN as i32) => Answer::Dead,
        // another user's mount refuses, which shows that it lives
        io::ErrorKind::PermissionDenied => Answer::Alive(None),
        _ => Answer::Error(error.to_string()),
    })
}

/// Reads the beginning of a file: another user's mount may show anything there.
fn read_start(file: &Path) -> io::Result<Vec<u8>> {
    let mut text = vec![0; MAX_STATUS];
    // one read, since the mount counts each; a shorter text than asked for is whole
    let length = File::open(file)?.read(&mut text)?;
    text.truncate(length);
    Ok(text)
}

/// Asks mounts for their status in processes of their own: one whose mount hangs may never end, and this one can.
#[derive(Default)]
pub(crate) struct Asker {
    /// Processes whose mounts have not answered yet. Such a mount is not asked again.
    waiting: HashMap<PathBuf, SideProcess>,
}

impl Asker {
    /// Returns what each mount answers within `limit`, all together: the text of status.json, or why there is none. It
    /// must be called before there are threads.
    pub(crate) fn ask(&mut self, mountpoints: &[PathBuf], limit: Duration) -> Vec<Result<Vec<u8>, Answer>> {
        let deadline = Instant::now() + limit;
        self.waiting.retain(|place, _| mountpoints.contains(place));
        let (mut asked, mut late) = (Vec::new(), std::mem::take(&mut self.waiting));
        for place in mountpoints {
            let process = late.remove(place).map_or_else(|| SideProcess::start(|link| answer(link, place)), Ok);
            asked.push((place, process));
        }
        let answers = asked.into_iter().map(|(place, process)| match process {
            // without another process, ask in a thread
            Err(_) => {
                let place = place.clone();
                with_timeout(limit, move || wait_for(&place)).unwrap_or(Err(Answer::Silent))
            }
            Ok(process) => {
                let message = process.link().receive(deadline);
                // one that has ended is not waited for: the mount is asked again the next time
                if message.is_none() && Instant::now() >= deadline {
                    self.waiting.insert(place.clone(), process);
                }
                parse(message)
            }
        });
        answers.collect()
    }
}

/// Sends what a mount answers: a letter, and a text.
fn answer(link: &Link, mountpoint: &Path) {
    let message = match wait_for(mountpoint) {
        Ok(status) => [b"S", status.as_slice()].concat(),
        Err(Answer::Alive(_)) => b"A".to_vec(),
        Err(Answer::Dead) => b"D".to_vec(),
        Err(Answer::Error(error)) => format!("E{error}").into_bytes(),
        Err(Answer::Silent) => return,
    };
    if !link.send(&message) {
        link.send(b"Eits status is too long");
    }
}

fn parse(message: Option<Vec<u8>>) -> Result<Vec<u8>, Answer> {
    match message.as_deref() {
        Some([b'S', status @ ..]) => Ok(status.to_vec()),
        Some([b'A', ..]) => Err(Answer::Alive(None)),
        Some([b'D', ..]) => Err(Answer::Dead),
        Some([b'E', error @ ..]) => Err(Answer::Error(String::from_utf8_lossy(error).into_owned())),
        _ => Err(Answer::Silent),
    }
}

/// Returns what a status.json says of a source that stalls: `the source has not answered for 48 s; 3 reads wait`.
pub(crate) fn stall(status: &Value) -> Option<String> {
    let stall = status.get("source_stall")?;
    let seconds = stall.get("seconds")?.as_f64()?;
    let reads = match stall.get("reads_waiting")?.as_u64()? {
        1 => "1 read waits".to_owned(),
        n => format!("{n} reads wait"),
    };
    let others = match stall.get("other_datasets").and_then(Value::as_u64).unwrap_or(0) {
        0 => String::new(),
        1 => " and 1 other".to_owned(),
        n => format!(" and {n} others"),
    };
    let dataset = stall.get("dataset").and_then(Value::as_str).map(|name| format!(" ({name}{others})"));
    let time = duration(seconds.floor());
    Some(format!("the source{} has not answered for {time}; {reads}", dataset.unwrap_or_default()))
}

/// Returns the daemon's process id from the text of a status.json.
pub(crate) fn pid(status: &[u8]) -> Option<u32> {
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
