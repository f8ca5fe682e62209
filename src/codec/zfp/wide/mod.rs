//! Decoding of blocks with the instructions of newer processors: AVX2, BMI2 and the carry-less product.

mod cube;
mod planes;
mod proof;
mod registers;
mod square;

pub(crate) use proof::Wide;
