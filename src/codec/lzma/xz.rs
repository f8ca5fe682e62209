//! The container .xz: streams of blocks, and of each stream an index and a footer.
//!
//! Numbers of several bytes are little-endian. A *variable* number has seven bits in each byte, the lowest first; the
//! highest bit says that more follow.

use lzma_rust2::Lzma2Reader;

use super::super::deflate::crc32;
use super::super::sizes::{Fault, Written};
use super::{add_differences, damaged, dictionary, fill};

const MAGIC: &[u8; 6] = b"\xfd7zXZ\0";
const END_MAGIC: &[u8; 2] = b"YZ";
/// The filters that are decoded.
const LZMA2: u64 = 0x21;
const DELTA: u64 = 3;
/// Flags of a block: how many filters it has, minus 1, and whether it says its sizes.
const FILTER_COUNT: u8 = 3;
const HAS_STORED: u8 = 0x40;
const HAS_DECODED: u8 = 0x80;
const RESERVED: u8 = 0x3c;

/// Returns whether these bytes begin as a stream does.
pub(super) fn begins(stored: &[u8]) -> bool {
    stored.starts_with(MAGIC)
}

/// Decodes all streams, with the zeros that may follow each.
pub(super) fn streams(stored: &[u8], out: &mut [u8]) -> Written {
    let mut input = Input { bytes: stored, at: 0 };
    let mut filled = 0;
    loop {
        filled += input.stream(out.get_mut(filled..).ok_or(Fault::NoRoom)?)?;
        while input.rest().starts_with(&[0; 4]) {
            input.at += 4;
        }
        if input.rest().is_empty() {
            return Ok(filled);
        }
    }
}

struct Input<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Input<'a> {
    fn rest(&self) -> &'a [u8] {
        self.bytes.get(self.at..).unwrap_or_default()
    }

    fn take(&mut self, length: usize) -> Result<&'a [u8], Fault> {
        let taken = self.rest().get(..length).ok_or_else(|| damaged(&"they are cut off"))?;
        self.at += length;
        Ok(taken)
    }

    fn byte(&mut self) -> Result<u8, Fault> {
        Ok(self.take(1)?.first().copied().unwrap_or_default())
    }

    fn number(&mut self) -> Result<u32, Fault> {
        Ok(self.take(4)?.first_chunk().map_or(0, |bytes| u32::from_le_bytes(*bytes)))
    }

    fn variable(&mut self) -> Result<u64, Fault> {
        let mut number = 0;
        for shift in (0..63).step_by(7) {
            let byte = self.byte()?;
            number |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Ok(number);
            }
        }
        Err(damaged(&"a number is too long"))
    }

    /// Checks the CRC-32 that follows the bytes from `begin` on.
    fn check(&mut self, begin: usize) -> Result<(), Fault> {
        let sum = crc32(&[self.bytes.get(begin..self.at).unwrap_or_default()]);
        if self.number()? == sum { Ok(()) } else { Err(damaged(&"a checksum differs")) }
    }

    /// Skips zeros up to a multiple of 4 bytes from `begin` on.
    fn pad(&mut self, begin: usize) -> Result<(), Fault> {
        let padding = self.take((self.at - begin).next_multiple_of(4) - (self.at - begin))?;
        if padding.iter().all(|byte| *byte == 0) { Ok(()) } else { Err(damaged(&"the padding is not zero")) }
    }

    fn stream(&mut self, out: &mut [u8]) -> Written {
        if self.take(MAGIC.len())? != MAGIC {
            return Err(damaged(&"they are no .xz stream"));
        }
        let begin = self.at;
        let flags = self.take(2)?;
        self.check(begin)?;
        let sum = Checksum::read(flags).ok_or_else(|| damaged(&"a stream has unknown flags"))?;
        let (mut filled, mut blocks) = (0, 0);
        // an index begins with a zero, a block does not
        while self.rest().first().is_some_and(|first| *first != 0) {
            filled += self.block(out.get_mut(filled..).ok_or(Fault::NoRoom)?, &sum)?;
            blocks += 1;
        }
        self.index(blocks)?;
        let sum = self.number()?;
        let footer = self.take(4 + flags.len())?;
        if crc32(&[footer]) != sum || !footer.ends_with(flags) || self.take(END_MAGIC.len())? != END_MAGIC {
            return Err(damaged(&"the footer of a stream differs"));
        }
        Ok(filled)
    }

    fn block(&mut self, out: &mut [u8], sum: &Checksum) -> Written {
        let begin = self.at;
        let header = Header::read(self)?;
        let data = self.at;
        let mut reader = Lzma2Reader::new(self.rest(), dictionary(out.len()), None);
        let written = fill(&mut reader, out)?;
        self.at = self.bytes.len() - reader.into_inner().len();
        let differs = |stated: Option<u64>, found: usize| stated.is_some_and(|stated| stated != found as u64);
        if differs(header.stored, self.at - data) || differs(header.decoded, written) {
            return Err(damaged(&"a block has another length than it says"));
        }
        let decoded = out.get_mut(..written).unwrap_or_default();
        header.deltas.iter().rev().for_each(|distance| add_differences(decoded, *distance));
        self.pad(begin)?;
        let stored = self.take(sum.length)?;
        if sum.of.is_some_and(|of| !of(decoded).to_le_bytes().starts_with(stored)) {
            return Err(damaged(&"the checksum of a block differs"));
        }
        Ok(written)
    }

    /// Reads the sizes of blocks, which are known already.
    fn index(&mut self, blocks: u64) -> Result<(), Fault> {
        let begin = self.at;
        self.take(1)?;
        if self.variable()? != blocks {
            return Err(damaged(&"the index has another number of blocks"));
        }
        for _ in 0..blocks {
            self.variable()?;
            self.variable()?;
        }
        self.pad(begin)?;
        self.check(begin)
    }
}

