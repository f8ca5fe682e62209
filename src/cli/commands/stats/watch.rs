//! `volfs stats --watch`: what mounts do, at intervals: in place on a terminal, and otherwise in lines.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::io::{self, IsTerminal};
use std::path::PathBuf;
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use console::Term;
use serde_json::{Value, json};

use super::all::{self, Found, State};
use super::rates::{Rates, Sample};
use super::{datasets, failure, one, parse};
use crate::cli::error::CliError;
use crate::cli::mounts::mountpoint;
use crate::cli::mounts::status::{self, Answer, Asker};
use crate::cli::output;
use crate::cli::text::duration::duration;
use crate::cli::text::table::Table;
use crate::cli::text::width;
use crate::logging::timestamp;
use crate::mount::mountinfo;
use crate::view::json::SCHEMA;

/// The largest width of a column of lines.
const MAX_COLUMN_WIDTH: usize = 40;

/// Moves the cursor to the beginning of the line so many lines above.
fn up(lines: usize) -> String {
    if lines == 0 { String::new() } else { format!("\x1b[{lines}F") }
}

/// Clears the rest of a line, and of the screen.
const CLEAR_LINE: &str = "\x1b[K";
const CLEAR_BELOW: &str = "\x1b[J";

/// Prints the rates of one mount, or of all, after each interval, until the reader of the output is gone.
pub(crate) fn run(place: Option<PathBuf>, interval: Duration, json: bool) -> Result<(), CliError> {
    let mut watch = Watch { place, asker: Asker::default(), samples: HashMap::new() };
    let on_terminal = io::stdout().is_terminal() && std::env::var_os("TERM").is_none_or(|term| term != "dumb");
    let mut printer = match (json, on_terminal) {
        (true, _) => Printer::Json,
        (false, true) => Printer::Screen(0),
        (false, false) => Printer::Lines(Table::new(MAX_COLUMN_WIDTH), false),
    };
    watch.look()?;
    let mut next = Instant::now();
    loop {
        next += interval;
        thread::sleep(next.saturating_duration_since(Instant::now()));
        // does not make up for intervals that were missed, for instance while the machine slept
        next = next.max(Instant::now());
        let seen = watch.look()?;
        if !output::part(printer.text(&seen, watch.place.is_some(), interval).as_bytes())? {
            return Ok(());
        }
    }
}

/// The mounts that are watched.
struct Watch {
    place: Option<PathBuf>,
    asker: Asker,
    /// The last counters of each mount.
    samples: HashMap<PathBuf, Sample>,
}

/// A mount, and what it did in the last interval, unless it is new.
struct Seen {
    found: Found,
    rates: Option<Rates>,
}

impl Watch {
    /// Asks all mounts.
    fn look(&mut self) -> Result<Vec<Seen>, CliError> {
        let found = match &self.place {
            None => all::find(&mut self.asker)?,
            Some(place) => {
                let (_, mount) = mountpoint::find_volfs_mount(place, CliError::NotVolfs)?;
                let answer = self.asker.ask(std::slice::from_ref(place), all::TIMEOUT).pop();
                let status = match answer.unwrap_or(Err(Answer::Silent)) {
                    Ok(text) => Ok(parse(place, &text)?),
                    Err(answer @ Answer::Silent) => Err(State::of(answer, &mount)),
                    Err(answer) => return Err(failure(place, answer)),
                };
                let by_status = status.as_ref().ok().and_then(|status| status["source"].as_str()).map(PathBuf::from);
                let source = by_status.unwrap_or_else(|| mountinfo::source_of(&mount).to_owned());
                vec![Found { place: place.clone(), source, status }]
            }
        };
        let mut samples = HashMap::new();
        let seen = found.into_iter().map(|found| {
            let sample = found.status.as_ref().ok().map(Sample::of);
            let before = self.samples.get(&found.place);
            let rates = sample.as_ref().zip(before).and_then(|(sample, before)| sample.since(before));
            // a mount that answers again after a while has done something since its last answer
            samples.extend(sample.or_else(|| before.cloned()).map(|sample| (found.place.clone(), sample)));
            Seen { found, rates }
        });
        let seen = seen.collect();
        self.samples = samples;
        Ok(seen)
    }
}

