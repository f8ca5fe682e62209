//! What was found in one dataset.

use std::path::PathBuf;
use std::time::Duration;

use super::bad_bricks::BadBricks;
use crate::format::{Finding, Severity};

/// What was found in one dataset, or in a folder that cannot be listed.
#[derive(Clone, Debug)]
pub struct DatasetReport {
    /// Its path: as it was given, with the path below that.
    pub path: PathBuf,
    /// Its format, if it could be opened.
    pub format: Option<&'static str>,
    /// Why it could not be opened or listed.
    pub error: Option<String>,
    /// Every level of every layer.
    pub levels: Vec<LevelReport>,
    /// Bad bricks, the first ones if there are too many.
    pub bad: Vec<BadBricks>,
    /// Bad bricks that are not in `bad`.
    pub left_out: u64,
    /// Damage that is no single brick's, and notes.
    pub findings: Vec<Finding>,
    /// Findings that there was no room for: damage and notes.
    pub findings_left_out: (u64, u64),
    /// How long it took.
    pub time: Duration,
    /// Whether all of it was checked.
    pub complete: bool,
}

/// What was found in one level of a layer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LevelReport {
    /// The layer's name.
    pub layer: String,
    /// The level of detail.
    pub lod: usize,
    /// Bricks of the grid.
    pub total: u64,
    /// Bricks that were checked, or that have no bytes.
    pub checked: u64,
    /// Of these, bricks that have no bytes.
    pub constant: u64,
    /// Of these, bricks that cannot be read.
    pub bad: u64,
    /// Bytes in the source of the bricks that were checked.
    pub bytes: u64,
}

impl DatasetReport {
    /// Returns whether anything is damaged.
    #[must_use]
    pub fn is_bad(&self) -> bool {
        self.error.is_some() || self.bad_bricks() > 0 || self.faults() > 0
    }

    /// Returns the number of bricks that cannot be read.
    #[must_use]
    pub fn bad_bricks(&self) -> u64 {
        self.sum(|level| level.bad)
    }

    /// Returns the number of other faults.
    #[must_use]
    pub fn faults(&self) -> u64 {
        let damage = self.findings.iter().filter(|found| found.severity == Severity::Damage).count();
        damage as u64 + self.findings_left_out.0
    }

    /// Returns the sum of a figure of all levels.
    #[must_use]
    pub fn sum(&self, of: impl Fn(&LevelReport) -> u64) -> u64 {
        self.levels.iter().fold(0, |sum, level| sum.saturating_add(of(level)))
    }
}
