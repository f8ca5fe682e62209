//! The description of a VDS, and its two syntaxes: the JSON of `VolumeDataLayout`, and the older `VDSObject`.

mod check;
mod fields;
#[cfg(test)]
pub mod fixtures;
mod json;
mod metadata_type;
mod model;
mod object;
mod object_fields;
mod object_text;

#[cfg(test)]
pub use check::tests::sound;

pub use check::check_values;
pub use json::parse as of_json;
pub use model::{Axis, Channel, Datum, Description, Entry, Format, LONGEST, Layout, MOST_AXES, MOST_LAYERS};
pub use object::parse as of_object;
