//! Decodes one block of 4 x 4 x 4 samples: flags and exponent, then the bit planes, then the samples.
//!
//! The stream has the bit planes one after the other, the highest first. A plane begins with one bit for each
//! coefficient that is known to be significant: the first `known` ones. For the others there are, in turn, a bit that
//! says whether there is a one among them, and bits up to and including the next one. The last coefficient's bit is
//! left out: it is 1 if it is reached.

use super::header::Params;

pub(super) const SAMPLES: usize = 64;
/// Bit planes of a block.
const TOP: usize = 32;
/// The longest block in bits: flags, exponent, precision, group tests, planes. A header may give blocks more; they are
/// unused.
const LONGEST_BLOCK: usize = 1 + 1 + 8 + 5 + 63 + SAMPLES * TOP;
/// Bytes of a window: the longest block with up to 7 bits before it, the 15 bytes that one read may take more, and
/// some.
const WINDOW: usize = 288;

const _: () = assert!(LONGEST_BLOCK / 8 + 1 + 16 < WINDOW);

/// The order of the coefficients in a stream: where each of them is in the block, fastest axis first. Low frequencies
/// come first; the order of equal ones is the format's choice.
pub(super) const ORDER: [u8; SAMPLES] = [
    0, 1, 4, 16, 20, 17, 5, 2, 8, 32, 21, 6, 18, 24, 9, 33, 36, 3, 12, 48, 22, 25, 37, 40, 34, 10, 7, 19, 28, 13, 49,
    52, 41, 38, 26, 23, 29, 53, 11, 35, 44, 14, 50, 56, 42, 27, 39, 45, 30, 54, 57, 60, 51, 15, 43, 46, 58, 61, 55, 31,
    62, 59, 47, 63,
];

/// The bytes from the one on in which a block begins. The first bit of a byte is its lowest.
#[derive(Clone, Copy)]
pub(super) struct Window<'a>(&'a [u8; WINDOW]);

/// The bits that [`Window::some`] returns at least.
pub(super) const SOME: usize = 57;

impl Window<'_> {
    /// Returns the bits from bit `at` on: [`SOME`] of them at least, zeros above.
    #[inline(always)]
    pub(super) fn some(self, at: usize) -> u64 {
        // no block reaches the end of its window
        let bytes = self.0.get(at >> 3..).and_then(<[u8]>::first_chunk);
        bytes.map_or(0, |bytes| u64::from_le_bytes(*bytes) >> (at & 7))
    }

    /// Returns the 64 bits from bit `at` on.
    #[inline(always)]
    pub(super) fn word(self, at: usize) -> u64 {
        let Some(bytes) = self.0.get(at >> 3..).and_then(<[u8]>::first_chunk::<15>) else { return 0 };
        let (low, high) = (bytes.first_chunk(), bytes.last_chunk());
        // a shift of 128 bits would be a single instruction, which takes longer
        low.map_or(0, |low| u64::from_le_bytes(*low) >> (at & 7))
            | high.map_or(0, |high| u64::from_le_bytes(*high) >> (at & 7) << 56)
    }
}

/// A stream, with zeros after its end.
pub(super) struct Stream<'a> {
    bytes: &'a [u8],
    /// Where the copy of the end begins.
    tail_at: usize,
    /// The last bytes, fewer than a window, and a window of zeros after them.
    tail: [u8; 2 * WINDOW],
}

impl<'a> Stream<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        let tail_at = bytes.len().saturating_sub(WINDOW - 1);
        let mut tail = [0; 2 * WINDOW];
        tail.iter_mut().zip(bytes.get(tail_at..).unwrap_or_default()).for_each(|(to, byte)| *to = *byte);
        Self { bytes, tail_at, tail }
    }

    /// Returns the window of a block that begins at bit `at`, which is not beyond the end of the stream; its first bit
    /// is bit `at & 7` of the window.
    #[inline(always)]
    pub(super) fn window(&self, at: u64) -> Option<Window<'_>> {
        let byte = usize::try_from(at >> 3).ok()?;
        let whole = self.bytes.get(byte..).and_then(<[u8]>::first_chunk);
        whole.or_else(|| self.tail.get(byte.checked_sub(self.tail_at)?..)?.first_chunk()).map(Window)
    }
}

/// What the integers of a block are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Content {
    Zero,
    /// Lossy samples, with the exponent of the block.
    Lossy(i32),
    /// Exact samples, with the exponent of the block.
    Exact(i32),
    /// The bits of floating-point numbers, exactly.
    Bits,
}

