//! The data path against a plain model.

mod model;
mod permuted;
mod plain;
mod race;
mod scan;
