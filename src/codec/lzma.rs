//! LZMA in the three formats that Python's lzma has: .xz (N5 too), .lzma, and filters without a container.
//!
//! A dictionary need not be longer than what is decoded. Only .xz says of itself what it wants: at most 64 MiB are given.

use std::io::{self, ErrorKind, Read};

use lzma_rust2::filter::delta::DeltaReader;
use lzma_rust2::{Lzma2Reader, LzmaReader, XzReader};
use serde_json::Value;

use super::sizes::{Fault, Written, exactly, growing};
use super::{Codec, Configuration};

/// The longest dictionary, and what decoders take besides.
const DICTIONARY: usize = 64 << 20;
const BESIDES: usize = 1 << 20;
/// The shortest dictionary.
const SHORTEST: usize = 4 << 10;

pub(super) fn new(configuration: &Configuration) -> Result<Box<dyn Codec>, String> {
    let format = match configuration.get("format") {
        None | Some(Value::Null) => Format::Xz,
        Some(format) => match format.as_u64() {
            Some(0) => Format::Any,
            Some(1) => Format::Xz,
            Some(2) => Format::Alone,
            Some(3) => Format::Raw(Raw::read(configuration.get("filters"))?),
            _ => return Err(format!("LZMA of format {format} is not supported")),
        },
    };
    Ok(Box::new(Lzma(format)))
}

struct Lzma(Format);

/// The formats in the order of Python's numbers.
enum Format {
    Any,
    Xz,
    Alone,
    Raw(Raw),
}

/// Filters without a container: the compressor after differences of bytes.
struct Raw {
    compressor: Compressor,
    /// Each is the number of bytes between a byte and the one that it is a difference from. The last one is decoded
    /// first.
    deltas: Vec<usize>,
}

enum Compressor {
    Lzma { lc: u32, lp: u32, pb: u32 },
    Lzma2,
}

impl Raw {
    /// The numbers of filters (`lzma.FILTER_LZMA1` and so on).
    const LZMA: u64 = 0x4000_0000_0000_0001;
    const LZMA2: u64 = 0x21;
    const DELTA: u64 = 3;
    /// The most filters that there can be.
    const MOST: usize = 4;

    fn read(filters: Option<&Value>) -> Result<Self, String> {
        let filters = filters.and_then(Value::as_array).filter(|filters| filters.len() <= Self::MOST);
        let (last, before) = filters.and_then(|filters| filters.split_last()).ok_or("LZMA has no list of filters")?;
        let number =
            |filter: &Value, key: &str, default: u64| filter.get(key).and_then(Value::as_u64).unwrap_or(default);
        let compressor = match number(last, "id", 0) {
            Self::LZMA2 => Compressor::Lzma2,
            Self::LZMA => {
                let [lc, lp, pb] = [("lc", 3), ("lp", 0), ("pb", 2)].map(|(key, default)| number(last, key, default));
                if lc > 8 || lp > 4 || pb > 4 {
                    return Err("the parameters of LZMA are out of range".into());
                }
                Compressor::Lzma { lc: lc as u32, lp: lp as u32, pb: pb as u32 }
            }
            other => return Err(format!("the LZMA filter {other} at the end is not supported")),
        };
        let delta = |filter: &Value| match (number(filter, "id", 0), number(filter, "dist", 1)) {
            (Self::DELTA, distance @ 1..=256) => Ok(distance as usize),
            (other, _) => Err(format!("the LZMA filter {other} is not supported")),
        };
        Ok(Self { compressor, deltas: before.iter().map(delta).collect::<Result<_, _>>()? })
    }
}

impl Codec for Lzma {
    fn name(&self) -> &'static str {
        "lzma"
    }

    fn longest(&self, decoded: u64) -> u64 {
        decoded.saturating_add(decoded / 8).saturating_add(4 << 10)
    }

    fn decode(&self, stored: &[u8], out: &mut [u8]) -> Result<(), String> {
        exactly(self.name(), out.len(), self.written(stored, out))
    }

    fn decode_unsized(&self, stored: &[u8], most: usize) -> Result<Vec<u8>, String> {
        growing(self.name(), stored.len(), 0, most, |out| self.written(stored, out))
    }

    fn scratch(&self, decoded: usize) -> usize {
        // of a longer dictionary the pages are not touched
        decoded.min(DICTIONARY).saturating_add(BESIDES)
    }
}

