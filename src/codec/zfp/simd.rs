//! Blocks of 4 x 4 x 4 with the instructions of newer processors: the detection of these, which is the only way to the
//! code that needs them, the group tests of a plane at once, and samples in registers.

use std::arch::x86_64::*;

use super::Job;
use super::block::{
    Block, Content, Front, LEAST_EXPONENT, ORDER, Place, Planes, Read, SAMPLES, SOME, Start, Target, Window, factor,
    samples,
};

/// A token: the processor has AVX2, BMI, the carry-less product, and none of these is slow.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Features(());

impl Features {
    pub(super) fn detect() -> Option<Self> {
        let has = is_x86_feature_detected!("avx2")
            && is_x86_feature_detected!("bmi1")
            && is_x86_feature_detected!("bmi2")
            && is_x86_feature_detected!("lzcnt")
            && is_x86_feature_detected!("popcnt")
            && is_x86_feature_detected!("pclmulqdq");
        (has && !extracts_slowly()).then_some(Self(()))
    }

    /// Decodes the blocks, and returns the bit after the last one.
    #[allow(unsafe_code)]
    pub(super) fn run(self, job: &Job<'_>, out: &mut [u8]) -> u64 {
        // SAFETY: only `detect` makes a token, where the processor has the instructions.
        unsafe { run(job, out) }
    }
}

/// Returns whether the processor extracts bits of a mask (PEXT) one by one, like AMD and Hygon before Zen 3.
#[allow(unsafe_code)]
#[allow(unused_unsafe, reason = "whether these calls are unsafe depends on the version of Rust")]
fn extracts_slowly() -> bool {
    // SAFETY: every processor of this architecture that has AVX2 has the instruction, and its first two leaves.
    let (maker, family) = unsafe { (__cpuid(0), __cpuid(1).eax) };
    let maker = [maker.ebx, maker.edx, maker.ecx].map(u32::to_le_bytes).concat();
    let family = (family >> 8 & 15) + (family >> 20 & 255);
    (maker == b"AuthenticAMD" || maker == b"HygonGenuine") && family < 0x19
}

/// Writes the four samples of a row to the first bytes of `to`.
#[inline]
#[target_feature(enable = "avx2")]
#[allow(unsafe_code)]
fn store(to: Option<&mut [u8]>, samples: __m128i) {
    if let Some(to) = to.and_then(<[u8]>::first_chunk_mut::<16>) {
        // SAFETY: the array has the 16 bytes that are written.
        unsafe { _mm_storeu_si128(to.as_mut_ptr().cast(), samples) }
    }
}

/// Returns 32 bytes in a register.
#[inline]
#[target_feature(enable = "avx2")]
#[allow(unsafe_code)]
fn load(from: &[u8; 32]) -> __m256i {
    // SAFETY: the array has the 32 bytes that are read.
    unsafe { _mm256_loadu_si256(from.as_ptr().cast()) }
}

#[inline(always)]
#[allow(unsafe_code)]
fn word(from: &u64) -> u64 {
    // SAFETY: a reference can be read. It is volatile since the compiler would read several words at once, and such a
    // read of words that were just written waits until they are in memory.
    unsafe { std::ptr::read_volatile(from) }
}

/// Decodes the blocks, and returns the bit after the last one.
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt,pclmulqdq")]
fn run(job: &Job<'_>, out: &mut [u8]) -> u64 {
    job.blocks(out, |block, planes, target| decode(block, planes, target))
}

/// Decodes a block, and returns the number of bits that it takes.
#[inline]
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt,pclmulqdq")]
fn decode(block: Block<'_>, planes: &mut Planes, target: Target<'_>) -> u64 {
    let front = block.front();
    if front.content == Content::Zero {
        target.put(&[0; SAMPLES]);
        return block.length(front.at);
    }
    let read = read(block.window, &front, planes);
    match read.known {
        0 | 1 => target.put(&samples(front.content, read, planes)),
        _ => cube(planes, read.low, front.content, target),
    }
    block.length(read.end)
}

