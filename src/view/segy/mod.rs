//! Surveys as SEG-Y files. `lod0.sgy` is written anew from the samples of a layer (SEG-Y revision 1, IEEE float), and
//! `original.sgy` is the file that a dataset was imported from, byte for byte.
//!
//! [`survey`] is what a layer has to have for a file of its own; [`headers`] makes the headers, and [`survey_file`] puts
//! headers and samples together. The traces of an [`original`] file, and their order, are found by [`traces`].

#[cfg(test)]
mod fixture;
mod headers;
mod original;
#[cfg(test)]
mod original_tests;
mod survey;
mod survey_file;
#[cfg(test)]
mod survey_tests;
mod traces;

pub(crate) use original::OriginalSegy;
pub(crate) use survey_file::SurveySegy;
