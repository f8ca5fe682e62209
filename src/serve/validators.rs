//! What tells one version of a file from another: its entity tag and the time of its last change.
//!
//! RFC 9110, section 8.8.

use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use axum::http::header::{CACHE_CONTROL, ETAG, LAST_MODIFIED};
use axum::http::{HeaderMap, HeaderValue};
use httpdate::fmt_http_date;

use crate::fs::{Attributes, Opened};

/// A time counts only if it is so much older than now: two versions of one second have the same one otherwise.
const SETTLED: Duration = Duration::from_secs(60);

/// Makes entity tags, which no other server of the same files makes as well: inode numbers are counted anew by each.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Tags(u64);

impl Default for Tags {
    fn default() -> Self {
        Self(RandomState::new().hash_one(SystemTime::now()))
    }
}

/// The validators of a file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Validators {
    /// The entity tag, with its quotes; `None` for what may change at any time.
    pub tag: Option<String>,
    /// The time of the last change, in whole seconds; `None` if there is no tag.
    pub modified: Option<SystemTime>,
}

impl Tags {
    /// Returns the validators of an open file. One that may change at any time has none, and neither has one that was
    /// written a moment ago: it will be read again.
    pub(crate) fn of(&self, attributes: &Attributes, opened: &Opened) -> Validators {
        if attributes.volatile || opened.is_recent {
            return Validators::default();
        }
        let (server, ino, epoch, size) = (self.0, attributes.ino.0, opened.epoch, opened.size);
        let modified = whole_seconds(attributes.modified);
        Validators { tag: Some(format!("\"{server:x}-{ino:x}-{epoch:x}-{size:x}\"")), modified }
    }

    /// Returns the validators of a file of the program itself.
    pub(crate) fn of_program(name: &str, content: &[u8]) -> Validators {
        let hash = content
            .iter()
            .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3));
        Validators { tag: Some(format!("\"{name}-{hash:x}\"")), modified: None }
    }
}

fn whole_seconds(time: SystemTime) -> Option<SystemTime> {
    let since = time.duration_since(UNIX_EPOCH).ok()?;
    Some(UNIX_EPOCH + Duration::from_secs(since.as_secs()))
}

impl Validators {
    /// Returns the time of the last change, if it tells all versions apart.
    pub(crate) fn settled_time(&self) -> Option<SystemTime> {
        let is_settled = |time: &SystemTime| SystemTime::now().duration_since(*time).is_ok_and(|age| age >= SETTLED);
        self.modified.filter(is_settled)
    }

    /// Adds them to the headers of a response, with how a cache may use it: it asks each time.
    pub(crate) fn write(&self, headers: &mut HeaderMap) {
        let cached = if self.tag.is_some() { "no-cache" } else { "no-store" };
        headers.insert(CACHE_CONTROL, HeaderValue::from_static(cached));
        if let Some(tag) = self.tag.as_deref().and_then(|tag| HeaderValue::from_str(tag).ok()) {
            headers.insert(ETAG, tag);
        }
        // later years than a date has cannot be written
        let last = UNIX_EPOCH + Duration::from_secs(253_402_300_799);
        let modified = self.modified.filter(|time| *time <= last);
        if let Some(date) = modified.and_then(|time| HeaderValue::from_str(&fmt_http_date(time)).ok()) {
            headers.insert(LAST_MODIFIED, date);
        }
    }
}