/// Reads the planes of a block.
#[inline]
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt,pclmulqdq")]
fn read(window: Window<'_>, front: &Front, planes: &mut Planes) -> Read {
    let start = Start::new(window, front, planes);
    let Start { mut plane, place: Place { at, mut known, budget }, bits: mut groups, mut left } = start;
    let low = front.low;
    let mut put = |plane: usize, word| planes[plane & 31] = word;
    // where the group tests of the next plane begin, and the bit after the last one that may be read
    let (mut tests, limit) = (at + known, at + budget);
    while plane > low && tests - known < limit && known < SAMPLES {
        plane -= 1;
        let (ones, behind) = ends(groups, 1);
        let end = behind.trailing_zeros();
        // each positive test has its one
        let positive = (_bzhi_u64(ones, end).count_ones() / 2) as usize;
        let behind = tests + end as usize;
        let now = known + end as usize - 1 - positive;
        let stored = window.word(tests - known);
        if end as usize <= left && now < SAMPLES && behind <= limit {
            let inside = _bzhi_u64(inside(groups), end - 1);
            // the tests are left out, and the bits between them moved together
            put(plane, _bzhi_u64(stored, known as u32) | _pext_u64(groups, inside) << known);
            (tests, known) = (behind + now, now);
        } else if limit <= tests {
            put(plane, _bzhi_u64(stored, (limit + known - tests) as u32));
            return start.end(Place { at: limit, known, budget: 0 }, plane, front, planes);
        } else {
            let (place, found) = long(window, Place { at: tests, known, budget: limit - tests });
            put(plane, _bzhi_u64(stored, known as u32) | found);
            (tests, known) = (place.at + place.known, place.known);
        }
        (groups, left) = (window.some(tests), SOME);
    }
    let mut at = tests - known;
    while plane > low && at < limit {
        plane -= 1;
        let count = SAMPLES.min(limit - at);
        put(plane, _bzhi_u64(window.word(at), count as u32));
        at += count;
    }
    start.end(Place { at, known, budget: limit - at }, plane, front, planes)
}

/// Reads the group tests of a plane if they are longer than one read, or reach the last coefficient or the limit.
#[inline]
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt,pclmulqdq")]
fn long(window: Window<'_>, from: Place) -> (Place, u64) {
    let Place { mut at, mut known, mut budget } = from;
    let (mut found, mut is_test) = (0, 1);
    loop {
        let groups = window.some(at);
        let end = (ends(groups, is_test).1.trailing_zeros() - 1).min(SOME as u32);
        let parity = inside(groups) ^ (is_test.wrapping_sub(1));
        let limit = budget.min(end as usize);
        let inside = _bzhi_u64(parity, limit as u32);
        let new = inside.count_ones() as usize;
        if known + new >= SAMPLES {
            // the bit of the last coefficient is left out
            let last = _pdep_u64(1 << (SAMPLES - 1 - known), inside).trailing_zeros();
            let bits = _pext_u64(groups, _bzhi_u64(inside, last));
            found |= bits << known | 1 << (SAMPLES - 1);
            let last = last as usize;
            return (Place { at: at + last, known: SAMPLES, budget: budget - last }, found);
        }
        found |= _pext_u64(groups, inside) << known;
        known += new;
        (at, budget) = (at + limit, budget - limit);
        if budget == 0 {
            // a run that the limit cuts ends with a one
            let cut = parity >> limit & 1;
            found |= cut << known;
            return (Place { at, known: known + cut as usize, budget }, found);
        }
        if end < SOME as u32 {
            return (Place { at: at + 1, known, budget: budget - 1 }, found);
        }
        is_test = !parity >> SOME & 1;
    }
}

