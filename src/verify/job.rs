//! One dataset while it is checked.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Instant;

use super::bad_bricks::BadBrickList;
use super::report::{DatasetReport, LevelReport};
use crate::catalog::OpenDataset;
use crate::counters::Counter;
use crate::format::{Array, Finding, FormatError, Severity};
use crate::source::SourceError;
use crate::sync::Mutex;
use crate::volume::Dims;

/// One dataset while it is checked.
pub(super) struct Job {
    /// Its place in the order of the walk.
    pub number: u64,
    path: PathBuf,
    open: Option<Arc<OpenDataset>>,
    error: Option<String>,
    pub levels: Vec<Level>,
    found: Mutex<Found>,
    began: Instant,
    /// Tasks that are not done, and one more until all of them have been made.
    tasks: AtomicUsize,
    /// Nothing more is to be checked: it changed.
    over: AtomicBool,
    /// Some of it was left out.
    incomplete: AtomicBool,
}

/// A level of a layer, and what was counted in it.
pub(super) struct Level {
    pub layer: String,
    pub array: Arc<dyn Array>,
    pub checked: Counter,
    pub constant: Counter,
    pub bad: Counter,
    pub bytes: Counter,
}

struct Found {
    bad: BadBrickList,
    findings: Vec<Finding>,
    left_out: (u64, u64),
    most: usize,
}

impl Job {
    /// Begins with a dataset that is open, or that cannot be opened. Keeps at most `most` entries of what is found.
    pub(super) fn new(number: u64, path: PathBuf, opened: Result<Arc<OpenDataset>, String>, most: usize) -> Self {
        let (open, error) = match opened {
            Ok(open) => (Some(open), None),
            Err(error) => (None, Some(error)),
        };
        let layers = open.iter().flat_map(|open| open.dataset.layers());
        let levels = layers.flat_map(|layer| layer.levels.iter().map(|array| Level::new(&layer.name, array)));
        let levels = levels.collect();
        let found = Found { bad: BadBrickList::new(most), findings: Vec::new(), left_out: (0, 0), most };
        Self {
            number,
            path,
            open,
            error,
            levels,
            found: Mutex::new(found),
            began: Instant::now(),
            tasks: AtomicUsize::new(1),
            over: AtomicBool::new(false),
            incomplete: AtomicBool::new(false),
        }
    }

    /// Adds a task.
    pub(super) fn begin_task(&self) {
        self.tasks.fetch_add(1, Ordering::Relaxed);
    }

    /// Ends a task; `true` if it was the last one.
    pub(super) fn end_task(&self) -> bool {
        let is_last = self.tasks.fetch_sub(1, Ordering::AcqRel) == 1;
        if is_last {
            self.check_unchanged();
        }
        is_last
    }

    /// Notes that a part is left out, since it changed or the verification was interrupted. To be called before the
    /// task of that part ends.
    pub(super) fn leave_out(&self) {
        self.incomplete.store(true, Ordering::Relaxed);
    }

    /// Returns whether nothing more is to be checked.
    pub(super) fn is_over(&self) -> bool {
        self.over.load(Ordering::Relaxed)
    }

    /// Adds a finding.
    pub(super) fn add(&self, finding: Finding) {
        let mut found = self.found.lock();
        if found.findings.len() < found.most {
            // layers and levels have warnings in common
            if finding.severity == Severity::Damage || !found.findings.contains(&finding) {
                found.findings.push(finding);
            }
            return;
        }
        match finding.severity {
            Severity::Damage => found.left_out.0 += 1,
            Severity::Note => found.left_out.1 += 1,
        }
    }

    /// Adds a brick that cannot be read; `number` is its number in the grid.
    pub(super) fn add_bad(&self, level: usize, at: Dims, number: u64, error: &FormatError) {
        if *error == FormatError::Source(SourceError::Changed) {
            return self.add_change();
        }
        if let Some(level) = self.levels.get(level) {
            level.bad.add(1);
        }
        self.found.lock().bad.add(level, at, number, &error.to_string());
    }

