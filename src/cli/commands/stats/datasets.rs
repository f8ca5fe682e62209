//! The datasets of a mount: what was read of each since the mount began, and what is read in an interval.
//!
//! Names come last in a line, since they may be long.

use std::cmp::Reverse;

use serde_json::{Map, Value, json};

use super::rates::{self, Rates, hit_rate};
use crate::cli::text::layout::TextLayout;
use crate::cli::text::size::Size;
use crate::cli::text::table::Table;
use crate::cli::text::{escape, width};

/// The most datasets that are shown of one mount, where no terminal bounds them.
pub(crate) const MOST: usize = 5;

/// The least width of a name on a terminal.
const NAME_WIDTH: usize = 20;

/// Adds the datasets of which most was read, if any was.
pub(crate) fn write(layout: &mut TextLayout, status: &Value) {
    let counter = |dataset: &Map<String, Value>, name: &str| dataset.get(name).and_then(Value::as_u64).unwrap_or(0);
    let mut datasets: Vec<_> = rates::datasets(status).filter(|dataset| counter(dataset, "reads") > 0).collect();
    datasets.sort_by_key(|dataset| Reverse(counter(dataset, "bytes_read")));
    if datasets.is_empty() {
        return;
    }
    layout.heading("Datasets");
    let row = |dataset: &&Map<String, Value>| {
        let bytes = |name| Size::of(counter(dataset, name)).to_string();
        vec![
            counter(dataset, "reads").to_string(),
            bytes("bytes_read"),
            bytes("bytes_decoded"),
            hit_rate(counter(dataset, "cache_hits"), counter(dataset, "cache_misses")),
            unless_zero(counter(dataset, "errors")),
            dataset.get("path").and_then(Value::as_str).unwrap_or_default().to_owned(),
        ]
    };
    let rows: Vec<Vec<String>> = datasets.iter().take(MOST).map(row).collect();
    layout.table(&["reads", "delivered", "decoded", "hit rate", "errors", "dataset"], &rows);
    let others = status["other_datasets"]["count"].as_u64().unwrap_or(0);
    let more = others.saturating_add(datasets.len().saturating_sub(MOST) as u64);
    if more > 0 {
        layout.block(&format!("and {more} more"));
    }
}

/// Returns lines about datasets that are active, for a terminal of so many columns: at most `room`, titles included.
pub(crate) fn lines(active: &[(String, &Rates)], room: usize, columns: usize) -> Vec<String> {
    if active.is_empty() || room < 2 {
        return Vec::new();
    }
    let shown = if active.len() < room { active.len() } else { room - 2 };
    let row = |(_, rates): &(String, &Rates)| {
        vec![
            rates.bytes_per_second("bytes_read"),
            rates.per_second("bricks_decoded"),
            rates.bytes_per_second("bytes_decoded"),
            rates.hit_rate(),
            unless_zero(rates.count("errors")),
        ]
    };
    let rows: Vec<Vec<String>> = active.iter().take(shown).map(row).collect();
    let numbers = Table::titled(&["delivered", "bricks", "decoded", "hit rate", "errors"], &rows);
    let wide = numbers.iter().map(|line| width::columns(line)).max().unwrap_or(0);
    let names = std::iter::once("dataset").chain(active.iter().map(|(name, _)| name.as_str()));
    let line = |(numbers, name): (&String, &str)| {
        let room = columns.saturating_sub(wide + 2).max(NAME_WIDTH);
        format!("{numbers:<wide$}  {}", width::truncated_start(&escape::text(name), room))
    };
    let mut lines: Vec<String> = numbers.iter().zip(names).map(line).collect();
    if shown < active.len() {
        lines.push(format!("  and {} more", active.len() - shown));
    }
    lines
}

/// Returns the datasets that were active, as JSON.
pub(crate) fn objects(rates: &Rates) -> Vec<Value> {
    let object = |(path, rates): &(String, Rates)| json!({"path": path, "increase": counted(rates), "hit_rate": rates.hit_share()});
    rates.datasets.iter().map(object).collect()
}

