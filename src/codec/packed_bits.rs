//! Two filters of HDF5 that store numbers in fewer bits than they have: `nbit` leaves out those that mean nothing, and
//! `scaleoffset` those above the greatest difference from the least number. The highest bit comes first.
//!
//! The parameters are those that stand with the filter in the file.

use serde_json::Value;

use super::sizes::{exactly, stated};
use super::{Codec, Configuration};

const NBIT: &str = "nbit";
const SCALE_OFFSET: &str = "scaleoffset";

fn parameters(configuration: &Configuration) -> Result<Vec<u32>, String> {
    let list = configuration.get("parameters").and_then(Value::as_array).ok_or("the filter has no parameters")?;
    let number = |value: &Value| value.as_u64().and_then(|n| u32::try_from(n).ok());
    list.iter().map(number).collect::<Option<_>>().ok_or_else(|| "the parameters of the filter are no numbers".into())
}

pub(super) fn new_nbit(configuration: &Configuration) -> Result<Box<dyn Codec>, String> {
    const ATOM: u32 = 1;
    const ARRAY: u32 = 2;
    const BYTES: u32 = 4;
    let parameters = parameters(configuration)?;
    let wrong = || format!("the parameters of the filter {NBIT} make no sense: {parameters:?}");
    let ([_, as_it_is, elements], mut rest) = parameters.split_first_chunk().ok_or_else(wrong)?;
    if *as_it_is != 0 {
        return Ok(Box::new(NBit { size: 0, bits: 0, offset: 0, big_endian: false, decoded: 0 }));
    }
    let mut decoded = None;
    while let [ARRAY, bytes, inner @ ..] = rest {
        decoded = decoded.or(Some(*bytes));
        rest = inner;
    }
    let (size, big_endian, bits, offset) = match rest {
        [ATOM, size, order, bits, offset, ..] => (*size, *order == 1, *bits, *offset),
        // in the order of memory
        [BYTES, size, ..] => (*size, true, size.saturating_mul(8), 0),
        _ => return Err(format!("the filter {NBIT} of structures is not supported")),
    };
    if size == 0 || size > 16 || bits == 0 || u64::from(bits) + u64::from(offset) > 8 * u64::from(size) {
        return Err(wrong());
    }
    let decoded = u64::from(decoded.unwrap_or(size)) * u64::from(*elements);
    Ok(Box::new(NBit { size: size as usize, bits, offset, big_endian, decoded: decoded as usize }))
}

pub(super) fn new_scaleoffset(configuration: &Configuration) -> Result<Box<dyn Codec>, String> {
    let parameters = parameters(configuration)?;
    let wrong = || format!("the parameters of the filter {SCALE_OFFSET} make no sense: {parameters:?}");
    let [kind, factor, elements, class, size, sign, order, has_fill, fill @ ..] = &parameters[..] else {
        return Err(wrong());
    };
    let numbers = match (kind, class) {
        (0, 1) => Numbers::Decimal(factor.cast_signed()),
        // with all their bits they are left as they are
        (2, 0) if *factor == size.saturating_mul(8) => Numbers::Unpacked,
        (2, 0) => Numbers::Integers,
        (1, _) => return Err(format!("the filter {SCALE_OFFSET} with exponents is not supported")),
        _ => return Err(wrong()),
    };
    let size = *size as usize;
    let is_known = match numbers {
        Numbers::Integers | Numbers::Unpacked => matches!(size, 1 | 2 | 4 | 8),
        Numbers::Decimal(_) => matches!(size, 4 | 8),
    };
    if !is_known || *sign > 1 {
        return Err(wrong());
    }
    let word = |n: usize| u64::from(fill.get(n).copied().unwrap_or(0));
    let fill = (*has_fill == 1).then(|| word(0) | word(1) << 32);
    let decoded = size.saturating_mul(*elements as usize);
    Ok(Box::new(ScaleOffset { numbers, size, fill, big_endian: *order == 1, decoded }))
}

/// Bits behind each other, the highest of each byte first.
struct Bits<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl Bits<'_> {
    /// Returns the next bits, at most 64, as a number; `None` at the end.
    fn take(&mut self, count: u32) -> Option<u64> {
        let count = count as usize;
        let first = self.at / 8;
        let within = self.at % 8;
        let mut wide = [0; 16];
        let bytes = self.bytes.get(first..first + (within + count).div_ceil(8))?;
        wide[..bytes.len()].copy_from_slice(bytes);
        self.at += count;
        let bits = u128::from_be_bytes(wide) << within;
        Some(if count == 0 { 0 } else { (bits >> (128 - count)) as u64 })
    }
}

