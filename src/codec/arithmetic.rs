//! Filters that change each number: delta, astype, fixedscaleoffset, quantize. Results are those of numcodecs, which
//! calculates in the types that NumPy chooses.

use serde_json::Value;

use super::numpy::{Kind, Numbers, PART, Type, from_half, read, to_half, write};
use super::sizes::{exactly, stated};
use super::{Codec, Configuration};

pub(super) fn new_delta(configuration: &Configuration) -> Result<Box<dyn Codec>, String> {
    let (from, to) = types("delta", configuration, "astype", "dtype")?;
    // a complex sample is two numbers, of which a real one has but one to give
    if (from.is_time || to.is_time) && from != to || from.is_complex != to.is_complex {
        return Err("the filter delta between these types is not supported".into());
    }
    Ok(Box::new(Filter { name: "delta", from, to, change: Change::Sum }))
}

pub(super) fn new_astype(configuration: &Configuration) -> Result<Box<dyn Codec>, String> {
    let (from, to) = types("astype", configuration, "encode_dtype", "decode_dtype")?;
    Filter::of_numbers("astype", from, to, Change::Cast)
}

pub(super) fn new_quantize(configuration: &Configuration) -> Result<Box<dyn Codec>, String> {
    let (from, to) = types("quantize", configuration, "astype", "dtype")?;
    // the digits matter to the encoder only
    Filter::of_numbers("quantize", from, to, Change::Cast)
}

pub(super) fn new_fixedscaleoffset(configuration: &Configuration) -> Result<Box<dyn Codec>, String> {
    const NAME: &str = "fixedscaleoffset";
    let (from, to) = types(NAME, configuration, "astype", "dtype")?;
    let number = |key: &str| {
        let number = configuration.get(key).and_then(Value::as_f64);
        number.ok_or_else(|| format!("the filter {NAME} has no number {key:?}"))
    };
    let change = Change::Scale { scale: number("scale")?, offset: number("offset")? };
    if from.is_complex {
        return Err(format!("the filter {NAME} of complex numbers is not supported"));
    }
    Filter::of_numbers(NAME, from, to, change)
}

/// Reads the types of encoded and of decoded samples. Those of encoded ones may be left out.
fn types(filter: &str, configuration: &Configuration, from: &str, to: &str) -> Result<(Type, Type), String> {
    let to = Type::of(configuration, to, None);
    let types = to.and_then(|to| Ok((Type::of(configuration, from, Some(to))?, to)));
    types.map_err(|error| format!("the filter {filter}: {error}"))
}

struct Filter {
    name: &'static str,
    from: Type,
    to: Type,
    change: Change,
}

/// What happens to numbers besides the cast.
enum Change {
    Cast,
    /// Each is the sum of those before it and itself.
    Sum,
    Scale {
        scale: f64,
        offset: f64,
    },
}

impl Filter {
    /// Makes a filter of types that are numbers alone.
    fn of_numbers(name: &'static str, from: Type, to: Type, change: Change) -> Result<Box<dyn Codec>, String> {
        if from.is_time || to.is_time || from.is_complex != to.is_complex {
            return Err(format!("the filter {name} between these types is not supported"));
        }
        Ok(Box::new(Self { name, from, to, change }))
    }

    /// Decodes all samples. There is room for them.
    fn samples(&self, stored: &[u8], out: &mut [u8]) {
        let parts = stored.chunks(PART * self.from.size).zip(out.chunks_mut(PART * self.to.size));
        let mut sums = Sums { first: true, integer: [0; 2], float: [0.0; 2] };
        for (stored, out) in parts {
            let mut numbers = read(stored, self.from);
            match &self.change {
                Change::Cast => write(&numbers, self.to, out),
                Change::Scale { scale, offset } => {
                    scale_numbers(&mut numbers, self.from, *scale, *offset);
                    write(&numbers, self.to, out);
                }
                Change::Sum => {
                    write(&numbers, self.to, out);
                    let mut numbers = read(out, self.to);
                    sums.add(&mut numbers, self.to);
                    write(&numbers, self.to, out);
                }
            }
        }
    }

