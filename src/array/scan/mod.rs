//! Scans: sequential readers of an array, which are detected by their requests, and the planes of bricks that each
//! keeps.

mod detector;
mod segment_plan;
mod segments;
mod stream;

pub(crate) use detector::{REORDER_WINDOW, ScanDetector};
pub(crate) use segment_plan::SegmentPlan;
pub(crate) use segments::KeptPlanes;
pub(crate) use stream::{PrefetchOrder, Retention, Stream};