/// The exponent of an exact block of zeros.
pub(super) const LEAST_EXPONENT: i32 = -127;

/// The front of a block: everything before its planes.
pub(super) struct Front {
    pub content: Content,
    /// The first bit of the planes.
    pub at: usize,
    /// The bits that the planes may take.
    pub budget: usize,
    /// The lowest plane that may be stored.
    pub low: usize,
}

/// A block of a stream.
#[derive(Clone, Copy)]
pub(super) struct Block<'a> {
    pub window: Window<'a>,
    /// The bit of the window that the block begins with.
    pub start: usize,
    pub params: &'a Params,
}

impl Block<'_> {
    /// Decodes the block, and returns the number of bits that it takes.
    #[inline(always)]
    pub(super) fn decode(self, planes: &mut Planes, target: Target<'_>) -> u64 {
        let front = self.front();
        if front.content == Content::Zero {
            target.put(&[0; SAMPLES]);
            return self.length(front.at);
        }
        let read = read(self.window, &front, planes);
        target.put(&samples(front.content, read, planes));
        self.length(read.end)
    }

    #[inline(always)]
    pub(super) fn front(self) -> Front {
        let (bits, params) = (self.window.some(self.start), self.params);
        let mut taken = 0;
        let mut take = |count: u32| {
            let value = bits >> taken & ((1 << count) - 1);
            taken += count;
            value as u32
        };
        let exponent = |bits: u32| bits.cast_signed() - 127;
        let content = match params.is_reversible() {
            _ if take(1) == 0 => Content::Zero,
            true if take(1) == 1 => Content::Bits,
            true => Content::Exact(exponent(take(8))),
            false => Content::Lossy(exponent(take(8))),
        };
        let precision = match content {
            Content::Zero => 0,
            Content::Exact(_) | Content::Bits => take(5) + 1,
            // the exponent says how many planes are above the tolerance, and the transform makes errors larger
            Content::Lossy(exponent) => {
                params.max_precision.min((exponent - params.min_exponent + 8).max(0).cast_unsigned())
            }
        };
        // a limit that the front exceeds wraps around, and limits nothing
        let budget = params.max_bits.wrapping_sub(taken) as usize;
        Front { content, at: self.start + taken as usize, budget, low: TOP.saturating_sub(precision as usize) }
    }

    /// Returns the bits of the block, if its planes end at bit `end` of the window.
    #[inline(always)]
    pub(super) fn length(self, end: usize) -> u64 {
        u64::from(self.params.min_bits).max((end - self.start) as u64)
    }
}

/// The bit planes of a block, plane 0 that of the units. Planes above those that were read are 0, and those below down
/// to a multiple of eight.
pub(super) type Planes = [u64; TOP];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Read {
    /// The bit after the planes.
    pub end: usize,
    /// The plane above the highest that may have ones.
    pub top: usize,
    /// The lowest plane that was read.
    pub low: usize,
    /// How many coefficients may have ones, the first ones of the stream's order.
    pub known: usize,
}

/// The place in a stream of planes.
#[derive(Clone, Copy)]
pub(super) struct Place {
    /// The bit to read next.
    pub at: usize,
    /// How many coefficients may have ones from here on.
    pub known: usize,
    /// How many bits may still be read.
    pub budget: usize,
}

/// Where the first plane with ones begins.
#[cfg_attr(not(target_arch = "x86_64"), allow(dead_code, reason = "vector code reads the bits"))]
pub(super) struct Start {
    /// The plane above it.
    pub plane: usize,
    pub place: Place,
    /// The bits from there on, which need not be read again, and how many these are at least.
    pub bits: u64,
    pub left: usize,
}

impl Start {
    /// Skips the first planes as long as they have no ones, of each of which there is one bit, and clears them.
    #[inline(always)]
    pub(super) fn new(window: Window<'_>, front: &Front, planes: &mut Planes) -> Self {
        let Front { at, budget, low, .. } = *front;
        let bits = window.some(at);
        let count = (bits.trailing_zeros() as usize).min(TOP - low).min(budget);
        let plane = TOP - count;
        // by eights, since these are stores of a fixed size: planes that are cleared too much are read later, or have
        // to be clear
        clear_eight(planes, low & !7);
        let mut cleared = TOP;
        while cleared > plane {
            cleared = cleared.saturating_sub(8);
            clear_eight(planes, cleared);
        }
        let place = Place { at: at + count, known: 0, budget: budget - count };
        Self { plane, place, bits: bits >> count, left: SOME - count }
    }

