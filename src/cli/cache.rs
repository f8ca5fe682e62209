//! `volfs cache`: shows what a disk cache holds, or empties it.

use std::cmp::Reverse;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{SystemTime, UNIX_EPOCH};

use clap::Args;
use serde_json::{Value, json};

use super::error::CliError;
use super::file_system::entries;
use super::layout::TextLayout;
use super::output;
use super::text::{Size, counted, duration, escaped_path};
use crate::source::disk_cache::{self, Cleared, Inspection, Kept};
use crate::view::json::SCHEMA;

#[derive(Debug, Args)]
#[command(after_help = CACHE_EXAMPLE)]
pub(super) struct CacheArgs {
    /// The folder of the cache
    #[arg(value_name = "DIR")]
    cache_folder: PathBuf,

    /// Remove all that is in it
    ///
    /// The folder stays, and so do files in it that do not belong to the cache.
    #[arg(long, conflicts_with = "check")]
    pub(super) clear: bool,

    /// Read all of it, and compare the checksums
    ///
    /// A mount checks what it reads, and fetches bad files anew, so nothing needs to be done about them.
    #[arg(long)]
    pub(super) check: bool,

    /// Print JSON for programs
    ///
    /// files and bytes, oldest and newest (when they were last used, in seconds since 1970), the same for each volume
    /// under `datasets` with its store and name, and under `bad` for damaged files, with the first of their names; `foreign`
    /// counts names that do not belong to the cache. With --clear: `cleared`, with files and
    /// bytes, and `foreign`.
    #[arg(long)]
    json: bool,
}

const CACHE_EXAMPLE: &str = "\
Example:
  volfs cache /scratch/volfs
  volfs cache --check /scratch/volfs
  volfs cache --clear /scratch/volfs
  volfs cache --json /scratch/volfs | jq .bytes";

/// The bar: the number of files is not known beforehand.
const COUNTING: &str = "{spinner} {human_pos} files";

/// Names of bad files that are printed.
const NAMED: usize = 5;

pub(super) fn run(args: &CacheArgs) -> Result<(), CliError> {
    if args.clear {
        return clear(args);
    }
    let seen = Arc::new(AtomicU64::new(0));
    let drawn = Arc::clone(&seen);
    let shown = output::follow(&output::bar(COUNTING), move |bar, _| bar.set_position(drawn.load(Relaxed)));
    let survey = disk_cache::inspect(&args.cache_folder, args.check, |files| {
        seen.store(files, Relaxed);
        true
    });
    drop(shown);
    let survey = survey?;
    output::object_or_text(
        args.json,
        || survey_json(&args.cache_folder, &survey),
        |layout| write(layout, &args.cache_folder, &survey, SystemTime::now()),
    )
}

fn clear(args: &CacheArgs) -> Result<(), CliError> {
    let Cleared { files: removed, bytes, foreign } = disk_cache::clear(&args.cache_folder)?;
    if args.json {
        return output::json(&json!({
            "schema": SCHEMA,
            "path": args.cache_folder.to_string_lossy(),
            "cleared": {"files": removed, "bytes": bytes},
            "foreign": foreign,
        }));
    }
    let place = escaped_path(&args.cache_folder);
    output::line(&format!("{place}: removed {}, {}", counted(removed, "file"), Size(bytes)))?;
    if foreign > 0 {
        output::note(&format!("{place}: left {} not of the cache", counted(foreign, "file")));
    }
    Ok(())
}

