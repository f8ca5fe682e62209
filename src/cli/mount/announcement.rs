//! The line that `volfs mount` prints: what is mounted where, and how to open the first array.
//!
//! Side processes look up all that it says, since they may hang with the source. The line leaves out what is not known in
//! time, and the command ends then.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::catalog::{DatasetCount, count_datasets};
use crate::cli::mounts::{self, NoStatus, decode, encode};
use crate::cli::text::{counted, escaped_path, python_literal};
use crate::format::registry;
use crate::mount::{Link, SideProcess};
use crate::source::Origin;

/// How long the line waits for the count of datasets and the first array.
const TIMEOUT: Duration = Duration::from_millis(300);

/// How long a side process waits for the mount to be made.
const MOUNT_TIMEOUT: Duration = Duration::from_secs(60);

/// The message to a side process that the mount is made.
const MOUNTED: &[u8] = b"mounted";

/// The processes that look up the parts of the announcement. Without one its part is left out.
pub(super) struct Announcement<'a> {
    /// `None` if nothing is said.
    source: Option<PathBuf>,
    mountpoint: &'a Path,
    count: Option<SideProcess>,
    asker: Option<SideProcess>,
}

impl<'a> Announcement<'a> {
    /// Starts to count below the source; without a source there will be nothing to say. Must be called before there are
    /// threads.
    pub(super) fn begin(source: Option<Origin>, mountpoint: &'a Path) -> Self {
        let count = source.as_ref().and_then(|origin| {
            let count = |link: Link| {
                let count = count_datasets(registry(), origin, Instant::now() + TIMEOUT);
                messages(&count).iter().all(|message| link.send(message));
            };
            SideProcess::start(count).ok()
        });
        let ask = |link: Link| ask_mount(&link, mountpoint);
        Self { source: source.map(|origin| origin.path), mountpoint, count, asker: SideProcess::start(ask).ok() }
    }

    /// Waits until the mount answers, for at most `limit` once it is made.
    pub(super) fn ask(&self, limit: Duration) -> Result<(), NoStatus> {
        let answer = match &self.asker {
            Some(asker) => {
                asker.link.send(MOUNTED);
                decode(asker.link.receive(Instant::now() + limit))
            }
            None => mounts::ask(self.mountpoint, limit),
        };
        match answer {
            Ok(_) | Err(NoStatus::Denied) => Ok(()),
            Err(why) => Err(why),
        }
    }

    /// Returns the line for a mount that answers.
    pub(super) fn line(self) -> Option<String> {
        let deadline = Instant::now() + TIMEOUT;
        let mut line = format!("{} is mounted on {}", escaped_path(&self.source?), escaped_path(self.mountpoint));
        let mut array = || {
            let counter = &self.count.as_ref()?.link;
            line.push_str(&String::from_utf8_lossy(&counter.receive(deadline)?));
            let first = counter.receive(deadline)?;
            let asker = &self.asker.as_ref()?.link;
            asker.send(self.mountpoint.join(OsStr::from_bytes(&first)).as_os_str().as_bytes());
            asker.receive(deadline)
        };
        if let Some(array) = array() {
            let array = python_literal(Path::new(OsStr::from_bytes(&array)));
            line.push_str(&format!(", try np.load({array}, mmap_mode=\"r\")"));
        }
        Some(line)
    }
}

/// Asks the mount for its status once it is made, and then for the first array in a dataset's folder.
fn ask_mount(link: &Link, mountpoint: &Path) {
    if link.receive(Instant::now() + MOUNT_TIMEOUT).is_none() {
        return;
    }
    // without the text of the status
    link.send(&encode(mounts::wait_for(mountpoint).map(|_| Vec::new())));
    let Some(folder) = link.receive(Instant::now() + MOUNT_TIMEOUT) else { return };
    if let Some(array) = first_array(Path::new(OsStr::from_bytes(&folder))) {
        link.send(array.as_os_str().as_bytes());
    }
}

/// Returns the messages about a count: what the line says of it, and the first dataset.
fn messages(count: &DatasetCount) -> Vec<Vec<u8>> {
    let first = count.first.iter().map(|first| first.as_os_str().as_bytes().to_vec());
    std::iter::once(dataset_count(count).into_bytes()).chain(first).collect()
}

fn dataset_count(count: &DatasetCount) -> String {
    match (count.datasets, count.complete) {
        (0, true) => ": no datasets found".to_owned(),
        (0, false) => String::new(),
        (n, true) => format!(": {}", counted(n as u64, "dataset")),
        (n, false) => format!(": {n} or more datasets"),
    }
}

/// Returns the finest array of the first layer in a dataset's folder; `None` if the dataset cannot be opened.
fn first_array(folder: &Path) -> Option<PathBuf> {
    let entries = fs::read_dir(folder).ok()?;
    entries.filter_map(|entry| Some(entry.ok()?.path().join("lod0.npy"))).find(|array| array.is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_incomplete_count_is_a_lower_bound() {
        let text = |datasets, complete| dataset_count(&DatasetCount { datasets, complete, first: None });
        assert_eq!(text(3, true), ": 3 datasets");
        assert_eq!(text(1, true), ": 1 dataset");
        assert_eq!(text(3, false), ": 3 or more datasets");
        assert_eq!(text(0, true), ": no datasets found");
        assert_eq!(text(0, false), "");
    }

    #[test]
    fn a_count_survives_the_way_between_processes() {
        let first = Some(OsStr::from_bytes(b"a b/\xff.zgy").into());
        let count = DatasetCount { datasets: 12, complete: true, first };
        assert_eq!(messages(&count), [&b": 12 datasets"[..], b"a b/\xff.zgy"]);
        assert_eq!(messages(&DatasetCount { complete: false, first: None, ..count }), [b": 12 or more datasets"]);
    }

    #[test]
    fn the_first_array_is_one_that_can_be_loaded() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("dataset.json"), "").unwrap();
        assert_eq!(first_array(folder.path()), None);
        fs::create_dir(folder.path().join("data")).unwrap();
        fs::write(folder.path().join("data/lod0.npy"), "").unwrap();
        assert_eq!(first_array(folder.path()), Some(folder.path().join("data/lod0.npy")));
    }
}
