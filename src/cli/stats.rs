//! `volfs stats`: prints the counters of one mount or of all, once or at intervals.

use std::cmp::Reverse;
use std::collections::{BTreeSet, HashMap};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use clap::{Args, ValueEnum};
use serde_json::{Value, json};

use super::error::CliError;
use super::layout::{Table, TextLayout};
use super::mounts::{Asker, NoStatus, all_mounts, ask, find_volfs_mount, stall};
use super::output;
use super::processes::Daemon;
use super::source::mountpoint_of;
use super::text::{Size, duration, escaped_path, float, items, scalar, seconds, timestamp};
use crate::fs::{Metered, metrics};
use crate::mount::{Mount, topmost};
use crate::view::{json::SCHEMA, json_text};

#[derive(Debug, Args)]
#[command(after_help = STATS_EXAMPLE)]
pub(super) struct StatsArgs {
    /// Where a mount is, or any path inside it; may be repeated [default: all mounts]
    mountpoint: Vec<PathBuf>,

    /// Show what happens now, again after each interval [default: 1 second]
    ///
    /// A line for each mount and interval: reads, bricks and bytes per second, and the hit rate. Ctrl-C ends it.
    #[arg(long, value_name = "SECONDS", num_args = 0..=1, require_equals = true, default_missing_value = "1")]
    #[arg(value_parser = seconds)]
    watch: Option<Duration>,

    /// Print JSON for programs
    ///
    /// With one MOUNTPOINT the mount's .volfs/status.json; otherwise an object with a list `mounts`, each with mountpoint,
    /// source, state (alive, dead, silent, denied, error) and status. With --watch one object a line for each mount and
    /// interval: `seconds`, and under `increase` how much each counter grew in them, without the reads of this command.
    #[arg(long)]
    pub(super) json: bool,

    /// Print the counters in a format for other programs
    #[arg(long, value_enum, conflicts_with_all = ["json", "watch"])]
    format: Option<Format>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Format {
    /// The text format of Prometheus; volfs_up is 0 for a mount that does not answer
    Prometheus,
}

const STATS_EXAMPLE: &str = "\
Example:
  volfs stats
  volfs stats /mnt/vol
  volfs stats --watch /mnt/vol
  volfs stats --watch=10 --json >> volfs.log
  volfs stats --json /mnt/vol | jq .counters.errors
  volfs stats --format prometheus > volfs.prom";

/// The time for one mount to answer, and for all together.
const TIMEOUT: Duration = Duration::from_secs(5);
const TIMEOUT_OF_ALL: Duration = Duration::from_secs(2);

/// The most datasets that are shown of one mount.
const MOST_DATASETS: usize = 5;

pub(super) fn run(args: &StatsArgs) -> Result<(), CliError> {
    let around = |typed: &PathBuf| find_mount(mountpoint_of(typed)?.as_deref().unwrap_or(typed));
    let places = args.mountpoint.iter().map(|typed| Ok(around(typed)?.mountpoint));
    // each once, though paths inside it may have been typed as well
    let places = Vec::from_iter(places.collect::<Result<BTreeSet<PathBuf>, CliError>>()?);
    match (&places[..], args.watch) {
        (places, Some(interval)) => watch(places, interval, args.json),
        ([place], None) if args.format.is_none() => {
            let status = ask(place, TIMEOUT).map_err(|why| failure(place, &why))?;
            output::object_or_text(args.json, || status.clone(), |layout| write(layout, place, &status))
        }
        (places, None) => print_all(places, args),
    }
}

fn find_mount(place: &Path) -> Result<Mount, CliError> {
    find_volfs_mount(place, |_| "to see those of volfs type: volfs stats".to_owned())
}

/// Returns the error for a mount that does not give its status.
fn failure(place: &Path, why: &NoStatus) -> CliError {
    let shown = escaped_path(place);
    match why {
        NoStatus::Denied => CliError::new(
            format!("the mount at {shown} belongs to another user"),
            "ask as that user, or mount with --allow-other",
        ),
        NoStatus::Dead => CliError::new(
            format!("the daemon of the mount at {shown} died"),
            format!("to clear it type: volfs umount {shown}"),
        ),
        NoStatus::Silent => CliError::new(
            format!("the mount at {shown} did not answer within {} s", TIMEOUT.as_secs()),
            Daemon::remedy(Daemon::at(place), place),
        ),
        NoStatus::Error(error) => {
            CliError::new(format!("cannot read the status of the mount at {shown}: {error}"), "is it of this version?")
        }
    }
}

struct Found {
    place: PathBuf,
    /// The source that the list of mounts names.
    source: PathBuf,
    status: Result<Value, NoStatus>,
    /// The daemon of a mount that does not answer, if it can be found.
    daemon: Option<Daemon>,
}

impl Found {
    /// Returns the state of the mount in JSON, and in a table.
    fn state(&self) -> [&'static str; 2] {
        match &self.status {
            Ok(_) => ["alive"; 2],
            Err(NoStatus::Dead) => ["dead"; 2],
            Err(NoStatus::Silent) => ["silent", "no answer"],
            Err(NoStatus::Denied) => ["denied", "not shared"],
            Err(NoStatus::Error(_)) => ["error"; 2],
        }
    }

