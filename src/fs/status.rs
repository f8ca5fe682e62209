//! `.volfs/status.json`: the options and counters of the mount.

use std::collections::HashMap;
use std::process;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use serde_json::{Map, Value, json};

use super::Volfs;
use super::metrics::{Metered, metrics};
use crate::array::Gauges;
use crate::catalog::NodeId;
use crate::counters::Counters;
use crate::source::StoreStatus;
use crate::source::disk_cache::DiskCacheStatistics;
use crate::sync::Mutex;
use crate::view::json::SCHEMA;
use crate::view::json_text;

/// The most bytes of text of the datasets' counters. Programs expect less than 64 KiB of the whole.
const MAX_TEXT: usize = 40 << 10;

impl Volfs {
    /// Returns the state of the mount as JSON. Counters only ever grow, except `cache_bytes`; what is under `now` is 0
    /// when nobody reads. Without `names` there is nothing that names files and folders, but for the source, which
    /// everybody can find in the list of mounts.
    pub(super) fn status(&self, names: bool) -> Value {
        // before the counters of the mount, which so are never less than the sums of these
        let (datasets, others) = listed(&self.datasets, if names { MAX_IDLE } else { 0 });
        let mut shown = self.options.shown.clone();
        if !names {
            shown.retain(|_, value| !value.is_string() && !value.is_array());
        }
        let mut counted = object(self.counters.list());
        counted.insert("cache_bytes".into(), self.reader.bytes_held().into());
        let Gauges { jobs, bricks_in_flight, decoders, decoder_bytes } = self.reader.gauges();
        json!({
            "schema": SCHEMA,
            "version": env!("CARGO_PKG_VERSION"),
            "pid": process::id(),
            "source": self.options.source.to_string_lossy(),
            "options": shown,
            "uptime": self.started.elapsed().as_secs_f64(),
            "counters": counted,
            "now": {
                "open_files": self.handles.open_files(),
                "jobs": jobs,
                "bricks_in_flight": bricks_in_flight,
                "decoders": decoders,
                "decoder_bytes": decoder_bytes,
            },
            "source_stall": self.stall_status(names),
            "store": self.catalog.tree().store_status().as_ref().map(store),
            "datasets": datasets,
            "other_datasets": others,
        })
    }

    /// Returns the state of this server for Prometheus.
    pub(crate) fn metrics(&self) -> String {
        let source = self.options.source.to_string_lossy().into_owned();
        metrics(&[Metered { mountpoint: String::new(), source, is_up: true, status: Some(self.status(false)) }])
    }
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

/// The most datasets whose counters are kept although no client has them open.
pub(crate) const MAX_IDLE: usize = 64;

/// The counters of one dataset.
pub(crate) struct DatasetCounters {
    /// The path relative to the root of the mount.
    pub path: String,
    /// How long the mount had been up when counting began.
    pub since: Duration,
    /// The counters.
    pub counters: Arc<Counters>,
    /// The number of the last read, among all reads of the mount.
    last_read: AtomicU64,
}

impl DatasetCounters {
    /// Begins counting for the dataset at `path`. `number` is that of the mount's last read.
    pub(crate) fn new(path: String, since: Duration, number: u64) -> Self {
        Self { path, since, counters: Arc::default(), last_read: AtomicU64::new(number) }
    }

    /// Counts a read, which has this number among all reads of the mount.
    pub(crate) fn count_read(&self, number: u64) {
        self.counters.reads.increment();
        self.last_read.store(number, Ordering::Relaxed);
    }

    /// Whether nobody but the table has it: no open file, and no work that began with a read.
    fn is_idle(self: &Arc<Self>) -> bool {
        Arc::strong_count(self) == 1 && Arc::strong_count(&self.counters) == 1
    }
}

/// The sums of the counters of datasets, in the order of [`Counters::list`], and the number of datasets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct CounterSums {
    /// The datasets; one whose counting began several times is there as often.
    pub datasets: u64,
    /// The sums.
    pub sums: [u64; 9],
}

impl CounterSums {
    /// Adds a dataset, unless it was never read.
    pub(crate) fn add(&mut self, counters: &Counters) {
        let counted = counters.list();
        self.datasets += u64::from(counted.iter().any(|(_, n)| *n > 0));
        self.sums.iter_mut().zip(counted).for_each(|(sum, (_, n))| *sum += n);
    }
}

/// The counters of all datasets that clients have open, and of [`MAX_IDLE`] others or a few more.
#[derive(Default)]
pub(crate) struct CountedDatasets(Mutex<State>);

