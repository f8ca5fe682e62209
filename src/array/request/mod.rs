//! Ranges and boxes of samples as pieces of bricks, and the offsets of the pieces in a reply. Arithmetic only.

mod boxes;
mod destination;
mod pieces;

pub use boxes::boxes;
pub use destination::{Destination, ReplyLayout};
pub use pieces::{Piece, Pieces, pieces, pieces_of_box};
