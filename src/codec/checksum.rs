//! Checksums of stored bytes, before or after them.

use super::sizes::{exactly, stated};
use super::{Codec, Configuration, deflate};

/// The checksum that old writers of HDF5 have in another order.
const FLETCHER32: &str = "fletcher32";
/// Bytes of a checksum.
const LENGTH: usize = 4;

pub(super) fn new_adler32(configuration: &Configuration) -> Result<Box<dyn Codec>, String> {
    Checksum::boxed("adler32", deflate::adler32, Place::Start, configuration)
}

pub(super) fn new_crc32(configuration: &Configuration) -> Result<Box<dyn Codec>, String> {
    Checksum::boxed("crc32", |bytes| deflate::crc32(&[bytes]), Place::Start, configuration)
}

pub(super) fn new_fletcher32(configuration: &Configuration) -> Result<Box<dyn Codec>, String> {
    Checksum::boxed(FLETCHER32, fletcher32, Place::End, configuration)
}

pub(super) fn new_crc32c(configuration: &Configuration) -> Result<Box<dyn Codec>, String> {
    Checksum::boxed("crc32c", crc32c, Place::End, configuration)
}

/// A sum of bytes, stored little-endian.
struct Checksum {
    name: &'static str,
    sum: fn(&[u8]) -> u32,
    place: Place,
}

#[derive(Clone, Copy)]
enum Place {
    Start,
    End,
}

impl Checksum {
    fn boxed(
        name: &'static str,
        sum: fn(&[u8]) -> u32,
        default: Place,
        configuration: &Configuration,
    ) -> Result<Box<dyn Codec>, String> {
        let place = match configuration.get("location").map(|place| place.as_str()) {
            None => default,
            Some(Some("start")) => Place::Start,
            Some(Some("end")) => Place::End,
            Some(_) => return Err(format!("the location of the checksum {name} is neither \"start\" nor \"end\"")),
        };
        Ok(Box::new(Self { name, sum, place }))
    }

    /// Returns the bytes without their checksum, which is checked.
    fn checked<'a>(&self, stored: &'a [u8]) -> Result<&'a [u8], String> {
        let parts = match self.place {
            Place::Start => stored.split_first_chunk().map(|(sum, bytes)| (bytes, sum)),
            Place::End => stored.split_last_chunk(),
        };
        let (bytes, expected): (_, &[u8; LENGTH]) =
            parts.ok_or_else(|| format!("{} bytes are too few for the checksum {}", stored.len(), self.name))?;
        let sum = (self.sum)(bytes).to_le_bytes();
        let [a, b, c, d] = sum;
        if sum != *expected && !(self.name == FLETCHER32 && [b, a, d, c] == *expected) {
            return Err(format!("the checksum {} differs: the bytes are damaged", self.name));
        }
        Ok(bytes)
    }
}

impl Codec for Checksum {
    fn name(&self) -> &'static str {
        self.name
    }

    fn decoded_len(&self, stored: u64) -> Option<u64> {
        stored.checked_sub(LENGTH as u64)
    }

    fn longest(&self, decoded: u64) -> u64 {
        decoded.saturating_add(LENGTH as u64)
    }

    fn decode(&self, stored: &[u8], out: &mut [u8]) -> Result<(), String> {
        let bytes = self.checked(stored)?;
        exactly(self.name, out.len(), Ok(bytes.len()))?;
        out.copy_from_slice(bytes);
        Ok(())
    }

    fn decode_unsized(&self, stored: &[u8], most: usize) -> Result<Vec<u8>, String> {
        let bytes = self.checked(stored)?;
        let mut out = stated(self.name, bytes.len(), most)?;
        out.copy_from_slice(bytes);
        Ok(out)
    }
}

/// Bytes that are added to a CRC at a time.
const STEP: usize = 16;

