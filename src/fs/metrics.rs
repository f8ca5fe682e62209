//! The state of mounts for Prometheus, in its text exposition format of version 0.0.4.
//!
//! Names are those of Prometheus: units are seconds and bytes, and what only grows ends in `_total`.

use serde_json::Value;

/// A mount or a server.
pub(crate) struct Metered {
    /// Empty for a server.
    pub(crate) mountpoint: String,
    pub(crate) source: String,
    pub(crate) is_up: bool,
    /// Its status.json, if it has answered.
    pub(crate) status: Option<Value>,
}

/// Where status.json has each number, the name that it gets, and what it is. A number that is null or not there is left
/// out; one in milliseconds becomes one in seconds.
const METRICS: [(&str, &str, &str); 36] = [
    ("/uptime", "uptime_seconds", "Time since the mount was made, or the server was started."),
    ("/counters/reads", "reads_total", "Read requests."),
    ("/counters/bytes_read", "read_bytes_total", "Bytes delivered to read requests."),
    ("/counters/errors", "errors_total", "Read requests that failed."),
    ("/counters/bricks_decoded", "decoded_bricks_total", "Bricks decoded."),
    ("/counters/bytes_decoded", "decoded_bytes_total", "Bytes that came out of decoding."),
    ("/counters/prefetched", "prefetched_bricks_total", "Bricks decoded before they were requested."),
    ("/counters/cache_hits", "cache_hits_total", "Bricks found in the cache."),
    ("/counters/cache_misses", "cache_misses_total", "Bricks not found in the cache."),
    ("/counters/cache_bytes", "cache_bytes", "Bytes that the cache holds."),
    ("/options/cache_size", "cache_limit_bytes", "Bytes that the cache may hold."),
    ("/counters/source_bytes", "source_bytes_total", "Bytes fetched from the source."),
    ("/now/open_files", "open_files", "Files that are open."),
    ("/now/jobs", "jobs", "Jobs that run or wait."),
    ("/now/bricks_in_flight", "bricks_in_flight", "Bricks that are being loaded."),
    ("/now/decoders", "decoders", "Decoders that run."),
    ("/now/decoder_bytes", "decoder_bytes", "Bytes that running decoders need."),
    ("/source_stall/seconds", "source_stall_seconds", "Time for which the source has not answered; only if it stalls."),
    ("/source_stall/reads_waiting", "stalled_reads", "Read requests that wait for a source that stalls."),
    ("/store/requests", "store_requests_total", "Requests to the object store."),
    ("/store/bytes", "store_bytes_total", "Bytes fetched from the object store."),
    ("/store/retries", "store_retries_total", "Requests to the object store that were sent again."),
    ("/store/in_flight", "store_requests_in_flight", "Requests to the object store that wait for an answer."),
    ("/store/staged_bytes", "store_staged_bytes", "Bytes of the object store held in memory until they are read."),
    ("/store/latency_p50_ms", "store_latency_p50_seconds", "Half of the answers of the object store took less."),
    ("/store/latency_p99_ms", "store_latency_p99_seconds", "99 % of the answers of the object store took less."),
    ("/store/disk_cache/hits", "disk_cache_hits_total", "Look-ups that found something in the disk cache."),
    ("/store/disk_cache/hit_bytes", "disk_cache_hit_bytes_total", "Bytes found in the disk cache."),
    ("/store/disk_cache/misses", "disk_cache_misses_total", "Look-ups that found nothing in the disk cache."),
    ("/store/disk_cache/missed_bytes", "disk_cache_missed_bytes_total", "Bytes not found in the disk cache."),
    ("/store/disk_cache/written_bytes", "disk_cache_written_bytes_total", "Bytes written to the disk cache."),
    ("/store/disk_cache/dropped", "disk_cache_dropped_total", "Pieces that were not written to the disk cache."),
    ("/store/disk_cache/evicted", "disk_cache_evicted_total", "Files removed from the disk cache to make room."),
    ("/store/disk_cache/bad", "disk_cache_bad_total", "Damaged pieces found in the disk cache."),
    ("/store/disk_cache/bytes", "disk_cache_bytes", "Bytes that the disk cache holds."),
    ("/store/disk_cache/files", "disk_cache_files", "Files that the disk cache holds."),
];

