//! What `volfs verify` prints: lines for people, or a JSON object in parts (its beginning, an object for each volume, and
//! the sums).

use std::fmt::Write as _;
use std::time::Duration;

use indicatif::HumanCount;
use serde_json::{Value, json};

use crate::cli::text::{Size, escaped, escaped_path};
use crate::format::{Finding, Severity};
use crate::verify::{BadBricks, Counts, DatasetReport, ErrorOrigin, LevelReport};
use crate::view::json::SCHEMA;
use crate::view::json_text;

/// Lines of each kind that are printed for a volume, unless all are.
const LINES: usize = 20;

/// How to print.
#[derive(Clone, Copy, Debug)]
pub(super) struct Style {
    /// One JSON object in place of lines for people.
    pub(super) json: bool,
    /// Bricks were not read.
    pub(super) quick: bool,
    /// All entries and not only the first ones.
    pub(super) all: bool,
}

/// The sums of all reports.
#[derive(Clone, Debug, Default)]
pub(super) struct Totals {
    pub(super) datasets: u64,
    pub(super) bad_datasets: u64,
    /// Datasets of which the system failed to read a part.
    pub(super) unread_datasets: u64,
    /// Datasets that were not checked completely.
    pub(super) incomplete: u64,
    pub(super) counts: Counts,
    /// Damage beyond single bricks, and datasets that do not open.
    pub(super) faults: u64,
    /// Parts other than bricks that the system failed to read.
    pub(super) unread_parts: u64,
    pub(super) time: Duration,
    pub(super) interrupted: bool,
}

impl Totals {
    /// Adds a report.
    pub(super) fn add(&mut self, report: &DatasetReport) {
        self.datasets += 1;
        self.bad_datasets += u64::from(report.is_bad());
        self.incomplete += u64::from(!report.complete);
        self.unread_datasets += u64::from(report.is_unread());
        self.counts.add(report.counts());
        self.faults += report.faults();
        self.unread_parts += report.unread_parts();
    }

    /// Returns the last line.
    pub(super) fn text(&self, quick: bool) -> String {
        if self.datasets == 0 && !self.interrupted {
            return String::new();
        }
        let mut text = String::from(if self.interrupted { "interrupted: " } else { "" });
        let volumes = |n: u64| format!("{} volume{}", HumanCount(n), if n == 1 { "" } else { "s" });
        let mut line = |part: &str| text.push_str(part);
        line(&format!("{}, {} bricks", volumes(self.datasets), HumanCount(self.counts.checked)));
        let seconds = self.time.as_secs_f64();
        if quick {
            line(&format!(" in {seconds:.1} s"));
        } else {
            let rate = self.counts.bytes as f64 / seconds.max(0.001);
            line(&format!(", {} in {seconds:.1} s ({}/s)", Size(self.counts.bytes), Size(rate as u64)));
        }
        let are = |n: u64| if n == 1 { "is" } else { "are" };
        let mut bad = Vec::new();
        if self.bad_datasets > 0 {
            let (bricks, faults) = (HumanCount(self.counts.bad), HumanCount(self.faults));
            let what = format!("{} {} bad", volumes(self.bad_datasets), are(self.bad_datasets));
            bad.push(format!("{what} (bad bricks: {bricks}, other faults: {faults})"));
        }
        if self.unread_datasets > 0 {
            let (bricks, parts) = (HumanCount(self.counts.unread), HumanCount(self.unread_parts));
            let what = format!("{} could not be read completely", volumes(self.unread_datasets));
            bad.push(format!("{what} (bricks: {bricks}, other parts: {parts})"));
        }
        match (bad.is_empty(), self.interrupted, quick) {
            (true, true, _) => line(": nothing bad so far"),
            (true, false, true) => line(": tables and headers are right; no brick was decoded"),
            (true, false, false) => line(": all can be read"),
            (false, ..) => line(&format!(": {}", bad.join("; "))),
        }
        text.push('\n');
        text
    }

    /// Returns the end of the JSON text.
    pub(super) fn json(&self, quick: bool) -> String {
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
            "seconds": seconds(self.time.as_secs_f64()),
            "interrupted": self.interrupted,
        });
        let before = if self.datasets == 0 { begin(quick) } else { "\n".to_owned() };
        format!("{before}],\n\"totals\": {}\n}}\n", json_text(&object).trim_end())
    }
}

/// Returns the lines about a volume.
pub(super) fn text(report: &DatasetReport, all: bool) -> String {
    let mut text =
        Lines { path: escaped_path(&report.path), most: if all { usize::MAX } else { LINES }, text: String::new() };
    text.extend(report.error.iter().map(|(_, why)| why.clone()));
    let of = |severity| report.findings.iter().filter(move |found| found.severity == severity);
    let left_out = &report.findings_left_out;
    let hidden = text.extend(of(Severity::Damage).map(finding));
    text.rest(hidden as u64 + left_out.damage, "more faults");
    text.bricks(report, ErrorOrigin::File, (report.left_out.damage, "more bad bricks"));
    let hidden = text.extend(of(Severity::Unread).map(finding));
    text.rest(hidden as u64 + left_out.unread, "more parts that could not be read");
    text.bricks(report, ErrorOrigin::System, (report.left_out.unread, "more bricks that could not be read"));
    let hidden = text.extend(of(Severity::Note).map(|note| format!("note: {}", finding(note))));
    text.rest(hidden as u64 + left_out.notes, "more notes");
    text.text
}

struct Lines {
    path: String,
    most: usize,
    text: String,
}