    fn error(&self) -> Option<String> {
        self.status.as_ref().err().map(|why| match why {
            NoStatus::Silent => format!("it did not answer within {} s", TIMEOUT_OF_ALL.as_secs()),
            why => why.to_string(),
        })
    }

    /// Returns what a user should know about the mount.
    fn remark(&self) -> Option<String> {
        let place = escaped_path(&self.place);
        let text = match &self.status {
            Ok(status) => stall(status)?,
            Err(NoStatus::Dead) => format!("{}; to clear it type: volfs umount {place}", self.error()?),
            Err(NoStatus::Silent) => format!("{}; {}", self.error()?, Daemon::remedy(self.daemon, &self.place)),
            Err(_) => self.error()?,
        };
        Some(format!("{place}: {text}"))
    }

    fn metered(&self) -> Metered {
        Metered {
            mountpoint: self.place.to_string_lossy().into_owned(),
            source: self.source.to_string_lossy().into_owned(),
            // the mount of another user answers that user
            is_up: matches!(self.status, Ok(_) | Err(NoStatus::Denied)),
            status: self.status.clone().ok(),
        }
    }

    fn object(&self) -> Value {
        json!({
            "mountpoint": self.place.to_string_lossy(),
            "source": self.source.to_string_lossy(),
            "state": self.state()[0],
            "error": self.error(),
            "status": self.status.as_ref().ok(),
        })
    }