/// Returns the bits of a plane with `first` before them, and a word whose lowest bit is at the test that is negative,
/// which ends the plane, if there is one in the word. `first` is 1 if the bits begin with a test, 0 if not.
///
/// Ones are tests and the ends of runs in turn. So that test is the zero behind the first run of an odd number of ones,
/// if one more one is put before a test.
#[inline]
#[target_feature(enable = "bmi1")]
fn ends(groups: u64, first: u64) -> (u64, u64) {
    const ODD: u64 = u64::MAX / 3 * 2;
    let ones = groups << 1 | first;
    // the difference carries through each run of ones
    let behind = (ones << 1 | ODD).wrapping_sub(ones) ^ ODD;
    (ones, behind & !ones)
}

/// Returns the bits of a plane that are no tests, if the first bit is one: the bits behind an odd number of ones.
#[inline]
#[target_feature(enable = "pclmulqdq")]
fn inside(groups: u64) -> u64 {
    let parity = _mm_clmulepi64_si128::<0>(_mm_cvtsi64_si128(groups.cast_signed()), _mm_set1_epi64x(-1));
    _mm_cvtsi128_si64(parity).cast_unsigned() << 1
}

/// Turns the planes from `low` on to the samples of a block of 4 x 4 x 4.
#[inline]
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt,pclmulqdq")]
fn cube(planes: &Planes, low: usize, content: Content, target: Target<'_>) {
    let first = low.min(31) / 8;
    let rows = planes.as_chunks::<8>().0;
    let zero = [_mm256_setzero_si256(); 2];
    let d = columns(&rows[3]);
    let c = if first <= 2 { columns(&rows[2]) } else { zero };
    let b = if first <= 1 { columns(&rows[1]) } else { zero };
    let a = if first == 0 { columns(&rows[0]) } else { zero };
    let [r0, r1, r2, r3] = interleave(a[0], b[0], c[0], d[0]);
    let [r4, r5, r6, r7] = interleave(a[1], b[1], c[1], d[1]);
    // along z: a register has two rows along y
    let [r0, r2, r4, r6] = lifted([r0, r2, r4, r6], content);
    let [r1, r3, r5, r7] = lifted([r1, r3, r5, r7], content);
    let halves = |a, b| (_mm256_permute2x128_si256::<0x20>(a, b), _mm256_permute2x128_si256::<0x31>(a, b));
    // then a register has two rows along z
    let planes = |a, b, c, d| {
        let ((y0, y1), (y2, y3)) = (halves(a, b), halves(c, d));
        finished([y0, y1, y2, y3], content)
    };
    let (low, high) = (planes(r0, r2, r1, r3), planes(r4, r6, r5, r7));
    if target.is_whole {
        if let Some(mut rows) = target.rows() {
            put(low, |row, samples| store(rows.row(row), samples));
            put(high, |row, samples| store(rows.row(8 + row), samples));
        }
        return;
    }
    let mut bytes = [0; 256];
    put(low, |row, samples| store(bytes.get_mut(16 * row..), samples));
    put(high, |row, samples| store(bytes.get_mut(16 * (8 + row)..), samples));
    let mut block = [0i32; 64];
    block.iter_mut().zip(bytes.as_chunks().0).for_each(|(to, bytes)| *to = i32::from_ne_bytes(*bytes));
    target.put(&block);
}

/// Hands the eight rows of four registers to `store`, which have two rows along z each.
#[inline]
#[target_feature(enable = "avx2")]
fn put([a, b, c, d]: [__m256i; 4], mut store: impl FnMut(usize, __m128i)) {
    store(0, _mm256_castsi256_si128(a));
    store(1, _mm256_castsi256_si128(b));
    store(2, _mm256_castsi256_si128(c));
    store(3, _mm256_castsi256_si128(d));
    store(4, _mm256_extracti128_si256::<1>(a));
    store(5, _mm256_extracti128_si256::<1>(b));
    store(6, _mm256_extracti128_si256::<1>(c));
    store(7, _mm256_extracti128_si256::<1>(d));
}

/// Turns coefficients, of which the registers have rows along y, to samples.
#[inline]
#[target_feature(enable = "avx2")]
fn finished(rows: [__m256i; 4], content: Content) -> [__m256i; 4] {
    scaled(turned(lifted(turned(lifted(rows, content)), content)), content)
}

