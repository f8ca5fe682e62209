//! Reading of folders: opendir and readdir.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::Volfs;
use super::error::FsError;
use super::handles::{FolderEntry, Handle, ViewFolder};
use super::ino::Ino;
use super::open::{OpenReply, Pages};
use super::resolve::{DOT_VOLFS, Resolved, STATE_FILES, name_in_mount};
use crate::catalog::{EntryNumber, Listed, Listing, Node, NodeId, NodeKind, OpenDataset, ROOT};
use crate::memory::LruByWeight;
use crate::source::Blocking;
use crate::sync::Mutex;
use crate::view::{ERROR_TXT, Item, Tree};

/// Entries of a folder of the source have their number and this as their position; those before have positions from 1
/// to 3.
const FIRST_NUMBER: u64 = 4;

impl Volfs {
    /// Opens a folder. The handle lists the entries as of this moment; those of a folder of the source may be as of a
    /// later moment.
    pub(crate) fn opendir(&self, ino: Ino, blocking: Blocking) -> Result<OpenReply, FsError> {
        let folder = self.resolve(ino, blocking)?;
        self.check_now(&folder, blocking)?;
        let handle = match folder {
            Resolved::Node(node) if node.kind == NodeKind::Folder => {
                if blocking == Blocking::No {
                    return Err(FsError::WouldBlock);
                }
                self.list(&node)?;
                self.handles.add(Handle::SourceFolder(node))
            }
            Resolved::Inside(node, open, tree, folder) if tree.is_streamed(folder) => {
                self.handles.add(Handle::ViewFolder(Box::new(ViewFolder { node: node.id, open, tree, folder })))
            }
            folder => self.handles.add_folder(ino, self.entries(&folder, blocking)?),
        };
        Ok(OpenReply { handle, pages: Pages::Bypass })
    }

    /// Passes the entries of an open folder that come after position `from` to `add`, each with its own position, until
    /// `add` returns `false`. Position 0 is the start.
    pub(crate) fn readdir(
        &self,
        handle: u64,
        from: u64,
        blocking: Blocking,
        mut add: impl FnMut(&FolderEntry, u64) -> bool,
    ) -> Result<(), FsError> {
        match self.handles.get(handle).as_deref() {
            Some(Handle::Folder(entries)) => {
                let from = usize::try_from(from).unwrap_or(usize::MAX);
                for (n, entry) in entries.iter().enumerate().skip(from) {
                    if !add(entry, n as u64 + 1) {
                        break;
                    }
                }
                Ok(())
            }
            Some(Handle::SourceFolder(node)) => self.read_source_folder(node, from, blocking, add),
            Some(Handle::ViewFolder(_)) if blocking == Blocking::No => Err(FsError::WouldBlock),
            Some(Handle::ViewFolder(folder)) => {
                folder.read(from, add);
                Ok(())
            }
            _ => Err(FsError::BadHandle),
        }
    }

    fn list(&self, folder: &Arc<Node>) -> Result<Listing, FsError> {
        let listed = self.listings.make(folder.id, || self.catalog.listing(folder, self.pool()));
        // a source that is gone is not one without datasets
        let is_empty = listed.as_ref().map_or(true, |listing| listing.is_empty());
        if folder.id == ROOT && is_empty && self.catalog.source_is_gone() {
            return Err(FsError::Stale);
        }
        Ok(listed?)
    }

    fn read_source_folder(
        &self,
        folder: &Arc<Node>,
        from: u64,
        blocking: Blocking,
        mut add: impl FnMut(&FolderEntry, u64) -> bool,
    ) -> Result<(), FsError> {
        let listing = match (self.listings.get(folder.id), blocking) {
            (Some(listing), _) => listing,
            (None, Blocking::No) => return Err(FsError::WouldBlock),
            (None, Blocking::Yes) => self.list(folder)?,
        };
        let parent = folder.parent.as_ref().map_or(Ino::ROOT, |parent| Ino::new(parent.id, 0));
        let first = [(Ino::new(folder.id, 0), "."), (parent, ".."), (Ino::DOT_VOLFS, DOT_VOLFS)];
        let first = first.into_iter().take(if folder.id == ROOT { 3 } else { 2 });
        for (position, (ino, name)) in (1..).zip(first) {
            if from < position && !add(&FolderEntry { ino, name: name.into(), folder: true }, position) {
                return Ok(());
            }
        }
        let begin = match from.checked_sub(FIRST_NUMBER).map(u32::try_from) {
            None => 0,
            Some(Ok(last)) => self.catalog.position_after(&listing, EntryNumber(last)),
            Some(Err(_)) => listing.len(),
        };
        for number in listing.iter().skip(begin) {
            let Some(child) = self.catalog.entry(*number) else { continue };
            let ino = match &child {
                Listed::Found(child) => Ino::new(child.id, 0),
                // its number is known only once the source answers; a list of names may have any other number
                Listed::Unseen(_) => Ino(u64::MAX),
            };
            let entry = FolderEntry { ino, name: name_in_mount(folder.id, child.name()).to_owned(), folder: true };
            if !add(&entry, u64::from(number.0) + FIRST_NUMBER) {
                break;
            }
        }
        Ok(())
    }

