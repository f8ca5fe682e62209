//! One dataset while it is checked.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Instant;

use super::bad_bricks::BadBrickList;
use super::fault::{Failure, Fault};
use super::findings::FindingList;
use super::report::{DatasetReport, LevelReport};
use super::retries::Retries;
use crate::catalog::OpenDataset;
use crate::counters::Counter;
use crate::format::{Array, Finding, FormatError};
use crate::source::SourceError;
use crate::sync::Mutex;
use crate::volume::Dims;

/// One dataset while it is checked.
pub(super) struct Job {
    /// Its place in the order of the walk.
    pub number: u64,
    path: PathBuf,
    open: Option<Arc<OpenDataset>>,
    error: Option<(Fault, String)>,
    pub levels: Vec<Level>,
    found: Mutex<Found>,
    /// The most entries that are kept of what is found.
    most: usize,
    retries: Retries,
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
    pub unread: Counter,
    pub bytes: Counter,
    /// No more of its bricks are to be checked: too many are bad.
    given_up: AtomicBool,
}

struct Found {
    bad: BadBrickList,
    findings: FindingList,
    /// What the check of the structure has found so far. It may begin anew.
    structure: FindingList,
}

/// A dataset that is open, or why it cannot be.
pub(super) type Opened = Result<Arc<OpenDataset>, (Fault, String)>;

