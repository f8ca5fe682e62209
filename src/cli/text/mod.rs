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

pub mod chart;
pub mod choice;
pub mod duration;
pub mod escape;
pub mod json_value;
pub mod layout;
pub mod number;
pub mod size;
pub mod table;
pub mod width;
