//! The header of a chunk, and where each of its parts lies.

use super::{Expected, NO_VALUE, STREAM, ZERO_RUNS, no_length};
use crate::format::bytes::ByteReader;
use crate::volume::Dtype;

/// Bytes in front of the first part.
const HEADER: usize = 24;
/// The versions that exist.
const VERSIONS: std::ops::RangeInclusive<i32> = 671..=673;
/// The last version whose trees follow the old rule for plain nodes.
const LAST_OLD: i32 = 672;

/// Samples are integers, held as floats.
const INTEGER: u32 = 1;
/// The transform has no gain.
const NO_GAIN: u32 = 2;
/// Integers have a residual.
const INTEGER_RESIDUAL: u32 = 4;
/// The integers have 16 bits.
const WIDE: u32 = 8;

/// How a chunk is coded, as its header says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Coding {
    /// Size of the chunk, X first.
    pub size: [usize; 3],
    /// The number of dimensions in the header; a chunk whose Z is 1 may have one more than it needs.
    pub dims: usize,
    /// Nodes are plain by the old rule.
    pub old: bool,
    /// Samples are integers, and are rounded in the transform.
    pub integer: bool,
    /// The transform scales its low half.
    pub gain: bool,
}

#[derive(Default)]
pub(super) struct ChunkParts<'a> {
    pub coding: Coding,
    /// All samples are zero, and the chunk has no other part.
    pub zero: bool,
    /// Coded counts of leading zeros.
    pub zero_runs: &'a [u8],
    /// The writer's NoValue, and the coded runs of samples that have it.
    pub no_value: Option<(f32, &'a [u8])>,
    /// Factors for blocks of 8 x 8 x 8 samples; empty unless the method is one of NormalizeBlock.
    pub normals: &'a [u8],
    /// The finest and the coarsest threshold.
    pub thresholds: [f32; 2],
    pub stream: &'a [u8],
    /// The residual's four coded planes, if the chunk has them and they are wanted.
    pub residual: Option<&'a [u8]>,
}

impl<'a> ChunkParts<'a> {
    /// Splits a chunk into its parts. With `prefix` the end of the chunk may be missing, and the residual is not
    /// wanted.
    pub(crate) fn read(chunk: &'a [u8], expected: &Expected, prefix: bool) -> Result<Self, String> {
        let mut reader = ByteReader::new("the header", chunk);
        let (version, total, announced, flags) =
            (reader.i32()?, reader.i32()?, reader.several::<_, 3>(ByteReader::i32)?, reader.u32()?);
        if !VERSIONS.contains(&version) {
            return Err(format!("wavelet version {version} is not known (671 to 673 are)"));
        }
        let found = chunk.len();
        if usize::try_from(total)
            .map_or(true, |total| total < HEADER || if prefix { total < found } else { total != found })
        {
            return Err(format!("the header says {total} bytes, there are {found}"));
        }
        let dims = (flags & 0xff) as usize;
        let flags = flags >> 8;
        let integer = flags & INTEGER != 0;
        let fits = match expected.dtype {
            Dtype::UInt8 => !integer || flags & WIDE == 0,
            Dtype::UInt16 => !integer || flags & WIDE != 0,
            _ => !integer,
        };
        if !(1..=3).contains(&dims) || flags > 15 || !fits {
            return Err(format!("the flags {:#x} do not fit the sample format", flags << 8 | dims as u32));
        }
        // sizes beyond the number of dimensions are not specified
        let is_size = |d: usize| usize::try_from(announced[d]).is_ok_and(|announced| announced == expected.size[d]);
        if !(0..3).all(|d| if d < dims { is_size(d) } else { expected.size[d] == 1 }) {
            return Err(format!("the header says {announced:?} samples, not {:?}", expected.size));
        }
        let coding =
            Coding { size: expected.size, dims, old: version <= LAST_OLD, integer, gain: flags & NO_GAIN == 0 };
        let mut parts = Self { coding, zero: total as usize == HEADER, ..Self::default() };
        if !parts.zero {
            let residual = expected.lossless && !prefix && (!integer || flags & INTEGER_RESIDUAL != 0);
            parts.read_rest(reader, expected.normalized, residual)?;
        }
        Ok(parts)
    }

    fn read_rest(&mut self, mut reader: ByteReader<'a>, normalized: bool, residual: bool) -> Result<(), String> {
        reader.enter(ZERO_RUNS);
        // this length includes its own four bytes
        let length = reader.i32()?;
        let bytes = usize::try_from(length).ok().and_then(|z| z.checked_sub(4));
        let bytes = bytes.ok_or_else(|| no_length(ZERO_RUNS, length))?;
        self.zero_runs = reader.take(bytes)?;
        reader.align(4);

        reader.enter(NO_VALUE);
        let length = reader.i32()?;
        if length != -1 {
            let bytes = usize::try_from(length).map_err(|_| no_length(NO_VALUE, length))?;
            self.no_value = Some((reader.f32()?, reader.take(bytes)?));
            reader.align(4);
        }

        if normalized {
            reader.enter("the block normals");
            let blocks: usize = self.coding.size.iter().map(|s| s.div_ceil(8)).product();
            self.normals = reader.take(4 * blocks)?;
        }

        reader.enter("the thresholds");
        self.thresholds = reader.several(ByteReader::f32)?;
        let length = reader.i32()?;
        let bytes = usize::try_from(length).map_err(|_| no_length(STREAM, length))?;
        if residual {
            reader.enter(STREAM);
            self.stream = reader.take(bytes)?;
            reader.align(4);
            self.residual = Some(reader.rest());
        } else {
            // the end of the stream may be missing from a prefix: the walk finds out whether it needs it
            let rest = reader.rest();
            self.stream = rest.get(..bytes).unwrap_or(rest);
        }
        Ok(())
    }
}
