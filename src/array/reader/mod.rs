//! Reads samples: the fast path answers from memory at once, the slow path divides the remaining pieces among workers.

mod array_reader;
mod box_read;
mod brick_check;
mod config;
mod copied;
mod fast_path;
mod gauges;
mod prefault;
mod slow_path;

pub(crate) use array_reader::{ReadRequest, Reader};
pub(crate) use box_read::BoxRequest;
pub(crate) use brick_check::CheckedBrick;
pub(crate) use config::ReaderConfig;
pub(crate) use gauges::Gauges;