/// Writes what the cache holds: the totals, then each volume, the largest first.
fn write(layout: &mut TextLayout, place: &Path, survey: &Inspection, now: SystemTime) {
    let total = survey.total();
    layout.heading(&place.to_string_lossy());
    if total.files == 0 {
        layout.row("holds", Some("nothing"));
    } else {
        layout.row("holds", Some(format!("{}, {}", Size(total.bytes), counted(total.files, "file"))));
        layout.row("last used", age(total.newest, now));
        layout.row("oldest used", age(total.oldest, now));
    }
    if survey.bad.files > 0 {
        let text =
            format!("{}, {}: never read, and fetched anew", counted(survey.bad.files, "file"), Size(survey.bad.bytes));
        layout.row("bad", Some(text));
        survey.bad_names.iter().take(NAMED).for_each(|name| layout.warning(name));
    }
    if survey.foreign > 0 {
        layout.row("others", Some(format!("{} not of the cache", counted(survey.foreign, "file"))));
    }
    if !survey.datasets.is_empty() {
        layout.heading("Volumes");
        let mut datasets: Vec<_> = survey.datasets.iter().collect();
        datasets.sort_by_key(|(_, kept)| Reverse(kept.bytes));
        let rows = datasets.iter().map(|((store, dataset), kept)| {
            let used = age(kept.newest, now).unwrap_or_default();
            vec![Size(kept.bytes).to_string(), kept.files.to_string(), used, format!("{store}/{dataset}")]
        });
        layout.table(&["size", "files", "used", "volume"], rows);
    }
}

fn age(time: Option<SystemTime>, now: SystemTime) -> Option<String> {
    Some(format!("{} ago", duration(now.duration_since(time?).unwrap_or_default().as_secs_f64())))
}

fn survey_json(place: &Path, survey: &Inspection) -> Value {
    let dataset = |((store, dataset), kept): (&(String, String), &Kept)| {
        together([json!({"store": store, "dataset": dataset}), kept_json(kept)])
    };
    let datasets: Value = survey.datasets.iter().map(dataset).collect();
    let bad = together([kept_json(&survey.bad), json!({"names": survey.bad_names})]);
    together([
        json!({"schema": SCHEMA, "path": place.to_string_lossy()}),
        kept_json(&survey.total()),
        json!({"datasets": datasets, "bad": bad, "foreign": survey.foreign}),
    ])
}

fn together(objects: impl IntoIterator<Item = Value>) -> Value {
    objects.into_iter().flat_map(entries).collect()
}

fn kept_json(kept: &Kept) -> Value {
    let seconds = |time: Option<SystemTime>| Some(time?.duration_since(UNIX_EPOCH).ok()?.as_secs_f64());
    json!({
        "files": kept.files,
        "bytes": kept.bytes,
        "oldest": seconds(kept.oldest),
        "newest": seconds(kept.newest),
    })
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, UNIX_EPOCH};

    use super::*;

    #[test]
    fn volumes_are_listed_with_the_largest_first() {
        let at = |seconds| Some(UNIX_EPOCH + Duration::from_secs(seconds));
        let mut survey = Inspection { foreign: 1, ..Inspection::default() };
        let small = Kept { files: 1, bytes: 2048, oldest: at(900), newest: at(900) };
        let large = Kept { files: 20, bytes: 3 << 30, oldest: at(100), newest: at(500) };
        survey.datasets.insert(("s3://a".into(), "north\x1b".into()), small);
        survey.datasets.insert(("s3://b".into(), "surveys/south".into()), large);
        survey.bad = Kept { files: 2, bytes: 10, oldest: None, newest: None };
        survey.bad_names = vec!["00a/1-2-3".into()];
        let mut layout = TextLayout::new(false);
        write(&mut layout, Path::new("/cache"), &survey, UNIX_EPOCH + Duration::from_secs(1000));
        assert_eq!(
            layout.text(),
            "/cache\n  holds            3.00 GiB, 21 files\n  last used        1 min 40 s ago\n  \
             oldest used      15 min ago\n  bad              2 files, 10 bytes: never read, and fetched anew\n  \
             00a/1-2-3\n  others           1 file not of the cache\n\nVolumes\n  \
             size      files  used            volume\n  \
             3.00 GiB     20  8 min 20 s ago  s3://b/surveys/south\n  \
             2.00 KiB      1  1 min 40 s ago  s3://a/north\\u{1b}\n"
        );
        let mut layout = TextLayout::new(false);
        write(&mut layout, Path::new("/cache"), &Inspection::default(), UNIX_EPOCH);
        assert_eq!(layout.text(), "/cache\n  holds            nothing\n");
    }
}
