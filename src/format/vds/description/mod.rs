//! The description of a VDS, and its two syntaxes: the JSON of `VolumeDataLayout`, and the older `VDSObject`.

mod check;
#[cfg(test)]
pub mod fixtures;
mod json;
mod json_fields;
mod metadata_type;
mod model;
mod object;
mod object_fields;
mod object_text;

#[cfg(test)]
pub use check::tests::sound;

pub use json::parse as of_json;
pub use model::{
    AxisDescriptor, Channel, Description, LayoutDescriptor, MAX_DESCRIPTION_BYTES, MAX_DIMENSIONS, MAX_LAYERS,
    MetadataEntry, MetadataValue, SampleFormat,
};
pub use object::parse as of_object;