    /// Returns the entries of a folder that is not one of the source; the first two are the folder itself and its
    /// parent.
    fn entries(&self, folder: &Resolved, blocking: Blocking) -> Result<Vec<FolderEntry>, FsError> {
        let entry = |ino, name: &str, folder| FolderEntry { ino, name: name.into(), folder };
        let mut entries = vec![entry(folder.ino(), ".", true), entry(folder.parent(), "..", true)];
        let mut add = |entry, _| {
            entries.push(entry);
            true
        };
        match folder {
            Resolved::State(Ino::DOT_VOLFS) => entries.extend(STATE_FILES.map(|(ino, name)| entry(ino, name, false))),
            Resolved::Node(node) => match self.open_dataset(node, blocking)? {
                Ok(open) => list_inside((node.id, &open, &self.tree(node.id, &open)), Item::DATASET, 0, &mut add),
                Err(_) => entries.push(entry(Ino::new(node.id, Item::ERROR_NUMBER), ERROR_TXT, false)),
            },
            Resolved::Inside(node, open, tree, folder) if tree.is_folder(*folder) => {
                list_inside((node.id, open, tree), *folder, 0, &mut add);
            }
            _ => return Err(FsError::NotAFolder),
        }
        Ok(entries)
    }
}

impl ViewFolder {
    /// Passes entries to `add`, as [`Volfs::readdir`] does. Those of the view have their position there and 2 as their
    /// position.
    fn read(&self, from: u64, mut add: impl FnMut(&FolderEntry, u64) -> bool) {
        let first = [(self.folder, "."), (self.tree.parent(self.folder), "..")];
        for (position, (item, name)) in (1..).zip(first) {
            let ino = Ino::new(self.node, self.tree.number(item));
            if from < position && !add(&FolderEntry { ino, name: name.into(), folder: true }, position) {
                return;
            }
        }
        let before = first.len() as u64;
        let tree = (self.node, &*self.open, &*self.tree);
        list_inside(tree, self.folder, from.saturating_sub(before), &mut |entry, next| {
            add(&entry, next.saturating_add(before))
        });
    }
}

/// Passes the entries of a folder of a dataset to `add`, as [`Tree::list`] does.
fn list_inside(
    (node, open, tree): (NodeId, &OpenDataset, &Tree),
    folder: Item,
    from: u64,
    add: &mut dyn FnMut(FolderEntry, u64) -> bool,
) {
    tree.list(open, folder, from, &mut |item, next| {
        let ino = Ino::new(node, tree.number(item));
        add(FolderEntry { ino, name: tree.name(item).into(), folder: tree.is_folder(item) }, next)
    });
}

/// Bytes of all listings together. The last one is kept whatever its size.
const MAX_BYTES: usize = 4 << 20;

/// Listings by folder.
pub(crate) struct Listings {
    kept: Mutex<LruByWeight<NodeId, Listing>>,
    making: Mutex<HashMap<NodeId, Arc<Making>>>,
}

/// The making of one folder's listing: by one thread at a time.
#[derive(Default)]
struct Making {
    /// Locked by the thread that makes it. The value of `begun` for the last one that was made without an error.
    made: Mutex<u64>,
    /// How often it was begun.
    begun: AtomicU64,
}

impl Default for Listings {
    fn default() -> Self {
        Self { kept: Mutex::new(LruByWeight::new(MAX_BYTES)), making: Mutex::default() }
    }
}

impl Listings {
    /// Returns the listing of a folder if it is kept.
    pub(crate) fn get(&self, folder: NodeId) -> Option<Listing> {
        self.kept.lock().get(&folder)
    }

