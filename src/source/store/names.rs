//! What is at a key: objects and folders, by listings where the store gives them, or else by asking for one object
//! after the other. Answers count for a second, absent ones too.

use std::collections::HashMap;
use std::io;
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::future::{Either, join_all, select};
use lru::LruCache;

use super::client::{At, Client, MAX_PAGES, ObjectMeta, wait_for};
use super::error::StoreError;
use crate::source::EntryKind;
use crate::sync::Mutex;

const TTL: Duration = Duration::from_secs(1);
/// Listings and single answers that are remembered.
const LISTINGS: NonZeroUsize = NonZeroUsize::new(256).unwrap();
const ANSWERS: NonZeroUsize = NonZeroUsize::new(8192).unwrap();
/// The most names of a listing that is remembered as a whole, and of all.
const MOST_NAMES: usize = 20_000;

/// The names in a folder, or the first of them.
struct Listing {
    entries: HashMap<Box<str>, At>,
    /// Where the next page begins; `None` if these are all names.
    next: Option<String>,
    /// When the first page was asked for.
    began: Instant,
    until: Instant,
}

pub(super) struct Names {
    client: Arc<Client>,
    /// Objects whose presence makes a folder a dataset. A store that lists nothing is asked for them.
    signs: Vec<&'static str>,
    listings: Mutex<LruCache<Box<str>, Arc<Listing>>>,
    answers: Mutex<LruCache<Box<str>, (At, Instant)>>,
}

impl Names {
    pub(super) fn new(client: Arc<Client>, signs: Vec<&'static str>) -> Self {
        let (listings, answers) = (Mutex::new(LruCache::new(LISTINGS)), Mutex::new(LruCache::new(ANSWERS)));
        Self { client, signs, listings, answers }
    }

    /// Returns what is at a key, as far as that is known without asking.
    pub(super) fn known(&self, key: &str) -> Option<At> {
        let (parent, name) = key.rsplit_once('/').unwrap_or(("", key));
        if let Some(listing) = self.fresh(parent).filter(|_| !key.is_empty()) {
            match listing.entries.get(name) {
                // a version without an etag would be another one than that of the next answer with one
                Some(At::File(ObjectMeta { etag: None, .. })) => {}
                Some(at) => return Some(at.clone()),
                None if listing.next.is_none() => return Some(At::Nothing),
                None => {}
            }
        }
        if self.fresh(key).is_some_and(|listing| !listing.entries.is_empty()) {
            return Some(At::Folder);
        }
        let answers = self.answers.lock();
        answers.peek(key).filter(|(_, at)| at.elapsed() < TTL).map(|(at, _)| at.clone())
    }

    /// Returns how many names a folder has, as far as a listing has told a moment ago.
    pub(super) fn count_known(&self, key: &str) -> usize {
        self.fresh(key).map_or(0, |listing| if listing.next.is_none() { listing.entries.len() } else { usize::MAX })
    }

    pub(super) fn look(&self, key: &str) -> Result<At, StoreError> {
        if let Some(known) = self.known(key) {
            return Ok(known);
        }
        let at = self.ask(key)?;
        self.note(key, at.clone());
        Ok(at)
    }

    fn note(&self, key: &str, at: At) {
        self.answers.lock().put(key.into(), (at, Instant::now()));
    }

    /// Returns whether there was a folder at the last look, however long ago.
    fn was_folder(&self, key: &str) -> bool {
        self.answers.lock().peek(key).is_some_and(|(at, _)| *at == At::Folder)
    }

    fn head(&self, key: &str) -> Result<At, StoreError> {
        Ok(wait_for(self.client.head(key))??.map_or(At::Nothing, At::File))
    }

    fn ask(&self, key: &str) -> Result<At, StoreError> {
        if !self.client.can_list() {
            return self.ask_without_listing(key);
        }
        // one request for what was a folder a moment ago
        if (key.is_empty() || self.was_folder(key)) && (!self.first_page(key)?.entries.is_empty() || key.is_empty()) {
            // also a bucket without objects
            return Ok(At::Folder);
        }
        let name = key.rsplit('/').next().unwrap_or(key);
        // a plain word may also be the name of a folder
        let is_word = name.bytes().all(|byte| byte.is_ascii_lowercase());
        if !is_word && self.signs.contains(&name) {
            return self.head(key);
        }
        // most folders have names without a dot; and some stores fail where the object of a folder's name is asked for
        if !name.contains('.') {
            match self.first_page(key) {
                Ok(page) if !page.entries.is_empty() => return Ok(At::Folder),
                Ok(_) => return self.head(key),
                Err(error) if error.kind == io::ErrorKind::PermissionDenied => {}
                Err(error) => return Err(error),
            }
        }
        let began = Instant::now();
        let prefix = prefix_of(key);
        // both at once; if the listing finds a folder, the other answer is not waited for
        let both = async {
            let (list, head) = (Box::pin(self.client.list(&prefix, None)), Box::pin(self.client.head(key)));
            match select(list, head).await {
                Either::Left((Ok(page), _)) if !page.entries.is_empty() => (Ok(page), Ok(None)),
                Either::Left((listed, head)) => (listed, head.await),
                Either::Right((head, list)) => (list.await, head),
            }
        };
        match wait_for(both)? {
            (Ok(page), head) => {
                let listing = self.insert(key, page.entries.into_iter().collect(), page.next, began);
                Ok(if listing.entries.is_empty() { head?.map_or(At::Nothing, At::File) } else { At::Folder })
            }
            // list permission may be missing while read is allowed
            (Err(denied), head) if denied.kind == io::ErrorKind::PermissionDenied => match head {
                Ok(Some(meta)) => Ok(At::File(meta)),
                Ok(None) => self.ask_without_listing(key),
                // without list permission, stores deny what is not there; and the answer to a look at one object has no
                // text that says why
                Err(error) if error.kind == io::ErrorKind::PermissionDenied => match self.ask_for_signs(key) {
                    Ok(At::Nothing) | Err(_) => Err(denied),
                    at => at,
                },
                Err(_) => Err(denied),
            },
            (Err(error), _) => Err(error),
        }
    }

