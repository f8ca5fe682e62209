//! `.volfs/status.json`: the options and counters of the mount.

use std::process;
use std::time::Duration;

use serde_json::{Map, Value, json};

use super::dataset_counters::{CountedDatasets, CounterSums, DatasetCounters, MAX_IDLE};
use super::options::Options;
use crate::array::Gauges;
use crate::counters::Counters;
use crate::source::StoreStatus;
use crate::source::disk_cache::DiskCacheStatistics;
use crate::view::json::SCHEMA;
use crate::view::json_text;

/// The most bytes of text of the datasets' counters. Programs expect less than 64 KiB of the whole.
const MAX_TEXT: usize = 40 << 10;

/// What the mount holds and does just now.
pub(crate) struct Now {
    /// How long it has been up.
    pub uptime: Duration,
    /// Bytes of decoded samples in memory.
    pub cache_bytes: usize,
    /// Files of datasets that clients have open, and those that are read ahead.
    pub open_files: usize,
    /// What is in progress.
    pub gauges: Gauges,
    /// The counters of the object store, if the source is in one.
    pub store: Option<StoreStatus>,
    /// What of the source has not answered for long, or null.
    pub source_stall: Value,
}

/// Returns the state of the mount as JSON. Counters only ever grow, except `cache_bytes`; what is under `now` is 0 when
/// nobody reads. Without `names` there is nothing that names files and folders, but for the source, which everybody can
/// find in the list of mounts.
pub(crate) fn status(
    options: &Options,
    counters: &Counters,
    (datasets, names): (&CountedDatasets, bool),
    now: &Now,
) -> String {
    // before the counters of the mount, which so are never less than the sums of these
    let (datasets, others) = listed(datasets, if names { MAX_IDLE } else { 0 });
    let mut shown = options.shown.clone();
    if !names {
        shown.retain(|_, value| !value.is_string() && !value.is_array());
    }
    let mut counted = object(counters.list());
    counted.insert("cache_bytes".into(), now.cache_bytes.into());
    let Gauges { jobs, bricks_in_flight, decoders, decoder_bytes } = now.gauges;
    json_text(&json!({
        "schema": SCHEMA,
        "version": env!("CARGO_PKG_VERSION"),
        "pid": process::id(),
        "source": options.source.to_string_lossy(),
        "options": shown,
        "uptime": now.uptime.as_secs_f64(),
        "counters": counted,
        "now": {
            "open_files": now.open_files,
            "jobs": jobs,
            "bricks_in_flight": bricks_in_flight,
            "decoders": decoders,
            "decoder_bytes": decoder_bytes,
        },
        "source_stall": now.source_stall,
        "store": now.store.as_ref().map(store),
        "datasets": datasets,
        "other_datasets": others,
    }))
}

/// Returns the counters of an object store; latencies in milliseconds.
fn store(status: &StoreStatus) -> Value {
    let milliseconds = |latency: Option<Duration>| latency.map(|latency| latency.as_micros() as f64 / 1000.0);
    json!({
        "requests": status.requests,
        "bytes": status.bytes,
        "retries": status.retries,
        "in_flight": status.in_flight,
        "staged_bytes": status.staged_bytes,
        "latency_p50_ms": milliseconds(status.latency_p50),
        "latency_p99_ms": milliseconds(status.latency_p99),
        "disk_cache": status.disk.as_ref().map(disk_cache),
    })
}

/// Returns the counters of a disk cache, and what it holds.
fn disk_cache(disk: &DiskCacheStatistics) -> Value {
    json!({
        "hits": disk.hits,
        "hit_bytes": disk.hit_bytes,
        "misses": disk.misses,
        "missed_bytes": disk.missed_bytes,
        "written_bytes": disk.written_bytes,
        "dropped": disk.dropped,
        "evicted": disk.evicted,
        "bad": disk.bad,
        "bytes": disk.bytes,
        "files": disk.files,
    })
}

/// Returns the counters of the datasets that were read last, `most` of them, and the sums of all others.
fn listed(datasets: &CountedDatasets, most: usize) -> (Vec<Value>, Value) {
    let (datasets, mut others) = datasets.list();
    let (mut listed, mut text) = (Vec::new(), 0);
    for dataset in datasets {
        let value = described(&dataset);
        text += json_text(&value).len();
        if listed.len() < most && text <= MAX_TEXT {
            listed.push(value);
        } else {
            others.add(&dataset.counters);
        }
    }
    let CounterSums { datasets, sums } = others;
    let names = Counters::default().list().map(|(name, _)| name);
    let mut others = Map::from_iter([("count".to_owned(), datasets.into())]);
    others.extend(object(names.into_iter().zip(sums)));
    (listed, others.into())
}

fn described(dataset: &DatasetCounters) -> Value {
    let head =
        [("path".to_owned(), dataset.path.as_str().into()), ("since".to_owned(), dataset.since.as_secs_f64().into())];
    head.into_iter().chain(object(dataset.counters.list())).collect::<Map<_, _>>().into()
}

fn object<'a>(counters: impl IntoIterator<Item = (&'a str, u64)>) -> Map<String, Value> {
    counters.into_iter().map(|(name, n)| (name.to_owned(), n.into())).collect()
}
