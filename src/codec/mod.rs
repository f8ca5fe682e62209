//! Decoders that are not tied to one format: stored bytes in, samples of a known length out.
//!
//! Those that formats name in their descriptions, alone or in chains, are [`Codec`]s, which [`codec`] makes.

mod arithmetic;
pub(crate) mod blosc;
mod bzip2;
mod checksum;
pub(crate) mod compressed_segmentation;
pub(crate) mod deflate;
mod filters;
pub(crate) mod inflate;
pub(crate) mod jpeg;
pub(crate) mod lz4;
mod lz4_blocks;
mod lzf;
mod lzma;
mod numpy;
mod packed_bits;
mod pcodec;
mod pipeline;
pub(crate) mod png;
mod shuffle;
mod sizes;
mod szip;
#[cfg(test)]
mod tests;
pub(crate) mod zfp;
mod zfpy;
mod zlib;
mod zstd;

use serde_json::{Map, Value};

pub(crate) use checksum::crc32c;
pub(crate) use pipeline::{DecodeError, Finish, Pipeline, SwapBytes, release_idle, swap};

/// One codec of a chain, with its configuration.
pub(crate) trait Codec: Send + Sync {
    /// The name for messages and JSON: `zstd`, `blosc`, `delta`.
    fn name(&self) -> &'static str;

    /// Returns the bytes that decoding `stored` bytes gives, where that follows from the number alone, as for filters
    /// and checksums.
    fn decoded_len(&self, _stored: u64) -> Option<u64> {
        None
    }

    /// Returns the most bytes that an encoding of `decoded` bytes can take, generously: longer ones are refused before
    /// they are read.
    fn longest(&self, decoded: u64) -> u64;

    /// Returns whether each sample is decoded by itself (astype, quantize), so that their order does not matter.
    fn is_elementwise(&self) -> bool {
        false
    }

    /// Returns whether it takes about the time that the kernel takes to make new memory for what is decoded, or less.
    fn is_fast(&self) -> bool {
        self.decoded_len(1 << 20).is_some()
    }

    /// Decodes `stored`, which must fill `out` exactly; after an error its content is unspecified.
    fn decode(&self, stored: &[u8], out: &mut [u8]) -> Result<(), String>;

    /// Returns whether a part can be decoded in much less time than all, by [`Codec::decode_part`].
    fn has_parts(&self) -> bool {
        false
    }

    /// Decodes to `out` the bytes from `first` on of `decoded` bytes.
    fn decode_part(&self, _stored: &[u8], _decoded: usize, _first: usize, _out: &mut [u8]) -> Result<(), String> {
        Err("no part of it can be decoded by itself".into())
    }

    /// Decodes at most `most` bytes, where the number is not known.
    fn decode_unsized(&self, stored: &[u8], most: usize) -> Result<Vec<u8>, String>;

    /// Returns the bytes of memory that decoding to `decoded` bytes takes besides input and output.
    fn scratch(&self, _decoded: usize) -> usize {
        0
    }
}

/// What a description says of a codec besides its name.
type Configuration = Map<String, Value>;

type New = fn(&Configuration) -> Result<Box<dyn Codec>, String>;

/// The codecs by their names: those of Zarr v3, of numcodecs (Zarr v2), N5 and HDF5.
const CODECS: &[(&[&str], New)] = &[
    (&["adler32"], checksum::new_adler32),
    (&["astype"], arithmetic::new_astype),
    (&["base64"], filters::new_base64),
    (&["bitround"], filters::new_bitround),
    (&["bitshuffle"], lz4_blocks::new_bitshuffle),
    (&["blosc"], blosc::new),
    (&["bz2", "bzip2"], bzip2::new),
    (&["crc32"], checksum::new_crc32),
    (&["crc32c"], checksum::new_crc32c),
    (&["deflate"], zlib::new_deflate),
    (&["delta"], arithmetic::new_delta),
    (&["fixedscaleoffset"], arithmetic::new_fixedscaleoffset),
    (&["fletcher32"], checksum::new_fletcher32),
    (&["gzip"], zlib::new_gzip),
    (&["lz4"], lz4_blocks::new_numcodecs),
    (&["lz4-hdf5"], lz4_blocks::new_hdf5),
    (&["lz4-java"], lz4_blocks::new_java),
    (&["lzf"], lzf::new),
    (&["lzma", "xz"], lzma::new),
    (&["nbit"], packed_bits::new_nbit),
    (&["packbits"], filters::new_packbits),
    (&["pcodec"], pcodec::new),
    (&["quantize"], arithmetic::new_quantize),
    (&["scaleoffset"], packed_bits::new_scaleoffset),
    (&["shuffle"], filters::new_shuffle),
    (&["szip"], szip::new),
    (&["zfpy"], zfpy::new),
    (&["zlib"], zlib::new_zlib),
    (&["zstd"], zstd::new),
];

/// What numcodecs' names begin with in Zarr v3.
const NUMCODECS: &str = "numcodecs.";

/// Makes the codec with this name, which may begin with `numcodecs.`, and configuration. An error names what is not
/// supported.
pub(crate) fn codec(name: &str, configuration: &Configuration) -> Result<Box<dyn Codec>, String> {
    let known = name.strip_prefix(NUMCODECS).unwrap_or(name);
    match CODECS.iter().find(|(names, _)| names.contains(&known)) {
        Some((_, new)) => new(configuration),
        None => Err(format!("the codec {name:?} is not supported")),
    }
}
