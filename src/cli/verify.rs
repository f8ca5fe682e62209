//! `volfs verify`: reads and decodes every brick below some paths, and prints what cannot be read.

mod report;

use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use clap::Args;
use indicatif::ProgressBar;

use self::report::{Style, Totals};
use super::error::CliError;
use super::file_system::StoreArgs;
use super::interrupt::{Interrupts, wait_for_end};
use super::ls::none_found;
use super::machine::default_threads;
use super::output::{self, Bar, Shown, note, spawn, style};
use super::source::{checked_source, source_behind};
use super::text::Size;
use crate::format::registry;
use crate::memory::limit_arenas;
use crate::source::Origin;
use crate::sync::Mutex;
use crate::verify::{DatasetReport, Datasets, Place, Verification, VerifyOptions};

#[derive(Debug, Args)]
#[command(after_help = VERIFY_EXAMPLE)]
pub(super) struct VerifyArgs {
    /// Folders of volumes, searched in depth, or single volumes; also inside a mount, or URLs (s3://BUCKET/KEY)
    #[arg(required = true, value_name = "PATH")]
    pub(super) paths: Vec<PathBuf>,

    /// Check headers and tables alone, and decode nothing
    ///
    /// Finds bricks that overlap or lie beyond the end of the file, and levels that are missing, but no damage within a
    /// brick.
    #[arg(long)]
    pub(super) quick: bool,

    /// Print one JSON object
    ///
    /// `datasets` has an object for each volume, with its layers, the bricks of each level, what is damaged, and what
    /// could not be read; `totals` has the sums. docs/troubleshooting.md describes all keys.
    #[arg(long)]
    json: bool,

    /// List everything that is bad, not only the first entries of each volume
    #[arg(long)]
    all: bool,

    /// Threads that read and decode [default: the number of cores]
    #[arg(long, value_name = "N")]
    threads: Option<NonZeroUsize>,

    /// Follow symbolic links that lead out of PATH
    #[arg(long)]
    follow_links: bool,

    #[command(flatten)]
    store: StoreArgs,
}

const VERIFY_EXAMPLE: &str = "\
Example:
  volfs verify ~/surveys
  volfs verify --quick ~/surveys/north.zgy ~/cells
  volfs verify --json ~/surveys | jq -r '.datasets[] | select(.bad) | .path'

Exit status: 0 all can be read, 1 something is bad or could not be read,
2 wrong usage, 129, 130 or 143 if interrupted by SIGHUP (the terminal was
closed), SIGINT (Ctrl-C) or SIGTERM: what was found so far is printed.";

/// The most entries that are kept for one dataset, and with `--all`.
const ENTRIES: usize = 1000;
const ALL_ENTRIES: usize = 100_000;
/// A level is abandoned when more bricks than this cannot be read: a small file can claim 2^60.
const MOST_BAD: u64 = 1 << 22;

/// The bar while the number of all bricks is not known, and then.
const COUNTING: &str = "{spinner} {human_pos} bricks{msg}, counting all";
const COUNTED: &str = "{spinner} [{bar:24}] {percent}% of {human_len} bricks{msg}, {eta} left";

/// Checks every brick below some paths.
pub(super) fn run(args: &VerifyArgs) -> Result<(), CliError> {
    // before there are threads, which inherit the mask
    let interrupts = Interrupts::block();
    limit_arenas();
    // from now on, since already a look at a path may hang
    let started = Arc::new(OnceLock::<(Arc<Verification>, Arc<Printer>)>::new());
    let running = Arc::clone(&started);
    interrupts.on_arrival(move || {
        if let Some((verification, printer)) = running.get() {
            verification.interrupt();
            // fails only if the output cannot be written, and the process ends anyway
            drop(printer.finish(true));
        }
    });
    let (follow_links, store_options) = (args.follow_links, args.store.store_option.clone());
    let read = Origin { follow_links, store_options, ..Origin::default() };
    let places = args.paths.iter().map(|path| place(path, &read)).collect::<Result<Vec<_>, _>>()?;
    let first = places.first().map(|place| place.path.clone()).unwrap_or_default();
    let datasets =
        Datasets::new(registry(), places, &read).map_err(|(path, error)| CliError::cannot_list(&path, &error))?;
    let options = VerifyOptions {
        quick: args.quick,
        threads: args.threads.map_or_else(default_threads, usize::from),
        most: if args.all { ALL_ENTRIES } else { ENTRIES },
        most_bad: MOST_BAD,
    };
    let bar = Bar::new(COUNTING);
    let style = Style { json: args.json, quick: args.quick, all: args.all };
    let printer = Arc::new(Printer::new(style, bar.clone()));
    let sink = Arc::clone(&printer);
    let verification = Arc::new(Verification::new(datasets, options, move |report| sink.add(&report)));
    let shown = follow(&bar, &verification, args.quick);
    drop(started.set((Arc::clone(&verification), Arc::clone(&printer))));
    verification.run();
    if verification.is_interrupted() {
        wait_for_end();
    }
    drop(shown);
    let totals = printer.finish(false)?;
    if totals.datasets == 0 && !args.json {
        note(&none_found(&first));
    }
    let of = totals.datasets;
    match (totals.bad_datasets, totals.unread_datasets) {
        (0, 0) => Ok(()),
        (0, unread) => Err(CliError::new(
            format!("{unread} of {of} volumes could not be read completely"),
            "look into the causes named above (disk, network, permissions, limits) and verify again",
        )),
        (bad, _) => {
            let are = if bad == 1 { "is" } else { "are" };
            let remedy = "restore what is named above from a copy: the rest can be read";
            Err(CliError::new(format!("{bad} of {of} volumes {are} bad"), remedy))
        }
    }
}

