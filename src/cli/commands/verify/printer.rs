//! Prints the reports as they come, and sums them up.

use std::time::Instant;

use super::totals::Totals;
use super::{json, text};
use crate::cli::error::CliError;
use crate::cli::output;
use crate::cli::progress_bar::Bar;
use crate::sync::Mutex;
use crate::verify::DatasetReport;

/// How to print.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Style {
    /// One JSON object in place of lines for people.
    pub json: bool,
    /// Bricks were not read.
    pub quick: bool,
    /// All entries and not only the first ones.
    pub all: bool,
}

/// Prints the reports as they come.
pub(crate) struct Printer {
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
    pub(crate) fn new(style: Style, bar: Bar) -> Self {
        Self { style, bar, began: Instant::now(), state: Mutex::default() }
    }

    /// Prints a report. Returns `false` if nothing more can be printed.
    pub(crate) fn add(&self, report: &DatasetReport) -> bool {
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
    pub(crate) fn finish(&self, interrupted: bool) -> Result<Totals, CliError> {
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