/// Writes a number in the bytes of a sample.
fn store(value: u128, sample: &mut [u8], big_endian: bool) {
    let bytes = value.to_le_bytes();
    sample.copy_from_slice(&bytes[..sample.len()]);
    if big_endian {
        sample.reverse();
    }
}

/// Samples of which some bits are stored; all of them as they are if the size is 0.
struct NBit {
    size: usize,
    bits: u32,
    /// The lowest of these bits in a sample.
    offset: u32,
    big_endian: bool,
    /// Bytes of all samples.
    decoded: usize,
}

impl NBit {
    fn decoded(&self, stored: usize) -> usize {
        if self.size == 0 { stored } else { self.decoded }
    }

    fn fill(&self, stored: &[u8], out: &mut [u8]) -> Result<(), String> {
        exactly(NBIT, out.len(), Ok(self.decoded(stored.len())))?;
        if self.size == 0 {
            out.copy_from_slice(stored);
            return Ok(());
        }
        let mut bits = Bits { bytes: stored, at: 0 };
        for sample in out.chunks_exact_mut(self.size) {
            let high = self.bits.saturating_sub(64);
            let number = bits.take(high).zip(bits.take(self.bits - high));
            let (high, low) = number.ok_or_else(|| format!("its {NBIT} data are cut off"))?;
            let number = u128::from(high) << 64 | u128::from(low);
            store(number << self.offset, sample, self.big_endian);
        }
        Ok(())
    }
}

impl Codec for NBit {
    fn name(&self) -> &'static str {
        NBIT
    }

    fn longest(&self, decoded: u64) -> u64 {
        decoded.saturating_add(64)
    }

    fn decode(&self, stored: &[u8], out: &mut [u8]) -> Result<(), String> {
        self.fill(stored, out)
    }

    fn decode_unsized(&self, stored: &[u8], most: usize) -> Result<Vec<u8>, String> {
        let mut out = stated(NBIT, self.decoded(stored.len()), most)?;
        self.fill(stored, &mut out)?;
        Ok(out)
    }
}

/// What the stored numbers are.
enum Numbers {
    Integers,
    /// The samples themselves, without a header.
    Unpacked,
    /// Floats times ten to this power.
    Decimal(i32),
}

/// Differences from the least number.
struct ScaleOffset {
    numbers: Numbers,
    size: usize,
    /// The sample that the greatest difference stands for.
    fill: Option<u64>,
    big_endian: bool,
    /// Bytes of all samples.
    decoded: usize,
}

/// Bytes before the differences: the bits of each, how many bytes the least number has, and it with room for more.
const HEADER: usize = 21;

impl ScaleOffset {
    fn fill(&self, stored: &[u8], out: &mut [u8]) -> Result<(), String> {
        exactly(SCALE_OFFSET, out.len(), Ok(self.decoded))?;
        let damaged = || format!("its {SCALE_OFFSET} data are damaged or cut off");
        let power = match self.numbers {
            Numbers::Unpacked => {
                out.copy_from_slice(stored.get(..out.len()).ok_or_else(damaged)?);
                return Ok(());
            }
            Numbers::Integers => None,
            Numbers::Decimal(power) => Some(power),
        };
        let (bits, rest) = stored.split_first_chunk().ok_or_else(damaged)?;
        let bits = u32::from_le_bytes(*bits);
        let (width, rest) = rest.split_first().ok_or_else(damaged)?;
        let mut least = [0; 8];
        let bytes = rest.get(..usize::from(*width).min(8)).ok_or_else(damaged)?;
        least[..bytes.len()].copy_from_slice(bytes);
        let least = u64::from_le_bytes(least);
        if bits as usize > 8 * self.size {
            return Err(damaged());
        }
        let packed = stored.get(HEADER..).unwrap_or_default();
        if bits as usize == 8 * self.size {
            let samples = packed.get(..out.len()).ok_or_else(damaged)?;
            out.copy_from_slice(samples);
            if self.big_endian {
                out.chunks_exact_mut(self.size).for_each(<[u8]>::reverse);
            }
            return Ok(());
        }
        let last = (1u64 << bits) - 1;
        let mut packed = Bits { bytes: packed, at: 0 };
        for sample in out.chunks_exact_mut(self.size) {
            let difference = packed.take(bits).ok_or_else(damaged)?;
            let value = match (self.fill, power) {
                (Some(fill), _) if difference == last && bits > 0 => fill,
                (_, None) => least.wrapping_add(difference),
                (_, Some(power)) if self.size == 4 => {
                    let whole = difference as u32;
                    let value = whole.cast_signed() as f32 / 10f64.powi(power) as f32;
                    (value + f32::from_bits(least as u32)).to_bits().into()
                }
                (_, Some(power)) => {
                    (difference.cast_signed() as f64 / 10f64.powi(power) + f64::from_bits(least)).to_bits()
                }
            };
            store(value.into(), sample, self.big_endian);
        }
        Ok(())
    }
}

