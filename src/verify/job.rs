//! One dataset while it is checked, and the report of what was found.

use std::collections::HashSet;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use super::datasets::{Opened, Retries};
use super::error_origin::{ErrorOrigin, HasOrigin};
use crate::catalog::OpenDataset;
use crate::format::{Array, Finding, FormatError, Severity};
use crate::source::SourceError;
use crate::sync::Mutex;
use crate::volume::Dims;

/// Figures about bricks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    /// Bricks that were checked, or that have no bytes.
    pub checked: u64,
    /// Of these, bricks that have no bytes.
    pub constant: u64,
    /// Of these, bricks that are bad.
    pub bad: u64,
    /// Of these, bricks that the system failed to read.
    pub unread: u64,
    /// Bytes in the source of the bricks that were checked.
    pub bytes: u64,
}

impl Counts {
    pub(crate) fn add(&mut self, other: Self) {
        self.checked = self.checked.saturating_add(other.checked);
        self.constant = self.constant.saturating_add(other.constant);
        self.bad = self.bad.saturating_add(other.bad);
        self.unread = self.unread.saturating_add(other.unread);
        self.bytes = self.bytes.saturating_add(other.bytes);
    }

    /// Counts a brick that cannot be read.
    pub(super) fn add_error(&mut self, origin: ErrorOrigin) {
        match origin {
            ErrorOrigin::File => self.bad += 1,
            ErrorOrigin::System => self.unread += 1,
        }
    }
}

/// The findings in one dataset, or in a folder that cannot be listed.
#[derive(Clone, Debug)]
pub(crate) struct DatasetReport {
    /// Its path: as it was given, with the path below that.
    pub path: PathBuf,
    /// Its format, if it could be opened.
    pub format: Option<&'static str>,
    /// Why it could not be opened or listed.
    pub error: Option<(ErrorOrigin, String)>,
    /// Every level of every layer.
    pub levels: Vec<LevelReport>,
    /// Bricks that are bad or could not be read, the first ones if there are too many.
    pub bad: Vec<BadBricks>,
    /// Bricks that are not in `bad`.
    pub left_out: LeftOut,
    /// Damage beyond single bricks, other parts that could not be read, and notes.
    pub findings: Vec<Finding>,
    /// Findings that are not in `findings`.
    pub findings_left_out: LeftOut,
    /// The time that it took.
    pub time: Duration,
    /// Whether everything was checked, and could be read.
    pub complete: bool,
}

/// The findings in one level of a layer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LevelReport {
    pub layer: String,
    pub lod: usize,
    /// Bricks of the grid.
    pub total: u64,
    pub counts: Counts,
}

impl DatasetReport {
    /// Returns whether anything is damaged.
    pub(crate) fn is_bad(&self) -> bool {
        self.counts().bad > 0 || self.faults() > 0
    }

    /// Returns whether the system failed to read anything, of which nothing is known then.
    pub(crate) fn is_unread(&self) -> bool {
        self.counts().unread > 0 || self.unread_parts() > 0
    }

    /// Returns the sums of all levels.
    pub(crate) fn counts(&self) -> Counts {
        let mut sums = Counts::default();
        self.levels.iter().for_each(|level| sums.add(level.counts));
        sums
    }

    /// Returns the number of faults beyond single bricks; a dataset that does not open is one.
    pub(crate) fn faults(&self) -> u64 {
        self.count(ErrorOrigin::File) + self.findings_left_out.damage
    }

    /// Returns the number of parts other than bricks that the system failed to read.
    pub(crate) fn unread_parts(&self) -> u64 {
        self.count(ErrorOrigin::System) + self.findings_left_out.unread
    }

    fn count(&self, origin: ErrorOrigin) -> u64 {
        let findings = self.findings.iter().filter(|found| found.severity == origin.severity()).count() as u64;
        findings + u64::from(self.error.as_ref().is_some_and(|(of, _)| *of == origin))
    }
}

/// What a list has no room for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct LeftOut {
    pub damage: u64,
    /// Bricks or other parts that the system failed to read.
    pub unread: u64,
    pub notes: u64,
}

impl LeftOut {
    fn add(&mut self, severity: Severity, count: u64) {
        match severity {
            Severity::Damage => self.damage += count,
            Severity::Unread => self.unread += count,
            Severity::Note => self.notes += count,
        }
    }
}