/// Finds the place that a path means: for a path inside a mount its source, which reports call by its own name.
fn place(typed: &Path, read: &Origin) -> Result<Place, CliError> {
    let behind = source_behind(typed, &read.store_options)?;
    let path = behind.clone().unwrap_or_else(|| typed.to_owned());
    let origin = checked_source(&Origin { path, ..read.clone() })?;
    let name = if origin.is_url() { origin.path.clone() } else { behind.unwrap_or_else(|| typed.to_owned()) };
    Ok(Place { name, path: origin.path })
}

/// Prints the reports as they come.
struct Printer {
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
    fn new(style: Style, bar: Bar) -> Self {
        Self { style, bar, began: Instant::now(), state: Mutex::default() }
    }

    /// Prints a report. Returns `false` if nothing more can be printed.
    fn add(&self, report: &DatasetReport) -> bool {
        let mut state = self.state.lock();
        let is_first = state.totals.datasets == 0;
        state.totals.add(report);
        let printed = match self.style.json {
            true => report::json(report, is_first, self.style.quick),
            false => report::text(report, self.style.all),
        };
        self.print(&mut state, &printed)
    }

    /// Prints the summary once, and returns the sums.
    fn finish(&self, interrupted: bool) -> Result<Totals, CliError> {
        let mut state = self.state.lock();
        if !state.finished {
            state.finished = true;
            (state.totals.time, state.totals.interrupted) = (self.began.elapsed(), interrupted);
            self.bar.clear();
            let printed = match self.style.json {
                true => state.totals.json(self.style.quick),
                false => state.totals.text(self.style.quick),
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

/// Shows the progress of a verification until the result is dropped; `quick` if no bytes are read.
fn follow(bar: &Bar, verification: &Arc<Verification>, quick: bool) -> Shown {
    if !bar.is_hidden() {
        // opens every volume once more, and so is worth it only for people
        let counting = Arc::clone(verification);
        spawn(move || counting.count());
    }
    let verification = Arc::clone(verification);
    bar.follow(move |bar, since| draw(bar, &verification, since, quick))
}

fn draw(bar: &ProgressBar, verification: &Verification, since: Duration, quick: bool) {
    let progress = verification.progress();
    let counts = progress.counts();
    let done = counts.checked;
    if let Some(total) = progress.total()
        && bar.length() != Some(total.max(done))
    {
        bar.set_length(total.max(done));
        bar.set_style(style(COUNTED));
    }
    let mut message = String::new();
    if !quick {
        let rate = counts.bytes as f64 / since.as_secs_f64().max(0.001);
        message = format!(", {}, {}/s", Size(counts.bytes), Size(rate as u64));
    }
    for (count, what) in [(counts.bad, "bad"), (counts.unread, "unread")] {
        if count > 0 {
            message.push_str(&format!(", {count} {what}"));
        }
    }
    bar.set_message(message);
    bar.set_position(done);
}

#[cfg(test)]
mod tests {
    use indicatif::ProgressStyle;

    use super::*;

    #[test]
    fn the_templates_are_valid() {
        for template in [COUNTING, COUNTED] {
            assert!(ProgressStyle::with_template(template).is_ok(), "{template}");
        }
    }
}
