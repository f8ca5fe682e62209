//! Deflate and checksums of libraries: libdeflate, and where a C compiler for the target cannot be expected zlib-rs.
//! Tests compare the two. libdeflate does not say where a stream ends: where that matters zlib-rs is used.

#[cfg(target_os = "linux")]
pub(crate) use libdeflate::{adler32, crc32, gzip_member, raw, zlib, zlib_beginning};
pub(super) use rust::raw_with_end;
#[cfg(not(target_os = "linux"))]
pub(crate) use rust::{adler32, crc32, raw, zlib, zlib_beginning};

use super::sizes::Fault;

fn invalid(name: &str) -> Fault {
    Fault::Invalid(format!("its {name} data are damaged or cut off"))
}

fn damaged() -> String {
    "its zlib stream is damaged or cut off".into()
}

fn too_long(expected: usize) -> String {
    format!("its zlib stream is cut off, or holds more than the expected {expected} bytes")
}

fn other_length(length: usize, expected: usize) -> String {
    format!("its zlib stream holds {length} bytes, expected {expected}")
}

#[cfg(target_os = "linux")]
mod libdeflate {
    use std::cell::RefCell;

    pub(crate) use libdeflater::adler32;
    use libdeflater::{Crc, DecompressionError, Decompressor};

    use super::super::sizes::{Fault, Written};
    use super::{damaged, invalid, other_length, too_long};

    thread_local! {
        static DECOMPRESSOR: RefCell<Decompressor> = RefCell::new(Decompressor::new());
    }

    /// Decodes the zlib stream at the start of `stored`, which must fill `out` exactly.
    pub(crate) fn zlib(stored: &[u8], out: &mut [u8]) -> Result<(), String> {
        match DECOMPRESSOR.with_borrow_mut(|inflate| inflate.zlib_decompress(stored, out)) {
            Ok(length) if length == out.len() => Ok(()),
            Ok(length) => Err(other_length(length, out.len())),
            // libdeflate goes on with zeros after the end of the input
            Err(DecompressionError::InsufficientSpace) => Err(too_long(out.len())),
            Err(DecompressionError::BadData) => Err(damaged()),
        }
    }

    /// Decodes the zlib stream at the start of `stored` to the start of `out`.
    pub(crate) fn zlib_beginning(stored: &[u8], out: &mut [u8]) -> Written {
        written("zlib", DECOMPRESSOR.with_borrow_mut(|inflate| inflate.zlib_decompress(stored, out)))
    }

    /// Decodes the member of gzip at the start of `stored` to the start of `out`.
    pub(crate) fn gzip_member(stored: &[u8], out: &mut [u8]) -> Written {
        written("gzip", DECOMPRESSOR.with_borrow_mut(|inflate| inflate.gzip_decompress(stored, out)))
    }

    /// Decodes the deflate data at the start of `stored` to the start of `out`.
    pub(crate) fn raw(stored: &[u8], out: &mut [u8]) -> Written {
        written("deflate", DECOMPRESSOR.with_borrow_mut(|inflate| inflate.deflate_decompress(stored, out)))
    }

    fn written(name: &str, result: Result<usize, DecompressionError>) -> Written {
        match result {
            Ok(length) => Ok(length),
            Err(DecompressionError::InsufficientSpace) => Err(Fault::NoRoom),
            Err(DecompressionError::BadData) => Err(invalid(name)),
        }
    }

    /// Returns the CRC-32 of parts that follow one another.
    pub(crate) fn crc32(parts: &[&[u8]]) -> u32 {
        let mut crc = Crc::new();
        parts.iter().for_each(|part| crc.update(part));
        crc.sum()
    }
}

// of which Linux uses a part
#[cfg_attr(all(target_os = "linux", not(test)), allow(dead_code))]
mod rust {
    use flate2::{Crc, Decompress, FlushDecompress, Status};

    use super::super::sizes::Fault;
    #[cfg(not(target_os = "linux"))]
    use super::super::sizes::Written;
    use super::{damaged, invalid, other_length, too_long};

    const MODULUS: u32 = 65521;
    /// The most bytes after which the sums still fit into 32 bits.
    const MOST: usize = 5552;

    /// Decodes the zlib stream at the start of `stored`, which must fill `out` exactly.
    pub(crate) fn zlib(stored: &[u8], out: &mut [u8]) -> Result<(), String> {
        let mut inflate = Decompress::new(true);
        match inflate.decompress(stored, out, FlushDecompress::Finish) {
            Ok(Status::StreamEnd) if inflate.total_out() == out.len() as u64 => Ok(()),
            Ok(Status::StreamEnd) => Err(other_length(inflate.total_out() as usize, out.len())),
            Ok(_) => Err(too_long(out.len())),
            Err(_) => Err(damaged()),
        }
    }

