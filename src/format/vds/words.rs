//! For the fuzzer: both parsers, and all that is made of what they understand.

use super::describe;
use super::description::{self, Description};

/// Reads a `VolumeDataLayout`; whether it makes sense.
#[must_use]
pub fn json(text: &[u8]) -> bool {
    told(&description::of_json(text))
}

/// Reads a `VDSObject`; whether it makes sense.
#[must_use]
pub fn object(text: &[u8]) -> bool {
    told(&description::of_object(text))
}

fn told(outcome: &Result<Description, String>) -> bool {
    let Ok(description) = outcome else { return false };
    let told = (describe::geometry(description), describe::metadata(description), describe::native(description));
    std::hint::black_box(told);
    true
}
