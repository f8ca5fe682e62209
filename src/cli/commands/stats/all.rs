//! All mounts of volfs: a table, or a JSON object.

use std::path::PathBuf;
use std::time::Duration;

use serde_json::{Value, json};

use super::rates::hit_rate;
use crate::cli::error::CliError;
use crate::cli::mounts::mountpoint;
use crate::cli::mounts::processes::Daemon;
use crate::cli::mounts::status::{self, Answer, Asker};
use crate::cli::output;
use crate::cli::text::duration::duration;
use crate::cli::text::escape;
use crate::cli::text::layout::TextLayout;
use crate::cli::text::size::Size;
use crate::mount::mountinfo;
use crate::view::json::SCHEMA;
use crate::view::json_text;

/// How long all mounts together may take to answer.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(2);

/// One mount, and what it answers.
pub(crate) struct Found {
    pub place: PathBuf,
    /// The source that the list of mounts names.
    pub source: PathBuf,
    pub status: Result<Value, State>,
}

/// Why a mount gives no status.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum State {
    /// Its daemon died.
    Dead,
    /// It does not answer in time; with its daemon, if that can be found.
    Silent(Option<Daemon>),
    /// It is another user's.
    Denied,
    /// It answers with an error, or with what cannot be parsed.
    Error(String),
}

impl State {
    /// The name in JSON.
    fn name(&self) -> &'static str {
        match self {
            Self::Dead => "dead",
            Self::Silent(_) => "silent",
            Self::Denied => "denied",
            Self::Error(_) => "error",
        }
    }

    /// What people read in a table.
    pub(crate) fn word(&self) -> &'static str {
        match self {
            Self::Dead => "dead",
            Self::Silent(_) => "no answer",
            Self::Denied => "not shared",
            Self::Error(_) => "error",
        }
    }

    /// What happened.
    pub(crate) fn text(&self) -> String {
        match self {
            Self::Dead => "its daemon died".to_owned(),
            Self::Silent(_) => format!("it did not answer within {} s", TIMEOUT.as_secs()),
            Self::Denied => "another user's, who did not mount it with --allow-other".to_owned(),
            Self::Error(error) => error.clone(),
        }
    }
}

/// Prints all mounts.
pub(crate) fn print(json: bool) -> Result<(), CliError> {
    let found = find(&mut Asker::default())?;
    if json {
        let mounts: Vec<Value> = found.iter().map(object).collect();
        return output::whole(&json_text(&json!({"schema": SCHEMA, "mounts": mounts})));
    }
    if found.is_empty() {
        output::note("nothing is mounted by volfs; to mount type: volfs mount SOURCE MOUNTPOINT");
        return Ok(());
    }
    let mut layout = TextLayout::new(output::coloured());
    write(&mut layout, &found);
    output::whole(layout.text())
}

/// Asks all mounts of volfs for their status.
pub(crate) fn find(asker: &mut Asker) -> Result<Vec<Found>, CliError> {
    let all = mountpoint::mounts()?;
    // a mount of a folder of a mount (mount --bind) has no status of its own
    let is_wanted = |mount: &&mountinfo::Mount| {
        mount.is_volfs() && mount.root.as_os_str() == "/" && mountinfo::topmost(&all, &mount.mountpoint) == Some(mount)
    };
    let mounts: Vec<&mountinfo::Mount> = all.iter().filter(is_wanted).collect();
    let places: Vec<PathBuf> = mounts.iter().map(|mount| mount.mountpoint.clone()).collect();
    let answers = asker.ask(&places, TIMEOUT);
    let found = mounts.iter().zip(places).zip(answers).map(|((mount, place), answer)| Found {
        place,
        source: mountinfo::source_of(mount).to_owned(),
        status: answer
            .map_err(|answer| State::of(answer, mount))
            .and_then(|text| serde_json::from_slice::<Value>(&text).map_err(|error| State::Error(error.to_string()))),
    });
    Ok(found.collect())
}

