//! LZMA in the three formats that Python's lzma has: .xz (N5 too), .lzma, and filters without a container.
//!
//! Whatever a header says, a dictionary is not longer than what is decoded.

mod xz;

use std::io::{self, ErrorKind, Read};

use lzma_rust2::{Lzma2Reader, LzmaReader};
use serde_json::Value;

use super::sizes::{Fault, Written, exactly, growing};
use super::{Codec, Configuration};

/// The shortest and the longest dictionary.
const SHORTEST: usize = 4 << 10;
const LONGEST: usize = 64 << 20;
/// The most bits of what was before that a literal depends on, as liblzma has it: the size of a table.
const CONTEXT_BITS: u64 = 4;
/// Memory that decoders take besides: a piece of what is stored, and probabilities.
const BESIDES: usize = 256 << 10;

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
                if lc.saturating_add(lp) > CONTEXT_BITS || pb > 4 {
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
        // dictionaries grow as they are filled, to another place
        2 * decoded.clamp(SHORTEST, LONGEST) + BESIDES
    }
}

impl Lzma {
    fn written(&self, stored: &[u8], out: &mut [u8]) -> Written {
        match &self.0 {
            Format::Xz => xz::streams(stored, out),
            Format::Any if xz::begins(stored) => xz::streams(stored, out),
            Format::Any | Format::Alone => alone(stored, out),
            Format::Raw(raw) => raw.fill(stored, out),
        }
    }
}

fn damaged(error: &dyn std::fmt::Display) -> Fault {
    Fault::Invalid(format!("its LZMA data are damaged: {error}"))
}

/// Returns a length of the dictionary with which that many bytes can be decoded.
fn dictionary(bytes: usize) -> u32 {
    bytes.clamp(SHORTEST, LONGEST) as u32
}

/// Decodes a file of the format .lzma.
fn alone(stored: &[u8], out: &mut [u8]) -> Written {
    let cut_off = || damaged(&"they are cut off");
    let ([properties], rest) = stored.split_first_chunk().ok_or_else(cut_off)?;
    let (wanted, rest) = rest.split_first_chunk().ok_or_else(cut_off)?;
    let (length, rest) = rest.split_first_chunk().ok_or_else(cut_off)?;
    if properties % 9 + properties / 9 % 5 > CONTEXT_BITS as u8 {
        return Err(damaged(&"the parameters are out of range"));
    }
    let dictionary = u32::from_le_bytes(*wanted).min(dictionary(out.len()));
    let reader = LzmaReader::new_with_props(rest, u64::from_le_bytes(*length), *properties, dictionary, None);
    fill(&mut reader.map_err(|error| damaged(&error))?, out)
}

impl Raw {
    fn fill(&self, stored: &[u8], out: &mut [u8]) -> Written {
        let dictionary = dictionary(out.len());
        let written = match self.compressor {
            Compressor::Lzma2 => fill(&mut Lzma2Reader::new(stored, dictionary, None), out)?,
            Compressor::Lzma { lc, lp, pb } => {
                // the end is marked
                let reader = LzmaReader::new(stored, u64::MAX, lc, lp, pb, dictionary, None);
                fill(&mut reader.map_err(|error| damaged(&error))?, out)?
            }
        };
        let decoded = out.get_mut(..written).unwrap_or_default();
        self.deltas.iter().rev().for_each(|distance| add_differences(decoded, *distance));
        Ok(written)
    }
}

/// Adds to each byte the one that it is a difference from.
fn add_differences(bytes: &mut [u8], distance: usize) {
    for at in distance..bytes.len() {
        bytes[at] = bytes[at].wrapping_add(bytes[at - distance]);
    }
}

/// Reads all bytes, and returns how many there are.
fn fill(reader: &mut impl Read, out: &mut [u8]) -> Written {
    let mut read = |rest: &mut [u8]| loop {
        match reader.read(rest) {
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            result => return result.map_err(|error: io::Error| damaged(&error)),
        }
    };
    let mut filled = 0;
    while let Some(rest) = out.get_mut(filled..).filter(|rest| !rest.is_empty()) {
        match read(rest)? {
            0 => return Ok(filled),
            more => filled += more,
        }
    }
    // the end is checked only if it is read
    if read(&mut [0])? == 0 { Ok(filled) } else { Err(Fault::NoRoom) }
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
    fn memory_is_twice_the_dictionary() {
        let codec = configured(&json!({"format": 1})).unwrap();
        assert!(codec.scratch(0) > 0 && codec.scratch(1 << 24) > 2 << 24);
        assert_eq!(codec.scratch(usize::MAX), codec.scratch(LONGEST));
    }

    #[test]
    fn a_long_dictionary_that_a_header_wants_is_not_allocated() {
        // .lzma of no bytes that wants a dictionary of 4 GiB
        let stored = [&[0x5d][..], &u32::MAX.to_le_bytes(), &0u64.to_le_bytes(), &[0; 5]].concat();
        let codec = configured(&json!({"format": 2})).unwrap();
        assert_eq!(codec.decode_unsized(&stored, 1 << 20), Ok(Vec::new()));
    }
}