/// Returns the state of mounts, each with the labels `mountpoint` and `source`.
pub(crate) fn metrics(mounts: &[Metered]) -> String {
    let help = "Whether the daemon answers: 0 if it died, hangs or is stopped.";
    let mut text = family(mounts, "up", help, |mount| Some(u8::from(mount.is_up).to_string()));
    for (place, name, help) in METRICS {
        text += &family(mounts, name, help, |mount| {
            let number = mount.status.as_ref()?.pointer(place).filter(|number| number.is_number())?;
            Some(if place.ends_with("_ms") { (number.as_f64()? / 1000.0).to_string() } else { number.to_string() })
        });
    }
    text
}

/// Returns the lines of one name; none if no mount has a value.
fn family(mounts: &[Metered], name: &str, help: &str, value: impl Fn(&Metered) -> Option<String>) -> String {
    let line = |mount: &Metered| {
        let Metered { mountpoint, source, .. } = mount;
        let labels = format!("mountpoint=\"{}\",source=\"{}\"", escaped(mountpoint), escaped(source));
        Some(format!("volfs_{name}{{{labels}}} {}\n", value(mount)?))
    };
    let lines: String = mounts.iter().filter_map(line).collect();
    let kind = if name.ends_with("_total") { "counter" } else { "gauge" };
    match lines.is_empty() {
        true => lines,
        false => format!("# HELP volfs_{name} {help}\n# TYPE volfs_{name} {kind}\n{lines}"),
    }
}

/// Returns the value of a label as the format has it.
fn escaped(value: &str) -> String {
    value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::counters::Counters;

    #[test]
    fn each_name_is_explained_once_before_the_values_of_all_mounts() {
        let status = json!({"uptime": 12.5, "counters": {"reads": u64::MAX}, "store": {"latency_p50_ms": 1.5},
                            "source_stall": null, "now": {"jobs": "many"}});
        let mount = |mountpoint: &str, status: Option<Value>| Metered {
            mountpoint: mountpoint.to_owned(),
            source: "/d".to_owned(),
            is_up: status.is_some(),
            status,
        };
        let text = metrics(&[mount("/m\"n\\o\np", Some(status)), mount("/dead", None)]);
        let shown = r#"{mountpoint="/m\"n\\o\np",source="/d"}"#;
        let expected = format!(
            "# HELP volfs_up Whether the daemon answers: 0 if it died, hangs or is stopped.\n\
             # TYPE volfs_up gauge\n\
             volfs_up{shown} 1\n\
             volfs_up{{mountpoint=\"/dead\",source=\"/d\"}} 0\n\
             # HELP volfs_uptime_seconds Time since the mount was made, or the server was started.\n\
             # TYPE volfs_uptime_seconds gauge\n\
             volfs_uptime_seconds{shown} 12.5\n\
             # HELP volfs_reads_total Read requests.\n\
             # TYPE volfs_reads_total counter\n\
             volfs_reads_total{shown} 18446744073709551615\n\
             # HELP volfs_store_latency_p50_seconds Half of the answers of the object store took less.\n\
             # TYPE volfs_store_latency_p50_seconds gauge\n\
             volfs_store_latency_p50_seconds{shown} 0.0015\n"
        );
        assert_eq!(text, expected);
        assert_eq!(metrics(&[]), "");
    }

    #[test]
    fn every_counter_has_a_name_of_its_own() {
        for (counter, _) in Counters::default().list() {
            let named = METRICS.iter().find(|(place, ..)| *place == format!("/counters/{counter}"));
            assert!(named.is_some_and(|(_, name, _)| name.ends_with("_total")), "{counter}");
        }
        let mut names = METRICS.map(|(_, name, _)| name);
        names.sort_unstable();
        assert!(names.windows(2).all(|pair| pair[0] != pair[1]));
    }
}
