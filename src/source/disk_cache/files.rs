//! The files of a cache, and the index of them.

use std::os::fd::AsFd;

use rustix::fs::{Timespec, Timestamps, UTIME_NOW, UTIME_OMIT, futimens};

use super::clock::Clock;
use super::error::DiskCacheError;
use super::folder::CacheFolder;
use super::index::Index;
use super::object_version::ObjectVersion;
use super::statistics::Counts;
use super::stored_file::{self, Unread};
use super::stored_range::{StoredRange, before_region, shard};
use super::writer_folder::WriterFolder;
use crate::log_limit::warn_seldom;
use crate::sync::Mutex;

/// How often a read begins anew since a file that the index has is gone.
const TRIES: usize = 4;

/// Seconds after which a folder surely gets another time when it changes.
const SETTLED: i64 = 2;

/// The files of a cache, and the index of them.
pub(crate) struct Files {
    pub folder: CacheFolder,
    pub own: WriterFolder,
    pub index: Index,
    pub clock: Clock,
    pub counts: Counts,
    /// When others last came or went, at the beginning of a scan that was finished in their absence.
    alone_since: Mutex<Option<(i64, i64)>>,
}

impl Files {
    pub(crate) fn new(folder: CacheFolder) -> Result<Self, DiskCacheError> {
        let own =
            WriterFolder::create(&folder).map_err(|error| DiskCacheError::io("write to", folder.path(), error))?;
        Ok(Self {
            folder,
            own,
            index: Index::new(),
            clock: Clock::new(),
            counts: Counts::default(),
            alone_since: Mutex::default(),
        })
    }

    /// Fills `out` from the files of an object; `false` if they do not have all of it.
    pub(crate) fn read(&self, object: &ObjectVersion, offset: u64, out: &mut [u8]) -> bool {
        let Some(end) = offset.checked_add(out.len() as u64) else { return false };
        for _ in 0..TRIES {
            let Some(ranges) = self.index.cover(object.digest(), offset, end) else {
                if self.look_again(object.digest(), offset, out.len()) {
                    continue;
                }
                return false;
            };
            match self.read_ranges(object, &ranges, offset, out) {
                Ok(()) => return true,
                Err(Unread::Failed(_)) => return false,
                // the index no longer has it
                Err(Unread::Absent | Unread::Bad) => {}
            }
        }
        false
    }

    /// Returns whether the files of an object have a range of it, as far as the index tells.
    pub(crate) fn has(&self, object: &ObjectVersion, offset: u64, length: u64) -> bool {
        let Some(end) = offset.checked_add(length) else { return false };
        let is_covered = || self.index.cover(object.digest(), offset, end).is_some();
        is_covered()
            || usize::try_from(length).is_ok_and(|length| self.look_again(object.digest(), offset, length))
                && is_covered()
    }

    fn read_ranges(
        &self,
        object: &ObjectVersion,
        ranges: &[StoredRange],
        offset: u64,
        out: &mut [u8],
    ) -> Result<(), Unread> {
        let (mut at, mut rest) = (offset, out);
        for range in ranges {
            let length = usize::try_from(range.end() - at).unwrap_or(usize::MAX).min(rest.len());
            let (part, after) = rest.split_at_mut(length);
            self.read_range(object, *range, (at - range.offset) as usize, part)?;
            (at, rest) = (range.end(), after);
        }
        Ok(())
    }

    fn read_range(
        &self,
        object: &ObjectVersion,
        range: StoredRange,
        from: usize,
        out: &mut [u8],
    ) -> Result<(), Unread> {
        let file = stored_file::read(&self.folder, object, range, from, out).inspect_err(|unread| match unread {
            Unread::Absent => drop(self.index.remove(range)),
            Unread::Bad => self.drop_bad(range),
            Unread::Failed(error) => {
                warn_seldom(&format!("cannot read the disk cache {}: {error}", self.folder.path().display()));
            }
        })?;
        let now = self.clock.now();
        if self.index.touch(range, now).is_some_and(|used| Clock::is_late(now, used)) {
            // on a file system that does not allow it, the file counts as older after a restart
            let omitted = Timespec { tv_sec: 0, tv_nsec: UTIME_OMIT };
            let now = Timespec { tv_sec: 0, tv_nsec: UTIME_NOW };
            let _ = futimens(file.as_fd(), &Timestamps { last_access: omitted, last_modification: now });
        }
        Ok(())
    }

