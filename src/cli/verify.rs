//! `volfs verify`: reads and decodes every brick below some paths, and prints what cannot be read: lines for people, or a
//! JSON object in parts (its beginning, an object for each volume, and the sums).

use std::fmt::Write as _;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use clap::Args;
use indicatif::{HumanCount, ProgressBar};
use serde_json::{Value, json};

use super::error::CliError;
use super::file_system::StoreArgs;
use super::interrupt::{on_signal, wait_for_end};
use super::ls::none_found;
use super::machine::default_threads;
use super::output::{self, note, spawn, style};
use super::source::{checked_source, source_behind};
use super::text::{Size, escaped, escaped_path, rate};
use crate::format::{Finding, Severity, registry};
use crate::memory::limit_arenas;
use crate::source::Origin;
use crate::sync::Mutex;
use crate::verify::{Counts, DatasetReport, Datasets, LevelReport, Place, Verification, VerifyOptions};
use crate::view::{json::SCHEMA, json_text};
use crate::volume::Dims;

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

pub(super) fn run(args: &VerifyArgs) -> Result<(), CliError> {
    limit_arenas();
    // from now on, since already a look at a path may hang
    let started = Arc::new(OnceLock::<(Arc<Verification>, Arc<Printer>)>::new());
    let running = Arc::clone(&started);
    on_signal(move || {
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
    let bar = output::bar(COUNTING);
    let printer = Arc::new(Printer {
        json: args.json,
        quick: args.quick,
        all: args.all,
        bar: bar.clone(),
        began: Instant::now(),
        state: Mutex::default(),
    });
    let sink = Arc::clone(&printer);
    let verification = Arc::new(Verification::new(datasets, options, move |report| sink.add(&report)));
    if !bar.is_hidden() {
        // opens every volume once more, and so is worth it only for people
        let counting = Arc::clone(&verification);
        spawn(move || counting.count());
    }
    let (drawn, quick) = (Arc::clone(&verification), args.quick);
    let shown = output::follow(&bar, move |bar, since| draw(bar, &drawn, since, quick));
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
    let path = source_behind(typed, &read.store_options)?.unwrap_or_else(|| typed.to_owned());
    let origin = checked_source(&Origin { path: path.clone(), ..read.clone() })?;
    Ok(Place { name: if origin.is_url() { origin.path.clone() } else { path }, path: origin.path })
}

/// Prints the reports as they come.
struct Printer {
    json: bool,
    quick: bool,
    all: bool,
    bar: ProgressBar,
    began: Instant,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    totals: Totals,
    /// Set once nothing more can be printed: the reader of the output is gone, or it cannot be written.
    end: Option<Result<(), CliError>>,
    finished: bool,
}

impl Printer {
    /// Prints a report. Returns `false` if nothing more can be printed.
    fn add(&self, report: &DatasetReport) -> bool {
        let mut state = self.state.lock();
        let is_first = state.totals.datasets == 0;
        state.totals.add(report);
        let printed = match self.json {
            true => dataset_json(report, is_first, self.quick),
            false => dataset_text(report, self.all),
        };
        self.print(&mut state, &printed)
    }

    /// Prints the summary once, and returns the sums.
    fn finish(&self, interrupted: bool) -> Result<Totals, CliError> {
        let mut state = self.state.lock();
        if !state.finished {
            state.finished = true;
            self.bar.finish_and_clear();
            let (totals, time) = (&state.totals, self.began.elapsed());
            let printed = match self.json {
                true => totals.json(self.quick, time, interrupted),
                false => totals.text(self.quick, time, interrupted),
            };
            self.print(&mut state, &printed);
        }
        state.end.take().unwrap_or(Ok(())).map(|()| state.totals.clone())
    }

    fn print(&self, state: &mut State, printed: &str) -> bool {
        if state.end.is_none() && !printed.is_empty() {
            state.end = match self.bar.suspend(|| output::part(printed.as_bytes())) {
                Ok(true) => None,
                ended => Some(ended.map(drop)),
            };
        }
        state.end.is_none()
    }
}

/// Draws the progress of a verification; `quick` if no bytes are read.
fn draw(bar: &ProgressBar, verification: &Verification, since: Duration, quick: bool) {
    let counts = verification.counts();
    let done = counts.checked;
    if let Some(total) = verification.total()
        && bar.length() != Some(total.max(done))
    {
        bar.set_length(total.max(done));
        bar.set_style(style(COUNTED));
    }
    let mut message = String::new();
    if !quick {
        message = format!(", {}, {}", Size(counts.bytes), rate(counts.bytes, since));
    }
    for (count, what) in [(counts.bad, "bad"), (counts.unread, "unread")] {
        if count > 0 {
            message.push_str(&format!(", {count} {what}"));
        }
    }
    bar.set_message(message);
    bar.set_position(done);
}

/// Lines of each kind that are printed for a volume, unless all are.
const LINES: usize = 20;

#[derive(Clone, Debug, Default)]
struct Totals {
    datasets: u64,
    bad_datasets: u64,
    /// Datasets of which the system failed to read a part.
    unread_datasets: u64,
    incomplete: u64,
    counts: Counts,
    /// Damage beyond single bricks, and datasets that do not open.
    faults: u64,
    /// Parts other than bricks that the system failed to read.
    unread_parts: u64,
}

impl Totals {
    fn add(&mut self, report: &DatasetReport) {
        self.datasets += 1;
        self.bad_datasets += u64::from(report.is_bad());
        self.incomplete += u64::from(!report.complete);
        self.unread_datasets += u64::from(report.is_unread());
        self.counts.add(report.counts());
        self.faults += report.count(Severity::Damage);
        self.unread_parts += report.count(Severity::Unread);
    }

    fn text(&self, quick: bool, time: Duration, interrupted: bool) -> String {
        if self.datasets == 0 && !interrupted {
            return String::new();
        }
        let volumes = |n: u64| format!("{} volume{}", HumanCount(n), if n == 1 { "" } else { "s" });
        let seconds = time.as_secs_f64();
        let (bytes, rate) = (Size(self.counts.bytes), rate(self.counts.bytes, time));
        let read = match quick {
            true => format!(" in {seconds:.1} s"),
            false => format!(", {bytes} in {seconds:.1} s ({rate})"),
        };
        let mut bad = Vec::new();
        if self.bad_datasets > 0 {
            let (bricks, faults) = (HumanCount(self.counts.bad), HumanCount(self.faults));
            let are = if self.bad_datasets == 1 { "is" } else { "are" };
            let what = volumes(self.bad_datasets);
            bad.push(format!("{what} {are} bad (bad bricks: {bricks}, other faults: {faults})"));
        }
        if self.unread_datasets > 0 {
            let (bricks, parts) = (HumanCount(self.counts.unread), HumanCount(self.unread_parts));
            let what = volumes(self.unread_datasets);
            bad.push(format!("{what} could not be read completely (bricks: {bricks}, other parts: {parts})"));
        }
        let found: &str = match (bad.is_empty(), interrupted, quick) {
            (true, true, _) => "nothing bad so far",
            (true, false, true) => "tables and headers are right; no brick was decoded",
            (true, false, false) => "all can be read",
            (false, ..) => &bad.join("; "),
        };
        let begin = if interrupted { "interrupted: " } else { "" };
        format!("{begin}{}, {} bricks{read}: {found}\n", volumes(self.datasets), HumanCount(self.counts.checked))
    }

    /// Returns the end of the JSON text.
    fn json(&self, quick: bool, time: Duration, interrupted: bool) -> String {
        let object = json!({
            "datasets": self.datasets,
            "bad_datasets": self.bad_datasets,
            "unread_datasets": self.unread_datasets,
            "incomplete_datasets": self.incomplete,
            "bricks": self.counts.checked,
            "constant": self.counts.constant,
            "bad_bricks": self.counts.bad,
            "faults": self.faults,
            "unread_bricks": self.counts.unread,
            "unread_parts": self.unread_parts,
            "bytes": self.counts.bytes,
            "seconds": seconds(time.as_secs_f64()),
            "interrupted": interrupted,
        });
        let before = if self.datasets == 0 { begin(quick) } else { "\n".to_owned() };
        format!("{before}],\n\"totals\": {}\n}}\n", json_text(&object).trim_end())
    }
}

fn dataset_text(report: &DatasetReport, all: bool) -> String {
    let mut lines = Lines { path: escaped_path(&report.path), all, text: String::new() };
    report.error.iter().for_each(|error| lines.line(&error.reason));
    for (severity, things, things_of_bricks) in [
        (Severity::Damage, "faults", "bad bricks"),
        (Severity::Unread, "parts that could not be read", "bricks that could not be read"),
        (Severity::Note, "notes", ""),
    ] {
        lines.some(findings(report, severity), report.findings_left_out[severity as usize], things);
        lines.some(bricks(report, severity), report.left_out[severity as usize], things_of_bricks);
    }
    lines.text
}

struct Lines {
    path: String,
    all: bool,
    text: String,
}

impl Lines {
    /// Adds the first of some entries, and says how many more things there are than these are about: `left_out` have no
    /// entry.
    fn some<'a>(&mut self, mut entries: impl Iterator<Item = Entry<'a>>, left_out: u64, things: &str) {
        let most = if self.all { usize::MAX } else { LINES };
        entries.by_ref().take(most).for_each(|entry| self.line(&entry.text()));
        let more = entries.map(|entry| entry.bricks.max(1)).sum::<u64>() + left_out;
        if more > 0 {
            let hint = if self.all { "" } else { " (--all lists them)" };
            self.line(&format!("{} more {things}{hint}", HumanCount(more)));
        }
    }

    fn line(&mut self, line: &str) {
        // writing to a String cannot fail
        let _ = writeln!(self.text, "{}: {}", self.path, escaped(line));
    }
}

/// A finding about the whole dataset, a layer, a level, or some of its bricks.
struct Entry<'a> {
    found: &'a Finding,
    /// The number of bricks, and the last one.
    bricks: u64,
    last: Option<Dims>,
}

