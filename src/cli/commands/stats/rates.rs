//! What a mount does: how far its counters went in an interval.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};
use std::time::Instant;

use serde_json::{Map, Value};

use crate::cli::text::number::float;
use crate::cli::text::size::Size;
use crate::view::json_text;

/// The counters of a mount at a moment.
#[derive(Clone)]
pub(crate) struct Sample {
    at: Instant,
    /// Tells one daemon at a mount point from the next one.
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
    pub(crate) fn of(status: &Value) -> Self {
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

    /// Returns what was counted since `before`, apart from reading the status once; `None` if that was another daemon.
    pub(crate) fn since(&self, before: &Self) -> Option<Rates> {
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
pub(crate) fn datasets(status: &Value) -> impl Iterator<Item = &Map<String, Value>> {
    status["datasets"].as_array().into_iter().flatten().filter_map(Value::as_object)
}

fn key(dataset: &Map<String, Value>) -> Option<DatasetKey> {
    Some((dataset.get("path")?.as_str()?.to_owned(), dataset.get("since")?.as_f64()?.to_bits()))
}

/// Returns how far counters went from `before`, where one that is not there stands for 0; `None` if one went back.
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
pub(crate) struct Rates {
    /// The length of the interval.
    pub seconds: f64,
    /// Each counter, by name, and how much it grew.
    pub counted: Vec<(String, u64)>,
    /// The datasets that were active, by path, the busiest first.
    pub datasets: Vec<(String, Rates)>,
}

impl Rates {
    /// Returns how much a counter grew.
    pub(crate) fn count(&self, name: &str) -> u64 {
        self.counted.iter().find(|(counter, _)| counter == name).map_or(0, |(_, n)| *n)
    }

    /// Returns the share of look-ups that found their brick in the cache; `None` without any.
    pub(crate) fn hit_share(&self) -> Option<f64> {
        let (hits, misses) = (self.count("cache_hits"), self.count("cache_misses"));
        (hits + misses > 0).then(|| hits as f64 / (hits + misses) as f64)
    }

    /// Formats that share.
    pub(crate) fn hit_rate(&self) -> String {
        hit_rate(self.count("cache_hits"), self.count("cache_misses"))
    }

    /// What datasets are ordered by.
    pub(crate) fn busyness(&self) -> (u64, u64, u64) {
        (self.count("bytes_read"), self.count("bytes_decoded"), self.count("errors"))
    }

    /// Formats a counter of events: `12/s`.
    pub(crate) fn per_second(&self, name: &str) -> String {
        format!("{:.0}/s", self.rate(name))
    }

    /// Formats a counter of bricks: `12 bricks/s`.
    pub(crate) fn bricks_per_second(&self, name: &str) -> String {
        format!("{:.0} bricks/s", self.rate(name))
    }

    /// Formats a counter of bytes: `1.50 MiB/s`.
    pub(crate) fn bytes_per_second(&self, name: &str) -> String {
        format!("{}/s", Size::of(self.rate(name) as u64))
    }

    fn rate(&self, name: &str) -> f64 {
        self.count(name) as f64 / self.seconds.max(0.001)
    }
}

/// Formats the share of look-ups that found their brick in the cache; `-` without any.
pub(crate) fn hit_rate(hits: u64, misses: u64) -> String {
    match hits.saturating_add(misses) {
        0 => "-".to_owned(),
        all => format!("{} %", float(hits as f64 / all as f64 * 100.0, 3)),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use serde_json::json;

    use super::*;

    #[test]
    fn a_rate_is_of_the_interval_and_of_one_daemon() {
        let mut before = Sample::of(&json!({"pid": 7, "counters": {"reads": 10, "bytes_read": 100, "cache_bytes": 9}}));
        let mut after = Sample::of(&json!({"pid": 7, "counters": {"reads": 30, "bytes_read": 4292, "cache_bytes": 5}}));
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
            Sample::of(&json!({"pid": 7, "uptime": uptime, "counters": {}, "datasets": datasets}))
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
        let old = Sample::of(&json!({"pid": 7, "counters": {}}));
        assert!(old.since(&old.clone()).unwrap().datasets.is_empty(), "earlier versions have no list");
    }
}
