//! `.volfs/status.json`: the options and counters of the mount.

use std::process;
use std::time::Instant;

use serde_json::{Map, Value, json};

use super::options::Options;
use crate::counters::Counters;
use crate::view::json_text;

/// Returns the state of the mount as JSON. Counters only ever grow, except `cache_bytes`.
#[must_use]
pub fn status(options: &Options, started: Instant, counters: &Counters, cache_bytes: usize) -> String {
    let shown: Map<String, Value> =
        options.shown.iter().map(|(name, value)| (name.clone(), value.as_str().into())).collect();
    let mut counted: Map<String, Value> =
        counters.list().into_iter().map(|(name, n)| (name.into(), n.into())).collect();
    counted.insert("cache_bytes".into(), cache_bytes.into());
    json_text::format(&json!({
        "version": env!("CARGO_PKG_VERSION"),
        "pid": process::id(),
        "source": options.source.to_string_lossy(),
        "options": shown,
        "uptime": started.elapsed().as_secs_f64(),
        "counters": counted,
    }))
}
