//! Lays out text for people: headings, labelled values, findings, tables and histograms. Control characters in text from
//! data are escaped here.

use std::fmt::{Display, Write as _};

use unicode_width::UnicodeWidthStr;

use super::text::escaped;

const BOLD: &str = "\x1b[1m";
const DIM: &str = "\x1b[2m";
const GOOD: &str = "\x1b[32m";
const WARNING: &str = "\x1b[33m";
const BAD: &str = "\x1b[31m";
const PLAIN: &str = "\x1b[0m";

/// The width of a label, in columns.
const LABEL_WIDTH: usize = 17;

/// The width of the level of a finding, in columns.
const LEVEL_WIDTH: usize = 9;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Level {
    Ok,
    Note,
    /// Prevents what is asked for.
    Problem,
}

impl Level {
    /// Returns the name that is printed, also in JSON.
    pub(super) fn name(self) -> &'static str {
        ["ok", "note", "problem"][self as usize]
    }
}

/// Text that grows downwards.
pub(super) struct TextLayout {
    text: String,
    coloured: bool,
}

impl TextLayout {
    pub(super) fn new(coloured: bool) -> Self {
        Self { text: String::new(), coloured }
    }

    pub(super) fn text(&self) -> &str {
        &self.text
    }

    /// Adds a heading, with an empty line before it unless it is the first line.
    pub(super) fn heading(&mut self, text: &str) {
        if !self.text.is_empty() {
            self.text.push('\n');
        }
        self.painted(BOLD, text);
    }

    /// Adds a line with a label and its value, if there is a value.
    pub(super) fn row(&mut self, label: &str, value: Option<impl Display>) {
        let Some(value) = value else { return };
        let label = escaped(label);
        let gap = LABEL_WIDTH.saturating_sub(label.width()).max(1);
        let (on, off) = self.paint(DIM);
        // writing to a String cannot fail, here and below
        let _ = writeln!(self.text, "  {on}{label}{off}{:gap$}{}", "", escaped(&value.to_string()));
    }

    pub(super) fn warning(&mut self, text: &str) {
        self.text.push_str("  ");
        self.painted(WARNING, text);
    }

    /// Adds a finding, with its remedy in the next line.
    pub(super) fn finding(&mut self, level: Level, text: &str, remedy: Option<&str>) {
        let (on, off) = self.paint([GOOD, WARNING, BAD][level as usize]);
        let name = level.name();
        let gap = LEVEL_WIDTH - name.len();
        let _ = writeln!(self.text, "{on}{name}{off}{:gap$}{}", "", escaped(text));
        if let Some(remedy) = remedy {
            let _ = writeln!(self.text, "{:LEVEL_WIDTH$}{}", "", escaped(remedy));
        }
    }

    /// Adds lines as they are, indented but not escaped: they must not contain text from data.
    pub(super) fn block(&mut self, lines: &str) {
        for line in lines.lines() {
            let _ = writeln!(self.text, "  {}", line.trim_end());
        }
    }

    /// Adds a table with a line of titles, if there are rows. Columns of numbers are aligned to the right, and columns
    /// that are empty in every row are left out.
    pub(super) fn table(&mut self, titles: &[&str], rows: impl IntoIterator<Item = Vec<String>>) {
        let rows: Vec<Vec<String>> = rows.into_iter().collect();
        let lines = Table::titled(titles, &rows);
        if let [titles, rows @ ..] = lines.as_slice()
            && !rows.is_empty()
        {
            self.painted(DIM, titles);
            self.text.extend(rows.iter().flat_map(|line| [line.as_str(), "\n"]));
        }
    }

    fn painted(&mut self, colour: &str, text: &str) {
        let (on, off) = self.paint(colour);
        let _ = writeln!(self.text, "{on}{}{off}", escaped(text));
    }

    fn paint<'a>(&self, colour: &'a str) -> (&'a str, &'a str) {
        if self.coloured { (colour, PLAIN) } else { ("", "") }
    }
}

/// Columns between two cells.
const GAP: usize = 2;

/// A table whose rows arrive one after another. A column only ever grows, so that later rows stay aligned with earlier
/// ones.
pub(super) struct Table {
    columns: Vec<Column>,
    /// Spaces before each line.
    indent: usize,
    /// The largest width of a column. A wider cell pushes the cells after it aside.
    max_width: usize,
}

#[derive(Clone, Default)]
struct Column {
    width: usize,
    right: bool,
}