    fn decoded(&self, stored: usize) -> Result<usize, String> {
        let odd = || format!("{stored} bytes are no whole number of samples for the filter {}", self.name);
        let (count, rest) = (stored / self.from.bytes(), stored % self.from.bytes());
        count.checked_mul(self.to.bytes()).filter(|_| rest == 0).ok_or_else(odd)
    }
}

impl Codec for Filter {
    fn name(&self) -> &'static str {
        self.name
    }

    fn decoded_len(&self, stored: u64) -> Option<u64> {
        let size = self.from.bytes() as u64;
        (stored / size).checked_mul(self.to.bytes() as u64).filter(|_| stored.is_multiple_of(size))
    }

    fn longest(&self, decoded: u64) -> u64 {
        decoded.div_ceil(self.to.bytes() as u64).saturating_mul(self.from.bytes() as u64)
    }

    fn is_elementwise(&self) -> bool {
        !matches!(self.change, Change::Sum)
    }

    fn decode(&self, stored: &[u8], out: &mut [u8]) -> Result<(), String> {
        exactly(self.name, out.len(), Ok(self.decoded(stored.len())?))?;
        self.samples(stored, out);
        Ok(())
    }

    fn decode_unsized(&self, stored: &[u8], most: usize) -> Result<Vec<u8>, String> {
        let mut out = stated(self.name, self.decoded(stored.len())?, most)?;
        self.samples(stored, &mut out);
        Ok(out)
    }
}

/// Divides by the scale and adds the offset: integers as float64, others in their own type.
fn scale_numbers(numbers: &mut Numbers, from: Type, scale: f64, offset: f64) {
    let double = |n: f64| n / scale + offset;
    match numbers {
        Numbers::Signed(signed) => *numbers = Numbers::Float(signed.map(|n| double(n as f64))),
        Numbers::Unsigned(unsigned) => *numbers = Numbers::Float(unsigned.map(|n| double(n as f64))),
        Numbers::Float(floats) => match from.size {
            2 => {
                let [scale, offset] = [scale, offset].map(|n| from_half(to_half(n)) as f32);
                let half = |n: f32| from_half(to_half(n.into()));
                floats.iter_mut().for_each(|n| *n = half(half(*n as f32 / scale) as f32 + offset));
            }
            4 => {
                let [scale, offset] = [scale, offset].map(|n| n as f32);
                floats.iter_mut().for_each(|n| *n = (*n as f32 / scale + offset).into());
            }
            _ => floats.iter_mut().for_each(|n| *n = double(*n)),
        },
    }
}

/// The sums so far; of complex numbers that of each part.
struct Sums {
    /// The first number is taken as it is: adding a zero would change the sign of another.
    first: bool,
    integer: [u64; 2],
    float: [f64; 2],
}

impl Sums {
    /// Replaces numbers of a type by sums in that type. Those of integers have more bits than are stored.
    fn add(&mut self, numbers: &mut Numbers, of: Type) {
        match numbers {
            // "or" is the sum of NumPy's bool
            Numbers::Unsigned(numbers) if of.kind == Kind::Bool => {
                let [sum, _] = &mut self.integer;
                for n in numbers {
                    *sum |= *n;
                    *n = *sum;
                }
            }
            Numbers::Unsigned(numbers) => numbers.iter_mut().for_each(|n| *n = self.integer(*n)),
            Numbers::Signed(numbers) => numbers.iter_mut().for_each(|n| *n = self.integer(*n as u64) as i64),
            Numbers::Float(numbers) => self.floats(numbers, of),
        }
    }

    fn integer(&mut self, n: u64) -> u64 {
        let [sum, _] = &mut self.integer;
        *sum = sum.wrapping_add(n);
        *sum
    }

    fn floats(&mut self, numbers: &mut [f64], of: Type) {
        let parts = if of.is_complex { 2 } else { 1 };
        for sample in numbers.chunks_exact_mut(parts) {
            for (n, sum) in sample.iter_mut().zip(&mut self.float) {
                *sum = match of.size {
                    _ if self.first => *n,
                    2 => from_half(to_half((*sum as f32 + *n as f32).into())),
                    4 => f64::from(*sum as f32 + *n as f32),
                    _ => *sum + *n,
                };
                *n = *sum;
            }
            self.first = false;
        }
    }
}
