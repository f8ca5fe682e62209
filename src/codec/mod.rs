//! Bytes to samples, for codecs that belong to no single format: a slice in, a slice of known length out.

pub mod lz4;
pub mod zfp;
mod zfp_ffi;
mod zfp_header;
pub mod zlib;