impl State {
    /// Returns what follows for a mount that gives this answer in place of a status.
    pub(crate) fn of(answer: Answer, mount: &mountinfo::Mount) -> Self {
        match answer {
            Answer::Dead => Self::Dead,
            Answer::Silent => Self::Silent(Daemon::of(mount)),
            Answer::Alive(_) => Self::Denied,
            Answer::Error(error) => Self::Error(error),
        }
    }
}

fn object(found: &Found) -> Value {
    let state = found.status.as_ref().map_or_else(State::name, |_| "alive");
    let error = found.status.as_ref().err().map(State::text);
    json!({
        "mountpoint": found.place.to_string_lossy(),
        "source": found.source.to_string_lossy(),
        "state": state,
        "error": error,
        "status": found.status.as_ref().ok(),
    })
}

fn write(layout: &mut TextLayout, found: &[Found]) {
    let titles = ["mount point", "source", "up", "cache", "hit rate", "reads", "delivered", "errors"];
    let rows: Vec<Vec<String>> = found.iter().map(row).collect();
    layout.table(&titles, &rows);
    for found in found {
        let place = escape::path(&found.place);
        let remark = match &found.status {
            Ok(status) => status::stall(status),
            Err(State::Dead) => Some(format!("{}; to clear it type: volfs umount {place}", State::Dead.text())),
            Err(State::Silent(daemon)) => {
                Some(format!("{}; {}", State::Silent(*daemon).text(), Daemon::remedy(*daemon, &place)))
            }
            Err(state) => Some(state.text()),
        };
        if let Some(remark) = remark {
            layout.warning(&format!("{place}: {remark}"));
        }
    }
}

fn row(found: &Found) -> Vec<String> {
    let first = [found.place.to_string_lossy().into_owned(), found.source.to_string_lossy().into_owned()];
    let rest = match &found.status {
        Err(state) => vec![state.word().to_owned()],
        Ok(status) => {
            let counter = |name: &str| status["counters"][name].as_u64().unwrap_or(0);
            let (hits, misses) = (counter("cache_hits"), counter("cache_misses"));
            let bytes = |n: u64| Size::of(n).to_string();
            vec![
                duration(status["uptime"].as_f64().unwrap_or(0.0)),
                bytes(counter("cache_bytes")),
                hit_rate(hits, misses),
                counter("reads").to_string(),
                bytes(counter("bytes_read")),
                counter("errors").to_string(),
            ]
        }
    };
    first.into_iter().chain(rest).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(place: &str, status: Result<Value, State>) -> Found {
        Found { place: place.into(), source: "/data".into(), status }
    }

    #[test]
    fn each_mount_is_a_row_and_dead_ones_say_what_to_type() {
        let status = json!({"uptime": 125.0, "counters": {"reads": 12, "bytes_read": 4096, "cache_hits": 3,
            "cache_misses": 1, "cache_bytes": 1 << 20, "errors": 0}});
        let all = [
            found("/mnt/a", Ok(status)),
            found("/mnt/b\x1b", Err(State::Dead)),
            found("/mnt/c", Err(State::Silent(Some(Daemon { pid: 7, is_stopped: true })))),
            found("/mnt/d", Ok(json!({"uptime": "x"}))),
        ];
        let mut layout = TextLayout::new(false);
        write(&mut layout, &all);
        assert_eq!(
            layout.text(),
            "  mount point   source  up         cache     hit rate  reads  delivered  errors\n  \
               /mnt/a        /data   2 min 5 s  1.00 MiB  75 %         12  4.00 KiB        0\n  \
               /mnt/b\\u{1b}  /data   dead\n  \
               /mnt/c        /data   no answer\n  \
               /mnt/d        /data   0 s        0 bytes   -             0  0 bytes         0\n  \
               /mnt/b\\u{1b}: its daemon died; to clear it type: volfs umount /mnt/b\\u{1b}\n  \
               /mnt/c: it did not answer within 2 s; its daemon (process 7) is stopped: to let it go on type: kill -CONT 7\n"
        );
        let dead = object(&all[1]);
        assert_eq!((&dead["state"], &dead["status"]), (&json!("dead"), &Value::Null));
        assert_eq!(object(&all[0])["status"]["counters"]["reads"], 12);
    }
}