impl Job {
    /// Begins with a dataset that is open, or that cannot be opened. Keeps at most `most` entries of what is found.
    pub(super) fn new(number: u64, path: PathBuf, opened: Opened, most: usize) -> Self {
        let (open, error) = match opened {
            Ok(open) => (Some(open), None),
            Err(error) => (None, Some(error)),
        };
        let layers = open.iter().flat_map(|open| open.dataset.layers());
        let levels = layers.flat_map(|layer| layer.levels.iter().map(|array| Level::new(&layer.name, array)));
        let levels = levels.collect();
        let [findings, structure] = [(); 2].map(|()| FindingList::new(most));
        let found = Found { bad: BadBrickList::new(most), findings, structure };
        Self {
            number,
            path,
            open,
            error,
            levels,
            found: Mutex::new(found),
            most,
            retries: Retries::default(),
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
        self.found.lock().findings.add(finding);
    }

    /// Adds the failure of something that is no single brick's.
    pub(super) fn add_failure(&self, error: &FormatError, place: impl FnOnce(Finding) -> Finding) {
        match (error, error.fault()) {
            (FormatError::Source(SourceError::Changed), _) => self.add_change(),
            (_, Fault::File) => self.add(place(Finding::damage(error.to_string()))),
            (_, Fault::System) => self.add(place(Finding::unread(error.to_string()))),
        }
    }

    /// Adds a brick that cannot be read; `number` is its number in the grid. The level is given up once more than
    /// `most` of its bricks cannot be read.
    pub(super) fn add_bad(&self, number_of_level: usize, at: Dims, number: u64, error: &FormatError, most: u64) {
        if *error == FormatError::Source(SourceError::Changed) {
            return self.add_change();
        }
        let Some(level) = self.levels.get(number_of_level) else { return };
        let fault = error.fault();
        match fault {
            Fault::File => level.bad.add(1),
            Fault::System => level.unread.add(1),
        }
        let mut found = self.found.lock();
        found.bad.add(number_of_level, at, number, (fault, &error.to_string()));
        if level.bad.get() + level.unread.get() > most && !level.given_up.swap(true, Ordering::Relaxed) {
            let text = format!("more than {most} of its bricks cannot be read; no more of them were checked");
            let finding = if level.bad.get() > 0 { Finding::damage(text) } else { Finding::unread(text) };
            found.findings.add(finding.of_layer(&level.layer).of_lod(level.array.info().lod));
        }
    }

    /// Returns what `work` returns; tries again what failed by the system's fault.
    pub(super) fn with_retries<T>(
        &self,
        is_stopped: impl Fn() -> bool,
        work: impl FnMut() -> Result<T, FormatError>,
    ) -> Result<T, FormatError> {
        self.retries.run(
            || is_stopped() || self.is_over(),
            |result| result.as_ref().is_err_and(Failure::may_pass),
            work,
        )
    }

    /// Notes that the dataset has changed: what was found is of no use, and what is left cannot be read.
    pub(super) fn add_change(&self) {
        if !self.over.swap(true, Ordering::Relaxed) {
            self.add(Finding::damage("it changed while it was checked; verify it again"));
        }
    }

    /// Checks all but the bricks: structure, metadata, layers that cannot be shown.
    pub(super) fn check_structure(&self, is_stopped: impl Fn() -> bool) {
        let Some(open) = &self.open else { return };
        let errors = self.retries.run(
            || is_stopped() || self.is_over(),
            |errors: &Vec<FormatError>| {
                self.found.lock().structure.has_unread() || errors.iter().any(Failure::may_pass)
            },
            || self.find_in_structure(open),
        );
        self.found.lock().structure.add_warnings(warnings_of(open));
        errors.iter().for_each(|error| self.add_failure(error, |found| found));
    }

    /// Finds anew what is wrong with the structure. Returns the errors that this ended with.
    fn find_in_structure(&self, open: &OpenDataset) -> Vec<FormatError> {
        let (dataset, add) = (&open.dataset, |finding| self.found.lock().structure.add(finding));
        self.found.lock().structure = FindingList::new(self.most);
        for hidden in dataset.hidden() {
            let reason = format!("cannot be shown: {}", hidden.reason);
            let finding = if hidden.damaged { Finding::damage(reason) } else { Finding::note(reason) };
            add(finding.of_layer(&hidden.name));
        }
        let checked = dataset.check_structure(&mut |finding| add(finding));
        [checked, dataset.metadata().map(drop)].into_iter().filter_map(Result::err).collect()
    }

    /// Checks that the dataset is still the one that was opened.
    fn check_unchanged(&self) {
        let Some(open) = &self.open else { return };
        let is_changed = |level: &Level| level.array.source().check_unchanged() == Err(SourceError::Changed);
        if open.dataset.is_changed() || self.levels.iter().any(is_changed) {
            self.add_change();
        }
    }

    /// Returns what was found so far.
    pub(super) fn report(&self) -> DatasetReport {
        let mut found = self.found.lock();
        let (bad, left_out) = found.bad.entries();
        let mut all = found.structure.clone();
        all.add_all(found.findings.clone());
        let (findings, findings_left_out) = all.entries();
        let mut report = DatasetReport {
            path: self.path.clone(),
            format: self.open.as_ref().map(|open| open.format),
            error: self.error.clone(),
            levels: self.levels.iter().map(Level::report).collect(),
            bad,
            left_out,
            findings,
            findings_left_out,
            time: self.began.elapsed(),
            complete: self.tasks.load(Ordering::Acquire) == 0 && !self.incomplete.load(Ordering::Relaxed),
        };
        report.complete &= !report.is_unread();
        report
    }
}

/// Returns the warnings of a dataset, and those of its layers with their names.
fn warnings_of(open: &OpenDataset) -> impl Iterator<Item = (Option<&str>, &str)> {
    let of_layers = open.dataset.layers().iter().flat_map(|layer| {
        let warnings = layer.levels.iter().flat_map(|level| &level.info().warnings);
        warnings.map(|warning| (Some(&*layer.name), &**warning))
    });
    open.dataset.info().warnings.iter().map(|warning| (None, &**warning)).chain(of_layers)
}

impl Level {
    fn new(layer: &str, array: &Arc<dyn Array>) -> Self {
        Self {
            layer: layer.to_owned(),
            array: Arc::clone(array),
            checked: Counter::default(),
            constant: Counter::default(),
            bad: Counter::default(),
            unread: Counter::default(),
            bytes: Counter::default(),
            given_up: AtomicBool::new(false),
        }
    }

    /// Returns whether no more of its bricks are to be checked.
    pub(super) fn is_given_up(&self) -> bool {
        self.given_up.load(Ordering::Relaxed)
    }

    fn report(&self) -> LevelReport {
        LevelReport {
            layer: self.layer.clone(),
            lod: self.array.info().lod,
            total: self.array.info().grid.total(),
            checked: self.checked.get(),
            constant: self.constant.get(),
            bad: self.bad.get(),
            unread: self.unread.get(),
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
            let job = Job::new(0, "x.zgy".into(), Err((Fault::File, "it is no volume".into())), 10);
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