    /// Ends the reading of planes at `place`, where `low` is the lowest one, and clears those below it that are
    /// transposed with it.
    #[inline(always)]
    pub(super) fn end(&self, place: Place, low: usize, front: &Front, planes: &mut Planes) -> Read {
        if low > front.low
            && let Some(unread) = planes.get_mut(low & !7..low)
        {
            unread.fill(0);
        }
        Read { end: place.at, top: self.plane, low, known: place.known }
    }
}

#[inline(always)]
fn clear_eight(planes: &mut Planes, first: usize) {
    if let Some(planes) = planes.get_mut(first..).and_then(<[u64]>::first_chunk_mut::<8>) {
        *planes = [0; 8];
    }
}

/// Reads the planes of a block.
#[inline(always)]
fn read(window: Window<'_>, front: &Front, planes: &mut Planes) -> Read {
    let start = Start::new(window, front, planes);
    let (mut plane, mut place) = (start.plane, start.place);
    while plane > front.low && place.budget > 0 {
        plane -= 1;
        (planes[plane & (TOP - 1)], place) = one(window, place);
    }
    start.end(place, plane, front, planes)
}

#[inline(always)]
fn one(window: Window<'_>, from: Place) -> (u64, Place) {
    let Place { mut at, mut known, mut budget } = from;
    let stored = known.min(budget);
    let mut word = if stored == 0 { 0 } else { window.word(at) << (SAMPLES - stored) >> (SAMPLES - stored) };
    (at, budget) = (at + stored, budget - stored);
    let (mut bits, mut left) = (window.some(at), SOME);
    while known < SAMPLES && budget > 0 {
        if left == 0 {
            (bits, left) = (window.some(at), SOME);
        }
        (at, budget) = (at + 1, budget - 1);
        if bits & 1 == 0 {
            break;
        }
        (bits, left) = (bits >> 1, left - 1);
        loop {
            let most = (SAMPLES - 1 - known).min(budget);
            let zeros = (bits | 1 << left).trailing_zeros() as usize;
            if zeros >= most {
                // the last coefficient is reached, or no bit is left for the one
                (at, known, budget) = (at + most, known + most, budget - most);
                (bits, left) = (bits >> most, left - most);
                break;
            }
            let step = zeros + usize::from(zeros < left);
            (at, known, budget) = (at + step, known + zeros, budget - step);
            if zeros < left {
                (bits, left) = (bits >> step, left - step);
                break;
            }
            (bits, left) = (window.some(at), SOME);
        }
        word |= 1 << (known & (SAMPLES - 1));
        known += 1;
    }
    (word, Place { at, known, budget })
}

/// Turns planes to samples.
#[inline(always)]
pub(super) fn samples(content: Content, read: Read, planes: &Planes) -> [i32; SAMPLES] {
    let mut block = match read.known {
        // the first coefficient alone makes all samples the same
        0 | 1 => {
            let bits = planes.iter().enumerate().take(read.top).skip(read.low);
            [from_negabinary(bits.fold(0, |word, (at, plane)| word | (*plane as u32 & 1) << at)); SAMPLES]
        }
        _ => {
            let mut block = transpose(planes, read);
            match content {
                Content::Lossy(_) | Content::Zero => along_axes(&mut block, lift_lossy),
                Content::Exact(_) | Content::Bits => along_axes(&mut block, lift_exact),
            }
            block
        }
    };
    match content {
        Content::Exact(LEAST_EXPONENT) => block = [0; SAMPLES],
        Content::Lossy(exponent) | Content::Exact(exponent) => {
            let factor = factor(exponent);
            // rounded once for the conversion and once for the product
            block.iter_mut().for_each(|sample| *sample = (*sample as f32 * factor).to_bits().cast_signed());
        }
        // negative numbers are stored as sign and magnitude
        Content::Bits => block.iter_mut().for_each(|sample| *sample ^= *sample >> 31 & i32::MAX),
        Content::Zero => {}
    }
    block
}

/// Returns the value of the integer 1 in a block: 2^(`exponent` - 30) exactly, or 0 if that is too small.
#[inline(always)]
pub(super) fn factor(exponent: i32) -> f32 {
    f32::from_bits(match exponent - 30 + 127 {
        biased @ 1.. => (biased as u32) << 23,
        biased @ -22.. => 1 << (biased + 22),
        _ => 0,
    })
}

