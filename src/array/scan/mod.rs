//! Scans: sequential readers of an array, detected by their requests, and what each keeps of the bricks that it passes.

mod detector;
mod segment_plan;
mod segments;
mod stream;

pub use detector::{REORDER_WINDOW, ScanDetector};
pub use segment_plan::SegmentPlan;
pub use segments::KeptPlanes;
pub use stream::{PrefetchOrder, Retention, Stream};