fn findings(report: &DatasetReport, severity: Severity) -> impl Iterator<Item = Entry<'_>> {
    let found = report.findings.iter().filter(move |found| found.severity == severity);
    found.map(|found| Entry { found, bricks: u64::from(found.brick.is_some()), last: found.brick })
}

fn bricks(report: &DatasetReport, severity: Severity) -> impl Iterator<Item = Entry<'_>> {
    let bad = report.bad.iter().filter(move |bad| bad.found.severity == severity);
    bad.map(|bad| Entry { found: &bad.found, bricks: bad.count, last: Some(bad.last) })
}

impl Entry<'_> {
    /// Returns the reason with its place before it.
    fn text(&self) -> String {
        let Finding { severity, layer, lod, brick, reason } = self.found;
        let layer = layer.iter().map(|layer| format!("layer {layer}"));
        let lod = lod.iter().map(|lod| format!("lod {lod}"));
        let bricks = brick.iter().zip(&self.last).map(|(first, last)| match self.bricks {
            1 => format!("brick {first:?}"),
            n => format!("bricks {first:?} to {last:?} ({})", HumanCount(n)),
        });
        let place: Vec<String> = layer.chain(lod).chain(bricks).collect();
        let note = if *severity == Severity::Note { "note: " } else { "" };
        let colon = if place.is_empty() { "" } else { ": " };
        format!("{note}{}{colon}{reason}", place.join(", "))
    }

    fn object(&self) -> Value {
        json!({
            "layer": self.found.layer,
            "lod": self.found.lod,
            "first": self.found.brick.map(|brick| brick.to_vec()),
            "last": self.last.map(|brick| brick.to_vec()),
            "count": self.bricks,
            "reason": self.found.reason,
        })
    }
}

