//! Compares the data path with a plain model.

mod model;
mod passed;
mod permuted;
mod plain;
mod race;
mod scan;
#[cfg(feature = "shuttle")]
mod schedules;
