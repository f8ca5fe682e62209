//! Tests of the decoder beside libzfp.

mod agreement;
mod compressor;
mod damage;
mod samples;
mod strides;
