//! Parses any text as the description of a VDS: as a `VDSObject` if it begins like one, else as a `VolumeDataLayout` in
//! JSON; and makes all JSON of the result.

use crate::format::vds::fuzz_entry;

use super::bounded;

/// Reads one input: a text. Returns 1 if it is valid.
#[must_use]
pub fn run(text: &[u8]) -> u64 {
    let parse = if text.starts_with(b"CreateObj") { fuzz_entry::object } else { fuzz_entry::json };
    bounded::opening(text.len(), || parse(text)).into()
}
