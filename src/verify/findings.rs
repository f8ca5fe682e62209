//! The findings of one dataset, as far as there is room for them.

use std::collections::HashSet;

use crate::format::{Finding, Severity};

/// Findings that there was no room for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct LeftOut {
    /// Damage.
    pub damage: u64,
    /// Parts that could not be read.
    pub unread: u64,
    /// Notes.
    pub notes: u64,
}

/// The findings of one dataset.
#[derive(Clone, Debug)]
pub(super) struct FindingList {
    found: Vec<Finding>,
    /// The notes among them: layers and levels have warnings in common.
    notes: HashSet<Finding>,
    /// The most that are kept.
    most: usize,
    left_out: LeftOut,
}

impl FindingList {
    pub(super) fn new(most: usize) -> Self {
        Self { found: Vec::new(), notes: HashSet::new(), most, left_out: LeftOut::default() }
    }

    /// Adds a finding. A note that is there already is not added again.
    pub(super) fn add(&mut self, finding: Finding) {
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
        let left_out = match finding.severity {
            Severity::Damage => &mut self.left_out.damage,
            Severity::Unread => &mut self.left_out.unread,
            Severity::Note => &mut self.left_out.notes,
        };
        *left_out += 1;
    }

    /// Adds all that another list has, and what it left out.
    pub(super) fn add_all(&mut self, other: Self) {
        other.found.into_iter().for_each(|finding| self.add(finding));
        self.left_out.damage += other.left_out.damage;
        self.left_out.unread += other.left_out.unread;
        self.left_out.notes += other.left_out.notes;
    }

    /// Returns whether a part could not be read.
    pub(super) fn has_unread(&self) -> bool {
        self.left_out.unread > 0 || self.found.iter().any(|finding| finding.severity == Severity::Unread)
    }

    /// Adds warnings as notes, each of a layer or of the whole dataset. One that is there already is left out, also as
    /// damage: a warning may have the reason of damage after its own words.
    pub(super) fn add_warnings<'a>(&mut self, warnings: impl Iterator<Item = (Option<&'a str>, &'a str)>) {
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

    /// Returns the findings in order, damage first, and those that there was no room for.
    pub(super) fn entries(&self) -> (Vec<Finding>, LeftOut) {
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
    use std::time::{Duration, Instant};

    use super::*;

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
}
