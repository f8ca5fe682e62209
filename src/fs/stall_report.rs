//! Reports sources that stall: a line in the log when one begins to, and one when it answers again; and in status.json what
//! stalls now.

use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};

use super::inode_path::path_of;
use super::stall::{Stall, StallWatch};
use super::volfs::Volfs;
use crate::logging::timestamp;

/// How a stall ends.
const ANSWERS: &str = "the source answers again";
const NONE_WAITS: &str = "no read waits for the source any more";

impl Volfs {
    /// Looks for sources that stall, and logs those that begin to, or answer again. Never waits for a source.
    pub(super) fn look_for_stalls(&self, watch: &mut StallWatch) {
        let (begun, ended) = watch.look(&self.pool().running(), &self.stalls);
        for stall in begun.iter().filter(|stall| stall.is_named) {
            let (waited, reads) = (stall.since.elapsed(), self.pool().requests(stall.number));
            let since = timestamp(SystemTime::now().checked_sub(waited).unwrap_or(UNIX_EPOCH));
            let (name, seconds) = (self.name_of(stall), waited.as_secs());
            let wait = if reads == 1 { "waits" } else { "wait" };
            let reads = if reads == 1 { "1 read".to_owned() } else { format!("{reads} reads") };
            log::warn!("{name}: the source has not answered for {seconds} s, since {since}; {reads} {wait}");
        }
        for stall in ended.iter().filter(|stall| stall.is_named) {
            let (name, seconds) = (self.name_of(stall), stall.since.elapsed().as_secs());
            // a store's requests time out, which another line tells
            let how = if self.options.origin().is_url() { NONE_WAITS } else { ANSWERS };
            log::warn!("{name}: {how}, after {seconds} s");
        }
    }

    /// Returns the path of the dataset or folder in the mount; that of the source if it has none.
    fn name_of(&self, stall: &Stall) -> String {
        self.dataset_of(stall).unwrap_or_else(|| self.options.source.to_string_lossy().into_owned())
    }

    fn dataset_of(&self, stall: &Stall) -> Option<String> {
        let node = self.catalog.node(u32::try_from(stall.number).ok()?)?;
        let path = path_of(&node).to_string_lossy().into_owned();
        Some(path).filter(|path| !path.is_empty())
    }

    /// Returns what stalls now, for status.json; null if nothing does. Without `names` it is not said which dataset.
    pub(super) fn stall_status(&self, names: bool) -> Value {
        let stalls = self.stalls.now(&self.pool().running());
        let Some(first) = stalls.first() else { return Value::Null };
        let seconds = first.since.elapsed().as_secs_f64();
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64();
        json!({
            "since": now - seconds,
            "seconds": seconds,
            "reads_waiting": stalls.iter().map(|stall| self.pool().requests(stall.number)).sum::<usize>(),
            "dataset": self.dataset_of(first).filter(|_| names),
            "other_datasets": stalls.len() - 1,
        })
    }
}
