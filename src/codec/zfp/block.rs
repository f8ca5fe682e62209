//! One block: its flags and its exponent, then its bit planes, then what becomes of them.

use super::bits::Window;
use super::coefficients::transpose;
use super::lift;
use super::line;
use super::params::Params;
use super::planes::{self, Extent, Planes, Read};
use super::scalar::{Int, Scalar};
use super::square::{self, Square};
use super::target::Target;

/// What the integers of a block are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Content {
    /// All samples are zero; there are no planes.
    Zero,
    /// Lossy samples; of floating-point numbers with the exponent of the block.
    Lossy(Option<i32>),
    /// Exact samples; of floating-point numbers with the exponent of the block.
    Exact(Option<i32>),
    /// The bits of floating-point numbers, exactly.
    Bits,
}

/// What comes before the planes of a block.
pub(super) struct Front {
    pub content: Content,
    /// The first bit of the planes.
    pub at: usize,
    pub extent: Extent,
}

impl Front {
    /// Reads what comes before the planes of a block that begins at bit `start` of the window.
    #[inline(always)]
    pub(super) fn read(window: Window<'_>, start: usize, scalar: Scalar, axes: u32, params: &Params) -> Self {
        let bits = window.some(start);
        let (exponent_bits, is_exact) = (scalar.exponent_bits(), params.is_reversible());
        let mut taken = 0;
        let mut take = |count: u32| {
            let value = bits >> taken & ((1 << count) - 1);
            taken += count;
            value as u32
        };
        let bias = (1 << exponent_bits >> 1) - 1;
        let exponent = |bits: u32| bits.cast_signed() - bias;
        let content = match scalar {
            Scalar::Int32 | Scalar::Int64 if is_exact => Content::Exact(None),
            Scalar::Int32 | Scalar::Int64 => Content::Lossy(None),
            _ if take(1) == 0 => Content::Zero,
            _ if is_exact && take(1) == 1 => Content::Bits,
            _ if is_exact => Content::Exact(Some(exponent(take(exponent_bits)))),
            _ => Content::Lossy(Some(exponent(take(exponent_bits)))),
        };
        let precision = match content {
            Content::Zero => 0,
            Content::Exact(_) | Content::Bits => take(scalar.precision_bits()) + 1,
            Content::Lossy(None) => params.max_precision,
            // the exponent says how many planes are above the tolerance, and the transform makes errors larger
            Content::Lossy(Some(exponent)) => {
                let above = exponent - params.min_exponent + 2 * axes.cast_signed() + 2;
                params.max_precision.min(above.max(0).cast_unsigned())
            }
        };
        let top = scalar.size() * 8;
        // a limit that the front exceeds wraps around, and limits nothing
        let budget = params.max_bits.wrapping_sub(taken) as usize;
        let extent = Extent { budget, top, low: top.saturating_sub(precision as usize) };
        Self { content, at: start + taken as usize, extent }
    }
}

/// A block of a stream.
#[derive(Clone, Copy)]
pub(super) struct Block<'a> {
    pub window: Window<'a>,
    /// The bit of the window that the block begins with.
    pub start: usize,
    pub scalar: Scalar,
    pub params: &'a Params,
}

impl Block<'_> {
    /// Decodes the block, and returns the number of bits that it takes.
    #[inline(always)]
    pub(super) fn decode<I: Int, const N: usize>(self, planes: &mut Planes, target: Target<'_>) -> u64 {
        let front = self.front::<N>();
        if front.content == Content::Zero {
            target.put(&[I::default(); N]);
            return self.length(front.at);
        }
        let (block, end) = match N {
            4 => self.line(&front),
            16 => {
                let mut square = Square::new();
                let start = planes::leading(self.window, front.at, front.extent);
                let place = square::read(self.window, &start, front.extent.low, |plane, word| square.put(plane, word));
                let samples = match place.known {
                    2..=4 => finished_corner(front.content, square.corner()),
                    known => finished_square(front.content, known, square.coefficients()),
                };
                (samples, place.at)
            }
            _ => {
                let read = planes::read_words::<N>(self.window, front.at, front.extent, planes);
                (samples(front.content, read, planes), read.end)
            }
        };
        target.put::<I, N>(&block);
        self.length(end)
    }

    /// Decodes a block of four samples, and returns the bit behind its planes as well.
    #[inline(always)]
    pub(super) fn line<I: Int, const N: usize>(self, front: &Front) -> ([I; N], usize) {
        let (coefficients, end) = line::read::<I>(self.window, front.at, front.extent);
        let mut block = [I::default(); N];
        block.iter_mut().zip(coefficients).for_each(|(to, coefficient)| *to = coefficient);
        (finished(front.content, block), end)
    }

    /// Returns the bits of the block, if its planes end at bit `end` of the window.
    #[inline(always)]
    pub(super) fn length(self, end: usize) -> u64 {
        u64::from(self.params.min_bits).max((end - self.start) as u64)
    }

    /// Reads what comes before the planes of a block of `N` samples.
    #[inline(always)]
    pub(super) fn front<const N: usize>(&self) -> Front {
        Front::read(self.window, self.start, self.scalar, N.ilog2() / 2, self.params)
    }
}

