//! Chunks that are wavelet coded: bit planes of wavelet coefficients, and with the lossless methods what is missing to the
//! exact samples.
//!
//! ```text
//! header      which parts there are, and where
//! bands       how the chunk's box is halved, step by step
//! links       which coefficients hang on which
//! walk        the tree bits: which coefficients are coded, and where their bits are
//! values      the bits: coefficients
//! transform   the picture, row by row (lifting: its arithmetic)
//! no_value normals zero_runs residual (fse)
//!             what is done to each row of the picture
//! samples     floats to the stored type
//! ```
//!
//! All arithmetic is f32, each operation rounded on its own, for integers too: the residual fits only exactly the
//! picture that the writer had.

mod adaptive;
mod bands;
mod cursor;
mod error;
mod fse;
mod header;
mod lifting;
mod links;
mod no_value;
mod node;
mod normals;
mod residual;
mod samples;
mod scratch;
mod transform;
mod values;
mod walk;
mod zero_runs;

#[cfg(test)]
mod reference_tests;
#[cfg(test)]
mod tests;

pub use adaptive::{ADAPTIVE, needed};
pub use error::{Part, WaveletError};
pub use scratch::{Scratch, working_set};

pub use bands::LONGEST;
use cursor::{Cursor, floats};
use header::Parts;
use lifting::Lifting;
use no_value::NoValueRuns;
use normals::Normals;
use residual::Residual;
use samples::{Finish, Store};
use values::{Picture, Scale, Twice};
use walk::Counts;

/// The types that wavelet chunks can be of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sample {
    /// 32-bit floats.
    F32,
    /// Codes of one byte.
    U8,
    /// Codes of two bytes.
    U16,
}

impl Sample {
    /// Bytes of one.
    #[must_use]
    pub fn bytes(self) -> usize {
        match self {
            Self::U8 => 1,
            Self::U16 => 2,
            Self::F32 => 4,
        }
    }
}

/// What a chunk has to be.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Expected {
    /// Samples along X, Y and Z, X being the fastest.
    pub size: [usize; 3],
    /// The type of the samples.
    pub sample: Sample,
    /// The channel's NoValue, if it has one.
    pub no_value: Option<f32>,
    /// What codes are multiplied with: the real value is code * scale + offset.
    pub scale: f32,
    /// What is then added.
    pub offset: f32,
    /// One of the NormalizeBlock methods.
    pub normalized: bool,
    /// One of the lossless methods.
    pub lossless: bool,
}

/// Decodes a chunk into `out`: X fastest, little-endian, exactly as many bytes as the samples have.
///
/// Without a `level` the whole chunk is needed, and everything that it holds counts, the residual as well. With one, the
/// bit planes below it do not count; [`needed`] says how many bytes of the chunk it takes. The last level is 15.
///
/// # Errors
/// [`WaveletError`]: which part of the chunk is damaged. `out` is then arbitrary.
pub fn decode(
    chunk: &[u8],
    expected: &Expected,
    level: Option<u8>,
    scratch: &mut Scratch,
    out: &mut [u8],
) -> Result<(), WaveletError> {
    let bytes = expected.sample.bytes();
    let samples = expected.size.iter().try_fold(1usize, |n, s| n.checked_mul(*s).filter(|_| (1..=LONGEST).contains(s)));
    if samples.and_then(|s| s.checked_mul(bytes)) != Some(out.len()) {
        return Err(WaveletError::Request(expected.size, out.len()));
    }
    let parts = Parts::read(chunk, expected, level.is_some())?;
    let store = Store::new(expected, parts.coding.integer);
    let mut rows = out.chunks_exact_mut(expected.size[0] * bytes);
    picture(&parts, expected, level, scratch, |row| {
        if let Some(out) = rows.next() {
            store.row(row, out);
        }
    })
}

/// Decodes a chunk that is taken apart; the rows of its picture go to `sink`, in order.
fn picture(
    parts: &Parts<'_>,
    expected: &Expected,
    level: Option<u8>,
    scratch: &mut Scratch,
    mut sink: impl FnMut(&[f32]),
) -> Result<(), WaveletError> {
    let coding = &parts.coding;
    let [width, height, depth] = coding.size;
    let samples = width * height * depth;
    let Scratch { picture, links, lists, buffers, zero_runs, column, normals, planes } = scratch;
    if parts.zero {
        let row = [0.0; LONGEST];
        (0..height * depth).for_each(|_| sink(&row[..width]));
        return Ok(());
    }
    links.fit(coding);
    scratch::room(picture, samples);
    let picture = &mut picture[..samples];
    picture.fill(0.0);

    let highest = levels(parts.thresholds)?;
    let mut stream = Cursor::new(parts.stream);
    let counts = Counts::read(&mut stream, links.all_plain)?;
    coarse(&mut stream, &links.bands, picture)?;
    let lowest = level.unwrap_or(0).min(ADAPTIVE - 1);
    let mut target = Picture { samples: picture, size: coding.size, twice: Twice::Never };
    if let Some(highest) = highest
        && highest >= lowest
    {
        walk::walk(&mut stream, links, &counts, highest, lowest, lists)?;
        target.twice = match (links.twice, expected.lossless && level.is_none()) {
            (false, _) => Twice::Never,
            (true, true) => Twice::Later,
            (true, false) => Twice::First,
        };
        let [finest, _] = parts.thresholds;
        let scale = Scale { lowest, finest, base: if coding.integer { 0.0 } else { finest / 2.0 } };
        values::write(parts.stream, links, lists, scale, &mut target);
    }

    let has_zeros = zero_runs::read(parts.zero_runs, coding.size, planes.table(), column, zero_runs)?;
    let mut finish = Finish {
        height,
        rows: 0,
        no_value: parts.no_value.map(|(value, codes)| NoValueRuns::new(codes, expected.no_value.unwrap_or(value))),
        normals: expected.normalized.then(|| Normals::new(parts.normals, coding.size, normals)),
        zero_runs: if has_zeros { zero_runs } else { &[] },
        residual: parts.residual.map(|coded| Residual::new(coded, samples, planes)).transpose()?,
    };
    let lifting = Lifting::new(coding.integer, coding.gain);
    transform::inverse(picture, &links.bands, lifting, buffers, |row| {
        finish.row(row)?;
        sink(row);
        Ok(())
    })
}

/// The highest level, `None` if there is none at all.
fn levels([finest, coarsest]: [f32; 2]) -> Result<Option<u8>, WaveletError> {
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

/// Reads part C: the coefficients that are no children of anything.
fn coarse(stream: &mut Cursor<'_>, bands: &bands::Bands, picture: &mut [f32]) -> Result<(), WaveletError> {
    let step = bands.coarse();
    let [width, height, _] = bands.size[0];
    let mut put = |from: [usize; 3], to: [usize; 3]| {
        for z in from[2]..to[2] {
            for y in from[1]..to[1] {
                let row = &mut picture[(z * height + y) * width..][from[0]..to[0]];
                let values = floats(stream.take(4 * row.len(), Part::Coarse)?);
                row.iter_mut().zip(values).for_each(|(sample, value)| *sample = value);
            }
        }
        Ok(())
    };
    if bands.steps < 2 {
        return put([0; 3], bands.size[0]);
    }
    put([0; 3], bands.size[bands.steps])?;
    for sector in bands::subsets(bands.mask[step]) {
        let (from, to) = bands.sector(step, sector);
        put(from, to)?;
    }
    Ok(())
}
