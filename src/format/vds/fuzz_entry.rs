//! The entry points of fuzz targets: both parsers of descriptions, with all JSON that is made of the result; and run
//! lengths.

use super::describe;
use super::description::{self, Description};
use super::rle;

/// Parses a `VolumeDataLayout`; whether it is valid.
pub(crate) fn json(text: &[u8]) -> bool {
    is_valid(&description::of_json(text))
}

/// Parses a `VDSObject`; whether it is valid.
pub(crate) fn object(text: &[u8]) -> bool {
    is_valid(&description::of_object(text))
}

/// Decodes the run lengths of a chunk into all of `out`.
pub(crate) fn rle(packed: &[u8], out: &mut [u8]) -> Result<(), String> {
    rle::decode(packed, out)
}

fn is_valid(outcome: &Result<Description, String>) -> bool {
    let Ok(description) = outcome else { return false };
    let json = (describe::geometry(description), describe::metadata(description), describe::native(description));
    std::hint::black_box(json);
    true
}