    fn row(&self) -> Vec<String> {
        let mut row = vec![self.place.to_string_lossy().into_owned(), self.source.to_string_lossy().into_owned()];
        match &self.status {
            Err(_) => row.push(self.state()[1].to_owned()),
            Ok(status) => {
                let counters = &status["counters"];
                row.extend([
                    duration(status["uptime"].as_f64().unwrap_or(0.0)),
                    Size(count(counters, "cache_bytes")).to_string(),
                    hit_rate(counters, "cache_"),
                    count(counters, "reads").to_string(),
                    Size(count(counters, "bytes_read")).to_string(),
                    count(counters, "errors").to_string(),
                ]);
            }
        }
        row
    }
}

/// Prints a line for each mount at these places, or for all mounts.
fn print_all(places: &[PathBuf], args: &StatsArgs) -> Result<(), CliError> {
    let found = find_at(places, &mut Asker::default())?;
    if args.format == Some(Format::Prometheus) {
        return output::print(&metrics(&found.iter().map(Found::metered).collect::<Vec<_>>()));
    }
    if found.is_empty() && !args.json {
        output::note("nothing is mounted by volfs; to mount type: volfs mount SOURCE MOUNTPOINT");
        return Ok(());
    }
    let objects = || found.iter().map(Found::object).collect::<Value>();
    let object = || json!({"schema": SCHEMA, "mounts": objects()});
    output::object_or_text(args.json, object, |layout| write_all(layout, &found))
}

/// Asks the mounts at these places, or all mounts if there are none.
fn find_at(places: &[PathBuf], asker: &mut Asker) -> Result<Vec<Found>, CliError> {
    if places.is_empty() {
        return find_all(asker);
    }
    let mounts = places.iter().map(|place| find_mount(place)).collect::<Result<Vec<_>, _>>()?;
    Ok(find(asker, mounts.iter().collect()))
}

fn find_all(asker: &mut Asker) -> Result<Vec<Found>, CliError> {
    let all = all_mounts()?;
    // a mount of a folder of a mount (mount --bind) has no status
    let is_wanted = |mount: &&Mount| {
        mount.is_volfs() && mount.root.as_os_str() == "/" && topmost(&all, &mount.mountpoint) == Some(mount)
    };
    Ok(find(asker, all.iter().filter(is_wanted).collect()))
}

fn find(asker: &mut Asker, mounts: Vec<&Mount>) -> Vec<Found> {
    let places: Vec<PathBuf> = mounts.iter().map(|mount| mount.mountpoint.clone()).collect();
    let answers = asker.ask(&places, TIMEOUT_OF_ALL);
    let found = mounts.into_iter().zip(places).zip(answers).map(|((mount, place), status)| {
        let daemon = if status == Err(NoStatus::Silent) { Daemon::find(mount) } else { None };
        Found { place, source: mount.source().to_owned(), status, daemon }
    });
    found.collect()
}

fn write_all(layout: &mut TextLayout, found: &[Found]) {
    let titles = ["mount point", "source", "up", "cache", "hit rate", "reads", "delivered", "errors"];
    layout.table(&titles, found.iter().map(Found::row));
    found.iter().filter_map(Found::remark).for_each(|remark| layout.warning(&remark));
}

fn write(layout: &mut TextLayout, place: &Path, status: &Value) {
    let counters = &status["counters"];
    let number = |name: &str| counters[name].as_u64();
    let more_than_0 = |name: &str| number(name).filter(|n| *n > 0);
    let size = |name: &str| number(name).map(Size);
    layout.heading(&place.to_string_lossy());
    layout.row("source", scalar(&status["source"]));
    let daemon = scalar(&status["version"]).zip(scalar(&status["pid"]));
    layout.row("daemon", daemon.map(|(version, pid)| format!("volfs {version}, process {pid}")));
    layout.row("up", status["uptime"].as_f64().filter(|seconds| *seconds > 0.0).map(duration));
    if let Some(stall) = stall(status) {
        layout.warning(&stall);
    }
    layout.row("options", Some(options(status)).filter(|text| !text.is_empty()));

    layout.heading("Reads");
    layout.row("requests", number("reads"));
    layout.row("delivered", size("bytes_read"));
    let each = number("bytes_read").zip(more_than_0("reads")).map(|(all, n)| Size(all / n));
    layout.row("in each", each.map(|size| format!("{size} on average")));
    let none_or = |n: u64, text: String| if n == 0 { "none".to_owned() } else { text };
    let errors = |n| none_or(n, format!("{n} (see .volfs/log below the mount point)"));
    layout.row("errors", number("errors").map(errors));

    layout.heading("Cache");
    let bound = status["options"]["cache_size"].as_u64();
    let of = |held| bound.map(|bound| format!(" of {}{}", Size(bound), share(held, bound))).unwrap_or_default();
    layout.row("held", number("cache_bytes").map(|held| format!("{}{}", Size(held), of(held))));
    let look_ups = |(hits, misses): (u64, u64)| {
        let all = hits.saturating_add(misses);
        none_or(all, format!("{all}, {hits} found{}", share(hits, all)))
    };
    layout.row("look-ups", number("cache_hits").zip(number("cache_misses")).map(look_ups));

    layout.heading("Bricks");
    layout.row("decoded", number("bricks_decoded").zip(size("bytes_decoded")).map(|(n, size)| format!("{n}, {size}")));
    let ahead = number("prefetched").map(|n| format!("{n}{}", share(n, count(counters, "bricks_decoded"))));
    layout.row("ahead of need", ahead);
    let amplification = number("bytes_decoded").zip(more_than_0("bytes_read"));
    let amplification = amplification.map(|(decoded, read)| float(decoded as f64 / read as f64, 3));
    layout.row("per byte read", amplification.map(|times| format!("{times} bytes decoded")));
    layout.row("from the source", size("source_bytes"));
    store(layout, &status["store"]);
    datasets(layout, status);
}

/// Writes the requests to an object store, if the source is in one.
fn store(layout: &mut TextLayout, store: &Value) {
    let number = |name: &str| store[name].as_u64();
    let milliseconds = |name: &str| store[name].as_f64().map(|ms| format!("{} ms", float(ms, 3)));
    if number("requests").is_none() {
        return;
    }
    layout.heading("Object store");
    layout.row("requests", number("requests"));
    layout.row("fetched", number("bytes").map(Size));
    layout.row("sent again", number("retries"));
    layout.row("in flight", number("in_flight"));
    layout.row("in memory", number("staged_bytes").map(Size));
    let latency = milliseconds("latency_p50_ms").zip(milliseconds("latency_p99_ms"));
    layout.row("latency", latency.map(|(half, most)| format!("{half} (half of the answers), {most} (99 %)")));
    let disk = &store["disk_cache"];
    let Some(held) = disk["bytes"].as_u64() else { return };
    layout.heading("Disk cache");
    layout.row("holds", Some(format!("{} in {} files", Size(held), count(disk, "files"))));
    let rate = hit_rate(disk, "");
    layout.row("look-ups", Some(format!("{rate} hits, {} read", Size(count(disk, "hit_bytes")))));
    layout.row("written", Some(Size(count(disk, "written_bytes"))));
    for (label, name) in [("not written", "dropped"), ("evicted", "evicted"), ("damaged", "bad")] {
        layout.row(label, Some(count(disk, name)).filter(|n| *n > 0));
    }
}

/// Lists the options that differ from their defaults.
fn options(status: &Value) -> String {
    let given = |(name, value): (&String, &Value)| match (name.as_str(), value) {
        ("mountpoint" | "cache_size", _) | (_, Value::Bool(false)) => None,
        (_, Value::Bool(true)) => Some(name.replace('_', " ")),
        (_, value) => Some(format!("{} {}", name.replace('_', " "), scalar(value)?)),
    };
    let options = status["options"].as_object().into_iter().flatten().filter_map(given);
    options.collect::<Vec<_>>().join(", ")
}

/// Writes the datasets of which most was read, if any was.
fn datasets(layout: &mut TextLayout, status: &Value) {
    let mut datasets: Vec<&Value> = items(&status["datasets"]).filter(|of| count(of, "reads") > 0).collect();
    datasets.sort_by_key(|of| Reverse(count(of, "bytes_read")));
    if datasets.is_empty() {
        return;
    }
    layout.heading("Datasets");
    let rows = datasets.iter().take(MOST_DATASETS).map(|of| {
        let errors = Some(count(of, "errors")).filter(|n| *n > 0);
        vec![
            count(of, "reads").to_string(),
            Size(count(of, "bytes_read")).to_string(),
            Size(count(of, "bytes_decoded")).to_string(),
            hit_rate(of, "cache_"),
            errors.map(|n| n.to_string()).unwrap_or_default(),
            // last, since it may be long
            of["path"].as_str().unwrap_or_default().to_owned(),
        ]
    });
    layout.table(&["reads", "delivered", "decoded", "hit rate", "errors", "dataset"], rows);
    let others = count(&status["other_datasets"], "count");
    let more = others.saturating_add(datasets.len().saturating_sub(MOST_DATASETS) as u64);
    if more > 0 {
        layout.block(&format!("and {more} more"));
    }
}

/// The titles of the lines of `--watch`, and the largest width of a column.
const WATCH_TITLES: [&str; 9] =
    ["UTC", "mount point", "reads", "delivered", "bricks", "decoded", "from source", "hit rate", "errors"];
const MAX_COLUMN_WIDTH: usize = 40;

/// Prints what the mounts at these places do, or all, after each interval, until the reader of the output is gone. Fails
/// if one at these places is gone or its daemon died; a mount that does not answer in time may do so later.
fn watch(places: &[PathBuf], interval: Duration, json: bool) -> Result<(), CliError> {
    let (mut asker, mut samples) = (Asker::default(), HashMap::new());
    let (mut table, mut titles) = (Table::new(MAX_COLUMN_WIDTH), Some(WATCH_TITLES.map(str::to_owned).to_vec()));
    look(places, &mut asker, &mut samples)?;
    let mut next = Instant::now();
    loop {
        next += interval;
        thread::sleep(next.saturating_duration_since(Instant::now()));
        // does not make up for intervals that were missed, for instance while the machine slept
        next = next.max(Instant::now());
        let seen = look(places, &mut asker, &mut samples)?;
        let time = timestamp(SystemTime::now());
        let lines: Vec<String> = match json {
            true => seen.iter().map(|(found, grown)| watch_object(&time, found, grown.as_ref()).to_string()).collect(),
            false => {
                let rows = seen.iter().map(|(found, grown)| watch_row(&time, found, grown.as_ref()));
                table.lines(titles.take().into_iter().chain(rows).collect())
            }
        };
        let text: String = lines.iter().flat_map(|line| [line.as_str(), "\n"]).collect();
        if !output::part(text.as_bytes())? {
            return Ok(());
        }
    }
}

/// Asks some mounts, or all. Returns each, and what it did since its last answer unless that was another daemon's.
fn look(
    places: &[PathBuf],
    asker: &mut Asker,
    samples: &mut HashMap<PathBuf, Sample>,
) -> Result<Vec<(Found, Option<Increase>)>, CliError> {
    let seen = find_at(places, asker)?.into_iter().map(|found| match &found.status {
        Ok(status) => {
            let sample = Sample::new(status);
            let increase = samples.get(&found.place).and_then(|before| sample.since(before));
            samples.insert(found.place.clone(), sample);
            Ok((found, increase))
        }
        Err(why) if !places.is_empty() && *why != NoStatus::Silent => Err(failure(&found.place, why)),
        // it may answer again, and has then done something since its last answer
        Err(_) => Ok((found, None)),
    });
    seen.collect()
}

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
    fn since(&self, before: &Self) -> Option<Increase> {
        let is_same = self.status["pid"] == before.status["pid"];
        let counters = self.status["counters"].as_object().filter(|_| is_same)?.iter();
        let counters =
            counters.filter_map(|(name, n)| Some((name, n.as_u64()?))).filter(|(name, _)| *name != "cache_bytes");
        let counted = counters.map(|(name, now)| {
            // a status is counted once it is delivered: the last one is, this one is not
            let own = match name.as_str() {
                "reads" => 1,
                "bytes_read" => before.length,
                _ => 0,
            };
            let then = count(&before.status["counters"], name);
            Some((name.clone(), now.checked_sub(then)?.saturating_sub(own)))
        });
        Some(Increase { seconds: (self.at - before.at).as_secs_f64(), counted: counted.collect::<Option<_>>()? })
    }
}

