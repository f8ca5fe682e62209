//! Surveys as SEG-Y files. `lod0.sgy` is written anew from the samples of a layer (SEG-Y revision 1, IEEE float), and
//! `original.sgy` is the file that a dataset was imported from, byte for byte.
//!
//! A [`survey`] is what a layer has to have for a file of its own; the headers of the file are made by [`text_header`],
//! [`binary_header`] and [`trace_header`], and [`survey_file`] puts headers and samples together.
//!
//! The traces of an [`original_file`] are found by [`trace_counts`], in the order that [`original_order`] finds out;
//! [`original_read`] walks along the [`live_traces`], and [`original_samples`] undoes what the import did to samples.

mod binary_header;
mod brick_values;
mod ebcdic;
#[cfg(test)]
mod fixture;
mod live_traces;
mod original_file;
mod original_order;
mod original_read;
mod original_samples;
#[cfg(test)]
mod original_tests;
mod original_view;
mod sample_axis;
mod sample_bytes;
mod survey;
mod survey_file;
#[cfg(test)]
mod survey_tests;
mod survey_view;
mod text_header;
mod trace_counts;
mod trace_header;
mod trace_order;
mod world;

pub(crate) use original_view::OriginalSegy;
pub(crate) use survey_view::SurveySegy;
