//! Prints the reports as they come, and sums them up.

use std::time::{Duration, Instant};

use super::progress_bar::Bar;
use super::{json, text};
use crate::cli::error::CliError;
use crate::cli::output;
use crate::sync::Mutex;
use crate::verify::DatasetReport;

/// How to print.
#[derive(Clone, Copy, Debug)]
pub struct Style {
    /// One JSON object in place of lines for people.
    pub json: bool,
    /// Bricks were not read.
    pub quick: bool,
    /// All entries and not only the first ones.
    pub all: bool,
}

/// The sums of all reports.
#[derive(Clone, Debug, Default)]
pub struct Totals {
    pub datasets: u64,
    pub bad_datasets: u64,
    /// Datasets of which not all was checked.
    pub incomplete: u64,
    pub bricks: u64,
    pub constant: u64,
    pub bad_bricks: u64,
    /// Damage that is no single brick's, and datasets that do not open.
    pub faults: u64,
    pub bytes: u64,
    pub time: Duration,
    pub interrupted: bool,
}

/// Prints the reports as they come.
pub struct Printer {
    style: Style,
    bar: Bar,
    began: Instant,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    totals: Totals,
    /// Whether the reader of the output is gone, or why it cannot be written.
    gone: bool,
    error: Option<CliError>,
    finished: bool,
}

impl Printer {
    pub fn new(style: Style, bar: Bar) -> Self {
        Self { style, bar, began: Instant::now(), state: Mutex::default() }
    }

    /// Prints a report. Returns `false` if nothing more can be printed.
    pub fn add(&self, report: &DatasetReport) -> bool {
        let mut state = self.state.lock();
        let is_first = state.totals.datasets == 0;
        state.totals.add(report);
        let printed = match self.style.json {
            true => json::dataset(report, is_first, self.style.quick),
            false => text::dataset(report, self.style.all),
        };
        self.print(&mut state, &printed)
    }

    /// Prints the summary once, and returns the sums.
    ///
    /// # Errors
    /// [`CliError::Output`] if anything could not be printed.
    pub fn finish(&self, interrupted: bool) -> Result<Totals, CliError> {
        let mut state = self.state.lock();
        if !state.finished {
            state.finished = true;
            (state.totals.time, state.totals.interrupted) = (self.began.elapsed(), interrupted);
            self.bar.clear();
            let printed = match self.style.json {
                true => json::totals(&state.totals, self.style.quick),
                false => text::totals(&state.totals, self.style.quick),
            };
            self.print(&mut state, &printed);
        }
        match state.error.take() {
            Some(error) => Err(error),
            None => Ok(state.totals.clone()),
        }
    }

    fn print(&self, state: &mut State, printed: &str) -> bool {
        if !state.gone && !printed.is_empty() {
            match self.bar.suspend(|| output::part(printed.as_bytes())) {
                Ok(goes_on) => state.gone = !goes_on,
                Err(error) => (state.gone, state.error) = (true, Some(error)),
            }
        }
        !state.gone
    }
}

impl Totals {
    fn add(&mut self, report: &DatasetReport) {
        self.datasets += 1;
        self.bad_datasets += u64::from(report.is_bad());
        self.incomplete += u64::from(!report.complete);
        self.bricks = self.bricks.saturating_add(report.sum(|level| level.checked));
        self.constant = self.constant.saturating_add(report.sum(|level| level.constant));
        self.bad_bricks = self.bad_bricks.saturating_add(report.bad_bricks());
        self.faults += report.faults() + u64::from(report.error.is_some());
        self.bytes = self.bytes.saturating_add(report.sum(|level| level.bytes));
    }
}
