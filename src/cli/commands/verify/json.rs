//! The JSON object, printed in parts: its beginning, an object for each volume, and the sums.

use serde_json::{Value, json};

use super::totals::Totals;
use crate::format::{Finding, Severity};
use crate::verify::{BadBricks, DatasetReport, Fault, LevelReport};
use crate::view::json::SCHEMA;
use crate::view::json_text;

/// Returns the text of a volume, with what has to stand before it.
pub(crate) fn dataset(report: &DatasetReport, is_first: bool, quick: bool) -> String {
    let object = json!({
        "path": report.path.to_string_lossy(),
        "format": report.format,
        "bad": report.is_bad(),
        "complete": report.complete,
        "error": report.error.as_ref().map(|(_, why)| why),
        "bricks": report.sum(|level| level.checked),
        "constant": report.sum(|level| level.constant),
        "bad_bricks": report.bad_bricks(),
        "unread_bricks": report.unread_bricks(),
        "bytes": report.sum(|level| level.bytes),
        "seconds": seconds(report.time.as_secs_f64()),
        "layers": layers(&report.levels),
        "damage": entries(report, Severity::Damage, Fault::File),
        "damage_left_out": {"bricks": report.left_out.bad, "faults": report.findings_left_out.damage},
        "unread": unread(report),
        "unread_left_out": {"bricks": report.left_out.unread, "parts": report.findings_left_out.unread},
        "notes": of_severity(report, Severity::Note).map(found).collect::<Vec<Value>>(),
    });
    let before = if is_first { begin(quick) } else { ",\n".to_owned() };
    before + json_text(&object).trim_end()
}

/// Returns the end of the text.
pub(crate) fn totals(totals: &Totals, quick: bool) -> String {
    let object = json!({
        "datasets": totals.datasets,
        "bad_datasets": totals.bad_datasets,
        "unread_datasets": totals.unread_datasets,
        "incomplete_datasets": totals.incomplete,
        "bricks": totals.bricks,
        "constant": totals.constant,
        "bad_bricks": totals.bad_bricks,
        "faults": totals.faults,
        "unread_bricks": totals.unread_bricks,
        "unread_parts": totals.unread_parts,
        "bytes": totals.bytes,
        "seconds": seconds(totals.time.as_secs_f64()),
        "interrupted": totals.interrupted,
    });
    let before = if totals.datasets == 0 { begin(quick) } else { "\n".to_owned() };
    format!("{before}],\n\"totals\": {}\n}}\n", json_text(&object).trim_end())
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
            "bricks": level.checked,
            "constant": level.constant,
            "bad_bricks": level.bad,
            "unread_bricks": level.unread,
            "bytes": level.bytes,
        })
    };
    let layers = levels.chunk_by(|before, level| !begins(level, before));
    let layer = |levels: &[LevelReport]| {
        let name = levels.first().map(|level| &level.layer);
        json!({"name": name, "lods": levels.iter().map(of_level).collect::<Vec<Value>>()})
    };
    layers.map(layer).collect()
}

/// Returns what could not be read by the system's fault, also that it does not open.
fn unread(report: &DatasetReport) -> Vec<Value> {
    let error = report.error.iter().filter(|(fault, _)| *fault == Fault::System);
    let error = error.map(|(_, why)| found(&Finding::unread(why)));
    error.chain(entries(report, Severity::Unread, Fault::System)).collect()
}

/// Returns the findings of a severity, which are no single brick's, and the bricks that cannot be read by this fault.
fn entries(report: &DatasetReport, severity: Severity, fault: Fault) -> Vec<Value> {
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
    let bad = report.bad.iter().filter(|bad| bad.fault == fault);
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