/// One dataset while it is checked.
pub(super) struct Job {
    /// Its place in the order of the walk.
    pub(super) number: u64,
    path: PathBuf,
    open: Option<Arc<OpenDataset>>,
    error: Option<(ErrorOrigin, String)>,
    pub(super) levels: Vec<Level>,
    found: Mutex<Found>,
    /// The most entries of each list.
    most: usize,
    retries: Retries,
    began: Instant,
    /// Tasks that are not done, and one more until all of them have been made.
    tasks: AtomicUsize,
    /// The check has ended early, since the dataset changed.
    over: AtomicBool,
    /// A part was left out.
    incomplete: AtomicBool,
}

/// A level of a layer, and its figures.
pub(super) struct Level {
    layer: String,
    pub(super) array: Arc<dyn Array>,
    counts: Mutex<Counts>,
    /// Too many of its bricks are bad, so no more of them are checked.
    abandoned: AtomicBool,
}

struct Found {
    bad: BadBrickList,
    findings: FindingList,
    /// The findings of the check of the structure, which may begin anew.
    structure: FindingList,
}

impl Job {
    /// Keeps at most `most` entries in each list of findings.
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

    /// Notes that a part is left out, since it changed or the verification was interrupted. Must be called before the task
    /// of that part ends.
    pub(super) fn leave_out(&self) {
        self.incomplete.store(true, Ordering::Relaxed);
    }

    /// Returns whether the check has ended early.
    pub(super) fn is_over(&self) -> bool {
        self.over.load(Ordering::Relaxed)
    }

    pub(super) fn add(&self, finding: Finding) {
        self.found.lock().findings.add(finding);
    }

    /// Adds an error beyond single bricks.
    pub(super) fn add_failure(&self, error: &FormatError, place: impl FnOnce(Finding) -> Finding) {
        if *error == FormatError::Source(SourceError::Changed) {
            return self.add_change();
        }
        let severity = error.origin().severity();
        self.add(place(Finding { severity, ..Finding::damage(error.to_string()) }));
    }

    /// Adds a brick that cannot be read; `number` is its number in the grid. The level is abandoned once more than
    /// `most` of its bricks cannot be read.
    pub(super) fn add_bad(&self, number_of_level: usize, at: Dims, number: u64, error: &FormatError, most: u64) {
        if *error == FormatError::Source(SourceError::Changed) {
            return self.add_change();
        }
        let Some(level) = self.levels.get(number_of_level) else { return };
        let mut counts = level.counts.lock();
        counts.add_error(error.origin());
        let Counts { bad, unread, .. } = *counts;
        drop(counts);
        let mut found = self.found.lock();
        found.bad.add(number_of_level, at, number, (error.origin(), &error.to_string()));
        if bad + unread > most && !level.abandoned.swap(true, Ordering::Relaxed) {
            let text = format!("more than {most} of its bricks cannot be read; no more of them were checked");
            let finding = if bad > 0 { Finding::damage(text) } else { Finding::unread(text) };
            found.findings.add(level.place(finding));
        }
    }

    /// Returns the result of `work`; retries an error that may pass.
    pub(super) fn with_retries<T>(
        &self,
        is_stopped: impl Fn() -> bool,
        work: impl FnMut() -> Result<T, FormatError>,
    ) -> Result<T, FormatError> {
        self.retries.run(
            || is_stopped() || self.is_over(),
            |result| result.as_ref().is_err_and(HasOrigin::may_pass),
            work,
        )
    }

    /// Notes that the dataset has changed: the findings so far are useless, and the rest cannot be read.
    pub(super) fn add_change(&self) {
        if !self.over.swap(true, Ordering::Relaxed) {
            self.add(Finding::damage("it changed while it was checked; verify it again"));
        }
    }

    /// Checks everything but the bricks: structure, metadata, layers that cannot be shown.
    pub(super) fn check_structure(&self, is_stopped: impl Fn() -> bool) {
        let Some(open) = &self.open else { return };
        let errors = self.retries.run(
            || is_stopped() || self.is_over(),
            |errors: &Vec<FormatError>| {
                self.found.lock().structure.has_unread() || errors.iter().any(HasOrigin::may_pass)
            },
            || self.find_in_structure(open),
        );
        self.found.lock().structure.add_warnings(warnings_of(open));
        errors.iter().for_each(|error| self.add_failure(error, |found| found));
    }

