//! Scans: sequential readers of an array, which are detected by their requests, and the planes of bricks that each
//! keeps.

mod detector;
mod segment_plan;
mod segments;
mod stream;

pub use detector::{REORDER_WINDOW, ScanDetector};
pub use segment_plan::SegmentPlan;
pub use segments::KeptPlanes;
pub use stream::{PrefetchOrder, Retention, Stream};
