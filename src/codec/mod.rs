//! Decoders that are not tied to one format: stored bytes in, samples of a known length out.

pub(crate) mod deflate;
pub(crate) mod inflate;
pub(crate) mod lz4;
pub(crate) mod zfp;