/// How much each counter grew, by its name, in some seconds.
struct Increase {
    seconds: f64,
    counted: Value,
}

/// Returns the line of a mount; `time` is like `2026-01-31T12:34:56.789Z`.
fn watch_row(time: &str, found: &Found, increase: Option<&Increase>) -> Vec<String> {
    let time_of_day = time.get(11..19).unwrap_or(time);
    let mut row = vec![time_of_day.to_owned(), found.place.to_string_lossy().into_owned()];
    let Some(Increase { seconds, counted }) = increase else {
        row.push(if found.status.is_ok() { "new" } else { found.state()[1] }.to_owned());
        return row;
    };
    let rate = |name: &str| count(counted, name) as f64 / seconds.max(0.001);
    let events = |name: &str| format!("{:.0}/s", rate(name));
    let bytes = |name: &str| format!("{}/s", Size(rate(name) as u64));
    row.extend([
        events("reads"),
        bytes("bytes_read"),
        events("bricks_decoded"),
        bytes("bytes_decoded"),
        bytes("source_bytes"),
        hit_rate(counted, "cache_"),
        count(counted, "errors").to_string(),
    ]);
    row
}

fn watch_object(time: &str, found: &Found, increase: Option<&Increase>) -> Value {
    let hit_share = |counted: &Value| {
        let (hits, misses) = (count(counted, "cache_hits"), count(counted, "cache_misses"));
        (hits + misses > 0).then(|| hits as f64 / (hits + misses) as f64)
    };
    json!({
        "schema": SCHEMA,
        "time": time,
        "mountpoint": found.place.to_string_lossy(),
        "error": found.error(),
        "seconds": increase.map(|increase| increase.seconds),
        "increase": increase.map(|increase| &increase.counted),
        "hit_rate": increase.and_then(|increase| hit_share(&increase.counted)),
        "cache_bytes": found.status.as_ref().ok().map(|status| &status["counters"]["cache_bytes"]),
    })
}

