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

pub use array_reader::{ReadRequest, Reader};
pub use box_read::BoxRequest;
pub use brick_check::CheckedBrick;
pub use config::ReaderConfig;
pub use gauges::Gauges;
