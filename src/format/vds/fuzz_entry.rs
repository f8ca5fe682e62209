//! The entry point of the fuzz target `vds_description`: both parsers of descriptions, and all JSON that is made of the
//! result.

use super::describe;
use super::description::{self, Description};

/// Parses a `VolumeDataLayout`; whether it is valid.
#[must_use]
pub fn json(text: &[u8]) -> bool {
    is_valid(&description::of_json(text))
}

/// Parses a `VDSObject`; whether it is valid.
#[must_use]
pub fn object(text: &[u8]) -> bool {
    is_valid(&description::of_object(text))
}

fn is_valid(outcome: &Result<Description, String>) -> bool {
    let Ok(description) = outcome else { return false };
    let json = (describe::geometry(description), describe::metadata(description), describe::native(description));
    std::hint::black_box(json);
    true
}