/// Returns a counter; 0 if it is missing.
fn count(counters: &Value, name: &str) -> u64 {
    counters[name].as_u64().unwrap_or(0)
}

/// Formats a share as ` (12.5 %)`; returns an empty text if the whole is 0.
fn share(part: u64, whole: u64) -> String {
    if whole == 0 { String::new() } else { format!(" ({})", percent(part, whole)) }
}

/// Formats the share of look-ups that hit, by counters whose names begin like this; `-` without any.
fn hit_rate(counters: &Value, names: &str) -> String {
    let [hits, misses] = ["hits", "misses"].map(|kind| count(counters, &format!("{names}{kind}")));
    match hits.saturating_add(misses) {
        0 => "-".to_owned(),
        all => percent(hits, all),
    }
}

fn percent(part: u64, whole: u64) -> String {
    format!("{} %", float(part as f64 / whole as f64 * 100.0, 3))
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

    fn found(place: &str, status: Result<Value, NoStatus>) -> Found {
        let daemon = Some(Daemon { pid: 7, is_stopped: true });
        Found { place: place.into(), source: "/data".into(), status, daemon }
    }

    #[test]
    fn each_mount_is_a_row_and_dead_ones_say_what_to_type() {
        let status = json!({"uptime": 125.0, "counters": {"reads": 12, "bytes_read": 4096, "cache_hits": 3,
            "cache_misses": 1, "cache_bytes": 1 << 20, "errors": 0}});
        let all = [
            found("/mnt/a", Ok(status)),
            found("/mnt/b\x1b", Err(NoStatus::Dead)),
            found("/mnt/c", Err(NoStatus::Silent)),
            found("/mnt/d", Ok(json!({"uptime": "x"}))),
        ];
        let mut layout = TextLayout::new(false);
        write_all(&mut layout, &all);
        assert_eq!(
            layout.text(),
            "  mount point   source  up         cache     hit rate  reads  delivered  errors\n  \
               /mnt/a        /data   2 min 5 s  1.00 MiB  75 %         12  4.00 KiB        0\n  \
               /mnt/b\\u{1b}  /data   dead\n  \
               /mnt/c        /data   no answer\n  \
               /mnt/d        /data   0 s        0 bytes   -             0  0 bytes         0\n  \
               /mnt/b\\u{1b}: its daemon died; to clear it type: volfs umount /mnt/b\\u{1b}\n  \
               /mnt/c: it did not answer within 2 s; its daemon (process 7) is stopped; to continue it type: kill -CONT 7\n"
        );
        let dead = all[1].object();
        assert_eq!((&dead["state"], &dead["status"]), (&json!("dead"), &Value::Null));
        assert_eq!(all[0].object()["status"]["counters"]["reads"], 12);
    }

    #[test]
    fn the_datasets_of_which_most_was_read_are_shown() {
        let dataset = |path: &str, bytes: u64| {
            json!({"path": path, "since": 1.0, "reads": 3, "bytes_read": bytes, "bytes_decoded": 2 * bytes,
                   "cache_hits": 3, "cache_misses": 1, "errors": 0})
        };
        let unread = json!({"path": "unread", "reads": 0});
        let mut layout = TextLayout::new(false);
        let status = json!({"datasets": [dataset("a", 1024), unread, dataset("b\u{1b}", 4096)]});
        datasets(&mut layout, &status);
        assert_eq!(
            layout.text(),
            "Datasets\n  reads  delivered  decoded   hit rate  dataset\n      \
               3  4.00 KiB   8.00 KiB  75 %      b\\u{1b}\n      \
               3  1.00 KiB   2.00 KiB  75 %      a\n"
        );
        let many: Vec<Value> = (0..9).map(|n| dataset(&format!("d{n}"), n)).collect();
        let mut layout = TextLayout::new(false);
        datasets(&mut layout, &json!({"datasets": many, "other_datasets": {"count": 7}}));
        assert_eq!(layout.text().lines().count(), 1 + 1 + MOST_DATASETS + 1);
        assert!(layout.text().ends_with("  and 11 more\n"), "{}", layout.text());
        let mut layout = TextLayout::new(false);
        datasets(&mut layout, &json!({"counters": {}}));
        assert_eq!(layout.text(), "", "earlier versions have no list");
    }

    #[test]
    fn a_rate_is_of_the_interval_and_of_one_daemon() {
        let mut before =
            Sample::new(&json!({"pid": 7, "counters": {"reads": 10, "bytes_read": 100, "cache_bytes": 9}}));
        let mut after =
            Sample::new(&json!({"pid": 7, "counters": {"reads": 30, "bytes_read": 4292, "cache_bytes": 5}}));
        (after.at, before.length) = (before.at + Duration::from_secs(2), 96);
        let increase = after.since(&before).unwrap();
        assert_eq!((increase.seconds, &increase.counted), (2.0, &json!({"reads": 19, "bytes_read": 4096})));
        let row = watch_row("2026-01-31T12:34:56.789Z", &found("/mnt/a", Ok(json!({}))), Some(&increase));
        assert_eq!(row[..4], ["12:34:56", "/mnt/a", "10/s", "2.00 KiB/s"]);
        after.status["pid"] = 8.into();
        assert!(after.since(&before).is_none());
        after.status["pid"] = 7.into();
        assert!(before.since(&after).is_none(), "counters that went back are of another daemon");
    }

    fn increase() -> Increase {
        let counted = json!({"reads": 24, "bytes_read": 2 << 20, "bricks_decoded": 4, "bytes_decoded": 4096,
            "cache_hits": 9, "cache_misses": 1, "source_bytes": 2048, "errors": 0});
        Increase { seconds: 2.0, counted }
    }

    #[test]
    fn each_mount_is_a_line_with_its_rates() {
        let time = "2026-01-31T12:34:56.789Z";
        let rows = vec![
            WATCH_TITLES.map(str::to_owned).to_vec(),
            watch_row(time, &found("/mnt/a", Ok(json!({}))), Some(&increase())),
            watch_row(time, &found("/mnt/b", Ok(json!({}))), None),
            watch_row(time, &found("/mnt/c\x1b", Err(NoStatus::Silent)), None),
        ];
        assert_eq!(
            Table::new(MAX_COLUMN_WIDTH).lines(rows),
            [
                "UTC       mount point   reads  delivered   bricks  decoded     from source  hit rate  errors",
                "12:34:56  /mnt/a        12/s   1.00 MiB/s  2/s     2.00 KiB/s  1.00 KiB/s   90 %      0",
                "12:34:56  /mnt/b        new",
                "12:34:56  /mnt/c\\u{1b}  no answer",
            ]
        );
    }

    #[test]
    fn rates_in_json_are_exact_numbers() {
        let alive = found("/mnt/a", Ok(json!({"counters": {"cache_bytes": 7}})));
        let object = watch_object("now", &alive, Some(&increase()));
        assert_eq!((&object["increase"]["reads"], &object["hit_rate"]), (&json!(24), &json!(0.9)));
        assert_eq!(
            (&object["seconds"], &object["cache_bytes"], &object["schema"]),
            (&json!(2.0), &json!(7), &json!(1))
        );
        let new = watch_object("now", &found("/mnt/a", Ok(json!({}))), None);
        assert_eq!((&new["increase"], &new["error"]), (&Value::Null, &Value::Null));
    }
}
