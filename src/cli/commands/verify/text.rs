//! What people read: a line for each entry of what is bad, and a summary.

use std::fmt::Write as _;

use indicatif::HumanCount;

use super::totals::Totals;
use crate::cli::text::escape;
use crate::cli::text::size::Size;
use crate::format::{Finding, Severity};
use crate::verify::{BadBricks, DatasetReport, Fault};

/// Lines of each kind that are printed for a volume, unless all are.
const LINES: usize = 20;

/// Returns the lines of a volume; none if there is nothing to say.
pub(crate) fn dataset(report: &DatasetReport, all: bool) -> String {
    let mut text =
        Lines { path: escape::path(&report.path), most: if all { usize::MAX } else { LINES }, text: String::new() };
    text.extend(report.error.iter().map(|(_, why)| why.clone()));
    let of = |severity| report.findings.iter().filter(move |found| found.severity == severity);
    let left_out = &report.findings_left_out;
    let hidden = text.extend(of(Severity::Damage).map(finding));
    text.rest(hidden as u64 + left_out.damage, "more faults");
    text.bricks(report, Fault::File, (report.left_out.bad, "more bad bricks"));
    let hidden = text.extend(of(Severity::Unread).map(finding));
    text.rest(hidden as u64 + left_out.unread, "more parts that could not be read");
    text.bricks(report, Fault::System, (report.left_out.unread, "more bricks that could not be read"));
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

    /// Adds the bricks that cannot be read by this fault, and how many there was no room for.
    fn bricks(&mut self, report: &DatasetReport, fault: Fault, (left_out, what): (u64, &str)) {
        let most = self.most;
        let entries = || report.bad.iter().filter(|bad| bad.fault == fault);
        self.extend(entries().take(most).map(|bad| bricks(report, bad)));
        let hidden: u64 = entries().skip(most).map(|bad| bad.count).sum();
        self.rest(hidden + left_out, what);
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
pub(crate) fn totals(totals: &Totals, quick: bool) -> String {
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
    let are = |n: u64| if n == 1 { "is" } else { "are" };
    let mut bad = Vec::new();
    if totals.bad_datasets > 0 {
        let (bricks, faults) = (HumanCount(totals.bad_bricks), HumanCount(totals.faults));
        let what = format!("{} {} bad", volumes(totals.bad_datasets), are(totals.bad_datasets));
        bad.push(format!("{what} (bad bricks: {bricks}, other faults: {faults})"));
    }
    if totals.unread_datasets > 0 {
        let (bricks, parts) = (HumanCount(totals.unread_bricks), HumanCount(totals.unread_parts));
        let what = format!("{} could not be read in whole", volumes(totals.unread_datasets));
        bad.push(format!("{what} (bricks: {bricks}, other parts: {parts})"));
    }
    match (bad.is_empty(), totals.interrupted, quick) {
        (true, true, _) => line(": nothing bad so far"),
        (true, false, true) => line(": tables and headers are right; no brick was decoded"),
        (true, false, false) => line(": all can be read"),
        (false, ..) => line(&format!(": {}", bad.join("; "))),
    }
    text.push('\n');
    text
}