/// Returns the JSON text of a volume, with what separates it from the text before.
fn dataset_json(report: &DatasetReport, is_first: bool, quick: bool) -> String {
    let counts = report.counts();
    let objects = |severity| findings(report, severity).chain(bricks(report, severity)).map(|entry| entry.object());
    let error = report.error.iter().filter(|error| error.severity == Severity::Unread);
    let error = error.map(|found| Entry { found, bricks: 0, last: None }.object());
    let ([damaged_bricks, unread_bricks, _], [faults, unread_parts, _]) = (report.left_out, report.findings_left_out);
    let object = json!({
        "path": report.path.to_string_lossy(),
        "format": report.format,
        "bad": report.is_bad(),
        "complete": report.complete,
        "error": report.error.as_ref().map(|error| &error.reason),
        "bricks": counts.checked,
        "constant": counts.constant,
        "bad_bricks": counts.bad,
        "unread_bricks": counts.unread,
        "bytes": counts.bytes,
        "seconds": seconds(report.time.as_secs_f64()),
        "layers": layers(&report.levels),
        "damage": objects(Severity::Damage).collect::<Value>(),
        "damage_left_out": {"bricks": damaged_bricks, "faults": faults},
        "unread": error.chain(objects(Severity::Unread)).collect::<Value>(),
        "unread_left_out": {"bricks": unread_bricks, "parts": unread_parts},
        "notes": objects(Severity::Note).collect::<Value>(),
    });
    let before = if is_first { begin(quick) } else { ",\n".to_owned() };
    before + json_text(&object).trim_end()
}

fn begin(quick: bool) -> String {
    format!("{{\n\"schema\": {SCHEMA},\n\"quick\": {quick},\n\"datasets\": [\n")
}

fn seconds(seconds: f64) -> f64 {
    (seconds * 1000.0).round() / 1000.0
}

fn layers(levels: &[LevelReport]) -> Vec<Value> {
    let of_level = |level: &LevelReport| {
        json!({
            "lod": level.lod,
            "total": level.total,
            "bricks": level.counts.checked,
            "constant": level.counts.constant,
            "bad_bricks": level.counts.bad,
            "unread_bricks": level.counts.unread,
            "bytes": level.counts.bytes,
        })
    };
    // the levels of a layer follow one another, from LOD 0 on
    let layers = levels.chunk_by(|before, level| before.layer == level.layer && before.lod < level.lod);
    let layer = |levels: &[LevelReport]| {
        let name = levels.first().map(|level| &level.layer);
        json!({"name": name, "lods": levels.iter().map(of_level).collect::<Vec<Value>>()})
    };
    layers.map(layer).collect()
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
