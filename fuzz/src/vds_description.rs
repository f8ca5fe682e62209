//! Parses any text as the description of a VDS: as a `VDSObject` if it begins like one, else as a `VolumeDataLayout` in
//! JSON; and makes all JSON of the result.

use std::hint::black_box;

use crate::format::vds::{describe, description, native};

use super::bounded;

/// Reads one input: a text. Returns 1 if it is valid.
#[must_use]
pub fn run(text: &[u8]) -> u64 {
    let parse = if text.starts_with(b"CreateObj") { description::from_object } else { description::from_json };
    let is_valid = || {
        let description = parse(text);
        let json = |d| (describe::geometry(d), describe::metadata(d), native(d));
        black_box(description.as_ref().map(json)).is_ok()
    };
    bounded::opening(text.len(), is_valid).into()
}
