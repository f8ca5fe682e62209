//! What was found in one dataset.

use std::path::PathBuf;
use std::time::Duration;

use super::bad_bricks::{BadBricks, BricksLeftOut};
use super::fault::Fault;
use super::findings::LeftOut;
use crate::format::{Finding, Severity};

/// What was found in one dataset, or in a folder that cannot be listed.
#[derive(Clone, Debug)]
pub(crate) struct DatasetReport {
    /// Its path: as it was given, with the path below that.
    pub path: PathBuf,
    /// Its format, if it could be opened.
    pub format: Option<&'static str>,
    /// Why it could not be opened or listed, and whose fault that is.
    pub error: Option<(Fault, String)>,
    /// Every level of every layer.
    pub levels: Vec<LevelReport>,
    /// Bricks that are bad or could not be read, the first ones if there are too many.
    pub bad: Vec<BadBricks>,
    /// Bricks that are not in `bad`.
    pub left_out: BricksLeftOut,
    /// Damage that is no single brick's, what else could not be read, and notes.
    pub findings: Vec<Finding>,
    /// Findings that there was no room for.
    pub findings_left_out: LeftOut,
    /// How long it took.
    pub time: Duration,
    /// Whether all of it was checked, and could be read.
    pub complete: bool,
}

/// What was found in one level of a layer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LevelReport {
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
    /// Of these, bricks that are bad.
    pub bad: u64,
    /// Of these, bricks that could not be read by the system's fault.
    pub unread: u64,
    /// Bytes in the source of the bricks that were checked.
    pub bytes: u64,
}

impl DatasetReport {
    /// Returns whether anything is damaged.
    pub(crate) fn is_bad(&self) -> bool {
        self.bad_bricks() > 0 || self.faults() > 0
    }

    /// Returns whether anything could not be read by the system's fault, so that nothing is known of it.
    pub(crate) fn is_unread(&self) -> bool {
        self.unread_bricks() > 0 || self.unread_parts() > 0
    }

    /// Returns the number of bricks that are bad.
    pub(crate) fn bad_bricks(&self) -> u64 {
        self.sum(|level| level.bad)
    }

    /// Returns the number of bricks that could not be read by the system's fault.
    pub(crate) fn unread_bricks(&self) -> u64 {
        self.sum(|level| level.unread)
    }

    /// Returns the number of faults that are no brick's; that it does not open is one.
    pub(crate) fn faults(&self) -> u64 {
        self.count(Severity::Damage) + self.findings_left_out.damage + self.errors(Fault::File)
    }

    /// Returns the number of other parts than bricks that could not be read by the system's fault.
    pub(crate) fn unread_parts(&self) -> u64 {
        self.count(Severity::Unread) + self.findings_left_out.unread + self.errors(Fault::System)
    }

    fn count(&self, severity: Severity) -> u64 {
        self.findings.iter().filter(|found| found.severity == severity).count() as u64
    }

    fn errors(&self, fault: Fault) -> u64 {
        u64::from(self.error.as_ref().is_some_and(|(of, _)| *of == fault))
    }

    /// Returns the sum of a figure of all levels.
    pub(crate) fn sum(&self, of: impl Fn(&LevelReport) -> u64) -> u64 {
        self.levels.iter().fold(0, |sum, level| sum.saturating_add(of(level)))
    }
}