/// How to print.
enum Printer {
    Json,
    /// In place, over so many lines.
    Screen(usize),
    /// A line for each mount, and whether the titles are printed.
    Lines(Table, bool),
}

impl Printer {
    fn text(&mut self, seen: &[Seen], is_one: bool, interval: Duration) -> String {
        match self {
            Self::Json => seen.iter().map(|seen| format!("{}\n", object(seen))).collect(),
            Self::Lines(table, begun) => {
                let mut rows: Vec<Vec<String>> = seen.iter().flat_map(|seen| rows(seen, is_one)).collect();
                if !std::mem::replace(begun, true) {
                    rows.insert(0, titles(is_one));
                }
                let time = timestamp(SystemTime::now());
                // only the time of the day: `2026-01-31T12:34:56.789Z`
                let time = time.get(11..19).unwrap_or(&time);
                let stamp = |row: Vec<String>| {
                    std::iter::once(if row == titles(is_one) { "UTC" } else { time }.to_owned()).chain(row).collect()
                };
                table.lines(rows.into_iter().map(stamp).collect()).iter().map(|line| format!("{line}\n")).collect()
            }
            Self::Screen(shown) => {
                let (height, columns) = Term::stdout().size();
                let every = format!("every {} s; Ctrl-C ends", interval.as_secs_f64());
                let mut lines = match seen {
                    [one] if is_one => screen(one, &every),
                    [] => vec![format!("nothing is mounted by volfs ({every})")],
                    all => {
                        let rows: Vec<Vec<String>> = all.iter().map(|seen| row(seen, false)).collect();
                        let titles = titles(false);
                        let titles: Vec<&str> = titles.iter().map(String::as_str).collect();
                        let mut lines = vec![format!("all mounts ({every})")];
                        lines.extend(Table::titled(&titles, &rows));
                        lines
                    }
                };
                let (room, columns) = (usize::from(height).saturating_sub(1).max(1), usize::from(columns).max(20));
                let datasets = datasets::lines(&active(seen, is_one), room.saturating_sub(lines.len() + 1), columns);
                if !datasets.is_empty() {
                    lines.push(String::new());
                    lines.extend(datasets);
                }
                let mut text = up(*shown);
                *shown = lines.len().min(room);
                for line in lines.iter().take(room) {
                    text.push_str(&width::truncated(line, columns));
                    text.push_str(CLEAR_LINE);
                    text.push('\n');
                }
                text + CLEAR_BELOW
            }
        }
    }
}

fn titles(is_one: bool) -> Vec<String> {
    let titles =
        ["mount point", "reads", "delivered", "bricks", "decoded", "from source", "hit rate", "errors", "dataset"];
    titles.iter().skip(usize::from(is_one)).map(|title| (*title).to_owned()).collect()
}

/// Returns the row of a mount, and those of its busiest datasets.
fn rows(seen: &Seen, is_one: bool) -> Vec<Vec<String>> {
    let place = || (!is_one).then(|| seen.found.place.to_string_lossy().into_owned());
    let active = seen.rates.iter().flat_map(|rates| &rates.datasets);
    let of_dataset = |(path, rates): &(String, Rates)| {
        place().into_iter().chain(cells(rates)).chain(std::iter::once(path.clone())).collect()
    };
    std::iter::once(row(seen, is_one)).chain(active.take(datasets::MOST).map(of_dataset)).collect()
}

/// Returns the datasets that were active in all mounts, the busiest first.
fn active(seen: &[Seen], is_one: bool) -> Vec<(String, &Rates)> {
    fn of_mount(seen: &Seen, is_one: bool) -> impl Iterator<Item = (String, &Rates)> {
        let active = seen.rates.iter().flat_map(|rates| &rates.datasets);
        active.map(move |(path, rates)| {
            let whole = (!is_one).then(|| seen.found.place.join(path).to_string_lossy().into_owned());
            (whole.unwrap_or_else(|| path.clone()), rates)
        })
    }
    let mut all: Vec<_> = seen.iter().flat_map(|seen| of_mount(seen, is_one)).collect();
    all.sort_by_key(|(_, rates)| Reverse(rates.busyness()));
    all
}

