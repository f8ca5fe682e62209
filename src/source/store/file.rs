//! A dataset that is one object of a store.

use std::ops::Range;
use std::sync::Arc;

use super::meta::Meta;
use super::opened::{Opened, Store};
use crate::source::{Blocking, FileSource, FileStamp, Source, SourceError};

/// One object, in the version that it had when it was opened.
pub(crate) struct StoredFile {
    opened: Opened,
    key: Box<str>,
    meta: Meta,
}

impl StoredFile {
    /// Opens the object of a key in the version `meta`. Nothing is sent.
    pub(crate) fn new(store: &Arc<Store>, key: &str, meta: Meta) -> Self {
        Self { opened: Opened::file(store, key, &meta), key: key.into(), meta }
    }
}

impl Source for StoredFile {
    fn len(&self, _object: &str) -> Result<Option<u64>, SourceError> {
        Ok(Some(self.meta.size))
    }

    fn read_at(&self, _object: &str, offset: u64, out: &mut [u8], blocking: Blocking) -> Result<bool, SourceError> {
        let (length, size) = (out.len() as u64, self.meta.size);
        let end = offset.checked_add(length).filter(|end| *end <= size);
        let end = end.ok_or(SourceError::TooShort { offset, length, size })?;
        if blocking == Blocking::No {
            return Err(SourceError::WouldBlock);
        }
        // many objects of other datasets may have been read since the last time
        self.opened.expect(&self.key, &self.meta);
        if out.is_empty() {
            return Ok(true);
        }
        if self.opened.read_from_disk(&self.key, offset, out)? {
            return Ok(true);
        }
        // an object that is gone was removed since
        let fetched = self.opened.read(&self.key, offset..end)?.ok_or(SourceError::Changed)?;
        if fetched.bytes.len() != out.len() {
            return Err(SourceError::Changed);
        }
        out.copy_from_slice(&fetched.bytes);
        Ok(true)
    }

    fn tag(&self, _object: &str, name: &str) -> Result<Option<Vec<u8>>, SourceError> {
        self.opened.header(&self.key, name)
    }

    fn fetches_ahead(&self) -> bool {
        true
    }

    fn will_need(&self, ranges: &[(&str, Range<u64>)], awaited: bool) -> bool {
        let within = |range: &Range<u64>| range.start..range.end.min(self.meta.size);
        let mut ranges: Vec<_> = ranges.iter().map(|(_, range)| (self.key.to_string(), within(range))).collect();
        self.opened.will_need(&mut ranges, awaited)
    }

    fn check_unchanged(&self) -> Result<(), SourceError> {
        self.opened.check_unchanged()
    }
}

impl FileSource for StoredFile {
    fn stamp(&self) -> FileStamp {
        self.meta.stamp(&self.key)
    }

    fn has_changed(&self) -> bool {
        self.opened.has_changed()
    }
}