    /// Asks for the objects that make a folder a dataset, and for the object itself.
    fn ask_without_listing(&self, key: &str) -> Result<At, StoreError> {
        // what is in a dataset is no dataset
        if key.rsplit_once('/').is_some_and(|(parent, _)| self.was_folder(parent)) {
            return self.head(key);
        }
        // before the object itself: servers of folders answer for the folder, too, with a page of text
        match self.ask_for_signs(key)? {
            At::Nothing if key.is_empty() => Ok(At::Nothing),
            At::Nothing => self.head(key),
            at => Ok(at),
        }
    }

    fn ask_for_signs(&self, key: &str) -> Result<At, StoreError> {
        let prefix = prefix_of(key);
        let keys: Vec<String> = self.signs.iter().map(|name| format!("{prefix}{name}")).collect();
        let heads = wait_for(join_all(keys.iter().map(|key| self.client.head(key))))?;
        let mut failure = None;
        for (key, head) in keys.iter().zip(heads) {
            match head {
                Ok(Some(meta)) => {
                    self.note(key, At::File(meta));
                    return Ok(At::Folder);
                }
                Ok(None) => self.note(key, At::Nothing),
                Err(error) => failure = Some(error),
            }
        }
        failure.map_or(Ok(At::Nothing), Err)
    }

    /// Visits the names in a folder, page by page, until `visit` returns `false`.
    pub(super) fn visit(&self, key: &str, visit: &mut dyn FnMut(&str, EntryKind) -> bool) -> Result<(), StoreError> {
        let mut pass = |entries: &HashMap<Box<str>, At>| {
            entries.iter().all(|(name, at)| match at {
                At::Folder => visit(name, EntryKind::Folder),
                At::File(_) => visit(name, EntryKind::File),
                At::Nothing => true,
            })
        };
        let (prefix, known) = (prefix_of(key), self.fresh(key));
        if let Some(known) = &known
            && (!pass(&known.entries) || known.next.is_none())
        {
            return Ok(());
        }
        let began = known.as_ref().map_or_else(Instant::now, |known| known.began);
        let mut token = known.as_ref().and_then(|known| known.next.clone());
        let (mut next, mut kept) = (token.clone(), known.map(|known| known.entries.clone()).unwrap_or_default());
        let mut is_kept = true;
        for pages in 1.. {
            if pages > MAX_PAGES {
                let text = format!("its listing of a folder does not end after {MAX_PAGES} pages");
                return Err(StoreError::new(io::ErrorKind::InvalidData, text));
            }
            let page = wait_for(self.client.list(&prefix, token))??;
            let entries: HashMap<_, _> = page.entries.into_iter().collect();
            let goes_on = pass(&entries);
            token = page.next;
            is_kept &= kept.len() + entries.len() <= MOST_NAMES;
            if is_kept {
                kept.extend(entries);
                next.clone_from(&token);
            }
            if !goes_on || token.is_none() {
                break;
            }
        }
        self.insert(key, kept, next, began);
        Ok(())
    }

    fn first_page(&self, key: &str) -> Result<Arc<Listing>, StoreError> {
        let began = Instant::now();
        let page = wait_for(self.client.list(&prefix_of(key), None))??;
        Ok(self.insert(key, page.entries.into_iter().collect(), page.next, began))
    }

    fn insert(&self, key: &str, entries: HashMap<Box<str>, At>, next: Option<String>, began: Instant) -> Arc<Listing> {
        // long enough to look at each name of a long listing
        let until = Instant::now() + TTL + began.elapsed();
        let listing = Arc::new(Listing { entries, next, began, until });
        let mut listings = self.listings.lock();
        listings.put(key.into(), Arc::clone(&listing));
        let mut names: usize = listings.iter().map(|(_, listing)| listing.entries.len()).sum();
        let mut dropped = Vec::new();
        while names > 2 * MOST_NAMES
            && let Some((_, oldest)) = listings.pop_lru()
        {
            names = names.saturating_sub(oldest.entries.len());
            dropped.push(oldest);
        }
        drop(listings);
        drop(dropped);
        listing
    }

    fn fresh(&self, key: &str) -> Option<Arc<Listing>> {
        let mut listings = self.listings.lock();
        listings.get(key).filter(|listing| Instant::now() < listing.until).cloned()
    }
}

/// Returns what the keys in a folder begin with.
pub(super) fn prefix_of(key: &str) -> String {
    if key.is_empty() { String::new() } else { format!("{key}/") }
}