/// Returns the number that has these bits in base -2.
#[inline(always)]
fn from_negabinary(word: u32) -> i32 {
    const ODD: u32 = 0xaaaa_aaaa;
    (word ^ ODD).wrapping_sub(ODD).cast_signed()
}

/// The most coefficients that are transposed faster one after the other.
const FEW: usize = 24;

/// Turns planes of numbers in base -2 to the coefficients of a block in their places.
#[inline(always)]
fn transpose(planes: &Planes, Read { low, known, .. }: Read) -> [i32; SAMPLES] {
    match 4 - low / 8 {
        1 => by_groups::<1>(planes, known),
        2 => by_groups::<2>(planes, known),
        3 => by_groups::<3>(planes, known),
        _ => by_groups::<4>(planes, known),
    }
}

/// Transposes the highest `G` times eight planes.
#[inline(always)]
fn by_groups<const G: usize>(planes: &Planes, known: usize) -> [i32; SAMPLES] {
    let mut block = [0; SAMPLES];
    let groups = planes.as_chunks::<8>().0.iter().rev();
    let number = |bytes: [u8; G]| {
        let word = bytes.iter().zip([24, 16, 8, 0]).fold(0, |word, (byte, bit)| word | u32::from(*byte) << bit);
        from_negabinary(word)
    };
    if known <= FEW {
        for (column, order) in ORDER.as_chunks::<8>().0.iter().enumerate().take(known.div_ceil(8)) {
            let mut bytes = [[0; 8]; G];
            for (bytes, rows) in bytes.iter_mut().zip(groups.clone()) {
                let rows = rows.iter().rev().fold(0, |word, row| word << 8 | row >> (8 * column) & 0xff);
                *bytes = turned(rows).to_le_bytes();
            }
            for (n, at) in order.iter().enumerate() {
                block[usize::from(*at) % SAMPLES] = number(bytes.map(|group| group[n]));
            }
        }
        return block;
    }
    let mut bytes = [[0; SAMPLES]; G];
    bytes.iter_mut().zip(groups).for_each(|(bytes, rows)| *bytes = bytes_of(rows));
    // two loops, of which the first one is in vectors
    let mut words = [0; SAMPLES];
    for (n, word) in words.iter_mut().enumerate() {
        *word = number(bytes.each_ref().map(|group| group[n]));
    }
    for (word, at) in words.iter().zip(ORDER) {
        block[usize::from(at) % SAMPLES] = *word;
    }
    block
}

/// Returns, for each of 64 columns, the byte of its bits in eight rows; the first row has the lowest bit.
#[inline(always)]
fn bytes_of(rows: &[u64; 8]) -> [u8; 64] {
    let mut words = *rows;
    // squares beside the diagonal are exchanged
    for (step, mask) in [(4, 0xffff_ffff), (2, 0xffff_0000_ffff), (1, 0x00ff_00ff_00ff_00ff)] {
        for at in 0..8 {
            if at & step == 0 {
                let (low, high) = (words[at], words[at + step]);
                let moved = (low >> (8 * step) ^ high) & mask;
                words[at] = low ^ moved << (8 * step);
                words[at + step] = high ^ moved;
            }
        }
    }
    let mut bytes = [0; 64];
    bytes.as_chunks_mut().0.iter_mut().zip(words).for_each(|(to, word)| *to = turned(word).to_le_bytes());
    bytes
}

/// Turns the 8 x 8 bits of a word.
#[inline(always)]
fn turned(word: u64) -> u64 {
    let mut word = word;
    for (shift, mask) in [(7, 0x00aa_00aa_00aa_00aa), (14, 0xcccc_0000_cccc), (28, 0xf0f0_f0f0)] {
        let moved = (word >> shift ^ word) & mask;
        word ^= moved ^ moved << shift;
    }
    word
}

/// Transforms each line of four along each axis, the slowest first.
#[inline(always)]
fn along_axes(block: &mut [i32; SAMPLES], lift: impl Fn([i32; 4]) -> [i32; 4]) {
    for step in [16, 4] {
        for lines in block.chunks_exact_mut(4 * step) {
            let (first, rest) = lines.split_at_mut(step);
            let (second, rest) = rest.split_at_mut(step);
            let (third, fourth) = rest.split_at_mut(step);
            for (((x, y), z), w) in first.iter_mut().zip(second).zip(third).zip(fourth) {
                [*x, *y, *z, *w] = lift([*x, *y, *z, *w]);
            }
        }
    }
    block.as_chunks_mut().0.iter_mut().for_each(|line| *line = lift(*line));
}

