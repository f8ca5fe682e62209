//! `lodN.zarr.json`: references (version 1 of kerchunk's format) that show `lodN.raw` as a Zarr array by planes.

mod chunks;
mod heading;
mod kerchunk_view;
mod reference_file;

pub(crate) use kerchunk_view::Kerchunk;