#[derive(Default)]
struct State {
    datasets: HashMap<NodeId, Arc<DatasetCounters>>,
    /// Those that were dropped.
    dropped: CounterSums,
    /// The number of datasets in use when some were last dropped.
    in_use: usize,
}

impl CountedDatasets {
    /// Returns the counters of a dataset. Counting begins if there are none.
    pub(crate) fn of(&self, node: NodeId, new: impl FnOnce() -> DatasetCounters) -> Arc<DatasetCounters> {
        let mut state = self.0.lock();
        if let Some(known) = state.datasets.get(&node) {
            return Arc::clone(known);
        }
        // not at each one: many may be in use
        if state.datasets.len() >= 2 * state.in_use.max(MAX_IDLE) {
            state.drop_idle();
        }
        let new = Arc::new(new());
        state.datasets.insert(node, Arc::clone(&new));
        new
    }

    /// Returns all datasets whose counters are kept, the one that was read last first, and the sums of the others.
    pub(crate) fn list(&self) -> (Vec<Arc<DatasetCounters>>, CounterSums) {
        let state = self.0.lock();
        let mut listed: Vec<_> = state.datasets.values().map(|dataset| (last_read(dataset), dataset)).collect();
        listed.sort_by(|(a, _), (b, _)| b.cmp(a));
        (listed.into_iter().map(|(_, dataset)| Arc::clone(dataset)).collect(), state.dropped)
    }
}

impl State {
    /// Drops all idle datasets but those that were read last.
    fn drop_idle(&mut self) {
        let idle = self.datasets.iter().filter(|(_, dataset)| dataset.is_idle());
        let mut idle: Vec<(u64, NodeId)> = idle.map(|(node, dataset)| (last_read(dataset), *node)).collect();
        self.in_use = self.datasets.len() - idle.len();
        idle.sort_unstable();
        idle.truncate(idle.len().saturating_sub(MAX_IDLE));
        for (_, node) in idle {
            // nobody else counts in them any more, since only this table gives them out
            if let Some(dropped) = self.datasets.remove(&node) {
                self.dropped.add(&dropped.counters);
            }
        }
    }
}

fn last_read(dataset: &DatasetCounters) -> u64 {
    dataset.last_read.load(Ordering::Relaxed)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn new(node: NodeId) -> DatasetCounters {
        DatasetCounters::new(format!("{node}.zgy"), Duration::ZERO, 0)
    }

    /// Reads a dataset once, so many bytes.
    fn read(datasets: &CountedDatasets, node: NodeId, number: u64, bytes: u64) -> Arc<DatasetCounters> {
        let dataset = datasets.of(node, || new(node));
        dataset.count_read(number);
        dataset.counters.bytes_read.add(bytes);
        dataset
    }

    #[test]
    fn few_idle_datasets_are_kept_and_nothing_is_lost() {
        let datasets = CountedDatasets::default();
        let first = read(&datasets, 0, 1, 5);
        let in_flight = Arc::clone(&read(&datasets, 1, 2, 5).counters);
        for node in 2..100_000 {
            read(&datasets, node, u64::from(node) + 1, 5);
            if node % 1000 == 0 {
                read(&datasets, 2, u64::from(node) + 1, 5);
            }
            assert!(datasets.0.lock().datasets.len() <= 2 * MAX_IDLE);
        }
        let (listed, dropped) = datasets.list();
        assert_eq!(listed[0].path, "99999.zgy");
        assert!(listed.len() >= MAX_IDLE);
        assert!(listed.iter().any(|dataset| Arc::ptr_eq(dataset, &first)), "a dataset that is open is kept");
        assert!(listed.iter().any(|dataset| Arc::ptr_eq(&dataset.counters, &in_flight)), "and one in use");
        let mut all = dropped;
        listed.iter().for_each(|dataset| all.add(&dataset.counters));
        assert_eq!((all.sums[0], all.sums[1]), (100_099, 500_495));
        assert!(all.datasets >= 100_000);
    }

    #[test]
    fn many_datasets_in_use_are_all_kept_until_they_are_closed() {
        let datasets = CountedDatasets::default();
        let open: Vec<_> = (0..1000).map(|node| read(&datasets, node, 1000 - u64::from(node), 1)).collect();
        let (listed, dropped) = datasets.list();
        assert_eq!((listed.len(), dropped), (1000, CounterSums::default()));
        assert_eq!((&*listed[0].path, &*listed[999].path), ("0.zgy", "999.zgy"), "the one that was read last is first");
        drop((open, listed));
        (1000..5000).for_each(|node| drop(read(&datasets, node, 2000, 1)));
        assert!(datasets.0.lock().datasets.len() <= 2 * MAX_IDLE);
    }
}
