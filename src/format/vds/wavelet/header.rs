//! The parts of a chunk: where each of them lies.

use super::cursor::{Cursor, up4};
use super::error::{Part, WaveletError};
use super::{Expected, Sample};

/// Bytes in front of the first part.
const HEADER: usize = 24;
/// The only versions there are.
const VERSIONS: std::ops::RangeInclusive<i32> = 671..=673;
/// The last version whose trees have the old rule for plain nodes.
const LAST_OLD: i32 = 672;

/// The data are integers, held as floats.
const INTEGER: u32 = 1;
/// The transform has no gain.
const NO_GAIN: u32 = 2;
/// Integers with a residual.
const INTEGER_RESIDUAL: u32 = 4;
/// The integers have 16 bits.
const WIDE: u32 = 8;

/// What the header says of a chunk's coding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Coding {
    /// Size of the chunk, X first.
    pub size: [usize; 3],
    /// Dimensions as the chunk counts them; one more than needed if Z is 1.
    pub dims: usize,
    /// Nodes are plain by the rule of the versions before 673.
    pub old: bool,
    /// Values are integers, and are rounded in the transform.
    pub integer: bool,
    /// The transform scales its low half.
    pub gain: bool,
}

/// A chunk, taken apart.
pub(super) struct Parts<'a> {
    pub coding: Coding,
    /// All samples are zero, and there is nothing else.
    pub zero: bool,
    /// Counts of leading zeros, coded.
    pub zero_runs: &'a [u8],
    /// The writer's NoValue, and which samples are so.
    pub no_value: Option<(f32, &'a [u8])>,
    /// Factors for blocks of 8 x 8 x 8; empty but for the normalised methods.
    pub normals: &'a [u8],
    /// The finest threshold and the coarsest one.
    pub thresholds: [f32; 2],
    /// The bit planes.
    pub stream: &'a [u8],
    /// Four coded planes, if they are there and are asked for.
    pub residual: Option<&'a [u8]>,
}

impl<'a> Parts<'a> {
    /// Takes a chunk apart. `prefix`: the chunk's end may be missing, and its residual is not wanted.
    pub fn read(chunk: &'a [u8], expected: &Expected, prefix: bool) -> Result<Self, WaveletError> {
        let mut cursor = Cursor::new(chunk);
        let mut next = || cursor.i32(Part::Header);
        let (version, total, said, flags) = (next()?, next()?, [next()?, next()?, next()?], next()? as u32);
        if !VERSIONS.contains(&version) {
            return Err(WaveletError::Version(version));
        }
        let found = chunk.len();
        if usize::try_from(total)
            .map_or(true, |total| total < HEADER || if prefix { total < found } else { total != found })
        {
            return Err(WaveletError::Total { said: total, found });
        }
        let dims = (flags & 0xff) as usize;
        let flags = flags >> 8;
        let integer = flags & INTEGER != 0;
        let fits = match expected.sample {
            Sample::F32 => !integer,
            Sample::U8 => !integer || flags & WIDE == 0,
            Sample::U16 => !integer || flags & WIDE != 0,
        };
        if !(1..=3).contains(&dims) || flags > 15 || !fits {
            return Err(WaveletError::Flags(flags << 8 | dims as u32));
        }
        // sizes beyond the dimensions are not specified
        let is_size = |d: usize| usize::try_from(said[d]).is_ok_and(|said| said == expected.size[d]);
        if !(0..3).all(|d| if d < dims { is_size(d) } else { expected.size[d] == 1 }) {
            return Err(WaveletError::Size { said, wanted: expected.size });
        }
        let coding =
            Coding { size: expected.size, dims, old: version <= LAST_OLD, integer, gain: flags & NO_GAIN == 0 };
        let mut parts = Self {
            coding,
            zero: total as usize == HEADER,
            zero_runs: &[],
            no_value: None,
            normals: &[],
            thresholds: [0.0; 2],
            stream: &[],
            residual: None,
        };
        if !parts.zero {
            let residual = expected.lossless && !prefix && (!integer || flags & INTEGER_RESIDUAL != 0);
            parts.read_rest(cursor, expected.normalized, residual)?;
        }
        Ok(parts)
    }

    fn read_rest(&mut self, mut cursor: Cursor<'a>, normalized: bool, residual: bool) -> Result<(), WaveletError> {
        // this length counts itself
        let length = cursor.i32(Part::ZeroRuns)?;
        let bytes = usize::try_from(length).ok().and_then(|z| z.checked_sub(4));
        let bytes = bytes.ok_or(WaveletError::Length(Part::ZeroRuns, length))?;
        self.zero_runs = cursor.take(bytes, Part::ZeroRuns)?;
        cursor.skip(up4(bytes) - bytes);

        let length = cursor.i32(Part::NoValue)?;
        if length != -1 {
            let bytes = usize::try_from(length).map_err(|_| WaveletError::Length(Part::NoValue, length))?;
            self.no_value = Some((cursor.f32(Part::NoValue)?, cursor.take(bytes, Part::NoValue)?));
            cursor.skip(up4(bytes) - bytes);
        }

        if normalized {
            let blocks: usize = self.coding.size.iter().map(|s| s.div_ceil(8)).product();
            self.normals = cursor.take(4 * blocks, Part::Normals)?;
        }

        self.thresholds = [cursor.f32(Part::Thresholds)?, cursor.f32(Part::Thresholds)?];
        let length = cursor.i32(Part::Thresholds)?;
        let bytes = usize::try_from(length).map_err(|_| WaveletError::Length(Part::Stream, length))?;
        let rest = cursor.rest();
        if residual {
            self.stream = cursor.take(bytes, Part::Stream)?;
            cursor.skip(up4(bytes) - bytes);
            self.residual = Some(cursor.rest());
        } else {
            // of a prefix the stream's end may be missing: it counts what is read
            self.stream = rest.get(..bytes).unwrap_or(rest);
        }
        Ok(())
    }
}
