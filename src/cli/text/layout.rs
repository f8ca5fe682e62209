//! Lays out text for people: headings, lines of a label and a value, tables. Control characters in text from data are
//! escaped here.

use std::fmt::Write as _;

use super::table::Table;
use super::{escape, width};

const BOLD: &str = "\x1b[1m";
const DIM: &str = "\x1b[2m";
const GOOD: &str = "\x1b[32m";
const WARNING: &str = "\x1b[33m";
const BAD: &str = "\x1b[31m";
const PLAIN: &str = "\x1b[0m";

/// The width of a label, in columns.
const LABEL_WIDTH: usize = 17;

/// The width of the label of an item, in columns.
const ITEM_WIDTH: usize = 9;

/// The colour of an item, by its meaning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tone {
    /// As it should be.
    Good,
    /// Worth knowing.
    Careful,
    /// A problem.
    Bad,
}

/// Text that grows downwards.
#[derive(Debug, Default)]
pub(crate) struct TextLayout {
    text: String,
    coloured: bool,
}

impl TextLayout {
    /// Makes an empty text.
    pub(crate) fn new(coloured: bool) -> Self {
        Self { text: String::new(), coloured }
    }

    /// Returns all that was written.
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// Adds a heading, with an empty line before it unless it is the first line.
    pub(crate) fn heading(&mut self, text: &str) {
        if !self.text.is_empty() {
            self.text.push('\n');
        }
        self.painted(BOLD, text);
    }

    /// Adds a line with a label and its value, if there is a value.
    pub(crate) fn row(&mut self, label: &str, value: Option<String>) {
        let Some(value) = value else { return };
        let label = escape::text(label);
        let gap = LABEL_WIDTH.saturating_sub(width::columns(&label)).max(1);
        let (on, off) = self.paint(DIM);
        let value = escape::text(&value);
        // writing to a String cannot fail, here and below
        let _ = writeln!(self.text, "  {on}{label}{off}{:gap$}{value}", "");
    }

    /// Adds a warning.
    pub(crate) fn warning(&mut self, text: &str) {
        self.text.push_str("  ");
        self.painted(WARNING, text);
    }

    /// Adds an item: a label and a text, and `more`, such as a remedy, in the next line.
    pub(crate) fn item(&mut self, tone: Tone, label: &str, text: &str, more: Option<&str>) {
        let (on, off) = self.paint(match tone {
            Tone::Good => GOOD,
            Tone::Careful => WARNING,
            Tone::Bad => BAD,
        });
        let gap = ITEM_WIDTH.saturating_sub(width::columns(label)).max(1);
        let _ = writeln!(self.text, "{on}{label}{off}{:gap$}{}", "", escape::text(text));
        if let Some(more) = more {
            let _ = writeln!(self.text, "{:ITEM_WIDTH$}{}", "", escape::text(more));
        }
    }

    /// Adds lines as they are, indented but not escaped: they must not contain text from data.
    pub(crate) fn block(&mut self, lines: &str) {
        for line in lines.lines() {
            let _ = writeln!(self.text, "  {}", line.trim_end());
        }
    }

    /// Adds a table with a line of titles. Columns of numbers are aligned to the right, and columns that are empty in
    /// every row are left out.
    pub(crate) fn table(&mut self, titles: &[&str], rows: &[Vec<String>]) {
        let lines = Table::titled(titles, rows);
        let mut lines = lines.iter();
        lines.by_ref().take(1).for_each(|titles| self.painted(DIM, titles));
        lines.for_each(|line| {
            let _ = writeln!(self.text, "{line}");
        });
    }

    fn painted(&mut self, colour: &str, text: &str) {
        let (on, off) = self.paint(colour);
        let _ = writeln!(self.text, "{on}{}{off}", escape::text(text));
    }

    fn paint<'a>(&self, colour: &'a str) -> (&'a str, &'a str) {
        if self.coloured { (colour, PLAIN) } else { ("", "") }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_and_tables_are_aligned() {
        let mut layout = TextLayout::new(false);
        layout.heading("A");
        layout.row("format", Some("zgy\x1b[1m".into()));
        layout.row("none", None);
        layout.heading("B");
        let row = |a: &str, b: &str| vec![a.to_owned(), b.to_owned(), String::new()];
        layout.table(&["name", "count", "void"], &[row("inline", "5"), row("x", "1000")]);
        assert_eq!(
            layout.text(),
            "A\n  format           zgy\\u{1b}[1m\n\nB\n  name    count\n  inline      5\n  x        1000\n"
        );
    }

    #[test]
    fn items_have_their_remedy_below() {
        let mut layout = TextLayout::new(false);
        layout.item(Tone::Good, "ok", "a", None);
        layout.item(Tone::Bad, "problem", "b\x1b", Some("type: c"));
        assert_eq!(layout.text(), "ok       a\nproblem  b\\u{1b}\n         type: c\n");
        let mut layout = TextLayout::new(true);
        layout.item(Tone::Careful, "note", "a", None);
        assert_eq!(layout.text(), "\x1b[33mnote\x1b[0m     a\n");
    }

    #[test]
    fn colours_are_for_terminals() {
        let mut layout = TextLayout::new(true);
        layout.heading("A");
        layout.warning("w\x07");
        assert_eq!(layout.text(), "\x1b[1mA\x1b[0m\n  \x1b[33mw\\u{7}\x1b[0m\n");
    }
}