fn cells(rates: &Rates) -> [String; 7] {
    [
        rates.per_second("reads"),
        rates.bytes_per_second("bytes_read"),
        rates.per_second("bricks_decoded"),
        rates.bytes_per_second("bytes_decoded"),
        rates.bytes_per_second("source_bytes"),
        rates.hit_rate(),
        rates.count("errors").to_string(),
    ]
}

fn row(seen: &Seen, is_one: bool) -> Vec<String> {
    let place = (!is_one).then(|| seen.found.place.to_string_lossy().into_owned());
    let cells = match (&seen.rates, &seen.found.status) {
        (_, Err(state)) => vec![state.word().to_owned()],
        (None, _) => vec!["new".to_owned()],
        (Some(rates), _) => cells(rates).to_vec(),
    };
    place.into_iter().chain(cells).collect()
}

/// Returns the lines for one mount on a terminal.
fn screen(seen: &Seen, every: &str) -> Vec<String> {
    let status = seen.found.status.as_ref().ok();
    let mut lines = vec![format!("{} ({every})", crate::cli::text::escape::path(&seen.found.place))];
    let mut add = |label: &str, value: Option<String>| {
        lines.extend(value.map(|value| format!("  {label:<17}{}", crate::cli::text::escape::text(&value))));
    };
    add("source", Some(seen.found.source.to_string_lossy().into_owned()));
    add("up", status.and_then(|status| status["uptime"].as_f64()).map(duration));
    if let Err(state) = &seen.found.status {
        add("state", Some(state.word().to_owned()));
        return lines;
    }
    add("state", status.and_then(status::stall));
    let Some(rates) = &seen.rates else {
        add("reads", Some("the mount is new".to_owned()));
        return lines;
    };
    add("reads", Some(format!("{}, {}", rates.per_second("reads"), rates.bytes_per_second("bytes_read"))));
    let (bricks, bytes) = (rates.bricks_per_second("bricks_decoded"), rates.bytes_per_second("bytes_decoded"));
    add("decoded", Some(format!("{bricks}, {bytes}")));
    add("ahead of need", Some(rates.bricks_per_second("prefetched")));
    add("from the source", Some(rates.bytes_per_second("source_bytes")));
    let looks = rates.count("cache_hits") + rates.count("cache_misses");
    add("hit rate", Some(format!("{} of {looks} look-ups", rates.hit_rate())));
    add("cache", status.and_then(one::cache));
    let now = |name: &str| status.and_then(|status| status["now"][name].as_u64());
    let now = now("bricks_in_flight").zip(now("decoders")).zip(now("open_files"));
    add(
        "now",
        now.map(|((bricks, decoders), files)| {
            format!("{bricks} bricks in flight, {decoders} decoders, {files} open files")
        }),
    );
    add("errors", Some(rates.count("errors").to_string()));
    lines
}

