//! Pcodec: numbers in the container that the library calls standalone. It says which type they have.

use half::f16;
use pco::FULL_BATCH_N;
use pco::data_types::{Number, NumberType};
use pco::standalone::{DecompressorItem, FileDecompressor};

use super::sizes::{Fault, Written, exactly, growing};
use super::{Codec, Configuration};

const NAME: &str = "pcodec";
/// Numbers that are decoded at a time: a multiple of what the library asks for.
const PART: usize = 8 * FULL_BATCH_N;

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

    fn scratch(&self, _: usize) -> usize {
        // tables of a chunk
        4 << 20
    }
}

fn damaged(error: &dyn std::fmt::Display) -> Fault {
    Fault::Invalid(format!("its {NAME} data are damaged: {error}"))
}

fn numbers(stored: &[u8], out: &mut [u8]) -> Written {
    let (file, chunks) = FileDecompressor::new(stored).map_err(|error| damaged(&error))?;
    let Some(number) = file.peek_number_type_or_termination(chunks).map_err(|error| damaged(&error))? else {
        return Ok(0);
    };
    match number {
        NumberType::F16 => decode::<f16, 2>(&file, chunks, out, f16::to_le_bytes),
        NumberType::F32 => decode::<f32, 4>(&file, chunks, out, f32::to_le_bytes),
        NumberType::F64 => decode::<f64, 8>(&file, chunks, out, f64::to_le_bytes),
        NumberType::I8 => decode::<i8, 1>(&file, chunks, out, i8::to_le_bytes),
        NumberType::I16 => decode::<i16, 2>(&file, chunks, out, i16::to_le_bytes),
        NumberType::I32 => decode::<i32, 4>(&file, chunks, out, i32::to_le_bytes),
        NumberType::I64 => decode::<i64, 8>(&file, chunks, out, i64::to_le_bytes),
        NumberType::U8 => decode::<u8, 1>(&file, chunks, out, u8::to_le_bytes),
        NumberType::U16 => decode::<u16, 2>(&file, chunks, out, u16::to_le_bytes),
        NumberType::U32 => decode::<u32, 4>(&file, chunks, out, u32::to_le_bytes),
        NumberType::U64 => decode::<u64, 8>(&file, chunks, out, u64::to_le_bytes),
        #[allow(unreachable_patterns)]
        other => Err(Fault::Invalid(format!("{NAME} with numbers of type {other:?} is not supported"))),
    }
}

fn decode<T: Number, const SIZE: usize>(
    file: &FileDecompressor,
    mut chunks: &[u8],
    out: &mut [u8],
    bytes: fn(T) -> [u8; SIZE],
) -> Written {
    let mut filled = 0;
    let mut part = vec![T::default(); PART];
    while let DecompressorItem::Chunk(mut chunk) =
        file.chunk_decompressor::<T, _>(chunks).map_err(|error| damaged(&error))?
    {
        let mut left = chunk.n();
        let room = out.len().saturating_sub(filled) / SIZE;
        if left > room {
            return Err(Fault::NoRoom);
        }
        while left > 0 {
            let count = left.min(PART);
            let progress = chunk.read(&mut part).map_err(|error| damaged(&error))?;
            if progress.n_processed != count {
                return Err(damaged(&"a chunk ends early"));
            }
            let target = out.get_mut(filled..filled + count * SIZE).ok_or(Fault::NoRoom)?;
            for (to, number) in target.as_chunks_mut().0.iter_mut().zip(&part) {
                *to = bytes(*number);
            }
            filled += count * SIZE;
            left -= count;
        }
        chunks = chunk.into_src();
    }
    Ok(filled)
}