/// For each byte: its CRC-32C with so many zeros after it as its table has before it.
static CRC32C: [[u32; 256]; STEP] = {
    /// The polynomial of Castagnoli, its highest coefficient in the lowest bit.
    const POLYNOMIAL: u32 = 0x82f6_3b78;
    let mut tables = [[0; 256]; STEP];
    let mut n = 0;
    while n < 256 * STEP {
        let byte = n % 256;
        // a byte alone, or the CRC of one zero less, and then 8 more bits
        let mut crc = if n < 256 { byte as u32 } else { tables[n / 256 - 1][byte] };
        let mut bit = 0;
        while bit < 8 {
            crc = if crc & 1 == 1 { crc >> 1 ^ POLYNOMIAL } else { crc >> 1 };
            bit += 1;
        }
        tables[n / 256][byte] = crc;
        n += 1;
    }
    tables
};

/// Returns the CRC-32C (RFC 3720).
pub(crate) fn crc32c(bytes: &[u8]) -> u32 {
    let (steps, rest) = bytes.as_chunks::<STEP>();
    let mut crc = u32::MAX;
    for step in steps {
        // of the bytes so far the CRC is all that matters: it is added to the first bytes
        let before = crc.to_le_bytes();
        crc = 0;
        for (n, (byte, table)) in step.iter().zip(CRC32C.iter().rev()).enumerate() {
            crc ^= table[usize::from(byte ^ before.get(n).unwrap_or(&0))];
        }
    }
    !rest.iter().fold(crc, |crc, byte| crc >> 8 ^ CRC32C[0][usize::from(crc as u8 ^ byte)])
}

/// Words of 16 bits that can be added before the sums have to be reduced.
const WORDS: usize = 360;

/// Returns Fletcher's checksum of big-endian words, as HDF5 calculates it.
fn fletcher32(bytes: &[u8]) -> u32 {
    // two halves, of which one or the other may stand for zero
    let reduce = |sum: u32| (sum & 0xffff) + (sum >> 16);
    let (words, rest) = bytes.as_chunks();
    let (mut low, mut high) = (0u32, 0u32);
    for part in words.chunks(WORDS) {
        for word in part {
            low += u32::from(u16::from_be_bytes(*word));
            high += low;
        }
        (low, high) = (reduce(low), reduce(high));
    }
    if let [last] = rest {
        low += u32::from(*last) << 8;
        high += low;
        (low, high) = (reduce(low), reduce(high));
    }
    reduce(high) << 16 | reduce(low)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fletchers_checksum_may_have_the_bytes_of_its_halves_in_either_order() {
        let codec = new_fletcher32(&Configuration::new()).unwrap();
        let bytes = b"abcde";
        // (a b) + (c d) + (e 0)
        let low: u32 = 0x6162 + 0x6364 + 0x6500 - 0xffff;
        let high: u32 = 3 * 0x6162 + 2 * 0x6364 + 0x6500 - 2 * 0xffff;
        assert_eq!(fletcher32(bytes), high << 16 | low);
        let [a, b, c, d] = (high << 16 | low).to_le_bytes();
        for sum in [[a, b, c, d], [b, a, d, c]] {
            assert_eq!(codec.decode_unsized(&[&bytes[..], &sum].concat(), 5), Ok(bytes.to_vec()));
        }
        let error = codec.decode_unsized(&[&bytes[..], &[c, d, a, b]].concat(), 5).unwrap_err();
        assert_eq!(error, "the checksum fletcher32 differs: the bytes are damaged");
    }

    #[test]
    fn a_checksum_is_before_or_after_the_bytes() {
        let sum = 0xe306_9283_u32.to_le_bytes(); // of RFC 3720's time: "123456789"
        let bytes = b"123456789";
        let with = |place: &str| {
            new_crc32c(serde_json::json!({ "location": place }).as_object().unwrap()).map_err(|error| error.to_string())
        };
        let after = [&bytes[..], &sum].concat();
        let before = [&sum[..], bytes].concat();
        assert_eq!(with("end").unwrap().decode_unsized(&after, 9), Ok(bytes.to_vec()));
        assert_eq!(with("start").unwrap().decode_unsized(&before, 9), Ok(bytes.to_vec()));
        assert_eq!(new_crc32c(&Configuration::new()).unwrap().decode(&after, &mut [0; 9]), Ok(()));
        assert!(with("middle").is_err());
        assert!(with("end").unwrap().decode(&before, &mut [0; 9]).is_err());
        let error = with("end").unwrap().decode(&sum[..3], &mut []).unwrap_err();
        assert_eq!(error, "3 bytes are too few for the checksum crc32c");
    }
}