    /// Makes the listing of a folder with `make`, or returns one that another thread has begun to make after this call.
    pub(crate) fn make<E>(&self, folder: NodeId, make: impl FnOnce() -> Result<Listing, E>) -> Result<Listing, E> {
        let making = Arc::clone(self.making.lock().entry(folder).or_default());
        let begun = making.begun.load(Ordering::SeqCst);
        let mut made = making.made.lock();
        // one that was begun before this call may lack what was there when the call was made
        let newer = if *made > begun { self.get(folder) } else { None };
        let listing = match newer {
            Some(listing) => Ok(listing),
            None => {
                let number = making.begun.fetch_add(1, Ordering::SeqCst) + 1;
                make().inspect(|listing| {
                    let bytes = size_of_val(&**listing).min(MAX_BYTES);
                    let evicted = self.kept.lock().insert(folder, Arc::clone(listing), bytes);
                    // without the lock
                    drop(evicted);
                    *made = number;
                })
            }
        };
        drop(made);
        drop(making);
        if let Entry::Occupied(entry) = self.making.lock().entry(folder)
            && Arc::strong_count(entry.get()) == 1
        {
            entry.remove();
        }
        listing
    }

    /// Drops the listing of a folder.
    #[cfg(test)]
    pub(crate) fn forget(&self, folder: NodeId) {
        drop(self.kept.lock().remove(&folder));
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;
    use std::path::Path;
    use std::sync::Barrier;
    use std::{fs, thread};

    use super::super::Options;
    use super::super::resolve::{LOG, STATUS};
    use super::*;
    use crate::memory::entry_weight;

    /// What listings have room for.
    const MAX_ENTRIES: usize = MAX_BYTES / size_of::<EntryNumber>();

    fn volfs(source: &Path) -> Volfs {
        Volfs::new(Options::for_tests(source), Arc::default()).unwrap()
    }

    /// Reads up to `count` names after a position; returns them and the new position.
    fn read(fs: &Volfs, handle: u64, from: u64, count: usize) -> (Vec<String>, u64) {
        let (mut names, mut at) = (Vec::new(), from);
        fs.readdir(handle, from, Blocking::Yes, |entry, position| {
            if names.len() == count {
                return false;
            }
            names.push(entry.name.to_str().unwrap().to_owned());
            at = position;
            true
        })
        .unwrap();
        (names, at)
    }

    fn opened(fs: &Volfs) -> u64 {
        fs.opendir(Ino::ROOT, Blocking::Yes).unwrap().handle
    }

    #[test]
    fn names_that_stay_are_listed_once_although_the_listing_is_made_again() {
        for drops in [true, false] {
            let source = tempfile::tempdir().unwrap();
            let path = |name: &str| source.path().join(name);
            for name in ["b", "d", "f", "h"] {
                fs::create_dir(path(name)).unwrap();
            }
            let fs = volfs(source.path());
            let handle = opened(&fs);
            let (names, at) = read(&fs, handle, 0, 5);
            assert_eq!(names, [".", "..", ".volfs", "b", "d"]);
            // the last name that was read goes, and names before and after it come and go
            for name in ["a", "c", "e", "g"] {
                fs::create_dir(path(name)).unwrap();
            }
            fs::remove_dir(path("d")).unwrap();
            fs::remove_dir(path("b")).unwrap();
            if drops {
                fs.listings.forget(ROOT);
                assert_eq!(fs.readdir(handle, at, Blocking::No, |_, _| true), Err(FsError::WouldBlock));
            } else {
                opened(&fs);
            }
            let (names, end) = read(&fs, handle, at, usize::MAX);
            assert_eq!(names, ["e", "f", "g", "h"]);
            assert_eq!(read(&fs, handle, end, usize::MAX).0, [""; 0]);
            assert_eq!(read(&fs, handle, 0, usize::MAX).0, [".", "..", ".volfs", "a", "c", "e", "f", "g", "h"]);
        }
    }

    #[test]
    fn a_position_means_the_same_name_for_ever() {
        let source = tempfile::tempdir().unwrap();
        for name in ["a", "b", "c"] {
            fs::create_dir(source.path().join(name)).unwrap();
        }
        let fs = volfs(source.path());
        let handle = opened(&fs);
        let (_, after_b) = read(&fs, handle, 0, 5);
        assert_eq!(read(&fs, handle, after_b, 9).0, ["c"]);
        fs::remove_dir(source.path().join("a")).unwrap();
        fs::create_dir(source.path().join("bb")).unwrap();
        assert_eq!(read(&fs, opened(&fs), after_b, 9).0, ["bb", "c"]);
        assert_eq!(read(&fs, handle, 1, 9).0, ["..", ".volfs", "b", "bb", "c"]);
        assert_eq!(read(&fs, handle, u64::MAX, 9).0, [""; 0]);
        assert_eq!(read(&fs, handle, 4 + 77, 9).0, [""; 0]);
    }

    #[test]
    fn handles_share_their_entries() {
        let source = tempfile::tempdir().unwrap();
        let fs = volfs(source.path());
        let handles: Vec<u64> = (0..2).map(|_| fs.opendir(Ino::DOT_VOLFS, Blocking::Yes).unwrap().handle).collect();
        let entries: Vec<Arc<Handle>> = handles.iter().map(|handle| fs.handles.get(*handle).unwrap()).collect();
        let [Handle::Folder(one), Handle::Folder(other)] = [&*entries[0], &*entries[1]] else { panic!("no folders") };
        assert!(Arc::ptr_eq(one, other));
        assert_eq!(read(&fs, handles[1], 2, 9).0, [STATUS, LOG]);
    }

    fn of(entries: usize) -> Listing {
        (0..entries).map(|n| EntryNumber(n as u32)).collect()
    }

    #[test]
    fn listings_that_were_not_used_for_the_longest_time_are_dropped() {
        let listings = Listings::default();
        let make = |folder, entries| listings.make(folder, || Ok::<_, Infallible>(of(entries))).unwrap();
        make(1, MAX_ENTRIES / 2);
        make(2, MAX_ENTRIES / 2);
        assert!(listings.get(1).is_some());
        make(3, 1);
        assert!(listings.get(1).is_some() && listings.get(2).is_none() && listings.get(3).is_some());
        make(4, 2 * MAX_ENTRIES);
        assert!(listings.get(1).is_none() && listings.get(3).is_none());
        assert_eq!(listings.get(4).unwrap().len(), 2 * MAX_ENTRIES);
        make(4, 5);
        assert_eq!(listings.kept.lock().weight(), entry_weight(5 * size_of::<EntryNumber>()));
        assert!(listings.making.lock().is_empty());
    }

    #[test]
    fn threads_share_only_what_was_begun_after_they_came() {
        let listings = Listings::default();
        let made = AtomicU64::new(0);
        let (first_makes, others_came) = (Barrier::new(2), Barrier::new(2));
        thread::scope(|scope| {
            scope.spawn(|| {
                listings.make(7, || {
                    first_makes.wait();
                    others_came.wait();
                    made.fetch_add(1, Ordering::SeqCst);
                    Ok::<_, Infallible>(of(1))
                })
            });
            first_makes.wait();
            let others: Vec<_> = (0..8)
                .map(|_| {
                    scope.spawn(|| {
                        let make = || Ok::<_, Infallible>(of(1 + made.fetch_add(1, Ordering::SeqCst) as usize));
                        listings.make(7, make).unwrap().len()
                    })
                })
                .collect();
            let waiting = || listings.making.lock().get(&7).map_or(0, Arc::strong_count);
            while waiting() < 10 {
                thread::yield_now();
            }
            others_came.wait();
            assert!(others.into_iter().all(|other| other.join().unwrap() > 1), "none has the first one's listing");
        });
        assert!(made.load(Ordering::SeqCst) < 9);
    }

    #[test]
    fn after_a_failure_no_older_listing_is_shared() {
        let (listings, made, others_came) = (Listings::default(), Barrier::new(2), Barrier::new(2));
        let (listings, made, others_came) = (&listings, &made, &others_came);
        let fails = || Err::<Listing, _>("fails");
        thread::scope(|scope| {
            scope.spawn(move || {
                listings.make(7, || {
                    made.wait();
                    others_came.wait();
                    Ok::<_, Infallible>(of(1))
                })
            });
            made.wait();
            let others: Vec<_> = (0..8).map(|_| scope.spawn(move || listings.make(7, fails))).collect();
            while listings.making.lock().get(&7).map_or(0, Arc::strong_count) < 10 {
                thread::yield_now();
            }
            others_came.wait();
            assert!(others.into_iter().all(|other| other.join().unwrap() == Err("fails")));
        });
    }
}
