//! What a mount does: how far its counters went in an interval.

use std::time::Instant;

use serde_json::{Map, Value};

use crate::cli::text::size::Size;
use crate::view::json_text;

/// The counters of a mount at a moment.
#[derive(Clone)]
pub struct Sample {
    at: Instant,
    /// Tells one daemon at a mount point from the next one.
    pid: Option<u64>,
    /// Bytes of the status, which the mount has delivered, too.
    length: u64,
    counters: Map<String, Value>,
}

impl Sample {
    /// Takes the counters of a status.json that was just read.
    pub fn of(status: &Value) -> Self {
        let counters = status["counters"].as_object().cloned().unwrap_or_default();
        Self {
            at: Instant::now(),
            pid: status["pid"].as_u64(),
            length: json_text::format(status).len() as u64,
            counters,
        }
    }

    /// Returns what was counted since `before`, apart from reading the status once; `None` if that was another daemon.
    pub fn since(&self, before: &Self) -> Option<Rates> {
        let of = |sample: &Self, name: &str| sample.counters.get(name).and_then(Value::as_u64);
        let names = self.counters.keys().filter(|name| *name != "cache_bytes");
        let own = |name: &str| match name {
            "reads" => 1,
            // a status is counted once it is delivered: the last one is, this one is not
            "bytes_read" => before.length,
            _ => 0,
        };
        let increase = |name: &String| {
            let all = of(self, name)?.checked_sub(of(before, name)?)?;
            Some((name.clone(), all.saturating_sub(own(name))))
        };
        let counted: Option<Vec<(String, u64)>> = names.map(increase).collect();
        let seconds = (self.at - before.at).as_secs_f64();
        counted.filter(|_| self.pid == before.pid).map(|counted| Rates { seconds, counted })
    }
}

/// What was counted in an interval.
#[derive(Debug)]
pub struct Rates {
    /// The length of the interval.
    pub seconds: f64,
    /// Each counter, by name, and how much it grew.
    pub counted: Vec<(String, u64)>,
}

impl Rates {
    /// Returns how much a counter grew.
    pub fn count(&self, name: &str) -> u64 {
        self.counted.iter().find(|(counter, _)| counter == name).map_or(0, |(_, n)| *n)
    }

    /// Formats a counter of events: `12/s`.
    pub fn per_second(&self, name: &str) -> String {
        format!("{:.0}/s", self.rate(name))
    }

    /// Formats a counter of bricks: `12 bricks/s`.
    pub fn bricks_per_second(&self, name: &str) -> String {
        format!("{:.0} bricks/s", self.rate(name))
    }

    /// Formats a counter of bytes: `1.50 MiB/s`.
    pub fn bytes_per_second(&self, name: &str) -> String {
        format!("{}/s", Size::of(self.rate(name) as u64))
    }

    fn rate(&self, name: &str) -> f64 {
        self.count(name) as f64 / self.seconds.max(0.001)
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
}
