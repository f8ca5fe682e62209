//! The description of a VDS, and its two syntaxes: the JSON of `VolumeDataLayout`, and the older `VDSObject`.

mod check;
#[cfg(test)]
pub(crate) mod fixtures;
mod json;
mod json_fields;
mod metadata_type;
mod model;
mod object;
mod object_fields;
mod object_text;

#[cfg(test)]
pub(crate) use check::tests::sound;

pub(crate) use json::parse as of_json;
pub(crate) use model::{
    AxisDescriptor, Channel, Description, LayoutDescriptor, MAX_DESCRIPTION_BYTES, MAX_DIMENSIONS, MAX_LAYERS,
    MetadataEntry, MetadataValue, SampleFormat,
};
pub(crate) use object::parse as of_object;