/// The inverse transform of lossy blocks.
#[inline(always)]
fn lift_lossy([mut x, mut y, mut z, mut w]: [i32; 4]) -> [i32; 4] {
    y = y.wrapping_add(w >> 1);
    w = w.wrapping_sub(y >> 1);
    y = y.wrapping_add(w);
    w = w.wrapping_sub(y.wrapping_sub(w));
    z = z.wrapping_add(x);
    x = x.wrapping_sub(z.wrapping_sub(x));
    y = y.wrapping_add(z);
    z = z.wrapping_sub(y.wrapping_sub(z));
    w = w.wrapping_add(x);
    x = x.wrapping_sub(w.wrapping_sub(x));
    [x, y, z, w]
}

/// The inverse transform of exact blocks.
#[inline(always)]
fn lift_exact([x, mut y, mut z, mut w]: [i32; 4]) -> [i32; 4] {
    w = w.wrapping_add(z);
    z = z.wrapping_add(y);
    w = w.wrapping_add(z);
    y = y.wrapping_add(x);
    z = z.wrapping_add(y);
    w = w.wrapping_add(z);
    [x, y, z, w]
}

/// The part of an array that a block covers.
pub(super) struct Target<'a> {
    pub out: &'a mut [u8],
    /// The byte of the block's first sample.
    pub first: usize,
    /// The distances of neighbouring rows and planes in bytes.
    pub steps: [usize; 2],
    /// How many of the block's samples along each axis are within the array, the fastest axis first.
    pub extents: [usize; 3],
    /// Whether all samples of the block are within the array.
    pub is_whole: bool,
}

impl<'a> Target<'a> {
    /// Returns the rows of a whole block.
    #[inline(always)]
    pub(super) fn rows(self) -> Option<Rows<'a>> {
        let last = self.out.len().checked_sub(16)?;
        Some(Rows { out: self.out, first: self.first, last, steps: self.steps })
    }

    /// Writes the samples that are within the array.
    #[inline(always)]
    pub(super) fn put(self, block: &[i32; SAMPLES]) {
        let samples = block.as_chunks::<4>().0.iter().enumerate();
        if self.is_whole {
            let Some(mut rows) = self.rows() else { return };
            for (row, samples) in samples {
                if let Some(to) = rows.row(row).and_then(<[u8]>::first_chunk_mut::<16>) {
                    to.as_chunks_mut().0.iter_mut().zip(samples).for_each(|(to, sample)| *to = sample.to_ne_bytes());
                }
            }
            return;
        }
        let Self { out, first, steps: [y, z], extents: [mx, my, mz], .. } = self;
        for (row, samples) in samples.filter(|(row, _)| row % 4 < my && row / 4 < mz) {
            let to = out.get_mut(first + row % 4 * y + row / 4 * z..).unwrap_or_default().as_chunks_mut().0;
            to.iter_mut().zip(samples).take(mx).for_each(|(to, sample)| *to = sample.to_ne_bytes());
        }
    }
}

/// The rows of a whole block.
pub(super) struct Rows<'a> {
    out: &'a mut [u8],
    first: usize,
    /// The last byte at which a row can begin.
    last: usize,
    steps: [usize; 2],
}

impl Rows<'_> {
    /// Returns the bytes from row `row` of the block on. All rows are within `out`.
    #[inline(always)]
    pub(super) fn row(&mut self, row: usize) -> Option<&mut [u8]> {
        let [y, z] = self.steps;
        let at = self.first.wrapping_add((row % 4).wrapping_mul(y)).wrapping_add((row / 4).wrapping_mul(z));
        // one comparison a row
        if at > self.last { None } else { self.out.get_mut(at..) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_coefficients_are_transposed_as_all_are() {
        let mut state = 1u64;
        for known in 0..=FEW {
            let planes = std::array::from_fn(|_| {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                state & ((1 << known) - 1)
            });
            for low in [0, 9, 23] {
                let of = |known| transpose(&planes, Read { end: 0, top: TOP, low, known });
                assert_eq!(of(known), of(SAMPLES), "{known} {low}");
                assert_eq!(of(known).iter().any(|number| *number != 0), known > 0);
            }
        }
    }
}