impl Lzma {
    fn written(&self, stored: &[u8], out: &mut [u8]) -> Written {
        let result = match &self.0 {
            Format::Xz => xz(stored, out),
            Format::Any if stored.starts_with(b"\xfd7zXZ\0") => xz(stored, out),
            Format::Any | Format::Alone => alone(stored, out),
            Format::Raw(raw) => raw.fill(stored, out),
        };
        match result {
            Ok(Some(written)) => Ok(written),
            Ok(None) => Err(Fault::NoRoom),
            Err(error) if error.kind() == ErrorKind::OutOfMemory => {
                Err(Fault::Invalid("its LZMA data need a dictionary of more than 64 MiB".into()))
            }
            Err(error) => Err(Fault::Invalid(format!("its LZMA data are damaged: {error}"))),
        }
    }
}

/// Returns a length of the dictionary with which that many bytes can be decoded.
fn dictionary(bytes: usize) -> u32 {
    bytes.clamp(SHORTEST, DICTIONARY) as u32
}

fn xz(stored: &[u8], out: &mut [u8]) -> io::Result<Option<usize>> {
    let limit = (DICTIONARY + BESIDES) >> 10;
    fill(XzReader::new_mem_limit(stored, true, limit as u32), out)
}

fn alone(stored: &[u8], out: &mut [u8]) -> io::Result<Option<usize>> {
    let cut_off = || io::Error::from(ErrorKind::UnexpectedEof);
    let ([properties], rest) = stored.split_first_chunk().ok_or_else(cut_off)?;
    let (wanted, rest) = rest.split_first_chunk().ok_or_else(cut_off)?;
    let (length, rest) = rest.split_first_chunk().ok_or_else(cut_off)?;
    let dictionary = u32::from_le_bytes(*wanted).min(dictionary(out.len()));
    fill(LzmaReader::new_with_props(rest, u64::from_le_bytes(*length), *properties, dictionary, None)?, out)
}

impl Raw {
    fn fill(&self, stored: &[u8], out: &mut [u8]) -> io::Result<Option<usize>> {
        let dictionary = dictionary(out.len());
        let mut reader: Box<dyn Read + '_> = match self.compressor {
            Compressor::Lzma2 => Box::new(Lzma2Reader::new(stored, dictionary, None)),
            // the end is marked
            Compressor::Lzma { lc, lp, pb } => {
                Box::new(LzmaReader::new(stored, u64::MAX, lc, lp, pb, dictionary, None)?)
            }
        };
        for distance in self.deltas.iter().rev() {
            reader = Box::new(DeltaReader::new(reader, *distance));
        }
        fill(reader, out)
    }
}

/// Reads all bytes, and returns how many there are. `None` if there are more than `out` has room for.
fn fill(mut reader: impl Read, out: &mut [u8]) -> io::Result<Option<usize>> {
    let mut filled = 0;
    while let Some(rest) = out.get_mut(filled..).filter(|rest| !rest.is_empty()) {
        match reader.read(rest)? {
            0 => return Ok(Some(filled)),
            more => filled += more,
        }
    }
    // the end is checked only if it is read
    Ok(if reader.read(&mut [0])? == 0 { Some(filled) } else { None })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn configured(configuration: &Value) -> Result<Box<dyn Codec>, String> {
        new(configuration.as_object().unwrap())
    }

    #[test]
    fn what_is_not_supported_is_named() {
        let error = |configuration: Value| configured(&configuration).err().unwrap();
        assert_eq!(error(json!({"format": 4})), "LZMA of format 4 is not supported");
        assert_eq!(error(json!({"format": 3})), "LZMA has no list of filters");
        assert_eq!(error(json!({"format": 3, "filters": []})), "LZMA has no list of filters");
        let x86 = json!({"format": 3, "filters": [{"id": 4}, {"id": 33}]});
        assert_eq!(error(x86), "the LZMA filter 4 is not supported");
        assert_eq!(
            error(json!({"format": 3, "filters": [{"id": 3}]})),
            "the LZMA filter 3 at the end is not supported"
        );
    }

    #[test]
    fn a_long_dictionary_that_a_header_wants_is_not_allocated() {
        // .lzma of no bytes that wants a dictionary of 4 GiB
        let stored = [&[0x5d][..], &u32::MAX.to_le_bytes(), &0u64.to_le_bytes(), &[0; 5]].concat();
        let codec = configured(&json!({"format": 2})).unwrap();
        assert_eq!(codec.decode_unsized(&stored, 1 << 20), Ok(Vec::new()));
    }
}
