//! The listings of folders of the source, which all open handles of a folder share.
//!
//! There is one listing of a folder: each opening of the folder makes it anew, and handles that are open go on with
//! that. Their position is the entry that they have seen last, and listings are sorted by name, so they miss nothing
//! that stays and see nothing twice. So a listing can also be dropped when there are too many, and made again.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use lru::LruCache;

use crate::catalog::{Listing, NodeId};
use crate::sync::Mutex;

/// Entries of all listings together: 4 MiB. The last one is kept whatever its size.
const MAX_ENTRIES: usize = 1 << 20;

/// Listings by folder.
pub(crate) struct Listings {
    kept: Mutex<Kept>,
    making: Mutex<HashMap<NodeId, Arc<Making>>>,
}

struct Kept {
    listings: LruCache<NodeId, Listing>,
    entries: usize,
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
        let kept = Kept { listings: LruCache::unbounded(), entries: 0 };
        Self { kept: Mutex::new(kept), making: Mutex::default() }
    }
}

impl Listings {
    /// Returns the listing of a folder if it is kept.
    pub(crate) fn get(&self, folder: NodeId) -> Option<Listing> {
        self.kept.lock().listings.get(&folder).cloned()
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
                    self.keep(folder, Arc::clone(listing));
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

    fn keep(&self, folder: NodeId, listing: Listing) {
        let mut dropped = Vec::new();
        let mut kept = self.kept.lock();
        kept.entries += listing.len();
        dropped.extend(kept.listings.push(folder, listing));
        for (_, old) in &dropped {
            kept.entries -= old.len();
        }
        while kept.entries > MAX_ENTRIES
            && kept.listings.len() > 1
            && let Some((folder, old)) = kept.listings.pop_lru()
        {
            kept.entries -= old.len();
            dropped.push((folder, old));
        }
        drop(kept);
        // freed without the lock
        drop(dropped);
    }

    /// Drops the listing of a folder.
    #[cfg(test)]
    pub(crate) fn forget(&self, folder: NodeId) {
        let mut kept = self.kept.lock();
        let dropped = kept.listings.pop(&folder);
        kept.entries -= dropped.map_or(0, |listing| listing.len());
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;
    use std::sync::Barrier;
    use std::thread;

    use super::*;
    use crate::catalog::EntryNumber;

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
        assert_eq!(listings.kept.lock().entries, 5);
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