impl Lines {
    /// Adds at most as many lines as are shown; returns the number of the others.
    fn extend(&mut self, lines: impl Iterator<Item = String>) -> usize {
        let mut hidden = 0;
        for (number, line) in lines.enumerate() {
            if number < self.most {
                self.line(&line);
            } else {
                hidden += 1;
            }
        }
        hidden
    }

    /// Adds the bricks that cannot be read for this reason, and the number of those that are not shown.
    fn bricks(&mut self, report: &DatasetReport, origin: ErrorOrigin, (left_out, what): (u64, &str)) {
        let most = self.most;
        let entries = || report.bad.iter().filter(|bad| bad.origin == origin);
        self.extend(entries().take(most).map(|bad| bricks(report, bad)));
        let hidden: u64 = entries().skip(most).map(|bad| bad.count).sum();
        self.rest(hidden + left_out, what);
    }

    fn line(&mut self, line: &str) {
        // writing to a String cannot fail
        let _ = writeln!(self.text, "{}: {}", self.path, escaped(line));
    }

    fn rest(&mut self, count: u64, what: &str) {
        if count > 0 {
            let hint = if self.most == usize::MAX { "" } else { " (--all lists them)" };
            self.line(&format!("{} {what}{hint}", HumanCount(count)));
        }
    }
}

/// Returns a finding with its place before it.
fn finding(found: &Finding) -> String {
    let layer = found.layer.iter().map(|layer| format!("layer {layer}"));
    let lod = found.lod.iter().map(|lod| format!("lod {lod}"));
    let brick = found.brick.iter().map(|brick| format!("brick {brick:?}"));
    let place: Vec<String> = layer.chain(lod).chain(brick).collect();
    if place.is_empty() { found.reason.clone() } else { format!("{}: {}", place.join(", "), found.reason) }
}

fn bricks(report: &DatasetReport, bad: &BadBricks) -> String {
    let place = report.levels.get(bad.level).map(|level| format!("layer {}, lod {}", level.layer, level.lod));
    let which = match bad.count {
        1 => format!("brick {:?}", bad.first),
        n => format!("bricks {:?} to {:?} ({})", bad.first, bad.last, HumanCount(n)),
    };
    format!("{}, {which}: {}", place.unwrap_or_default(), bad.reason)
}

/// Returns the JSON text of a volume, with what separates it from the text before.
pub(super) fn json(report: &DatasetReport, is_first: bool, quick: bool) -> String {
    let counts = report.counts();
    let object = json!({
        "path": report.path.to_string_lossy(),
        "format": report.format,
        "bad": report.is_bad(),
        "complete": report.complete,
        "error": report.error.as_ref().map(|(_, why)| why),
        "bricks": counts.checked,
        "constant": counts.constant,
        "bad_bricks": counts.bad,
        "unread_bricks": counts.unread,
        "bytes": counts.bytes,
        "seconds": seconds(report.time.as_secs_f64()),
        "layers": layers(&report.levels),
        "damage": entries(report, Severity::Damage, ErrorOrigin::File),
        "damage_left_out": {"bricks": report.left_out.damage, "faults": report.findings_left_out.damage},
        "unread": unread(report),
        "unread_left_out": {"bricks": report.left_out.unread, "parts": report.findings_left_out.unread},
        "notes": of_severity(report, Severity::Note).map(found).collect::<Vec<Value>>(),
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

/// Returns the layers, each with its levels.
fn layers(levels: &[LevelReport]) -> Vec<Value> {
    // the levels of a layer follow one another, from LOD 0 on
    let begins = |level: &LevelReport, before: &LevelReport| level.layer != before.layer || level.lod <= before.lod;
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
    let layers = levels.chunk_by(|before, level| !begins(level, before));
    let layer = |levels: &[LevelReport]| {
        let name = levels.first().map(|level| &level.layer);
        json!({"name": name, "lods": levels.iter().map(of_level).collect::<Vec<Value>>()})
    };
    layers.map(layer).collect()
}

/// Returns what the system failed to read, also that the dataset does not open.
fn unread(report: &DatasetReport) -> Vec<Value> {
    let error = report.error.iter().filter(|(origin, _)| *origin == ErrorOrigin::System);
    let error = error.map(|(_, why)| found(&Finding::unread(why)));
    error.chain(entries(report, Severity::Unread, ErrorOrigin::System)).collect()
}

/// Returns the findings of a severity, and the bricks that cannot be read for this reason.
fn entries(report: &DatasetReport, severity: Severity, origin: ErrorOrigin) -> Vec<Value> {
    let bricks = |bad: &BadBricks| {
        let level = report.levels.get(bad.level);
        json!({
            "layer": level.map(|level| &level.layer),
            "lod": level.map(|level| level.lod),
            "first": bad.first.to_vec(),
            "last": bad.last.to_vec(),
            "count": bad.count,
            "reason": bad.reason,
        })
    };
    let bad = report.bad.iter().filter(|bad| bad.origin == origin);
    of_severity(report, severity).map(found).chain(bad.map(bricks)).collect()
}

fn of_severity(report: &DatasetReport, severity: Severity) -> impl Iterator<Item = &Finding> {
    report.findings.iter().filter(move |found| found.severity == severity)
}

fn found(found: &Finding) -> Value {
    let brick = found.brick.map(|brick| brick.to_vec());
    json!({
        "layer": found.layer,
        "lod": found.lod,
        "first": brick,
        "last": brick,
        "count": u64::from(found.brick.is_some()),
        "reason": found.reason,
    })
}