/// The inverse transform of four lines in each lane.
#[inline]
#[target_feature(enable = "avx2")]
fn lifted(lines: [__m256i; 4], content: Content) -> [__m256i; 4] {
    match content {
        Content::Exact(_) | Content::Bits => exact(lines),
        Content::Lossy(_) | Content::Zero => lossy(lines),
    }
}

/// Turns the integers of a block to samples.
#[inline]
#[target_feature(enable = "avx2")]
fn scaled(rows: [__m256i; 4], content: Content) -> [__m256i; 4] {
    match content {
        Content::Exact(LEAST_EXPONENT) => [_mm256_setzero_si256(); 4],
        Content::Lossy(exponent) | Content::Exact(exponent) => {
            let factor = _mm256_set1_ps(factor(exponent));
            rows.map(|row| _mm256_castps_si256(_mm256_mul_ps(_mm256_cvtepi32_ps(row), factor)))
        }
        Content::Bits => rows.map(|row| {
            let negative = _mm256_srli_epi32::<1>(_mm256_srai_epi32::<31>(row));
            _mm256_xor_si256(row, negative)
        }),
        Content::Zero => rows,
    }
}

/// Turns 4 x 4 samples in each half of the registers.
#[inline]
#[target_feature(enable = "avx2")]
fn turned([a, b, c, d]: [__m256i; 4]) -> [__m256i; 4] {
    let (ab, cd) = (_mm256_unpacklo_epi32(a, b), _mm256_unpacklo_epi32(c, d));
    let (ef, gh) = (_mm256_unpackhi_epi32(a, b), _mm256_unpackhi_epi32(c, d));
    [
        _mm256_unpacklo_epi64(ab, cd),
        _mm256_unpackhi_epi64(ab, cd),
        _mm256_unpacklo_epi64(ef, gh),
        _mm256_unpackhi_epi64(ef, gh),
    ]
}

/// The inverse transform of lossy blocks.
#[inline]
#[target_feature(enable = "avx2")]
fn lossy([mut x, mut y, mut z, mut w]: [__m256i; 4]) -> [__m256i; 4] {
    let (add, sub) = (|a, b| _mm256_add_epi32(a, b), |a, b| _mm256_sub_epi32(a, b));
    y = add(y, _mm256_srai_epi32::<1>(w));
    w = sub(w, _mm256_srai_epi32::<1>(y));
    y = add(y, w);
    w = sub(w, sub(y, w));
    z = add(z, x);
    x = sub(x, sub(z, x));
    y = add(y, z);
    z = sub(z, sub(y, z));
    w = add(w, x);
    x = sub(x, sub(w, x));
    [x, y, z, w]
}

/// The inverse transform of reversible blocks.
#[inline]
#[target_feature(enable = "avx2")]
fn exact([x, mut y, mut z, mut w]: [__m256i; 4]) -> [__m256i; 4] {
    let add = |a, b| _mm256_add_epi32(a, b);
    w = add(w, z);
    z = add(z, y);
    w = add(w, z);
    y = add(y, x);
    z = add(z, y);
    w = add(w, z);
    [x, y, z, w]
}

/// Returns numbers from four registers of their bytes in base -2, the lowest first.
#[inline]
#[target_feature(enable = "avx2")]
fn interleave(a: __m256i, b: __m256i, c: __m256i, d: __m256i) -> [__m256i; 4] {
    let (low, high) = (_mm256_unpacklo_epi8(a, b), _mm256_unpacklo_epi8(c, d));
    let (more_low, more_high) = (_mm256_unpackhi_epi8(a, b), _mm256_unpackhi_epi8(c, d));
    [
        _mm256_unpacklo_epi16(low, high),
        _mm256_unpackhi_epi16(low, high),
        _mm256_unpacklo_epi16(more_low, more_high),
        _mm256_unpackhi_epi16(more_low, more_high),
    ]
    .map(|words| numbers(words))
}

