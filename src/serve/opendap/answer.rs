//! The types and the values of an answer, which is a file that is computed while it is sent.

use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::constraint::{Chosen, Slice};
use super::model::Values;
use crate::format::{Array, FormatError};
use crate::view::{ComputedFile, Convert, NextSegment, Positions, Samples, Segment};
use crate::volume::{Dims, Dtype, Region};

/// Samples and positions of one segment of an answer.
const OF_SEGMENT: u64 = 64 << 10;
/// A longer read does not begin on a thread that talks to clients.
const SHORT_READ: u64 = 256 << 10;

/// The types that DAP2 sends. netCDF shows unsigned ones as signed, and `Byte` as signed or not: stored samples are sent in
/// the next larger type that all clients read right.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Type {
    Int16,
    Int32,
    Float32,
    Float64,
}

impl Type {
    pub(super) fn of(stored: Dtype) -> Self {
        match stored {
            Dtype::Int8 | Dtype::UInt8 | Dtype::Int16 => Self::Int16,
            Dtype::UInt16 | Dtype::Int32 => Self::Int32,
            Dtype::Float32 | Dtype::Float16 => Self::Float32,
            _ => Self::Float64,
        }
    }

    pub(super) fn name(self) -> &'static str {
        ["Int16", "Int32", "Float32", "Float64"][self as usize]
    }

    /// Returns the bytes of a value. An Int16 takes those of an Int32, as XDR has it.
    pub(super) fn size(self) -> u64 {
        if self == Self::Float64 { 8 } else { 4 }
    }

    /// Writes samples as values, big-endian. Fails with the first sample that has no exact one.
    pub(super) fn write(self, stored: Dtype, samples: &[u8], out: &mut [u8]) -> Result<(), String> {
        match (stored, self) {
            (Dtype::Int8, _) => each(samples, out, |b: [u8; 1]| i32::from(i8::from_le_bytes(b)).to_be_bytes()),
            (Dtype::UInt8, _) => each(samples, out, |[b]: [u8; 1]| i32::from(b).to_be_bytes()),
            (Dtype::Int16, _) => each(samples, out, |b| i32::from(i16::from_le_bytes(b)).to_be_bytes()),
            (Dtype::UInt16, _) => each(samples, out, |b| i32::from(u16::from_le_bytes(b)).to_be_bytes()),
            (Dtype::UInt32, _) => each(samples, out, |b| f64::from(u32::from_le_bytes(b)).to_be_bytes()),
            (Dtype::Int64, _) => {
                let exact = |b: &[u8; 8]| (i64::from_le_bytes(*b) as f64) as i128 == i128::from(i64::from_le_bytes(*b));
                if let Some(b) = samples.as_chunks().0.iter().find(|b| !exact(b)) {
                    return Err(i64::from_le_bytes(*b).to_string());
                }
                each(samples, out, |b| (i64::from_le_bytes(b) as f64).to_be_bytes());
            }
            (Dtype::UInt64, _) => {
                let exact = |b: &[u8; 8]| (u64::from_le_bytes(*b) as f64) as u128 == u128::from(u64::from_le_bytes(*b));
                if let Some(b) = samples.as_chunks().0.iter().find(|b| !exact(b)) {
                    return Err(u64::from_le_bytes(*b).to_string());
                }
                each(samples, out, |b| (u64::from_le_bytes(b) as f64).to_be_bytes());
            }
            // the same numbers in the other order of bytes
            (_, Self::Float64) => each(samples, out, |b: [u8; 8]| u64::from_le_bytes(b).to_be_bytes()),
            _ => each(samples, out, |b: [u8; 4]| u32::from_le_bytes(b).to_be_bytes()),
        }
        Ok(())
    }
}

fn each<const FROM: usize, const TO: usize>(samples: &[u8], out: &mut [u8], value: impl Fn([u8; FROM]) -> [u8; TO]) {
    for (sample, to) in samples.as_chunks().0.iter().zip(out.as_chunks_mut().0) {
        *to = value(*sample);
    }
}

/// How values are sent.
#[derive(Clone, Copy, Debug)]
pub(super) enum Wire {
    /// Little-endian, as they are stored.
    AsStored,
    Dap2(Type),
}

impl Wire {
    pub(super) fn size(self, stored: Dtype) -> u64 {
        match self {
            Self::AsStored => stored.size() as u64,
            Self::Dap2(kind) => kind.size(),
        }
    }
}

/// A part of an answer.
#[derive(Debug)]
enum Part {
    Known(Arc<[u8]>),
    Positions { positions: Positions, slice: Slice, is_big_endian: bool },
    Samples { region: Region, step: Dims, wire: Wire },
}

/// The bytes of an answer, part by part.
pub(super) struct Answer {
    array: Arc<dyn Array>,
    /// Each with its offset, and the bytes of one of its values.
    parts: Vec<(u64, u64, Part)>,
    len: u64,
    /// Set if a sample has no exact form in the type that it is sent in.
    is_inexact: Arc<AtomicBool>,
}

impl Answer {
    pub(super) fn new(array: &Arc<dyn Array>) -> Self {
        Self { array: Arc::clone(array), parts: Vec::new(), len: 0, is_inexact: Arc::default() }
    }