impl Table {
    /// Makes a table without rows, whose columns become at most `max_width` wide.
    pub(super) fn new(max_width: usize) -> Self {
        Self { columns: Vec::new(), indent: 0, max_width }
    }

    /// Returns the lines of a whole table, the titles first. A column of numbers is aligned to the right, and a column
    /// whose cells are all empty is left out.
    pub(super) fn titled(titles: &[&str], rows: &[Vec<String>]) -> Vec<String> {
        let cell = |row: &[String], n: usize| row.get(n).cloned().unwrap_or_default();
        let used = |n: &usize| rows.iter().any(|row| !cell(row, *n).is_empty());
        let used: Vec<usize> = (0..titles.len()).filter(used).collect();
        let number = |text: &str| text.is_empty() || text.parse::<f64>().is_ok();
        let right = |n: usize| rows.iter().all(|row| number(&cell(row, n)));
        let columns = used.iter().map(|n| Column { width: 0, right: right(*n) }).collect();
        let mut table = Self { columns, indent: GAP, max_width: usize::MAX };
        let titles = used.iter().map(|n| titles[*n].to_owned()).collect();
        let rows = rows.iter().map(|row| used.iter().map(|n| cell(row, *n)).collect());
        table.lines(std::iter::once(titles).chain(rows).collect())
    }

    /// Adds rows and returns their lines, without line ends.
    pub(super) fn lines(&mut self, rows: Vec<Vec<String>>) -> Vec<String> {
        let escaped = |row: Vec<String>| row.iter().map(|cell| escaped(cell).into_owned()).collect();
        let rows: Vec<Vec<String>> = rows.into_iter().map(escaped).collect();
        rows.iter().for_each(|row| self.widen(row));
        rows.iter().map(|row| self.line(row)).collect()
    }

    /// Widens the columns to the cells of a row. The last cell needs no width unless it is aligned to the right.
    fn widen(&mut self, row: &[String]) {
        if self.columns.len() < row.len() {
            self.columns.resize(row.len(), Column::default());
        }
        for (n, (column, cell)) in self.columns.iter_mut().zip(row).enumerate() {
            if column.right || n + 1 < row.len() {
                column.width = column.width.max(cell.width().min(self.max_width));
            }
        }
    }

    fn line(&self, row: &[String]) -> String {
        let mut line = " ".repeat(self.indent);
        for (column, cell) in self.columns.iter().zip(row) {
            let space = " ".repeat(column.width.saturating_sub(cell.width()));
            let (before, after) = if column.right { (space.as_str(), "") } else { ("", space.as_str()) };
            line.extend([before, cell, after, &" ".repeat(GAP)]);
        }
        line.truncate(line.trim_end().len());
        line
    }
}

/// The largest width of a chart, in columns.
const MAX_WIDTH: usize = 64;

/// The height of a chart, in lines.
const HEIGHT: usize = 6;

/// The heights of a character, in eighths of a line.
const EIGHTHS: [char; 9] = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

#[derive(Debug, PartialEq)]
pub(super) struct Chart {
    pub(super) lines: String,
    pub(super) width: usize,
    /// Share of all samples in the highest column.
    pub(super) highest: f64,
}

