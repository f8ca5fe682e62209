//! What a disk cache holds, for people.

use std::cmp::Reverse;
use std::path::Path;
use std::time::SystemTime;

use crate::cli::text::duration::duration;
use crate::cli::text::layout::TextLayout;
use crate::cli::text::size::Size;
use crate::source::disk_cache::{Kept, Survey};

/// Names of bad files that are printed.
const NAMED: usize = 5;

/// Writes what is there: all together, then each volume, the largest part first.
pub(crate) fn write(layout: &mut TextLayout, place: &Path, survey: &Survey, now: SystemTime) {
    let total = survey.total();
    layout.heading(&place.to_string_lossy());
    if total.files == 0 {
        layout.row("holds", Some("nothing".to_owned()));
    } else {
        layout.row("holds", Some(format!("{}, {}", Size::of(total.bytes), files(total.files))));
        layout.row("last used", age(total.newest, now).map(|age| format!("{age} ago")));
        layout.row("oldest used", age(total.oldest, now).map(|age| format!("{age} ago")));
    }
    if survey.bad.files > 0 {
        let text = format!("{}, {}: never read, and fetched anew", files(survey.bad.files), Size::of(survey.bad.bytes));
        layout.row("bad", Some(text));
        survey.bad_names.iter().take(NAMED).for_each(|name| layout.warning(name));
    }
    if survey.foreign > 0 {
        layout.row("others", Some(format!("{} not of the cache", files(survey.foreign))));
    }
    if !survey.datasets.is_empty() {
        layout.heading("Volumes");
        layout.table(&["size", "files", "used", "volume"], &rows(survey, now));
    }
}

fn rows(survey: &Survey, now: SystemTime) -> Vec<Vec<String>> {
    let mut datasets: Vec<(&(String, String), &Kept)> = survey.datasets.iter().collect();
    datasets.sort_by_key(|(_, kept)| Reverse(kept.bytes));
    let row = |((store, dataset), kept): &(&(String, String), &Kept)| {
        let used = age(kept.newest, now).map_or_else(String::new, |age| format!("{age} ago"));
        vec![Size::of(kept.bytes).to_string(), kept.files.to_string(), used, format!("{store}/{dataset}")]
    };
    datasets.iter().map(row).collect()
}

fn age(time: Option<SystemTime>, now: SystemTime) -> Option<String> {
    Some(duration(now.duration_since(time?).unwrap_or_default().as_secs_f64()))
}

/// Returns a number of files in words.
pub(crate) fn files(n: u64) -> String {
    if n == 1 { "1 file".to_owned() } else { format!("{n} files") }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, UNIX_EPOCH};

    use super::*;

    #[test]
    fn volumes_are_listed_with_the_largest_first() {
        let at = |seconds| Some(UNIX_EPOCH + Duration::from_secs(seconds));
        let mut survey = Survey { foreign: 1, ..Survey::default() };
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
        write(&mut layout, Path::new("/cache"), &Survey::default(), UNIX_EPOCH);
        assert_eq!(layout.text(), "/cache\n  holds            nothing\n");
    }
}
