//! For the fuzzer: both parsers, and all that is made of what they understand.

use super::{description::Description, geometry, json, metadata_json, object, own};

/// Reads a `VolumeDataLayout`; whether it makes sense.
#[must_use]
pub fn json(text: &[u8]) -> bool {
    told(&json::parse(text))
}

/// Reads a `VDSObject`; whether it makes sense.
#[must_use]
pub fn object(text: &[u8]) -> bool {
    told(&object::parse(text))
}

fn told(outcome: &Result<Description, String>) -> bool {
    let Ok(description) = outcome else { return false };
    let told = (geometry::geometry(description), metadata_json::metadata(description), own::own(description));
    std::hint::black_box(told);
    true
}
