//! The naive model of the data path, and a check of lookups.

use crate::format::Array;
pub(crate) use crate::internals::{read_all, read_brick, read_what_can_be};
use crate::source::Blocking;

/// Checks that each of the first 200 bricks, once looked up, is found without waiting, unless each lookup has to read
/// the source.
pub fn check_without_waiting(array: &dyn Array) {
    for number in 0..array.info().grid.total().min(200) {
        let at = array.info().grid.count().index_of(number);
        let with = array.brick(&at, Blocking::Yes);
        match array.brick(&at, Blocking::No) {
            Err(e) if e.would_block() => {}
            without => assert_eq!(without, with),
        }
    }
}
