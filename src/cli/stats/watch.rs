//! `volfs stats --watch`: how much the counters of mounts grow in each interval.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};
use std::io::{self, IsTerminal};
use std::iter::once;
use std::path::PathBuf;
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use serde_json::{Value, json};

use super::{Found, MOST_DATASETS, count, failure, find, find_all, find_mount, hit_rate};
use crate::cli::error::CliError;
use crate::cli::layout::{Table, TextLayout};
use crate::cli::mounts::{Asker, NoStatus};
use crate::cli::output;
use crate::cli::text::{Size, items, timestamp};
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
    /// The last status of each mount.
    samples: HashMap<PathBuf, Sample>,
}

impl Watch {
    /// Asks all mounts.
    fn look(&mut self) -> Result<Vec<Seen>, CliError> {
        let found = match &self.place {
            None => find_all(&mut self.asker)?,
            Some(place) => find(&mut self.asker, vec![&find_mount(place)?]),
        };
        let mut samples = HashMap::new();
        let mut seen = Vec::new();
        for found in found {
            match (&self.place, &found.status) {
                (Some(place), Err(why)) if *why != NoStatus::Silent => return Err(failure(place, why.clone())),
                _ => {}
            }
            let sample = found.status.as_ref().ok().map(Sample::new);
            let before = self.samples.get(&found.place);
            let rates = sample.as_ref().zip(before).and_then(|(sample, before)| sample.since(before));
            // a mount that answers again after a while has done something since its last answer
            samples.extend(sample.or_else(|| before.cloned()).map(|sample| (found.place.clone(), sample)));
            seen.push(Seen { found, rates });
        }
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
    /// Returns the row of a mount, and those of its busiest datasets, without the mount point if there is only one mount.
    fn rows(&self, is_one: bool) -> Vec<Vec<String>> {
        let cells = match (&self.rates, &self.found.status) {
            (_, Err(_)) => vec![self.found.state()[1].to_owned()],
            (None, _) => vec!["new".to_owned()],
            (Some(rates), _) => rates.cells().to_vec(),
        };
        let active = self.rates.iter().flat_map(|rates| &rates.datasets).take(MOST_DATASETS);
        // the name last, since it may be long
        let of_datasets = active.map(|(path, rates)| rates.cells().into_iter().chain(once(path.clone())).collect());
        let place = (!is_one).then(|| self.found.place.to_string_lossy().into_owned());
        let rows = once(cells).chain(of_datasets);
        rows.map(|row: Vec<String>| place.iter().cloned().chain(row).collect()).collect()
    }

    fn object(&self) -> Value {
        let of_dataset = |(path, rates): &(String, Rates)| json!({"path": path, "increase": rates.counted, "hit_rate": rates.hit_share()});
        let rates = self.rates.as_ref();
        json!({
            "schema": SCHEMA,
            "time": timestamp(SystemTime::now()),
            "mountpoint": self.found.place.to_string_lossy(),
            "error": self.found.error(),
            "seconds": rates.map(|rates| rates.seconds),
            "increase": rates.map(|rates| &rates.counted),
            "hit_rate": rates.and_then(Rates::hit_share),
            "cache_bytes": self.found.status.as_ref().ok().map(|status| &status["counters"]["cache_bytes"]),
            "datasets": rates.map(|rates| rates.datasets.iter().map(of_dataset).collect::<Value>()),
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
    let mut layout = TextLayout::new(*output::COLOURED);
    layout.heading(&format!("{what} (every {} s; Ctrl-C ends)", interval.as_secs_f64()));
    layout.table(titles(is_one), seen.iter().flat_map(|seen| seen.rows(is_one)));
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
        let line = |first: &str, cells: Vec<String>| once(first.to_owned()).chain(cells).collect();
        let mut rows = Vec::new();
        if !std::mem::replace(&mut self.has_begun, true) {
            rows.push(line("UTC", titles(is_one).iter().map(|title| (*title).to_owned()).collect()));
        }
        rows.extend(seen.iter().flat_map(|seen| seen.rows(is_one)).map(|row| line(time, row)));
        self.table.lines(rows).iter().map(|line| format!("{line}\n")).collect()
    }
}

/// The status of a mount at a moment.
#[derive(Clone)]
struct Sample {
    at: Instant,
    status: Value,
    /// Bytes of the status, which the mount has delivered, too.
    length: u64,
}

impl Sample {
    /// Takes a status.json that was just read.
    fn new(status: &Value) -> Self {
        Self { at: Instant::now(), status: status.clone(), length: json_text(status).len() as u64 }
    }

    /// Returns what was counted since `before`, without the read of the status; `None` if that was another daemon.
    fn since(&self, before: &Self) -> Option<Rates> {
        if self.status["pid"] != before.status["pid"] {
            return None;
        }
        let mut counted = increase(&self.status["counters"], &before.status["counters"])?;
        // a status is counted once it is delivered: the last one is, this one is not
        for (name, own) in [("reads", 1), ("bytes_read", before.length)] {
            if counted[name].is_u64() {
                counted[name] = count(&counted, name).saturating_sub(own).into();
            }
        }
        let seconds = (self.at - before.at).as_secs_f64();
        Some(Rates { seconds, counted, datasets: self.datasets_since(before, seconds) })
    }

    /// Returns what was counted of each dataset that was active since `before`, the busiest first.
    fn datasets_since(&self, before: &Self, seconds: f64) -> Vec<(String, Rates)> {
        let known: HashMap<_, _> =
            before.datasets().map(|(path, since, then)| ((path, since.to_bits()), then)).collect();
        let uptime_before = before.status["uptime"].as_f64().unwrap_or(0.0);
        let mut active: BTreeMap<&str, Value> = BTreeMap::new();
        for (path, since, now) in self.datasets() {
            let then = match known.get(&(path, since.to_bits())) {
                Some(then) => then,
                None if since >= uptime_before => &Value::Null,
                // it was not in the list before: what it had counted by then is unknown
                None => continue,
            };
            let Some(Value::Object(counted)) = increase(now, then) else { continue };
            if counted.values().all(|n| *n == 0) {
                continue;
            }
            // a path may be that of two: one has taken the place of the other
            let sums = active.entry(path).or_insert_with(|| json!({}));
            for (name, n) in counted {
                sums[&name] = (count(sums, &name) + n.as_u64().unwrap_or(0)).into();
            }
        }
        let rates =
            |(path, counted): (&str, Value)| (path.to_owned(), Rates { seconds, counted, datasets: Vec::new() });
        let mut active: Vec<(String, Rates)> = active.into_iter().map(rates).collect();
        active
            .sort_by_key(|(_, rates)| Reverse(["bytes_read", "bytes_decoded", "errors"].map(|name| rates.count(name))));
        active
    }

    /// Returns the path of each dataset, its counters, and when counting began, by the seconds for which the mount had been
    /// up: a path may become that of another dataset, and counting may begin again. A daemon of an earlier version names
    /// none.
    fn datasets(&self) -> impl Iterator<Item = (&str, f64, &Value)> {
        items(&self.status["datasets"]).filter_map(|of| Some((of["path"].as_str()?, of["since"].as_f64()?, of)))
    }
}

/// Returns how much counters grew since `before`, where a missing one is 0; `None` if one went back.
fn increase(now: &Value, before: &Value) -> Option<Value> {
    let counters = now.as_object().into_iter().flatten().filter(|(name, _)| *name != "cache_bytes");
    let counters = counters.filter_map(|(name, n)| Some((name, n.as_u64()?)));
    counters.map(|(name, n)| Some((name.clone(), n.checked_sub(count(before, name))?))).collect()
}

/// What was counted in an interval.
struct Rates {
    /// The length of the interval.
    seconds: f64,
    /// How much each counter grew, by its name.
    counted: Value,
    /// The datasets that were active, by path, the busiest first.
    datasets: Vec<(String, Rates)>,
}

impl Rates {
    fn count(&self, name: &str) -> u64 {
        count(&self.counted, name)
    }

    /// Returns the share of look-ups that found their brick in the cache; `None` without any.
    fn hit_share(&self) -> Option<f64> {
        let (hits, misses) = (self.count("cache_hits"), self.count("cache_misses"));
        (hits + misses > 0).then(|| hits as f64 / (hits + misses) as f64)
    }

    fn cells(&self) -> [String; 7] {
        let rate = |name: &str| self.count(name) as f64 / self.seconds.max(0.001);
        let events = |name: &str| format!("{:.0}/s", rate(name));
        let bytes = |name: &str| format!("{}/s", Size(rate(name) as u64));
        [
            events("reads"),
            bytes("bytes_read"),
            events("bricks_decoded"),
            bytes("bytes_decoded"),
            bytes("source_bytes"),
            hit_rate(&self.counted),
            self.count("errors").to_string(),
        ]
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
        assert_eq!((rates.seconds, &rates.counted), (2.0, &json!({"reads": 19, "bytes_read": 4096})));
        assert_eq!(rates.cells()[..2], ["10/s", "2.00 KiB/s"]);
        assert_eq!(rates.count("unknown"), 0);
        after.status["pid"] = 8.into();
        assert!(after.since(&before).is_none());
        after.status["pid"] = 7.into();
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
        let counted = json!({"reads": 24, "bytes_read": 2 << 20, "bricks_decoded": 4, "bytes_decoded": 4096,
            "cache_hits": 9, "cache_misses": 1, "source_bytes": 2048, "errors": 0});
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
