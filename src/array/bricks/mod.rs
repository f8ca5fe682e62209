//! One brick for one reader: from the cache, from the planes that its scan keeps, straight from the source, or decoded
//! now.

mod access;
mod cached_pieces;
mod fetch_ahead;
mod load;
mod lookup;
mod origin;
mod piece_copy;
mod plain_pieces;
mod plain_read;
mod read_strategy;

pub(crate) use access::BrickAccess;
pub(crate) use cached_pieces::CachedPieces;
pub(crate) use load::load;
pub(crate) use lookup::{Purpose, first_plane};
pub(crate) use origin::{Origin, Origins};
pub(crate) use piece_copy::Attempt;
pub(crate) use plain_pieces::{CopyFailure, PlainPieces};
pub(crate) use plain_read::missing_object;
pub(crate) use read_strategy::{ReadStrategy, WholeBrick};