fn object(seen: &Seen) -> Value {
    json!({
        "schema": SCHEMA,
        "time": timestamp(SystemTime::now()),
        "mountpoint": seen.found.place.to_string_lossy(),
        "error": seen.found.status.as_ref().err().map(State::text),
        "seconds": seen.rates.as_ref().map(|rates| rates.seconds),
        "increase": seen.rates.as_ref().map(datasets::counted),
        "hit_rate": seen.rates.as_ref().and_then(Rates::hit_share),
        "cache_bytes": seen.found.status.as_ref().ok().map(|status| status["counters"]["cache_bytes"].clone()),
        "datasets": seen.rates.as_ref().map(datasets::objects),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(place: &str, rates: Option<Rates>, status: Result<Value, State>) -> Seen {
        Seen { found: Found { place: place.into(), source: "/data".into(), status }, rates }
    }

    fn rates() -> Rates {
        let counted = [
            ("reads", 24),
            ("bytes_read", 2 << 20),
            ("bricks_decoded", 4),
            ("bytes_decoded", 4096),
            ("cache_hits", 9),
            ("cache_misses", 1),
            ("source_bytes", 2048),
            ("errors", 0),
        ];
        let counted: Vec<_> = counted.iter().map(|(name, n)| ((*name).to_owned(), *n)).collect();
        let of_dataset = Rates { seconds: 2.0, counted: counted.clone(), datasets: Vec::new() };
        Rates { seconds: 2.0, counted, datasets: vec![("north\x1b.zgy".to_owned(), of_dataset)] }
    }

    #[test]
    fn each_mount_is_a_line_with_its_rates() {
        let all = [
            seen("/mnt/a", Some(rates()), Ok(json!({}))),
            seen("/mnt/b", None, Ok(json!({}))),
            seen("/mnt/c", None, Err(State::Dead)),
        ];
        let cells = ["12/s", "1.00 MiB/s", "2/s", "2.00 KiB/s", "1.00 KiB/s", "90 %", "0"];
        assert_eq!(row(&all[0], true), cells);
        let mut printer = Printer::Lines(Table::new(MAX_COLUMN_WIDTH), false);
        let text = printer.text(&all, false, Duration::from_secs(2));
        let lines: Vec<&str> = text.lines().collect();
        assert!(lines[0].starts_with("UTC       mount point  reads  delivered"), "{text}");
        assert!(lines[0].ends_with("  hit rate  errors  dataset"), "{text}");
        assert!(lines[1].contains("  /mnt/a       12/s") && lines[3].ends_with("/mnt/b       new"), "{text}");
        assert!(lines[2].contains("  /mnt/a       12/s") && lines[2].ends_with("  0       north\\u{1b}.zgy"), "{text}");
        assert!(lines[4].contains("dead"), "{text}");
        assert_eq!(printer.text(&all, false, Duration::from_secs(2)).lines().count(), 4, "titles are printed once");
    }

    #[test]
    fn json_has_exact_numbers() {
        let found = object(&seen("/mnt/a", Some(rates()), Ok(json!({"counters": {"cache_bytes": 7}}))));
        assert_eq!((&found["increase"]["reads"], &found["hit_rate"]), (&json!(24), &json!(0.9)));
        assert_eq!((&found["seconds"], &found["cache_bytes"], &found["schema"]), (&json!(2.0), &json!(7), &json!(1)));
        let new = object(&seen("/mnt/a", None, Ok(json!({}))));
        assert_eq!((&new["increase"], &new["error"], &new["datasets"]), (&Value::Null, &Value::Null, &Value::Null));
        assert_eq!(found["datasets"][0]["increase"]["reads"], 24);
    }

    #[test]
    fn a_screen_is_drawn_over_the_last_one() {
        let mut printer = Printer::Screen(0);
        let one = [seen("/mnt/a\x1b", Some(rates()), Ok(json!({"uptime": 61.0})))];
        let first = printer.text(&one, true, Duration::from_secs(1));
        let lines = first.matches('\n').count();
        assert!(first.starts_with("/mnt/a\\u{1b} (every 1 s; Ctrl-C ends)\x1b[K\n"), "{first:?}");
        assert!(first.contains("  hit rate         90 % of 10 look-ups"), "{first:?}");
        let dataset = "\x1b[K\n  1.00 MiB/s  2/s     2.00 KiB/s  90 %      north\\u{1b}.zgy\x1b[K\n";
        assert!(first.contains(dataset), "{first:?}");
        let all = Printer::Screen(0).text(&one, false, Duration::from_secs(1));
        assert!(all.contains("  /mnt/a\\u{1b}/north\\u{1b}.zgy\x1b[K\n"), "{all:?}");
        let silent =
            Printer::Screen(0).text(&[seen("/mnt/a", None, Err(State::Silent(None)))], true, Duration::from_secs(1));
        assert!(silent.contains("  state            no answer\x1b[K\n") && !silent.contains("new"), "{silent:?}");
        assert!(printer.text(&one, true, Duration::from_secs(1)).starts_with(&format!("\x1b[{lines}F/mnt/a")));
    }
}