    /// Checks the structure anew. Returns the errors that ended the check.
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

    /// Returns the findings so far.
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
        let (layer, array) = (layer.to_owned(), Arc::clone(array));
        Self { layer, array, counts: Mutex::default(), abandoned: AtomicBool::new(false) }
    }

    /// Limits a finding to this level.
    pub(super) fn place(&self, finding: Finding) -> Finding {
        finding.of_layer(&self.layer).of_lod(self.array.info().lod)
    }

    /// Adds checked bricks; [`Job::add_bad`] counts those that cannot be read.
    pub(super) fn add(&self, counts: Counts) {
        self.counts.lock().add(Counts { bad: 0, unread: 0, ..counts });
    }

    /// Returns whether no more of its bricks are checked.
    pub(super) fn is_abandoned(&self) -> bool {
        self.abandoned.load(Ordering::Relaxed)
    }

    fn report(&self) -> LevelReport {
        let info = self.array.info();
        LevelReport { layer: self.layer.clone(), lod: info.lod, total: info.grid.total(), counts: *self.counts.lock() }
    }
}

/// Bricks of one level that follow one another in C order and cannot be read for the same reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct BadBricks {
    /// The number of the level among all levels of the dataset.
    pub level: usize,
    /// The index of the first one.
    pub first: Dims,
    /// The index of the last one.
    pub last: Dims,
    pub count: u64,
    pub origin: ErrorOrigin,
    /// The reason for the first one. Those of the others differ in numbers only.
    pub reason: String,
    /// The number of the first one in the grid.
    number: u64,
}

/// The bricks of a dataset that cannot be read, up to a number of entries.
#[derive(Debug)]
struct BadBrickList {
    runs: Vec<BadBricks>,
    /// The most entries.
    most: usize,
    left_out: LeftOut,
    /// Merging makes no more room. It is not tried again for each brick: there may be a hundred million.
    full: bool,
}

impl BadBrickList {
    fn new(most: usize) -> Self {
        Self { runs: Vec::new(), most, left_out: LeftOut::default(), full: false }
    }

    /// Adds a brick; `number` is its number in the grid in C order.
    fn add(&mut self, level: usize, at: Dims, number: u64, (origin, reason): (ErrorOrigin, &str)) {
        if let Some(run) = self.runs.last_mut()
            && run.continues_with(level, number, (origin, reason))
        {
            (run.last, run.count) = (at, run.count + 1);
            return;
        }
        if self.runs.len() >= 2 * self.most && !self.full {
            self.merge();
            self.full = self.runs.len() >= self.most;
        }
        if self.full {
            self.left_out.add(origin.severity(), 1);
            return;
        }
        self.runs.push(BadBricks { level, first: at, last: at, count: 1, origin, reason: reason.to_owned(), number });
    }

    /// Sorts the entries and merges those that follow one another: threads add theirs in any order.
    fn merge(&mut self) {
        self.runs.sort_by_key(|run| (run.level, run.number));
        let mut merged: Vec<BadBricks> = Vec::new();
        for run in self.runs.drain(..) {
            match merged.last_mut() {
                Some(before) if before.continues_with(run.level, run.number, (run.origin, &run.reason)) => {
                    (before.last, before.count) = (run.last, before.count + run.count);
                }
                _ => merged.push(run),
            }
        }
        self.runs = merged;
    }

    /// Returns the entries in order, and the number of bricks that are in none.
    fn entries(&mut self) -> (Vec<BadBricks>, LeftOut) {
        self.merge();
        let mut left_out = self.left_out;
        self.runs.iter().skip(self.most).for_each(|run| left_out.add(run.origin.severity(), run.count));
        (self.runs.iter().take(self.most).cloned().collect(), left_out)
    }
}

impl BadBricks {
    fn continues_with(&self, level: usize, number: u64, (origin, reason): (ErrorOrigin, &str)) -> bool {
        (self.level, self.origin) == (level, origin)
            && self.number + self.count == number
            && same_but_for_numbers(&self.reason, reason)
    }
}

/// Returns whether two texts are the same apart from the numbers in them, hexadecimal ones included.
fn same_but_for_numbers(a: &str, b: &str) -> bool {
    a == b || words(a).eq(words(b))
}

