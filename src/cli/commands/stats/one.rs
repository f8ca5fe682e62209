//! The statistics of one mount, for people.

use std::path::Path;

use serde_json::Value;

use super::datasets;
use super::rates::hit_rate;
use crate::cli::mounts::status;
use crate::cli::output;
use crate::cli::text::duration::duration;
use crate::cli::text::json_value::scalar;
use crate::cli::text::layout::TextLayout;
use crate::cli::text::number::float;
use crate::cli::text::size::Size;

/// Returns what a mount has done so far.
pub(crate) fn text(place: &Path, status: &Value) -> String {
    let mut layout = TextLayout::new(output::coloured());
    write(&mut layout, place, status);
    layout.text().to_owned()
}

fn write(layout: &mut TextLayout, place: &Path, status: &Value) {
    let counter = |name: &str| status["counters"][name].as_u64();
    let bytes = |name: &str| counter(name).map(|n| Size::of(n).to_string());
    layout.heading(&place.to_string_lossy());
    layout.row("source", scalar(&status["source"]));
    let daemon = scalar(&status["version"]).zip(scalar(&status["pid"]));
    layout.row("daemon", daemon.map(|(version, pid)| format!("volfs {version}, process {pid}")));
    let uptime = status["uptime"].as_f64().filter(|seconds| *seconds > 0.0);
    layout.row("up", uptime.map(duration));
    if let Some(stall) = status::stall(status) {
        layout.warning(&stall);
    }
    layout.row("options", Some(options(status)).filter(|text| !text.is_empty()));

    layout.heading("Reads");
    layout.row("requests", counter("reads").map(|n| n.to_string()));
    layout.row("delivered", bytes("bytes_read"));
    let each = counter("bytes_read").zip(counter("reads").filter(|n| *n > 0)).map(|(all, n)| Size::of(all / n));
    layout.row("in each", each.map(|size| format!("{size} on average")));
    layout.row("errors", counter("errors").map(errors));

    layout.heading("Cache");
    layout.row("held", cache(status));
    layout.row(
        "look-ups",
        counter("cache_hits").zip(counter("cache_misses")).map(|(hits, misses)| look_ups(hits, misses)),
    );

    layout.heading("Bricks");
    let decoded = counter("bricks_decoded").zip(bytes("bytes_decoded"));
    layout.row("decoded", decoded.map(|(n, size)| format!("{n}, {size}")));
    let ahead = counter("prefetched").map(|n| format!("{n}{}", share(n, counter("bricks_decoded").unwrap_or(0))));
    layout.row("ahead of need", ahead);
    let amplification = counter("bytes_decoded").zip(counter("bytes_read").filter(|n| *n > 0));
    let amplification = amplification.map(|(decoded, read)| float(decoded as f64 / read as f64, 3));
    layout.row("per byte read", amplification.map(|times| format!("{times} bytes decoded")));
    layout.row("from the source", bytes("source_bytes"));
    store(layout, &status["store"]);
    datasets::write(layout, status);
}

/// Writes what an object store was asked for, if the source is in one.
fn store(layout: &mut TextLayout, store: &Value) {
    let Some(requests) = store["requests"].as_u64() else { return };
    let number = |name: &str| store[name].as_u64();
    let milliseconds = |name: &str| store[name].as_f64().map(|ms| format!("{} ms", float(ms, 3)));
    layout.heading("Object store");
    layout.row("requests", Some(requests.to_string()));
    layout.row("fetched", number("bytes").map(|n| Size::of(n).to_string()));
    layout.row("sent again", number("retries").map(|n| n.to_string()));
    layout.row("in flight", number("in_flight").map(|n| n.to_string()));
    layout.row("in memory", number("staged_bytes").map(|n| Size::of(n).to_string()));
    let latency = milliseconds("latency_p50_ms").zip(milliseconds("latency_p99_ms"));
    layout.row("latency", latency.map(|(half, most)| format!("{half} (half of the answers), {most} (99 %)")));
    disk_cache(layout, &store["disk_cache"]);
}

/// Writes what the disk cache has done, if there is one.
fn disk_cache(layout: &mut TextLayout, disk: &Value) {
    let number = |name: &str| disk[name].as_u64().unwrap_or(0);
    let Some(held) = disk["bytes"].as_u64() else { return };
    layout.heading("Disk cache");
    layout.row("holds", Some(format!("{} in {} files", Size::of(held), number("files"))));
    let rate = hit_rate(number("hits"), number("misses"));
    layout.row("look-ups", Some(format!("{rate} hits, {} read", Size::of(number("hit_bytes")))));
    layout.row("written", Some(Size::of(number("written_bytes")).to_string()));
    let some = |n: u64| (n > 0).then(|| n.to_string());
    layout.row("not written", some(number("dropped")));
    layout.row("evicted", some(number("evicted")));
    layout.row("damaged", some(number("bad")));
}

/// Lists the options that differ from their defaults.
fn options(status: &Value) -> String {
    let given = |(name, value): (&String, &Value)| match (name.as_str(), value) {
        ("mountpoint" | "cache_size", _) | (_, Value::Bool(false)) => None,
        // the one that is not chosen
        ("zfp", value) if value == "volfs" => None,
        (_, Value::Bool(true)) => Some(name.replace('_', " ")),
        (_, value) => Some(format!("{} {}", name.replace('_', " "), scalar(value)?)),
    };
    let options = status["options"].as_object().into_iter().flatten().filter_map(given);
    options.collect::<Vec<_>>().join(", ")
}