    /// Notes that the dataset has changed: what was found is of no use, and what is left cannot be read.
    pub(super) fn add_change(&self) {
        if !self.over.swap(true, Ordering::Relaxed) {
            self.add(Finding::damage("it changed while it was checked; verify it again"));
        }
    }

    /// Checks all but the bricks: structure, metadata, layers that cannot be shown.
    pub(super) fn check_structure(&self) {
        let Some(open) = &self.open else { return };
        let dataset = &open.dataset;
        for hidden in dataset.hidden() {
            let reason = format!("cannot be shown: {}", hidden.reason);
            let found = if hidden.damaged { Finding::damage(reason) } else { Finding::note(reason) };
            self.add(found.of_layer(&hidden.name));
        }
        let checked = dataset.check_structure(&mut |finding| self.add(finding));
        for result in [checked, dataset.metadata().map(drop)] {
            match result {
                Ok(()) => {}
                Err(FormatError::Source(SourceError::Changed)) => self.add_change(),
                Err(error) => self.add(Finding::damage(error.to_string())),
            }
        }
        self.add_warnings(open);
    }

    /// Checks that the dataset is still the one that was opened.
    fn check_unchanged(&self) {
        let Some(open) = &self.open else { return };
        let is_changed = |level: &Level| level.array.source().check_unchanged() == Err(SourceError::Changed);
        if open.dataset.is_changed() || self.levels.iter().any(is_changed) {
            self.add_change();
        }
    }

    /// Adds the warnings of the dataset and its layers as notes, unless they are known as damage.
    fn add_warnings(&self, open: &OpenDataset) {
        // a warning may have the reason of damage after its own words
        let same = |found: &Finding, warning: &str| {
            let mut tails = warning.match_indices(": ").map(|(at, _)| &warning[at + 2..]);
            found.reason == warning
                || found.severity == Severity::Damage && tails.any(|tail| found.reason.contains(tail))
        };
        let is_known = |warning: &str| self.found.lock().findings.iter().any(|found| same(found, warning));
        for warning in open.dataset.info().warnings.iter().filter(|warning| !is_known(warning)) {
            self.add(Finding::note(warning));
        }
        for layer in open.dataset.layers() {
            let warnings = layer.levels.iter().flat_map(|level| &level.info().warnings);
            for warning in warnings.filter(|warning| !is_known(warning)) {
                self.add(Finding::note(warning).of_layer(&layer.name));
            }
        }
    }

    /// Returns what was found so far.
    pub(super) fn report(&self) -> DatasetReport {
        let mut found = self.found.lock();
        let (bad, left_out) = found.bad.entries();
        let mut findings = found.findings.clone();
        findings.sort_by_key(|found| (found.severity == Severity::Note, found.lod, found.brick));
        DatasetReport {
            path: self.path.clone(),
            format: self.open.as_ref().map(|open| open.format),
            error: self.error.clone(),
            levels: self.levels.iter().map(Level::report).collect(),
            bad,
            left_out,
            findings,
            findings_left_out: found.left_out,
            time: self.began.elapsed(),
            complete: self.tasks.load(Ordering::Acquire) == 0 && !self.incomplete.load(Ordering::Relaxed),
        }
    }
}

impl Level {
    fn new(layer: &str, array: &Arc<dyn Array>) -> Self {
        Self {
            layer: layer.to_owned(),
            array: Arc::clone(array),
            checked: Counter::default(),
            constant: Counter::default(),
            bad: Counter::default(),
            bytes: Counter::default(),
        }
    }

    fn report(&self) -> LevelReport {
        LevelReport {
            layer: self.layer.clone(),
            lod: self.array.info().lod,
            total: self.array.info().grid.total(),
            checked: self.checked.get(),
            constant: self.constant.get(),
            bad: self.bad.get(),
            bytes: self.bytes.get(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_is_complete_only_if_no_task_was_left_out() {
        for (left_out, complete) in [(false, true), (true, false)] {
            let job = Job::new(0, "x.zgy".into(), Err("it is no volume".into()), 10);
            job.begin_task();
            assert!(!job.end_task() && !job.report().complete);
            if left_out {
                job.leave_out();
            }
            assert!(job.end_task());
            assert_eq!(job.report().complete, complete);
        }
    }
}
