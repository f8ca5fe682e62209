//! Decoders that are not tied to one format: stored bytes in, samples of a known length out.

pub mod lz4;
pub mod zfp;
pub mod zlib;
