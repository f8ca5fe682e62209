//! `.volfs/status.json`: the options and counters of the mount.

use std::process;
use std::time::Instant;

use serde_json::{Map, Value, json};

use super::options::Options;
use crate::array::Gauges;
use crate::counters::Counters;
use crate::view::json::SCHEMA;
use crate::view::json_text;

/// What the mount holds and does just now.
pub struct Now {
    /// Bytes of decoded samples in memory.
    pub cache_bytes: usize,
    /// Files of datasets that clients have open, and those that are read ahead.
    pub open_files: usize,
    /// What is in progress.
    pub gauges: Gauges,
}

/// Returns the state of the mount as JSON. Counters only ever grow, except `cache_bytes`; what is under `now` is 0 when
/// nobody reads.
#[must_use]
pub fn status(options: &Options, started: Instant, counters: &Counters, now: &Now) -> String {
    let mut counted: Map<String, Value> =
        counters.list().into_iter().map(|(name, n)| (name.into(), n.into())).collect();
    counted.insert("cache_bytes".into(), now.cache_bytes.into());
    let Gauges { jobs, bricks_in_flight, decoders, decoder_bytes } = now.gauges;
    json_text::format(&json!({
        "schema": SCHEMA,
        "version": env!("CARGO_PKG_VERSION"),
        "pid": process::id(),
        "source": options.source.to_string_lossy(),
        "options": options.shown,
        "uptime": started.elapsed().as_secs_f64(),
        "counters": counted,
        "now": {
            "open_files": now.open_files,
            "jobs": jobs,
            "bricks_in_flight": bricks_in_flight,
            "decoders": decoders,
            "decoder_bytes": decoder_bytes,
        },
    }))
}
