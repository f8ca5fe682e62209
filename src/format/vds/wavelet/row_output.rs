//! The rows that come from the transform: corrections, and conversion to the stored type.

use super::error::WaveletError;
use super::expected::{Expected, Sample};
use super::no_value::NoValueRuns;
use super::normals::Normals;
use super::residual::Residual;

/// The corrections of reconstructed rows, in the order of the fields from `no_value` on.
pub(super) struct RowCorrections<'a> {
    /// Rows in a plane.
    pub height: usize,
    /// Rows that were corrected.
    pub rows: usize,
    /// The mask of NoValue samples.
    pub no_value: Option<NoValueRuns<'a>>,
    /// The block normals.
    pub normals: Option<Normals<'a>>,
    /// The number of leading zeros of each row; empty if the chunk has no counts.
    pub zero_runs: &'a [u16],
    /// The residual that makes samples exact.
    pub residual: Option<Residual<'a>>,
}

impl RowCorrections<'_> {
    /// Corrects the next row.
    pub(crate) fn row(&mut self, row: &mut [f32]) -> Result<(), WaveletError> {
        if let Some(runs) = &mut self.no_value {
            runs.apply(row)?;
        }
        if let Some(normals) = &self.normals {
            normals.apply(row, self.rows % self.height, self.rows / self.height);
        }
        if let Some(zeros) = self.zero_runs.get(self.rows) {
            let zeros = usize::from(*zeros).min(row.len());
            row[..zeros].fill(0.0);
        }
        if let Some(residual) = &mut self.residual {
            residual.apply(row)?;
        }
        self.rows += 1;
        Ok(())
    }
}

/// How reconstructed floats become stored samples.
#[derive(Clone, Copy, Debug)]
pub(super) enum SampleEncoder {
    /// Unchanged.
    F32,
    /// Codes of one byte.
    U8(Codes),
    /// Codes of two bytes.
    U16(Codes),
}

/// The conversion of floats to codes: (value - offset) * scale, rounded and clamped.
#[derive(Clone, Copy, Debug)]
pub(super) struct Codes {
    /// The real value of code 0.
    offset: f32,
    /// Codes in a step of 1.
    scale: f32,
    /// The largest code.
    most: f32,
    /// The channel's NoValue, whose code is the largest of the type.
    no_value: Option<f32>,
}

impl Codes {
    fn new(expected: &Expected, integer: bool, max_code: u16) -> Self {
        let no_value = expected.no_value;
        let most = f32::from(if no_value.is_some() { max_code - 1 } else { max_code });
        if integer {
            return Self { offset: 0.0, scale: 1.0, most, no_value };
        }
        let low = expected.offset;
        let high = expected.scale * most + low;
        Self { offset: low, scale: most / (high - low), most, no_value }
    }

    #[inline(always)]
    fn code(&self, value: f32, no_value: u16) -> u16 {
        let q = (value - self.offset) * self.scale;
        // NaN becomes 0
        let code = (q.max(0.0).min(self.most) + 0.5) as i32 as u16;
        match self.no_value {
            Some(none) if none == value => no_value,
            _ => code,
        }
    }
}

impl SampleEncoder {
    /// Creates the conversion to the expected type. The reconstructed floats are codes already if the chunk is
    /// `integer`, else real values.
    pub(crate) fn new(expected: &Expected, integer: bool) -> Self {
        match expected.sample {
            Sample::F32 => Self::F32,
            Sample::U8 => Self::U8(Codes::new(expected, integer, u8::MAX.into())),
            Sample::U16 => Self::U16(Codes::new(expected, integer, u16::MAX)),
        }
    }

    /// Converts a row.
    pub(crate) fn row(&self, row: &[f32], out: &mut [u8]) {
        match self {
            Self::F32 => {
                for (out, sample) in out.as_chunks_mut::<4>().0.iter_mut().zip(row) {
                    *out = sample.to_le_bytes();
                }
            }
            Self::U8(codes) => {
                for (out, sample) in out.iter_mut().zip(row) {
                    *out = codes.code(*sample, 255) as u8;
                }
            }
            Self::U16(codes) => {
                for (out, sample) in out.as_chunks_mut::<2>().0.iter_mut().zip(row) {
                    *out = codes.code(*sample, 65_535).to_le_bytes();
                }
            }
        }
    }
}