/// Turns planes to samples.
#[inline(always)]
pub(super) fn samples<I: Int, const N: usize>(content: Content, read: Read, planes: &Planes) -> [I; N] {
    let mut block = [I::default(); N];
    match read.known {
        0 | 1 => block = [plain(read, planes); N],
        _ => {
            transpose(planes, read.low, read.known, &mut block);
            transform(content, &mut block);
        }
    }
    scale(content, &mut block);
    block
}

/// Returns the integers of a block that has no coefficient but the first: they are all the same.
#[inline(always)]
fn plain<I: Int>(read: Read, planes: &Planes) -> I {
    let mut word = 0;
    if read.known > 0 {
        for (at, plane) in planes[0].iter().enumerate().take(read.top).skip(read.low) {
            word |= (plane & 1) << at;
        }
    }
    I::from_negabinary(word)
}

/// Turns coefficients to samples.
#[inline(always)]
pub(super) fn finished<I: Int, const N: usize>(content: Content, coefficients: [I; N]) -> [I; N] {
    let mut block = coefficients;
    transform(content, &mut block);
    scale(content, &mut block);
    block
}

/// Turns coefficients, of which the first `known` may have ones, to samples.
#[inline(always)]
pub(super) fn finished_square<I: Int, const N: usize>(content: Content, known: usize, coefficients: [I; N]) -> [I; N] {
    if known > 1 {
        return finished(content, coefficients);
    }
    // the first one alone makes all samples the same
    let mut block = [coefficients[0]; N];
    scale(content, &mut block);
    block
}

/// Turns the coefficients of a block of 4 x 4 that has none but those of its corner to samples: most of what is added
/// is 0.
#[inline(always)]
fn finished_corner<I: Int, const N: usize>(content: Content, corner: [[I; 2]; 2]) -> [I; N] {
    let lift = |[x, y]: [I; 2]| match content {
        Content::Lossy(_) | Content::Zero => lift::lossy_line([x, y, I::default(), I::default()]),
        Content::Exact(_) | Content::Bits => lift::reversible_line([x, y, I::default(), I::default()]),
    };
    let [[a, b], [c, d]] = corner;
    let mut block = [I::default(); N];
    for ((row, x), y) in block.as_chunks_mut().0.iter_mut().zip(lift([a, c])).zip(lift([b, d])) {
        *row = lift([x, y]);
    }
    scale(content, &mut block);
    block
}

/// Turns coefficients to the integers of a block.
#[inline(always)]
fn transform<I: Int, const N: usize>(content: Content, block: &mut [I; N]) {
    match content {
        Content::Lossy(_) | Content::Zero => lift::lossy(block),
        Content::Exact(_) | Content::Bits => lift::reversible(block),
    }
}

/// Turns the integers of a block of floating-point numbers to their bits.
#[inline(always)]
fn scale<I: Int, const N: usize>(content: Content, block: &mut [I; N]) {
    match content {
        // the lowest exponent stands for a block of zeros
        Content::Exact(Some(exponent)) if exponent == I::LEAST_EXPONENT => *block = [I::default(); N],
        Content::Lossy(Some(exponent)) | Content::Exact(Some(exponent)) => {
            let factor = I::factor(exponent);
            block.iter_mut().for_each(|sample| *sample = sample.scaled(factor));
        }
        Content::Bits => block.iter_mut().for_each(|sample| *sample = sample.sign_magnitude()),
        Content::Zero | Content::Lossy(None) | Content::Exact(None) => {}
    }
}
