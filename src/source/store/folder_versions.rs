//! The versions of the objects in folders, by listings: a request for a thousand objects, and none for each.
//!
//! A folder is listed when an object in it is first asked for. Whoever asks waits a little, and then goes on without,
//! as for a folder that cannot be listed. While objects are asked for, the folder is listed again after a while: an
//! object that has another version then is a change, which no answer of the store would have shown if all is on the
//! disk.

use std::num::NonZeroUsize;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant, SystemTime};

use lru::LruCache;

use super::client::Client;
use super::runtime;
use super::version::Version;
use crate::source::disk_cache::ObjectVersion;
use crate::sync::atomic::AtomicUsize;
use crate::sync::{Condvar, Mutex};

/// How long who asks waits for a listing.
const PATIENCE: Duration = Duration::from_secs(2);
/// A folder is listed again when the last listing is so old, and at least so many times as old as it took.
const FRESH: Duration = Duration::from_secs(30);
const PER_LISTING: u32 = 20;
/// Folders of one source whose listings are remembered.
const FOLDERS: NonZeroUsize = NonZeroUsize::new(1024).unwrap();
/// Names of all sources that are remembered: 32 bytes each.
const MOST_NAMES: usize = 1 << 20;

/// The versions of the objects below one folder.
pub(crate) struct FolderVersions {
    client: Arc<Client>,
    /// Names that are remembered, for all sources.
    names: Arc<AtomicUsize>,
    /// Set when an object was found to have changed.
    changed: Arc<AtomicBool>,
    folders: Mutex<LruCache<Box<str>, Arc<Folder>>>,
}

#[derive(Default)]
struct Folder {
    state: Mutex<State>,
    arrived: Condvar,
}

#[derive(Default)]
struct State {
    versions: Option<Versions>,
    is_being_listed: bool,
    /// When the last listing ended, and how long it took.
    listed: Option<(Instant, Duration)>,
}

/// What a listing says of an object.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Listed {
    /// The hash of its name.
    name: u64,
    /// Bytes.
    pub size: u64,
    /// `None` if its versions cannot be told apart.
    pub version: Option<Version>,
}

/// The objects of a folder, in the order of the hashes of their names.
struct Versions {
    names: Vec<Listed>,
    /// Names that are remembered, for all sources, these among them.
    all: Arc<AtomicUsize>,
}

impl Drop for Versions {
    fn drop(&mut self) {
        self.all.fetch_sub(self.names.len(), Relaxed);
    }
}

impl Versions {
    fn get(&self, name: u64) -> Option<Listed> {
        let at = self.names.binary_search_by_key(&name, |listed| listed.name).ok()?;
        self.names.get(at).copied()
    }
}

impl State {
    fn is_due(&self) -> bool {
        let due = |(at, took): (Instant, Duration)| at.elapsed() >= FRESH.max(took.saturating_mul(PER_LISTING));
        !self.is_being_listed && self.listed.is_none_or(due)
    }
}

impl FolderVersions {
    /// Lists with `client`; sets `changed` when an object has changed.
    pub(crate) fn new(client: &Arc<Client>, names: &Arc<AtomicUsize>, changed: &Arc<AtomicBool>) -> Self {
        Self {
            client: Arc::clone(client),
            names: Arc::clone(names),
            changed: Arc::clone(changed),
            folders: Mutex::new(LruCache::new(FOLDERS)),
        }
    }

    /// Returns what is known of the object of a key.
    pub(crate) fn known(&self, key: &str) -> Option<Listed> {
        let (parent, name) = key.rsplit_once('/').unwrap_or(("", key));
        let folder = Arc::clone(self.folders.lock().get(parent)?);
        let state = folder.state.lock();
        state.versions.as_ref()?.get(hash(name))
    }

    /// Returns what a listing says of the object of a key; `None` if that is not known, or there is no such object.
    /// Waits for a listing for a moment.
    pub(crate) fn of(&self, key: &str) -> Option<Listed> {
        if !self.client.can_list() {
            return None;
        }
        let (parent, name) = key.rsplit_once('/').unwrap_or(("", key));
        let folder = Arc::clone(self.folders.lock().get_or_insert(parent.into(), Arc::default));
        let mut state = folder.state.lock();
        if state.is_due() {
            state.is_being_listed = true;
            if self.list(parent, &folder).is_err() {
                state.is_being_listed = false;
                state.listed = Some((Instant::now(), Duration::ZERO));
            }
        }
        let until = Instant::now() + PATIENCE;
        while state.listed.is_none() {
            let left = until.checked_duration_since(Instant::now())?;
            folder.arrived.wait_for(&mut state, left);
        }
        state.versions.as_ref()?.get(hash(name))
    }

    /// Begins to list a folder.
    fn list(&self, parent: &str, folder: &Arc<Folder>) -> std::io::Result<()> {
        let prefix = if parent.is_empty() { String::new() } else { format!("{parent}/") };
        let (client, names, changed) = (Arc::clone(&self.client), Arc::clone(&self.names), Arc::clone(&self.changed));
        let folder = Arc::downgrade(folder);
        runtime::handle()?.spawn(async move {
            let began = Instant::now();
            let listed = list_all(&client, &prefix, names).await;
            // who asked may have closed the source
            let Some(folder) = folder.upgrade() else { return };
            let mut state = folder.state.lock();
            let differs = |before: &Versions, now: &Versions| {
                // a version that could not be told from others may have become one that can
                let is_same =
                    |a: &Listed, b: Listed| a.size == b.size && (a.version.is_none() || a.version == b.version);
                before.names.iter().any(|listed| !now.get(listed.name).is_some_and(|now| is_same(listed, now)))
            };
            if let (Some(before), Some(now)) = (&state.versions, &listed)
                && differs(before, now)
            {
                changed.store(true, Relaxed);
            }
            let before = std::mem::replace(&mut state.versions, listed);
            state.listed = Some((Instant::now(), began.elapsed()));
            state.is_being_listed = false;
            drop(state);
            drop(before);
            folder.arrived.notify_all();
        });
        Ok(())
    }
}

/// Lists a folder; `None` if that fails, or there are too many names.
async fn list_all(client: &Client, prefix: &str, all: Arc<AtomicUsize>) -> Option<Versions> {
    let mut versions = Versions { names: Vec::new(), all };
    let mut token = None;
    loop {
        let page = client.list(prefix, token).await.ok()?;
        let now = SystemTime::now();
        let known = page.files.iter().map(|(name, meta)| Listed {
            name: hash(name),
            size: meta.size,
            version: Version::of(meta, now),
        });
        let before = versions.names.len();
        versions.names.extend(known);
        let added = versions.names.len() - before;
        if versions.all.fetch_add(added, Relaxed).saturating_add(added) > MOST_NAMES {
            return None;
        }
        token = page.next;
        if token.is_none() {
            break;
        }
    }
    versions.names.sort_unstable_by_key(|listed| listed.name);
    versions.names.shrink_to_fit();
    Some(versions)
}

fn hash(name: &str) -> u64 {
    ObjectVersion::hash(name.as_bytes())
}