    pub(super) fn is_inexact(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.is_inexact)
    }

    fn add(&mut self, length: u64, size: u64, part: Part) {
        self.parts.push((self.len, size, part));
        self.len = self.len.saturating_add(length);
    }

    pub(super) fn add_bytes(&mut self, bytes: Vec<u8>) {
        self.add(bytes.len() as u64, 1, Part::Known(bytes.into()));
    }

    /// Adds a part of a variable. The caller has checked its size.
    pub(super) fn add_values(&mut self, values: Values, chosen: &Chosen, wire: Wire) {
        let stored = self.array.info().dtype;
        let elements = u64::try_from(chosen.elements()).unwrap_or(u64::MAX);
        let axes = |of: &dyn Fn(usize) -> u64| Dims::from_fn(chosen.slices.len(), of);
        let (size, part) = match (values, &chosen.slices[..]) {
            (Values::Positions(positions), [slice, ..]) => {
                (8, Part::Positions { positions, slice: *slice, is_big_endian: matches!(wire, Wire::Dap2(_)) })
            }
            _ => {
                let region =
                    Region { start: axes(&|n| chosen.slices[n].start), shape: axes(&|n| chosen.slices[n].count) };
                (wire.size(stored), Part::Samples { region, step: axes(&|n| chosen.slices[n].step), wire })
            }
        };
        self.add(elements.saturating_mul(size), size, part);
    }

    fn segment(&self, wanted: &Range<u64>) -> Segment {
        let at = self.parts.partition_point(|(offset, ..)| *offset <= wanted.start).saturating_sub(1);
        let Some((offset, size, part)) = self.parts.get(at) else {
            return Segment::Failed(FormatError::Internal("an answer has no parts".to_owned()));
        };
        let end = self.parts.get(at + 1).map_or(self.len, |(next, ..)| *next);
        let first = (wanted.start - offset) / size;
        let last = (wanted.end.min(end) - offset).div_ceil(*size).min(first + OF_SEGMENT);
        match part {
            Part::Known(bytes) => Segment::Bytes(*offset, Arc::clone(bytes)),
            Part::Positions { positions, slice, is_big_endian } => {
                // few, since they do not ask for memory
                let last = last.min(first + OF_SEGMENT / 16);
                let value = |n: u64| positions.at(slice.start + slice.step * n).to_bits();
                let bytes = |n| if *is_big_endian { value(n).to_be_bytes() } else { value(n).to_le_bytes() };
                Segment::Bytes(offset + first * 8, (first..last).flat_map(bytes).collect())
            }
            Part::Samples { region, step, wire } => {
                let samples = Samples::strided(&self.array, *region, *step, first..last);
                let convert = match *wire {
                    Wire::AsStored => None,
                    Wire::Dap2(kind) => {
                        let (stored, is_inexact) = (self.array.info().dtype, self.is_inexact());
                        let convert: Convert = Box::new(move |samples, out| {
                            kind.write(stored, samples, out).map_err(|sample| {
                                is_inexact.store(true, Ordering::Relaxed);
                                FormatError::Unsupported(format!("{sample} has no exact Float64"))
                            })
                        });
                        Some(convert)
                    }
                };
                Segment::Samples(offset + first * size..offset + last * size, samples, convert)
            }
        }
    }
}

impl ComputedFile for Answer {
    fn len(&self) -> u64 {
        self.len
    }

    fn array(&self) -> &Arc<dyn Array> {
        &self.array
    }

    fn fingerprint(&self) -> u64 {
        BuildHasherDefault::<DefaultHasher>::default().hash_one(format!("{:?}", self.parts))
    }

    fn is_long(&self, bytes: &Range<u64>) -> bool {
        bytes.end - bytes.start > SHORT_READ
    }

    fn segments(self: Arc<Self>) -> NextSegment {
        Box::new(move |wanted| self.segment(&wanted))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_that_float64_cannot_have_are_refused() {
        let write = |stored: Dtype, bytes: [u8; 8]| Type::of(stored).write(stored, &bytes, &mut [0; 8]);
        let largest = 1i64 << 53;
        assert!(write(Dtype::Int64, largest.to_le_bytes()).is_ok());
        assert_eq!(write(Dtype::Int64, (-largest - 1).to_le_bytes()), Err("-9007199254740993".to_owned()));
        assert!(write(Dtype::UInt64, (1u64 << 63).to_le_bytes()).is_ok());
        assert!(write(Dtype::UInt64, u64::MAX.to_le_bytes()).is_err());
        assert!(write(Dtype::Int64, i64::MAX.to_le_bytes()).is_err());
        assert!(write(Dtype::Int64, i64::MIN.to_le_bytes()).is_ok());
    }

    #[test]
    fn all_types_are_sent_as_clients_read_them() {
        let sent = |stored: Dtype, sample: &[u8]| {
            let kind = Type::of(stored);
            let mut out = vec![0; kind.size() as usize];
            kind.write(stored, sample, &mut out).unwrap();
            (kind.name(), out)
        };
        assert_eq!(sent(Dtype::UInt8, &[200]), ("Int16", vec![0, 0, 0, 200]));
        assert_eq!(sent(Dtype::Int16, &[0, 0x80]), ("Int16", vec![0xff, 0xff, 0x80, 0]));
        assert_eq!(sent(Dtype::UInt16, &[0xff, 0xff]), ("Int32", vec![0, 0, 0xff, 0xff]));
        assert_eq!(sent(Dtype::Int32, &[1, 0, 0, 0x80]), ("Int32", vec![0x80, 0, 0, 1]));
        assert_eq!(sent(Dtype::UInt32, &[0xff; 4]), ("Float64", 4_294_967_295f64.to_be_bytes().to_vec()));
        assert_eq!(sent(Dtype::Float32, &[1, 2, 3, 4]), ("Float32", vec![4, 3, 2, 1]));
        assert_eq!(sent(Dtype::Float64, &[1, 2, 3, 4, 5, 6, 7, 8]), ("Float64", vec![8, 7, 6, 5, 4, 3, 2, 1]));
    }
}
