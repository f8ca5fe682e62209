//! Chunks compressed by OpenVDS's wavelet methods: bit planes of wavelet coefficients, and for the lossless methods a
//! residual that makes the reconstructed samples exact.
//!
//! The chunk is decomposed into subbands by halving its box, step by step. Coefficients are coded in the manner of a
//! zerotree (as in SPIHT): a tree says, one threshold (*level*) after the other, which coefficients are significant;
//! the coefficients then have a bit in the plane of each lower level.
//!
//! ```text
//! header        which parts the chunk has, and where
//! tree          the nested boxes and their subbands, and which coefficients are children of which
//! walk          the tree bits: which coefficients are coded, and where their bits are
//! bit_planes    the bits: coefficients
//! transform     the inverse wavelet transform, row by row
//! corrections   of each row: NoValue, block normals, zero runs; conversion to the stored type
//! residual      the last correction, and its entropy coder
//! ```
//!
//! All arithmetic is f32 and each operation is rounded on its own, for integers too: the residual fits only the bits
//! that the writer's reconstruction had.

mod bit_planes;
mod corrections;
mod header;
mod residual;
#[cfg(test)]
mod tests;
mod transform;
mod tree;
mod walk;

use bit_planes::{CoefficientArray, Duplicates, Scale};
use corrections::{NoValueRuns, Normals, RowCorrections, SampleEncoder, read_zero_runs};
use header::ChunkParts;
use residual::{Planes, Residual};
use transform::{Lifting, TransformBuffers};
pub(crate) use tree::MAX_SIDE;
use tree::{Bands, TreeLinks, has, subsets};
use walk::{COUNTED_LEVELS, EntryLists, MAX_REPEATS};

use crate::format::bytes::{ByteReader, PastEnd, f32_values};
use crate::memory::try_with_capacity;
use crate::sync::{LazyPerProcess, Mutex};
use crate::volume::Dtype;

/// The properties that a chunk must have.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Expected {
    /// Samples along X, Y and Z, of which X is the fastest.
    pub size: [usize; 3],
    /// The type of the samples: float32, or codes as uint8 or uint16.
    pub dtype: Dtype,
    pub no_value: Option<f32>,
    /// The factor of codes: the real value is code * scale + offset.
    pub scale: f32,
    /// The real value of code 0.
    pub offset: f32,
    pub normalized: bool,
    pub lossless: bool,
}

// The parts of a chunk that several files name in errors.
const ZERO_RUNS: &str = "the zero runs";
const NO_VALUE: &str = "the NoValue runs";
const STREAM: &str = "the bit-plane stream";

impl From<PastEnd> for String {
    fn from(PastEnd(part): PastEnd) -> Self {
        past_end(part)
    }
}

fn past_end(part: &str) -> String {
    format!("the data ends within {part}")
}

fn no_length(part: &str, length: i32) -> String {
    format!("{length} is no length for {part}")
}

fn no_fse(part: &str, why: &str) -> String {
    format!("{part}: no valid FSE block, {why}")
}

/// Levels in the table of a chunk's metadata.
pub(crate) const ADAPTIVE_LEVELS: u8 = 16;

/// Returns how many of the `whole` bytes of a chunk are needed to decode it at a level: all without a level, else what
/// the chunk's adaptive table says. Level 0 leaves out only the lossless residual; each further level leaves out one
/// more bit plane.
///
/// An entry of the table is the fraction, in 255ths, of the bytes of the level before it; zero ends the table.
pub(crate) fn bytes_needed(table: &[u8; ADAPTIVE_LEVELS as usize], whole: u64, level: Option<u8>) -> u64 {
    let Some(level) = level else { return whole };
    let factors = table.iter().take(usize::from(level) + 1).take_while(|factor| **factor != 0);
    factors.fold(whole, |bytes, factor| (u128::from(bytes) * u128::from(*factor) / 255) as u64)
}

