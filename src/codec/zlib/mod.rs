//! zlib streams (RFC 1950) that hold a known number of bytes.
//!
//! Those that are literals for the most part are decoded by volfs ([`inflate`]), all others by libdeflate: it is faster
//! than any streaming decoder, since it decodes the whole stream in one call. libdeflate reports little about a stream
//! that it refuses, so flate2 decodes such a stream again to find out what is wrong.

mod inflate;

use std::cell::RefCell;

use flate2::{Decompress, FlushDecompress, Status};
use libdeflater::Decompressor;
use thiserror::Error;

thread_local! {
    static LIBDEFLATE: RefCell<Decompressor> = RefCell::new(Decompressor::new());
    static FLATE2: RefCell<Decompress> = RefCell::new(Decompress::new(true));
}

/// Why a stream cannot be decoded.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub(crate) enum ZlibError {
    /// The input is not a zlib stream, or its checksum does not match.
    #[error("its zlib stream is damaged ({0})")]
    Damaged(String),
    /// The input ends before the stream does.
    #[error("its zlib stream is cut off")]
    CutOff,
    /// The stream holds fewer bytes than expected.
    #[error("its zlib stream holds {0} bytes, but {1} belong here")]
    TooFew(u64, usize),
    /// The stream holds more bytes than expected.
    #[error("its zlib stream holds more than the {0} bytes that belong here")]
    TooMany(usize),
}

/// Decodes the stream at the start of `stored`, which must fill `out` exactly. Bytes after the stream are ignored, as
/// by zlib's `uncompress`. On failure the content of `out` is unspecified.
pub(crate) fn decode(stored: &[u8], out: &mut [u8]) -> Result<(), ZlibError> {
    if inflate::decode(stored, out) {
        return Ok(());
    }
    match LIBDEFLATE.with_borrow_mut(|inflate| inflate.zlib_decompress(stored, out)) {
        Ok(length) if length == out.len() => Ok(()),
        _ => decode_streaming(stored, out),
    }
}

/// Decodes with flate2, which reports how a stream is damaged.
fn decode_streaming(stored: &[u8], out: &mut [u8]) -> Result<(), ZlibError> {
    FLATE2.with_borrow_mut(|inflate| {
        inflate.reset(true);
        let damaged = |e: flate2::DecompressError| ZlibError::Damaged(e.message().unwrap_or("no deflate data").into());
        let mut status = inflate.decompress(stored, out, FlushDecompress::Finish).map_err(damaged)?;
        if status != Status::StreamEnd && inflate.total_out() == out.len() as u64 {
            // the output is full; room for one more byte shows whether the stream ends here too
            let rest = stored.get(inflate.total_in() as usize..).unwrap_or_default();
            status = inflate.decompress(rest, &mut [0], FlushDecompress::Finish).map_err(damaged)?;
        }
        match (status, inflate.total_out()) {
            (_, n) if n > out.len() as u64 => Err(ZlibError::TooMany(out.len())),
            (Status::StreamEnd, n) if n == out.len() as u64 => Ok(()),
            (Status::StreamEnd, n) => Err(ZlibError::TooFew(n, out.len())),
            _ => Err(ZlibError::CutOff),
        }
    })
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use flate2::Compression;
    use flate2::write::ZlibEncoder;
    use proptest::prelude::*;

    use super::*;

    fn packed(data: &[u8], level: u32) -> Vec<u8> {
        let mut encoder = ZlibEncoder::new(Vec::new(), Compression::new(level));
        encoder.write_all(data).unwrap();
        encoder.finish().unwrap()
    }

    #[test]
    fn too_few_and_too_many_bytes_are_errors() {
        let stream = packed(&[7; 100], 6);
        assert_eq!(decode(&stream, &mut [0; 99]), Err(ZlibError::TooMany(99)));
        assert_eq!(decode(&stream, &mut [0; 101]), Err(ZlibError::TooFew(100, 101)));
        assert_eq!(decode(&stream[..stream.len() - 1], &mut [0; 100]), Err(ZlibError::CutOff));
        assert_eq!(decode(&[], &mut [0; 100]), Err(ZlibError::CutOff));
        assert!(matches!(decode(&[1; 50], &mut [0; 100]), Err(ZlibError::Damaged(_))));
        let mut changed = stream.clone();
        *changed.last_mut().unwrap() ^= 1;
        assert!(matches!(decode(&changed, &mut [0; 100]), Err(ZlibError::Damaged(_))));
        assert_eq!(decode(&[stream, vec![1, 2, 3]].concat(), &mut [0; 100]), Ok(()));
    }

    proptest! {
        #[test]
        fn decoding_restores_what_was_encoded(data in prop::collection::vec(0u8..5, 0..3000), level in 0u32..10) {
            let mut out = vec![9; data.len()];
            prop_assert_eq!(decode(&packed(&data, level), &mut out), Ok(()));
            prop_assert_eq!(&out, &data);
            prop_assert_eq!(decode_streaming(&packed(&data, level), &mut out), Ok(()));
            prop_assert_eq!(out, data);
        }

        #[test]
        fn arbitrary_bytes_never_panic(stored in prop::collection::vec(any::<u8>(), 0..100), size in 0usize..100) {
            let _ = decode(&[&[0x78, 0x9c], &stored[..]].concat(), &mut vec![0; size]);
        }
    }
}