/// What a block says before its data.
struct Header {
    stored: Option<u64>,
    decoded: Option<u64>,
    /// Distances of differences; the last ones are decoded first.
    deltas: Vec<usize>,
}

impl Header {
    fn read(input: &mut Input<'_>) -> Result<Self, Fault> {
        let begin = input.at;
        let end = begin + 4 * usize::from(input.byte()?);
        let flags = input.byte()?;
        if flags & RESERVED != 0 {
            return Err(damaged(&"a block has unknown flags"));
        }
        let stored = if flags & HAS_STORED != 0 { Some(input.variable()?) } else { None };
        let decoded = if flags & HAS_DECODED != 0 { Some(input.variable()?) } else { None };
        let mut deltas = Vec::new();
        let count = usize::from(flags & FILTER_COUNT) + 1;
        for number in 1..=count {
            let (filter, length) = (input.variable()?, input.variable()?);
            let properties = usize::try_from(length).map_err(|_| damaged(&"a filter is too long"))?;
            match (filter, input.take(properties)?) {
                // which dictionary it wants does not matter
                (LZMA2, [_]) if number == count => {}
                (DELTA, [distance]) if number < count => deltas.push(usize::from(*distance) + 1),
                _ => return Err(Fault::Invalid(format!("the filter {filter} of .xz is not supported"))),
            }
        }
        let padding = end.checked_sub(input.at).ok_or_else(|| damaged(&"the header of a block is too short"))?;
        input.take(padding)?;
        input.check(begin)?;
        Ok(Self { stored, decoded, deltas })
    }
}

/// The checksum of the blocks of a stream.
struct Checksum {
    /// Its bytes.
    length: usize,
    /// How it is calculated, if it is checked: SHA-256 is not.
    of: Option<fn(&[u8]) -> u64>,
}

impl Checksum {
    /// Reads the flags of a stream.
    fn read(flags: &[u8]) -> Option<Self> {
        const CRC32: u8 = 1;
        const CRC64: u8 = 4;
        let [0, kind @ 0..16] = *flags else { return None };
        let of: Option<fn(&[u8]) -> u64> = match kind {
            CRC32 => Some(|bytes| crc32(&[bytes]).into()),
            CRC64 => Some(crc64),
            _ => None,
        };
        // the description gives lengths to kinds that it leaves for later, too
        let length = [0, 4, 4, 4, 8, 8, 8, 16, 16, 16, 32, 32, 32, 64, 64, 64].get(usize::from(kind))?;
        Some(Self { length: *length, of })
    }
}

/// For each byte its CRC-64.
static CRC64: [u64; 256] = {
    /// The polynomial of ECMA-182, its highest coefficient in the lowest bit.
    const POLYNOMIAL: u64 = 0xc96c_5795_d787_0f42;
    let mut table = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        let mut crc = byte as u64;
        let mut bit = 0;
        while bit < 8 {
            crc = if crc & 1 == 1 { crc >> 1 ^ POLYNOMIAL } else { crc >> 1 };
            bit += 1;
        }
        table[byte] = crc;
        byte += 1;
    }
    table
};

fn crc64(bytes: &[u8]) -> u64 {
    !bytes.iter().fold(u64::MAX, |crc, byte| crc >> 8 ^ CRC64[usize::from(crc as u8 ^ byte)])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_checksum_is_that_of_the_description() {
        assert_eq!(crc64(b"123456789"), 0x995d_c9bb_df19_39fa);
    }

    #[test]
    fn filters_of_a_block_end_with_lzma2_alone() {
        let read = |filters: &[[u8; 3]]| {
            let (flags, mut bytes) = (filters.len() as u8 - 1, filters.concat());
            bytes.resize(bytes.len().next_multiple_of(4) + 2, 0);
            let header = [&[(bytes.len() as u8 + 2) / 4, flags][..], &bytes].concat();
            let bytes = [&header[..], &crc32(&[&header]).to_le_bytes()].concat();
            Header::read(&mut Input { bytes: &bytes, at: 0 }).map(|header| header.deltas)
        };
        let ([id, delta], properties) = ([LZMA2 as u8, DELTA as u8], 1);
        let lzma2 = [id, properties, 0];
        assert!(read(&[lzma2]).unwrap().is_empty());
        assert_eq!(read(&[[delta, properties, 3], [delta, properties, 0], lzma2]).unwrap(), [4, 1]);
        for wrong in [&[lzma2, lzma2][..], &[[delta, properties, 3]], &[[4, properties, 0], lzma2]] {
            assert!(matches!(read(wrong), Err(Fault::Invalid(why)) if why.contains("not supported")), "{wrong:?}");
        }
    }

    #[test]
    fn streams_without_blocks_are_empty() {
        let flags = [0, 1];
        let index = [0; 4];
        let backward = [&0u32.to_le_bytes()[..], &flags].concat();
        let parts: [&[u8]; 7] = [
            MAGIC,
            &flags,
            &crc32(&[&flags]).to_le_bytes(),
            &index,
            &crc32(&[&index]).to_le_bytes(),
            &crc32(&[&backward]).to_le_bytes(),
            &backward,
        ];
        let stream = [&parts.concat()[..], END_MAGIC].concat();
        assert_eq!(streams(&stream, &mut [0; 3]), Ok(0));
        assert_eq!(streams(&[&stream[..], &[0; 8], &stream].concat(), &mut []), Ok(0));
        for wrong in [&[&stream[..], &[0; 3]].concat()[..], &stream[..stream.len() - 1], &stream[1..], b""] {
            assert!(streams(wrong, &mut []).is_err());
        }
    }
}