/// Decodes a chunk into `out`: X fastest, little-endian, exactly as many bytes as the samples have.
///
/// Without a `level` the whole chunk is needed and decoded, the residual included. With a level (0 to 15) the bit
/// planes below it are left out, and so is the residual; `chunk` may then be the prefix that
/// [`bytes_needed`] counts. On failure `out` is arbitrary.
pub(crate) fn decode(
    chunk: &[u8],
    expected: &Expected,
    level: Option<u8>,
    scratch: &mut Scratch,
    out: &mut [u8],
) -> Result<(), String> {
    let bytes = expected.dtype.size();
    let samples =
        expected.size.iter().try_fold(1usize, |n, s| n.checked_mul(*s).filter(|_| (1..=MAX_SIDE).contains(s)));
    if samples.and_then(|s| s.checked_mul(bytes)) != Some(out.len()) {
        let (size, bytes) = (expected.size, out.len());
        return Err(format!("a chunk of {size:?} samples cannot be decoded into {bytes} bytes"));
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
fn reconstruct(
    parts: &ChunkParts<'_>,
    expected: &Expected,
    level: Option<u8>,
    scratch: &mut Scratch,
    mut sink: impl FnMut(&[f32]),
) -> Result<(), String> {
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
    grow_to(coefficients, samples)?;
    let coefficients = &mut coefficients[..samples];
    coefficients.fill(0.0);

    let highest = highest_level(parts.thresholds)?;
    let mut stream = ByteReader::new("the counts of entries", parts.stream);
    // without singles there are no counts of them
    let blocks = stream.several(ByteReader::i32)?;
    let counts = [blocks, if links.all_plain { [0; COUNTED_LEVELS] } else { stream.several(ByteReader::i32)? }];
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

    let has_zeros = read_zero_runs(parts.zero_runs, coding.size, &mut planes.tables[0], column, zero_runs)?;
    let mut corrections = RowCorrections {
        height,
        rows: 0,
        no_value: parts.no_value.map(|(value, codes)| NoValueRuns::new(codes, expected.no_value.unwrap_or(value))),
        normals: expected.normalized.then(|| Normals::new(parts.normals, coding.size, normals)).transpose()?,
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
fn highest_level([finest, coarsest]: [f32; 2]) -> Result<Option<u8>, String> {
    let wrong = || format!("thresholds {finest} and {coarsest} make no sense");
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
fn read_coarse(stream: &mut ByteReader<'_>, bands: &Bands, coefficients: &mut [f32]) -> Result<(), String> {
    stream.enter("the coarse coefficients");
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
    let step = bands.steps - 1;
    for sector in subsets(bands.mask[step]) {
        let (from, to) = bands.sector(step, sector);
        put(from, to)?;
    }
    Ok(())
}

/// Memory that is used again from chunk to chunk: a chunk that is no larger than an earlier one allocates nothing.
#[derive(Debug, Default)]
pub(crate) struct Scratch {
    /// The wavelet coefficients, which the transform converts to samples.
    coefficients: Vec<f32>,
    /// The tree's structure, which depends on the shape of the chunk.
    links: TreeLinks,
    /// Nodes and entries.
    lists: EntryLists,
    /// Rows and planes of the transform.
    buffers: TransformBuffers,
    /// Counts of leading zeros, one for each row.
    zero_runs: Vec<u16>,
    /// The low or high bytes of those counts.
    column: Vec<u8>,
    /// The block normals, interpolated along X.
    normals: Vec<f32>,
    /// The decoders of the residual.
    planes: Planes,
}

impl Scratch {
    pub(crate) fn bytes(&self) -> usize {
        let floats = self.coefficients.capacity() + self.normals.capacity() + self.buffers.floats();
        4 * floats
            + 2 * self.zero_runs.capacity()
            + self.column.capacity()
            + self.lists.bytes()
            + self.links.bytes()
            + self.planes.bytes()
    }
}

/// Returns the most bytes that a [`Scratch`] allocates for chunks of `size` samples (X first), whatever their content.
pub(crate) fn working_set(size: [usize; 3]) -> usize {
    let bands = Bands::new(size);
    let samples = bands.volume(0);
    let half = if bands.steps > 0 { bands.volume(1) } else { 0 };
    let plane = if has(bands.mask[0], 2) { size[0] * size[1] } else { 0 };
    let repeats = if bands.may_be_faulty() { MAX_REPEATS } else { 1 };
    // four bytes each: the coefficients, their entries, nodes in two lists, and the box of the second step
    let lists = 4 * (samples + repeats * samples + 2 * repeats * half + half);
    let planes = 4 * 5 * plane;
    // counts of zeros and one of their columns, and factors for every eighth row
    let rows = 3 * size[1] * size[2] + 4 * size[0] * size[1].div_ceil(8) * size[2].div_ceil(8);
    lists + planes + rows + FIXED
}

/// Bytes that do not depend on the size: decoding tables, blocks of the residual, a few rows, tree links.
const FIXED: usize = 256 << 10;

/// Makes `items` at least `count` long, with arbitrary content, in no more memory than the largest count so far needs.
fn grow_to<T: Copy + Default>(items: &mut Vec<T>, count: usize) -> Result<(), String> {
    if items.capacity() < count {
        // frees the old memory before it allocates the new
        *items = Vec::new();
        *items = try_with_capacity(count).map_err(|e| e.to_string())?;
    }
    if items.len() < count {
        items.resize(count, T::default());
    }
    Ok(())
}

/// The most bytes that the pool keeps while no decoder is running.
const MAX_IDLE_BYTES: usize = 40 << 20;

/// Scratch memory that decoders share, so that each chunk does not allocate its own: how many are in use, and the
/// others. There are never more than decoders have run at a time.
static POOL: LazyPerProcess<Mutex<(usize, Vec<Scratch>)>> = LazyPerProcess::new(|| Mutex::new((0, Vec::new())));

/// Calls `decode` with scratch memory from the pool.
pub(crate) fn with_scratch<T>(decode: impl FnOnce(&mut Scratch) -> T) -> T {
    let scratch = {
        let mut pool = POOL.lock();
        pool.0 += 1;
        pool.1.pop().unwrap_or_default()
    };
    decode(&mut ScratchInUse(scratch).0)
}

/// Frees the scratch memory that no decoder uses.
pub(crate) fn release_idle() {
    let idle = std::mem::take(&mut POOL.lock().1);
    drop(idle);
}

/// Scratch memory in use. It returns to the pool even if the decoder panics.
struct ScratchInUse(Scratch);

impl Drop for ScratchInUse {
    fn drop(&mut self) {
        let mut dropped = Vec::new();
        let mut pool = POOL.lock();
        pool.0 -= 1;
        pool.1.push(std::mem::take(&mut self.0));
        let mut bytes: usize = pool.1.iter().map(Scratch::bytes).sum();
        while pool.0 == 0 && bytes > MAX_IDLE_BYTES {
            let Some(scratch) = pool.1.pop() else { break };
            bytes -= scratch.bytes();
            dropped.push(scratch);
        }
        // memory is freed after the lock is released
        drop(pool);
    }
}