/// Returns the numbers that have these bits in base -2.
#[inline]
#[target_feature(enable = "avx2")]
fn numbers(words: __m256i) -> __m256i {
    let odd = _mm256_set1_epi32(0xaaaa_aaaa_u32.cast_signed());
    _mm256_sub_epi32(_mm256_xor_si256(words, odd), odd)
}

/// Returns the bytes of 64 coefficients in eight planes, in the order that [`interleave`] takes.
#[inline]
#[target_feature(enable = "avx2")]
fn columns(rows: &[u64; 8]) -> [__m256i; 2] {
    let row = |n: usize| word(&rows[n]).cast_signed();
    let (a, b, c, d) = (row(0), row(1), row(2), row(3));
    let (e, f, g, h) = (row(4), row(5), row(6), row(7));
    // 8 x 8 bytes: a register has two columns of eight bytes in each half
    let (low, high) = (_mm256_setr_epi64x(a, b, e, f), _mm256_setr_epi64x(c, d, g, h));
    let (even, odd) = (_mm256_unpacklo_epi8(low, high), _mm256_unpackhi_epi8(low, high));
    let (low, high) = (_mm256_unpacklo_epi8(even, odd), _mm256_unpackhi_epi8(even, odd));
    let (upper, lower) = (_mm256_permute2x128_si256::<0x20>(low, high), _mm256_permute2x128_si256::<0x31>(low, high));
    let first = turned_bits(_mm256_unpacklo_epi32(upper, lower));
    let second = turned_bits(_mm256_unpackhi_epi32(upper, lower));
    // a half has the bytes of 16 coefficients
    let halves = [
        _mm256_permute2x128_si256::<0x00>(first, first),
        _mm256_permute2x128_si256::<0x00>(second, second),
        _mm256_permute2x128_si256::<0x11>(first, first),
        _mm256_permute2x128_si256::<0x11>(second, second),
    ];
    let pick = |from: &[[u8; 32]; 4]| {
        let mut bytes = [_mm256_setzero_si256(); 4];
        for ((to, half), from) in bytes.iter_mut().zip(halves).zip(from) {
            *to = _mm256_shuffle_epi8(half, load(from));
        }
        let [a, b, c, d] = bytes;
        _mm256_or_si256(_mm256_or_si256(a, b), _mm256_or_si256(c, d))
    };
    [pick(&PLACES[0]), pick(&PLACES[1])]
}

/// Turns the 8 x 8 bits of each word.
#[inline]
#[target_feature(enable = "avx2")]
fn turned_bits(word: __m256i) -> __m256i {
    let mut word = word;
    macro_rules! exchange {
        ($shift:literal, $mask:literal) => {
            let moved = _mm256_xor_si256(_mm256_srli_epi64::<$shift>(word), word);
            let moved = _mm256_and_si256(moved, _mm256_set1_epi64x($mask));
            word = _mm256_xor_si256(word, _mm256_xor_si256(moved, _mm256_slli_epi64::<$shift>(moved)));
        };
    }
    exchange!(7, 0x00aa_00aa_00aa_00aa);
    exchange!(14, 0x0000_cccc_0000_cccc);
    exchange!(28, 0x0000_0000_f0f0_f0f0);
    word
}

/// For both registers that [`columns`] returns and each 16 coefficients: which of these stands at a byte, or 0x80 for
/// none.
const PLACES: [[[u8; 32]; 4]; 2] = places();

const fn places() -> [[[u8; 32]; 4]; 2] {
    let mut places = [[[0x80; 32]; 4]; 2];
    let mut coefficient = 0;
    while coefficient < 64 {
        let sample = ORDER[coefficient] as usize;
        // rows of four are in the lower half and the upper half in turn
        let byte = sample % 4 + sample % 32 / 8 * 4 + sample / 4 % 2 * 16;
        places[sample / 32][coefficient / 16][byte] = coefficient as u8 % 16;
        coefficient += 1;
    }
    places
}
