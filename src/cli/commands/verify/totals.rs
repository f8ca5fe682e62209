//! The sums of all reports.

use std::time::Duration;

use crate::verify::DatasetReport;

/// The sums of all reports.
#[derive(Clone, Debug, Default)]
pub(crate) struct Totals {
    pub datasets: u64,
    pub bad_datasets: u64,
    /// Datasets of which something could not be read by the system's fault.
    pub unread_datasets: u64,
    /// Datasets of which not all was checked.
    pub incomplete: u64,
    pub bricks: u64,
    pub constant: u64,
    pub bad_bricks: u64,
    /// Damage that is no single brick's, and datasets that do not open.
    pub faults: u64,
    /// Bricks that could not be read by the system's fault.
    pub unread_bricks: u64,
    /// What else could not be read so.
    pub unread_parts: u64,
    pub bytes: u64,
    pub time: Duration,
    pub interrupted: bool,
}

impl Totals {
    /// Adds a report.
    pub(crate) fn add(&mut self, report: &DatasetReport) {
        self.datasets += 1;
        self.bad_datasets += u64::from(report.is_bad());
        self.incomplete += u64::from(!report.complete);
        self.bricks = self.bricks.saturating_add(report.sum(|level| level.checked));
        self.constant = self.constant.saturating_add(report.sum(|level| level.constant));
        self.bad_bricks = self.bad_bricks.saturating_add(report.bad_bricks());
        self.faults += report.faults();
        self.unread_datasets += u64::from(report.is_unread());
        self.unread_bricks = self.unread_bricks.saturating_add(report.unread_bricks());
        self.unread_parts += report.unread_parts();
        self.bytes = self.bytes.saturating_add(report.sum(|level| level.bytes));
    }
}
