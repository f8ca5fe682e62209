//! One dataset while it is checked, and the report of what was found.

use std::collections::HashSet;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use super::datasets::{Opened, Retries, VerifyError};
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
    pub(super) fn add_error(&mut self, severity: Severity) {
        match severity {
            Severity::Unread => self.unread += 1,
            Severity::Damage | Severity::Note => self.bad += 1,
        }
    }
}

/// The findings in one dataset, or in a folder that cannot be listed.
#[derive(Clone, Debug)]
pub(crate) struct DatasetReport {
    /// Its path: as it was given, with the path below that.
    pub path: PathBuf,
    pub format: Option<&'static str>,
    /// Why it could not be opened or listed.
    pub error: Option<Finding>,
    pub levels: Vec<LevelReport>,
    /// Bricks that are bad or could not be read, the first ones if there are too many.
    pub bad: Vec<BadBricks>,
    /// Bricks that are not in `bad`.
    pub left_out: LeftOut,
    /// Damage beyond single bricks, other parts that could not be read, and notes.
    pub findings: Vec<Finding>,
    /// Findings that are not in `findings`.
    pub findings_left_out: LeftOut,
    pub time: Duration,
    /// Whether everything was checked, and could be read.
    pub complete: bool,
}

/// The findings in one level of a layer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LevelReport {
    pub layer: String,
    pub lod: usize,
    pub total: u64,
    pub counts: Counts,
}

impl DatasetReport {
    pub(crate) fn is_bad(&self) -> bool {
        self.counts().bad > 0 || self.count(Severity::Damage) > 0
    }

    /// Returns whether the system failed to read anything, of which nothing is known then.
    pub(crate) fn is_unread(&self) -> bool {
        self.counts().unread > 0 || self.count(Severity::Unread) > 0
    }

    pub(crate) fn counts(&self) -> Counts {
        let mut sums = Counts::default();
        self.levels.iter().for_each(|level| sums.add(level.counts));
        sums
    }

    /// Returns the number of findings beyond single bricks; a dataset that does not open is one.
    pub(crate) fn count(&self, severity: Severity) -> u64 {
        let found = self.findings.iter().chain(&self.error).filter(|found| found.severity == severity).count() as u64;
        found + self.findings_left_out[severity as usize]
    }
}

/// How many things of each [`Severity`], by its number, a list has no room for.
pub(crate) type LeftOut = [u64; 3];

