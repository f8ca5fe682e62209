//! Text for people: what every command prints goes through here.
//!
//! * [`layout`]: headings, labelled values, warnings and tables, with or without colours.
//! * [`table`]: columns, aligned by the width that a terminal gives their text.
//! * [`chart`]: a histogram of block characters.
//! * [`escape`]: control characters in names from data, made visible.
//! * [`json_value`], [`number`] and [`size`]: values, floats and byte counts as text.
//! * [`width`]: how many terminal columns a text takes.

pub mod chart;
pub mod escape;
pub mod json_value;
pub mod layout;
pub mod number;
pub mod size;
pub mod table;
pub mod width;
