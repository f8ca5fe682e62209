//! Ranges and boxes of samples as pieces of bricks, and the offsets of the pieces in a reply. Arithmetic only.

mod boxes;
mod destination;
mod pieces;

pub(crate) use boxes::boxes;
pub(crate) use destination::{Destination, ReplyLayout};
pub(crate) use pieces::{Piece, Pieces, pieces, pieces_of_box};
