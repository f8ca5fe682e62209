//! `volfs stats --watch`: what mounts do, at intervals: how much their counters grew.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};
use std::io::{self, IsTerminal};
use std::path::PathBuf;
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use serde_json::{Map, Value, json};

use super::{Found, MOST_DATASETS, TIMEOUT_OF_ALL, failure, find_all, find_mount, hit_rate, parse};
use crate::cli::error::CliError;
use crate::cli::layout::{Table, TextLayout};
use crate::cli::mounts::{Asker, NoStatus};
use crate::cli::output;
use crate::cli::text::{Size, timestamp};
use crate::view::json::SCHEMA;
use crate::view::json_text;

/// The largest width of a column of lines.
const MAX_COLUMN_WIDTH: usize = 40;

/// Moves the cursor to the top of the terminal, and clears it.
const CLEAR: &str = "\x1b[H\x1b[2J";

/// Prints what one mount does, or all, after each interval, until the reader of the output is gone. Fails if the mount at
/// `place` is gone or its daemon died; a mount that does not answer in time may do so later.
pub(super) fn run(place: Option<PathBuf>, interval: Duration, json: bool) -> Result<(), CliError> {
    let on_terminal = io::stdout().is_terminal() && std::env::var_os("TERM").is_none_or(|term| term != "dumb");
    let is_one = place.is_some();
    let mut watch = Watch { place, asker: Asker::default(), samples: HashMap::new() };
    let mut lines = Lines { table: Table::new(MAX_COLUMN_WIDTH), has_begun: false };
    watch.look()?;
    let mut next = Instant::now();
    loop {
        next += interval;
        thread::sleep(next.saturating_duration_since(Instant::now()));
        // does not make up for intervals that were missed, for instance while the machine slept
        next = next.max(Instant::now());
        let seen = watch.look()?;
        let text = match (json, on_terminal) {
            (true, _) => seen.iter().map(|seen| format!("{}\n", seen.object())).collect(),
            (false, true) => screen(&seen, is_one, interval),
            (false, false) => lines.text(&seen, is_one),
        };
        if !output::part(text.as_bytes())? {
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

impl Watch {
    /// Asks all mounts.
    fn look(&mut self) -> Result<Vec<Seen>, CliError> {
        let found = match &self.place {
            None => find_all(&mut self.asker)?,
            Some(place) => {
                let (_, mount) = find_mount(place)?;
                let answer = self.asker.ask(std::slice::from_ref(place), TIMEOUT_OF_ALL).pop();
                let status = match answer.unwrap_or(Err(NoStatus::Silent)) {
                    Ok(text) => Ok(parse(place, &text)?),
                    Err(NoStatus::Silent) => Err(NoStatus::Silent),
                    Err(why) => return Err(failure(place, why)),
                };
                vec![Found::new(&mount, place.clone(), status)]
            }
        };
        let mut samples = HashMap::new();
        let seen = found.into_iter().map(|found| {
            let sample = found.status.as_ref().ok().map(Sample::new);
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

/// A mount, and what it did in the last interval, unless it is new.
struct Seen {
    found: Found,
    rates: Option<Rates>,
}

impl Seen {
    /// Returns the row of a mount, and those of its busiest datasets, without the mount point if there is only one.
    fn rows(&self, is_one: bool) -> Vec<Vec<String>> {
        let place = || (!is_one).then(|| self.found.place.to_string_lossy().into_owned());
        let cells = match (&self.rates, &self.found.status) {
            (_, Err(_)) => vec![self.found.word().to_owned()],
            (None, _) => vec!["new".to_owned()],
            (Some(rates), _) => rates.cells().to_vec(),
        };
        let active = self.rates.iter().flat_map(|rates| &rates.datasets).take(MOST_DATASETS);
        let of_dataset = |(path, rates): &(String, Rates)| {
            // the name last, since it may be long
            place().into_iter().chain(rates.cells()).chain(std::iter::once(path.clone())).collect()
        };
        std::iter::once(place().into_iter().chain(cells).collect()).chain(active.map(of_dataset)).collect()
    }

    fn object(&self) -> Value {
        let of_dataset = |(path, rates): &(String, Rates)| json!({"path": path, "increase": rates.increase(), "hit_rate": rates.hit_share()});
        let status = self.found.status.as_ref().ok();
        json!({
            "schema": SCHEMA,
            "time": timestamp(SystemTime::now()),
            "mountpoint": self.found.place.to_string_lossy(),
            "error": self.found.error(),
            "seconds": self.rates.as_ref().map(|rates| rates.seconds),
            "increase": self.rates.as_ref().map(Rates::increase),
            "hit_rate": self.rates.as_ref().and_then(Rates::hit_share),
            "cache_bytes": status.map(|status| status["counters"]["cache_bytes"].clone()),
            "datasets": self.rates.as_ref().map(|rates| rates.datasets.iter().map(of_dataset).collect::<Vec<_>>()),
        })
    }
}

fn titles(is_one: bool) -> &'static [&'static str] {
    const TITLES: [&str; 9] =
        ["mount point", "reads", "delivered", "bricks", "decoded", "from source", "hit rate", "errors", "dataset"];
    &TITLES[usize::from(is_one)..]
}

/// Returns the text that replaces the last one on a terminal.
fn screen(seen: &[Seen], is_one: bool, interval: Duration) -> String {
    let what = match seen {
        [one] if is_one => one.found.place.to_string_lossy().into_owned(),
        [] => "nothing is mounted by volfs".to_owned(),
        _ => "all mounts".to_owned(),
    };
    let mut layout = TextLayout::new(output::coloured());
    layout.heading(&format!("{what} (every {} s; Ctrl-C ends)", interval.as_secs_f64()));
    layout.table(titles(is_one), &seen.iter().flat_map(|seen| seen.rows(is_one)).collect::<Vec<_>>());
    seen.iter().filter_map(|seen| seen.found.remark()).for_each(|remark| layout.warning(&remark));
    format!("{CLEAR}{}", layout.text())
}

/// Lines with the time, for a file or a pipe.
struct Lines {
    table: Table,
    has_begun: bool,
}

impl Lines {
    fn text(&mut self, seen: &[Seen], is_one: bool) -> String {
        let time = timestamp(SystemTime::now());
        // only the time of the day: `2026-01-31T12:34:56.789Z`
        let time = time.get(11..19).unwrap_or(&time);
        let line = |first: &str, cells: Vec<String>| std::iter::once(first.to_owned()).chain(cells).collect();
        let mut rows: Vec<Vec<String>> =
            seen.iter().flat_map(|seen| seen.rows(is_one)).map(|row| line(time, row)).collect();
        if !std::mem::replace(&mut self.has_begun, true) {
            rows.insert(0, line("UTC", titles(is_one).iter().map(|title| (*title).to_owned()).collect()));
        }
        self.table.lines(rows).iter().map(|line| format!("{line}\n")).collect()
    }
}

/// The counters of a mount at a moment.
#[derive(Clone)]
struct Sample {
    at: Instant,
    /// The daemon: another one may serve the mount point later.
    pid: Option<u64>,
    /// Bytes of the status, which the mount has delivered, too.
    length: u64,
    /// Seconds for which the mount had been up.
    uptime: f64,
    counters: Map<String, Value>,
    datasets: HashMap<DatasetKey, Map<String, Value>>,
}

/// A dataset's path, and when its counting began, by the seconds for which the mount had been up: a path may become
/// that of another dataset, and counting may begin again.
type DatasetKey = (String, u64);

impl Sample {
    /// Takes the counters of a status.json that was just read.
    fn new(status: &Value) -> Self {
        let counters = status["counters"].as_object().cloned().unwrap_or_default();
        Self {
            at: Instant::now(),
            pid: status["pid"].as_u64(),
            length: json_text(status).len() as u64,
            uptime: status["uptime"].as_f64().unwrap_or(0.0),
            counters,
            datasets: datasets(status).filter_map(|dataset| Some((key(dataset)?, dataset.clone()))).collect(),
        }
    }

    /// Returns what was counted since `before`, without the read of the status; `None` if that was another daemon.
    fn since(&self, before: &Self) -> Option<Rates> {
        let own = |name: &str| match name {
            "reads" => 1,
            // a status is counted once it is delivered: the last one is, this one is not
            "bytes_read" => before.length,
            _ => 0,
        };
        if self.pid != before.pid {
            return None;
        }
        let mut counted = increase(&self.counters, &before.counters)?;
        counted.iter_mut().for_each(|(name, n)| *n = n.saturating_sub(own(name)));
        let seconds = (self.at - before.at).as_secs_f64();
        Some(Rates { seconds, counted, datasets: self.datasets_since(before, seconds) })
    }

    /// Returns what was counted of each dataset that was active since `before`, the busiest first.
    fn datasets_since(&self, before: &Self, seconds: f64) -> Vec<(String, Rates)> {
        let mut active: BTreeMap<&str, Vec<(String, u64)>> = BTreeMap::new();
        for (key, now) in &self.datasets {
            let zero = Map::new();
            let then = match before.datasets.get(key) {
                Some(then) => then,
                None if f64::from_bits(key.1) >= before.uptime => &zero,
                // it was not in the list before: what it had counted by then is unknown
                None => continue,
            };
            let Some(counted) = increase(now, then).filter(|counted| counted.iter().any(|(_, n)| *n > 0)) else {
                continue;
            };
            match active.get_mut(key.0.as_str()) {
                // the path of two: one has taken the place of the other
                Some(sums) => sums.iter_mut().zip(counted).for_each(|(sum, (_, n))| sum.1 += n),
                None => drop(active.insert(&key.0, counted)),
            }
        }
        let rates = |counted| Rates { seconds, counted, datasets: Vec::new() };
        let mut active: Vec<_> = active.into_iter().map(|(path, all)| (path.to_owned(), rates(all))).collect();
        active.sort_by_key(|(_, rates)| Reverse(rates.busyness()));
        active
    }
}

/// Returns the datasets of a status.json; a daemon of an earlier version names none.
fn datasets(status: &Value) -> impl Iterator<Item = &Map<String, Value>> {
    status["datasets"].as_array().into_iter().flatten().filter_map(Value::as_object)
}

fn key(dataset: &Map<String, Value>) -> Option<DatasetKey> {
    Some((dataset.get("path")?.as_str()?.to_owned(), dataset.get("since")?.as_f64()?.to_bits()))
}

/// Returns how much counters grew since `before`, where a missing one is 0; `None` if one went back.
fn increase(now: &Map<String, Value>, before: &Map<String, Value>) -> Option<Vec<(String, u64)>> {
    let counters = now.iter().filter(|(name, n)| *name != "cache_bytes" && n.is_u64());
    let increase = |(name, n): (&String, &Value)| {
        let before = before.get(name).and_then(Value::as_u64).unwrap_or(0);
        Some((name.clone(), n.as_u64()?.checked_sub(before)?))
    };
    counters.map(increase).collect()
}

/// What was counted in an interval.
#[derive(Debug)]
struct Rates {
    /// The length of the interval.
    seconds: f64,
    /// Each counter, by name, and how much it grew.
    counted: Vec<(String, u64)>,
    /// The datasets that were active, by path, the busiest first.
    datasets: Vec<(String, Rates)>,
}

impl Rates {
    /// Returns how much a counter grew.
    fn count(&self, name: &str) -> u64 {
        self.counted.iter().find(|(counter, _)| counter == name).map_or(0, |(_, n)| *n)
    }

    /// Returns the share of look-ups that found their brick in the cache; `None` without any.
    fn hit_share(&self) -> Option<f64> {
        let (hits, misses) = (self.count("cache_hits"), self.count("cache_misses"));
        (hits + misses > 0).then(|| hits as f64 / (hits + misses) as f64)
    }

    /// The order of datasets.
    fn busyness(&self) -> (u64, u64, u64) {
        (self.count("bytes_read"), self.count("bytes_decoded"), self.count("errors"))
    }

    /// Formats a counter of events: `12/s`.
    fn per_second(&self, name: &str) -> String {
        format!("{:.0}/s", self.rate(name))
    }

    /// Formats a counter of bytes: `1.50 MiB/s`.
    fn bytes_per_second(&self, name: &str) -> String {
        format!("{}/s", Size(self.rate(name) as u64))
    }

    fn rate(&self, name: &str) -> f64 {
        self.count(name) as f64 / self.seconds.max(0.001)
    }

    fn cells(&self) -> [String; 7] {
        [
            self.per_second("reads"),
            self.bytes_per_second("bytes_read"),
            self.per_second("bricks_decoded"),
            self.bytes_per_second("bytes_decoded"),
            self.bytes_per_second("source_bytes"),
            hit_rate(self.count("cache_hits"), self.count("cache_misses")),
            self.count("errors").to_string(),
        ]
    }

    /// Returns how much each counter grew, as JSON.
    fn increase(&self) -> Map<String, Value> {
        self.counted.iter().map(|(name, n)| (name.clone(), json!(n))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_is_of_the_interval_and_of_one_daemon() {
        let mut before =
            Sample::new(&json!({"pid": 7, "counters": {"reads": 10, "bytes_read": 100, "cache_bytes": 9}}));
        let mut after =
            Sample::new(&json!({"pid": 7, "counters": {"reads": 30, "bytes_read": 4292, "cache_bytes": 5}}));
        (after.at, before.length) = (before.at + Duration::from_secs(2), 96);
        let rates = after.since(&before).unwrap();
        assert_eq!((rates.seconds, rates.count("reads"), rates.counted.len()), (2.0, 19, 2));
        assert_eq!(
            (rates.per_second("reads"), rates.bytes_per_second("bytes_read")),
            ("10/s".into(), "2.00 KiB/s".into())
        );
        assert_eq!(rates.count("unknown"), 0);
        after.pid = Some(8);
        assert!(after.since(&before).is_none());
        after.pid = Some(7);
        assert!(before.since(&after).is_none(), "counters that went back are of another daemon");
    }

    #[test]
    fn datasets_are_followed_by_path_and_beginning() {
        let sample = |uptime: f64, datasets: &[(&str, f64, u64)]| {
            let entry = |(path, since, n): &(&str, f64, u64)| json!({"path": path, "since": since, "bytes_read": n});
            let datasets: Vec<Value> = datasets.iter().map(entry).collect();
            Sample::new(&json!({"pid": 7, "uptime": uptime, "counters": {}, "datasets": datasets}))
        };
        let before = sample(10.0, &[("idle", 1.0, 9), ("a", 1.5, 100), ("again", 2.0, 50)]);
        let after = sample(
            20.0,
            &[
                ("idle", 1.0, 9),
                ("a", 1.5, 150),
                ("new", 12.0, 70),
                ("again", 15.0, 30),
                ("was not listed", 3.0, 1000),
                ("replaced", 11.0, 20),
                ("replaced", 16.0, 21),
            ],
        );
        let rates = after.since(&before).unwrap();
        let found: Vec<(&str, u64)> =
            rates.datasets.iter().map(|(path, rates)| (path.as_str(), rates.count("bytes_read"))).collect();
        assert_eq!(found, [("new", 70), ("a", 50), ("replaced", 41), ("again", 30)]);
        let old = Sample::new(&json!({"pid": 7, "counters": {}}));
        assert!(old.since(&old.clone()).unwrap().datasets.is_empty(), "earlier versions have no list");
    }

    fn seen(place: &str, rates: Option<Rates>, status: Result<Value, NoStatus>) -> Seen {
        Seen { found: Found { place: place.into(), source: "/data".into(), status, daemon: None }, rates }
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
            seen("/mnt/c", None, Err(NoStatus::Dead)),
        ];
        let cells = ["12/s", "1.00 MiB/s", "2/s", "2.00 KiB/s", "1.00 KiB/s", "90 %", "0"];
        assert_eq!(all[0].rows(true)[0], cells);
        let mut printer = Lines { table: Table::new(MAX_COLUMN_WIDTH), has_begun: false };
        let text = printer.text(&all, false);
        let lines: Vec<&str> = text.lines().collect();
        assert!(lines[0].starts_with("UTC       mount point  reads  delivered"), "{text}");
        assert!(lines[0].ends_with("  hit rate  errors  dataset"), "{text}");
        assert!(lines[1].contains("  /mnt/a       12/s") && lines[3].ends_with("/mnt/b       new"), "{text}");
        assert!(lines[2].contains("  /mnt/a       12/s") && lines[2].ends_with("  0       north\\u{1b}.zgy"), "{text}");
        assert!(lines[4].contains("dead"), "{text}");
        assert_eq!(printer.text(&all, false).lines().count(), 4, "titles are printed once");
    }

    #[test]
    fn json_has_exact_numbers() {
        let found = seen("/mnt/a", Some(rates()), Ok(json!({"counters": {"cache_bytes": 7}}))).object();
        assert_eq!((&found["increase"]["reads"], &found["hit_rate"]), (&json!(24), &json!(0.9)));
        assert_eq!((&found["seconds"], &found["cache_bytes"], &found["schema"]), (&json!(2.0), &json!(7), &json!(1)));
        let new = seen("/mnt/a", None, Ok(json!({}))).object();
        assert_eq!((&new["increase"], &new["error"], &new["datasets"]), (&Value::Null, &Value::Null, &Value::Null));
        let dataset = &found["datasets"][0];
        assert_eq!((&dataset["path"], &dataset["hit_rate"]), (&json!("north\x1b.zgy"), &json!(0.9)));
        assert_eq!(dataset["increase"]["reads"], 24);
    }

    #[test]
    fn a_screen_replaces_the_last_one() {
        let one = [seen("/mnt/a\x1b", Some(rates()), Ok(json!({"source_stall": null})))];
        let text = screen(&one, true, Duration::from_secs(1));
        assert!(
            text.starts_with("\x1b[H\x1b[2J/mnt/a\\u{1b} (every 1 s; Ctrl-C ends)\n  reads  delivered "),
            "{text:?}"
        );
        assert!(
            text.contains("  12/s   1.00 MiB/s  2/s     2.00 KiB/s  1.00 KiB/s   90 %           0  north\\u{1b}.zgy\n"),
            "{text}"
        );
        let silent = screen(&[seen("/mnt/a", None, Err(NoStatus::Silent))], false, Duration::from_secs(1));
        assert!(
            silent.contains("  /mnt/a       no answer\n  /mnt/a: it did not answer within 2 s; try again"),
            "{silent}"
        );
    }
}
