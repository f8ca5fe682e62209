//! What people read: a line for each entry of what is bad, and a summary.

use std::fmt::Write as _;

use indicatif::HumanCount;

use super::totals::Totals;
use crate::cli::text::escape;
use crate::cli::text::size::Size;
use crate::format::{Finding, Severity};
use crate::verify::{BadBricks, DatasetReport};

/// Lines of each kind that are printed for a volume, unless all are.
const LINES: usize = 20;

/// Returns the lines of a volume; none if there is nothing to say.
pub fn dataset(report: &DatasetReport, all: bool) -> String {
    let mut text =
        Lines { path: escape::path(&report.path), most: if all { usize::MAX } else { LINES }, text: String::new() };
    text.extend(report.error.iter().cloned());
    let damage = report.findings.iter().filter(|found| found.severity == Severity::Damage);
    let hidden = text.extend(damage.map(finding));
    text.rest(hidden as u64 + report.findings_left_out.0, "more faults");
    text.extend(report.bad.iter().take(text.most).map(|bad| bricks(report, bad)));
    let hidden: u64 = report.bad.iter().skip(text.most).map(|bad| bad.count).sum();
    text.rest(hidden + report.left_out, "more bad bricks");
    let notes = report.findings.iter().filter(|found| found.severity == Severity::Note);
    let hidden = text.extend(notes.map(|note| format!("note: {}", finding(note))));
    text.rest(hidden as u64 + report.findings_left_out.1, "more notes");
    text.text
}

struct Lines {
    path: String,
    most: usize,
    text: String,
}

impl Lines {
    /// Adds lines up to the most; returns how many there was no room for.
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

    fn line(&mut self, line: &str) {
        // writing to a String cannot fail
        let _ = writeln!(self.text, "{}: {}", self.path, escape::text(line));
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

/// Returns the last line.
pub fn totals(totals: &Totals, quick: bool) -> String {
    if totals.datasets == 0 && !totals.interrupted {
        return String::new();
    }
    let mut text = String::new();
    if totals.interrupted {
        text.push_str("interrupted: ");
    }
    let volumes = |n: u64| format!("{} volume{}", HumanCount(n), if n == 1 { "" } else { "s" });
    let mut line = |part: &str| text.push_str(part);
    line(&format!("{}, {} bricks", volumes(totals.datasets), HumanCount(totals.bricks)));
    let seconds = totals.time.as_secs_f64();
    if quick {
        line(&format!(" in {seconds:.1} s"));
    } else {
        let rate = totals.bytes as f64 / seconds.max(0.001);
        line(&format!(", {} in {seconds:.1} s ({}/s)", Size::of(totals.bytes), Size::of(rate as u64)));
    }
    match (totals.bad_datasets, totals.interrupted, quick) {
        (0, true, _) => line(": nothing bad so far"),
        (0, false, true) => line(": tables and headers are right; no brick was decoded"),
        (0, false, false) => line(": all can be read"),
        (bad, ..) => {
            let verb = if bad == 1 { "is" } else { "are" };
            let (bricks, faults) = (HumanCount(totals.bad_bricks), HumanCount(totals.faults));
            line(&format!(": {} {verb} bad (bad bricks: {bricks}, other faults: {faults})", volumes(bad)));
        }
    }
    text.push('\n');
    text
}
