//! Surveys as SEG-Y files. `lod0.sgy` is written anew from the samples of a layer (SEG-Y revision 1, IEEE float), and
//! `original.sgy` is the file that a dataset was imported from, byte for byte.
//!
//! [`survey_file`] shows what [`survey`] says of a layer, or of a box of one, and [`headers`] writes its headers. The
//! traces of an [`original`] file, and their order, are found by [`traces`].

mod headers;
mod original;
mod survey;
mod survey_file;
#[cfg(test)]
pub(crate) mod tests;
mod traces;

pub(crate) use original::ORIGINAL;
pub(crate) use survey::line_axes;
pub(crate) use survey_file::{SURVEY, of_box};
