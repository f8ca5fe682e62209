//! Checks every brick of every dataset below a path, on all cores.
//!
//! One thread walks the folders, opens the datasets and makes tasks of their bricks; workers do the tasks. Bricks are
//! read and decoded as in a mount, within the same budget of memory, then counted and dropped. What is found is kept for
//! each dataset until its last task is done, and delivered in the order of the walk. All of it is bounded: tasks wait in
//! a queue of fixed length, bad bricks that follow one another are one entry, and of entries there is a most.

mod bad_bricks;
mod datasets;
mod delivery;
mod job;
mod progress;
mod report;
mod run;

pub use bad_bricks::BadBricks;
pub use datasets::{Datasets, Place};
pub use progress::Progress;
pub use report::{DatasetReport, LevelReport};
pub use run::{Verification, VerifyOptions};
