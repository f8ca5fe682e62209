//! The line that `volfs mount` prints: what is mounted where, and how to open the first array.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::catalog::{DatasetCount, count_datasets};
use crate::cli::text::escape;
use crate::cli::timeout::{Pending, spawn, with_timeout};
use crate::format::registry;

/// How long the line waits for the count of datasets and the first array.
const TIMEOUT: Duration = Duration::from_millis(300);

/// A count of datasets that runs while the mount starts.
pub struct PendingCount(Pending<DatasetCount>);

impl PendingCount {
    /// Starts to count below `source`.
    #[must_use]
    pub fn begin(source: &Path, follow_links: bool) -> Self {
        let source = source.to_owned();
        Self(spawn(move || count_datasets(registry(), &source, follow_links, Instant::now() + TIMEOUT)))
    }

    /// Returns the line for a mount that answers. Leaves out whatever is not known in time.
    #[must_use]
    pub fn line(self, source: &Path, mountpoint: &Path) -> String {
        let deadline = Instant::now() + TIMEOUT;
        let mut line = format!("{} is mounted on {}", escape::path(source), escape::path(mountpoint));
        let Some(count) = self.0.wait_until(deadline) else { return line };
        line.push_str(&dataset_count(&count));
        let Some(first) = count.first else { return line };
        let folder = mountpoint.join(first);
        let left = deadline.saturating_duration_since(Instant::now());
        if let Some(array) = with_timeout(left, move || first_array(&folder)).flatten() {
            line.push_str(&format!(", try np.load({}, mmap_mode=\"r\")", escape::python(&array)));
        }
        line
    }
}

fn dataset_count(count: &DatasetCount) -> String {
    match (count.datasets, count.complete) {
        (0, true) => ": no datasets found".to_owned(),
        (0, false) => String::new(),
        (1, true) => ": 1 dataset".to_owned(),
        (n, true) => format!(": {n} datasets"),
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
    fn the_first_array_is_one_that_can_be_loaded() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("dataset.json"), "").unwrap();
        assert_eq!(first_array(folder.path()), None);
        fs::create_dir(folder.path().join("data")).unwrap();
        fs::write(folder.path().join("data/lod0.npy"), "").unwrap();
        assert_eq!(first_array(folder.path()), Some(folder.path().join("data/lod0.npy")));
    }
}