/// One dataset while it is checked.
pub(super) struct Job {
    /// Its place in the order of the walk.
    pub(super) number: u64,
    path: PathBuf,
    open: Option<Arc<OpenDataset>>,
    error: Option<Finding>,
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
            Err(error) => (None, Some(*error)),
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
        self.add(place(error.finding()));
    }

    /// Adds a brick that cannot be read; `number` is its number in the grid. The level is abandoned once more than
    /// `most` of its bricks cannot be read.
    pub(super) fn add_bad(&self, number_of_level: usize, at: Dims, number: u64, error: &FormatError, most: u64) {
        if *error == FormatError::Source(SourceError::Changed) {
            return self.add_change();
        }
        let Some(level) = self.levels.get(number_of_level) else { return };
        let mut counts = level.counts.lock();
        counts.add_error(error.severity());
        let Counts { bad, unread, .. } = *counts;
        drop(counts);
        let mut found = self.found.lock();
        found.bad.add(number_of_level, number, at, level.place(error.finding()).of_brick(at));
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
            |result| result.as_ref().is_err_and(VerifyError::may_pass),
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
                self.found.lock().structure.has_unread() || errors.iter().any(VerifyError::may_pass)
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

/// Returns the warnings of a dataset and of its layers.
fn warnings_of(open: &OpenDataset) -> impl Iterator<Item = Finding> {
    let of_layers = open.dataset.layers().iter().flat_map(|layer| {
        let warnings = layer.levels.iter().flat_map(|level| &level.info().warnings);
        warnings.map(|warning| Finding::note(&**warning).of_layer(&layer.name))
    });
    open.dataset.info().warnings.iter().map(|warning| Finding::note(&**warning)).chain(of_layers)
}

impl Level {
    fn new(layer: &str, array: &Arc<dyn Array>) -> Self {
        let (layer, array) = (layer.to_owned(), Arc::clone(array));
        Self { layer, array, counts: Mutex::default(), abandoned: AtomicBool::new(false) }
    }

    pub(super) fn place(&self, finding: Finding) -> Finding {
        finding.of_layer(&self.layer).of_lod(self.array.info().lod)
    }

    /// Adds checked bricks; [`Job::add_bad`] counts those that cannot be read.
    pub(super) fn add(&self, counts: Counts) {
        self.counts.lock().add(Counts { bad: 0, unread: 0, ..counts });
    }

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
    /// The first one, and why it cannot be read. The reasons of the others differ in numbers only.
    pub found: Finding,
    pub last: Dims,
    pub count: u64,
    /// The number of the level among all levels of the dataset.
    level: usize,
    /// The number of the first one in the grid.
    number: u64,
}

/// The bricks of a dataset that cannot be read, up to a number of entries.
#[derive(Debug)]
struct BadBrickList {
    runs: Vec<BadBricks>,
    most: usize,
    left_out: LeftOut,
    /// Merging makes no more room. It is not tried again for each brick: there may be a hundred million.
    full: bool,
}

impl BadBrickList {
    fn new(most: usize) -> Self {
        Self { runs: Vec::new(), most, left_out: [0; 3], full: false }
    }

    /// Adds a brick; `number` is its number in the grid in C order.
    fn add(&mut self, level: usize, number: u64, at: Dims, found: Finding) {
        let run = BadBricks { found, last: at, count: 1, level, number };
        if let Some(run) = append(self.runs.last_mut(), run) {
            if self.runs.len() >= 2 * self.most && !self.full {
                self.merge();
                self.full = self.runs.len() >= self.most;
            }
            if self.full {
                self.left_out[run.found.severity as usize] += 1;
            } else {
                self.runs.push(run);
            }
        }
    }

    /// Sorts the entries and merges those that follow one another: threads add theirs in any order.
    fn merge(&mut self) {
        self.runs.sort_by_key(|run| (run.level, run.number));
        let mut merged: Vec<BadBricks> = Vec::new();
        for run in self.runs.drain(..) {
            let apart = append(merged.last_mut(), run);
            merged.extend(apart);
        }
        self.runs = merged;
    }

    /// Returns the entries in order, and the number of bricks that are in none.
    fn entries(&mut self) -> (Vec<BadBricks>, LeftOut) {
        self.merge();
        let mut left_out = self.left_out;
        self.runs.iter().skip(self.most).for_each(|run| left_out[run.found.severity as usize] += run.count);
        (self.runs.iter().take(self.most).cloned().collect(), left_out)
    }
}

/// Adds bricks to those before them. Returns them if they do not follow them, or for another reason.
fn append(before: Option<&mut BadBricks>, run: BadBricks) -> Option<BadBricks> {
    let is_next = |before: &&mut BadBricks| {
        (before.level, before.number + before.count) == (run.level, run.number)
            && before.found.severity == run.found.severity
            && same_but_for_numbers(&before.found.reason, &run.found.reason)
    };
    let Some(before) = before.filter(is_next) else { return Some(run) };
    (before.last, before.count) = (run.last, before.count + run.count);
    None
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
    most: usize,
    left_out: LeftOut,
}

impl FindingList {
    fn new(most: usize) -> Self {
        Self { found: Vec::new(), notes: HashSet::new(), most, left_out: [0; 3] }
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
        self.left_out[finding.severity as usize] += 1;
    }

    /// Adds the entries of another list, and what it left out.
    fn add_all(&mut self, other: Self) {
        other.found.into_iter().for_each(|finding| self.add(finding));
        self.left_out.iter_mut().zip(other.left_out).for_each(|(own, others)| *own += others);
    }

    fn has_unread(&self) -> bool {
        self.left_out[Severity::Unread as usize] > 0
            || self.found.iter().any(|finding| finding.severity == Severity::Unread)
    }

    /// Adds warnings. A known one is left out, also if it is known as damage: a warning may have the reason of damage after
    /// its own words.
    fn add_warnings(&mut self, warnings: impl Iterator<Item = Finding>) {
        let (notes, damage): (Vec<_>, Vec<_>) =
            self.found.iter().partition(|finding| finding.severity == Severity::Note);
        let mut known: HashSet<String> = notes.iter().map(|note| note.reason.clone()).collect();
        let damage: HashSet<String> =
            damage.iter().flat_map(|finding| tails(&finding.reason)).map(str::to_owned).collect();
        for warning in warnings {
            if !tails(&warning.reason).any(|tail| damage.contains(tail)) && known.insert(warning.reason.clone()) {
                self.add(warning);
            }
        }
    }

    /// Returns the findings in order, damage first, and the number of others.
    fn entries(mut self) -> (Vec<Finding>, LeftOut) {
        self.found.sort_by_key(|found| (found.severity == Severity::Note, found.lod, found.brick));
        (self.found, self.left_out)
    }
}

/// Returns a text, and what follows each colon in it.
fn tails(text: &str) -> impl Iterator<Item = &str> {
    [text].into_iter().chain(text.match_indices(": ").map(|(at, _)| &text[at + 2..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn add(list: &mut BadBrickList, level: usize, number: u64, found: Finding) {
        list.add(level, number, [number].into(), found.of_brick([number].into()));
    }

    fn entries(most: usize, numbers: impl IntoIterator<Item = u64>) -> (Vec<(u64, u64)>, u64) {
        let mut list = BadBrickList::new(most);
        for number in numbers {
            let reason = format!("brick at byte {} ends beyond the end", number * 100);
            add(&mut list, 0, number, Finding::damage(reason));
        }
        let (entries, [damage, ..]) = list.entries();
        (entries.iter().map(|run| (run.found.brick.unwrap()[0], run.count)).collect(), damage)
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
        let damage = || Finding::damage("the same words");
        let unread = || Finding::unread("the same words");
        for (number, found) in (0..).zip([damage(), unread(), unread(), damage(), unread()]) {
            add(&mut list, 0, number, found);
        }
        let (entries, left_out) = list.entries();
        let entries: Vec<_> = entries.iter().map(|run| (run.found.clone(), run.count)).collect();
        assert_eq!(entries, [(damage().of_brick([0].into()), 1), (unread().of_brick([1].into()), 2)]);
        assert_eq!(left_out, [1, 1, 0]);
    }

    #[test]
    fn only_numbers_may_differ_in_a_reason() {
        assert!(same_but_for_numbers("brick entry 0xc1ab is [1, 2]", "brick entry 0x9f is [3, 4]"));
        assert!(!same_but_for_numbers("brick at byte 5", "chunk at byte 5"));
        let mut list = BadBrickList::new(10);
        add(&mut list, 0, 0, Finding::damage("one"));
        add(&mut list, 0, 1, Finding::damage("another"));
        add(&mut list, 1, 2, Finding::damage("another"));
        assert_eq!(list.entries().0.len(), 3);
    }

    fn reasons(list: &FindingList) -> Vec<String> {
        list.clone().entries().0.into_iter().map(|finding| finding.reason).collect()
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
        list.add_warnings(warnings.into_iter().map(Finding::note));
        assert_eq!(reasons(&list), ["mag 2: header.wkw is empty", "it is old", "mag 4: is empty"]);
        list.add_warnings(["it is old", "new"].into_iter().map(|warning| Finding::note(warning).of_layer("color")));
        assert_eq!(
            list.clone().entries().0.last(),
            Some(&Finding::note("new").of_layer("color")),
            "{:?}",
            reasons(&list)
        );
    }

    #[test]
    fn what_there_is_no_room_for_is_counted() {
        let mut list = FindingList::new(2);
        (0..5).for_each(|n| list.add(Finding::note(format!("note {}", n / 2))));
        list.add(Finding::note("note 0"));
        list.add(Finding::damage("damage"));
        list.add(Finding::unread("unread"));
        assert_eq!(reasons(&list), ["note 0", "note 1"]);
        assert_eq!(list.left_out, [1, 1, 1]);
        let mut all = FindingList::new(10);
        all.add(Finding::note("note 1"));
        all.add_all(list);
        assert_eq!((reasons(&all), all.left_out[0]), (vec!["note 1".to_owned(), "note 0".to_owned()], 1));
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
        list.add_warnings(warnings.iter().map(Finding::note));
        let notes = FindingList::new(100_000);
        let mut other = FindingList { most: 200_000, ..notes };
        warnings.iter().for_each(|warning| other.add(Finding::note(warning)));
        assert!(began.elapsed() < Duration::from_secs(20), "{:?}", began.elapsed());
        assert_eq!((list.left_out[2], other.found.len()), (100_000, 100_000));
    }

    #[test]
    fn a_change_is_one_finding_and_the_end_and_other_errors_have_their_places() {
        let finding = |times: usize, error: FormatError| {
            let job = Job::new(0, "x.zgy".into(), Err(Box::new(Finding::note("a note"))), 10);
            (0..times).for_each(|lod| job.add_failure(&error, |found| found.of_lod(lod)));
            let found = job.found.lock().findings.clone().entries().0;
            (job.is_over(), found.into_iter().filter(|found| found.reason != "a note").collect::<Vec<_>>())
        };
        let changed = Finding::damage("it changed while it was checked; verify it again");
        for times in [1, 2] {
            assert_eq!(finding(times, SourceError::Changed.into()), (true, vec![changed.clone()]));
        }
        let (is_over, found) = finding(2, FormatError::Damaged("its table is odd".into()));
        assert_eq!((is_over, found.iter().map(|found| found.lod).collect()), (false, vec![Some(0), Some(1)]));
    }

    #[test]
    fn a_report_is_complete_only_if_no_task_was_left_out() {
        for (left_out, complete) in [(false, true), (true, false)] {
            let job = Job::new(0, "x.zgy".into(), Err(Box::new(Finding::damage("it is not a volume"))), 10);
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
