//! ZGY: bricked seismic surveys with several levels of detail, versions 1 to 4.
//!
//! The format is documented by its open-source implementation, OpenZGY (`open-zgy` of the OSDU Forum). Where its C++
//! and Python libraries and its text on the format differ, comments name the one that is followed.
//!
//! [`header`] finds and checks the parts of the header, [`levels`] computes the position of a brick's table entry,
//! [`table`] reads the entry, and [`array`] makes a brick of it. [`check`] looks for faults of the whole table. Every
//! size that a file announces is compared with the file's length before memory is allocated for it.

mod array;
mod check;
mod describe;
mod geometry;
#[cfg(any(test, fuzzing))]
pub(crate) mod handmade;
mod header;
mod info;
mod levels;
mod sample_type;
mod subtile;
mod survey;
mod swapped;
mod table;
#[cfg(test)]
mod tests;
mod units;

pub(crate) use survey::Zgy;
