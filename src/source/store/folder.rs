//! A dataset that is a folder of objects of a store: all keys with one beginning.

use std::io::{Error, ErrorKind};
use std::ops::Range;
use std::sync::Arc;

use super::error::StoreError;
use super::meta::about_folder;
use super::names::{At, prefix_of};
use super::opened::{Opened, Store};
use crate::source::{Blocking, EntryKind, FirstFailure, Folder, NoFolder, Source, SourceError};

/// A folder.
pub(crate) struct StoredFolder {
    opened: Opened,
    key: Box<str>,
    /// The first failure of the store here or in a folder that was opened from here.
    failure: FirstFailure,
}

impl StoredFolder {
    /// Opens the folder of a key. Nothing is sent.
    pub(crate) fn new(store: &Arc<Store>, key: &str) -> Self {
        Self { opened: Opened::folder(store, key), key: key.into(), failure: FirstFailure::default() }
    }

    fn key_of(&self, object: &str) -> Result<String, SourceError> {
        if object.split('/').all(|name| !matches!(name, "" | "." | "..")) {
            return Ok(prefix_of(&self.key) + object);
        }
        let error = Error::new(ErrorKind::InvalidInput, "not a name below a folder");
        Err(SourceError::io(format!("cannot open {object}"), &error))
    }

    /// Returns whether an object is known to be absent by a listing.
    fn is_absent(&self, key: &str) -> bool {
        self.opened.known(key).is_none() && self.opened.store.names.known(key) == Some(At::Nothing)
    }

    fn failed(&self, error: &StoreError) -> SourceError {
        error.to_source_error(self.opened.store.client.doing("list"))
    }
}

impl Source for StoredFolder {
    fn len(&self, object: &str) -> Result<Option<u64>, SourceError> {
        let key = self.key_of(object)?;
        if self.is_absent(&key) {
            return Ok(None);
        }
        if let Some(size) = self.opened.listed_size(&key) {
            return Ok(Some(size));
        }
        Ok(self.failure.noted(self.opened.meta(&key, true))?.map(|meta| meta.size))
    }

    fn read_at(&self, object: &str, offset: u64, out: &mut [u8], blocking: Blocking) -> Result<bool, SourceError> {
        if blocking == Blocking::No {
            return Err(SourceError::WouldBlock);
        }
        let (key, length) = (self.key_of(object)?, out.len() as u64);
        if self.is_absent(&key) {
            return Ok(false);
        }
        let too_short = |size| SourceError::TooShort { offset, length, size };
        let end = offset.checked_add(length).ok_or(too_short(0))?;
        if out.is_empty() {
            return Ok(self.failure.noted(self.opened.meta(&key, true))?.is_some());
        }
        if self.failure.noted(self.opened.read_from_disk(&key, offset, out))? {
            return Ok(true);
        }
        let Some(fetched) = self.failure.noted(self.opened.read(&key, offset..end))? else { return Ok(false) };
        if fetched.bytes.len() != out.len() {
            return Err(too_short(fetched.meta.size));
        }
        out.copy_from_slice(&fetched.bytes);
        Ok(true)
    }

    fn tag(&self, object: &str, name: &str) -> Result<Option<Vec<u8>>, SourceError> {
        let key = self.key_of(object)?;
        if self.is_absent(&key) {
            return Ok(None);
        }
        self.failure.noted(self.opened.header(&key, name))
    }

    fn fetches_ahead(&self) -> bool {
        true
    }

    fn will_need(&self, ranges: &[(&str, Range<u64>)], awaited: bool) -> bool {
        let keyed = ranges.iter().filter_map(|(object, range)| Some((self.key_of(object).ok()?, range.clone())));
        self.opened.will_need(&mut keyed.collect::<Vec<_>>(), awaited)
    }

    fn check_unchanged(&self) -> Result<(), SourceError> {
        self.opened.check_unchanged()
    }
}

impl Folder for StoredFolder {
    fn folder(&self, path: &str) -> Result<Arc<dyn Folder>, NoFolder> {
        // a path of the machine that wrote the description
        if path.starts_with('/') {
            return Err(NoFolder::Outside);
        }
        let mut names: Vec<&str> = self.key.split('/').filter(|name| !name.is_empty()).collect();
        for name in path.split('/') {
            match name {
                "" | "." => {}
                ".." => drop(names.pop().ok_or(NoFolder::Outside)?),
                name => names.push(name),
            }
        }
        let key = names.join("/");
        let store = &self.opened.store;
        let is_below = store.url.key.is_empty() || format!("{key}/").starts_with(&prefix_of(&store.url.key));
        if !is_below {
            return Err(NoFolder::Outside);
        }
        if store.client.can_list() {
            match store.names.look(&key) {
                Ok(At::Folder) => {}
                Ok(At::File(_)) => return Err(NoFolder::NotAFolder),
                Ok(At::Nothing) => return Err(NoFolder::Absent),
                // who may not list may still read
                Err(error) if error.kind == ErrorKind::PermissionDenied => {}
                Err(error) => self.failure.noted(Err(self.failed(&error)))?,
            }
        }
        let mut folder = Self::new(store, &key);
        folder.failure = self.failure.clone();
        Ok(Arc::new(folder))
    }

    fn list(&self, below: &str, visit: &mut dyn FnMut(&str, EntryKind) -> bool) -> Result<(), SourceError> {
        let key =
            if below.is_empty() { self.key.to_string() } else { prefix_of(&self.key) + below.trim_end_matches('/') };
        let store = &self.opened.store;
        if !store.client.can_list() {
            return Ok(());
        }
        match store.names.visit(&key, visit) {
            Err(error) if error.kind == ErrorKind::PermissionDenied => Ok(()),
            listed => self.failure.noted(listed.map_err(|error| self.failed(&error))),
        }
    }

    fn identity(&self) -> (u64, u64) {
        about_folder(&self.key).stamp.inode
    }

    fn is_changed(&self) -> bool {
        self.opened.has_changed()
    }

    fn failure(&self) -> Option<SourceError> {
        self.failure.get()
    }
}
