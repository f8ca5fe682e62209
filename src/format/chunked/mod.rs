//! What formats share whose arrays are stored in chunks, objects of a folder with a description beside them: the tree of
//! groups and arrays, images of several levels, and arrays whose bricks are chunks or parts of shards.
//!
//! A format reads its descriptions into [`Node`]s and [`Image`]s; [`open`] makes a dataset of them.

mod array;
mod coordinates;
mod dataset;
mod description;
mod node;
mod scaling;
mod tree;

pub(super) use coordinates::{Line, MAX_READ, short};
pub(super) use dataset::{of_layers, open};
pub(super) use description::{Parsed, names_in, read};
pub(super) use node::{ArrayMetadata, AxisDescription, Chain, ChunkKeys, Hidden, Image, Level, Node, Shards, join};
pub(super) use scaling::{Values, value_range};
pub(super) use tree::{Convention, Layers, Nodes, one_array};