/// Returns how much each counter grew, as JSON.
pub(crate) fn counted(rates: &Rates) -> Map<String, Value> {
    rates.counted.iter().map(|(name, n)| (name.clone(), json!(n))).collect()
}

fn unless_zero(n: u64) -> String {
    if n == 0 { String::new() } else { n.to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rates(bytes: u64, errors: u64) -> Rates {
        let counted = [
            ("bytes_read", bytes),
            ("bricks_decoded", 40),
            ("bytes_decoded", 3 * bytes),
            ("cache_hits", 9),
            ("cache_misses", 1),
            ("errors", errors),
        ];
        let counted = counted.iter().map(|(name, n)| ((*name).to_owned(), *n)).collect();
        Rates { seconds: 2.0, counted, datasets: Vec::new() }
    }

    #[test]
    fn the_datasets_of_which_most_was_read_are_shown() {
        let dataset = |path: &str, bytes: u64| {
            json!({"path": path, "since": 1.0, "reads": 3, "bytes_read": bytes, "bytes_decoded": 2 * bytes,
                   "cache_hits": 3, "cache_misses": 1, "errors": 0})
        };
        let unread = json!({"path": "unread", "reads": 0});
        let mut layout = TextLayout::new(false);
        let status = json!({"datasets": [dataset("a", 1024), unread, dataset("b\u{1b}", 4096)]});
        write(&mut layout, &status);
        assert_eq!(
            layout.text(),
            "Datasets\n  reads  delivered  decoded   hit rate  dataset\n      \
               3  4.00 KiB   8.00 KiB  75 %      b\\u{1b}\n      \
               3  1.00 KiB   2.00 KiB  75 %      a\n"
        );
        let many: Vec<Value> = (0..9).map(|n| dataset(&format!("d{n}"), n)).collect();
        let mut layout = TextLayout::new(false);
        write(&mut layout, &json!({"datasets": many, "other_datasets": {"count": 7}}));
        assert_eq!(layout.text().lines().count(), 1 + 1 + MOST + 1);
        assert!(layout.text().ends_with("  and 11 more\n"), "{}", layout.text());
        let mut layout = TextLayout::new(false);
        write(&mut layout, &json!({"counters": {}}));
        assert_eq!(layout.text(), "", "earlier versions have no list");
    }

    #[test]
    fn active_datasets_fit_the_terminal() {
        let (busy, calm) = (rates(200 << 20, 0), rates(2 << 20, 0));
        let long = format!("{}/north\u{1b}.zgy", "folder".repeat(20));
        let active = [(long, &busy), ("cells".to_owned(), &calm)];
        let text = lines(&active, 10, 80);
        assert_eq!(
            text[..2],
            [
                "  delivered     bricks  decoded       hit rate  dataset".to_owned(),
                format!("  100.00 MiB/s  20/s    300.00 MiB/s  90 %      ...{}/north\\u{{1b}}.zgy", "rfolderfolder"),
            ]
        );
        assert_eq!(text[2], "  1.00 MiB/s    20/s    3.00 MiB/s    90 %      cells");
        assert!(text.iter().all(|line| width::columns(line) <= 80), "{text:?}");
        let failed = rates(0, 3);
        let errors = lines(&[("a".to_owned(), &failed)], 10, 80);
        assert!(errors[0].contains("  errors  dataset") && errors[1].ends_with("       3  a"), "{errors:?}");
        let many: Vec<(String, &Rates)> = (0..30).map(|n| (n.to_string(), &busy)).collect();
        let text = lines(&many, 10, 80);
        assert_eq!((text.len(), text[9].as_str()), (10, "  and 22 more"));
        assert_eq!(lines(&many[..9], 10, 80).len(), 10);
        assert!(lines(&many, 1, 80).is_empty() && lines(&[], 10, 80).is_empty());
    }

    #[test]
    fn json_has_exact_numbers() {
        let mut all = rates(7, 0);
        all.datasets = vec![("a\u{1b}".to_owned(), rates(7, 0))];
        let objects = objects(&all);
        assert_eq!((&objects[0]["path"], &objects[0]["hit_rate"]), (&json!("a\u{1b}"), &json!(0.9)));
        assert_eq!(objects[0]["increase"]["bytes_read"], 7);
    }
}
