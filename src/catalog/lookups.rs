//! Lookups of single names that are in flight for a listing.

use std::collections::HashMap;
use std::ffi::OsString;
use std::time::{Duration, Instant};

use super::node::NodeId;
use crate::sync::Mutex;

/// A name in a folder.
pub(crate) type LookupKey = (NodeId, OsString);

/// The names that threads look up for listings at this moment.
#[derive(Default)]
pub(crate) struct LookupsInFlight(Mutex<HashMap<LookupKey, Instant>>);

impl LookupsInFlight {
    /// Registers a lookup, and returns how long one of the same name has been in flight already.
    pub(crate) fn begin(&self, key: &LookupKey) -> Duration {
        self.0.lock().entry(key.clone()).or_insert_with(Instant::now).elapsed()
    }

    /// Removes a lookup that has returned.
    pub(crate) fn end(&self, key: &LookupKey) {
        self.0.lock().remove(key);
    }
}
