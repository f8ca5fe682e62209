//! Filters that move bytes and bits: shuffle, packbits, base64; and bitround, which leaves nothing to decode.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

use super::shuffle::unshuffle;
use super::sizes::{exactly, stated};
use super::{Codec, Configuration};

pub(super) fn new_shuffle(configuration: &Configuration) -> Result<Box<dyn Codec>, String> {
    /// What numcodecs takes for samples if nothing else is said.
    const DEFAULT: u64 = 4;
    let size = configuration.get("elementsize").map_or(Some(DEFAULT), Value::as_u64);
    let size = size.and_then(|size| usize::try_from(size).ok());
    Ok(Box::new(Shuffle(size.ok_or("the elementsize of the filter shuffle is no number of bytes")?)))
}

pub(super) fn new_packbits(configuration: &Configuration) -> Result<Box<dyn Codec>, String> {
    // Zarr v3 has another codec of this name, whose bits are in another order
    match configuration.keys().next() {
        Some(key) => Err(format!("the filter packbits with {key:?} is not supported")),
        None => Ok(Box::new(PackBits)),
    }
}

pub(super) fn new_base64(_: &Configuration) -> Result<Box<dyn Codec>, String> {
    Ok(Box::new(Base64))
}

pub(super) fn new_bitround(_: &Configuration) -> Result<Box<dyn Codec>, String> {
    Ok(Box::new(BitRound))
}

/// Planes of the bytes of samples of this size.
struct Shuffle(usize);

impl Codec for Shuffle {
    fn name(&self) -> &'static str {
        "shuffle"
    }

    fn decoded_len(&self, stored: u64) -> Option<u64> {
        Some(stored)
    }

    fn longest(&self, decoded: u64) -> u64 {
        decoded
    }

    fn decode(&self, stored: &[u8], out: &mut [u8]) -> Result<(), String> {
        exactly(self.name(), out.len(), Ok(stored.len()))?;
        unshuffle(stored, out, self.0);
        Ok(())
    }

    fn decode_unsized(&self, stored: &[u8], most: usize) -> Result<Vec<u8>, String> {
        let mut out = stated(self.name(), stored.len(), most)?;
        unshuffle(stored, &mut out, self.0);
        Ok(out)
    }
}

/// A bit for each bool, the first one highest, after a byte that says how many bits follow the last one.
struct PackBits;

impl PackBits {
    /// Returns the number of bits, and the bytes that they are in.
    fn bits<'a>(&self, stored: &'a [u8]) -> Result<(usize, &'a [u8]), String> {
        let bits = stored.split_first().and_then(|(padding, bytes)| {
            let count = bytes.len().checked_mul(8)?.checked_sub(usize::from(*padding))?;
            (*padding < 8).then_some((count, bytes))
        });
        bits.ok_or_else(|| "its packbits data are damaged".into())
    }

    fn unpack(bytes: &[u8], out: &mut [u8]) {
        for (bits, byte) in out.chunks_mut(8).zip(bytes) {
            for (n, bit) in bits.iter_mut().enumerate() {
                *bit = byte >> (7 - n) & 1;
            }
        }
    }
}

impl Codec for PackBits {
    fn name(&self) -> &'static str {
        "packbits"
    }

    fn longest(&self, decoded: u64) -> u64 {
        decoded / 8 + 2
    }

    fn decode(&self, stored: &[u8], out: &mut [u8]) -> Result<(), String> {
        let (count, bytes) = self.bits(stored)?;
        exactly(self.name(), out.len(), Ok(count))?;
        Self::unpack(bytes, out);
        Ok(())
    }

    fn decode_unsized(&self, stored: &[u8], most: usize) -> Result<Vec<u8>, String> {
        let (count, bytes) = self.bits(stored)?;
        let mut out = stated(self.name(), count, most)?;
        Self::unpack(bytes, &mut out);
        Ok(out)
    }
}

struct Base64;

impl Codec for Base64 {
    fn name(&self) -> &'static str {
        "base64"
    }

    fn longest(&self, decoded: u64) -> u64 {
        decoded.div_ceil(3).saturating_mul(4)
    }

    fn decode(&self, stored: &[u8], out: &mut [u8]) -> Result<(), String> {
        let decoded = self.decode_unsized(stored, out.len())?;
        exactly(self.name(), out.len(), Ok(decoded.len()))?;
        out.copy_from_slice(&decoded);
        Ok(())
    }

    fn decode_unsized(&self, stored: &[u8], most: usize) -> Result<Vec<u8>, String> {
        let invalid = |error: &dyn std::fmt::Display| format!("its base64 data are damaged: {error}");
        // up to two bytes fewer than this
        let length = stored.len().div_ceil(4) * 3;
        let mut out = stated(self.name(), length, most.saturating_add(2))?;
        let decoded = STANDARD.decode_slice(stored, &mut out).map_err(|error| invalid(&error))?;
        out.truncate(decoded);
        if out.len() > most {
            return Err(format!("its base64 data decode to {decoded} bytes, more than the {most} that there can be"));
        }
        Ok(out)
    }

    fn scratch(&self, decoded: usize) -> usize {
        decoded
    }
}

/// Numbers whose last bits are zero: they are stored as they are.
struct BitRound;

impl Codec for BitRound {
    fn name(&self) -> &'static str {
        "bitround"
    }

    fn decoded_len(&self, stored: u64) -> Option<u64> {
        Some(stored)
    }

    fn longest(&self, decoded: u64) -> u64 {
        decoded
    }

    fn is_elementwise(&self) -> bool {
        true
    }

    fn decode(&self, stored: &[u8], out: &mut [u8]) -> Result<(), String> {
        exactly(self.name(), out.len(), Ok(stored.len()))?;
        out.copy_from_slice(stored);
        Ok(())
    }

    fn decode_unsized(&self, stored: &[u8], most: usize) -> Result<Vec<u8>, String> {
        let mut out = stated(self.name(), stored.len(), most)?;
        out.copy_from_slice(stored);
        Ok(out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_are_as_many_as_the_padding_leaves() {
        for (stored, bits) in
            [(&[0][..], &[][..]), (&[5, 0xa0], &[1, 0, 1]), (&[7, 0, 0x80], &[0, 0, 0, 0, 0, 0, 0, 0, 1])]
        {
            assert_eq!(PackBits.decode_unsized(stored, 9), Ok(bits.to_vec()));
        }
        for wrong in [&[][..], &[1], &[8, 0], &[255, 0, 0]] {
            assert!(PackBits.decode_unsized(wrong, 100).is_err(), "{wrong:?}");
        }
        assert!(PackBits.decode_unsized(&[0, 0], 7).is_err());
    }

    #[test]
    fn text_of_base64_is_decoded_up_to_the_bound() {
        assert_eq!(Base64.decode_unsized(b"YWJjZA==", 4), Ok(b"abcd".to_vec()));
        for (text, most) in [("YWJjZA==", 3), ("YWJj!A==", 100), ("YWJjZA", 100)] {
            assert!(Base64.decode_unsized(text.as_bytes(), most).is_err(), "{text}");
        }
    }
}