impl Codec for ScaleOffset {
    fn name(&self) -> &'static str {
        SCALE_OFFSET
    }

    fn longest(&self, decoded: u64) -> u64 {
        decoded.saturating_add(64)
    }

    fn decode(&self, stored: &[u8], out: &mut [u8]) -> Result<(), String> {
        self.fill(stored, out)
    }

    fn decode_unsized(&self, stored: &[u8], most: usize) -> Result<Vec<u8>, String> {
        let mut out = stated(SCALE_OFFSET, self.decoded, most)?;
        self.fill(stored, &mut out)?;
        Ok(out)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn with(new: fn(&Configuration) -> Result<Box<dyn Codec>, String>, parameters: &[u32]) -> Box<dyn Codec> {
        new(json!({ "parameters": parameters }).as_object().unwrap()).unwrap()
    }

    #[test]
    fn some_bits_of_each_sample_are_stored() {
        // 12 bits from bit 3 on, in 2 bytes
        let codec = with(new_nbit, &[8, 0, 2, 1, 2, 0, 12, 3]);
        let mut out = [0; 4];
        codec.decode(&[0xab, 0xc1, 0x23], &mut out).unwrap();
        assert_eq!(out, *[0xabc_u16 << 3, 0x123 << 3].map(u16::to_le_bytes).as_flattened());
        assert!(codec.decode(&[0xab, 0xc1], &mut out).is_err());
        let arrays = with(new_nbit, &[10, 0, 1, 2, 4, 1, 2, 1, 16, 0]);
        assert_eq!(arrays.decode_unsized(&[1, 2, 3, 4], 4), Ok(vec![1, 2, 3, 4]));
        let wide = with(new_nbit, &[8, 0, 1, 1, 16, 0, 80, 0]);
        assert_eq!(wide.decode_unsized(&[0, 0, 0, 0, 0, 0, 0, 0, 1, 2], 16).unwrap()[..2], [2, 1]);
        assert!(new_nbit(json!({"parameters": [8, 0, 2, 1, 2, 0, 15, 3]}).as_object().unwrap()).is_err());
    }

    #[test]
    fn samples_of_other_sizes_and_signs_are_refused() {
        let refused = |size: u32, sign: u32| {
            let parameters = json!({"parameters": [2, 0, 4, 0, size, sign, 0, 0]});
            new_scaleoffset(parameters.as_object().unwrap()).is_err()
        };
        assert!(!refused(2, 1) && refused(3, 1) && refused(2, 2));
    }

    #[test]
    fn integers_of_all_bits_are_stored_as_they_are() {
        let codec = with(new_scaleoffset, &[2, 16, 2, 0, 2, 1, 1, 1, 0]);
        let mut out = [0; 4];
        assert_eq!(codec.decode(&[8, 0, 0, 7], &mut out), Ok(()));
        assert_eq!(out, [8, 0, 0, 7]);
        assert!(codec.decode(&[8, 0, 0], &mut out).is_err());
        assert!(codec.decode(&[8, 0, 0, 7], &mut out[..3]).is_err());
        assert!(codec.decode(&[8, 0, 0, 7, 0, 1], &mut [0; 6]).is_err(), "more than the chunk has");
    }

    #[test]
    fn differences_are_added_to_the_least_number() {
        let header = |bits: u32, least: u64| [&bits.to_le_bytes()[..], &[8], &least.to_le_bytes(), &[0; 8]].concat();
        let codec = with(new_scaleoffset, &[2, 0, 3, 0, 2, 1, 0, 1, 0xffff]);
        let stored = [header(4, (-5i64).cast_unsigned()), vec![0x0f, 0x30]].concat();
        let mut out = [0; 6];
        codec.decode(&stored, &mut out).unwrap();
        assert_eq!(out, *[-5i16, -1, -2].map(i16::to_le_bytes).as_flattened());
        let floats = with(new_scaleoffset, &[0, 2, 2, 1, 4, 0, 1, 0]);
        let stored = [header(8, 1.5f32.to_bits().into()), vec![0, 25]].concat();
        assert_eq!(floats.decode_unsized(&stored, 8), Ok([1.5f32, 1.75].map(f32::to_be_bytes).concat()));
        assert!(floats.decode(&stored[..20], &mut [0; 8]).is_err());
    }
}