/// Returns the parts of a text, with nothing in place of each part that has a digit.
fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !c.is_alphanumeric())
        .map(|word| if word.contains(|c: char| c.is_ascii_digit()) { "" } else { word })
}

/// The findings of one dataset, up to a number of entries.
#[derive(Clone, Debug)]
struct FindingList {
    found: Vec<Finding>,
    /// The notes among them: layers and levels have warnings in common.
    notes: HashSet<Finding>,
    /// The most that are kept.
    most: usize,
    left_out: LeftOut,
}

impl FindingList {
    fn new(most: usize) -> Self {
        Self { found: Vec::new(), notes: HashSet::new(), most, left_out: LeftOut::default() }
    }

    /// Adds a finding, but no note twice.
    fn add(&mut self, finding: Finding) {
        let is_note = finding.severity == Severity::Note;
        if is_note && self.notes.contains(&finding) {
            return;
        }
        if self.found.len() < self.most {
            if is_note {
                self.notes.insert(finding.clone());
            }
            self.found.push(finding);
            return;
        }
        self.left_out.add(finding.severity, 1);
    }

    /// Adds the entries of another list, and what it left out.
    fn add_all(&mut self, other: Self) {
        other.found.into_iter().for_each(|finding| self.add(finding));
        self.left_out.damage += other.left_out.damage;
        self.left_out.unread += other.left_out.unread;
        self.left_out.notes += other.left_out.notes;
    }

    /// Returns whether a part could not be read.
    fn has_unread(&self) -> bool {
        self.left_out.unread > 0 || self.found.iter().any(|finding| finding.severity == Severity::Unread)
    }

    /// Adds warnings as notes, each of a layer or of the whole dataset. A known one is left out, also if it is known as
    /// damage: a warning may have the reason of damage after its own words.
    fn add_warnings<'a>(&mut self, warnings: impl Iterator<Item = (Option<&'a str>, &'a str)>) {
        let (notes, damage): (Vec<_>, Vec<_>) =
            self.found.iter().partition(|finding| finding.severity == Severity::Note);
        let mut known: HashSet<String> = notes.iter().map(|note| note.reason.clone()).collect();
        let damage: HashSet<String> =
            damage.iter().flat_map(|finding| tails(&finding.reason)).map(str::to_owned).collect();
        for (layer, warning) in warnings {
            if !tails(warning).any(|tail| damage.contains(tail)) && known.insert(warning.to_owned()) {
                let note = Finding::note(warning);
                self.add(match layer {
                    Some(layer) => note.of_layer(layer),
                    None => note,
                });
            }
        }
    }

    /// Returns the findings in order, damage first, and the number of others.
    fn entries(&self) -> (Vec<Finding>, LeftOut) {
        let mut findings = self.found.clone();
        findings.sort_by_key(|found| (found.severity == Severity::Note, found.lod, found.brick));
        (findings, self.left_out)
    }
}