/// Draws `bins`, several in one column if there are many. Negative counts, which only a damaged file has, are taken as
/// 0. Returns `None` if there is nothing to draw.
pub(super) fn histogram(bins: &[f64]) -> Option<Chart> {
    let per_column = bins.len().div_ceil(MAX_WIDTH).max(1);
    let sums: Vec<f64> = bins.chunks(per_column).map(|part| part.iter().map(|n| n.max(0.0)).sum()).collect();
    let total: f64 = sums.iter().sum();
    let highest = sums.iter().copied().fold(0.0, f64::max);
    if highest <= 0.0 || !total.is_finite() {
        return None;
    }
    let steps = (HEIGHT * 8) as f64;
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "between 0 and the number of steps")]
    let heights: Vec<usize> = sums
        .iter()
        // a column that is not empty must be visible
        .map(|sum| if *sum > 0.0 { ((sum / highest * steps).round() as usize).max(1) } else { 0 })
        .collect();
    let mut lines = String::new();
    for line in (0..HEIGHT).rev() {
        lines.extend(heights.iter().map(|height| EIGHTHS[height.saturating_sub(line * 8).min(8)]));
        lines.push('\n');
    }
    Some(Chart { lines, width: heights.len(), highest: highest / total })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_and_tables_are_aligned() {
        let mut layout = TextLayout::new(false);
        layout.heading("A");
        layout.row("format", Some("zgy\x1b[1m"));
        layout.row("none", None::<u64>);
        layout.heading("B");
        let row = |a: &str, b: &str| vec![a.to_owned(), b.to_owned(), String::new()];
        layout.table(&["name", "count", "void"], []);
        layout.table(&["name", "count", "void"], [row("inline", "5"), row("x", "1000")]);
        assert_eq!(
            layout.text(),
            "A\n  format           zgy\\u{1b}[1m\n\nB\n  name    count\n  inline      5\n  x        1000\n"
        );
    }

    #[test]
    fn findings_have_their_remedy_below() {
        let mut layout = TextLayout::new(false);
        layout.finding(Level::Ok, "a", None);
        layout.finding(Level::Problem, "b\x1b", Some("type: c"));
        assert_eq!(layout.text(), "ok       a\nproblem  b\\u{1b}\n         type: c\n");
        let mut layout = TextLayout::new(true);
        layout.finding(Level::Note, "a", None);
        assert_eq!(layout.text(), "\x1b[33mnote\x1b[0m     a\n");
    }

    #[test]
    fn colours_are_for_terminals() {
        let mut layout = TextLayout::new(true);
        layout.heading("A");
        layout.warning("w\x07");
        assert_eq!(layout.text(), "\x1b[1mA\x1b[0m\n  \x1b[33mw\\u{7}\x1b[0m\n");
    }

    fn row(cells: &[&str]) -> Vec<String> {
        cells.iter().map(|cell| (*cell).to_owned()).collect()
    }

    #[test]
    fn columns_never_shrink() {
        let mut table = Table::new(8);
        assert_eq!(
            table.lines(vec![
                row(&["a/north", "x", "1"]),
                row(&["b", "a reason, which may be long"]),
                row(&["c", "y"])
            ]),
            ["a/north  x  1", "b        a reason, which may be long", "c        y"]
        );
        assert_eq!(table.lines(vec![row(&["c", "y", "1"])]), ["c        y  1"]);
        assert_eq!(table.lines(vec![row(&["longer than 8", "y", "1"])]), ["longer than 8  y  1"]);
        assert_eq!(table.lines(vec![row(&["c", "y", "1"])]), ["c         y  1"]);
    }

    #[test]
    fn numbers_are_aligned_to_the_right_and_empty_columns_left_out() {
        let rows = [row(&["inline", "5", "", "1"]), row(&["x\x1b", "1000", "", "one"])];
        assert_eq!(
            Table::titled(&["name", "count", "void", "last"], &rows),
            ["  name     count  last", "  inline       5  1", "  x\\u{1b}   1000  one"]
        );
    }

    #[test]
    fn wide_characters_take_two_columns() {
        let names = [row(&["脳皮質.zgy", "data", "1"]), row(&["north.zgy", "데이터", "20"])];
        assert_eq!(Table::new(48).lines(names.to_vec()), ["脳皮質.zgy  data    1", "north.zgy   데이터  20"]);
        assert_eq!(
            Table::titled(&["name", "layer", "n"], &names),
            ["  name        layer    n", "  脳皮質.zgy  data     1", "  north.zgy   데이터  20"]
        );
    }

    #[test]
    fn columns_have_their_heights() {
        let chart = histogram(&[0.0, 1.0, 24.0, 48.0, -5.0]).unwrap();
        assert_eq!(chart.lines, "   █ \n   █ \n   █ \n  ██ \n  ██ \n ▁██ \n");
        assert_eq!((chart.width, chart.highest), (5, 48.0 / 73.0));
    }

    #[test]
    fn many_bins_share_columns() {
        let chart = histogram(&[1.0; 256]).unwrap();
        assert_eq!(chart.width, 64);
        assert!(chart.lines.lines().all(|line| line == "█".repeat(64)));
        assert_eq!(histogram(&vec![1.0; 1000]).unwrap().width, 63);
    }

    #[test]
    fn an_empty_histogram_is_not_drawn() {
        assert_eq!(histogram(&[]), None);
        assert_eq!(histogram(&[0.0, -1.0]), None);
        assert_eq!(histogram(&[f64::NAN]), None);
        assert_eq!(histogram(&[f64::INFINITY]), None);
    }
}