/// Formats how full the cache is.
pub(crate) fn cache(status: &Value) -> Option<String> {
    let bound = status["options"]["cache_size"].as_u64();
    status["counters"]["cache_bytes"].as_u64().map(|held| match bound {
        Some(bound) => format!("{} of {}{}", Size::of(held), Size::of(bound), share(held, bound)),
        None => Size::of(held).to_string(),
    })
}

fn look_ups(hits: u64, misses: u64) -> String {
    match hits.saturating_add(misses) {
        0 => "none".to_owned(),
        all => format!("{all}, {hits} found{}", share(hits, all)),
    }
}

fn errors(n: u64) -> String {
    if n == 0 { "none".to_owned() } else { format!("{n} (see .volfs/log below the mount point)") }
}

/// Formats a share as ` (12.5 %)`; returns an empty text if the whole is 0.
pub(crate) fn share(part: u64, whole: u64) -> String {
    if whole == 0 { String::new() } else { format!(" ({} %)", float(part as f64 / whole as f64 * 100.0, 3)) }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn text(status: &Value) -> String {
        let mut layout = TextLayout::new(false);
        write(&mut layout, Path::new("/mnt/vol"), status);
        layout.text().to_owned()
    }

    #[test]
    fn all_counters_are_shown() {
        let status = json!({
            "version": "0.1.0", "pid": 4711, "source": "/data/\u{1b}surveys", "uptime": 10.0,
            "options": {"mountpoint": "/mnt/vol", "foreground": false, "cache_size": 1_048_576, "threads": 4, "quality": null,
                        "direct_io": true, "allow_other": false, "log_file": null},
            "counters": {"reads": 64, "bytes_read": 8_388_608, "bricks_decoded": 10, "bytes_decoded": 10_485_760,
                         "cache_hits": 90, "cache_misses": 10, "source_bytes": 1024, "prefetched": 5, "errors": 2,
                         "cache_bytes": 524_288},
        });
        let text = text(&status);
        for line in [
            "/mnt/vol\n  source           /data/\\u{1b}surveys\n",
            "  daemon           volfs 0.1.0, process 4711\n",
            "  up               10 s\n",
            "  options          threads 4, direct io\n",
            "  requests         64\n  delivered        8.00 MiB\n  in each          128.00 KiB on average\n",
            "  errors           2 (see .volfs/log below the mount point)\n",
            "  held             512.00 KiB of 1.00 MiB (50 %)\n",
            "  look-ups         100, 90 found (90 %)\n",
            "  decoded          10, 10.00 MiB\n  ahead of need    5 (50 %)\n",
            "  per byte read    1.25 bytes decoded\n",
            "  from the source  1.00 KiB\n",
        ] {
            assert!(text.contains(line), "{line:?} in\n{text}");
        }
    }

    #[test]
    fn an_object_store_has_a_section_of_its_own() {
        let store = json!({"requests": 12, "bytes": 2048, "retries": 1, "in_flight": 3, "staged_bytes": 0,
                           "latency_p50_ms": 1.5, "latency_p99_ms": 20.25});
        let shown = text(&json!({"store": store}));
        for line in [
            "Object store\n  requests         12\n  fetched          2.00 KiB\n  sent again       1\n",
            "  latency          1.5 ms (half of the answers), 20.2 ms (99 %)\n",
        ] {
            assert!(shown.contains(line), "{line:?} in\n{shown}");
        }
        assert!(!text(&json!({"store": null})).contains("Object store"));
        let disk = json!({"hits": 3, "hit_bytes": 4096, "misses": 1, "written_bytes": 1 << 20, "dropped": 0,
            "evicted": 0, "bad": 1, "bytes": 2 << 20, "files": 5});
        let shown = text(&json!({"store": {"requests": 1, "disk_cache": disk}}));
        let part = "Disk cache\n  holds            2.00 MiB in 5 files\n  look-ups         75 % hits, 4.00 KiB read\n  \
                    written          1.00 MiB\n  damaged          1\n";
        assert!(shown.contains(part), "{shown}");
    }

    #[test]
    fn a_source_that_stalls_is_shown() {
        let stall = |reads: u64, others: u64| {
            let stall = json!({"since": 1_764_000_000.5, "seconds": 108.7, "reads_waiting": reads,
                               "dataset": "a/x.zgy", "other_datasets": others});
            text(&json!({"source_stall": stall}))
        };
        assert!(stall(3, 0).contains("the source (a/x.zgy) has not answered for 1 min 48 s; 3 reads wait\n"));
        assert!(
            stall(1, 2).contains("the source (a/x.zgy and 2 others) has not answered for 1 min 48 s; 1 read waits\n")
        );
        assert!(!text(&json!({"source_stall": null})).contains("answered"));
    }

    #[test]
    fn an_idle_mount_does_not_divide_by_zero() {
        let text = text(&json!({"uptime": 0.0, "counters": {"reads": 0, "bytes_read": 0, "bytes_decoded": 0,
            "cache_hits": 0, "cache_misses": 0, "errors": 0, "prefetched": 0, "bricks_decoded": 0}}));
        assert!(text.contains("look-ups         none\n") && text.contains("errors           none\n"), "{text}");
        assert!(!text.contains("throughput"), "{text}");
        assert!(!text.contains("NaN") && !text.contains("inf") && !text.contains("per byte"), "{text}");
    }
}
