//! The formats: one folder for each, and the traits that they implement.
//!
//! A format knows which arrays a dataset has and where each of their bricks is stored. It does not cache samples, and
//! does not depend on how they are read. A new format is a folder here and an entry of [`registry`].

mod byte_reader;
mod error;
pub(crate) mod extents;
mod finding;
mod registry;
mod segy_import;
mod traits;
mod value_limit;
pub(crate) mod vds;
pub(crate) mod wkw;
pub(crate) mod zgy;

pub(crate) use error::FormatError;
pub(crate) use finding::{Finding, Severity};
pub(crate) use registry::{Registry, registry};
pub(crate) use segy_import::{SegyImport, SegySample};
pub(crate) use traits::{Array, Census, Dataset, Format, HiddenLayer, Layer, OpenWith, StoredBrick};
