//! Checks every brick of every dataset below a path, on all cores.
//!
//! One thread walks the folders, opens the datasets and makes tasks of their bricks; workers do the tasks. Bricks are
//! read and decoded as in a mount, within the same budget of memory, then counted and dropped. What is found is kept for
//! each dataset until its last task is done, and delivered in the order of the walk. All of it is bounded: tasks wait in
//! a queue of fixed length, bad bricks that follow one another are one entry, and of entries there is a most. A level
//! that has too many bad bricks is given up: a file can claim more than anybody can count.
//!
//! What is damaged is told from what could not be read because the disk, the network or a limit of the system failed;
//! that is tried again first.

mod bad_bricks;
mod datasets;
mod delivery;
mod fault;
mod findings;
mod job;
mod progress;
mod report;
mod retries;
mod run;

pub(crate) use bad_bricks::BadBricks;
pub(crate) use datasets::{Datasets, Place};
pub(crate) use fault::Fault;
pub(crate) use report::{DatasetReport, LevelReport};
pub(crate) use run::{Verification, VerifyOptions};