    #[cfg(not(target_os = "linux"))]
    /// Decodes the zlib stream at the start of `stored` to the start of `out`.
    pub(crate) fn zlib_beginning(stored: &[u8], out: &mut [u8]) -> Written {
        Ok(inflate("zlib", Decompress::new(true), stored, out)?.1)
    }

    #[cfg(not(target_os = "linux"))]
    /// Decodes the deflate data at the start of `stored` to the start of `out`.
    pub(crate) fn raw(stored: &[u8], out: &mut [u8]) -> Written {
        Ok(raw_with_end(stored, out)?.1)
    }

    /// Like [`raw`]. Returns how many bytes the deflate data take, and how many were written.
    pub(crate) fn raw_with_end(stored: &[u8], out: &mut [u8]) -> Result<(usize, usize), Fault> {
        inflate("deflate", Decompress::new(false), stored, out)
    }

    fn inflate(name: &str, mut inflate: Decompress, stored: &[u8], out: &mut [u8]) -> Result<(usize, usize), Fault> {
        let status = inflate.decompress(stored, out, FlushDecompress::Finish);
        let [read, written] = [inflate.total_in(), inflate.total_out()].map(|bytes| bytes as usize);
        match status {
            Ok(Status::StreamEnd) => Ok((read, written)),
            // neither input nor room is left, or one of them
            Ok(_) if written == out.len() && read < stored.len() => Err(Fault::NoRoom),
            _ => Err(invalid(name)),
        }
    }

    /// Returns the CRC-32 of parts that follow one another.
    pub(crate) fn crc32(parts: &[&[u8]]) -> u32 {
        let mut crc = Crc::new();
        parts.iter().for_each(|part| crc.update(part));
        crc.sum()
    }

    pub(crate) fn adler32(bytes: &[u8]) -> u32 {
        let (mut low, mut high) = (1, 0);
        for part in bytes.chunks(MOST) {
            for byte in part {
                low += u32::from(*byte);
                high += low;
            }
            (low, high) = (low % MODULUS, high % MODULUS);
        }
        high << 16 | low
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use flate2::Compression;
    use flate2::write::ZlibEncoder;
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn both_libraries_are_the_same(
            bytes in prop::collection::vec(any::<u8>(), 0..20_000), repeats in 1..4_usize, cut in 0..64_usize, flip in any::<prop::sample::Index>(),
        ) {
            let bytes = bytes.repeat(repeats);
            prop_assert_eq!(rust::adler32(&bytes), libdeflate::adler32(&bytes));
            let parts = bytes.split_at(bytes.len() / 3);
            prop_assert_eq!(rust::crc32(&[parts.0, parts.1]), libdeflate::crc32(&[&bytes]));
            let mut encoder = ZlibEncoder::new(Vec::new(), Compression::fast());
            encoder.write_all(&bytes).unwrap();
            let mut stored = encoder.finish().unwrap();
            let decoded = |decode: fn(&[u8], &mut [u8]) -> Result<(), String>, stored: &[u8], length: usize| {
                let mut out = vec![0; length];
                decode(stored, &mut out).ok().map(|()| out)
            };
            for length in [bytes.len(), bytes.len() + 1, bytes.len().saturating_sub(1)] {
                let expected = (length == bytes.len()).then(|| bytes.clone());
                prop_assert_eq!(decoded(rust::zlib, &stored, length), expected.clone());
                prop_assert_eq!(decoded(libdeflate::zlib, &stored, length), expected);
            }
            let end = stored.len() - cut.min(stored.len());
            prop_assert_eq!(decoded(rust::zlib, &stored[..end], bytes.len()), (cut == 0).then(|| bytes.clone()));
            let at = flip.index(stored.len());
            stored[at] ^= 4;
            // one of them may refuse what is wrong where no code uses it; the checksum tells the rest
            let both = [rust::zlib, libdeflate::zlib].map(|decode| decoded(decode, &stored, bytes.len()));
            prop_assert!(both.iter().flatten().all(|decoded| *decoded == bytes));
            stored[at] ^= 4;
            stored.extend(b"more");
            prop_assert_eq!(decoded(rust::zlib, &stored, bytes.len()), Some(bytes));
        }
    }
}