/// Returns a text, and what follows each colon in it.
fn tails(text: &str) -> impl Iterator<Item = &str> {
    [text].into_iter().chain(text.match_indices(": ").map(|(at, _)| &text[at + 2..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entries(most: usize, numbers: impl IntoIterator<Item = u64>) -> (Vec<(u64, u64)>, u64) {
        let mut list = BadBrickList::new(most);
        for number in numbers {
            let reason = format!("brick at byte {} ends beyond the end", number * 100);
            list.add(0, [number].into(), number, (ErrorOrigin::File, &reason));
        }
        let (entries, left_out) = list.entries();
        (entries.iter().map(|run| (run.first[0], run.count)).collect(), left_out.damage)
    }

    #[test]
    fn neighbours_are_one_entry_in_whatever_order_they_come() {
        assert_eq!(entries(10, [4, 5, 6, 1, 2, 3, 9]), (vec![(1, 6), (9, 1)], 0));
        assert_eq!(entries(10, (0..1000).rev()), (vec![(0, 1000)], 0));
        assert_eq!(entries(10, (0..1000).chain(5000..6000)), (vec![(0, 1000), (5000, 1000)], 0));
    }

    #[test]
    fn entries_have_a_most_and_the_others_are_counted() {
        let (entries, left_out) = entries(10, (0..1000).map(|n| 2 * n));
        assert_eq!((entries.len(), left_out), (10, 990));
    }

    #[test]
    fn what_the_system_failed_to_read_is_told_from_what_is_bad() {
        let mut list = BadBrickList::new(2);
        for (number, origin) in (0..).zip([
            ErrorOrigin::File,
            ErrorOrigin::System,
            ErrorOrigin::System,
            ErrorOrigin::File,
            ErrorOrigin::System,
        ]) {
            list.add(0, [number].into(), number, (origin, "the same words"));
        }
        let (entries, left_out) = list.entries();
        let entries: Vec<_> = entries.iter().map(|run| (run.first[0], run.count, run.origin)).collect();
        assert_eq!(entries, [(0, 1, ErrorOrigin::File), (1, 2, ErrorOrigin::System)]);
        assert_eq!(left_out, LeftOut { damage: 1, unread: 1, notes: 0 });
    }

    #[test]
    fn only_numbers_may_differ_in_a_reason() {
        assert!(same_but_for_numbers("brick entry 0xc1ab is [1, 2]", "brick entry 0x9f is [3, 4]"));
        assert!(!same_but_for_numbers("brick at byte 5", "chunk at byte 5"));
        let mut list = BadBrickList::new(10);
        list.add(0, [0].into(), 0, (ErrorOrigin::File, "one"));
        list.add(0, [1].into(), 1, (ErrorOrigin::File, "another"));
        list.add(1, [2].into(), 2, (ErrorOrigin::File, "another"));
        assert_eq!(list.entries().0.len(), 3);
    }

    fn reasons(list: &FindingList) -> Vec<String> {
        list.entries().0.into_iter().map(|finding| finding.reason).collect()
    }

    #[test]
    fn warnings_are_notes_unless_they_are_known_as_damage() {
        let mut list = FindingList::new(10);
        list.add(Finding::damage("mag 2: header.wkw is empty").of_layer("color"));
        let warnings = [
            "layer color: mag 2: header.wkw is empty",
            "it is old",
            "it is old",
            "mag 4: is empty",
            "header.wkw is empty",
        ];
        list.add_warnings(warnings.into_iter().map(|warning| (None, warning)));
        assert_eq!(reasons(&list), ["mag 2: header.wkw is empty", "it is old", "mag 4: is empty"]);
        list.add_warnings([(Some("color"), "it is old"), (Some("color"), "new")].into_iter());
        assert_eq!(list.entries().0.last(), Some(&Finding::note("new").of_layer("color")), "{:?}", reasons(&list));
    }

    #[test]
    fn what_there_is_no_room_for_is_counted() {
        let mut list = FindingList::new(2);
        (0..5).for_each(|n| list.add(Finding::note(format!("note {}", n / 2))));
        list.add(Finding::note("note 0"));
        list.add(Finding::damage("damage"));
        list.add(Finding::unread("unread"));
        assert_eq!(reasons(&list), ["note 0", "note 1"]);
        assert_eq!(list.entries().1, LeftOut { damage: 1, unread: 1, notes: 1 });
        let mut all = FindingList::new(10);
        all.add(Finding::note("note 1"));
        all.add_all(list);
        assert_eq!((reasons(&all), all.left_out.damage), (vec!["note 1".to_owned(), "note 0".to_owned()], 1));
        assert!(all.has_unread());
    }

    #[test]
    fn a_hundred_thousand_notes_take_no_time() {
        let (mut list, began) = (FindingList::new(100_000), Instant::now());
        for n in 0..100_000 {
            list.add(Finding::damage(format!("mag {n}: it is not there")).of_lod(n));
        }
        let warnings: Vec<String> =
            (0..100_000).map(|n| format!("there are two layers called {n}: the first counts")).collect();
        list.add_warnings(warnings.iter().map(|warning| (None, &**warning)));
        let notes = FindingList::new(100_000);
        let mut other = FindingList { most: 200_000, ..notes };
        warnings.iter().for_each(|warning| other.add(Finding::note(warning)));
        assert!(began.elapsed() < Duration::from_secs(20), "{:?}", began.elapsed());
        assert_eq!((list.left_out.notes, other.found.len()), (100_000, 100_000));
    }

    #[test]
    fn a_report_is_complete_only_if_no_task_was_left_out() {
        for (left_out, complete) in [(false, true), (true, false)] {
            let job = Job::new(0, "x.zgy".into(), Err((ErrorOrigin::File, "it is not a volume".into())), 10);
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
