//! Pcodec: numbers in the container that the library calls standalone.
//!
//! A header ("pco!", a version, from version 3 on the type of all numbers, from 2 on how many there are), then chunks:
//! each a byte for the type of its numbers, their count minus 1 (24 bits, little-endian), and what the library decodes.
//! A zero ends it. The container is read here, since the library allocates what two fields of a chunk say before it
//! knows that there is so much.

use half::f16;
use pco::FULL_BATCH_N;
use pco::data_types::{Number, NumberType};
use pco::metadata::DeltaEncoding;
use pco::wrapped::FileDecompressor;

use super::sizes::{Fault, Written, exactly, growing};
use super::{Codec, Configuration};

const NAME: &str = "pcodec";
const MAGIC: &[u8] = b"pco!";
const NEWEST: u8 = 3;
/// Bytes of a chunk before the library's.
const CHUNK: usize = 4;
/// Numbers that are decoded at a time: a multiple of what the library asks for.
const PART: usize = 8 * FULL_BATCH_N;
/// How far back numbers may be repeated, whatever their count is.
const LOOKBACK: usize = 1 << 15;

pub(super) fn new(_: &Configuration) -> Result<Box<dyn Codec>, String> {
    Ok(Box::new(Pcodec))
}

struct Pcodec;

impl Codec for Pcodec {
    fn name(&self) -> &'static str {
        NAME
    }

    fn longest(&self, decoded: u64) -> u64 {
        // chunks of few numbers have tables of their own
        decoded.saturating_mul(2).saturating_add(64 << 10)
    }

    fn decode(&self, stored: &[u8], out: &mut [u8]) -> Result<(), String> {
        exactly(NAME, out.len(), numbers(stored, out))
    }

    fn decode_unsized(&self, stored: &[u8], most: usize) -> Result<Vec<u8>, String> {
        growing(NAME, stored.len(), 0, most, |out| numbers(stored, out))
    }

    fn scratch(&self, decoded: usize) -> usize {
        // tables of a chunk, its distinct numbers, and what is repeated
        decoded.saturating_mul(4).saturating_add(4 << 20)
    }
}

fn damaged(error: &dyn std::fmt::Display) -> Fault {
    Fault::Invalid(format!("its {NAME} data are damaged: {error}"))
}

fn cut_off() -> Fault {
    damaged(&"they are cut off")
}

fn numbers(stored: &[u8], out: &mut [u8]) -> Written {
    let (file, chunks) = FileDecompressor::new(header(stored)?).map_err(|error| damaged(&error))?;
    let kind = *chunks.first().ok_or_else(cut_off)?;
    /// Decodes numbers of the type that the first chunk has.
    macro_rules! of_kind {
        ($($kind:ident $number:ty, $size:literal;)*) => {
            match kind {
                0 => Ok(0),
                $(_ if kind == NumberType::$kind as u8 => {
                    decode::<$number, $size>(&file, chunks, out, <$number>::to_le_bytes)
                })*
                other => Err(Fault::Invalid(format!("{NAME} with numbers of type {other} is not supported"))),
            }
        };
    }
    of_kind! {
        F16 f16, 2; F32 f32, 4; F64 f64, 8;
        I8 i8, 1; I16 i16, 2; I32 i32, 4; I64 i64, 8;
        U8 u8, 1; U16 u16, 2; U32 u32, 4; U64 u64, 8;
    }
}

/// Returns what follows the header.
fn header(stored: &[u8]) -> Result<&[u8], Fault> {
    let rest = stored.strip_prefix(MAGIC).ok_or_else(|| damaged(&"they do not begin with \"pco!\""))?;
    let (version, mut after) = rest.split_first().ok_or_else(cut_off)?;
    match *version {
        // of the library's own header
        0 | 1 => return Ok(rest),
        2 => {}
        3..=NEWEST => after = after.get(1..).ok_or_else(cut_off)?,
        newer => return Err(Fault::Invalid(format!("version {newer} of {NAME} is not supported"))),
    }
    // how many numbers there are: a number of so many bits, minus 1, as its lowest six bits say
    let bits = 6 + 1 + usize::from(after.first().ok_or_else(cut_off)? & 0x3f);
    after.get(bits.div_ceil(8)..).ok_or_else(cut_off)
}

fn decode<T: Number + Default, const SIZE: usize>(
    file: &FileDecompressor,
    mut chunks: &[u8],
    out: &mut [u8],
    bytes: fn(T) -> [u8; SIZE],
) -> Written {
    let (mut filled, mut part) = (0, vec![T::default(); PART]);
    let kind = *chunks.first().ok_or_else(cut_off)?;
    loop {
        if chunks.first() == Some(&0) {
            return Ok(filled);
        }
        let (&[of, low, middle, high], rest) = chunks.split_first_chunk::<CHUNK>().ok_or_else(cut_off)?;
        if of != kind {
            return Err(damaged(&"the chunks have numbers of different types"));
        }
        let count = u32::from_le_bytes([low, middle, high, 0]) as usize + 1;
        if count > out.len().saturating_sub(filled) / SIZE {
            return Err(Fault::NoRoom);
        }
        if distinct(rest).saturating_mul(SIZE) > rest.len() {
            return Err(cut_off());
        }
        let (mut chunk, rest) = file.chunk_decompressor::<T, _>(rest).map_err(|error| damaged(&error))?;
        if let DeltaEncoding::Lookback { config, .. } = &chunk.meta().delta_encoding
            && 1usize.checked_shl(config.window_n_log).is_none_or(|window| window > 2 * count.max(LOOKBACK))
        {
            return Err(damaged(&"numbers are repeated from before the first"));
        }
        let mut page = chunk.page_decompressor(rest, count).map_err(|error| damaged(&error))?;
        let target = out.get_mut(filled..filled + count * SIZE).ok_or(Fault::NoRoom)?;
        for target in target.chunks_mut(PART * SIZE) {
            let progress = page.read(&mut part).map_err(|error| damaged(&error))?;
            if progress.n_processed * SIZE != target.len() {
                return Err(damaged(&"a chunk ends early"));
            }
            for (to, number) in target.as_chunks_mut().0.iter_mut().zip(&part) {
                *to = bytes(*number);
            }
        }
        filled += count * SIZE;
        chunks = page.into_src();
    }
}

/// Returns how many distinct numbers a chunk stores, if it says that its mode is to number them: 4 bits, and 25 bits.
fn distinct(chunk: &[u8]) -> usize {
    const NUMBERED: u32 = 4;
    let beginning = chunk.first_chunk().map_or(0, |bytes| u32::from_le_bytes(*bytes));
    if beginning & 0xf == NUMBERED { (beginning >> 4 & 0x1ff_ffff) as usize } else { 0 }
}
