//! Decoding of a whole chunk, from its bytes to samples of the stored type.

use super::adaptive_levels::ADAPTIVE_LEVELS;
use super::bands::{Bands, MAX_SIDE, subsets};
use super::bit_planes::{self, CoefficientArray, Duplicates, Scale};
use super::error::{ChunkPart, WaveletError};
use super::expected::Expected;
use super::grow::grow_to;
use super::header::ChunkParts;
use super::lifting::Lifting;
use super::no_value::NoValueRuns;
use super::normals::Normals;
use super::residual::Residual;
use super::row_output::{RowCorrections, SampleEncoder};
use super::scratch::Scratch;
use super::walk::{self, Counts};
use super::{transform, zero_runs};
use crate::format::bytes::{ByteReader, f32_values};

/// Decodes a chunk into `out`: X fastest, little-endian, exactly as many bytes as the samples have.
///
/// Without a `level` the whole chunk is needed and decoded, the residual included. With a level (0 to 15) the bit
/// planes below it are left out, and so is the residual; `chunk` may then be the prefix that
/// [`bytes_needed`](super::bytes_needed) counts. On failure `out` is arbitrary.
pub(crate) fn decode(
    chunk: &[u8],
    expected: &Expected,
    level: Option<u8>,
    scratch: &mut Scratch,
    out: &mut [u8],
) -> Result<(), WaveletError> {
    let bytes = expected.sample.bytes();
    let samples =
        expected.size.iter().try_fold(1usize, |n, s| n.checked_mul(*s).filter(|_| (1..=MAX_SIDE).contains(s)));
    if samples.and_then(|s| s.checked_mul(bytes)) != Some(out.len()) {
        return Err(WaveletError::Request(expected.size, out.len()));
    }
    let parts = ChunkParts::read(chunk, expected, level.is_some())?;
    let encoder = SampleEncoder::new(expected, parts.coding.integer);
    let mut rows = out.chunks_exact_mut(expected.size[0] * bytes);
    reconstruct(&parts, expected, level, scratch, |row| {
        if let Some(out) = rows.next() {
            encoder.row(row, out);
        }
    })
}

/// Reconstructs the samples of a chunk as floats; `sink` is given their rows in order.
pub(super) fn reconstruct(
    parts: &ChunkParts<'_>,
    expected: &Expected,
    level: Option<u8>,
    scratch: &mut Scratch,
    mut sink: impl FnMut(&[f32]),
) -> Result<(), WaveletError> {
    let coding = &parts.coding;
    let [width, height, depth] = coding.size;
    let samples = width * height * depth;
    let Scratch { coefficients, links, lists, buffers, zero_runs, column, normals, planes } = scratch;
    if parts.zero {
        let row = [0.0; MAX_SIDE];
        (0..height * depth).for_each(|_| sink(&row[..width]));
        return Ok(());
    }
    links.fit(coding);
    grow_to(coefficients, samples);
    let coefficients = &mut coefficients[..samples];
    coefficients.fill(0.0);

    let highest = highest_level(parts.thresholds)?;
    let mut stream = ByteReader::new(ChunkPart::Counts, parts.stream);
    let counts = Counts::read(&mut stream, links.all_plain)?;
    read_coarse(&mut stream, &links.bands, coefficients)?;
    let lowest = level.unwrap_or(0).min(ADAPTIVE_LEVELS - 1);
    let mut target = CoefficientArray { samples: coefficients, size: coding.size, duplicates: Duplicates::None };
    if let Some(highest) = highest
        && highest >= lowest
    {
        walk::walk(&mut stream, links, &counts, highest, lowest, lists)?;
        target.duplicates = match (links.may_repeat, expected.lossless && level.is_none()) {
            (false, _) => Duplicates::None,
            (true, true) => Duplicates::LastWins,
            (true, false) => Duplicates::FirstNonZeroWins,
        };
        let [finest, _] = parts.thresholds;
        let scale = Scale { lowest, finest, base: if coding.integer { 0.0 } else { finest / 2.0 } };
        bit_planes::write(parts.stream, links, lists, scale, &mut target);
    }

    let has_zeros = zero_runs::read(parts.zero_runs, coding.size, planes.table(), column, zero_runs)?;
    let mut corrections = RowCorrections {
        height,
        rows: 0,
        no_value: parts.no_value.map(|(value, codes)| NoValueRuns::new(codes, expected.no_value.unwrap_or(value))),
        normals: expected.normalized.then(|| Normals::new(parts.normals, coding.size, normals)),
        zero_runs: if has_zeros { zero_runs } else { &[] },
        residual: parts.residual.map(|coded| Residual::new(coded, samples, planes)).transpose()?,
    };
    let lifting = Lifting::new(coding.integer, coding.gain);
    transform::inverse(coefficients, &links.bands, lifting, buffers, |row| {
        corrections.row(row)?;
        sink(row);
        Ok(())
    })
}

/// Returns the level of the coarsest threshold, level 0 being that of the finest; `None` if there is no level.
fn highest_level([finest, coarsest]: [f32; 2]) -> Result<Option<u8>, WaveletError> {
    let wrong = || WaveletError::Thresholds(finest.to_string(), coarsest.to_string());
    if !finest.is_finite() || !coarsest.is_finite() || finest <= 0.0 {
        return Err(wrong());
    }
    let mut threshold = coarsest;
    let mut levels = 0u32;
    while threshold >= finest {
        threshold *= 0.5;
        levels += 1;
    }
    levels.checked_sub(1).map(|highest| u8::try_from(highest).map_err(|_| wrong())).transpose()
}

/// Reads the coefficients of the coarsest subbands, which are not children of any node: the stream has them as plain
/// floats.
fn read_coarse(
    stream: &mut ByteReader<'_, ChunkPart>,
    bands: &Bands,
    coefficients: &mut [f32],
) -> Result<(), WaveletError> {
    stream.enter(ChunkPart::Coarse);
    let step = bands.coarse();
    let [width, height, _] = bands.size[0];
    let mut put = |from: [usize; 3], to: [usize; 3]| {
        for z in from[2]..to[2] {
            for y in from[1]..to[1] {
                let row = &mut coefficients[(z * height + y) * width..][from[0]..to[0]];
                let values = f32_values(stream.take(4 * row.len())?);
                row.iter_mut().zip(values).for_each(|(sample, value)| *sample = value);
            }
        }
        Ok(())
    };
    if bands.steps < 2 {
        return put([0; 3], bands.size[0]);
    }
    put([0; 3], bands.size[bands.steps])?;
    for sector in subsets(bands.mask[step]) {
        let (from, to) = bands.sector(step, sector);
        put(from, to)?;
    }
    Ok(())
}
