//! Lays out cells in columns. Control characters in cells are escaped here, since cells may come from data.

use super::escape;
use super::width;

/// Columns between two cells.
const GAP: usize = 2;

/// A table whose rows arrive one after another. A column only ever grows, so that later rows stay aligned with earlier
/// ones.
#[derive(Debug)]
pub(crate) struct Table {
    columns: Vec<Column>,
    /// Spaces before each line.
    indent: usize,
    /// The largest width of a column. A wider cell pushes the cells after it aside.
    max_width: usize,
}

#[derive(Clone, Copy, Debug, Default)]
struct Column {
    width: usize,
    right: bool,
}

impl Table {
    /// Makes a table without rows, whose columns become at most `max_width` wide.
    pub(crate) fn new(max_width: usize) -> Self {
        Self { columns: Vec::new(), indent: 0, max_width }
    }

    /// Returns the lines of a whole table, the titles first. A column of numbers is aligned to the right, and a column
    /// whose cells are all empty is left out.
    pub(crate) fn titled(titles: &[&str], rows: &[Vec<String>]) -> Vec<String> {
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
    pub(crate) fn lines(&mut self, rows: Vec<Vec<String>>) -> Vec<String> {
        let escaped = |row: Vec<String>| row.iter().map(|cell| escape::text(cell).into_owned()).collect();
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
                column.width = column.width.max(width::columns(cell).min(self.max_width));
            }
        }
    }

    fn line(&self, row: &[String]) -> String {
        let mut line = " ".repeat(self.indent);
        for (column, cell) in self.columns.iter().zip(row) {
            let space = " ".repeat(column.width.saturating_sub(width::columns(cell)));
            let (before, after) = if column.right { (space.as_str(), "") } else { ("", space.as_str()) };
            line.extend([before, cell, after, &" ".repeat(GAP)]);
        }
        line.truncate(line.trim_end().len());
        line
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
}