    fn drop_bad(&self, range: StoredRange) {
        self.counts.bad.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let removed = self.folder.remove(range);
        match &removed {
            Ok(()) => drop(self.index.remove(range)),
            Err(_) => self.index.keep_damaged(range),
        }
        let place = self.folder.path().join(range.path());
        warn_seldom(&match removed {
            Ok(()) => format!("removed a damaged file of the disk cache: {}", place.display()),
            Err(error) => {
                format!("a file of the disk cache is damaged, and cannot be removed: {}: {error}", place.display())
            }
        });
    }

    /// Looks for files that other processes have written, and returns whether there was a new one near the range.
    fn look_again(&self, object: u64, offset: u64, length: usize) -> bool {
        let exact = u32::try_from(length).ok().map(|length| StoredRange { object, offset, length });
        if let Some((range, used)) = exact.and_then(|range| Some((range, self.used(range)?))) {
            return self.index.insert(range, used);
        }
        if !self.may_have_unknown_files() {
            return false;
        }
        let here = shard(object, offset);
        let before = before_region(offset).map(|before| shard(object, before)).filter(|before| *before != here);
        let mut is_new = self.list(here);
        if let Some(before) = before {
            is_new |= self.list(before);
        }
        is_new
    }

    /// Returns the tick at which a file was last used, from its time; `None` if it is not there.
    fn used(&self, range: StoredRange) -> Option<u32> {
        self.folder.used(range).map(|(seconds, nanoseconds)| self.clock.tick(seconds, nanoseconds))
    }

    /// Adds the files of a folder that the index does not have, if the folder has changed since the last time; `true`
    /// if there is one.
    fn list(&self, shard: usize) -> bool {
        let modified = self.folder.modified(shard);
        if modified.is_none() || modified == self.index.listed(shard) {
            return false;
        }
        let Ok((files, _)) = self.folder.files(shard) else { return false };
        self.add(shard, modified, files)
    }

    fn add(&self, shard: usize, modified: Option<(i64, i64)>, files: Vec<StoredRange>) -> bool {
        let new = self.index.unknown(shard, files);
        let new: Vec<_> = new.into_iter().filter_map(|range| Some((range, self.used(range)?))).collect();
        // what changes right after it was listed may get the time that it had
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
        let is_settled = |seconds: i64| seconds.saturating_add(SETTLED) < i64::try_from(now.as_secs()).unwrap_or(0);
        self.index.add(shard, &new, modified.filter(|(seconds, _)| is_settled(*seconds)))
    }

    /// Makes the index of a folder equal to it. To be called by the thread that writes, and no other: what is written
    /// in the meantime would be forgotten.
    pub(crate) fn scan(&self, shard: usize) {
        let modified = self.folder.modified(shard);
        // a folder that cannot be read may have files as before
        let Ok((files, _)) = self.folder.files(shard) else { return };
        self.index.retain(shard, &files);
        self.add(shard, modified, files);
    }

    /// Returns whether other processes may have written files since the last scan began.
    pub(crate) fn may_have_unknown_files(&self) -> bool {
        let known = *self.alone_since.lock();
        known.is_none() || self.own.changed().ok() != known
    }

    /// Notes that a scan is complete that had begun when [`WriterFolder::others`] returned this.
    pub(crate) fn scanned(&self, others: Option<((i64, i64), bool)>) {
        *self.alone_since.lock() = others.filter(|(_, are_there)| !are_there).map(|(changed, _)| changed);
    }
}
