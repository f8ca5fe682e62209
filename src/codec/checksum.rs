//! Checksums of stored bytes, before or after them.

use super::sizes::{exactly, stated};
use super::{Codec, Configuration};

/// Bytes of a checksum.
const LENGTH: usize = 4;

pub(super) fn new_crc32c(configuration: &Configuration) -> Result<Box<dyn Codec>, String> {
    Checksum::new("crc32c", crc32c, Place::End, configuration)
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
    fn new(
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
        if (self.sum)(bytes).to_le_bytes() != *expected {
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
fn crc32c(bytes: &[u8]) -> u32 {
    let (steps, rest) = bytes.as_chunks::<STEP>();
    let mut crc = u32::MAX;
    for step in steps {
        let mut step = u128::from_le_bytes(*step) ^ u128::from(crc);
        crc = 0;
        for table in CRC32C.iter().rev() {
            crc ^= table[(step & 0xff) as usize];
            step >>= 8;
        }
    }
    !rest.iter().fold(crc, |crc, byte| crc >> 8 ^ CRC32C[0][usize::from(crc as u8 ^ byte)])
}
