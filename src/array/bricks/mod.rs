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

pub use access::BrickAccess;
pub use cached_pieces::CachedPieces;
pub use load::load;
pub use lookup::{Purpose, first_plane};
pub use origin::{Origin, Origins};
pub use piece_copy::Attempt;
pub use plain_pieces::{CopyFailure, PlainPieces};
pub use plain_read::missing_object;
pub use read_strategy::{ReadStrategy, WholeBrick};
