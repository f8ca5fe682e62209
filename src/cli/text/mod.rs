//! Text for people, as all commands print it.
//!
//! * [`layout`]: headings, labelled values, warnings and tables, with or without colours.
//! * [`table`]: aligned columns, for a whole table or row by row.
//! * [`chart`]: a histogram of block characters.
//! * [`choice`]: the name that a user means, among those that there are.
//! * [`duration`]: formats durations.
//! * [`escape`]: escapes control characters in names from data.
//! * [`json_value`], [`number`] and [`size`]: format JSON values, floats and sizes in bytes.
//! * [`width`]: measures text in columns of a terminal.

pub(crate) mod chart;
pub(crate) mod choice;
pub(crate) mod duration;
pub(crate) mod escape;
pub(crate) mod json_value;
pub(crate) mod layout;
pub(crate) mod number;
pub(crate) mod size;
pub(crate) mod table;
pub(crate) mod width;
